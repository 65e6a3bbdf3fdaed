// How a task comes to a lane and goes from it: its stack, and what its process counts.
#include "runtime/scheduler/lane.h"

namespace gpurun::rt {
namespace {

u32 whole_steps(u32 slots) { return (slots + stack_step - 1) / stack_step * stack_step; }

// Copies whole steps, several of which are on their way at the same time.
void copy_slots(StackWord* to, const StackWord* from, u32 count) {
    constexpr u32 batch = 4;
    auto* step_to = reinterpret_cast<StackStep*>(to);
    auto* step_from = reinterpret_cast<const StackStep*>(from);
    const u32 steps = count / stack_step;
    u32 done = 0;
#pragma clang loop unroll(disable)
    for (; done + batch <= steps; done += batch) {
        StackStep values[batch];
#pragma clang loop unroll(full)
        for (u32 i = 0; i < batch; i++) values[i] = step_from[done + i];
#pragma clang loop unroll(full)
        for (u32 i = 0; i < batch; i++) step_to[done + i] = values[i];
    }
#pragma clang loop unroll(disable)
    for (; done < steps; done++) step_to[done] = step_from[done];
}

// Returns how far the newest frame reaches at the most. In a system call it is that of the function
// that stands for the call, whose `enter` says so.
u32 frame_slots(const Lane& lane, const ProgramInfo& info) {
    const u64* at = lane.p.code + lane.p.words[lane.thread + thread_pc];
    if (op_of(at[0]) == u32(CodeOp::system) && op_of(at[-1]) == u32(CodeOp::enter))
        return c_of(at[-1]);
    return info.most_frame_slots;
}

// Calls `copy` for the two pieces of a stack that are in use, `frames` slots from its start on and
// its records, both in whole steps: with the first word of a piece, the slot that it is, and how
// many there are.
template <class Copy>
void for_used_slots(const Lane& lane, const ProgramInfo& info, u32 frames, Copy copy) {
    const u32 records = lane.p.words[lane.thread + thread_rp] / stack_step * stack_step;
    u32* words = in_device(lane.p.words);
    copy(words + info.stack, 0, frames);
    copy(words + records, records - info.stack, info.stack_end - records);
}

}  // namespace

void load_stack(const Machine& m, Lane& lane, const ProgramInfo& info, StackWord* own) {
    const TaskEntry& task = m.task(lane.task);
    if (lane_stack_slots == 0 || task.stack_slots > lane_stack_slots) return;
    for_used_slots(lane, info, task.frames,
                   [&](u32* words, u32 slot, u32 count) { copy_slots(own + slot, words, count); });
    lane.p.stack = own;
    lane.p.stack_begin = info.stack;
}

void save_stack(const Machine& m, Lane& lane, const ProgramInfo& info) {
    if (lane.p.stack == lane.p.words) return;
    const StackWord* own = lane.p.stack;
    const u32* thread = lane.p.words + lane.thread;
    // Frames are in use up to where the newest may end.
    const u32 top = thread[thread_fp] + frame_slots(lane, info), records = thread[thread_rp],
              frames = whole_steps((top < records ? top : records) - info.stack);
    m.task(lane.task).frames = frames;
    for_used_slots(lane, info, frames,
                   [&](u32* words, u32 slot, u32 count) { copy_slots(words, own + slot, count); });
    lane.p.stack = lane.p.words;
    lane.p.stack_begin = 0;
}

bool enter_lane(const Machine& m, u32 index) {
    TaskEntry& task = m.task(index);
    ProcessEntry& process = m.process(task.process);
    Lock lock(&process.lock);
    if (process.quiet) {
        task.next_waiting = process.waits_for_move;
        process.waits_for_move = index + 1;
        return false;
    }
    process.on_lanes++;
    return true;
}

u32 leave_lane(const Machine& m, const Lane& lane) {
    if (!lane.has_threads) return 0;
    ProcessEntry& process = process_of(m, lane);
    Lock lock(&process.lock);
    process.on_lanes--;
    return process.on_lanes == 0 ? process.quiet : 0;
}

void answer_wait(const Machine& m, const Lane& lane) {
    u32* thread = lane.p.words + lane.thread;
    const ThreadState state = ThreadState(thread[thread_state]);
    if (state == ThreadState::waiting)
        lane.p.words[thread[thread_wait_result]] =
            m.task(lane.task).wake == Wake::timed_out ? wait_timed_out : wait_woken;
    thread[thread_state] = u32(ThreadState::ready);
}

}  // namespace gpurun::rt
