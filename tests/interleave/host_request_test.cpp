// Tasks that want something of the host and are killed meanwhile: whoever looks at one owns it, and
// an answer that comes too late changes nothing of a task that has the entry since.
#include "runtime/process/host_requests.h"

#include "small_machine.h"

namespace gpurun::test {
namespace {

constexpr Handle file = 7;
constexpr u64 block = 3;

struct Asking {
    SmallMachine m;
    u32 answers;  // that a task got
    u32 is_over;  // nobody asks any more
};

void begin_asking(Asking& s) {
    s.m.begin(2);
    s.m.header.host_requests.mask = 7;
    s.m.header.host_requests.slots_at = 128;
    s.m.tasks[1].words_at = u64(reinterpret_cast<u8*>(s.m.words[1]) - s.m.pages);
}

void leave_lane(Asking& s, u32 i, ThreadState state) {
    begin_wait(s.m.words[i] + SmallMachine::thread_at, state, no_deadline);
    Lane lane;
    lane.has_task = true;
    lane.task = i;
    lane.thread = SmallMachine::thread_at;
    lane.p = s.m.process_of(i);
    s.m.leave_and_give_back(lane, state);
}

// Task 1 wants a block, and gets it or ends.
void ask(Asking& s) {
    ProcessBlock* me = s.m.block_of(1);
    me->request = Request::block;
    me->request_node = file;
    me->request_at = block;
    leave_lane(s, 1, ThreadState::host);
    if (load_task_state(s.m.tasks[1]) == TaskState::free) return;  // it was killed before
    s.m.come_back(1);
    const bool is_killed = is_ending(s.m.processes[1]);
    REQUIRE(is_killed || me->request_failed);
    if (is_killed) s.m.end_and_give_back(1, {});
}

// The mailbox warp, and a host that answers at once.
void serve(Asking& s) {
    const Machine m = s.m.machine();
    BlockRequest wanted{};
    while (!take_request(m, wanted)) {
        if (load_shared(&s.is_over)) return;
        pause();
    }
    REQUIRE(wanted.task == 1 && wanted.node == file && wanted.block == block);
    if (!take_asker(m, {wanted.task, 0, wanted.node, 0, wanted.block})) return;
    REQUIRE(load_task_state(s.m.tasks[1]) == TaskState::running);
    s.m.block_of(1)->request_failed = 1;
    s.answers++;
    make_ready(m, 1);
}

void ask_once(Asking& s) {
    ask(s);
    store_shared(&s.is_over, 1u);
}
void kill_1(Asking& s) {
    end_all_tasks(s.m.machine(), SmallMachine::entries + 1, Ending::killed, 9);
}

// Task 1 traps. It shows its process to the host and ends when the host has looked, or was killed
// before.
void trap(Asking& s) {
    leave_lane(s, 1, ThreadState::trapped);
    if (load_task_state(s.m.tasks[1]) == TaskState::free) return;
    s.m.come_back(1);
    REQUIRE(is_ending(s.m.processes[1]));
    s.m.end_and_give_back(1, {});
}
// The mailbox warp, and a host that looks at the process: that is there until the answer.
void look(Asking& s) {
    const Machine m = s.m.machine();
    BlockRequest wanted{};
    while (!take_request(m, wanted)) {
        if (load_shared(&s.is_over)) return;
        pause();
    }
    REQUIRE(wanted.task == 1 && wanted.block == whole_process);
    REQUIRE(s.m.words[1][SmallMachine::thread_at + thread_state] == u32(ThreadState::trapped));
    s.answers++;
    REQUIRE(take_asker(m, {wanted.task, 0, wanted.node, 0, wanted.block}));
    make_ready(m, 1);
}
void begin_showing(Asking& s) {
    begin_asking(s);
    s.m.header.shows_faults = 1;
}
// Those that a trap ended, and no others, were looked at.
void trapped_were_shown(Asking& s) {
    const u32 ending = u32(s.m.processes[1].ending >> 32) - 1;
    REQUIRE(s.answers == u32(ending == u32(Ending::trapped)));
    REQUIRE(s.m.header.alive == 1);  // process 2
    s.m.nothing_waits();
}

EXPLORING_TEST(HostRequest, TrapsAreShown) {
    auto act = [](Asking& s) {
        trap(s);
        store_shared(&s.is_over, 1u);
    };
    check("a task traps, shows its process and is killed",
          Scenario<Asking>{.begin = begin_showing,
                           .actors = {act, look, kill_1},
                           .at_end = trapped_were_shown,
                           .watched = SmallMachine::watched});
}
// Whoever killed the process that had the entries before may still be about to wake its tasks.
EXPLORING_TEST(HostRequest, TrapsAreShownByWhoHasTheEntryNow) {
    auto act = [](Asking& s) {
        if (!is_ending(s.m.processes[1])) {
            s.m.end(1, 0);
        } else {
            s.m.end_and_give_back(1, {});
            s.m.begin_process(1);
            s.m.tasks[1].words_at = u64(reinterpret_cast<u8*>(s.m.words[1]) - s.m.pages);
            trap(s);
        }
        store_shared(&s.is_over, 1u);
    };
    check("a process is killed, another has its entry and traps; interrupted 3 times",
          Scenario<Asking>{.begin = begin_showing,
                           .actors = {act, look, kill_1},
                           .at_end = trapped_were_shown,
                           .watched = SmallMachine::watched},
          interrupted(3), {.preemptions = 1});
}

EXPLORING_TEST(HostRequest, IsAnswered) {
    ExploreOptions options;
    options.stops_after_writes = true;
    check("a task asks",
          Scenario<Asking>{.begin = begin_asking,
                           .actors = {ask_once, serve},
                           .at_end =
                               [](Asking& s) {
                                   REQUIRE(s.answers == 1);
                                   s.m.nothing_waits();
                               },
                           .watched = SmallMachine::watched},
          options);
}
EXPLORING_TEST(HostRequest, IsAnsweredOrKilled) {
    check("a task asks and is killed",
          Scenario<Asking>{.begin = begin_asking,
                           .actors = {ask_once, serve, kill_1},
                           .at_end = [](Asking& s) { s.m.nothing_waits(); },
                           .watched = SmallMachine::watched});
}
// Another process gets the entries of the one that was killed, and sleeps.
EXPLORING_TEST(HostRequest, AnswersAreForThoseWhoAsked) {
    auto act = [](Asking& s) {
        ask(s);
        if (load_task_state(s.m.tasks[1]) != TaskState::free) return store_shared(&s.is_over, 1u);
        s.m.begin_process(1);
        s.m.tasks[1].words_at = u64(reinterpret_cast<u8*>(s.m.words[1]) - s.m.pages);
        ProcessBlock* me = s.m.block_of(1);
        me->request_node = file;
        me->request_at = block;
        leave_lane(s, 1, ThreadState::sleeping);
        REQUIRE(load_task_state(s.m.tasks[1]) == TaskState::blocked);
        store_shared(&s.is_over, 1u);
    };
    check("a task asks and is killed, another has its entry; interrupted 3 times",
          Scenario<Asking>{.begin = begin_asking,
                           .actors = {act, serve, kill_1},
                           .at_end =
                               [](Asking& s) {
                                   if (s.m.header.blocked_tasks == 0) return;
                                   REQUIRE(load_task_state(s.m.tasks[1]) == TaskState::blocked);
                                   REQUIRE(!s.m.block_of(1)->request_failed);
                               },
                           .watched = SmallMachine::watched},
          interrupted(3), {.preemptions = 1});
}

}  // namespace
}  // namespace gpurun::test
