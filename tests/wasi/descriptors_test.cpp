// The fd_* calls that move no bytes of files.
#include <set>

#include "fixture.h"

namespace gpurun::test {
namespace {

using Descriptors = WasiTest;

TEST_F(Descriptors, OfNoFile) {
    Caller& g = guest();
    constexpr u32 at = Caller::result;
    for (u64 fd : {u64{4}, u64{99}, u64{1023}, u64{1024}, u64{0x7fffffff}, u64{0xffffffff}}) {
        EXPECT_EQ(g.call(SystemCall::fd_advise, {fd, 0, 0, 0}), Errno::badf);
        EXPECT_EQ(g.call(SystemCall::fd_allocate, {fd, 0, 1}), Errno::badf);
        EXPECT_EQ(g.call(SystemCall::fd_close, {fd}), Errno::badf);
        EXPECT_EQ(g.call(SystemCall::fd_datasync, {fd}), Errno::badf);
        EXPECT_EQ(g.call(SystemCall::fd_fdstat_get, {fd, at}), Errno::badf);
        EXPECT_EQ(g.call(SystemCall::fd_fdstat_set_flags, {fd, 0}), Errno::badf);
        EXPECT_EQ(g.call(SystemCall::fd_fdstat_set_rights, {fd, 0, 0}), Errno::badf);
        EXPECT_EQ(g.call(SystemCall::fd_filestat_get, {fd, at}), Errno::badf);
        EXPECT_EQ(g.call(SystemCall::fd_filestat_set_size, {fd, 0}), Errno::badf);
        EXPECT_EQ(g.call(SystemCall::fd_filestat_set_times, {fd, 0, 0, 0}), Errno::badf);
        EXPECT_EQ(g.call(SystemCall::fd_pread, {fd, 0, 0, 0, at}), Errno::badf);
        EXPECT_EQ(g.call(SystemCall::fd_prestat_get, {fd, at}), Errno::badf);
        EXPECT_EQ(g.call(SystemCall::fd_prestat_dir_name, {fd, at, 100}), Errno::badf);
        EXPECT_EQ(g.call(SystemCall::fd_pwrite, {fd, 0, 0, 0, at}), Errno::badf);
        EXPECT_EQ(g.call(SystemCall::fd_read, {fd, 0, 0, at}), Errno::badf);
        EXPECT_EQ(g.call(SystemCall::fd_readdir, {fd, at, 100, 0, at}), Errno::badf);
        EXPECT_EQ(g.call(SystemCall::fd_renumber, {fd, 0}), Errno::badf);
        EXPECT_EQ(g.call(SystemCall::fd_renumber, {0, fd}), Errno::badf);
        EXPECT_EQ(g.call(SystemCall::fd_seek, {fd, 0, 0, at}), Errno::badf);
        EXPECT_EQ(g.call(SystemCall::fd_sync, {fd}), Errno::badf);
        EXPECT_EQ(g.call(SystemCall::fd_tell, {fd, at}), Errno::badf);
        EXPECT_EQ(g.call(SystemCall::fd_write, {fd, 0, 0, at}), Errno::badf);
        EXPECT_EQ(g.call(SystemCall::sock_accept, {fd, 0, at}), Errno::badf);
        EXPECT_EQ(g.call(SystemCall::sock_recv, {fd, 0, 0, 0, at, at}), Errno::badf);
        EXPECT_EQ(g.call(SystemCall::sock_send, {fd, 0, 0, 0, at}), Errno::badf);
        EXPECT_EQ(g.call(SystemCall::sock_shutdown, {fd, 0}), Errno::badf);
    }
    u32 file = open("a.txt");
    for (u64 fd : {0u, 1u, 3u, file}) {
        EXPECT_EQ(g.call(SystemCall::sock_accept, {fd, 0, at}), Errno::notsock);
        EXPECT_EQ(g.call(SystemCall::sock_recv, {fd, 0, 0, 0, at, at}), Errno::notsock);
        EXPECT_EQ(g.call(SystemCall::sock_send, {fd, 0, 0, 0, at}), Errno::notsock);
        EXPECT_EQ(g.call(SystemCall::sock_shutdown, {fd, 0}), Errno::notsock);
    }
}

TEST_F(Descriptors, NeedRights) {
    Caller& g = guest();
    constexpr u32 at = Caller::result;
    auto needs = [&](const char* path, u64 right, auto act) {
        for (bool has : {false, true}) {
            u32 fd = ~0u;
            bool is_directory = path[0] == 'd';
            EXPECT_EQ(g.open(path, fd, is_directory ? oflag_directory : 0,
                             has ? right : (all_rights & ~right) & ~u64{right_fd_write}),
                      Errno::success);
            EXPECT_EQ(act(fd), has ? Errno::success : Errno::notcapable) << right;
            close(fd);
        }
    };
    std::string data;
    std::vector<Caller::Entry> entries;
    Caller::Filestat stat{};
    needs("a.txt", right_fd_read, [&](u32 fd) { return g.read(fd, 1, data); });
    needs("a.txt", right_fd_write, [&](u32 fd) { return g.write(fd, "x"); });
    needs("a.txt", right_fd_read | right_fd_seek, [&](u32 fd) { return g.pread(fd, 1, 0, data); });
    needs("a.txt", right_fd_write | right_fd_seek, [&](u32 fd) { return g.pwrite(fd, "x", 0); });
    needs("a.txt", right_fd_seek, [&](u32 fd) { return g.seek(fd, 1, whence_set); });
    needs("a.txt", right_fd_tell, [&](u32 fd) { return g.call(SystemCall::fd_tell, {fd, at}); });
    needs("a.txt", right_fd_sync, [&](u32 fd) { return g.call(SystemCall::fd_sync, {fd}); });
    needs("a.txt", right_fd_datasync,
          [&](u32 fd) { return g.call(SystemCall::fd_datasync, {fd}); });
    needs("a.txt", right_fd_advise,
          [&](u32 fd) { return g.call(SystemCall::fd_advise, {fd, 0, 0, 0}); });
    needs("a.txt", right_fd_allocate,
          [&](u32 fd) { return g.call(SystemCall::fd_allocate, {fd, 0, 20}); });
    needs("a.txt", right_fd_filestat_get, [&](u32 fd) { return g.stat_fd(fd, stat); });
    needs("a.txt", right_fd_filestat_set_size,
          [&](u32 fd) { return g.call(SystemCall::fd_filestat_set_size, {fd, 3}); });
    needs("a.txt", right_fd_filestat_set_times,
          [&](u32 fd) { return g.call(SystemCall::fd_filestat_set_times, {fd, 1, 2, 5}); });
    needs("a.txt", right_fd_fdstat_set_flags,
          [&](u32 fd) { return g.call(SystemCall::fd_fdstat_set_flags, {fd, 1}); });
    needs("d", right_fd_readdir, [&](u32 fd) { return g.readdir(fd, 0, entries); });
    // To seek nowhere is to tell.
    u32 teller = open("a.txt", 0, right_fd_tell);
    EXPECT_EQ(g.seek(teller, 0, whence_cur), Errno::success);
    EXPECT_EQ(g.seek(teller, 0, whence_set), Errno::notcapable);
}

TEST_F(Descriptors, Fdstat) {
    Caller& g = guest();
    Caller::Fdstat stat{};
    u32 fd = open("a.txt", 0, all_rights, 3, fdflag_append | fdflag_sync);
    EXPECT_EQ(g.fdstat(fd, stat), Errno::success);
    EXPECT_EQ(stat.type, filetype_regular_file);
    EXPECT_EQ(stat.flags, fdflag_append | fdflag_sync);
    EXPECT_EQ(stat.rights, file_rights);
    EXPECT_EQ(stat.inheriting, 0u);
    EXPECT_EQ(g.call(SystemCall::fd_fdstat_set_flags, {fd, 32}), Errno::inval);
    EXPECT_EQ(g.call(SystemCall::fd_fdstat_set_flags, {fd, fdflag_nonblock}), Errno::success);
    EXPECT_EQ(g.fdstat(fd, stat), Errno::success);
    EXPECT_EQ(stat.flags, fdflag_nonblock);
    for (u32 at : {Caller::memory_size - 23, ~0u, ~0u - 23})
        EXPECT_EQ(g.call(SystemCall::fd_fdstat_get, {fd, at}), Errno::fault);
    // Rights become fewer, never more.
    EXPECT_EQ(g.call(SystemCall::fd_fdstat_set_rights, {fd, right_fd_read, 1}), Errno::notcapable);
    EXPECT_EQ(g.call(SystemCall::fd_fdstat_set_rights, {fd, right_fd_read, 0}), Errno::success);
    EXPECT_EQ(g.call(SystemCall::fd_fdstat_set_rights, {fd, right_fd_write, 0}), Errno::notcapable);
    EXPECT_EQ(g.call(SystemCall::fd_fdstat_set_rights, {fd, ~u64{0}, 0}), Errno::notcapable);
    EXPECT_EQ(g.write(fd, "x"), Errno::notcapable);
    EXPECT_EQ(read(fd), "hello, world");
    EXPECT_EQ(g.call(SystemCall::fd_fdstat_set_rights,
                     {3, right_path_open | right_path_create_file, right_fd_read}),
              Errno::success);
    EXPECT_EQ(open_error("a.txt", 0, right_fd_write), Errno::notcapable);
    EXPECT_EQ(open_error("new", oflag_creat, right_fd_read), Errno::success);
    EXPECT_EQ(g.make_directory("n"), Errno::notcapable);
}

TEST_F(Descriptors, Streams) {
    std::string text = "some input";
    options.input = std::make_shared<std::vector<u8>>(text.begin(), text.end());
    Caller& g = guest();
    Caller::Fdstat stat{};
    for (u32 fd : {0u, 1u, 2u}) {
        EXPECT_EQ(g.fdstat(fd, stat), Errno::success);
        EXPECT_EQ(stat.type, filetype_unknown);  // no terminal
        EXPECT_EQ(stat.rights & (right_fd_seek | right_fd_tell), 0u);
        EXPECT_EQ(g.seek(fd, 0, whence_set), Errno::spipe);
        EXPECT_EQ(g.call(SystemCall::fd_tell, {fd, Caller::result}), Errno::spipe);
        std::string data;
        EXPECT_EQ(g.pread(fd, 1, 0, data), Errno::spipe);
        EXPECT_EQ(g.pwrite(fd, "x", 0), Errno::spipe);
        EXPECT_EQ(g.call(SystemCall::fd_allocate, {fd, 0, 1}), Errno::notcapable);
        EXPECT_EQ(g.call(SystemCall::fd_filestat_set_size, {fd, 0}), Errno::notcapable);
        EXPECT_EQ(g.call(SystemCall::fd_filestat_set_times, {fd, 0, 0, 0}), Errno::notcapable);
        EXPECT_EQ(g.call(SystemCall::fd_readdir, {fd, Caller::buffer, 9, 0, Caller::result}),
                  Errno::notcapable);
        EXPECT_EQ(g.call(SystemCall::fd_prestat_get, {fd, Caller::result}), Errno::badf);
        EXPECT_EQ(g.call(SystemCall::fd_sync, {fd}), Errno::success);
        Caller::Filestat filestat{};
        EXPECT_EQ(g.stat_fd(fd, filestat), Errno::success);
        EXPECT_EQ(filestat.type, filetype_character_device);
    }
    EXPECT_EQ(read(0, 4), "some");
    EXPECT_EQ(read(0), " input");
    EXPECT_EQ(read(0), "");
    EXPECT_EQ(g.write(0, "x"), Errno::notcapable);
    std::string data;
    EXPECT_EQ(g.read(1, 1, data), Errno::notcapable);
    write(1, "to ");
    write(1, "output");
    write(2, "to error");
    EXPECT_EQ(g.output(), "to output");
    EXPECT_EQ(g.content(*g.at<Node>(g.me().error)), "to error");
    // Closed, they can be something else.
    close(0);
    EXPECT_EQ(g.read(0, 1, data), Errno::badf);
    EXPECT_EQ(open("a.txt"), 0u);
    EXPECT_EQ(read(0), "hello, world");
    close(1);
    EXPECT_EQ(g.output(), "to output");
    // Another process reads the input from its beginning.
    Caller other(system(), 1);
    EXPECT_EQ(other.read(0, 100, data), Errno::success);
    EXPECT_EQ(data, text);
    EXPECT_EQ(other.output(), "");
}

TEST_F(Descriptors, TerminalsAreCharacterDevices) {
    system().header().terminals = 2;
    Caller::Fdstat stat{};
    EXPECT_EQ(guest().fdstat(1, stat), Errno::success);
    EXPECT_EQ(stat.type, filetype_character_device);
    EXPECT_EQ(guest().fdstat(2, stat), Errno::success);
    EXPECT_EQ(stat.type, filetype_unknown);
}

TEST_F(Descriptors, Preopens) {
    Folder other;
    options.mounts.push_back({other.path().string(), "data/in", false});
    Caller& g = guest();
    const std::string expected[] = {"/", "data/in"};
    for (u32 i : {0u, 1u}) {
        u32 fd = 3 + i, length = u32(expected[i].size());
        EXPECT_EQ(g.call(SystemCall::fd_prestat_get, {fd, Caller::result + 1}), Errno::success);
        EXPECT_EQ(g.load<u64>(Caller::result + 1), u64(length) << 32);
        for (u32 at : {Caller::memory_size - 7, ~0u})
            EXPECT_EQ(g.call(SystemCall::fd_prestat_get, {fd, at}), Errno::fault);
        auto name = [&](u32 at, u32 size) {
            return g.call(SystemCall::fd_prestat_dir_name, {fd, at, size});
        };
        EXPECT_EQ(name(Caller::buffer, length), Errno::success);
        EXPECT_EQ(g.bytes(Caller::buffer, length), expected[i]);
        EXPECT_EQ(name(Caller::buffer, length - 1), Errno::nametoolong);
        EXPECT_EQ(name(Caller::memory_size - length, 100), Errno::success);
        EXPECT_EQ(name(Caller::memory_size - length + 1, 100), Errno::fault);
        EXPECT_EQ(name(~0u, 100), Errno::fault);
    }
    EXPECT_EQ(g.call(SystemCall::fd_prestat_get, {5, Caller::result}), Errno::badf);
    // What is opened there, or has the number later, is no preopen.
    u32 fd = open_directory("d");
    EXPECT_EQ(g.call(SystemCall::fd_prestat_get, {fd, Caller::result}), Errno::badf);
    close(4);
    EXPECT_EQ(open_directory("."), 4u);
    EXPECT_EQ(g.call(SystemCall::fd_prestat_get, {4, Caller::result}), Errno::badf);
    EXPECT_EQ(g.call(SystemCall::fd_renumber, {3, fd}), Errno::success);
    EXPECT_EQ(g.call(SystemCall::fd_prestat_get, {fd, Caller::result}), Errno::success);
}

TEST_F(Descriptors, Renumber) {
    Caller& g = guest();
    u32 a = open("a.txt"), x = open("d/x");
    EXPECT_EQ(read(a, 5), "hello");
    EXPECT_EQ(g.call(SystemCall::fd_renumber, {a, a}), Errno::success);
    EXPECT_EQ(g.call(SystemCall::fd_renumber, {a, x}), Errno::success);
    EXPECT_EQ(g.close(a), Errno::badf);
    EXPECT_EQ(read(x), ", world");
    EXPECT_EQ(open("empty"), a);
    EXPECT_EQ(g.call(SystemCall::fd_renumber, {a, 500}), Errno::badf);
    // Two of one file that has no name any more.
    make_file("n", "text");
    u32 n = open("n"), m = open("n");
    EXPECT_EQ(g.unlink("n"), Errno::success);
    EXPECT_EQ(g.call(SystemCall::fd_renumber, {n, m}), Errno::success);
    EXPECT_EQ(read(m), "text");
    close(m);
}

TEST_F(Descriptors, Sizes) {
    Caller& g = guest();
    u32 fd = open("d/x");
    auto resize = [&](u64 size) { return g.call(SystemCall::fd_filestat_set_size, {fd, size}); };
    std::string content = pattern(5000);
    for (u64 size : {4097, 4096, 4095, 9000, 1, 0, 4096, 12'288}) {
        EXPECT_EQ(resize(size), Errno::success);
        content.resize(size);
        EXPECT_EQ(read_path("d/x"), content) << size;
    }
    EXPECT_EQ(resize(max_file), Errno::success);
    EXPECT_EQ(stat("d/x").size, max_file);
    u64 modified = stat("d/x").modified;
    for (u64 size : {max_file + 1, u64{1} << 63, ~u64{0}}) EXPECT_EQ(resize(size), Errno::fbig);
    EXPECT_EQ(stat("d/x").modified, modified);
    EXPECT_EQ(resize(10), Errno::success);
    u32 d = open_directory("d");
    EXPECT_EQ(g.call(SystemCall::fd_filestat_set_size, {d, 0}), Errno::notcapable);

    auto allocate = [&](u64 offset, u64 length) {
        return g.call(SystemCall::fd_allocate, {fd, offset, length});
    };
    EXPECT_EQ(allocate(0, 5), Errno::success);
    EXPECT_EQ(stat("d/x").size, 10u);
    EXPECT_EQ(allocate(8, 20), Errno::success);
    EXPECT_EQ(stat("d/x").size, 28u);
    EXPECT_EQ(read_path("d/x"), std::string(28, '\0'));
    EXPECT_EQ(allocate(0, 0), Errno::inval);
    EXPECT_EQ(allocate(max_file, 1), Errno::fbig);
    EXPECT_EQ(allocate(1, max_file), Errno::fbig);
    EXPECT_EQ(allocate(~u64{0}, ~u64{0}), Errno::fbig);
    EXPECT_EQ(stat("d/x").size, 28u);

    auto advise = [&](u32 of, u64 offset, u64 length, u32 advice) {
        return g.call(SystemCall::fd_advise, {of, offset, length, advice});
    };
    for (u32 advice = 0; advice < 6; advice++)
        EXPECT_EQ(advise(fd, 0, 100, advice), Errno::success);
    EXPECT_EQ(advise(fd, 0, 0, 6), Errno::inval);
    EXPECT_EQ(advise(fd, ~u64{0}, 2, 0), Errno::inval);
    EXPECT_EQ(advise(d, 0, 0, 0), Errno::badf);
}

TEST_F(Descriptors, Times) {
    Caller& g = guest();
    u32 fd = open("a.txt");
    auto set = [&](u64 accessed, u64 modified, u32 flags) {
        return g.call(SystemCall::fd_filestat_set_times, {fd, accessed, modified, flags});
    };
    EXPECT_EQ(set(1, 2, fst_atim | fst_mtim), Errno::success);
    Caller::Filestat stat{};
    EXPECT_EQ(g.stat_fd(fd, stat), Errno::success);
    EXPECT_EQ(stat.accessed, 1u);
    EXPECT_EQ(stat.modified, 2u);
    EXPECT_EQ(set(~u64{0}, 0, fst_atim | fst_mtim_now), Errno::success);
    EXPECT_EQ(g.stat_fd(fd, stat), Errno::success);
    EXPECT_EQ(stat.accessed, ~u64{0});
    EXPECT_GE(stat.modified, system().header().realtime);
    for (u32 flags : {3u, 12u, 7u, 16u, ~0u}) EXPECT_EQ(set(0, 0, flags), Errno::inval);
    EXPECT_EQ(set(1, 2, fst_mtim), Errno::success);
    write(fd, "");
    EXPECT_EQ(this->stat("a.txt").modified, 2u);
    write(fd, "x");
    EXPECT_GE(this->stat("a.txt").modified, system().header().realtime);
    for (u32 at : {Caller::memory_size - 63, ~0u})
        EXPECT_EQ(g.call(SystemCall::fd_filestat_get, {fd, at}), Errno::fault);
}

// ---- fd_readdir ----------------------------------------------------------------------

TEST_F(Descriptors, Readdir) {
    Caller& g = guest();
    u32 fd = open_directory("."), used = 0;
    std::vector<Caller::Entry> entries;
    EXPECT_EQ(g.readdir(fd, 0, entries), Errno::success);
    std::vector<std::string> expected{".", "..", "a.txt", "d", "dlink", "empty", "link", "none"};
    std::map<std::string, u32> types{
        {"a.txt", filetype_regular_file},  {"d", filetype_directory},
        {"dlink", filetype_symbolic_link}, {"empty", filetype_regular_file},
        {"link", filetype_symbolic_link},  {"none", filetype_directory},
        {".", filetype_directory},         {"..", filetype_directory}};
    ASSERT_EQ(entries.size(), expected.size());
    for (usize i = 0; i < entries.size(); i++) {
        EXPECT_EQ(entries[i].name, expected[i]);
        EXPECT_EQ(entries[i].type, types[entries[i].name]);
        if (i >= 2) {
            EXPECT_EQ(entries[i].inode, stat(entries[i].name).inode);
        }
        // Each says where the next one begins.
        std::vector<Caller::Entry> rest;
        EXPECT_EQ(g.readdir(fd, entries[i].next, rest), Errno::success);
        ASSERT_EQ(rest.size(), entries.size() - i - 1);
        if (!rest.empty()) {
            EXPECT_EQ(rest[0].name, expected[i + 1]);
        }
    }
    for (u64 cookie : {entries.back().next, entries.back().next + 1, u64{1} << 32,
                       (u64{1} << 32) + 3, u64{1} << 63, ~u64{0}}) {
        EXPECT_EQ(g.readdir(fd, cookie, entries, 4096, &used), Errno::success);
        EXPECT_EQ(used, 0u) << cookie;
    }
    // A buffer that is too small is filled to its end.
    for (u32 size = 0; size < 60; size++) {
        EXPECT_EQ(g.readdir(fd, 0, entries, size, &used), Errno::success);
        EXPECT_EQ(used, size);
        EXPECT_EQ(entries.size(), size < 25 ? 0u : size < 51 ? 1u : 2u);
    }
    auto call = [&](u64 at, u64 size, u64 result) {
        return g.call(SystemCall::fd_readdir, {fd, at, size, 0, result});
    };
    EXPECT_EQ(call(Caller::memory_size - 50, 51, Caller::result), Errno::fault);
    EXPECT_EQ(call(~0u, 2, Caller::result), Errno::fault);
    EXPECT_EQ(call(0, ~0u, Caller::result), Errno::fault);
    EXPECT_EQ(call(Caller::buffer, 50, ~0u - 2), Errno::fault);
    EXPECT_EQ(call(Caller::memory_size - 50, 50, Caller::result), Errno::success);
    EXPECT_EQ(call(Caller::memory_size, 0, Caller::result), Errno::success);
    u32 file = open("a.txt");
    EXPECT_EQ(g.readdir(file, 0, entries), Errno::notcapable);
}

TEST_F(Descriptors, ReaddirWhileNamesComeAndGo) {
    Caller& g = guest();
    EXPECT_EQ(g.make_directory("m"), Errno::success);
    for (u32 i = 0; i < 40; i++) make_file("m/f" + std::to_string(i), "");
    u32 fd = open_directory("m");
    std::set<std::string> seen;
    std::vector<Caller::Entry> entries;
    u64 cookie = 2;
    u32 removed = 0, made = 40;
    // Every name is removed after it was seen, and a few before; new ones come at the end.
    for (;;) {
        EXPECT_EQ(g.readdir(fd, cookie, entries, 100), Errno::success);
        if (entries.empty()) break;
        for (const Caller::Entry& entry : entries) {
            EXPECT_TRUE(seen.insert(entry.name).second) << entry.name;
            EXPECT_EQ(g.unlink("m/" + entry.name), Errno::success);
            removed++;
            cookie = entry.next;
        }
        if (made < 50) make_file("m/f" + std::to_string(made++), "");
    }
    EXPECT_EQ(seen.size(), 50u);
    EXPECT_EQ(removed, 50u);
    EXPECT_EQ(g.remove_directory("m"), Errno::success);
    EXPECT_EQ(names(fd, 0), (std::vector<std::string>{".", ".."}));
    // A directory of the base, that becomes the process's own in between.
    fd = open_directory("d");
    EXPECT_EQ(g.readdir(fd, 2, entries), Errno::success);
    cookie = entries[0].next;
    make_file("d/new", "");
    EXPECT_EQ(g.unlink("d/x"), Errno::success);
    EXPECT_EQ(names(fd, cookie), (std::vector<std::string>{"new"}));
}

}  // namespace
}  // namespace gpurun::test
