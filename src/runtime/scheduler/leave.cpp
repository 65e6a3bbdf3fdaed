// What becomes of a task that has left its lane: it ends, blocks, asks the host or is ready again.
#include "runtime/process/host_requests.h"
#include "runtime/scheduler/lane.h"

namespace gpurun::rt {
namespace {

// Keeps where a process of the caller's task was when a fault ended it. The host learns by a record
// which frames led there, and that a child ended so: otherwise only its parent is told. The stack
// has been saved.
[[gnu::noinline]] void note_fault(const Machine& m, const Lane& lane, Ending ending, u32 code) {
    constexpr u32 max_records = 4 * max_fault_frames;  // handlers have some of them
    ProcessEntry& process = process_of(m, lane);
    const u32* words = lane.p.words;
    process.trap_pc = words[lane.thread + thread_pc];
    if (system_of(lane.p).debug_capacity == 0) return;
    const bool is_child = load_relaxed(&process.parent) != host_parent;
    FaultEnding fault{u32(ending), code, process.program, is_child, 1, {process.trap_pc}};
    const u32 first = words[lane.thread + thread_rp], end = words[lane.thread + thread_stack_end];
    for (u32 i = 0, at = first; i < max_records && at < end && fault.frame_count < max_fault_frames;
         i++, at += record_words) {
        const u32 position = words[at + record_pc];
        if (!(position & handler_bit) && position > ret_position)
            fault.positions[fault.frame_count++] = position - 1;
    }
    note_ending(lane.p, process.pid, fault);
}

}  // namespace

bool is_fault(ThreadState state) {
    switch (state) {
        case ThreadState::trapped:
        case ThreadState::uncaught:
        case ThreadState::out_of_fuel: return true;
        default: return false;
    }
}

namespace {

// What the end of a thread means to its task and process.
struct ThreadEnd {
    bool has_ended = false;  // the task is to end
    bool is_alone = false;   // as end_task wants to know it
    bool is_fault = false;   // its own fault ended the process
};

// Ends the process of a thread that has come to an end, if that is for the thread to decide.
// Returns what is left to do for its task.
ThreadEnd claim_thread_end(const Machine& m, const Lane& lane, ThreadState state) {
    const u32* thread = lane.p.words + lane.thread;
    ProcessEntry& process = process_of(m, lane);
    ThreadEnd found{true, false, false};
    auto end = [&](Ending ending, u32 code) {
        if (lane.has_threads) return end_all_tasks(m, process.pid, ending, code);
        return found.is_alone = claim_end(process, process.pid, ending, code);
    };
    auto fail = [&](Ending ending, u32 code) {
        found.is_fault = end(ending, code);
        if (found.is_fault) note_fault(m, lane, ending, code);
    };
    switch (state) {
        case ThreadState::finished:
            if (m.task(lane.task).tid == 0) end(Ending::exited, 0);
            break;
        case ThreadState::exited:
            end(Ending::exited, at_handle<ProcessBlock>(lane.p, lane.p.block)->exit_code);
            break;
        case ThreadState::trapped: fail(Ending::trapped, thread[thread_trap]); break;
        case ThreadState::uncaught: fail(Ending::trapped, 0); break;
        case ThreadState::out_of_fuel: fail(Ending::out_of_fuel, 0); break;
        default: found.has_ended = is_ending(process);
    }
    return found;
}

}  // namespace

bool is_end(ThreadState state) {
    switch (state) {
        case ThreadState::finished:
        case ThreadState::exited:
        case ThreadState::trapped:
        case ThreadState::uncaught:
        case ThreadState::out_of_fuel: return true;
        default: return false;
    }
}

Successor end_park_or_requeue(const Machine& m, const Lane& lane, ThreadState state,
                              bool may_hand_over, EndedTasks& ended) {
    const ThreadEnd end = claim_thread_end(m, lane, state);
    if (end.has_ended) {
        if (!end.is_fault || m.header->shows_faults == 0)
            return end_task(m, lane.task, {end.is_alone, may_hand_over}, ended);
        // The task ends when it comes back, as all whose process has ended.
        call_state(lane.p)->request = Request::show;
        ask_host(m, lane.task);
        return {};
    }
    bool is_parked = false;
    switch (state) {
        case ThreadState::waiting: is_parked = park_at_memory(m, lane); break;
        case ThreadState::sleeping: call_state(lane.p)->request = Request::time; [[fallthrough]];
        case ThreadState::blocked: is_parked = park_in_call(m, lane); break;
        case ThreadState::host: ask_host(m, lane.task); return {};
        default: break;
    }
    if (!is_parked) make_ready(m, lane.task, state == ThreadState::ready);
    return {};
}

[[gnu::noinline]] void end_before_turn(const Machine& m, u32 index, EndedTasks& ended) {
    const TaskEntry& task = m.task(index);
    // A few of many that wait for the same thing are woken, and wake others when they have looked
    // at it: this one never will, and leaves that to others.
    if (task.wake == Wake::woken) wake(m, task.wait_key, woken_at_once);
    end_task(m, index, {}, ended);
}

}  // namespace gpurun::rt
