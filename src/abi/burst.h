// What the host hands to a kernel: device addresses and sizes, and where results go.
#pragma once

#include "base/ints.h"

namespace gpurun {

// A range of process words that a fresh process gets from the template.
struct WordRange {
    u32 begin, end;
};

inline constexpr u32 burst_ranges = 3;

// Stacks of a burst up to this size are in the lanes' local memory on GPUs; deeper ones are
// slower. What a process of a burst has if nobody asks for more.
inline constexpr u32 gang_stack_slots = 8192;

// One launch that runs many processes of one template to their end. Addresses are the device's.
struct BurstParams {
    u64 code;
    u64 words;           // of all slots: a warp's lie together, interleaved by lane
    u64 bytes;           // of all slots, one after another
    u64 template_words;  // the words of one process, not interleaved
    u64 template_bytes;  // of which there are template_size; the rest of a process's is zero
    u64 arguments;       // argument_words for each process
    u64 results;         // result_stride words for each process
    u64 next;            // u32: first process that no lane has taken
    u64 stop;            // u32: not zero: end soon
    u64 bytes_per_process;
    u64 template_size;
    u64 fuel;
    u32 words_per_process;
    u32 processes;
    u32 warps;
    u32 lanes;   // used in each warp
    u32 thread;  // word index
    u32 stack;   // word index: arguments go there, results are read there
    u32 argument_words, result_words, result_stride;
    u32 dirty_shift;  // 32 << dirty_shift is at least bytes_per_process
    WordRange ranges[burst_ranges];
};
static_assert(sizeof(BurstParams) == 12 * 8 + 10 * 4 + burst_ranges * 8);

// One thread of one process, run by a warp of its own.
struct SoloParams {
    u64 code, words, bytes;
    u64 stop;  // u32
    u32 thread;
    u32 steps;  // at most so many instructions; 0: no limit
};
static_assert(sizeof(SoloParams) == 40);

// What is left of a process of a burst; its result words follow.
enum ResultWord : u32 {
    result_state,  // ThreadState; ready: it was stopped, or never begun
    result_trap,
    result_pc,
    result_fuel,  // u64: what was left
    result_first = result_fuel + 2,
};

}  // namespace gpurun
