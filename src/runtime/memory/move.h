// A process that has outgrown its place goes on in a larger one.
#pragma once

#include "runtime/memory/state.h"

namespace gpurun::rt {

// Where a process is, or goes.
struct Room {
    u32* words;
    u32 stack, stack_end;
};

// Copies a process's words, and makes them fit. `fresh` are the words of a process that has not
// begun, in a place like `to`, one after another. The stack lies last: its frames begin where they
// did, its records end where the larger stack ends.
inline void move_words(const Room& from, const Room& to, const u32* fresh, u32 thread) {
    for (u32 i = 0; i < from.stack; i++) word(to.words, i) = word(from.words, i);
    const u32 rp = word(from.words, thread + thread_rp), shift = to.stack_end - from.stack_end;
    for (u32 i = from.stack; i < rp; i++) word(to.words, i) = word(from.words, i);
    for (u32 i = rp; i < from.stack_end; i++) word(to.words, i + shift) = word(from.words, i);
    word(to.words, thread + thread_rp) = rp + shift;
    word(to.words, thread + thread_stack_end) = to.stack_end;
    word(to.words, thread + thread_dirty) = ~u32{0};
    word(to.words, process_clipped) = fresh[process_clipped];
    word(to.words, process_canaries) = fresh[process_canaries];
    if (fresh[process_canaries] == to.stack_end)
        for (u32 i = 0; i < canary_words; i++)
            word(to.words, to.stack_end + i) = fresh[to.stack_end + i];
    for (u32 at = fresh[process_memories]; at != 0; at = fresh[at + memory_next])
        for (u32 i = memory_base; i < memory_max_pages; i++) word(to.words, at + i) = fresh[at + i];
}

// The memories' contents: `copy(to, from, count)` of offsets in the bytes of both places. Before
// the words are moved or after.
template <class Copy>
void move_memories(const u32* from_words, const u32* fresh, Copy copy) {
    for (u32 at = fresh[process_memories]; at != 0; at = fresh[at + memory_next]) {
        u64 to = u64(fresh[at + memory_base + 1]) << 32 | fresh[at + memory_base];
        const u32* record = from_words + usize(at) * lane_stride;
        copy(to, get<u64>(record, memory_base), get<u64>(record, memory_bytes));
    }
}

}  // namespace gpurun::rt
