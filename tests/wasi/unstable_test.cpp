// wasi_unstable, where it differs from what came after it.
#include "fixture.h"

namespace gpurun::test {
namespace {

class Unstable : public WasiTest {
protected:
    Errno seek(u32 fd, s64 distance, u32 whence, u64& to) {
        Errno error =
            guest().call(SystemCall::unstable_fd_seek, {fd, u64(distance), whence, Caller::result});
        to = guest().load<u64>(Caller::result);
        return error;
    }
    // Bytes behind what is written stay.
    static constexpr u64 untouched = 0xaaaaaaaaaaaaaaaa;
    void check_filestat(const Caller::Filestat& now) {
        EXPECT_EQ(guest().load<u64>(Caller::result), now.device);
        EXPECT_EQ(guest().load<u64>(Caller::result + 8), now.inode);
        EXPECT_EQ(guest().load<u32>(Caller::result + 16), now.type);
        EXPECT_EQ(guest().load<u32>(Caller::result + 20), now.links);
        EXPECT_EQ(guest().load<u64>(Caller::result + 24), now.size);
        EXPECT_EQ(guest().load<u64>(Caller::result + 32), now.accessed);
        EXPECT_EQ(guest().load<u64>(Caller::result + 40), now.modified);
        EXPECT_EQ(guest().load<u64>(Caller::result + 48), now.changed);
        EXPECT_EQ(guest().load<u64>(Caller::result + 56), untouched);
    }
};

TEST_F(Unstable, SeeksByNumbersOfItsOwn) {
    constexpr u32 cur = 0, end = 1, set = 2;
    u32 fd = open("a.txt");  // "hello, world"
    u64 to = 0;
    EXPECT_EQ(seek(fd, 7, set, to), Errno::success);
    EXPECT_EQ(to, 7u);
    EXPECT_EQ(seek(fd, -2, cur, to), Errno::success);
    EXPECT_EQ(to, 5u);
    EXPECT_EQ(seek(fd, -1, end, to), Errno::success);
    EXPECT_EQ(to, 11u);
    EXPECT_EQ(seek(fd, 0, cur, to), Errno::success);
    EXPECT_EQ(to, 11u);
    EXPECT_EQ(seek(fd, 0, 3, to), Errno::inval);
    EXPECT_EQ(seek(fd, 0, ~u32{0}, to), Errno::inval);
    EXPECT_EQ(seek(fd, -1, set, to), Errno::inval);
    EXPECT_EQ(seek(0, 0, cur, to), Errno::spipe);
    // The right to tell is enough to ask for the position.
    u32 teller = open("a.txt", 0, right_fd_tell);
    EXPECT_EQ(seek(teller, 0, cur, to), Errno::success);
    EXPECT_EQ(seek(teller, 0, set, to), Errno::notcapable);
}

TEST_F(Unstable, FilestatsAreShorter) {
    Caller& g = guest();
    u32 fd = open("a.txt");
    Caller::Filestat now{};
    ASSERT_EQ(g.stat_fd(fd, now), Errno::success);
    g.store<u64>(Caller::result + 56, untouched);
    EXPECT_EQ(g.call(SystemCall::unstable_fd_filestat_get, {fd, Caller::result}), Errno::success);
    check_filestat(now);

    ASSERT_EQ(g.stat("d", now), Errno::success);
    EXPECT_EQ(now.size, 4096u);
    g.store<u64>(Caller::result + 56, untouched);
    Text a = g.text("d");
    EXPECT_EQ(
        g.call(SystemCall::unstable_path_filestat_get, {3, 0, a.at, a.length, Caller::result}),
        Errno::success);
    check_filestat(now);

    EXPECT_EQ(g.call(SystemCall::unstable_fd_filestat_get, {fd, Caller::memory_size - 56}),
              Errno::success);
    EXPECT_EQ(g.call(SystemCall::unstable_fd_filestat_get, {fd, Caller::memory_size - 55}),
              Errno::fault);
    EXPECT_EQ(g.call(SystemCall::unstable_fd_filestat_get, {99, Caller::result}), Errno::badf);
}

TEST_F(Unstable, SubscriptionsOfClocksHaveAnIdentifier) {
    Caller& g = guest();
    constexpr u32 in = 0x8000, out = 0x9000, size = 56;
    g.put(in, std::string(2 * size, '\0'));
    g.store<u64>(in, 7);
    g.store<u8>(in + 8, event_clock);
    g.store<u64>(in + 16, 0x1234567890);  // identifier
    g.store<u32>(in + 24, clock_monotonic);
    g.store<u64>(in + 32, 1);  // ns since then
    g.store<u16>(in + 48, subclock_abstime);
    g.store<u64>(in + size, 8);
    g.store<u8>(in + size + 8, event_fd_write);
    g.store<u32>(in + size + 16, 1);
    ASSERT_EQ(g.call(SystemCall::unstable_poll_oneoff, {in, out, 2, Caller::result}),
              Errno::success);
    ASSERT_EQ(g.load<u32>(Caller::result), 2u);
    EXPECT_EQ(g.load<u64>(out), 7u);
    EXPECT_EQ(g.load<u8>(out + 10), event_clock);
    EXPECT_EQ(g.load<u64>(out + 32), 8u);
    EXPECT_EQ(g.load<u8>(out + 42), event_fd_write);
    // All of the last one has to be there.
    EXPECT_EQ(g.call(SystemCall::unstable_poll_oneoff,
                     {Caller::memory_size - 55, out, 1, Caller::result}),
              Errno::fault);
    // A clock that is not due yet.
    g.store<u64>(in + 32, 3'600'000'000'000);
    g.store<u16>(in + 48, 0);
    g.call(SystemCall::unstable_poll_oneoff, {in, out, 1, Caller::result});
    EXPECT_EQ(g.state(), ThreadState::sleeping);
}

}  // namespace
}  // namespace gpurun::test
