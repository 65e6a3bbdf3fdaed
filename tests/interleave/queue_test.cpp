// The run queue and the lists of free entries: whoever puts in and takes out at the same time, no
// task is lost and none is had by two.
#include <cstddef>

#include "runtime/machine/machine.h"
#include "scenarios.h"

namespace gpurun::test {
namespace {

using namespace rt;

constexpr u32 queue_slots = 4, most_tasks = 3;  // one more slot than tasks

struct Queued {
    RunQueue queue;
    u64 slots[queue_slots];
    u32 content[most_tasks];  // of a task: only whoever has it touches it
    u32 is_had[most_tasks];
    u32 touches;

    void touch(u32 task) {
        content[task]++;
        touches++;
    }
    void had(u32 task) {
        REQUIRE(task < most_tasks);
        REQUIRE(is_had[task] == 0);
        is_had[task] = 1;
        touch(task);
    }
    void put(u32 task) {
        touch(task);
        is_had[task] = 0;
        push_task(queue, slots, task);
    }
    // How many it got.
    u32 visit(u32 most) {
        u32 first = 0, tasks[most_tasks] = {};
        const u32 count = take_tickets(queue, most, first);
        REQUIRE(count <= most);
        for (u32 i = 0; i < count; i++) had(tasks[i] = fetch_task(queue, slots, first + i));
        for (u32 i = 0; i < count; i++) put(tasks[i]);
        return count;
    }
};

// A queue that has been in use: tickets are about to begin again at 0.
template <u32 tasks>
void begin_queue(Queued& s) {
    s.queue.mask = queue_slots - 1;
    s.queue.head = s.queue.tail = ~u32{0} - 1;
    for (u32 i = 0; i < queue_slots; i++)
        s.slots[i] = u64(round_of(s.queue, s.queue.tail + (i < 2 ? queue_slots : 0))) << 32;
    for (u32 i = 0; i < tasks; i++) push_task(s.queue, s.slots, i);
}
template <u32 tasks>
void all_are_queued(Queued& s) {
    REQUIRE(s.queue.tail - s.queue.head == tasks);
    REQUIRE(queue_length(s.queue) == tasks);
    u32 found = 0;
    for (u64 slot : s.slots) found += slot >> 32 & 1;
    REQUIRE(found == tasks);
    u32 first = 0, sum = 0;
    REQUIRE(take_tickets(s.queue, most_tasks, first) == tasks);
    for (u32 i = 0; i < tasks; i++) {
        const u32 task = fetch_task(s.queue, s.slots, first + i);
        s.had(task);
        sum += s.content[task];
    }
    REQUIRE(sum == s.touches);
}
template <u32 most, u32 times>
void work(Queued& s) {
    for (u32 i = 0; i < times; i++) s.visit(most);
}
template <u32 task>
void bring(Queued& s) {
    s.put(task);
}
template <u32 tasks>
void take_all(Queued& s) {
    for (u32 done = 0; done < tasks;) {
        const u32 count = s.visit(1);
        done += count;
        if (count == 0) pause();
    }
}

EXPLORING_TEST(RunQueue, TwoWorkersTakeAndPutBack) {
    ExploreOptions options;
    options.stops_after_writes = true;
    check("2 workers, 2 tasks, 2 turns",
          Scenario<Queued>{.begin = begin_queue<2>,
                           .actors = {work<1, 2>, work<2, 2>},
                           .at_end = all_are_queued<2>,
                           .watched = offsetof(Queued, is_had)},
          options);
}
EXPLORING_TEST(RunQueue, RoundsFollowEachOther) {
    check("2 workers, 3 tasks, 3 turns: more tickets than slots",
          Scenario<Queued>{.begin = begin_queue<3>,
                           .actors = {work<1, 3>, work<2, 3>},
                           .at_end = all_are_queued<3>,
                           .watched = offsetof(Queued, is_had)});
}
EXPLORING_TEST(RunQueue, ThreeWorkers) {
    check("3 workers, 2 tasks", Scenario<Queued>{.begin = begin_queue<2>,
                                                 .actors = {work<1, 1>, work<2, 1>, work<3, 1>},
                                                 .at_end = all_are_queued<2>,
                                                 .watched = offsetof(Queued, is_had)});
}
// One is kept from filling the slot of its ticket, another from emptying it, while a third goes
// round.
EXPLORING_TEST(RunQueue, NobodyIsLapped) {
    check("3 workers, one of them quick, interrupted 4 times",
          Scenario<Queued>{.begin = begin_queue<2>,
                           .actors = {work<1, 1>, work<1, 1>, work<1, 5>},
                           .at_end = all_are_queued<2>,
                           .watched = offsetof(Queued, is_had)},
          interrupted(4), {.preemptions = 1});
}
EXPLORING_TEST(RunQueue, TwoBringAndTwoTake) {
    check("2 bring a task, 2 take one",
          Scenario<Queued>{.begin = begin_queue<0>,
                           .actors = {bring<0>, bring<1>, take_all<1>, take_all<1>},
                           .at_end = all_are_queued<2>,
                           .watched = offsetof(Queued, is_had)});
}
EXPLORING_TEST(RunQueue, WaitsForWhatIsBrought) {
    check("2 bring a task, 1 takes 3 times",
          Scenario<Queued>{.begin = begin_queue<1>,
                           .actors = {bring<1>, bring<2>, take_all<3>},
                           .at_end = all_are_queued<3>,
                           .watched = offsetof(Queued, is_had)});
}
EXPLORING_TEST(RunQueue, FewInterruptionsOfLongRuns) {
    check("3 workers, 3 tasks, 3 turns, interrupted once",
          Scenario<Queued>{.begin = begin_queue<3>,
                           .actors = {work<1, 3>, work<2, 3>, work<3, 3>},
                           .at_end = all_are_queued<3>,
                           .watched = offsetof(Queued, is_had)},
          interrupted(1), {.preemptions = 1});
}

// ---- entries of tables -------------------------------------------------------------

constexpr u32 entry_count = 4;  // number 0 is not used

struct Entries {
    u64 list;
    u32 used;
    u32 next[entry_count];
    u32 is_had[entry_count];
    u32 refusals;

    u32 take() {
        const u32 index = take_entry(&list, &used, entry_count, [this](u32 i) { return &next[i]; });
        if (index == 0) {
            refusals++;
            return 0;
        }
        REQUIRE(index < entry_count);
        REQUIRE(is_had[index] == 0);
        is_had[index] = 1;
        return index;
    }
    void give(u32 index) {
        if (index == 0) return;
        is_had[index] = 0;
        give_entry(&list, index, [this](u32 i) { return &next[i]; });
    }
};
template <u32 times>
void use_entries(Entries& s) {
    for (u32 i = 0; i < times; i++) s.give(s.take());
}
void use_two_entries(Entries& s) {
    const u32 one = s.take(), other = s.take();
    s.give(one);
    s.give(other);
}
void none_is_lost(Entries& s) {
    for (u32 i = 1; i < entry_count; i++) REQUIRE(s.take() != 0);
    REQUIRE(s.take() == 0);
}
// All have been in use, in some order.
void begin_entries(Entries& s) {
    u32 taken[entry_count];
    for (u32 i = 1; i < entry_count; i++) taken[i] = s.take();
    for (u32 i = 1; i < entry_count; i++) s.give(taken[i]);
    s.list &= 0xffffffff;
}

EXPLORING_TEST(TableEntries, AreHadByOne) {
    check("2 actors, entries that are used for the first time",
          Scenario<Entries>{.begin = {},
                            .actors = {use_two_entries, use_entries<2>},
                            .at_end = none_is_lost,
                            .watched = offsetof(Entries, is_had)});
    check("2 actors, entries from the list",
          Scenario<Entries>{.begin = begin_entries,
                            .actors = {use_two_entries, use_two_entries},
                            .at_end = none_is_lost,
                            .watched = offsetof(Entries, is_had)});
    check("3 actors, entries from the list",
          Scenario<Entries>{.begin = begin_entries,
                            .actors = {use_entries<1>, use_entries<1>, use_two_entries},
                            .at_end = none_is_lost,
                            .watched = offsetof(Entries, is_had)});
}

}  // namespace
}  // namespace gpurun::test
