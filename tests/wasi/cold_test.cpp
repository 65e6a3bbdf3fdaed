// Files that are too large to be part of the base: the host brings them, piece by piece.
#include "base/format.h"
#include "fixture.h"

namespace gpurun::test {
namespace {

class Cold : public WasiTest {
protected:
    Cold() {
        content = pattern(host::cold_size + 10'000);
        folder.write("cold", content);
    }
    std::string content;
};

TEST_F(Cold, IsReadInPieces) {
    u32 fd = open("cold");
    EXPECT_EQ(guest().blocks_brought, 0u);
    EXPECT_EQ(read(fd, 10), content.substr(0, 10));
    EXPECT_EQ(guest().blocks_brought, 1u);
    EXPECT_EQ(read(fd, 10), content.substr(10, 10));
    EXPECT_EQ(guest().blocks_brought, 1u);
    std::string data;
    EXPECT_EQ(guest().pread(fd, 9000, 500'000, data), Errno::success);
    EXPECT_EQ(data, content.substr(500'000, 9000));
    EXPECT_EQ(guest().blocks_brought, 4u);
    // To the end and past it.
    EXPECT_EQ(guest().pread(fd, 9000, content.size() - 100, data), Errno::success);
    EXPECT_EQ(data, content.substr(content.size() - 100));
    EXPECT_EQ(guest().pread(fd, 10, content.size(), data), Errno::success);
    EXPECT_EQ(data, "");
    std::string all;
    EXPECT_EQ(guest().seek(fd, 0, whence_set), Errno::success);
    do all += data = read(fd, 50'000);
    while (!data.empty());
    EXPECT_EQ(all, content);
    EXPECT_EQ(guest().blocks_brought, (content.size() + file_block - 1) / file_block);
}

// What the host brought is the base's: others read it too.
TEST_F(Cold, IsNotChangedForOthers) {
    Caller other(system(), 1);
    u32 fd = open("cold"), fd_2 = ~0u;
    EXPECT_EQ(other.open("cold", fd_2), Errno::success);
    EXPECT_EQ(read(fd, 5000), content.substr(0, 5000));  // both blocks are here now
    u64 in_use = system().header().in_use;
    EXPECT_EQ(guest().pwrite(fd, "changed", 10), Errno::success);
    EXPECT_EQ(guest().call(SystemCall::fd_filestat_set_size, {fd, 4100}), Errno::success);
    EXPECT_GT(system().header().in_use, in_use);
    std::string data;
    EXPECT_EQ(other.read(fd_2, 10'000, data), Errno::success);
    EXPECT_EQ(data, content.substr(0, 10'000));
    EXPECT_EQ(guest().pread(fd, 100, 0, data), Errno::success);
    EXPECT_EQ(data, content.substr(0, 10) + "changed" + content.substr(17, 83));
    // Nor does it become free memory.
    EXPECT_EQ(guest().call(SystemCall::fd_filestat_set_size, {fd, 0}), Errno::success);
    for (u32 i = 0; i < 8; i++) make_file(format("f%u", i), std::string(file_block, 'f'));
    EXPECT_EQ(other.pread(fd_2, 10'000, 0, data), Errno::success);
    EXPECT_EQ(data, content.substr(0, 10'000));
    guest().end();
    other.end();
    EXPECT_EQ(system().header().in_use, 0u);
}

TEST_F(Cold, IsWrittenInPart) {
    u32 fd = open("cold");
    EXPECT_EQ(guest().pwrite(fd, "ab", 5000), Errno::success);
    EXPECT_EQ(guest().blocks_brought, 1u);
    content.replace(5000, 2, "ab");
    // Whole blocks need not come first.
    EXPECT_EQ(guest().pwrite(fd, std::string(2 * file_block, 'w'), 4 * file_block), Errno::success);
    EXPECT_EQ(guest().blocks_brought, 1u);
    content.replace(4 * file_block, 2 * file_block, 2 * file_block, 'w');
    // Past the end.
    u64 end = content.size() + 20'000;
    EXPECT_EQ(guest().pwrite(fd, "end", end), Errno::success);
    content.resize(end);
    content += "end";
    std::string data, all;
    while (guest().pread(fd, 60'000, all.size(), data) == Errno::success && !data.empty())
        all += data;
    EXPECT_EQ(all, content);
}

TEST_F(Cold, IsCutAndExtended) {
    u32 fd = open("cold");
    auto resize = [&](u64 size) {
        EXPECT_EQ(guest().call(SystemCall::fd_filestat_set_size, {fd, size}), Errno::success);
    };
    resize(100'001);
    EXPECT_EQ(guest().blocks_brought, 1u);
    resize(200'000);
    resize(u64{1} << 39);
    EXPECT_EQ(stat("cold").size, u64{1} << 39);
    resize(200'000);
    content.resize(100'001);
    content.resize(200'000);
    std::string data, all;
    while (guest().pread(fd, 60'000, all.size(), data) == Errno::success && !data.empty())
        all += data;
    EXPECT_EQ(all, content);
    close(fd);
    fd = open("cold", oflag_trunc);
    resize(5000);
    EXPECT_EQ(read(fd), std::string(5000, '\0'));
}

TEST_F(Cold, IsRenamedAndRemoved) {
    EXPECT_EQ(guest().rename("cold", "d/c"), Errno::success);
    u32 fd = open("d/c");
    EXPECT_EQ(guest().unlink("d/c"), Errno::success);
    EXPECT_EQ(read(fd, 10), content.substr(0, 10));
    EXPECT_EQ(guest().link("a.txt", "cold"), Errno::success);
    EXPECT_EQ(read(fd, 10), content.substr(10, 10));
}

TEST_F(Cold, ThatTheHostCannotRead) {
    u32 fd = open("cold");
    EXPECT_EQ(read(fd, 10), content.substr(0, 10));
    guest().blocks_to_bring = 0;
    std::string data;
    EXPECT_EQ(guest().read(fd, 10, data), Errno::success);
    EXPECT_EQ(guest().read(fd, 10'000, data), Errno::io);
    EXPECT_EQ(guest().pread(fd, 10, 20'000, data), Errno::io);
    EXPECT_EQ(guest().pwrite(fd, "x", 20'000), Errno::io);
    EXPECT_EQ(guest().call(SystemCall::fd_filestat_set_size, {fd, 20'000}), Errno::io);
    EXPECT_EQ(stat("cold").size, content.size());
    // It is said once, and where it happened.
    EXPECT_EQ(guest().pread(fd, 10, 0, data), Errno::success);
    EXPECT_EQ(data, content.substr(0, 10));
    guest().blocks_to_bring = 1;
    EXPECT_EQ(guest().pread(fd, 10, 20'000, data), Errno::success);
    EXPECT_EQ(data, content.substr(20'000, 10));
}

TEST_F(Cold, IsGoneFromTheHost) {
    u32 fd = open("cold");
    system();
    fs::resize_file(folder / "cold", 4096);
    std::string data;
    EXPECT_EQ(guest().pread(fd, 10, 0, data), Errno::success);
    guest().pread(fd, 10, 8192, data);  // zeros or an error, but an answer
    fs::remove(folder / "cold");
    guest().pread(fd, 10, 300'000, data);
}

}  // namespace
}  // namespace gpurun::test
