// Processes that end, are waited for and are killed at the same time: a parent hears of every child
// once, and a signal meets the process it is for or nobody.
#include <cstring>

#include "small_machine.h"

namespace gpurun::test {
namespace {

constexpr u32 any = ~u32{0};

struct Family {
    SmallMachine m;
    u32 codes, waits;  // of children that were waited for
    u32 made;          // a process that was begun meanwhile

    // Error of `wait`; what it says is added up.
    u32 wait(u32 i, u32 pid) {
        const u32 arguments[4] = {pid, 0, 16, 24};
        const u32 error = m.call(i, [&](Call& call) {
            std::memcpy(m.words[i] + SmallMachine::frame_at, arguments, sizeof arguments);
            return call_process(call, SystemCall::wait);
        });
        if (error == 0) {
            const Ending how = Ending(load_bytes<u32>(m.memory[i] + 24));
            REQUIRE(how == Ending::exited || how == Ending::killed);
            codes += load_bytes<u32>(m.memory[i] + 28);
            waits++;
        }
        return error;
    }
    u32 kill(u32 i, u32 pid) {
        const u32 arguments[2] = {pid, 9};
        return m.call(i, [&](Call& call) {
            std::memcpy(m.words[i] + SmallMachine::frame_at, arguments, sizeof arguments);
            return call_process(call, SystemCall::kill);
        });
    }
    u32 pid(u32 i) { return SmallMachine::entries + i; }
};

void wait_for_any(Family& s) { REQUIRE(s.wait(1, any) == 0); }
void wait_for_2(Family& s) { REQUIRE(s.wait(1, s.pid(2)) == 0); }
void wait_for_all(Family& s) {
    REQUIRE(s.wait(1, any) == 0);
    REQUIRE(s.wait(1, any) == 0);
    REQUIRE(s.wait(1, any) == u32(Errno::child));
}
template <u32 i>
void end(Family& s) {
    s.m.end(i, i);
}
template <u32 children>
void begin_family(Family& s) {
    s.m.begin(1 + children);
    for (u32 i = 2; i <= 1 + children; i++) s.m.make_child(i, 1);
}
template <u32 codes, u32 children>
void all_were_heard(Family& s) {
    REQUIRE(s.codes == codes && s.waits == children);
    REQUIRE(s.m.header.alive == 1 && s.m.header.ended == children);
    for (u32 i = 2; i <= 1 + children; i++) {
        REQUIRE(s.m.processes[i].state == ProcessState::free);
        REQUIRE(s.m.tasks[i].state == TaskState::free);
    }
    REQUIRE(s.m.processes[1].first_child == 0 && s.m.processes[1].first_zombie == 0);
    s.m.nothing_waits();
}

EXPLORING_TEST(Family, AParentHearsOfItsChild) {
    for (auto waits : {wait_for_any, wait_for_2})
        check("a child ends, its parent waits", Scenario<Family>{.begin = begin_family<1>,
                                                                 .actors = {waits, end<2>},
                                                                 .at_end = all_were_heard<2, 1>,
                                                                 .watched = SmallMachine::watched});
}
EXPLORING_TEST(Family, AParentHearsOfAll) {
    check("2 children end, their parent waits twice; interrupted twice",
          Scenario<Family>{.begin = begin_family<2>,
                           .actors = {wait_for_all, end<2>, end<3>},
                           .at_end = all_were_heard<5, 2>,
                           .watched = SmallMachine::watched},
          interrupted(2), {.preemptions = 1});
}
EXPLORING_TEST(Family, AnOrphanGoesByItself) {
    check("parent and child end, interrupted 3 times",
          Scenario<Family>{.begin =
                               [](Family& s) {
                                   s.m.begin(3);
                                   s.m.make_child(2, 1);
                                   s.m.make_child(1, 3);
                               },
                           .actors = {end<1>, end<2>},
                           .at_end =
                               [](Family& s) {
                                   REQUIRE(s.m.processes[2].state == ProcessState::free);
                                   REQUIRE(s.m.processes[1].state == ProcessState::zombie);
                                   REQUIRE(s.m.header.alive == 1);
                               },
                           .watched = SmallMachine::watched},
          interrupted(3));
}

// As the mailbox warp does.
void hear_of_two(Family& s) {
    const Machine m = s.m.machine();
    while (s.waits < 2) {
        u32 at = take_host_zombies(m);
        if (at == 0) pause();
        while (at != 0) {
            const u32 index = at - 1;
            s.codes += u32(s.m.processes[index].ending);
            s.waits++;
            at = next_host_zombie(m, index);
            reap(m, index);
        }
    }
}
EXPLORING_TEST(Family, TheHostHearsOfAll) {
    check("2 processes of the host end, interrupted 3 times",
          Scenario<Family>{.begin =
                               [](Family& s) {
                                   s.m.begin(3);
                                   s.m.processes[2].parent = host_parent;
                                   s.m.processes[3].parent = host_parent;
                               },
                           .actors = {hear_of_two, end<2>, end<3>},
                           .at_end = all_were_heard<5, 2>,
                           .watched = SmallMachine::watched},
          interrupted(3));
}

// Two tasks that end one after another are given back at once; another process is begun meanwhile.
EXPLORING_TEST(Family, TasksThatEndTogether) {
    check("2 tasks end and are given back, entries are taken; interrupted 3 times",
          Scenario<Family>{
              .begin = [](Family& s) { s.m.begin(3); },
              .actors = {[](Family& s) {
                             const Machine m = s.m.machine();
                             EndedTasks ended;
                             for (u32 i : {2, 3})
                                 end_task(m, i,
                                          claim_end(m.process(i), s.pid(i), Ending::exited, 0),
                                          ended);
                             give_back(m, ended);
                         },
                         [](Family& s) {
                             const Machine m = s.m.machine();
                             const u32 first = take_task_entry(m), second = take_task_entry(m);
                             REQUIRE(first == 4 || first == 3);
                             REQUIRE(second == 0 || second != first);
                             if (second != 0) give_task_entry(m, second);
                             give_task_entry(m, first);
                         }},
              .at_end =
                  [](Family& s) {
                      REQUIRE(s.m.header.leaving == 0 && s.m.header.alive == 1);
                      u32 seen = 0;
                      for (u32 at = u32(s.m.header.free_tasks); at != 0;
                           at = s.m.tasks[at - 1].next_free) {
                          REQUIRE((seen >> at & 1) == 0);
                          seen |= 1u << at;
                      }
                      for (u32 i = s.m.header.tasks_used + 1; i < SmallMachine::entries; i++)
                          seen |= 2u << i;
                      REQUIRE(seen == (2u << 2 | 2u << 3 | 2u << 4));
                  },
              .watched = SmallMachine::watched},
          interrupted(3));
}

// 1 waits for 2, and goes on where that ends if it was off its lane by then; there it starts
// another process, which has what 2 had.
void wait_or_go_on_elsewhere(Family& s) { s.wait(1, any); }
template <bool starts_another>
void end_and_go_on(Family& s) {
    const Machine& m = s.m.machine();
    s.m.kept.may_hand = true;
    s.m.end(2, 2);
    s.m.kept.may_hand = false;
    if (s.m.kept.handed == 0) return;
    REQUIRE(s.m.kept.handed == 2 && s.m.kept.program == 0 && s.m.kept.task == 3);
    REQUIRE(load_relaxed(&s.m.header.leaving) == 1);
    s.m.kept.handed = 0;
    store_relaxed(&s.m.went_on, u32{1});
    s.m.words[1][SmallMachine::thread_at + thread_state] = u32(ThreadState::ready);
    if (is_ending(s.m.processes[1])) {
        EndedTasks ended;
        end_before_turn(m, 1, ended);
        give_back(m, ended);
    } else {
        REQUIRE(s.wait(1, any) == 0);
        REQUIRE(s.m.kept.entry == 3);
        NewProcess wanted{};
        wanted.program = 1;
        wanted.parent = s.pid(1);
        wanted.fuel = ~u64{0};
        wanted.files = s.m.processes[1].block;
        if (starts_another) {
            REQUIRE(make_process(s.m.machine(), wanted, s.made) == Errno::success);
            REQUIRE(s.made == 2 && s.m.kept.task == 0 && s.m.kept.entry == 0);
            start_process(s.m.machine(), s.made);
        }
    }
    give_back_kept(s.m.machine());
}
void begin_with_lane(Family& s) {
    begin_family<1>(s);
    s.m.keeps = true;
    s.m.block_of(2)->files = s.m.processes[1].block;
    s.m.block_of(1)->file_users = 2;
}
EXPLORING_TEST(Family, AParentGoesOnWhereItsChildEnded) {
    check("a child ends, its parent goes on there",
          Scenario<Family>{.begin = begin_with_lane,
                           .actors = {wait_or_go_on_elsewhere, end_and_go_on<false>},
                           .at_end =
                               [](Family& s) {
                                   all_were_heard<2, 1>(s);
                                   REQUIRE(s.m.header.leaving == 0 &&
                                           s.m.block_of(1)->file_users == 1);
                               },
                           .watched = SmallMachine::watched});
    check(
        "a child ends, its parent goes on there and starts another",
        Scenario<Family>{.begin = begin_with_lane,
                         .actors = {wait_or_go_on_elsewhere, end_and_go_on<true>},
                         .at_end =
                             [](Family& s) {
                                 const bool another = s.made != 0;
                                 REQUIRE(s.codes == 2 && s.waits == 1);
                                 REQUIRE(s.m.header.alive == 1 + another && s.m.header.ended == 1);
                                 REQUIRE(s.m.header.leaving == 0);
                                 REQUIRE(s.m.block_of(1)->file_users == 1 + another);
                                 s.m.nothing_waits();
                             },
                         .watched = SmallMachine::watched});
}
EXPLORING_TEST(Family, AParentIsKilledWhereItsChildEnded) {
    check("a child ends, its parent goes on there, somebody kills it; interrupted 3 times",
          Scenario<Family>{.begin = begin_with_lane,
                           .actors = {wait_or_go_on_elsewhere, end_and_go_on<false>,
                                      [](Family& s) {
                                          end_all_tasks(s.m.machine(), s.pid(1), Ending::killed, 9);
                                      }},
                           .at_end =
                               [](Family& s) {
                                   REQUIRE(s.m.header.leaving == 0);
                                   s.m.nothing_waits();
                               },
                           .watched = SmallMachine::watched},
          interrupted(3));
}

// Of 2 and 3, which wait for the same thing, one is woken, and wakes the other when it has looked
// at it; but 2 is killed meanwhile.
EXPLORING_TEST(Family, WhoIsWokenAndKilledLeavesItToOthers) {
    static constexpr u64 key = 7;
    auto begin = [](Family& s) {
        s.m.begin(3);
        s.m.processes[3].program = 0;  // a queue of its own
        for (u32 i : {2, 3}) REQUIRE(park(s.m.machine(), i, key, no_deadline, [] { return true; }));
    };
    auto two = [](Family& s) {
        const Machine m = s.m.machine();
        s.m.come_back(2);
        if (!is_ending(s.m.processes[2])) {
            wake(m, key, 1);
            return;
        }
        EndedTasks ended;
        end_before_turn(m, 2, ended);
        give_back(m, ended);
    };
    check("2 wait, one is woken, one is killed; interrupted 3 times",
          Scenario<Family>{.begin = begin,
                           .actors = {[](Family& s) { wake(s.m.machine(), key, 1); },
                                      [](Family& s) {
                                          end_all_tasks(s.m.machine(), s.pid(2), Ending::killed, 9);
                                      },
                                      two, [](Family& s) { s.m.come_back(3); }},
                           .at_end = [](Family& s) { s.m.nothing_waits(); },
                           .watched = SmallMachine::watched},
          interrupted(3));
}

// 3 is the parent of 1, which is the parent of 2. When 2 has ended, 1 begins another process, which
// gets the entry.
EXPLORING_TEST(Family, ASignalIsForOneProcess) {
    check("a child ends, its entry is used again, somebody kills it; interrupted twice",
          Scenario<Family>{
              .begin =
                  [](Family& s) {
                      s.m.begin(3);
                      s.m.make_child(2, 1);
                      s.m.make_child(1, 3);
                  },
              .actors = {[](Family& s) {
                             if (s.wait(1, any) != 0) return;
                             NewProcess wanted{};
                             wanted.program = 1;
                             wanted.parent = s.pid(1);
                             wanted.fuel = ~u64{0};
                             REQUIRE(make_process(s.m.machine(), wanted, s.made) == Errno::success);
                         },
                         end<2>,
                         [](Family& s) {
                             const u32 error = s.kill(3, s.pid(2));
                             REQUIRE(error == 0 || error == u32(Errno::srch) ||
                                     error == u32(Errno::perm));
                         }},
              .at_end = [](Family& s) { REQUIRE(s.m.processes[s.made].ending >> 32 == 0); },
              .watched = SmallMachine::watched},
          interrupted(2));
}

}  // namespace
}  // namespace gpurun::test
