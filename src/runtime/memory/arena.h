// The device heap: blocks of system memory by size class, in lock-free lists. Everyone who frees a
// block knows its size.
#pragma once

#include "abi/system.h"
#include "runtime/memory/state.h"

namespace gpurun::rt {

inline SystemHeader& system_of(const Process& p) {
    return *reinterpret_cast<SystemHeader*>(p.system);
}
template <class T>
inline T* at_offset(const Process& p, u64 offset) {
    return reinterpret_cast<T*>(p.system + offset);
}
template <class T>
inline T* at_handle(const Process& p, Handle handle) {
    return at_offset<T>(p, u64(handle) << handle_shift);
}
// Of the base: nobody's to change.
inline bool is_base_offset(const Process& p, u64 offset) {
    const SystemHeader& system = system_of(p);
    return offset < system.base_end || offset >= system.size;  // or brought by the host
}
inline bool is_base(const Process& p, Handle handle) {
    return is_base_offset(p, u64(handle) << handle_shift);
}

inline u32 class_of(u64 size) {
    constexpr u32 least_bits = 64 - __builtin_clzll(least_block - 1);
    return size <= least_block ? 0 : 64 - u32(__builtin_clzll(size - 1)) - least_bits;
}
inline u64 block_size(u64 size) { return least_block << class_of(size); }

// What is in a word by now, for whoever has tried to exchange it and found another value there. Who
// was not quick enough several times is one of very many, and gives way to the others.
template <class T>
inline T look_again(T* word, T found, u32 turn) {
    if (turn == 0) return found;
    give_way(turn);
    return load_relaxed(word);
}

// Lists of what is free: tag << 32 | the first one's number, or 0; `next_of` says where an item
// keeps the number of the next. The head is acquired before that number is read: else it may be one
// of before the item was put there. A tag comes once, so the head that is exchanged is the one that
// was acquired. Ends: a failed exchange means that another's succeeded.
template <class NextOf>
inline u32 pop(u64* list, NextOf next_of) {
    u64 head = load_shared(list);  // pairs with push_chain
    for (u32 turn = 0; u32(head) != 0; turn++) {
        const u64 value = ((head >> 32) + 1) << 32 | load_stale(next_of(u32(head)));
        if (compare_exchange_relaxed(list, head, value) == head) return u32(head);
        if (turn != 0) give_way(turn);
        head = load_shared(list);  // pairs with push_chain
    }
    return 0;
}
// One item of a list, in steps that several lists are taken through side by side: each step is a
// way to the memory and back. Between the looks at the heads and those at the items there is one
// acquire_fence for all.
class EarlyPop {
public:
    explicit EarlyPop(u64* list) : list_(list), head_(load_relaxed(list)) {}
    template <class NextOf>
    void look(NextOf next_of) {
        next_ = load_stale(is_empty() ? reinterpret_cast<u32*>(list_) : next_of(u32(head_)));
    }
    void take() {
        const u64 value = is_empty() ? head_ : ((head_ >> 32) + 1) << 32 | next_;
        found_ = compare_exchange_relaxed(list_, head_, value);
    }
    // 0: there was none, or another was quicker.
    u32 item() const { return found_ == head_ ? u32(head_) : 0; }

private:
    bool is_empty() const { return u32(head_) == 0; }

    u64* list_;
    u64 head_, found_ = 0;
    u32 next_ = 0;
};

// Items that are linked already, all but the last.
template <class NextOf>
inline void push_chain(u64* list, u32 first, u32 last, NextOf next_of) {
    u64 head = load_relaxed(list);
    for (u32 turn = 0;; turn++) {
        store_relaxed(next_of(last), u32(head));
        const u64 found = compare_exchange_release(list, head, ((head >> 32) + 1) << 32 | first);
        if (found == head) return;
        head = look_again(list, found, turn);
    }
}
template <class NextOf>
inline void push(u64* list, u32 item, NextOf next_of) {
    push_chain(list, item, item, next_of);
}

// `size` bytes at least, as whoever had them last left them; 0: there are no more.
inline Handle take_block(const Process& p, u64 size) {
    u32 size_class = class_of(size);
    if (size_class >= heap_classes) return 0;
    SystemHeader& system = system_of(p);
    const u64 bytes = least_block << size_class;
    const u32 shard = lane_shard() % heap_shards;
    auto next_of = [&](u32 handle) { return at_handle<u32>(p, handle); };
    Handle block = pop(&system.free_lists[shard][size_class], next_of);
    if (block == 0) {
        u64 at = fetch_add(&system.bump, bytes);
        if (at + bytes <= system.size && at + bytes > at) {
            block = Handle(at >> handle_shift);
        } else {
            fetch_add(&system.bump, u64{0} - bytes);
            for (u32 i = 1; i < heap_shards && block == 0; i++)
                block = pop(&system.free_lists[(shard + i) % heap_shards][size_class], next_of);
        }
    }
    if (block != 0) fetch_add(&system.in_use, bytes);
    return block;
}

// Where the caller's blocks of that size come from.
inline u64* free_blocks(const Process& p, u64 size) {
    return &system_of(p).free_lists[lane_shard() % heap_shards][class_of(size)];
}
// The block that `popped` got from there, or another.
inline Handle take_popped(const Process& p, const EarlyPop& popped, u64 size) {
    if (popped.item() == 0) return take_block(p, size);
    fetch_add(&system_of(p).in_use, block_size(size));
    return popped.item();
}

inline void fill_system(u8* to, u8 value, u64 count) {
    // Blocks are aligned, and their sizes are multiples of what is written at once.
    static_assert(least_block % 64 == 0);
    const u64 wide = value * 0x0101010101010101ull;
    for (u64* at = reinterpret_cast<u64*>(to); count > 0; count -= 64, at += 8)
        for (u32 i = 0; i < 8; i++) at[i] = wide;
}

inline Handle take_zeroed(const Process& p, u64 size) {
    Handle handle = take_block(p, size);
    if (handle != 0) fill_system(at_handle<u8>(p, handle), 0, block_size(size));
    return handle;
}

inline void give_block(const Process& p, Handle handle, u64 size) {
    if (handle == 0) return;
    SystemHeader& system = system_of(p);
    u32 size_class = class_of(size);
    u64 bytes = least_block << size_class;
    if (word(p.words, process_canaries) != 0) fill_system(at_handle<u8>(p, handle), 0xde, bytes);
    push(&system.free_lists[lane_shard() % heap_shards][size_class], handle,
         [&](u32 given) { return at_handle<u32>(p, given); });
    fetch_add(&system.in_use, u64{0} - bytes);
}

// A copy of `used` bytes in a block of `size`; the rest is zero.
inline Handle take_copy(const Process& p, u64 size, const u8* from, u64 used) {
    Handle handle = take_zeroed(p, size);
    if (handle != 0) copy_system(at_handle<u8>(p, handle), from, used);
    return handle;
}

}  // namespace gpurun::rt
