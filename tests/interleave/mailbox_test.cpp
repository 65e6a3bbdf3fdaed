// The mailbox warp between the host and processes: what one end writes the other reads, the bell
// rings when there is something, and what processes wrote comes before the news that they ended.
#include <cstring>

#include "abi/ring.h"
#include "small_machine.h"

namespace gpurun::test {
namespace {

struct Mailed {
    SmallMachine m;
    WarpEntry warps[first_worker];
    HostStream streams[max_host_streams];
    Mailbox box;
    // The tests' own.
    Handle node;
    Descriptor output;
    u32 error;
    u32 noted;  // processes that have left all their records

    void begin(u32 processes) {
        m.begin(processes);
        m.header.is_begun = 1;
        m.header.host_requests.mask = 7;
        m.header.host_requests.slots_at = 128;
        m.header.warps = offsetof(Mailed, warps);
        m.header.host_streams = offsetof(Mailed, streams);
        m.header.warp_count = first_worker;
    }
    RingNext next(u64 head, u64 tail) {
        return ring_next(head, tail, out_ring_bytes, [&](u64 at) {
            MessageHead what;
            std::memcpy(&what, box.out_ring + at, sizeof what);
            return what;
        });
    }
};

void serve(Mailed& s) { serve_mailbox(s.m.machine(), s.box, 0); }

// ---- host and device ---------------------------------------------------------------

constexpr u64 ping_number = 77, ping_span = message_span(sizeof(Ping));

void ask_and_stop(Mailed& s) {
    const MessageHead what = message_head(MessageKind::ping, sizeof(Ping));
    const Ping ping{ping_number};
    std::memcpy(s.box.in_ring, &what, sizeof what);
    std::memcpy(s.box.in_ring + sizeof what, &ping, sizeof ping);
    store_mapped(&s.box.in_tail, ping_span);
    while (load_mapped(&s.box.bell) == 0) pause();
    // It rings when there is something.
    const RingNext next = s.next(0, load_mapped(&s.box.out_tail));
    REQUIRE(next.state == RingState::message && next.what.kind == MessageKind::pong);
    Ping pong;
    std::memcpy(&pong, s.box.out_ring + next.at, sizeof pong);
    REQUIRE(pong.number == ping_number);
    store_mapped(&s.box.out_head, next.head);
    store_mapped(&s.box.stop, u32{stop_park});
    while (load_mapped(&s.box.is_parked) == 0) pause();
    REQUIRE(load_mapped(&s.box.stats.sequence) == 2);
    REQUIRE(load_mapped(&s.box.stats.spawned) == 5);
    REQUIRE(load_mapped(&s.box.in_head) == ping_span);
}
EXPLORING_TEST(Mailbox, BringsAnswers) {
    check("a host asks and parks the machine",
          Scenario<Mailed>{.begin =
                               [](Mailed& s) {
                                   s.begin(1);
                                   s.m.header.scratch =
                                       take_block(s.m.machine().nobody(), max_message);
                                   s.m.header.stats.spawned = 5;
                               },
                           .actors = {serve, ask_and_stop},
                           .watched = offsetof(Mailed, node),
                           .host = 1 << 1},
          interrupted(3));
}

// A writer that has filled the ring goes on where the reader has read; and what the device has read
// is the host's to write again.
void make_room(Mailed& s) {
    MessageHead seen;
    std::memcpy(&seen, s.box.out_ring, sizeof seen);
    REQUIRE(seen.size == 0);
    store_mapped(&s.box.out_head, u64{out_ring_bytes});
}
void get_message(Mailed& s) {
    u64 tail;
    while ((tail = load_mapped(&s.box.out_tail)) == out_ring_bytes) pause();
    const RingNext next = s.next(out_ring_bytes, tail);
    REQUIRE(next.state == RingState::message && next.what.size != 0);
    store_mapped(&s.box.stop, u32{stop_park});
}
void ask_in_full_ring(Mailed& s) {
    const MessageHead what = message_head(MessageKind::ping, sizeof(Ping));
    std::memcpy(s.box.in_ring, &what, sizeof what);
    store_mapped(&s.box.in_tail, ping_span);
    make_room(s);
    while (load_mapped(&s.box.in_head) != ping_span) pause();
    note(s.box.in_ring, sizeof what, true);
    std::memset(s.box.in_ring, 0, sizeof what);
    get_message(s);
}
EXPLORING_TEST(Mailbox, WaitsForRoom) {
    check("a host asks and makes room, interrupted twice",
          Scenario<Mailed>{.begin =
                               [](Mailed& s) {
                                   s.begin(1);
                                   s.m.header.scratch =
                                       take_block(s.m.machine().nobody(), max_message);
                                   s.box.out_tail = out_ring_bytes;
                               },
                           .actors = {serve, ask_in_full_ring},
                           .watched = offsetof(Mailed, node),
                           .host = 1 << 1},
          interrupted(2));
    check("a process has ended, a host makes room, interrupted twice",
          Scenario<Mailed>{.begin =
                               [](Mailed& s) {
                                   s.begin(2);
                                   s.m.processes[2].parent = host_parent;
                                   s.m.end(2, 0);
                                   s.box.out_tail = out_ring_bytes;
                               },
                           .actors = {serve,
                                      [](Mailed& s) {
                                          make_room(s);
                                          get_message(s);
                                      }},
                           .watched = offsetof(Mailed, node),
                           .host = 1 << 1},
          interrupted(2));
}

// As host::MailboxEnd::stats does.
EXPLORING_TEST(Mailbox, FiguresAreOfOneMoment) {
    check("a host reads figures while they change, interrupted twice",
          Scenario<Mailed>{.begin =
                               [](Mailed& s) {
                                   s.begin(1);
                                   s.m.header.stats.spawned = s.m.header.stats.ended = 5;
                                   s.box.stop = stop_park;
                               },
                           .actors = {serve,
                                      [](Mailed& s) {
                                          const MachineStats& stats = s.box.stats;
                                          for (;;) {
                                              const u64 before = load_mapped(&stats.sequence);
                                              const u64 spawned = load_mapped(&stats.spawned),
                                                        ended = load_mapped(&stats.ended);
                                              if (before % 2 == 0 &&
                                                  load_mapped(&stats.sequence) == before) {
                                                  REQUIRE(spawned == ended);
                                                  if (before == 2) break;
                                              }
                                              pause();
                                          }
                                      }},
                           .watched = offsetof(Mailed, node),
                           .host = 1 << 1},
          interrupted(2));
}

// ---- what processes leave ----------------------------------------------------------

void write_and_end(Mailed& s) {
    const u32 vector[2] = {16, 2};
    std::memcpy(s.m.memory[2], vector, sizeof vector);
    std::memcpy(s.m.memory[2] + 16, "ab", 2);
    s.error =
        s.m.call(2, [&](Call& call) { return call_pipe_transfer(call, &s.output, true, 0, 1, 8); });
    REQUIRE(s.error == 0);
    close_pipe(s.m.machine().nobody(), s.node, wasi::right_fd_write);
    s.m.end(2, 5);
    store_mapped(&s.box.stop, u32{stop_park});
}
void begin_output(Mailed& s, u32 parent) {
    s.begin(2);
    s.m.header.alive = 1;
    s.m.processes[2].parent = parent;
    const Process nobody = s.m.machine().nobody();
    s.node = make_pipe(nobody, 1);
    pipe_of(nobody, node_at(nobody, s.node))->host_stream = 1;
    s.streams[0].node = s.node;
    open_pipe(nobody, s.node, wasi::right_fd_read);
    open_pipe(nobody, s.node, wasi::right_fd_write);
    s.output = {DescriptorKind::stream, s.node, 0, wasi::right_fd_write, 0, 0, 0};
}
// All that was written, then the news of the end, then that nobody is left.
template <bool has_end>
void all_came_in_order(Mailed& s) {
    u64 head = 0;
    u32 bytes = 0, ended = 0, idle = 0;
    for (;;) {
        const RingNext next = s.next(head, s.box.out_tail);
        if (next.state == RingState::empty) break;
        REQUIRE(next.state == RingState::message);
        const u32 size = next.what.size - sizeof(StreamBytes);
        switch (next.what.kind) {
            case MessageKind::output:
                REQUIRE(ended == 0 && idle == 0);
                REQUIRE(size == 0 ||
                        std::memcmp(s.box.out_ring + next.at + sizeof(StreamBytes), "ab", 2) == 0);
                REQUIRE(size != 0 || bytes == 2);  // nothing comes after the end
                bytes += size;
                break;
            case MessageKind::ended:
                REQUIRE(bytes == 2 && idle == 0);
                ended++;
                break;
            case MessageKind::idle:
                REQUIRE(bytes == 2 && ended == has_end);
                idle++;
                break;
            default: REQUIRE(false);
        }
        head = next.head;
    }
    REQUIRE(bytes == 2 && ended == has_end && idle == 1);
}
EXPLORING_TEST(Mailbox, OutputComesBeforeTheEnd) {
    check("a process of the host writes and ends, interrupted once",
          Scenario<Mailed>{.begin = [](Mailed& s) { begin_output(s, host_parent); },
                           .actors = {serve, write_and_end},
                           .at_end = all_came_in_order<true>,
                           .watched = offsetof(Mailed, node)},
          interrupted(1), {.preemptions = 1});
    check("the last process writes and ends, interrupted once",
          Scenario<Mailed>{.begin = [](Mailed& s) { begin_output(s, 0); },
                           .actors = {serve, write_and_end},
                           .at_end = all_came_in_order<false>,
                           .watched = offsetof(Mailed, node)},
          interrupted(1), {.preemptions = 1});
}

// ---- the ring of records -----------------------------------------------------------

void begin_records(Mailed& s, u32 capacity) {
    s.begin(3);
    s.m.system.debug = take_block(s.m.machine().nobody(), capacity * sizeof(DebugRecord));
    s.m.system.debug_capacity = capacity;
}
// Leaves a record of process i once there is room for one, as a traced call does.
void leave_record(Mailed& s, u32 i, u32 code) {
    auto has_room = [&] {
        bool has = false;
        s.m.call(i, [&](Call& call) {
            has = has_room_for_records(call);
            return Outcome::next;
        });
        return has;
    };
    while (!has_room()) pause();
    FaultEnding ending{u32(Ending::trapped), code, code, 1, 1, {code}};
    ending.positions[max_fault_frames - 1] = code;
    note_ending(s.m.process_of(i), s.m.processes[i].pid, ending);
}
// The last one to be done parks the machine, behind the records of all.
template <u32 processes>
void have_noted(Mailed& s) {
    release_fence();
    if (fetch_add(&s.noted, 1) + 1 != processes) return;
    acquire_fence();
    store_mapped(&s.box.stop, u32{stop_park});
}
// Returns how many records were sent. Each is whole; those of a process are in their order.
u32 sent_records(Mailed& s) {
    u64 head = 0;
    u32 count = 0, last[SmallMachine::entries] = {};
    for (;; count++) {
        const RingNext next = s.next(head, s.box.out_tail);
        if (next.state == RingState::empty) return count;
        REQUIRE(next.state == RingState::message && next.what.kind == MessageKind::record);
        DebugRecord record;
        FaultEnding ended;
        std::memcpy(&record, s.box.out_ring + next.at, sizeof record);
        std::memcpy(&ended, record.text, sizeof ended);
        REQUIRE(record.kind == DebugKind::ended && record.turn == count + 1);
        REQUIRE(ended.positions[max_fault_frames - 1] == ended.code && ended.program == ended.code);
        const u32 process = record.process - SmallMachine::entries;
        REQUIRE(process < SmallMachine::entries && ended.code == ++last[process]);
        head = next.head;
    }
}
template <u32 expected>
void no_record_is_lost(Mailed& s) {
    REQUIRE(s.m.system.debug_dropped == 0);
    REQUIRE(sent_records(s) == expected);
}
EXPLORING_TEST(Mailbox, BringsRecords) {
    check("a process leaves two records, there is room for one, interrupted twice",
          Scenario<Mailed>{.begin = [](Mailed& s) { begin_records(s, 1); },
                           .actors = {serve,
                                      [](Mailed& s) {
                                          leave_record(s, 2, 1);
                                          leave_record(s, 2, 2);
                                          have_noted<1>(s);
                                      }},
                           .at_end = no_record_is_lost<2>,
                           .watched = offsetof(Mailed, node)},
          interrupted(2));
    auto second = [](Mailed& s) {
        leave_record(s, 2, 1);
        have_noted<2>(s);
    };
    auto third = [](Mailed& s) {
        leave_record(s, 3, 1);
        have_noted<2>(s);
    };
    check("two processes leave a record, there is room for both, interrupted twice, then once",
          Scenario<Mailed>{.begin = [](Mailed& s) { begin_records(s, 2); },
                           .actors = {serve, second, third},
                           .at_end = no_record_is_lost<2>,
                           .watched = offsetof(Mailed, node)},
          interrupted(2), {.preemptions = 1});
    // Who saw room for a record may find that another has taken it.
    check("two processes leave a record, there is room for one, interrupted once",
          Scenario<Mailed>{.begin = [](Mailed& s) { begin_records(s, 1); },
                           .actors = {serve, second, third},
                           .at_end =
                               [](Mailed& s) {
                                   REQUIRE(s.m.system.debug_dropped <= 1);
                                   REQUIRE(sent_records(s) + s.m.system.debug_dropped == 2);
                               },
                           .watched = offsetof(Mailed, node)},
          interrupted(1), {.preemptions = 1});
}
// What ended a process of the host comes before the news that it ended.
EXPLORING_TEST(Mailbox, RecordsComeBeforeTheEnd) {
    check("a process of the host leaves a record and ends, interrupted once",
          Scenario<Mailed>{.begin =
                               [](Mailed& s) {
                                   begin_records(s, 2);
                                   s.m.header.alive = 1;
                                   s.m.processes[2].parent = host_parent;
                               },
                           .actors = {serve,
                                      [](Mailed& s) {
                                          leave_record(s, 2, 1);
                                          s.m.end(2, 5);
                                          store_mapped(&s.box.stop, u32{stop_park});
                                      }},
                           .at_end =
                               [](Mailed& s) {
                                   std::vector<MessageKind> kinds;
                                   for (u64 head = 0;;) {
                                       const RingNext next = s.next(head, s.box.out_tail);
                                       if (next.state == RingState::empty) break;
                                       kinds.push_back(next.what.kind);
                                       head = next.head;
                                   }
                                   REQUIRE(kinds.size() >= 2 && kinds[0] == MessageKind::record &&
                                           kinds[1] == MessageKind::ended);
                               },
                           .watched = offsetof(Mailed, node)},
          interrupted(1), {.preemptions = 1});
}

}  // namespace
}  // namespace gpurun::test
