// Processes that end, are waited for and are killed at the same time: a parent hears of every child
// once, and a signal meets the process it is for or nobody.
#include <cstring>

#include "runtime/mailbox/programs.h"
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
// Whoever gets its entry then writes there.
void use_again(Family& s) {
    const Machine m = s.m.machine();
    while (u32(load_relaxed(&s.m.header.free_processes)) == 0) pause();
    const u32 entry = take_process_entry(m);
    s.m.processes[entry].next_sibling = s.m.processes[entry].previous_sibling = 0;
    give_process_entry(m, entry);
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
    check("parent and child end, the child's entry is used again; interrupted once",
          Scenario<Family>{
              .begin =
                  [](Family& s) {
                      s.m.begin(3);
                      s.m.make_child(2, 1);
                      s.m.make_child(1, 3);
                  },
              .actors = {end<1>, end<2>, use_again},
              .at_end = [](Family& s) { REQUIRE(s.m.processes[2].state == ProcessState::free); },
              .watched = SmallMachine::watched},
          interrupted(1), {.preemptions = 1});
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
          interrupted(3), {.preemptions = 1});
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
                                 end_task(
                                     m, i,
                                     {claim_end(m.process(i), s.pid(i), Ending::exited, 0), false},
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
    const Successor successor = s.m.end(2, 2, true);
    if (successor.task == 0) return;
    REQUIRE(successor.task == 2 && successor.program == 0 && s.m.leftovers.task == 3);
    REQUIRE(load_relaxed(&s.m.header.leaving) == 1);
    store_relaxed(&s.m.went_on, u32{1});
    s.m.words[1][SmallMachine::thread_at + thread_state] = u32(ThreadState::ready);
    if (is_ending(s.m.processes[1])) {
        EndedTasks ended;
        end_before_turn(m, 1, ended);
        give_back(m, ended);
    } else {
        REQUIRE(s.wait(1, any) == 0);
        REQUIRE(s.m.leftovers.entry == 3);
        NewProcess wanted{};
        wanted.program = 1;
        wanted.parent = s.pid(1);
        wanted.fuel = ~u64{0};
        wanted.files = s.m.processes[1].block;
        if (starts_another) {
            REQUIRE(make_process(s.m.machine(), wanted, s.made) == Errno::success);
            REQUIRE(s.made == 2 && s.m.leftovers.task == 0 && s.m.leftovers.entry == 0);
            start_process(s.m.machine(), s.made);
        }
    }
    give_back_leftovers(s.m.machine());
}
void begin_with_lane(Family& s) {
    begin_family<1>(s);
    s.m.hands_over = true;
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
          interrupted(3), {.preemptions = 1});
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
          interrupted(3), {.preemptions = 1});
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
          interrupted(2), {.preemptions = 1});
}

// As above, and whoever kills it comes so late that the entry is being made another's.
EXPLORING_TEST(Family, ASignalThatComesLate) {
    check("a child is killed while its entry is used again; interrupted 3 times",
          Scenario<Family>{
              .begin =
                  [](Family& s) {
                      s.m.begin(3);
                      s.m.make_child(2, 1);
                  },
              .actors = {[](Family& s) {
                             s.m.end(2, 2);
                             if (s.wait(1, any) != 0) return;
                             NewProcess wanted{};
                             wanted.program = 1;
                             wanted.parent = s.pid(1);
                             wanted.fuel = ~u64{0};
                             REQUIRE(make_process(s.m.machine(), wanted, s.made) == Errno::success);
                         },
                         [](Family& s) {
                             end_all_tasks(s.m.machine(), s.pid(2), Ending::killed, 9);
                         }},
              .at_end = [](Family& s) { REQUIRE(s.m.processes[s.made].ending >> 32 == 0); },
              .watched = SmallMachine::watched},
          interrupted(3), {.preemptions = 3});
}

// ---- what new processes have -------------------------------------------------------

NewProcess child_of_1(Family& s) {
    NewProcess wanted{};
    wanted.program = 1;
    wanted.parent = s.pid(1);
    wanted.fuel = ~u64{0};
    wanted.files = s.m.processes[1].block;
    return wanted;
}
void begin_child(Family& s) {
    REQUIRE(make_process(s.m.machine(), child_of_1(s), s.made) == Errno::success);
    start_process(s.m.machine(), s.made);
}
// Actors use different lists of the heap, but the same of entries and slots.
EXPLORING_TEST(Family, ANewProcessHasWhatAnotherLeft) {
    check("a process ends, another gets what it had",
          Scenario<Family>{.begin = [](Family& s) { s.m.begin(2); },
                           .actors = {end<2>,
                                      [](Family& s) {
                                          while (u32(load_relaxed(&s.m.header.free_tasks)) == 0)
                                              pause();
                                          begin_child(s);
                                          REQUIRE(s.made == 2 || s.made == 3);
                                      }},
                           .at_end = [](Family& s) { REQUIRE(s.m.header.alive == 2); },
                           .watched = SmallMachine::watched},
          interrupted(3), {.preemptions = 3});
}
// Another warp runs a process that was just started, while somebody who guessed its pid kills it.
void begin_starting(Family& s) {
    s.m.begin(3);
    s.m.make_child(1, 3);
    s.m.programs[1].spares[0] = 2;
    s.m.programs[1].spare_count = 1;
}
void run_child(Family& s) {
    const Machine m = s.m.machine();
    RunQueue& queue = s.m.programs[1].queues[0];
    u32 first = 0;
    while (take_tickets(queue, 1, first) == 0) pause();
    const u32 index = fetch_task(queue, m.queue_slots(queue), first);
    TaskEntry& task = m.task(index);
    store_task_state(task, TaskState::running);
    const ProcessEntry& process = m.process(task.process);
    REQUIRE(task.words_at == process.slot_at && process.program == 1 && process.first_task != 0);
    const bool is_parked = park(m, index, wait_key(WaitFor::time, index), no_deadline,
                                [&] { return !is_ending(process); });
    REQUIRE(is_parked || is_ending(process));
}
void no_dead_task_sleeps(Family& s) {
    if (s.m.processes[4].ending >> 32 == 0) return;
    REQUIRE(load_task_state(s.m.tasks[4]) != TaskState::blocked);
}
EXPLORING_TEST(Family, AStartedProcessIsAllThere) {
    check("a process is started and run",
          Scenario<Family>{.begin = begin_starting,
                           .actors = {begin_child, run_child},
                           .at_end = no_dead_task_sleeps,
                           .watched = SmallMachine::watched},
          interrupted(3), {.preemptions = 3});
    check(
        "a process is started, run and killed, interrupted twice",
        Scenario<Family>{.begin = begin_starting,
                         .actors = {begin_child, run_child, [](Family& s) { s.kill(3, s.pid(4)); }},
                         .at_end = no_dead_task_sleeps,
                         .watched = SmallMachine::watched},
        interrupted(2));
}

// ---- what processes share ----------------------------------------------------------

// The last of those that share files gives them back, and whoever gets the memory then may do with
// it as it likes.
template <u32 i>
void end_with_files(Family& s) {
    const Process nobody = s.m.machine().nobody();
    ProcessBlock* files = s.m.block_of(1);
    {
        Lock lock(&files->file_lock);
        files->next_inode++;
    }
    s.m.end(i, 0);
    take_zeroed(nobody, sizeof(ProcessBlock));
    take_zeroed(nobody, sizeof(Node));
}
// Blocks that are given back are filled, as with --poison: whoever still looks at one is seen.
void begin_with_files(Family& s) {
    s.m.begin(2);
    s.m.header.no_words[process_canaries] = 1;
    const Process nobody = s.m.machine().nobody();
    s.m.block_of(2)->files = s.m.processes[1].block;
    s.m.block_of(1)->file_users = 2;
    s.m.block_of(1)->was_shared = 1;
    const Handle node = make_node(owner_of(nobody, s.m.block_of(1)), NodeKind::file);
    for (u32 i : {1, 2}) {
        u32 fd;
        add_descriptor(owner_of(nobody, s.m.block_of(i)),
                       {DescriptorKind::file, node, 0, wasi::right_fd_read, 0, 0, 0}, fd);
    }
}
EXPLORING_TEST(Family, TheLastUserGivesFilesBack) {
    check(
        "2 processes with an open file in common end, interrupted twice",
        Scenario<Family>{
            .begin = begin_with_files,
            .actors = {end_with_files<1>, end_with_files<2>},
            .at_end = [](Family& s) { REQUIRE(s.m.header.alive == 0 && s.m.header.leaving == 0); },
            .watched = SmallMachine::watched},
        interrupted(2));
}
// Whoever is alone with its files uses them without the lock: as the others left them.
void close_0(Family& s) {
    const Process p = s.m.process_of(1);
    Registers r{};
    s.m.words[1][SmallMachine::frame_at] = 0;
    r.fp = Slots{s.m.words[1] + SmallMachine::frame_at};
    r.rp = Slots{s.m.words[1] + SmallMachine::word_count - 8};
    r.instance = s.m.words[1];
    REQUIRE(run_system(p, s.m.words[1] + SmallMachine::thread_at, r,
                       code_word(CodeOp::system, 0, u32(SystemCall::fd_close))) == Outcome::next);
    REQUIRE(s.m.words[1][SmallMachine::frame_at] == 0);
}
EXPLORING_TEST(Family, WhoIsLeftAloneUsesFilesAlone) {
    check("a process closes a file that another had, which ends; interrupted twice",
          Scenario<Family>{.begin = begin_with_files,
                           .actors = {close_0, end<2>},
                           .watched = SmallMachine::watched},
          interrupted(2));
    check("a thread closes a file that another had, which ends",
          Scenario<Family>{.begin =
                               [](Family& s) {
                                   begin_with_files(s);
                                   s.m.block_of(1)->file_users = 1;
                                   s.m.tasks[2].process = 1;
                                   s.m.tasks[2].tid = 1;
                                   s.m.tasks[2].next_of_process = 1 + 1;
                                   s.m.tasks[1].previous_of_process = 2 + 1;
                                   s.m.processes[1].first_task = 2 + 1;
                                   s.m.processes[1].tasks = 2;
                                   u32 fd;
                                   const Process nobody = s.m.machine().nobody();
                                   const Owner owner = owner_of(nobody, s.m.block_of(1));
                                   add_descriptor(owner,
                                                  at_handle<Descriptor>(
                                                      nobody, s.m.block_of(1)->descriptors)[0],
                                                  fd);
                                   REQUIRE(fd == 1);
                               },
                           .actors = {close_0,
                                      [](Family& s) {
                                          const Process nobody = s.m.machine().nobody();
                                          ProcessBlock* me = s.m.block_of(1);
                                          {
                                              Lock lock(&me->file_lock);
                                              close_descriptor(owner_of(nobody, me), 1);
                                          }
                                          s.m.end_and_give_back(2, {});
                                      }},
                           .watched = SmallMachine::watched});
}

// Whoever finds a program by its name finds all of it.
EXPLORING_TEST(Family, AProgramIsThereWhenItIsFound) {
    check("a program is brought, a process is started of it",
          Scenario<Family>{.begin =
                               [](Family& s) {
                                   s.m.begin(1);
                                   s.m.header.programs_used = 1;
                                   s.m.programs[1].state = ProgramState::loading;
                               },
                           .actors = {[](Family& s) {
                                          ProgramEntry& program = s.m.programs[1];
                                          program.info.name_length = 1;
                                          program.info.name[0] = 'b';
                                          program.spares[0] = 2;
                                          program.spare_count = 1;
                                          publish_program(s.m.machine(), 1);
                                      },
                                      [](Family& s) {
                                          const u32 arguments[] = {16, 1, 16, 0, 0, 0, 0, 0, 24};
                                          s.m.memory[1][16] = 'b';
                                          u32 error;
                                          while ((error = s.m.call(1, [&](Call& call) {
                                                     std::memcpy(
                                                         s.m.words[1] + SmallMachine::frame_at,
                                                         arguments, sizeof arguments);
                                                     return call_process(call, SystemCall::spawn);
                                                 })) == u32(Errno::noent))
                                              pause();
                                          REQUIRE(error == 0);
                                      }},
                           .at_end = [](Family& s) { REQUIRE(s.m.header.alive == 2); },
                           .watched = SmallMachine::watched},
          {}, {.preemptions = 3});
}

}  // namespace
}  // namespace gpurun::test
