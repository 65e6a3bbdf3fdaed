// A task on a lane: how it comes there, how it leaves, and what becomes of it then.
#pragma once

#include "runtime/machine/tasks.h"
#include "runtime/process/processes.h"

namespace gpurun::rt {

// What a lane has. Without a task, nothing.
struct Lane {
    bool has_task = false;
    bool has_threads = false;  // its process may have others
    u32 task = 0;
    u32 thread = 0;  // word index
    u64 since = 0;   // when it came
    Process p = {};
};

inline ProcessEntry& process_of(const Machine& m, const Lane& lane) {
    return m.process(lane.p.entry);
}

// ---- coming (lane.cpp, prepare.cpp) ------------------------------------------------

// Makes the words and memories of a new process what its program begins with. All lanes work on it
// together.
void prepare_task(const Machine& m, const ProgramEntry& program, Pulse& pulse, u32 index);
// Counts a task whose process may have others among those on lanes. Returns false if the process is
// being moved; the task then waits for the move.
bool enter_lane(const Machine& m, u32 index);
// Answers what a memory.atomic.wait or a blocked call left when its task comes back.
void answer_wait(const Machine& m, const Lane& lane);

// Stacks are copied by steps of so many slots.
struct alignas(4 * stack_step) StackStep {
    StackWord slots[stack_step];
};
// Copies the stack of a task into the lane's own memory, `own`, if it fits there.
void load_stack(const Machine& m, Lane& lane, const ProgramInfo& info, StackWord* own);

// ---- going (lane.cpp, leave.cpp) ---------------------------------------------------

// Copies the stack back to the task's words if it is in the lane's own memory.
void save_stack(const Machine& m, Lane& lane, const ProgramInfo& info);
// Counts a task off the lanes. Returns the task (index + 1) whose memory is to grow now that no
// other of its process runs, or 0.
u32 leave_lane(const Machine& m, const Lane& lane);
// Returns true for the states of a thread whose own fault ended it.
bool is_fault(ThreadState state);
// Returns true for the states of a thread that does not run again. Its stack is looked at only if a
// fault ended it.
bool is_end(ThreadState state);
// Ends, blocks or makes ready a task that is off its lane, by the state that it left. Returns who
// goes on in its place if it ended and `may_hand_over`. Outgrown ones are seen to by grow_task.
Successor end_park_or_requeue(const Machine& m, const Lane& lane, ThreadState state,
                              bool may_hand_over, EndedTasks& ended);
// Ends a task whose process ended before its turn came.
[[gnu::noinline]] void end_before_turn(const Machine& m, u32 index, EndedTasks& ended);

// ---- blocking (block.cpp) ----------------------------------------------------------

// Blocks a task in memory.atomic.wait. Returns false if the value has changed since: it goes on.
[[gnu::noinline]] bool park_at_memory(const Machine& m, const Lane& lane);
// Blocks a task in a system call. Returns false if what it waits for has come: it goes on.
bool park_in_call(const Machine& m, const Lane& lane);

}  // namespace gpurun::rt
