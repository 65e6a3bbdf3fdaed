// fd_read, fd_write, fd_pread, fd_pwrite, of files and of streams.
#include "fixture.h"

namespace gpurun::test {
namespace {

using Transfer = WasiTest;

TEST_F(Transfer, ReadsWritesAndSeeks) {
    u32 fd = open("n", oflag_creat);
    std::string data = pattern(50'000);
    write(fd, data);
    EXPECT_EQ(read(fd), "");
    EXPECT_EQ(guest().seek(fd, 4090, whence_set), Errno::success);
    EXPECT_EQ(read(fd, 10), data.substr(4090, 10));
    write(fd, "0123456789");
    data.replace(4100, 10, "0123456789");
    u64 at = 0;
    EXPECT_EQ(guest().seek(fd, 0, whence_cur, &at), Errno::success);
    EXPECT_EQ(at, 4110u);
    EXPECT_EQ(guest().seek(fd, -20, whence_end, &at), Errno::success);
    EXPECT_EQ(at, 49'980u);
    EXPECT_EQ(read(fd), data.substr(49'980));
    EXPECT_EQ(guest().seek(fd, -50'000, whence_cur, &at), Errno::success);
    EXPECT_EQ(at, 0u);
    EXPECT_EQ(read(fd), data);
    for (auto [distance, whence] : {std::pair<s64, u32>{-1, whence_set},
                                    {-50'001, whence_end},
                                    {-50'001, whence_cur},
                                    {0, 3},
                                    {0, ~0u},
                                    {s64(~u64{0} >> 1), whence_cur},
                                    {s64(u64{1} << 63), whence_cur}})
        EXPECT_EQ(guest().seek(fd, distance, whence), Errno::inval) << distance << " " << whence;
    EXPECT_EQ(guest().call(SystemCall::fd_seek, {fd, 0, 0, Caller::memory_size - 7}), Errno::fault);
    EXPECT_EQ(guest().call(SystemCall::fd_tell, {fd, ~0u}), Errno::fault);
    EXPECT_EQ(guest().call(SystemCall::fd_tell, {fd, Caller::result}), Errno::success);
    EXPECT_EQ(guest().load<u64>(Caller::result), 50'000u);
    // Beyond the end: nothing to read, and a hole if something is written.
    EXPECT_EQ(guest().seek(fd, 60'000, whence_set), Errno::success);
    EXPECT_EQ(read(fd), "");
    write(fd, "x");
    EXPECT_EQ(guest().seek(fd, 50'000, whence_set), Errno::success);
    EXPECT_EQ(read(fd), std::string(10'000, '\0') + "x");
    EXPECT_EQ(guest().seek(fd, s64(~u64{0} >> 1), whence_set), Errno::success);
    EXPECT_EQ(read(fd), "");
    EXPECT_EQ(guest().write(fd, "x"), Errno::fbig);
}

TEST_F(Transfer, AtAPositionLeavesThePositionAlone) {
    u32 fd = open("a.txt");
    EXPECT_EQ(read(fd, 3), "hel");
    std::string data;
    EXPECT_EQ(guest().pread(fd, 5, 7, data), Errno::success);
    EXPECT_EQ(data, "world");
    EXPECT_EQ(guest().pwrite(fd, "WORLD!", 7), Errno::success);
    EXPECT_EQ(read(fd), "lo, WORLD!");
    EXPECT_EQ(guest().pread(fd, 5, 100, data), Errno::success);
    EXPECT_EQ(data, "");
    EXPECT_EQ(guest().pread(fd, 5, ~u64{0}, data), Errno::success);
    EXPECT_EQ(data, "");
    EXPECT_EQ(guest().pwrite(fd, "x", ~u64{0}), Errno::fbig);
    EXPECT_EQ(guest().pwrite(fd, "x", max_file), Errno::fbig);
    EXPECT_EQ(guest().pwrite(fd, "", ~u64{0}), Errno::success);
    EXPECT_EQ(stat("a.txt").size, 13u);
    EXPECT_EQ(guest().pwrite(fd, "x", 1 << 20), Errno::success);
    EXPECT_EQ(stat("a.txt").size, (1u << 20) + 1);
    EXPECT_EQ(guest().pread(fd, 5, (1 << 20) - 4, data), Errno::success);
    EXPECT_EQ(data, std::string("\0\0\0\0x", 5));
}

TEST_F(Transfer, Appends) {
    u32 fd = open("a.txt", 0, all_rights, 3, fdflag_append), other = open("a.txt");
    write(fd, "1");
    write(other, "J");
    write(fd, "2");
    EXPECT_EQ(guest().seek(fd, 0, whence_set), Errno::success);
    write(fd, "3");
    EXPECT_EQ(read(fd), "");
    EXPECT_EQ(read_path("a.txt"), "Jello, world123");
    EXPECT_EQ(guest().pwrite(fd, "Y", 0), Errno::success);
    EXPECT_EQ(guest().call(SystemCall::fd_fdstat_set_flags, {fd, 0}), Errno::success);
    EXPECT_EQ(guest().seek(fd, 4, whence_set), Errno::success);
    write(fd, "0");
    EXPECT_EQ(read_path("a.txt"), "Yell0, world123");
    std::string long_text = pattern(30'000);
    EXPECT_EQ(guest().call(SystemCall::fd_fdstat_set_flags, {fd, fdflag_append}), Errno::success);
    write(fd, long_text);
    EXPECT_EQ(read_path("a.txt"), "Yell0, world123" + long_text);
}

TEST_F(Transfer, AppendThatFailsDoesNotSeek) {
    u32 fd = open("a.txt", 0, all_rights, 3, fdflag_append);
    EXPECT_EQ(read(fd, 5), "hello");
    EXPECT_EQ(guest().call(SystemCall::fd_filestat_set_size, {fd, max_file}), Errno::success);
    EXPECT_EQ(guest().write(fd, "x"), Errno::fbig);
    EXPECT_EQ(read(fd, 7), ", world");
}

TEST_F(Transfer, Vectors) {
    Caller& g = guest();
    u32 fd = open("n", oflag_creat);
    std::string data = pattern(20'000);
    g.put(Caller::buffer, data);
    // Some empty, one not aligned, the table not either.
    const u32 sizes[] = {0, 1, 4095, 0, 8000, 7904, 0};
    u32 at = Caller::buffer, count = 0;
    auto set = [&](u32 i, u32 address, u32 size) {
        g.store<u32>(Caller::vectors + 1 + i * 8, address);
        g.store<u32>(Caller::vectors + 5 + i * 8, size);
    };
    for (u32 size : sizes) {
        set(count++, at, size);
        at += size;
    }
    auto call = [&](SystemCall which, u32 n) {
        return g.call(which, {fd, Caller::vectors + 1, n, Caller::result + 3});
    };
    EXPECT_EQ(call(SystemCall::fd_write, count), Errno::success);
    EXPECT_EQ(g.load<u32>(Caller::result + 3), 20'000u);
    EXPECT_EQ(g.seek(fd, 0, whence_set), Errno::success);
    g.put(Caller::buffer, std::string(20'000, 0));
    EXPECT_EQ(call(SystemCall::fd_read, count), Errno::success);
    EXPECT_EQ(g.load<u32>(Caller::result + 3), 20'000u);
    EXPECT_EQ(g.bytes(Caller::buffer, 20'000), data);
    // None, too many, and a table that is not there.
    EXPECT_EQ(call(SystemCall::fd_write, 0), Errno::success);
    EXPECT_EQ(g.load<u32>(Caller::result + 3), 0u);
    for (u32 n : {1025u, 0x20000000u, ~0u}) {
        EXPECT_EQ(call(SystemCall::fd_write, n), Errno::inval) << n;
        EXPECT_EQ(call(SystemCall::fd_read, n), Errno::inval) << n;
    }
    for (u32 i = 0; i < 1024; i++) set(i, Caller::buffer + i, 1);
    EXPECT_EQ(call(SystemCall::fd_write, 1024), Errno::success);
    EXPECT_EQ(g.load<u32>(Caller::result + 3), 1024u);
    for (u32 table : {Caller::memory_size - 7, Caller::memory_size, ~0u - 7, ~0u}) {
        EXPECT_EQ(g.call(SystemCall::fd_write, {fd, table, 1, Caller::result}), Errno::fault);
        EXPECT_EQ(g.call(SystemCall::fd_pread, {fd, table, 1, 0, Caller::result}), Errno::fault);
    }
    set(0, Caller::buffer, 10);
    for (u32 result : {Caller::memory_size - 3, ~0u})
        for (SystemCall which : {SystemCall::fd_write, SystemCall::fd_read})
            EXPECT_EQ(g.call(which, {fd, Caller::vectors + 1, 1, result}), Errno::fault);
}

TEST_F(Transfer, ThatFailsHasDoneNothing) {
    Caller& g = guest();
    u32 fd = open("a.txt");
    auto set = [&](u32 i, u32 address, u32 size) {
        g.store<u32>(Caller::vectors + i * 8, address);
        g.store<u32>(Caller::vectors + i * 8 + 4, size);
    };
    g.put(Caller::buffer, "12345");
    set(0, Caller::buffer, 5);
    for (auto [address, size] : {std::pair<u32, u32>{Caller::memory_size - 4, 5},
                                 {Caller::memory_size + 1, 0},
                                 {~0u, 1},
                                 {~0u, ~0u},
                                 {0, ~0u},
                                 {1, Caller::memory_size}}) {
        set(1, address, size);
        for (SystemCall which : {SystemCall::fd_write, SystemCall::fd_read})
            EXPECT_EQ(g.call(which, {fd, Caller::vectors, 2, Caller::result}), Errno::fault);
        for (SystemCall which : {SystemCall::fd_pwrite, SystemCall::fd_pread})
            EXPECT_EQ(g.call(which, {fd, Caller::vectors, 2, 0, Caller::result}), Errno::fault);
    }
    EXPECT_EQ(g.bytes(Caller::buffer, 5), "12345");
    EXPECT_EQ(read(fd), "hello, world");
}

// More than 2 GiB in a vector: a part is read or written, not nothing, which would be the end.
TEST_F(Transfer, OfTwoGigabytes) {
    constexpr u64 size = u64{5} << 29;
    options.arena_size = 64 << 20;
    Caller huge(system(), 0, size);
    u32 fd = ~0u;
    EXPECT_EQ(huge.open("a.txt", fd), Errno::success);
    huge.store<u32>(Caller::vectors, Caller::buffer);
    huge.store<u32>(Caller::vectors + 4, u32(size - Caller::buffer));
    auto call = [&](SystemCall which) {
        return huge.call(which, {fd, Caller::vectors, 1, Caller::result});
    };
    EXPECT_EQ(call(SystemCall::fd_read), Errno::success);
    EXPECT_EQ(huge.load<u32>(Caller::result), 12u);
    EXPECT_EQ(huge.bytes(Caller::buffer, 12), "hello, world");
    EXPECT_EQ(call(SystemCall::fd_write), Errno::success);  // what memory there is
    EXPECT_GT(huge.load<u32>(Caller::result), 1u << 20);
}

// Long output of a live process is taken away while it is being written.
TEST_F(Transfer, LiveOutputGoesOutOnce) {
    options.is_live = true;
    Caller& g = guest();
    g.takes_output_between = true;
    std::string data = pattern(90'000), all;
    write(1, "first");
    write(1, data);
    write(1, "last");
    g.take_output();
    EXPECT_EQ(g.taken[0], "first" + data + "last");
    // It does not pile up either.
    g.takes_output_between = false;
    g.taken[0].clear();
    u64 bump = system().header().bump;
    for (u32 i = 0; i < 20; i++) write(1, data);
    g.take_output();
    for (u32 i = 0; i < 20; i++) all += data;
    EXPECT_EQ(g.taken[0], all);
    EXPECT_LT(system().header().bump - bump, 200'000u);
    EXPECT_EQ(g.taken[1], "");
    write(2, "error");
    g.take_output();
    EXPECT_EQ(g.taken[1], "error");
}

}  // namespace
}  // namespace gpurun::test
