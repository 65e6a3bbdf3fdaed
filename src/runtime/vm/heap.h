// The object heap of a process: allocation of objects that never move.
#pragma once

#include "runtime/memory/state.h"

namespace gpurun::rt {

// Allocates `count` words, all zero. Returns their index, which is even, or 0 if the heap is full.
inline u32 allocate(const Process& p, u64 count) {
    u32 next = word(p.words, process_heap_next), end = word(p.words, process_heap_end);
    count = (count + 1) & ~u64{1};
    if (count > end - next) return 0;
    word(p.words, process_heap_next) = next + u32(count);
    return next;
}

}  // namespace gpurun::rt
