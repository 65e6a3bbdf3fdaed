// path_*: what paths lead to, and what can be done there.
#include "base/format.h"
#include "fixture.h"

namespace gpurun::test {
namespace {

using Paths = WasiTest;

// ---- resolution ----------------------------------------------------------------------

TEST_F(Paths, LeadWhereTheyShould) {
    for (const char* path : {"a.txt", "./a.txt", ".//.///a.txt", "d/../a.txt", "d/e/../../a.txt",
                             "link", "dlink/../a.txt", "d/./e/.././../a.txt"})
        EXPECT_EQ(read_path(path), "hello, world") << path;
    for (const char* path : {"d", "d/", "d//", "d/.", "dlink/", "dlink/.", "dlink/e/.."})
        EXPECT_EQ(stat(path).type, filetype_directory) << path;
    EXPECT_EQ(stat("link").type, filetype_symbolic_link);
    EXPECT_EQ(stat("link", lookup_symlink_follow).type, filetype_regular_file);
    EXPECT_EQ(stat("dlink").type, filetype_symbolic_link);
    // Below another directory than the preopened one.
    u32 d = open_directory("d");
    std::string data;
    u32 fd = open("e/../e/y", 0, all_rights, d);
    EXPECT_EQ(read(fd), "deep");
    fd = open(".", oflag_directory, all_rights & ~u64{right_fd_write}, d);
    EXPECT_EQ(names(fd), (std::vector<std::string>{"e", "x"}));
}

TEST_F(Paths, DoNotLeaveTheirDirectory) {
    folder.link("out", "../x");
    folder.link("d/out", "../../x");
    folder.link("d/e/in", "../../a.txt");
    folder.link("top", "d/../..");
    guest().make_directory("n");
    for (const char* path : {"..", "../", "../x", "d/../..", "d/../../x", "d/e/../../../a.txt",
                             "dlink/../../x", "/", "/a.txt", "//", "out", "d/out", "top", "top/x"})
        EXPECT_EQ(stat_error(path, lookup_symlink_follow), Errno::perm) << path;
    EXPECT_EQ(read_path("d/e/in"), "hello, world");
    // The directory that a path begins at is the top, wherever it is.
    u32 d = open_directory("d");
    for (const char* path : {"..", "../a.txt", "e/../..", "e/in"})
        EXPECT_EQ(stat_error(path, lookup_symlink_follow, d), Errno::perm) << path;
    EXPECT_EQ(guest().make_directory("../n", d), Errno::perm);
    EXPECT_EQ(guest().unlink("../a.txt", d), Errno::perm);
    EXPECT_EQ(guest().rename("x", "../x", d, d), Errno::perm);
    EXPECT_EQ(guest().rename("../a.txt", "a", d, d), Errno::perm);
    EXPECT_EQ(guest().link("../a.txt", "a", 0, d, d), Errno::perm);
    EXPECT_EQ(open_error("../n1", oflag_creat, all_rights, d), Errno::perm);
    EXPECT_EQ(guest().symlink("/etc/passwd", "s"), Errno::perm);
    EXPECT_EQ(guest().symlink("../..", "s"), Errno::success);
    EXPECT_EQ(stat_error("s/x"), Errno::perm);
}

TEST_F(Paths, ThatLeadNowhere) {
    const std::pair<std::string, Errno> rows[] = {
        {"", Errno::noent},
        {"nothing", Errno::noent},
        {"nothing/x", Errno::noent},
        {"d/nothing/..", Errno::noent},
        {"a.txt/", Errno::notdir},
        {"a.txt/x", Errno::notdir},
        {"a.txt/..", Errno::notdir},
        {"a.txt/.", Errno::notdir},
        {"link/", Errno::notdir},
        {std::string(255, 'n'), Errno::noent},
        {std::string(256, 'n'), Errno::nametoolong},
        {"d/" + std::string(256, 'n') + "/x", Errno::nametoolong},
        {std::string(4094, '/') + "a", Errno::perm},
        {"." + std::string(4000, '/') + "nothing", Errno::noent},
        {"." + std::string(4094, '/'), Errno::success},
        {"." + std::string(4095, '/'), Errno::nametoolong},
        {std::string(5000, 'a'), Errno::nametoolong},
        {std::string("a.txt\0", 6), Errno::inval},
        {std::string("\0", 1), Errno::inval},
        {std::string("a\0b", 3), Errno::inval},
        {"\xff", Errno::ilseq},
        {"\x80", Errno::ilseq},
        {"\xc0\x80", Errno::ilseq},      // overlong
        {"\xe0\x80\x80", Errno::ilseq},  // overlong
        {"\xed\xa0\x80", Errno::ilseq},  // surrogate
        {"\xf0\x80\x80\x80", Errno::ilseq},
        {"\xf4\x90\x80\x80", Errno::ilseq},  // past U+10FFFF
        {"\xf8\x88\x80\x80\x80", Errno::ilseq},
        {"caf\xc3", Errno::ilseq},  // cut off
        {"caf\xc3\xa9", Errno::noent},
        {"\xf0\x9f\x98\x80", Errno::noent},
    };
    for (const auto& [path, expected] : rows) EXPECT_EQ(stat_error(path), expected) << path;
}

TEST_F(Paths, TakeEveryNameThatIsAllowed) {
    for (const std::string& name :
         {std::string(255, 'n'), std::string("caf\xc3\xa9"), std::string("\xf0\x9f\x98\x80"),
          std::string("..."), std::string(".hidden"), std::string("a b\n\t\\*?")}) {
        make_file(name, name);
        EXPECT_EQ(read_path(name), name);
        EXPECT_EQ(guest().unlink(name), Errno::success);
        EXPECT_EQ(stat_error(name), Errno::noent);
    }
}

TEST_F(Paths, FollowLinksUpToALimit) {
    folder.link("loop1", "loop2");
    folder.link("loop2", "loop1");
    folder.link("self", "self/x");
    folder.link("s0", "a.txt");
    for (u32 i = 1; i < 40; i++) folder.link(format("s%u", i), format("s%u", i - 1));
    EXPECT_EQ(stat_error("loop1", lookup_symlink_follow), Errno::loop);
    EXPECT_EQ(stat_error("loop1/x"), Errno::loop);
    EXPECT_EQ(stat_error("self", lookup_symlink_follow), Errno::loop);
    EXPECT_EQ(stat_error("loop1"), Errno::success);
    EXPECT_EQ(stat(format("s%u", max_symlinks - 1), lookup_symlink_follow).size, 12u);
    EXPECT_EQ(stat_error(format("s%u", max_symlinks), lookup_symlink_follow), Errno::loop);
    // Not more than a path's length in all.
    std::string dots;
    for (u32 i = 0; i < 2000; i++) dots += "./";
    EXPECT_EQ(guest().symlink(dots + "a.txt", "far"), Errno::success);
    EXPECT_EQ(read_path("far"), "hello, world");
    EXPECT_EQ(guest().symlink(dots + "far", "farther"), Errno::success);
    EXPECT_EQ(read_path("farther"), "hello, world");
    EXPECT_EQ(guest().symlink("far/" + std::string(dots.begin(), dots.end() - 100) + "x", "f"),
              Errno::success);
    EXPECT_EQ(stat_error("f/" + std::string(4000, 'x')), Errno::nametoolong);
}

// What makes, removes and renames is about the link itself, with or without a slash behind it.
TEST_F(Paths, WithASlashBehindALink) {
    EXPECT_EQ(guest().symlink("none", "to_none"), Errno::success);
    EXPECT_EQ(guest().remove_directory("to_none/"), Errno::notdir);
    EXPECT_EQ(guest().remove_directory("to_none"), Errno::notdir);
    EXPECT_EQ(guest().unlink("to_none/"), Errno::notdir);
    EXPECT_EQ(guest().rename("to_none/", "moved"), Errno::notdir);
    EXPECT_EQ(guest().make_directory("to_none/"), Errno::exist);
    EXPECT_EQ(guest().symlink("a.txt", "to_none/"), Errno::exist);
    EXPECT_EQ(stat("to_none/").type, filetype_directory);
    EXPECT_EQ(stat("none").type, filetype_directory);
    EXPECT_EQ(guest().remove_directory("none/"), Errno::success);
    EXPECT_EQ(guest().unlink("to_none"), Errno::success);
}

TEST_F(Paths, DoNotMakeADirectoryOfThatName) {
    constexpr u64 reads = all_rights & ~writing_rights;
    EXPECT_EQ(open_error("d", oflag_creat, reads), Errno::isdir);
    EXPECT_EQ(open_error("dlink", oflag_creat, reads), Errno::isdir);
    EXPECT_EQ(open_error("d", oflag_creat | oflag_excl, reads), Errno::exist);
    EXPECT_EQ(open_error("d", 0, reads), Errno::success);
}

TEST_F(Paths, ComeFromGuestMemory) {
    for (u32 at : {Caller::memory_size - 4, Caller::memory_size, ~0u, ~0u - 4}) {
        EXPECT_EQ(guest().call(SystemCall::path_filestat_get, {3, 0, at, 5, Caller::result}),
                  Errno::fault);
        EXPECT_EQ(guest().call(SystemCall::path_create_directory, {3, at, 5}), Errno::fault);
        EXPECT_EQ(guest().call(SystemCall::path_rename, {3, at, 5, 3, Caller::texts, 1}),
                  Errno::fault);
    }
    guest().put(Caller::texts, "s");
    EXPECT_EQ(guest().call(SystemCall::path_symlink, {~0u, 5, 3, Caller::texts, 1}), Errno::fault);
    EXPECT_EQ(guest().call(SystemCall::path_create_directory, {3, 0, ~0u}), Errno::fault);
    EXPECT_EQ(guest().call(SystemCall::path_create_directory, {3, Caller::memory_size, 0}),
              Errno::noent);
    // Up to the last byte.
    guest().put(Caller::memory_size - 5, "a.txt");
    EXPECT_EQ(guest().call(SystemCall::path_filestat_get,
                           {3, 0, Caller::memory_size - 5, 5, Caller::result}),
              Errno::success);
    Text text = guest().text("a.txt");
    for (u32 at : {Caller::memory_size - 63, ~0u, ~0u - 63})
        EXPECT_EQ(guest().call(SystemCall::path_filestat_get, {3, 0, text.at, text.length, at}),
                  Errno::fault);
    EXPECT_EQ(guest().call(SystemCall::path_filestat_get,
                           {3, 0, text.at, text.length, Caller::memory_size - 64}),
              Errno::success);
}

TEST_F(Paths, NeedADirectory) {
    u32 file = open("a.txt");
    for (u32 fd : {file, 0u, 1u}) {
        EXPECT_EQ(stat_error("x", 0, fd), Errno::notdir);
        EXPECT_EQ(guest().make_directory("x", fd), Errno::notdir);
        EXPECT_EQ(guest().remove_directory("x", fd), Errno::notdir);
        EXPECT_EQ(guest().unlink("x", fd), Errno::notdir);
        EXPECT_EQ(guest().rename("x", "y", fd), Errno::notdir);
        EXPECT_EQ(guest().rename("a.txt", "y", 3, fd), Errno::notdir);
        EXPECT_EQ(guest().link("x", "y", 0, fd), Errno::notdir);
        EXPECT_EQ(guest().symlink("x", "y", fd), Errno::notdir);
        std::string text;
        EXPECT_EQ(guest().readlink("x", text, 10, fd), Errno::notdir);
        EXPECT_EQ(open_error("x", 0, all_rights, fd), Errno::notdir);
    }
    for (u32 fd : {99u, ~0u, 1024u, 0x80000003u}) {
        EXPECT_EQ(stat_error("x", 0, fd), Errno::badf);
        EXPECT_EQ(guest().make_directory("x", fd), Errno::badf);
        EXPECT_EQ(guest().rename("a.txt", "y", 3, fd), Errno::badf);
        EXPECT_EQ(guest().link("a.txt", "y", 0, 3, fd), Errno::badf);
        EXPECT_EQ(open_error("x", 0, all_rights, fd), Errno::badf);
    }
}

TEST_F(Paths, NeedRights) {
    auto with = [&](u64 rights, auto act) {
        u32 fd = ~0u;
        EXPECT_EQ(guest().open(".", fd, oflag_directory, rights & ~u64{right_fd_write}),
                  Errno::success);
        Errno error = act(fd);
        close(fd);
        return error;
    };
    auto needs = [&](u64 right, auto act) {
        EXPECT_EQ(with(all_rights & ~right, act), Errno::notcapable) << right;
        EXPECT_EQ(with(right, act), Errno::success) << right;
    };
    Caller& g = guest();
    std::string text;
    needs(right_path_create_directory, [&](u32 fd) { return g.make_directory("new", fd); });
    needs(right_path_remove_directory, [&](u32 fd) { return g.remove_directory("new", fd); });
    needs(right_path_filestat_get, [&](u32 fd) { return stat_error("a.txt", 0, fd); });
    needs(right_path_readlink, [&](u32 fd) { return g.readlink("link", text, 100, fd); });
    needs(right_path_symlink, [&](u32 fd) { return g.symlink("a.txt", "s", fd); });
    needs(right_path_unlink_file, [&](u32 fd) { return g.unlink("s", fd); });
    needs(right_path_link_source, [&](u32 fd) { return g.link("a.txt", "l1", 0, fd, 3); });
    needs(right_path_link_target, [&](u32 fd) { return g.link("a.txt", "l2", 0, 3, fd); });
    needs(right_path_rename_source, [&](u32 fd) { return g.rename("l1", "l3", fd, 3); });
    needs(right_path_rename_target, [&](u32 fd) { return g.rename("l2", "l4", 3, fd); });
    needs(right_path_open, [&](u32 fd) { return open_error("a.txt", 0, right_fd_read, fd); });
    needs(right_path_filestat_set_times, [&](u32 fd) {
        Text at = g.text("a.txt");
        return g.call(SystemCall::path_filestat_set_times, {fd, 0, at.at, at.length, 1, 2, 5});
    });
    EXPECT_EQ(with(right_path_open,
                   [&](u32 fd) { return open_error("n", oflag_creat, right_fd_read, fd); }),
              Errno::notcapable);
    EXPECT_EQ(with(right_path_open | right_path_create_file,
                   [&](u32 fd) { return open_error("n", oflag_creat, right_fd_read, fd); }),
              Errno::success);
    EXPECT_EQ(with(right_path_open,
                   [&](u32 fd) { return open_error("n", oflag_trunc, right_fd_read, fd); }),
              Errno::notcapable);
    EXPECT_EQ(with(right_path_open | right_path_filestat_set_size,
                   [&](u32 fd) { return open_error("n", oflag_trunc, right_fd_read, fd); }),
              Errno::success);
}

TEST_F(Paths, OfAReadOnlyDirectoryChangeNothing) {
    options.mounts[0].is_writable = false;
    Caller& g = guest();
    EXPECT_EQ(g.make_directory("n"), Errno::notcapable);
    EXPECT_EQ(g.remove_directory("none"), Errno::notcapable);
    EXPECT_EQ(g.unlink("a.txt"), Errno::notcapable);
    EXPECT_EQ(g.rename("a.txt", "b"), Errno::notcapable);
    EXPECT_EQ(g.link("a.txt", "b"), Errno::notcapable);
    EXPECT_EQ(g.symlink("a.txt", "b"), Errno::notcapable);
    EXPECT_EQ(open_error("n", oflag_creat, right_fd_read), Errno::notcapable);
    EXPECT_EQ(open_error("a.txt", oflag_trunc, right_fd_read), Errno::notcapable);
    EXPECT_EQ(open_error("a.txt", 0, right_fd_write), Errno::notcapable);
    u32 fd = open("a.txt", 0, right_fd_read | right_fd_seek | right_fd_filestat_set_times);
    EXPECT_EQ(g.write(fd, "x"), Errno::notcapable);
    EXPECT_EQ(g.call(SystemCall::fd_filestat_set_size, {fd, 0}), Errno::notcapable);
    EXPECT_EQ(g.call(SystemCall::fd_filestat_set_times, {fd, 0, 0, 10}), Errno::notcapable);
    EXPECT_EQ(g.call(SystemCall::fd_allocate, {fd, 0, 100}), Errno::notcapable);
    EXPECT_EQ(read(fd), "hello, world");
    // What Go asks for to read.
    constexpr u64 writes = right_fd_datasync | right_fd_write | right_fd_allocate;
    fd = open("a.txt", 0, all_rights & ~writes);
    EXPECT_EQ(read(fd), "hello, world");
    EXPECT_EQ(g.write(fd, "x"), Errno::notcapable);
    EXPECT_EQ(g.call(SystemCall::fd_filestat_set_size, {fd, 0}), Errno::notcapable);
    fd = open("a.txt", 0, right_fd_read | right_fd_datasync | right_fd_allocate);
    EXPECT_EQ(g.call(SystemCall::fd_allocate, {fd, 0, 100}), Errno::notcapable);
    EXPECT_EQ(open_error("a.txt", 0, right_fd_write, 3, 1), Errno::notcapable);
    Caller::Fdstat stat{};
    EXPECT_EQ(g.fdstat(3, stat), Errno::success);
    EXPECT_EQ((stat.rights | stat.inheriting) & writing_rights, 0u);
}

// ---- path_open -------------------------------------------------------------------------

TEST_F(Paths, OpenWithFlags) {
    EXPECT_EQ(open_error("nothing"), Errno::noent);
    EXPECT_EQ(open_error("a.txt", oflag_creat | oflag_excl), Errno::exist);
    EXPECT_EQ(open_error("link", oflag_creat | oflag_excl), Errno::exist);
    EXPECT_EQ(open_error("d", oflag_creat | oflag_excl), Errno::exist);
    EXPECT_EQ(open_error("a.txt", oflag_directory), Errno::notdir);
    EXPECT_EQ(open_error("link", oflag_directory), Errno::notdir);
    EXPECT_EQ(open_error("link", 0, all_rights, 3, 0), Errno::loop);
    EXPECT_EQ(open_error("d", 0, all_rights), Errno::isdir);
    EXPECT_EQ(open_error(".", oflag_directory, right_fd_read | right_fd_write), Errno::isdir);
    EXPECT_EQ(open_error("d", oflag_directory, right_fd_write), Errno::isdir);
    EXPECT_EQ(open_error(".", 0, directory_rights), Errno::success);
    EXPECT_EQ(open_error(".", 0, 0), Errno::success);
    EXPECT_EQ(open_error("d", oflag_directory, right_fd_read | right_fd_seek), Errno::success);
    EXPECT_EQ(open_error("d", oflag_trunc, right_fd_readdir), Errno::isdir);
    EXPECT_EQ(open_error("n/", oflag_creat), Errno::isdir);
    EXPECT_EQ(open_error("d/n/x", oflag_creat), Errno::noent);
    EXPECT_EQ(open_error("n", oflag_creat | oflag_directory), Errno::inval);
    EXPECT_EQ(open_error("n", 16), Errno::inval);
    u32 fd;
    EXPECT_EQ(guest().open("a.txt", fd, 0, all_rights, 3, 32), Errno::inval);
    EXPECT_EQ(stat_error("n"), Errno::noent);

    fd = open("n", oflag_creat | oflag_excl);
    EXPECT_EQ(stat("n").size, 0u);
    write(fd, "abc");
    EXPECT_EQ(read_path("n"), "abc");
    open("n", oflag_creat);
    EXPECT_EQ(read_path("n"), "abc");
    open("n", oflag_trunc);
    EXPECT_EQ(read_path("n"), "");
    // Through a link that leads to a name that is not there yet.
    EXPECT_EQ(guest().symlink("d/new", "to"), Errno::success);
    EXPECT_EQ(open_error("to", oflag_creat | oflag_excl), Errno::exist);
    EXPECT_EQ(open_error("to"), Errno::noent);
    open("to", oflag_creat);
    EXPECT_EQ(stat("d/new").type, filetype_regular_file);
    EXPECT_EQ(stat("to").type, filetype_symbolic_link);
}

TEST_F(Paths, OpenedHaveNoMoreRightsThanInherited) {
    Caller& g = guest();
    u32 d = ~0u;
    u64 inheriting = right_fd_read | right_fd_seek | right_path_open | right_fd_readdir;
    EXPECT_EQ(g.open("d", d, oflag_directory, right_path_open | right_fd_readdir, 3, 0, inheriting),
              Errno::success);
    Caller::Fdstat stat{};
    EXPECT_EQ(g.fdstat(d, stat), Errno::success);
    EXPECT_EQ(stat.type, filetype_directory);
    EXPECT_EQ(stat.rights, right_path_open | right_fd_readdir);
    EXPECT_EQ(stat.inheriting, inheriting);
    EXPECT_EQ(open_error("x", 0, right_fd_read | right_fd_write, d), Errno::notcapable);
    u32 x = open("x", 0, all_rights & ~writing_rights, d);
    EXPECT_EQ(g.fdstat(x, stat), Errno::success);
    EXPECT_EQ(stat.type, filetype_regular_file);
    EXPECT_EQ(stat.rights, right_fd_read | right_fd_seek);
    EXPECT_EQ(stat.inheriting, 0u);
    // And so on downwards.
    u32 e = ~0u;
    EXPECT_EQ(g.open("e", e, oflag_directory, all_rights & ~u64{right_fd_write}, d),
              Errno::success);
    EXPECT_EQ(g.fdstat(e, stat), Errno::success);
    EXPECT_EQ(stat.rights, right_path_open | right_fd_readdir);
    EXPECT_EQ(stat.inheriting, inheriting);
    EXPECT_EQ(g.make_directory("n", e), Errno::notcapable);
}

TEST_F(Paths, OpenThatFailsChangesNothing) {
    Caller& g = guest();
    auto fails = [&](Errno expected, u64 rights, u32 result, u32 directory) {
        for (const char* path : {"a.txt", "new"}) {
            Text at = g.text(path);
            u32 oflags = oflag_creat | oflag_trunc;
            EXPECT_EQ(g.call(SystemCall::path_open, {directory, 1, at.at, at.length, oflags, rights,
                                                     all_rights, 0, result}),
                      expected);
        }
        EXPECT_EQ(stat("a.txt").size, 12u);
        EXPECT_EQ(stat_error("new"), Errno::noent);
    };
    fails(Errno::fault, all_rights, Caller::memory_size - 3, 3);
    fails(Errno::fault, all_rights, ~0u, 3);
    u32 narrow = ~0u;
    u64 may = right_path_open | right_path_create_file | right_path_filestat_set_size;
    EXPECT_EQ(g.open(".", narrow, oflag_directory, may, 3, 0, right_fd_read), Errno::success);
    fails(Errno::notcapable, right_fd_read | right_fd_write, Caller::result, narrow);
    for (u32 i = 5; i < max_descriptors; i++) open("a.txt");
    fails(Errno::mfile, all_rights, Caller::result, 3);
}

TEST_F(Paths, OpenUpToALimit) {
    u32 fd = 0;
    for (u32 i = 4; i < max_descriptors; i++) EXPECT_EQ(open("a.txt"), i);
    EXPECT_EQ(guest().open("a.txt", fd), Errno::mfile);
    close(500);
    EXPECT_EQ(open("a.txt"), 500u);
    EXPECT_EQ(guest().open("a.txt", fd), Errno::mfile);
}

// ---- links, directories, renaming --------------------------------------------------------

TEST_F(Paths, MakeAndRemoveDirectories) {
    Caller& g = guest();
    EXPECT_EQ(g.make_directory("n"), Errno::success);
    EXPECT_EQ(g.make_directory("n/m/"), Errno::success);
    EXPECT_EQ(g.make_directory("n"), Errno::exist);
    EXPECT_EQ(g.make_directory("a.txt"), Errno::exist);
    EXPECT_EQ(g.make_directory("link"), Errno::exist);
    EXPECT_EQ(g.make_directory("."), Errno::exist);
    EXPECT_EQ(g.make_directory("x/y"), Errno::noent);
    EXPECT_EQ(g.make_directory("a.txt/y"), Errno::notdir);
    make_file("n/m/f", "1");
    EXPECT_EQ(g.remove_directory("n"), Errno::notempty);
    EXPECT_EQ(g.remove_directory("n/m"), Errno::notempty);
    EXPECT_EQ(g.remove_directory("n/m/f"), Errno::notdir);
    EXPECT_EQ(g.remove_directory("dlink"), Errno::notdir);
    EXPECT_EQ(g.remove_directory("nothing"), Errno::noent);
    EXPECT_EQ(g.remove_directory("."), Errno::inval);
    EXPECT_EQ(g.remove_directory("n/."), Errno::inval);
    EXPECT_EQ(g.remove_directory("n/m/.."), Errno::inval);
    EXPECT_EQ(g.unlink("n/m"), Errno::isdir);
    EXPECT_EQ(g.unlink("n/m/f"), Errno::success);
    EXPECT_EQ(g.remove_directory("n/m/"), Errno::success);
    EXPECT_EQ(g.remove_directory("n"), Errno::success);
    EXPECT_EQ(g.remove_directory("none"), Errno::success);
    EXPECT_EQ(stat_error("none"), Errno::noent);
    EXPECT_EQ(g.remove_directory("d"), Errno::notempty);
}

TEST_F(Paths, Unlink) {
    Caller& g = guest();
    EXPECT_EQ(g.unlink("nothing"), Errno::noent);
    EXPECT_EQ(g.unlink("d"), Errno::isdir);
    EXPECT_EQ(g.unlink("."), Errno::isdir);
    EXPECT_EQ(g.unlink("a.txt/"), Errno::notdir);
    EXPECT_EQ(g.unlink("dlink"), Errno::success);
    EXPECT_EQ(stat("d").type, filetype_directory);
    // What is open stays until it is closed.
    for (const char* path : {"a.txt", "new"}) {
        if (path[0] == 'n') make_file(path, "hello, world");
        u32 fd = open(path), other = open(path);
        EXPECT_EQ(g.unlink(path), Errno::success);
        EXPECT_EQ(g.unlink(path), Errno::noent);
        EXPECT_EQ(read(fd), "hello, world");
        EXPECT_EQ(g.pwrite(fd, "HELLO", 0), Errno::success);
        Caller::Filestat stat{};
        EXPECT_EQ(g.stat_fd(other, stat), Errno::success);
        EXPECT_EQ(stat.links, 0u);
        close(fd);
        EXPECT_EQ(read(other), "HELLO, world");
        make_file(path, "another");
        EXPECT_EQ(g.seek(other, 0, whence_set), Errno::success);
        EXPECT_EQ(read(other), "HELLO, world");
        EXPECT_EQ(read_path(path), "another");
        close(other);
    }
}

TEST_F(Paths, HardLinks) {
    Caller& g = guest();
    EXPECT_EQ(g.link("a.txt", "b"), Errno::success);
    EXPECT_EQ(stat("b").inode, stat("a.txt").inode);
    EXPECT_EQ(stat("b").links, 2u);
    make_file("b", "changed");
    EXPECT_EQ(read_path("a.txt"), "changed");
    EXPECT_EQ(g.unlink("a.txt"), Errno::success);
    EXPECT_EQ(stat("b").links, 1u);
    EXPECT_EQ(read_path("b"), "changed");
    EXPECT_EQ(g.link("d", "l"), Errno::perm);
    EXPECT_EQ(g.link(".", "l"), Errno::perm);
    EXPECT_EQ(g.link("nothing", "l"), Errno::noent);
    EXPECT_EQ(g.link("b", "d"), Errno::exist);
    EXPECT_EQ(g.link("b", "b"), Errno::exist);
    EXPECT_EQ(g.link("b", "l/"), Errno::noent);
    EXPECT_EQ(g.link("b", "x/l"), Errno::noent);
    EXPECT_EQ(g.link("b", "d/l"), Errno::success);
    // Of a link itself, or of what it leads to.
    EXPECT_EQ(g.symlink("b", "s"), Errno::success);
    EXPECT_EQ(g.link("s", "s2"), Errno::success);
    EXPECT_EQ(stat("s2").type, filetype_symbolic_link);
    EXPECT_EQ(g.link("s", "s3", lookup_symlink_follow), Errno::success);
    EXPECT_EQ(stat("s3").type, filetype_regular_file);
    EXPECT_EQ(stat("s3").links, 3u);
}

TEST_F(Paths, SymbolicLinks) {
    Caller& g = guest();
    std::string text;
    EXPECT_EQ(g.symlink("d/x", "s"), Errno::success);
    EXPECT_EQ(g.readlink("s", text), Errno::success);
    EXPECT_EQ(text, "d/x");
    EXPECT_EQ(stat("s").size, 3u);
    EXPECT_EQ(g.readlink("s", text, 2), Errno::success);
    EXPECT_EQ(text, "d/");
    EXPECT_EQ(g.readlink("s", text, 0), Errno::success);
    EXPECT_EQ(text, "");
    EXPECT_EQ(g.readlink("link", text), Errno::success);
    EXPECT_EQ(text, "a.txt");
    EXPECT_EQ(g.readlink("a.txt", text), Errno::inval);
    EXPECT_EQ(g.readlink("d", text), Errno::inval);
    EXPECT_EQ(g.readlink("nothing", text), Errno::noent);
    Text at = g.text("s");
    EXPECT_EQ(g.call(SystemCall::path_readlink,
                     {3, at.at, at.length, Caller::memory_size - 1, 100, Caller::result}),
              Errno::fault);
    EXPECT_EQ(g.call(SystemCall::path_readlink, {3, at.at, at.length, Caller::buffer, 100, ~0u}),
              Errno::fault);
    EXPECT_EQ(g.symlink("x", "s"), Errno::exist);
    EXPECT_EQ(g.symlink("x", "d"), Errno::exist);
    EXPECT_EQ(g.symlink("x", "."), Errno::exist);
    EXPECT_EQ(g.symlink("x", "n/"), Errno::noent);
    EXPECT_EQ(g.symlink("x", "n/m"), Errno::noent);
    EXPECT_EQ(g.symlink("", "n"), Errno::noent);
    EXPECT_EQ(g.symlink("/x", "n"), Errno::perm);
    EXPECT_EQ(g.symlink(std::string("x\0y", 3), "n"), Errno::inval);
    EXPECT_EQ(g.symlink("x\xff", "n"), Errno::ilseq);
    EXPECT_EQ(g.symlink(std::string(4096, 'x'), "n"), Errno::nametoolong);
    EXPECT_EQ(g.symlink(std::string(4095, 'x'), "n"), Errno::success);
    EXPECT_EQ(g.readlink("n", text), Errno::success);
    EXPECT_EQ(text.size(), 4095u);
    EXPECT_EQ(stat_error("n", lookup_symlink_follow), Errno::nametoolong);
}

TEST_F(Paths, RenameInAllCombinations) {
    Caller& g = guest();
    make_file("f", "f");
    make_file("g", "g");
    EXPECT_EQ(g.make_directory("p"), Errno::success);
    EXPECT_EQ(g.make_directory("q"), Errno::success);
    make_file("q/in", "in");

    EXPECT_EQ(g.rename("nothing", "x"), Errno::noent);
    EXPECT_EQ(g.rename("f", "x/y"), Errno::noent);
    EXPECT_EQ(g.rename("f", "g/y"), Errno::notdir);
    EXPECT_EQ(g.rename("f", "p"), Errno::isdir);
    EXPECT_EQ(g.rename("p", "f"), Errno::notdir);
    EXPECT_EQ(g.rename("p", "q"), Errno::notempty);
    EXPECT_EQ(g.rename("f", "x/"), Errno::notdir);
    EXPECT_EQ(g.rename("f/", "x"), Errno::notdir);
    EXPECT_EQ(g.rename(".", "x"), Errno::busy);
    EXPECT_EQ(g.rename("f", "."), Errno::busy);
    EXPECT_EQ(g.rename("q", "q/in2"), Errno::inval);
    EXPECT_EQ(g.rename("d", "d/e/d"), Errno::inval);
    EXPECT_EQ(g.rename("d", "dlink/e/d"), Errno::inval);
    // Onto itself.
    EXPECT_EQ(g.rename("f", "f"), Errno::success);
    EXPECT_EQ(g.rename("q", "./q/"), Errno::success);
    EXPECT_EQ(g.link("f", "f2"), Errno::success);
    EXPECT_EQ(g.rename("f", "f2"), Errno::success);
    EXPECT_EQ(read_path("f"), "f");
    EXPECT_EQ(read_path("f2"), "f");
    // A file: anew, and onto another.
    EXPECT_EQ(g.rename("f", "h"), Errno::success);
    EXPECT_EQ(stat_error("f"), Errno::noent);
    EXPECT_EQ(g.rename("h", "g"), Errno::success);
    EXPECT_EQ(read_path("g"), "f");
    EXPECT_EQ(g.rename("g", "p/g"), Errno::success);
    EXPECT_EQ(read_path("p/g"), "f");
    EXPECT_EQ(g.rename("p/g", "g"), Errno::success);
    // A directory with what is in it, onto an empty one.
    EXPECT_EQ(g.rename("q", "p/"), Errno::success);
    EXPECT_EQ(read_path("p/in"), "in");
    EXPECT_EQ(g.rename("p", "none"), Errno::success);
    EXPECT_EQ(read_path("none/in"), "in");
    EXPECT_EQ(read_path("none/../g"), "f");
    // Links are renamed, not what they lead to.
    EXPECT_EQ(g.rename("link", "l"), Errno::success);
    EXPECT_EQ(stat("l").type, filetype_symbolic_link);
    EXPECT_EQ(g.rename("l", "g"), Errno::success);
    EXPECT_EQ(read_path("g"), "hello, world");
    // A directory of the base, with files that nobody has touched.
    EXPECT_EQ(g.rename("d", "none/d"), Errno::success);
    EXPECT_EQ(read_path("none/d/x"), pattern(5000));
    EXPECT_EQ(read_path("none/d/e/../../d/e/y"), "deep");
    make_file("none/d/e/y", "changed");
    EXPECT_EQ(read_path("none/d/e/y"), "changed");
    EXPECT_EQ(stat_error("d"), Errno::noent);
    EXPECT_EQ(stat_error("dlink", lookup_symlink_follow), Errno::noent);
}

TEST_F(Paths, RenamedFilesStayOpen) {
    u32 fd = open("a.txt"), d = open_directory("d");
    EXPECT_EQ(guest().rename("a.txt", "d/b"), Errno::success);
    EXPECT_EQ(guest().rename("d", "m"), Errno::success);
    EXPECT_EQ(read(fd), "hello, world");
    EXPECT_EQ(names(d), (std::vector<std::string>{"e", "x", "b"}));
    EXPECT_EQ(guest().pwrite(fd, "J", 0), Errno::success);
    EXPECT_EQ(read_path("m/b"), "Jello, world");
    // And those that lose their name to another.
    make_file("c", "c");
    u32 c = open("c");
    EXPECT_EQ(guest().rename("m/b", "c"), Errno::success);
    EXPECT_EQ(read(c), "c");
    EXPECT_EQ(read_path("c"), "Jello, world");
}

TEST_F(Paths, RenameBetweenPreopens) {
    Folder other;
    other.write("o/f", "other");
    options.mounts.push_back({other.path().string(), "other", true});
    Caller& g = guest();
    EXPECT_EQ(g.rename("o", "none/o", 4, 3), Errno::success);
    EXPECT_EQ(read_path("none/o/f"), "other");
    EXPECT_EQ(stat_error("o", 0, 4), Errno::noent);
    EXPECT_EQ(g.rename("d", "d", 3, 4), Errno::success);
    u32 fd = ~0u;
    EXPECT_EQ(g.open("d/e/../x", fd, 0, all_rights, 4), Errno::success);
    EXPECT_EQ(read(fd), pattern(5000));
    EXPECT_EQ(stat_error("d/../..", 0, 4), Errno::perm);
}

// Such a directory has no place in the tree: what were made there would be lost, and leak.
TEST_F(Paths, NothingIsMadeInARemovedDirectory) {
    Caller& g = guest();
    EXPECT_EQ(g.make_directory("n"), Errno::success);
    EXPECT_EQ(g.make_directory("n/m"), Errno::success);
    u32 made = open_directory("n/m"), base = open_directory("none");
    EXPECT_EQ(g.remove_directory("n/m"), Errno::success);
    EXPECT_EQ(g.remove_directory("n"), Errno::success);
    EXPECT_EQ(g.remove_directory("none"), Errno::success);
    for (u32 fd : {made, base}) {
        EXPECT_EQ(open_error("f", oflag_creat, right_fd_read, fd), Errno::noent);
        EXPECT_EQ(g.make_directory("f", fd), Errno::noent);
        EXPECT_EQ(g.symlink("x", "f", fd), Errno::noent);
        EXPECT_EQ(g.link("a.txt", "f", 0, 3, fd), Errno::noent);
        EXPECT_EQ(g.rename("a.txt", "f", 3, fd), Errno::noent);
        EXPECT_EQ(g.rename("d", "f", 3, fd), Errno::noent);
        EXPECT_EQ(names(fd, 0), (std::vector<std::string>{".", ".."}));
        EXPECT_EQ(stat_error(".", 0, fd), Errno::success);
        EXPECT_EQ(stat_error("..", 0, fd), Errno::perm);
    }
    g.end();
    EXPECT_EQ(system().header().in_use, 0u);
}

TEST_F(Paths, Times) {
    Caller& g = guest();
    auto set = [&](const char* path, u64 accessed, u64 modified, u32 flags, u32 lookup = 0) {
        Text at = g.text(path);
        return g.call(SystemCall::path_filestat_set_times,
                      {3, lookup, at.at, at.length, accessed, modified, flags});
    };
    EXPECT_EQ(set("a.txt", 11, 22, fst_atim | fst_mtim), Errno::success);
    EXPECT_EQ(stat("a.txt").accessed, 11u);
    EXPECT_EQ(stat("a.txt").modified, 22u);
    EXPECT_EQ(set("a.txt", 33, 44, 0), Errno::success);
    EXPECT_EQ(stat("a.txt").accessed, 11u);
    EXPECT_EQ(set("a.txt", 33, 44, fst_atim), Errno::success);
    EXPECT_EQ(stat("a.txt").accessed, 33u);
    EXPECT_EQ(stat("a.txt").modified, 22u);
    EXPECT_EQ(set("a.txt", 33, 44, fst_atim_now | fst_mtim_now), Errno::success);
    EXPECT_GE(stat("a.txt").modified, system().header().realtime);
    EXPECT_EQ(stat("a.txt").modified, stat("a.txt").accessed);
    for (u32 flags : {3u, 12u, 15u, 16u, ~0u})
        EXPECT_EQ(set("a.txt", 0, 0, flags), Errno::inval) << flags;
    EXPECT_EQ(set("nothing", 0, 0, 1), Errno::noent);
    EXPECT_EQ(set("link", 5, 6, fst_atim | fst_mtim), Errno::success);
    EXPECT_EQ(stat("link").modified, 6u);
    EXPECT_NE(stat("a.txt").modified, 6u);
    EXPECT_EQ(set("link", 7, 8, fst_atim | fst_mtim, lookup_symlink_follow), Errno::success);
    EXPECT_EQ(stat("a.txt").modified, 8u);
    EXPECT_EQ(set(".", 1, 2, fst_mtim), Errno::success);
    EXPECT_EQ(stat(".").modified, 2u);
    // What changes a directory changes its time.
    make_file("n", "");
    EXPECT_GE(stat(".").modified, system().header().realtime);
}

}  // namespace
}  // namespace gpurun::test
