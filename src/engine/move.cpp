// Moves a process to another space, on any device.
#include <algorithm>

#include "engine/store.h"

namespace gpurun::engine {
namespace {

// Copies [begin, end) in pieces. Pieces that are all zero are left out, since the new space is
// zero.
template <class T, class Read, class Write>
Result<void> copy_range(u64 begin, u64 end, Read read, Write write) {
    constexpr u64 piece = (u64{1} << 20) / sizeof(T);
    std::vector<T> buffer(std::min(piece, end - begin));
    for (u64 at = begin; at < end; at += piece) {
        std::span<T> part(buffer.data(), std::min(piece, end - at));
        TRY(read(at, part));
        if (std::all_of(part.begin(), part.end(), [](T value) { return value == 0; })) continue;
        TRY(write(at, part));
    }
    return {};
}

}  // namespace

Result<void> Store::move_to(std::unique_ptr<device::Space> space) {
    device::Space &from = *space_, &to = *space;
    auto copy_words = [&](u64 begin, u64 end) {
        return copy_range<u32>(
            begin, end, [&](u64 at, std::span<u32> part) { return from.read_words(u32(at), part); },
            [&](u64 at, std::span<u32> part) { return to.write_words(u32(at), part); });
    };
    auto copy_bytes = [&](u64 begin, u64 end) {
        return copy_range<u8>(
            begin, end, [&](u64 at, std::span<u8> part) { return from.read_bytes(at, part); },
            [&](u64 at, std::span<u8> part) { return to.write_bytes(at, part); });
    };
    TRY(copy_range<u64>(
        0, next_code_, [&](u64 at, std::span<u64> part) { return from.read_code(u32(at), part); },
        [&](u64 at, std::span<u64> part) { return to.write_code(u32(at), part); }));
    // The heap is used up to a point; behind it lies what instances own, and last the first stack.
    u32 heap_next = TRY(read_word(process_heap_next)), heap_end = TRY(read_word(process_heap_end));
    TRY(copy_words(0, heap_next));
    TRY(copy_words(heap_end, next_word_));
    TRY(copy_words(free_end_, words_));
    for (const Extern& memory : all_memories()) {
        u64 base = TRY(read_wide(memory.at + memory_base));
        u64 size = TRY(read_wide(memory.at + memory_bytes));
        TRY(copy_bytes(base, base + size));
    }
    for (const device::NativePart& part : native_) TRY(to.use_native(part));
    space_ = std::move(space);
    return {};
}

}  // namespace gpurun::engine
