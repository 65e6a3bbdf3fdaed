// No call holds its lane for long, whatever it is asked for: long ones are done in turns, and what
// is sparse or many costs no more than what is there.
#include <chrono>

#include "base/format.h"
#include "fixture.h"

namespace gpurun::test {
namespace {

using Bounded = WasiTest;

TEST_F(Bounded, SparseFilesCostWhatIsInThem) {
    u32 fd = open("sparse", oflag_creat);
    u64 before = system().header().in_use;
    for (u64 at = 1; at <= max_file / 2; at *= 4)
        EXPECT_EQ(guest().pwrite(fd, "x", at - 1), Errno::success) << at;
    EXPECT_EQ(guest().pwrite(fd, "end", max_file - 3), Errno::success);
    EXPECT_EQ(guest().pwrite(fd, "x", max_file), Errno::fbig);
    EXPECT_LT(system().header().in_use - before, 4u << 20);
    std::string data;
    for (u64 at = 4; at <= max_file / 2; at *= 4) {
        EXPECT_EQ(guest().pread(fd, 3, at - 2, data), Errno::success);
        EXPECT_EQ(data, std::string("\0x\0", 3)) << at;
    }
    EXPECT_EQ(guest().pread(fd, 10, max_file - 4, data), Errno::success);
    EXPECT_EQ(data, std::string("\0end", 4));
    // What is cut off in the middle of a table is zeros when it grows again.
    EXPECT_EQ(guest().pwrite(fd, "ab", (u64{1} << 30) + file_block - 1), Errno::success);
    auto set_size = [&](u64 size) {
        return guest().call(SystemCall::fd_filestat_set_size, {fd, size});
    };
    EXPECT_EQ(set_size((u64{1} << 30) + file_block), Errno::success);
    EXPECT_EQ(set_size(max_file), Errno::success);
    EXPECT_EQ(guest().pread(fd, 3, (u64{1} << 30) + file_block - 2, data), Errno::success);
    EXPECT_EQ(data, std::string("\0a\0", 3));
    EXPECT_EQ(guest().pread(fd, 4, max_file - 4, data), Errno::success);
    EXPECT_EQ(data, std::string(4, '\0'));
    EXPECT_EQ(guest().call(SystemCall::fd_allocate, {fd, 0, max_file}), Errno::success);
    EXPECT_EQ(set_size(0), Errno::success);
    close(fd);
    EXPECT_EQ(guest().unlink("sparse"), Errno::success);
    EXPECT_LE(system().header().in_use, before);
}

TEST_F(Bounded, LongGuestBlocksComeInPieces) {
    constexpr u32 size = 1'000'000;
    Caller g(system(), 0, 2 << 20);
    auto call = [&](SystemCall which, std::initializer_list<u64> arguments, u32 least_turns) {
        u32 result = g.call_raw(which, arguments);
        EXPECT_GE(g.turns(), least_turns) << call_names[u32(which)];
        return result;
    };
    // Memory that others have used reads as zeros.
    u32 first = call(SystemCall::alloc, {size}, size / rt::chunk_bytes);
    std::memset(g.memory(), 7, size);
    EXPECT_EQ(call(SystemCall::write, {first, 0, 0, size}, size / rt::chunk_bytes), size);
    g.call_raw(SystemCall::free, {first});
    u32 block = call(SystemCall::alloc, {size}, size / rt::chunk_bytes);
    EXPECT_EQ(call(SystemCall::read, {block, 0, 0, size}, size / rt::chunk_bytes), size);
    EXPECT_EQ(std::count(g.memory(), g.memory() + size, 0), size);
    std::memset(g.memory(), 9, size);
    EXPECT_EQ(call(SystemCall::write, {block, 0, 0, size}, 2), size);
    EXPECT_EQ(call(SystemCall::realloc, {block, 2 * size}, 2), block);
    EXPECT_EQ(call(SystemCall::read, {block, size / 2, 0, size}, 2), size);
    EXPECT_EQ(std::count(g.memory(), g.memory() + size / 2, 9), size / 2);
    EXPECT_EQ(std::count(g.memory() + size / 2, g.memory() + size, 0), size / 2);
    EXPECT_EQ(call(SystemCall::realloc, {block, 10}, 1), block);
    EXPECT_EQ(call(SystemCall::read, {block, 0, 0, 10}, 1), 10u);
    EXPECT_EQ(g.load<u8>(9), 9u);
    EXPECT_EQ(call(SystemCall::alloc, {~0u}, 1), 0u);
    // One that ends in between leaves nothing.
    g.end();
    EXPECT_EQ(system().header().in_use, 0u);
}

class ManyFiles : public WasiTest {
protected:
    static constexpr u32 count = 20'000;
    static std::string name(u32 i) { return format("file-%u", i * 7919 % count); }
};

TEST_F(ManyFiles, AreFoundAndRemovedQuickly) {
    auto began = std::chrono::steady_clock::now();
    u32 fd = ~0u;
    for (u32 i = 0; i < count; i++) {
        ASSERT_EQ(guest().open("none/" + name(i), fd, oflag_creat), Errno::success);
        close(fd);
    }
    u32 directory = open_directory("none");
    // A listing into one large buffer takes turns, and is whole.
    std::vector<Caller::Entry> entries;
    u64 cookie = 2;
    u32 seen = 0, most_turns = 0;
    while (guest().readdir(directory, cookie, entries, 60'000) == Errno::success &&
           !entries.empty()) {
        most_turns = std::max(most_turns, guest().turns());
        for (const Caller::Entry& entry : entries) EXPECT_EQ(entry.name, name(seen++));
        cookie = entries.back().next;
    }
    EXPECT_EQ(seen, count);
    EXPECT_GT(most_turns, 10u);
    Caller::Filestat stat{};
    for (u32 i = 0; i < count; i++)
        ASSERT_EQ(guest().stat("none/" + name(i), stat), Errno::success);
    // The cookie of the middle stays good while what is before it goes.
    ASSERT_EQ(guest().readdir(directory, 2 + count / 2, entries), Errno::success);
    std::string middle = entries[0].name;
    for (u32 i = 0; i < count / 2; i++)
        ASSERT_EQ(guest().unlink("none/" + name(i)), Errno::success);
    for (u32 i = 0; i < 100; i++) make_file(format("none/new-%u", i), "");
    ASSERT_EQ(guest().readdir(directory, 2 + count / 2, entries), Errno::success);
    EXPECT_EQ(entries[0].name, middle);
    EXPECT_EQ(stat_error("none/" + name(0)), Errno::noent);
    EXPECT_EQ(stat_error("none/" + name(count - 1)), Errno::success);
    guest().end();
    EXPECT_EQ(system().header().in_use, 0u);
    EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(10));
}

// Copies of the base's files are found again, removed and made anew.
TEST_F(ManyFiles, OfTheBaseAreCopied) {
    constexpr u32 base_count = 500;
    for (u32 i = 0; i < base_count; i++) folder.write(format("many/%u", i), "base");
    for (u32 round = 0; round < 2; round++)
        for (u32 i = 0; i < base_count; i++) {
            u32 fd = open(format("many/%u", i));
            write(fd, round == 0 ? "mine" : "hers");
            close(fd);
        }
    EXPECT_EQ(read_path("many/77"), "hers");
    EXPECT_EQ(guest().me().copy_count, base_count + 2);
    for (u32 i = 0; i < base_count; i += 2)
        ASSERT_EQ(guest().unlink(format("many/%u", i)), Errno::success);
    EXPECT_EQ(guest().me().copy_count, base_count / 2 + 2);
    for (u32 i = 0; i < base_count; i++)
        ASSERT_EQ(stat_error(format("many/%u", i)), i % 2 ? Errno::success : Errno::noent);
    EXPECT_EQ(guest().rename("many/1", "moved"), Errno::success);
    EXPECT_EQ(read_path("moved"), "hers");
    guest().end();
    EXPECT_EQ(system().header().in_use, 0u);
}

}  // namespace
}  // namespace gpurun::test
