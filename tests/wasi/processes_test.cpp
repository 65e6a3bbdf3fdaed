// Several processes of one system: what each changes is its own, and goes with it.
#include <algorithm>
#include <random>
#include <thread>

#include "base/format.h"
#include "fixture.h"
#include "host/harvest.h"

namespace gpurun::test {
namespace {

using Processes = WasiTest;

TEST_F(Processes, DoNotSeeEachOther) {
    Caller a(system(), 0), b(system(), 1);
    std::vector<u8> base(system().data(), system().data() + system().header().base_end);
    u32 fd = ~0u;
    EXPECT_EQ(a.open("a.txt", fd), Errno::success);
    EXPECT_EQ(a.write(fd, "HELLO"), Errno::success);
    EXPECT_EQ(a.unlink("d/x"), Errno::success);
    EXPECT_EQ(a.rename("d", "moved"), Errno::success);
    EXPECT_EQ(a.make_directory("mine"), Errno::success);
    Caller::Filestat stat{};
    EXPECT_EQ(b.stat("mine", stat), Errno::noent);
    EXPECT_EQ(b.stat("moved", stat), Errno::noent);
    EXPECT_EQ(b.stat("d/x", stat), Errno::success);
    std::string data;
    EXPECT_EQ(b.open("a.txt", fd), Errno::success);
    EXPECT_EQ(b.read(fd, 100, data), Errno::success);
    EXPECT_EQ(data, "hello, world");
    // Both change the same file.
    EXPECT_EQ(b.pwrite(fd, "J", 0), Errno::success);
    for (auto [process, expected] :
         {std::pair<Caller*, const char*>{&a, "HELLO, world"}, {&b, "Jello, world"}}) {
        EXPECT_EQ(process->open("a.txt", fd), Errno::success);
        EXPECT_EQ(process->read(fd, 100, data), Errno::success);
        EXPECT_EQ(data, expected);
    }
    // Descriptors are each one's own.
    EXPECT_EQ(b.read(fd + 1, 1, data), Errno::badf);
    Caller c(system(), 2);
    EXPECT_EQ(c.read(4, 1, data), Errno::badf);
    EXPECT_EQ(c.open("a.txt", fd), Errno::success);
    EXPECT_EQ(c.read(fd, 100, data), Errno::success);
    EXPECT_EQ(data, "hello, world");
    // Nothing of the base has changed, but for the header.
    EXPECT_EQ(
        std::memcmp(base.data() + sizeof(SystemHeader), system().data() + sizeof(SystemHeader),
                    base.size() - sizeof(SystemHeader)),
        0);
    auto changes = host::changes(system().used(), a.block());
    ASSERT_TRUE(changes);
    std::vector<std::string> paths;
    for (const host::Change& change : *changes) paths.push_back(change.path);
    EXPECT_NE(std::ranges::find(paths, "mine"), paths.end());
    EXPECT_NE(std::ranges::find(paths, "moved/e/y"), paths.end());
    EXPECT_EQ(std::ranges::find(paths, "empty"), paths.end());
    changes = host::changes(system().used(), b.block());
    ASSERT_TRUE(changes);
    ASSERT_EQ(changes->size(), 1u);
    EXPECT_EQ((*changes)[0].path, "a.txt");
    changes = host::changes(system().used(), c.block());
    ASSERT_TRUE(changes);
    EXPECT_TRUE(changes->empty());
}

// What a guest does at random; every third time it leaves everything as it is.
void do_something(Caller& g, std::mt19937& random) {
    const char* const names[] = {"a.txt", "d", "d/x", "d/e/y", "n", "d/n", "n/m", "none", "none/k"};
    auto name = [&] { return names[random() % std::size(names)]; };
    u32 fd = 4 + random() % 6;
    switch (random() % 12) {
        case 0: g.open(name(), fd, oflag_creat); break;
        case 1: g.open(name(), fd, oflag_creat | oflag_trunc); break;
        case 2: g.open(name(), fd, oflag_directory, all_rights & ~u64{right_fd_write}); break;
        case 3: g.close(fd); break;
        case 4: g.write(fd, std::string(random() % 20'000, 'w')); break;
        case 5: g.make_directory(name()); break;
        case 6: g.unlink(name()); break;
        case 7: g.remove_directory(name()); break;
        case 8: g.rename(name(), name()); break;
        case 9: g.link(name(), name()); break;
        case 10: g.symlink(name(), name()); break;
        default: g.call_raw(SystemCall::alloc, {random() % 3000}); break;
    }
    if (random() % 8 == 0) g.write(1, "output");
}

TEST_F(Processes, LeaveNothingBehind) {
    std::mt19937 random(1);
    u64 most = 0;
    for (u32 id = 0; id < 300; id++) {
        Caller g(system(), id);
        u32 count = random() % 100;
        for (u32 i = 0; i < count; i++) do_something(g, random);
        g.end();
        ASSERT_EQ(system().header().in_use, 0u) << id;
        if (id == 150) most = system().header().bump;
    }
    // What was given back is used again.
    EXPECT_LT(system().header().bump - most, 2u << 20);
}

TEST_F(Processes, LeaveNothingBehindWhenTheyOverlap) {
    std::mt19937 random(2);
    std::deque<std::unique_ptr<Caller>> running;
    for (u32 id = 0; id < 100; id++) {
        running.push_back(std::make_unique<Caller>(system(), id));
        for (u32 i = 0; i < 100; i++) do_something(*running[random() % running.size()], random);
        if (running.size() > 6) running.erase(running.begin() + random() % running.size());
    }
    running.clear();
    EXPECT_EQ(system().header().in_use, 0u);
}

// The heap and its counters are all that they share.
TEST_F(Processes, LeaveNothingBehindInThreads) {
    System& shared = system();
    std::vector<std::thread> threads;
    for (u32 t = 0; t < 4; t++)
        threads.emplace_back([&shared, t] {
            std::mt19937 random(t);
            for (u32 i = 0; i < 40; i++) {
                Caller g(shared, t * 1000 + i);
                for (u32 k = 0; k < 50; k++) do_something(g, random);
                u32 fd = ~0u;
                std::string mine = std::to_string(g.me().id), data;
                if (g.open("mine", fd, oflag_creat) != Errno::success) continue;
                g.write(fd, mine);
                EXPECT_EQ(g.pread(fd, 100, 0, data), Errno::success);
                EXPECT_EQ(data, mine);
            }
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(shared.header().in_use, 0u);
}

// Its files and streams stay for the host; all else goes.
TEST_F(Processes, KeepWhatTheHostWants) {
    options.keeps_files = true;
    make_file("n", "new");
    open("a.txt");
    guest().call_raw(SystemCall::alloc, {100'000});
    write(1, "output");
    Handle block = guest().block();
    u64 in_use = system().header().in_use;
    guest().end(true);
    EXPECT_LT(system().header().in_use, in_use - 100'000);
    ProcessBlock& me = *guest().at<ProcessBlock>(block);
    EXPECT_EQ(guest().content(*guest().at<Node>(me.output)), "output");
    auto changes = host::changes(system().used(), block);
    ASSERT_TRUE(changes);
    ASSERT_EQ(changes->size(), 1u);
    EXPECT_EQ((*changes)[0].path, "n");
    EXPECT_EQ(*host::contents(system().used(), (*changes)[0].node), "new");
    rt::end_process(guest().process(), block, false);
    EXPECT_EQ(system().header().in_use, 0u);
}

// Files that nobody asked for make room for those of the next.
TEST_F(Processes, LeaveNoFilesThatNobodyWants) {
    SystemHeader& header = system().header();
    header.size = header.bump + (256 << 10);
    constexpr u32 kept = 256 + 3 * 128 + 64;  // what the host looks at, at the most
    for (u32 id = 0; id < 200; id++) {
        Caller g(system(), id);
        ASSERT_TRUE(g.has_begun()) << id;
        u32 fd = ~0u, done = 0;
        ASSERT_EQ(g.open("a.txt", fd), Errno::success);
        ASSERT_EQ(g.write(fd, "mine"), Errno::success);
        ASSERT_EQ(g.make_directory("n"), Errno::success);
        ASSERT_EQ(g.open("n/f", fd, oflag_creat), Errno::success);
        ASSERT_EQ(g.write(fd, std::string(90'000, 'c'), &done), Errno::success);
        ASSERT_EQ(done, 90'000u) << id;
        Handle block = g.block();
        g.end(true);
        ASSERT_LE(header.in_use, (id + 1) * kept);
        auto changes = host::changes(system().used(), block);
        ASSERT_TRUE(changes && changes->empty());
    }
}

// However little memory there is: it begins, or it takes nothing.
TEST_F(Processes, BeginOrTakeNothing) {
    u64 size = system().header().size;
    for (u64 bytes = 0; bytes < 8192; bytes += 64) {
        SystemHeader& header = system().header();
        system().restart_quickly();
        header.size = header.bump + bytes;
        Caller g(system());
        if (!g.has_begun()) {
            EXPECT_EQ(header.in_use, 0u) << bytes;
        }
        EXPECT_EQ(g.has_begun(), bytes >= 256 + 1024 + 256 + 3 * 128) << bytes;
        header.size = size;
    }
}

// When memory ends, calls fail and what there is stays whole.
TEST_F(Processes, RunOutOfMemory) {
    SystemHeader& header = system().header();
    header.size = header.bump + (1 << 20);
    Caller& g = guest();
    std::string content(40'000, 'c');
    u32 files = 0, fd = ~0u, done = 0;
    for (;; files++) {
        if (g.open(format("f%u", files), fd, oflag_creat) != Errno::success) break;
        if (g.write(fd, content, &done) != Errno::success || done < content.size()) break;
    }
    EXPECT_GT(files, 5u);
    while (g.pwrite(fd, "x", (4 + done++) * file_block) == Errno::success);
    EXPECT_EQ(g.pwrite(fd, "x", 100 * file_block), Errno::nospc);
    EXPECT_EQ(g.write(1, "output"), Errno::nospc);
    for (u32 i = 0; i < files; i++) {
        EXPECT_TRUE(read_path(format("f%u", i)) == content);
        EXPECT_EQ(g.close(4 + i), Errno::success);
        EXPECT_EQ(g.unlink(format("f%u", i)), Errno::success);
    }
    write(1, "output");
    make_file("again", content);
    g.end();
    EXPECT_EQ(header.in_use, 0u);
}

}  // namespace
}  // namespace gpurun::test
