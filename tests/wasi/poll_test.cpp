// poll_oneoff: clocks, input, files.
#include "fixture.h"

namespace gpurun::test {
namespace {

class Poll : public WasiTest {
protected:
    static constexpr u32 in = 0x8000, out = 0x9000;
    struct Event {
        u64 userdata;
        u16 error;
        u8 type;
        u8 padding[5];
        u64 bytes;
        u16 flags;
        u8 padding_2[6];
    };
    static_assert(sizeof(Event) == 32);

    void clock(u32 i, u32 id, u64 timeout, u32 flags = 0, u32 type = event_clock) {
        u32 at = in + i * 48;
        guest().put(at, std::string(48, '\0'));
        guest().store<u64>(at, 100 + i);
        guest().store<u8>(at + 8, u8(type));
        guest().store<u32>(at + 16, id);
        guest().store<u64>(at + 24, timeout);
        guest().store<u16>(at + 40, u16(flags));
    }
    void file(u32 i, u32 fd, u32 type) { clock(i, fd, 0, 0, type); }
    Errno poll(u32 count) {
        return guest().call(SystemCall::poll_oneoff, {in, out, count, Caller::result});
    }
    std::vector<Event> events() {
        std::vector<Event> all(guest().load<u32>(Caller::result));
        for (u32 i = 0; i < all.size(); i++) all[i] = guest().load<Event>(out + i * 32);
        return all;
    }
    u64 now(u32 id) {
        EXPECT_EQ(guest().call(SystemCall::clock_time_get, {id, 0, Caller::result}),
                  Errno::success);
        return guest().load<u64>(Caller::result);
    }
};

TEST_F(Poll, WaitsForClocks) {
    constexpr u64 ms = 1'000'000;
    for (u32 id : {clock_realtime, clock_monotonic}) {
        for (bool is_absolute : {false, true}) {
            u64 begin = now(clock_monotonic);
            clock(0, id, (is_absolute ? now(id) : 0) + 5 * ms, is_absolute);
            clock(1, id, (is_absolute ? now(id) : 0) + 60'000 * ms, is_absolute);
            poll(2);
            ASSERT_EQ(guest().state(), ThreadState::sleeping);
            EXPECT_NEAR(double(guest().wait_end()), double(begin + 5 * ms), 3.0 * ms);
            // Too early it sleeps on, for what is left.
            u64 deadline = guest().wait_end();
            guest().go_on(SystemCall::poll_oneoff);
            if (guest().state() == ThreadState::sleeping && !is_absolute) {
                EXPECT_EQ(guest().wait_end(), deadline);
            }
            while (guest().state() == ThreadState::sleeping) {
                usleep(1000);
                guest().go_on(SystemCall::poll_oneoff);
            }
            EXPECT_GE(now(clock_monotonic), begin + 5 * ms);
            poll(2);
            EXPECT_EQ(guest().state() == ThreadState::sleeping, !is_absolute);
            guest().me().progress = 0;
        }
    }
    // What is due already does not wait.
    clock(0, clock_monotonic, 0);
    clock(1, clock_realtime, 1, subclock_abstime);
    clock(2, clock_monotonic, ~u64{0});
    EXPECT_EQ(poll(3), Errno::success);
    ASSERT_EQ(events().size(), 2u);
    EXPECT_EQ(events()[0].userdata, 100u);
    EXPECT_EQ(events()[1].userdata, 101u);
    EXPECT_EQ(events()[1].type, event_clock);
    EXPECT_EQ(events()[1].error, 0u);
    // For ever is no time at all.
    clock(0, clock_monotonic, ~u64{0});
    poll(1);
    EXPECT_EQ(guest().state(), ThreadState::sleeping);
    EXPECT_EQ(guest().wait_end(), ~u64{0});
}

// A machine whose clock was never set has been up for longer than the date says.
TEST_F(Poll, WaitsForAClockThatIsBehind) {
    system().header().realtime = 1000;
    u64 begin = now(clock_monotonic);
    clock(0, clock_realtime, now(clock_realtime) + 60'000'000'000, subclock_abstime);
    poll(1);
    ASSERT_EQ(guest().state(), ThreadState::sleeping);
    EXPECT_NEAR(double(guest().wait_end()), double(begin + 60'000'000'000), 1e9);
    guest().me().progress = 0;
    clock(0, clock_realtime, 999, subclock_abstime);
    EXPECT_EQ(poll(1), Errno::success);
}

TEST_F(Poll, RefusesWhatItDoesNotKnow) {
    clock(0, clock_monotonic, 0);
    EXPECT_EQ(poll(0), Errno::inval);
    EXPECT_EQ(poll(~0u), Errno::inval);
    EXPECT_EQ(poll(4097), Errno::inval);
    EXPECT_EQ(poll(4096), Errno::fault);
    auto call = [&](u64 from, u64 to, u64 result) {
        return guest().call(SystemCall::poll_oneoff, {from, to, 1, result});
    };
    for (u32 at : {Caller::memory_size, ~0u, ~0u - 31}) {
        EXPECT_EQ(call(at, out, Caller::result), Errno::fault);
        EXPECT_EQ(call(in, at, Caller::result), Errno::fault);
        EXPECT_EQ(call(in, out, at), Errno::fault);
    }
    clock(0, clock_monotonic, 0, 0, 3);
    EXPECT_EQ(poll(1), Errno::inval);
    // Clocks that cannot be waited for are told as events.
    clock(0, clock_process, 0);
    clock(1, clock_thread, 0);
    clock(2, 99, 0);
    EXPECT_EQ(poll(3), Errno::success);
    ASSERT_EQ(events().size(), 3u);
    for (const Event& event : events()) EXPECT_EQ(Errno(event.error), Errno::notsup);
}

TEST_F(Poll, Files) {
    u32 fd = open("a.txt"), read_only = open("a.txt", 0, all_rights & ~writing_rights),
        no_poll = open("a.txt", 0, right_fd_read | right_fd_write);
    EXPECT_EQ(read(fd, 5), "hello");
    file(0, fd, event_fd_read);
    file(1, fd, event_fd_write);
    file(2, read_only, event_fd_write);
    file(3, no_poll, event_fd_read);
    file(4, 99, event_fd_read);
    file(5, 0, event_fd_read);  // nothing comes there
    file(6, 1, event_fd_write);
    file(7, 1, event_fd_read);
    clock(8, clock_monotonic, ~u64{0});
    EXPECT_EQ(poll(9), Errno::success);
    std::vector<Event> all = events();
    ASSERT_EQ(all.size(), 8u);
    for (u32 i = 0; i < 8; i++) EXPECT_EQ(all[i].userdata, 100 + i);
    EXPECT_EQ(Errno(all[0].error), Errno::success);
    EXPECT_EQ(all[0].bytes, 7u);
    EXPECT_EQ(all[0].type, event_fd_read);
    EXPECT_EQ(Errno(all[1].error), Errno::success);
    EXPECT_EQ(all[1].type, event_fd_write);
    EXPECT_GT(all[1].bytes, 0u);
    EXPECT_EQ(Errno(all[2].error), Errno::notcapable);
    EXPECT_EQ(Errno(all[3].error), Errno::notcapable);
    EXPECT_EQ(Errno(all[4].error), Errno::badf);
    EXPECT_EQ(Errno(all[5].error), Errno::success);
    EXPECT_EQ(all[5].bytes, 0u);
    EXPECT_EQ(all[5].flags, 1u);
    EXPECT_EQ(Errno(all[6].error), Errno::success);
    EXPECT_EQ(Errno(all[7].error), Errno::notcapable);
}

// What a poll brought is all there to be read, whatever was read before.
TEST_F(Poll, LiveInputIsNotLost) {
    options.is_live = true;
    guest().input = {"12345", "1234567", "xyz", "", "late"};
    EXPECT_EQ(read(0, 100), "12345");
    for (const char* expected : {"1234567", "xyz"}) {
        file(0, 0, event_fd_read);
        EXPECT_EQ(poll(1), Errno::success);
        ASSERT_EQ(events().size(), 1u);
        EXPECT_EQ(events()[0].bytes, strlen(expected));
        EXPECT_EQ(events()[0].flags, 0u);
        EXPECT_EQ(read(0, 2), std::string(expected, 2));
        EXPECT_EQ(poll(1), Errno::success);
        EXPECT_EQ(events()[0].bytes, strlen(expected) - 2);
        EXPECT_EQ(read(0, 100), expected + 2);
    }
    // Nothing yet, and the time runs out.
    file(0, 0, event_fd_read);
    clock(1, clock_monotonic, 1000);
    poll(2);
    ASSERT_EQ(guest().state(), ThreadState::host);
    EXPECT_EQ(guest().me().request, Request::input);
    EXPECT_NE(guest().wait_end(), no_deadline);
    usleep(1000);
    EXPECT_EQ(Errno(guest().go_on(SystemCall::poll_oneoff)), Errno::success);
    ASSERT_EQ(events().size(), 1u);
    EXPECT_EQ(events()[0].userdata, 101u);
    EXPECT_EQ(poll(1), Errno::success);
    EXPECT_EQ(read(0, 100), "late");
    EXPECT_EQ(poll(1), Errno::success);
    EXPECT_EQ(events()[0].flags, 1u);
    EXPECT_EQ(read(0, 100), "");
}

TEST_F(Poll, LiveInputWithoutWaiting) {
    options.is_live = true;
    guest().input = {"abc"};
    EXPECT_EQ(guest().call(SystemCall::fd_fdstat_set_flags, {0, fdflag_nonblock}), Errno::success);
    std::string data;
    EXPECT_EQ(guest().read(0, 10, data), Errno::again);
    file(0, 0, event_fd_read);
    EXPECT_EQ(poll(1), Errno::success);
    EXPECT_EQ(read(0, 10), "abc");
    EXPECT_EQ(guest().read(0, 10, data), Errno::again);
    EXPECT_EQ(poll(1), Errno::success);
    EXPECT_EQ(read(0, 10), "");
}

}  // namespace
}  // namespace gpurun::test
