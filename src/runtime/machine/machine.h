// The resident machine as the runtime sees it: its tables, and how tasks become ready.
#pragma once

#include "abi/machine.h"
#include "runtime/machine/queue.h"
#include "runtime/memory/arena.h"
#include "runtime/memory/lock.h"

namespace gpurun::rt {

struct Machine {
    u8* system;
    u8* pages;
    MachineHeader* header;
    // What the header says where they are; a warp keeps its own copy, which is always at hand.
    ProgramEntry* programs;
    ProcessEntry* processes;
    TaskEntry* tasks;
    u64* deadlines;
    WaitBucket* buckets;
    struct Leftovers* leftovers;  // the lane's own (process/processes.h), or null

    Machine(u8* of, u8* page_memory, MachineHeader* from, Leftovers* of_lane = nullptr)
        : system(of),
          pages(page_memory),
          header(from),
          programs(table<ProgramEntry>(from->programs)),
          processes(table<ProcessEntry>(from->processes)),
          tasks(table<TaskEntry>(from->tasks)),
          deadlines(table<u64>(from->deadlines)),
          buckets(table<WaitBucket>(from->buckets)),
          leftovers(of_lane) {}

    template <class T>
    T* table(u64 offset) const {
        return reinterpret_cast<T*>(system + offset);
    }
    ProgramEntry& program(u32 i) const { return programs[i]; }
    ProcessEntry& process(u32 i) const { return processes[i]; }
    TaskEntry& task(u32 i) const { return tasks[i]; }
    u64& deadline(u32 task) const { return deadlines[task]; }
    WaitBucket& bucket(u32 i) const { return buckets[i]; }
    WarpEntry& warp(u32 i) const { return table<WarpEntry>(header->warps)[i]; }
    HostStream& host_stream(u32 i) const { return table<HostStream>(header->host_streams)[i]; }
    u64* queue_slots(const RunQueue& queue) const {
        return reinterpret_cast<u64*>(pages + load_relaxed(&queue.slots_at));
    }
    // For what needs a process but is nobody's.
    Process nobody() const {
        return {nullptr, header->no_words, nullptr, nullptr, 0, 0, system, this};
    }
};

inline bool has_machine(const Process& p) { return may_be_resident && p.machine != nullptr; }
inline const Machine& machine_of(const Process& p) { return *in_stack(p.machine); }

// Whoever acts on a state looks at it under a lock, or owns the task. The state of a blocked task
// and the number of its bucket are one word, so that nobody sees a new one with an old other.
inline constexpr u32 task_state_bits = 8;
inline u32 load_task_word(const TaskEntry& task) {
    return load_relaxed(reinterpret_cast<const u32*>(&task.state));
}
inline TaskState task_state_of(u32 word) {
    return TaskState(word & ((u32{1} << task_state_bits) - 1));
}
inline TaskState load_task_state(const TaskEntry& task) {
    return task_state_of(load_task_word(task));
}
inline void store_task_state(TaskEntry& task, TaskState state, u32 bucket = 0) {
    store_relaxed(reinterpret_cast<u32*>(&task.state), u32(state) | bucket << task_state_bits);
}

// The queue of ready tasks of a process.
inline RunQueue& queue_of(const Machine& m, const ProcessEntry& process, bool used_slice = false) {
    const u32 priority = load_relaxed(&process.priority);
    return m.program(process.program).queues[queue_level(priority, used_slice)];
}
// Puts a task of that process, which the caller owns, where a warp finds it.
inline void make_ready(const Machine& m, const ProcessEntry& process, u32 index,
                       bool used_slice = false) {
    store_task_state(m.task(index), TaskState::ready);
    RunQueue& queue = queue_of(m, process, used_slice);
    push_task(queue, m.queue_slots(queue), index);
}
inline void make_ready(const Machine& m, u32 index, bool used_slice = false) {
    make_ready(m, m.process(m.task(index).process), index, used_slice);
}

// ---- entries of tables -------------------------------------------------------------

// A list of free entries, tag << 32 | index + 1, linked by `next_of`; entries that never were in
// use come after it. 0: there are no more.
template <class NextOf>
inline u32 take_entry(u64* list, u32* used, u32 count, NextOf next_of) {
    if (const u32 item = pop(list, [&](u32 i) { return next_of(i - 1); }); item != 0)
        return item - 1;
    // Ends: a failed exchange means that another's succeeded.
    u32 next = load_relaxed(used);
    for (u32 turn = 0; next + 1 < count; turn++) {
        const u32 found = compare_exchange_relaxed(used, next, next + 1);
        if (found == next) return next + 1;
        next = look_again(used, found, turn);
    }
    return 0;
}
template <class NextOf>
inline void give_entry(u64* list, u32 index, NextOf next_of) {
    push(list, index + 1, [&](u32 i) { return next_of(i - 1); });
}

inline u32 take_process_entry(const Machine& m) {
    return take_entry(&m.header->free_processes, &m.header->processes_used, m.header->process_count,
                      [&](u32 i) { return &m.process(i).next_free; });
}
inline void give_process_entry(const Machine& m, u32 index) {
    give_entry(&m.header->free_processes, index, [&](u32 i) { return &m.process(i).next_free; });
}
inline u32 take_task_entry(const Machine& m) {
    return take_entry(&m.header->free_tasks, &m.header->tasks_used, m.header->task_count,
                      [&](u32 i) { return &m.task(i).next_free; });
}
inline void give_task_entry(const Machine& m, u32 index) {
    give_entry(&m.header->free_tasks, index, [&](u32 i) { return &m.task(i).next_free; });
}

// A pid is an entry's index, and how often that was in use, so that an old one names nobody.
inline u32 pid_index(const Machine& m, u32 pid) { return pid % m.header->process_count; }
inline u32 next_pid(const Machine& m, u32 pid, u32 index) {
    constexpr u32 most = 0x7fffffff;
    const u32 count = m.header->process_count, next = (pid == 0 ? index : pid) + count;
    return next > most - count ? index : next;
}

}  // namespace gpurun::rt
