// The import module `gpu`: who am I, device time, blocks of the device heap, debug printing. What
// is done with long blocks is done piece by piece.
#include "runtime/wasi/system.h"

namespace gpurun::rt {
namespace {

// Blocks of the device heap that a guest has: an array of these, by number from 1 on.
struct GuestBlock {
    Handle block;
    u32 size;
};

constexpr u32 max_guest_blocks = 4096;  // then alloc gives 0

GuestBlock* guest_block(const Call& call, u32 number) {
    if (number == 0 || number > call.me->guest_block_count) return nullptr;
    GuestBlock* found = at_handle<GuestBlock>(call.p, call.me->guest_blocks) + (number - 1);
    return found->block == 0 ? nullptr : found;
}

// A number up to `most` for a block of `size` bytes, and the block, as whoever had it last left it.
// 0: there is none.
u32 take_guest_block(const Call& call, u32 size, u32 most) {
    ProcessBlock* me = call.me;
    GuestBlock* all = at_handle<GuestBlock>(call.p, me->guest_blocks);
    u32 number = 0;
    while (number < me->guest_block_count && all[number].block != 0) number++;
    u64 used = me->guest_block_count * sizeof(GuestBlock);
    if (number == me->guest_block_count) {
        if (number == most) return 0;
        if (me->guest_blocks == 0 || block_size(used) != block_size(used + sizeof(GuestBlock))) {
            Handle grown = take_copy(call.p, used + sizeof(GuestBlock),
                                     reinterpret_cast<const u8*>(all), used);
            if (grown == 0) return 0;
            if (me->guest_blocks != 0) give_block(call.p, me->guest_blocks, used);
            me->guest_blocks = grown;
            all = at_handle<GuestBlock>(call.p, grown);
        }
        me->guest_block_count++;
        all[number] = {0, 0};
    }
    Handle block = take_block(call.p, size);
    if (block == 0) return 0;
    all[number] = {block, size};
    return number + 1;
}

// The next piece of a block whose first `kept` bytes come from `from`, and the rest is zeros.
// Progress is the block's number, and how many bytes are done. True: no more are left.
bool fill_piece(Call& call, const u8* from, u32 kept) {
    const GuestBlock* block = guest_block(call, u32(call.my->progress >> 32));
    const u32 done = u32(call.my->progress), end = done < kept ? kept : block->size;
    const u32 count = end - done < chunk_bytes ? end - done : u32(chunk_bytes);
    call.r.chore = {at_handle<u8>(call.p, block->block) + done, done < kept ? from + done : nullptr,
                    count, 0};
    call.my->progress += count;
    return done + count == block->size;
}

Outcome alloc_block(Call& call, u32 size) {
    if (call.my->progress == 0) {
        u32 number = size == 0 ? 0 : take_guest_block(call, size, max_guest_blocks);
        if (number == 0) return give(call, 0);
        call.my->progress = u64(number) << 32;
    }
    u32 number = u32(call.my->progress >> 32);
    return fill_piece(call, nullptr, 0) ? give(call, number) : call.again();
}

void free_block(const Call& call, u32 number) {
    GuestBlock* block = guest_block(call, number);
    if (block == nullptr) return;
    give_block(call.p, block->block, block->size);
    block->block = 0;
}

// The same number with another size; 0, and nothing changed, if there is no memory. Until it is
// filled the new block has a number of its own.
Outcome realloc_block(Call& call, u32 number, u32 size) {
    if (number == 0) return alloc_block(call, size);
    GuestBlock* old = guest_block(call, number);
    if (old == nullptr) return give(call, 0);
    if (size == 0) {
        free_block(call, number);
        return give(call, 0);
    }
    if (call.my->progress == 0) {
        u32 other = take_guest_block(call, size, max_guest_blocks + 1);
        if (other == 0) return give(call, 0);
        call.my->progress = u64(other) << 32;
        old = guest_block(call, number);  // the table may have moved
    }
    if (u32(call.my->progress) < size) {
        fill_piece(call, at_handle<u8>(call.p, old->block), size < old->size ? size : old->size);
        return call.again();
    }
    GuestBlock* other = guest_block(call, u32(call.my->progress >> 32));
    give_block(call.p, old->block, old->size);
    *old = *other;
    other->block = 0;
    return give(call, number);
}

// Between a block, from `offset` on, and the guest's memory. Gives how many bytes were copied.
Outcome copy_block(Call& call, bool is_read) {
    u32 number = call.i32(), offset = call.i32(), address = call.i32(), count = call.i32();
    GuestBlock* block = guest_block(call, number);
    if (block == nullptr || !in_bounds(offset, count, block->size) ||
        call.in(address, count) == nullptr)
        return give(call, 0);
    const u32 done = u32(call.my->progress);
    const u32 piece = count - done < chunk_bytes ? count - done : u32(chunk_bytes);
    u8* bytes = at_handle<u8>(call.p, block->block) + offset + done;
    if (is_read) {
        call.r.chore = {call.out(address + done, piece), bytes, piece, 0};
    } else {
        call.r.chore = {bytes, call.in(address + done, piece), piece, 0};
    }
    call.my->progress = done + piece;
    return done + piece == count ? give(call, count) : call.again();
}

Outcome debug(const Call& call, DebugKind kind, u64 value, const u8* text) {
    const NewRecord made = new_debug_record(call);
    DebugRecord* record = made.at;
    if (record == nullptr && system_of(call.p).debug_capacity != 0) return wait_for_records(call);
    if (record == nullptr) return call.done();  // nobody wants any
    record->value = value;
    for (u32 i = 0; text != nullptr && i < value && i < debug_text_bytes; i++)
        record->text[i] = load_bytes<u8>(text + i);
    record->kind = kind;
    finish_record(made);
    return call.done();
}

}  // namespace

Outcome call_gpu(Call& call, SystemCall which) {
    switch (which) {
        case SystemCall::alloc: return alloc_block(call, call.i32());
        case SystemCall::realloc: {
            u32 number = call.i32(), size = call.i32();
            return realloc_block(call, number, size);
        }
        case SystemCall::free: free_block(call, call.i32()); return call.done();
        case SystemCall::read: return copy_block(call, true);
        case SystemCall::write: return copy_block(call, false);
        case SystemCall::debug_i32: return debug(call, DebugKind::i32, call.i32(), nullptr);
        case SystemCall::debug_i64: return debug(call, DebugKind::i64, call.i64(), nullptr);
        case SystemCall::debug_f32: return debug(call, DebugKind::f32, call.i32(), nullptr);
        case SystemCall::debug_f64: return debug(call, DebugKind::f64, call.i64(), nullptr);
        case SystemCall::debug_bool:
            return debug(call, DebugKind::boolean, call.i32() != 0, nullptr);
        default: {  // debug_str
            u32 at = call.i32(), length = call.i32();
            const u8* text = call.in(at, length);
            return text == nullptr ? call.done() : debug(call, DebugKind::text, length, text);
        }
    }
}

void free_guest_blocks(const Process& p, ProcessBlock* me) {
    GuestBlock* all = at_handle<GuestBlock>(p, me->guest_blocks);
    for (u32 i = 0; i < me->guest_block_count; i++)
        if (all[i].block != 0) give_block(p, all[i].block, all[i].size);
    if (me->guest_blocks != 0)
        give_block(p, me->guest_blocks, me->guest_block_count * sizeof(GuestBlock));
    me->guest_blocks = me->guest_block_count = 0;
}

}  // namespace gpurun::rt
