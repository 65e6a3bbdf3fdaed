// Waiting and waking: of those who wake a task, run out its time or end it, exactly one makes it
// ready, and none comes in vain between a task's last look and its sleep.
#include "runtime/machine/wait.h"

#include <cstddef>

#include "scenarios.h"

namespace gpurun::test {
namespace {

using namespace rt;

constexpr u32 tasks = 4, queue_slots = 4;  // number 0 is not used

// A machine with one program and one process; the tables lie where its offsets say.
struct Waiting {
    MachineHeader header;
    ProgramEntry program;
    ProcessEntry process;
    TaskEntry task[tasks];
    u64 deadline[tasks];
    u64 slots[queue_slots];
    WaitBucket buckets[2];
    u8 memory[8];  // what is waited for: words of a guest
    // What came of it.
    u32 not_parked, woken, timed_out, ended;
    u32 is_had[tasks];
    u64 now;
};

Machine machine(Waiting& s) {
    u8* at = reinterpret_cast<u8*>(&s);
    return {at, at, &s.header};
}

// The first key of those there are that is kept in `bucket`.
u64 key_in(u32 bucket, u64 from) {
    while (bucket_of(wait_key(WaitFor::memory, 0, from)) != bucket) from++;
    return wait_key(WaitFor::memory, 0, from);
}
const u64 key = key_in(0, 0), neighbour = key_in(0, 1'000'000), elsewhere = key_in(1, 0);

void begin_waiting(Waiting& s) {
    s.header.programs = offsetof(Waiting, program);
    s.header.processes = offsetof(Waiting, process);
    s.header.tasks = offsetof(Waiting, task);
    s.header.deadlines = offsetof(Waiting, deadline);
    s.header.buckets = offsetof(Waiting, buckets);
    for (RunQueue& queue : s.program.queues) {
        queue.slots_at = offsetof(Waiting, slots);
        queue.mask = queue_slots - 1;
    }
    for (u32 i = 1; i < tasks; i++) {
        s.task[i].state = TaskState::running;
        s.deadline[i] = no_deadline;
        s.is_had[i] = 1;
    }
    s.now = 100;
}

// ---- what actors do ----------------------------------------------------------------

RunQueue& queue_of(Waiting& s) { return s.program.queues[0]; }

// A task that its actor has goes to sleep, unless the word is not 0 or its process is ending.
template <u32 index, u64 deadline = no_deadline>
bool go_to_sleep(Waiting& s, u64 where = key, u8* word = nullptr) {
    REQUIRE(s.is_had[index]);
    s.is_had[index] = 0;
    const bool is_parked = park(machine(s), index, where, deadline, [&] {
        return atomic_load<u32>(word ? word : s.memory) == 0 &&
               load_relaxed(&s.process.ending) == 0;
    });
    if (!is_parked) {
        s.is_had[index] = 1;
        s.not_parked++;
    }
    return is_parked;
}
template <u32 index, u64 deadline = no_deadline>
void sleep_once(Waiting& s) {
    go_to_sleep<index, deadline>(s);
}
template <u32 most>
void notify(Waiting& s) {
    atomic_store<u32>(s.memory, 1);
    s.woken += wake(machine(s), key, most);
}
// One that changes nothing.
void notify_in_vain(Waiting& s) { s.woken += wake(machine(s), key, 1); }
template <u32 index>
void run_out(Waiting& s) {
    const Machine m = machine(s);
    if (load_relaxed(&m.deadline(index)) > s.now) return;
    s.timed_out += unblock(m, index, Wake::timed_out,
                           [&] { return load_relaxed(&m.deadline(index)) <= s.now; });
}
void kill_all(Waiting& s) {
    if (compare_exchange(&s.process.ending, u64{0}, u64{3} << 32 | 9) != 0) return;
    for (u32 i = 1; i < tasks; i++)
        s.ended += unblock(machine(s), i, Wake::ended, [] { return true; });
}
u32 take_ready(Waiting& s) {
    u32 first = 0;
    if (take_tickets(queue_of(s), 1, first) == 0) return 0;
    const u32 index = fetch_task(queue_of(s), s.slots, first);
    REQUIRE(index > 0 && index < tasks);
    REQUIRE(!s.is_had[index]);
    REQUIRE(load_task_state(s.task[index]) == TaskState::ready);
    REQUIRE(s.task[index].wake != Wake::none);
    s.is_had[index] = 1;
    store_task_state(s.task[index], TaskState::running);
    return index;
}

// All that slept are ready, once each, for one reason each; nothing is left of their sleep.
template <u32 sleepers>
void all_are_awake(Waiting& s) {
    u32 ready = 0, by_reason[4] = {};
    for (u32 index; (index = take_ready(s)) != 0; ready++) by_reason[u32(s.task[index].wake)]++;
    REQUIRE(ready + s.not_parked == sleepers);
    REQUIRE(by_reason[u32(Wake::woken)] == s.woken);
    REQUIRE(by_reason[u32(Wake::timed_out)] == s.timed_out);
    REQUIRE(by_reason[u32(Wake::ended)] == s.ended);
    for (u32 i = 1; i < tasks; i++) REQUIRE(s.is_had[i] && s.deadline[i] == no_deadline);
    REQUIRE(s.header.blocked_tasks == 0 && s.header.sleeping == 0);
    for (const WaitBucket& bucket : s.buckets)
        REQUIRE(bucket.lock == 0 && bucket.count == 0 && bucket.first == 0 && bucket.last == 0);
}

void check_waiting(const char* what, std::vector<Scenario<Waiting>::Act> actors,
                   Scenario<Waiting>::Act at_end) {
    ExploreOptions options;
    options.stops_after_writes = actors.size() == 2;
    check(what,
          Scenario<Waiting>{.begin = begin_waiting,
                            .actors = std::move(actors),
                            .at_end = at_end,
                            .watched = offsetof(Waiting, not_parked)},
          options);
}

// ---- tests -------------------------------------------------------------------------

EXPLORING_TEST(Wait, NoNotifyIsLost) {
    check_waiting("park and wake", {sleep_once<1>, notify<1>}, all_are_awake<1>);
}
EXPLORING_TEST(Wait, TwoAreWokenByOne) {
    check_waiting("2 park, 1 wakes 2", {sleep_once<1>, sleep_once<2>, notify<2>}, all_are_awake<2>);
}
EXPLORING_TEST(Wait, OneIsWokenOnceByTwo) {
    check_waiting("1 parks, 2 wake", {sleep_once<1>, notify<1>, notify_in_vain}, all_are_awake<1>);
}
EXPLORING_TEST(Wait, NoEndIsLost) {
    check_waiting("park and kill", {sleep_once<1>, kill_all}, all_are_awake<1>);
}
EXPLORING_TEST(Wait, WokenOrKilled) {
    check_waiting("park, wake and kill", {sleep_once<1>, notify<1>, kill_all}, all_are_awake<1>);
}
EXPLORING_TEST(Wait, WokenOrTimedOut) {
    check_waiting("park, wake and time out", {sleep_once<1, 50>, notify<1>, run_out<1>},
                  all_are_awake<1>);
}
EXPLORING_TEST(Wait, TimedOutOrKilled) {
    // Whether the clock comes early or late, somebody ends the wait.
    check_waiting("park, time out and kill", {sleep_once<1, 50>, run_out<1>, kill_all},
                  all_are_awake<1>);
}
EXPLORING_TEST(Wait, NotBeforeItsTime) {
    check_waiting("park until later, wake and time out",
                  {sleep_once<1, 500>, notify<1>, run_out<1>}, [](Waiting& s) {
                      REQUIRE(s.timed_out == 0);
                      all_are_awake<1>(s);
                  });
}

// A neighbour in the bucket sleeps on.
EXPLORING_TEST(Wait, OthersOfTheBucketSleepOn) {
    check_waiting(
        "2 park for different things, 1 is woken",
        {sleep_once<1>, [](Waiting& s) { go_to_sleep<2>(s, neighbour, s.memory + 4); }, notify<2>},
        [](Waiting& s) {
            REQUIRE(load_task_state(s.task[2]) == TaskState::blocked);
            REQUIRE(s.buckets[0].first == 3 && s.buckets[0].last == 3);
            s.woken += wake(machine(s), neighbour, 1);
            all_are_awake<2>(s);
        });
}

// Woken, it goes to sleep again elsewhere, while the clock still thinks of its first sleep.
EXPLORING_TEST(Wait, AClockThatComesLate) {
    check_waiting("a task that sleeps twice, a waker, the clock",
                  {[](Waiting& s) {
                       if (go_to_sleep<1, 50>(s))
                           while (take_ready(s) == 0) pause();
                       go_to_sleep<1>(s, elsewhere, s.memory + 4);
                   },
                   notify<1>, run_out<1>},
                  [](Waiting& s) {
                      // Its second sleep has no deadline: nobody has ended it.
                      REQUIRE(load_task_state(s.task[1]) == TaskState::blocked);
                      REQUIRE(s.woken + s.timed_out + s.not_parked == 1);
                      s.woken = wake(machine(s), elsewhere, 1);
                      s.timed_out = s.not_parked = 0;
                      all_are_awake<1>(s);
                  });
}
EXPLORING_TEST(Wait, KilledWhileItMoves) {
    check_waiting("a task that sleeps twice, a waker, a killer",
                  {[](Waiting& s) {
                       if (!go_to_sleep<1>(s)) return;
                       while (take_ready(s) == 0) pause();
                       if (s.task[1].wake == Wake::woken)
                           go_to_sleep<1>(s, elsewhere, s.memory + 4);
                   },
                   notify<1>, kill_all},
                  [](Waiting& s) {
                      // It runs, or is ready: it does not sleep.
                      REQUIRE(load_task_state(s.task[1]) != TaskState::blocked);
                      REQUIRE(s.header.blocked_tasks == 0);
                  });
}

}  // namespace
}  // namespace gpurun::test
