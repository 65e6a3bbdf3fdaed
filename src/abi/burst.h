// What the host hands to a kernel: device addresses and sizes, and where results go.
#pragma once

#include "abi/native.h"
#include "base/ints.h"

namespace gpurun {

// A range of process words that a fresh process gets from the template.
struct WordRange {
    u32 begin, end;
};

inline constexpr u32 burst_ranges = 3;

// How linear memories of a burst lie. Linear: those of each process in one piece. Interleaved:
// those of a warp's processes together, by granules of so many bytes, one of each lane after
// another. A warp's memories then begin at a multiple of interleaved_unit, and addresses have no
// more than so many bits (runtime/platform/interleaved.h).
enum class Layout : u8 { linear, interleaved };
inline constexpr u32 interleaved_granule = 4;
inline constexpr u64 interleaved_unit = 1 << 17;
inline constexpr u32 interleaved_address_bits = 48;

// Stacks of a burst up to this size are in the lanes' local memory on GPUs; deeper ones are
// slower. Processes that need more go on with more.
inline constexpr u32 gang_stack_slots = 8192;
// What a process that has a warp to itself has of its stack in fast memory.
inline constexpr u32 stack_window = 8192;
// Before it in shared memory: what the lanes of the warp have to do (runtime/platform/together.h).
inline constexpr u32 task_board_bytes = 32;

// A process that has outgrown its slot.
struct MovedProcess {
    u32 slot;  // warp * 32 + lane
    u32 id;
};
static_assert(sizeof(MovedProcess) == 8);

// Many processes of one template. Addresses are the device's.
struct BurstPart {
    u64 code;
    u64 words;           // of all slots: a warp's lie together, interleaved by lane
    u64 bytes;           // of all slots in use, by the kernel's layout
    u64 template_words;  // the words of one process, not interleaved
    u64 template_bytes;  // what is not zero is from template_begin to template_size
    u64 arguments;       // argument_words for each process
    u64 results;         // result_stride words for each process
    u64 next;            // u32: first process that no lane has taken
    u64 system;          // system memory, or 0
    u64 lanes_at;        // LaneState for every lane of its warps
    NativeEntries native;
    // Where its processes come from if they have outgrown other slots: words and bytes of those,
    // and MovedProcess for each.
    u64 source_words, source_bytes, moved;
    u64 source_bytes_per_process;
    u64 bytes_per_process;
    u64 template_begin, template_size;
    u32 words_per_process;
    u32 processes;
    u32 first_warp, warps;
    u32 lanes;             // used in each warp
    u32 thread;            // word index
    u32 stack, stack_end;  // word indices: arguments go to the first slot, results are read there
    u32 source_words_per_process, source_lanes, source_stack_end;
    u32 argument_words, result_words, result_stride;
    u32 dirty_shift;  // 32 << dirty_shift is at least bytes_per_process
    u32 is_watched;   // runtime/memory/watch.h
    WordRange ranges[burst_ranges];
};
static_assert(sizeof(BurstPart) == 19 * 8 + 16 * 4 + burst_ranges * 8);

// A lane between two launches: what it has in its slot.
struct LaneState {
    u32 flags;  // lane_*
    u32 id;     // of its process
    u32 block;  // handle of the process's block
    u32 padding;
};
static_assert(sizeof(LaneState) == 16);
inline constexpr u32 lane_has_process = 1, lane_is_asleep = 2, lane_waits_for_host = 4,
                     lane_is_used = 8, lane_has_outgrown = 16,
                     lane_stays = 32;  // there is no larger place for its process

// What the stop word says.
inline constexpr u32 stop_none = 0, stop_end = 1, stop_park = 2;

// What the lanes of a launch did, in cycles of their multiprocessors.
struct BurstCounters {
    u64 busy_lane_cycles;  // of lanes that had a process
    u64 longest_warp;      // from its start to its end
    u64 waiting;           // lanes that wait for the host, or for a larger slot
    u64 busy_lanes;        // that still have a process
};

// One launch that runs all processes of its parts to their end.
struct BurstParams {
    u64 parts;     // BurstPart[]
    u64 stop;      // u32: not zero: end soon
    u64 counters;  // BurstCounters
    u32 part_count;
    u32 spoilt;  // the process whose canary is spoilt, to test the watch; ~0: none
    NativeParams tier;
};
static_assert(sizeof(BurstParams) == 40);

// One thread of one process, run by a warp of its own.
struct SoloParams {
    u64 code, words, bytes;
    u64 system;  // system memory, or 0
    u64 stop;    // u32
    u32 thread;
    u32 steps;       // at most so many instructions; 0: no limit
    u32 is_watched;  // runtime/memory/watch.h
    u32 slice_us;    // leaves after that time; 0: not for that
    NativeEntries native;
    NativeParams tier;
};
static_assert(sizeof(SoloParams) == 80);

// What is left of a process of a burst; its result words follow.
enum ResultWord : u32 {
    result_state,  // ThreadState; ready: it was stopped, or never begun
    result_trap,
    result_pc,
    result_exit,   // ThreadState::exited: the code
    result_block,  // handle of its ProcessBlock, or 0
    result_fuel,   // u64: what was left
    result_first = result_fuel + 2,
};

}  // namespace gpurun
