// How a process ends, and who learns of it.
//
// Somebody decides on the end: its own thread, or whoever kills it (claim_end, end_all_tasks). Then
// its tasks leave wherever they are, and each ends off its lane (end_task). The last one ends the
// process (finish_process): descriptors are closed, children left, what it had is given back, and
// its parent gets to know (notify_parent):
//
//   a parent that waits   has the end at once, and goes on: on this lane as the successor, or by
//   its
//                         queue
//   another parent        finds a zombie, when it waits (find_ended of process_calls.cpp), and
//   reaps the host              takes the zombie from its list; the mailbox warp reaps nobody the
//   entry is free at once
#include "runtime/process/parts.h"

namespace gpurun::rt {
namespace {

// One process less. True: it was the last.
bool count_out(const Machine& m) {
    fetch_add(&m.header->ended, u64{1});
    release_fence();  // what it wrote is there for whoever sees that nobody is left
    return fetch_add(&m.header->alive, ~u32{0}) == 1;
}

}  // namespace

[[gnu::noinline]] void give_back(const Machine& m, const Belongings& had) {
    if (had.bytes_size != 0)
        PageAllocator(m).give(had.bytes_at >> page_shift, page_count(had.bytes_size));
    give_slot(m, m.program(had.program), had.slot_at >> page_shift, had.is_raw);
    end_resident(m.nobody(), had.block);
}

void reap(const Machine& m, u32 index) {
    store_relaxed(reinterpret_cast<u32*>(&m.process(index).state), u32(ProcessState::free));
    if (Leftovers* left = m.leftovers; left != nullptr && left->task != 0 && left->entry == 0)
        left->entry = index + 1;
    else
        give_process_entry(m, index);
}

bool claim_end(ProcessEntry& process, u32 pid, Ending ending, u32 code) {
    const u64 mine = (u64(ending) + 1) << 32 | code;
    return compare_exchange_relaxed(&process.ending, u64{pid}, mine) == pid;
}

[[gnu::noinline]] bool end_all_tasks(const Machine& m, u32 pid, Ending ending, u32 code) {
    const u32 index = pid_index(m, pid);
    ProcessEntry& process = m.process(index);
    if (!claim_end(process, pid, ending, code)) return false;
    // Tasks on lanes or in queues see it there. By now the entry may be another's, and the task;
    // one that shows its process to the host waits for the host alone.
    Lock lock(&process.lock);
    for (u32 at = load_relaxed(&process.first_task); at != 0;
         at = load_relaxed(&m.task(at - 1).next_of_process))
        unblock(m, at - 1, Wake::ended, [&] {
            const TaskEntry& task = m.task(at - 1);
            return task.process == index && is_ending(process) &&
                   task.wait_key != wait_key(WaitFor::show, at - 1);
        });
    return true;
}

namespace {

// Whose parent does not wait for it any more goes when it ends.
[[gnu::noinline]] void leave_children(const Machine& m, ProcessEntry& process) {
    u32 zombies;
    {
        Lock lock(&process.lock);
        for (u32 at = process.first_child, next; at != 0; at = next) {
            // From then on it can end, and its entry be another's.
            next = m.process(at - 1).next_sibling;
            store_shared(&m.process(at - 1).parent, u32{0});  // pairs with notify_parent's
        }
        zombies = process.first_zombie;
        process.first_child = process.first_zombie = 0;
    }
    while (zombies != 0) {
        const u32 next = m.process(zombies - 1).next_sibling;
        reap(m, zombies - 1);
        zombies = next;
    }
}

// ProcessEntry::next_free of one that has just come into the list of the host's zombies.
constexpr u32 next_is_unknown = ~u32{0};

// Puts a process into the list of those whose end the host is to know. Nobody tries again, however
// many end at once: what comes after it is written when it is in the list.
void notify_host(const Machine& m, u32 index) {
    u32* next = &m.process(index).next_free;
    store_relaxed(next, next_is_unknown);
    const u32 head = exchange(&m.header->host_zombies, index + 1);  // pairs with take_host_zombies'
    store_relaxed(next, head);
}

// Lets a parent of one thread that waits for any child, or by `key` for that one, have its end at
// once, in place of a zombie. Returns the task that waited, index + 1, which is the caller's; or 0
// if it does not wait. The parent's lock is the caller's.
u32 answer_waiting_parent(const Machine& m, u32 parent_index, u64 any, u64 key,
                          const ProcessEntry& child) {
    const ProcessEntry& parent = m.process(parent_index);
    const u32 taken = take_first_waiting(m, parent_index, any, key);
    if (taken == 0) return 0;
    const Handle own = m.task(taken - 1).call;
    CallState* call = at_handle<CallState>(m.nobody(), own != 0 ? own : parent.block);
    call->request_at = child.pid;
    call->progress = load_relaxed(&child.ending);
    return taken;
}

// What the parent of a process that ended made of it.
struct Notified {
    bool is_free = false;  // nobody will wait for the process: its entry can be used again
    Successor successor;   // a task of the parent that waited for it
};

// Lets the parent of a process know that it has ended: one that waits goes on, for others it is a
// zombie from now on. Ends: a parent that ended since has left its children by then.
Notified notify_parent(const Machine& m, u32 index, bool may_hand_over) {
    ProcessEntry& process = m.process(index);
    for (;;) {
        const u32 pid = load_relaxed(&process.parent);
        if (pid == 0) {
            load_shared(&process.parent);  // pairs with leave_children's: it is done with the entry
            return {true, {}};
        }
        if (pid == host_parent) {
            notify_host(m, index);
            return {};
        }
        const u32 parent_index = pid_index(m, pid);
        ProcessEntry& parent = m.process(parent_index);
        const u64 any = wait_key(WaitFor::child, parent_index),
                  key = wait_key(WaitFor::child, parent_index, process.pid);
        const WaitBucket& bucket = m.bucket(bucket_of(any));
        Successor successor;
        // The first that waited goes on here if it may, the others by way of their queue.
        auto resume = [&](u32 task) {
            if (!may_hand_over || successor.task != 0) return make_ready(m, parent, task);
            successor = {task + 1, parent.program};
        };
        lock(&parent.lock);
        // All of it is on its way at the same time.
        const u32 now = load_relaxed(&process.parent), tasks = load_relaxed(&parent.tasks),
                  waiting = load_relaxed(&bucket.count), next = process.next_sibling,
                  previous = process.previous_sibling;
        const bool is_still = now == pid;
        if (is_still) {
            if (next != 0) m.process(next - 1).previous_sibling = previous;
            if (previous != 0)
                m.process(previous - 1).next_sibling = next;
            else
                store_relaxed(&parent.first_child, next);
        }
        if (is_still && tasks == 1 && waiting != 0) {
            if (const u32 task = answer_waiting_parent(m, parent_index, any, key, process)) {
                resume(task - 1);
                store_shared(&parent.lock, u32{0});
                return {true, successor};
            }
        }
        if (is_still) {
            link_child(m, parent.first_zombie, index);
            // Who sees it without the lock looks again with it.
            store_relaxed(reinterpret_cast<u32*>(&process.state), u32(ProcessState::zombie));
        }
        atomic_fence();  // for who takes the lock; and pairs with park's
        store_released(&parent.lock, u32{0});
        if (!is_still) continue;
        take_waiting(m, any, ~u32{0}, key, resume);
        return {false, successor};
    }
}

// Ends a process of which nothing runs any more: gives back what it had, and lets its parent know.
// Returns the task that goes on in its place, if one may and does.
[[gnu::always_inline]] Successor finish_process(const Machine& m, u32 index, bool may_hand_over,
                                                EndedTasks& tasks) {
    ProcessEntry& process = m.process(index);
    const Belongings had(process);
    if (at_handle<ProcessBlock>(m.nobody(), had.block)->descriptor_count != 0)
        close_descriptors(m.nobody(), had.block);
    process.ended = clock_ns();
    // Under another's hands it is only if it has children, and it gets no more.
    if (process.had_children) leave_children(m, process);
    // A parent gets to know at once: what it starts next waits for what this one had, if need be.
    // The host gets to know when all but its task is given back.
    const u32 parent = load_relaxed(&process.parent);
    const bool has_parent = parent != host_parent && parent != 0;
    fetch_add(&m.header->leaving, u32{1});
    tasks.leaving++;
    Notified notified;
    if (has_parent) {
        // Whoever has its lock then sees that it is leaving.
        notified = notify_parent(m, index, may_hand_over);
        if (notified.successor.task != 0) {
            m.leftovers->had = had;
            m.leftovers->task = tasks.first;  // the only one
            tasks = {};
            if (notified.is_free) reap(m, index);
            return notified.successor;
        }
    }
    give_back(m, had);
    const bool is_last = count_out(m);
    if (!has_parent) notified = notify_parent(m, index, false);
    if (notified.is_free) reap(m, index);
    if (is_last) fetch_add(&m.header->idle_turns, u32{1});
    return {};
}

}  // namespace

u32 take_host_zombies(const Machine& m) {
    u32* list = &m.header->host_zombies;
    return load_relaxed(list) == 0 ? 0 : exchange(list, u32{0});  // pairs with notify_host's
}

u32 next_host_zombie(const Machine& m, u32 index) {
    // Ends: who put it there has only to write what comes after it.
    for (;;) {
        const u32 next = load_relaxed(&m.process(index).next_free);
        if (next != next_is_unknown) return next;
        pause();
    }
}

void give_back(const Machine& m, const EndedTasks& ended) {
    if (ended.first == 0) return;
    push_chain(&m.header->free_tasks, ended.first, ended.last,
               [&](u32 i) { return &m.task(i - 1).next_free; });
    if (ended.leaving == 0) return;
    release_fence();  // what they had is there for whoever sees that they have left
    fetch_add(&m.header->leaving, u32{0} - ended.leaving);
}

void give_back_leftovers(const Machine& m) {
    Leftovers& left = *m.leftovers;
    if (left.task == 0) return;
    give_back(m, left.had);
    if (count_out(m)) fetch_add(&m.header->idle_turns, u32{1});
    if (left.entry != 0) give_process_entry(m, left.entry - 1);
    give_back(m, EndedTasks{left.task, left.task, 1});
    left.task = left.entry = 0;
}

[[gnu::always_inline]] Successor end_task(const Machine& m, u32 index, TaskEnding ending,
                                          EndedTasks& ended) {
    TaskEntry& task = m.task(index);
    const u32 process_index = task.process;
    ProcessEntry& process = m.process(process_index);
    if (task.call != 0) give_block(m.nobody(), task.call, sizeof(CallState));
    if (task.words_pages != 0) PageAllocator(m).give(task.words_at >> page_shift, task.words_pages);
    bool is_last = true;
    if (!ending.is_alone) {
        Lock lock(&process.lock);
        unlink_task(m, index);
        is_last = process.tasks == 0;
    }
    store_task_state(task, TaskState::free);
    store_relaxed(&task.next_free, ended.first);
    ended.first = index + 1;
    if (ended.last == 0) ended.last = index + 1;
    return is_last ? finish_process(m, process_index, ending.may_hand_over, ended) : Successor{};
}

bool is_deadly(u32 signal) {
    constexpr u32 sigchld = 16, sigcont = 17, sigurg = 22, sigwinch = 27;
    return signal != 0 && signal != sigchld && signal != sigcont && signal != sigurg &&
           signal != sigwinch;
}

}  // namespace gpurun::rt
