// Puts a task that waits into its bucket, if what it waits for has not come meanwhile.
#include "runtime/scheduler/lane.h"

namespace gpurun::rt {

[[gnu::noinline]] bool park_at_memory(const Machine& m, const Lane& lane) {
    u32* thread = lane.p.words + lane.thread;
    const u32 index = lane.p.entry;
    const ProcessEntry& process = m.process(index);
    const u64 address = get<u64>(thread, thread_wait_address),
              value = get<u64>(thread, thread_wait_value);
    const u64 deadline = get<u64>(thread, thread_wait_until);
    const bool is_wide = thread[thread_wait_width] == 8;
    // Off its lane: the memory may have moved since, for another of its threads. Ends: it moves
    // only when it grows.
    auto value_now = [&] {
        for (const u64* base = &process.bytes_at;;) {
            const u64 before = load_shared(base);
            const u8* at = m.pages + before + address;
            const u64 now_there = is_wide ? atomic_load<u64>(at) : atomic_load<u32>(at);
            if (load_relaxed(base) == before) return now_there;
        }
    };
    bool is_same = true;
    const bool is_parked =
        park(m, lane.task, wait_key(WaitFor::memory, index, address), deadline, [&] {
            is_same = value_now() == (is_wide ? value : u32(value));
            return is_same && !is_ending(process);
        });
    if (is_parked) return true;
    lane.p.words[thread[thread_wait_result]] = wait_not_equal;
    thread[thread_state] = u32(ThreadState::ready);
    return false;
}

namespace {

bool is_alive(const Machine& m, u32 pid) {
    const ProcessEntry& process = m.process(pid_index(m, pid));
    return load_relaxed(&process.pid) == pid &&
           load_shared(reinterpret_cast<const u32*>(&process.state)) == u32(ProcessState::alive);
}

// Returns true if another thread has closed a pipe since: the one that is waited for may be gone.
bool may_be_closed(const Process& p, const CallState& call, const ProcessEntry& process) {
    return call.seen_closes != load_relaxed(&at_handle<ProcessBlock>(p, process.block)->closes);
}

// Returns true if a call that blocked has still to wait.
bool still_waits(const Machine& m, const Process& p, const CallState& call, u64 deadline,
                 u32 process_index) {
    const ProcessEntry& process = m.process(process_index);
    if (is_ending(process)) return false;
    if (deadline != no_deadline && wait_clock(p) >= deadline) return false;
    switch (call.request) {
        case Request::pipe_data: {
            if (may_be_closed(p, call, process)) return false;
            const PipeBlock* pipe = pipe_of(p, node_at(p, call.request_node));
            return load_relaxed(&pipe->written) == load_relaxed(&pipe->read) &&
                   has_writers(load_relaxed(&pipe->ends));
        }
        case Request::pipe_room: {
            if (may_be_closed(p, call, process)) return false;
            const PipeBlock* pipe = pipe_of(p, node_at(p, call.request_node));
            return pipe_bytes - (load_relaxed(&pipe->written) - load_relaxed(&pipe->read)) <
                       call.request_at &&
                   has_readers(load_relaxed(&pipe->ends));
        }
        case Request::pipes:
            return call.request_at == poll_turn_of(m, p.words[process_task]) &&
                   !may_be_closed(p, call, process);
        case Request::child:
            if (call.request_at == 0)
                return load_relaxed(&process.first_zombie) == 0 &&
                       load_relaxed(&process.first_child) != 0;
            return is_alive(m, u32(call.request_at));
        default: return true;
    }
}

u64 key_of(const CallState& call, u32 task, u32 process) {
    switch (call.request) {
        case Request::pipe_data: return wait_key(WaitFor::pipe_data, call.request_node);
        case Request::pipe_room: return wait_key(WaitFor::pipe_room, call.request_node);
        case Request::pipes: return pipes_key();
        case Request::child: return wait_key(WaitFor::child, process, call.request_at);
        default: return wait_key(WaitFor::time, task);
    }
}

}  // namespace

bool park_in_call(const Machine& m, const Lane& lane) {
    CallState* call = call_state(lane.p);
    const u32 process = lane.p.entry;
    const u64 key = key_of(*call, lane.task, process);
    const u64 deadline = get<u64>(lane.p.words, lane.thread + thread_wait_until);
    if (park(m, lane.task, key, deadline,
             [&] { return still_waits(m, lane.p, *call, deadline, process); }))
        return true;
    lane.p.words[lane.thread + thread_state] = u32(ThreadState::ready);
    return false;
}

}  // namespace gpurun::rt
