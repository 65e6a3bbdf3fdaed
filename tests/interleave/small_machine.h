// A resident machine small enough to be explored: tables for a few processes of two programs, a
// heap with room for a pipe, and what the scheduler does for a task that leaves its lane. The
// guests' code is not run: actors make the calls.
#pragma once

#include <cstddef>
#include <cstdio>

#include "runtime/mailbox/mailbox.h"
#include "runtime/process/growth.h"
#include "runtime/process/processes.h"
#include "runtime/scheduler/lane.h"
#include "scenarios.h"

namespace gpurun::test {

using namespace rt;

struct alignas(64) SmallMachine {
    static constexpr u32 entries = 5, word_count = 96;   // number 0 is not used
    static constexpr u32 thread_at = 32, frame_at = 80;  // word indices

    // System memory: offsets count from here.
    SystemHeader system;
    MachineHeader header;
    ProgramEntry programs[2];
    ProcessEntry processes[entries];
    TaskEntry tasks[entries];
    u64 deadlines[entries];
    WaitBucket buckets[wait_buckets];
    alignas(64) u8 heap[(64 << 10) + (6 << 10)];
    // Page memory: slots of the queues in its first page, then a slot a page.
    alignas(64) u8 pages[4 << page_shift];
    // Processes, by the number of their first task.
    u32 words[entries][word_count];
    u8 memory[entries][192];
    u64 heap_before;
    // Of the actor on whose lane a process ends whose parent goes on there; others do not use it.
    bool hands_over;
    Leftovers leftovers;
    u32 went_on;  // the task that did

    // Actors are fibers, and one machine is explored at a time.
    const Machine& machine() {
        static Machine mine(reinterpret_cast<u8*>(this), pages, &header);
        return mine = Machine(reinterpret_cast<u8*>(this), pages, &header,
                              hands_over ? &leftovers : nullptr);
    }
    Process process_of(u32 index) {
        return {nullptr,
                words[index],
                memory[index],
                words[index],
                0,
                63,
                reinterpret_cast<u8*>(this),
                &machine(),
                {},
                tasks[index].process,
                processes[tasks[index].process].block,
                tasks[index].call};
    }
    ProcessBlock* block_of(u32 index) {
        return at_handle<ProcessBlock>(machine().nobody(), processes[index].block);
    }

    void begin(u32 count) {
        system.size = offsetof(SmallMachine, heap) + sizeof heap;
        system.base_end = system.bump = offsetof(SmallMachine, heap);
        system.machine = offsetof(SmallMachine, header);
        system.device_time = 1;
        header.programs = offsetof(SmallMachine, programs);
        header.processes = offsetof(SmallMachine, processes);
        header.tasks = offsetof(SmallMachine, tasks);
        header.deadlines = offsetof(SmallMachine, deadlines);
        header.buckets = offsetof(SmallMachine, buckets);
        header.process_count = header.task_count = entries;
        header.processes_used = header.tasks_used = count;
        header.programs_used = 2;
        for (u32 i = 0; i < 2; i++) {
            programs[i].state = ProgramState::ready;
            programs[i].slot_size = u64{1} << page_shift;
            for (RunQueue& queue : programs[i].queues) {
                queue.mask = 7;
                queue.slots_at = 64 * i;
            }
        }
        for (u32 i = 1; i <= count; i++) begin_process(i);
    }
    // Process i, with task i on a lane; its descriptors are its actor's.
    void begin_process(u32 i) {
        ProcessEntry& process = processes[i];
        // As make_process() does: others may look.
        store_relaxed(reinterpret_cast<u32*>(&process.state), u32(ProcessState::alive));
        store_relaxed(&process.pid, entries + i);
        store_relaxed(&process.ending, u64{process.pid});
        process.program = i == 1 ? 0 : 1;
        process.slot_at = u64(i < 4 ? i : 3) << page_shift;
        store_relaxed(&process.first_task, i + 1);
        store_relaxed(&process.tasks, 1);
        const Process nobody = machine().nobody();
        process.block =
            begin_resident(nobody, {take_block(nobody, sizeof(ProcessBlock)),
                                    take_block(nobody, ResidentBlocks::descriptor_bytes), 0, 0});
        block_of(i)->entry = i;
        fetch_add(&header.alive, 1);
        store_task_state(tasks[i], TaskState::running);
        tasks[i].process = i;
        tasks[i].words_at = process.slot_at;
        store_relaxed(&deadlines[i], no_deadline);
        words[i][process_block] = process.block;
        words[i][process_task] = i;
    }
    void make_child(u32 child, u32 parent) {
        processes[child].parent = processes[parent].pid;
        processes[child].next_sibling = processes[parent].first_child;
        if (processes[parent].first_child != 0)
            processes[processes[parent].first_child - 1].previous_sibling = child + 1;
        processes[parent].first_child = child + 1;
        processes[parent].had_children = 1;
    }

    // ---- what actors do --------------------------------------------------------------

    // What comes behind is the tests' own.
    static const usize watched;

    // A call of task i, until it is done; what it answers. While it blocks the task is off its
    // lane, and comes back by the run queue of its program, which is its actor's alone.
    template <class Make>
    u32 call(u32 i, Make make) {
        for (;;) {
            const Process p = process_of(i);
            Registers r{};
            r.fp = Slots{words[i] + frame_at};
            ProcessBlock* me = block_of(i);
            Call one{p, words[i] + thread_at, r, me, me, {memory[i], sizeof memory[i]}};
            const Outcome outcome = make(one);
            if (outcome == Outcome::next) return words[i][frame_at];
            REQUIRE(outcome == Outcome::leave || outcome == Outcome::chunk);
            if (outcome != Outcome::leave) continue;
            Lane lane;
            lane.has_task = true;
            lane.task = i;
            lane.thread = thread_at;
            lane.p = p;
            leave_and_give_back(lane, ThreadState(words[i][thread_at + thread_state]));
            if (!come_back(i)) return elsewhere;
        }
    }
    static constexpr u32 elsewhere = ~u32{0};
    // False: the task went on elsewhere, or ended.
    bool come_back(u32 i) {
        RunQueue& queue = programs[processes[i].program].queues[0];
        u32 first = 0;
        while (take_tickets(queue, 1, first) == 0) {
            if (load_relaxed(&went_on) == i || load_task_state(tasks[i]) == TaskState::free)
                return false;
            pause();
        }
        const u32 task = fetch_task(queue, machine().queue_slots(queue), first);
        REQUIRE(task == i);
        REQUIRE(load_task_state(tasks[i]) == TaskState::ready);
        store_task_state(tasks[i], TaskState::running);
        words[i][thread_at + thread_state] = u32(ThreadState::ready);
        return true;
    }
    // It has come to its end, with an exit code.
    Successor end(u32 i, u32 code, bool may_hand_over = false) {
        const bool is_alone = claim_end(processes[i], processes[i].pid, Ending::exited, code);
        return end_and_give_back(i, {is_alone, may_hand_over});
    }
    Successor end_and_give_back(u32 i, TaskEnding ending) {
        const Machine m = machine();
        EndedTasks ended;
        const Successor successor = end_task(m, i, ending, ended);
        give_back(m, ended);
        return successor;
    }
    void leave_and_give_back(const Lane& lane, ThreadState state) {
        const Machine m = machine();
        EndedTasks ended;
        end_park_or_requeue(m, lane, state, false, ended);
        give_back(m, ended);
    }

    void nothing_waits() {
        REQUIRE(header.blocked_tasks == 0 && header.sleeping == 0);
        for (const WaitBucket& bucket : buckets) REQUIRE(bucket.lock == 0 && bucket.count == 0);
    }
};

inline const usize SmallMachine::watched = offsetof(SmallMachine, heap_before);

}  // namespace gpurun::test
