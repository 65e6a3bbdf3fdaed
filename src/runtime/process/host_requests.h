// What tasks of a machine want of the host: blocks of cold files, files to be written through, and
// a look at their process, which a fault has ended.
//
// A task that wants one is off its lane and in the queue `host_requests`. The mailbox warp takes it
// from there, blocks it, and sends what it wants; when the answer comes it takes the task out of
// its bucket. So it owns a task whenever it looks at it or writes there, and of one that is ended
// in between it has nothing but the number, which is asked about under the bucket's lock. A task
// that shows its process stays until the answer comes: its end is decided, and its memory is looked
// at.
#pragma once

#include "runtime/machine/tasks.h"
#include "runtime/process/processes.h"

namespace gpurun::rt {

// Returns what the host is asked for: it knows the nodes of the base, not a process's copy of one.
inline BlockRequest request_of(const Machine& m, u32 index) {
    const Process p = place_of(m, index);
    const CallState* call = call_state(p);
    const Handle node = call->request_node;
    if (call->request == Request::show) return {index, 0, whole_process};
    if (call->request == Request::sync) return {index, node, whole_file};
    return {index, is_base(p, node) ? node : node_at(p, node)->origin, call->request_at};
}

inline u64 host_key(const BlockRequest& wanted) {
    return wait_key(wanted.block == whole_process ? WaitFor::show : WaitFor::host, wanted.task);
}

// Puts a task of the caller's into the queue of those that want something of the host.
inline void ask_host(const Machine& m, u32 index) {
    RunQueue& requests = m.header->host_requests;
    push_task(requests, m.queue_slots(requests), index);
}

// Takes the next request, of a task that is blocked from now on. Returns false if there is none.
inline bool take_request(const Machine& m, BlockRequest& wanted) {
    RunQueue& requests = m.header->host_requests;
    for (u32 ticket; take_tickets(requests, 1, ticket) != 0;) {
        const u32 index = fetch_task(requests, m.queue_slots(requests), ticket);
        wanted = request_of(m, index);
        const ProcessEntry& process = m.process(m.task(index).process);
        if (park(m, index, host_key(wanted), no_deadline,
                 [&] { return wanted.block == whole_process || !is_ending(process); }))
            return true;
        make_ready(m, index);
    }
    return false;
}

// Makes the task that an answer is for the caller's. Returns false if it does not wait for that any
// more.
inline bool take_asker(const Machine& m, const BlockAnswer& answer) {
    return take_blocked(m, answer.task, Wake::woken, [&] {
        if (m.task(answer.task).wait_key != host_key({answer.task, answer.node, answer.block}))
            return false;
        const BlockRequest wanted = request_of(m, answer.task);
        return wanted.node == answer.node && wanted.block == answer.block;
    });
}

}  // namespace gpurun::rt
