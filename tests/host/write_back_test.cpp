// Changes on their way to directories of the host.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include "host/harvest.h"
#include "tree.h"

namespace gpurun::test {
namespace {

using testing::HasSubstr;

std::string write_back(const Guest& guest, const SystemBase& system_base) {
    Result<void> done = host::write_back(guest.bytes, guest.process, system_base);
    return done ? "" : done.error().message;
}

struct WriteBack : testing::Test {
    Folder folder;
    Tree before;
    std::unique_ptr<SystemBase> system_base;
    std::unique_ptr<Guest> made;

    WriteBack() {
        folder.write("file", "old");
        folder.write("other", "other");
        folder.write("d/inner/x", "x");
        folder.write("d/y", "y");
        folder.link("link", "file");
    }
    Guest& guest() {
        if (!made) {
            before = folder.tree();
            system_base = std::make_unique<SystemBase>(make_system_base(options_for(folder)));
            made = std::make_unique<Guest>(*system_base);
        }
        return *made;
    }
    // The host's tree is the process's.
    void expect_same() {
        EXPECT_EQ(write_back(guest(), *system_base), "");
        EXPECT_EQ(folder.tree(), guest().tree(guest().own_root(0), system_base.get()));
    }
};

TEST_F(WriteBack, Nothing) {
    guest().own("d/y");
    expect_same();
    EXPECT_EQ(folder.tree(), before);
}

TEST_F(WriteBack, AllKinds) {
    guest().change("file", pattern(10'000));
    guest().change("d/inner/x", "");
    guest().add("made", guest().file("made"));
    guest().add("dir", guest().make(NodeKind::directory));
    guest().add("dir/sub", guest().make(NodeKind::directory));
    guest().add("dir/sub/f", guest().file("f"));
    guest().add("dir/link", guest().symlink("../file"));
    guest().remove("d/y");
    guest().remove("link");
    guest().add("link", guest().symlink("made"));
    expect_same();
    struct stat info;
    ASSERT_EQ(stat((folder / "made").c_str(), &info), 0);
    mode_t mask = umask(0);
    umask(mask);
    EXPECT_EQ(info.st_mode & 07777, 0644u & ~mask);
    EXPECT_EQ(info.st_mtim.tv_sec, 1'700'000'000);
    EXPECT_EQ(info.st_mtim.tv_nsec, 123'456'789);
}

TEST_F(WriteBack, OtherKinds) {
    guest().remove("d");
    guest().add("d", guest().file("now a file"));
    guest().remove("file");
    guest().add("file", guest().make(NodeKind::directory));
    guest().add("file/in", guest().file("in a directory that was a file"));
    guest().remove("link");
    guest().add("link", guest().make(NodeKind::directory));
    guest().add("link/in", guest().file("in a directory that was a link"));
    guest().remove("other");
    guest().add("other", guest().symlink("d"));
    expect_same();
}

TEST_F(WriteBack, Renames) {
    guest().rename("file", "tmp");
    guest().rename("other", "file");
    guest().rename("tmp", "other");
    guest().rename("d/inner", "moved");
    guest().rename("d", "moved/d");
    expect_same();
    EXPECT_EQ(read_file(folder / "file"), "other");
    EXPECT_EQ(read_file(folder / "other"), "old");
}

TEST_F(WriteBack, ColdFiles) {
    std::string a = pattern(host::cold_size * 2, 1), b = pattern(host::cold_size + 7, 2);
    folder.write("a", a);
    folder.write("b", b);
    folder.write("d/c", a + b);
    folder.write("e", b + a);
    guest().rename("a", "tmp");
    guest().rename("b", "a");
    guest().rename("tmp", "b");
    guest().rename("d", "new");
    Handle own = guest().own("e"), block = guest().allocate(file_block);
    guest().get<Handle>(guest().node(own).content, 1) = block;
    guest().node(own).flags |= node_is_changed;
    std::string e = b + a;
    std::fill_n(e.begin() + file_block, file_block, '\0');
    EXPECT_EQ(write_back(guest(), *system_base), "");
    EXPECT_EQ(read_file(folder / "a"), b);
    EXPECT_EQ(read_file(folder / "b"), a);
    EXPECT_EQ(read_file(folder / "new/c"), a + b);
    EXPECT_EQ(read_file(folder / "e"), e);
    EXPECT_FALSE(fs::exists(folder / "d"));
    EXPECT_EQ(folder.tree().size(), before.size());
}

TEST_F(WriteBack, HolesStayHoles) {
    Handle file = guest().file("x");
    guest().node(file).size = u64{1} << 36;
    guest().add("holes", file);
    EXPECT_EQ(write_back(guest(), *system_base), "");
    struct stat info;
    ASSERT_EQ(stat((folder / "holes").c_str(), &info), 0);
    EXPECT_EQ(info.st_size, off_t{1} << 36);
    EXPECT_LT(info.st_blocks, 1000);
}

// Of a file that stayed with the host too; with more blocks than one table has.
TEST_F(WriteBack, HolesOfColdFilesStayHoles) {
    const u64 size = 3 * table_blocks * file_block + 5;
    folder.write("sparse", "start");
    fs::resize_file(folder / "sparse", size);
    Handle own = guest().own("sparse");
    EXPECT_TRUE(guest().node(own).flags & node_is_deep);
    guest().node(own).flags |= node_is_changed;
    EXPECT_EQ(write_back(guest(), *system_base), "");
    std::string expected = "start";
    expected.resize(size);
    EXPECT_TRUE(read_file(folder / "sparse") == expected);
    struct stat info;
    ASSERT_EQ(stat((folder / "sparse").c_str(), &info), 0);
    EXPECT_LT(info.st_blocks, 1000);
}

TEST_F(WriteBack, Modes) {
    chmod((folder / "file").c_str(), 04751);
    guest().change("file", "new");
    expect_same();
    struct stat info;
    ASSERT_EQ(stat((folder / "file").c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 07777, 0751u);
}

TEST_F(WriteBack, ReadOnlyMount) {
    before = folder.tree();
    SystemBase locked = make_system_base(options_for(folder, false));
    Guest process(locked);
    process.change("file", "new");
    process.remove("d");
    process.add("made", process.file("made"));
    EXPECT_EQ(write_back(process, locked), "");
    EXPECT_EQ(folder.tree(), before);
}

TEST_F(WriteBack, OtherThingsOfTheHost) {
    guest().change("d/inner/x", "new");
    guest().change("d/y", "new");
    guest().change("file", "new");
    guest().add("dir", guest().make(NodeKind::directory));
    guest().add("dir/f", guest().file("f"));
    // The host's user was quicker: a file where a directory was, and where one is to be.
    fs::remove_all(folder / "d/inner");
    folder.write("d/inner", "a file");
    folder.write("dir", "a file");
    std::string error = write_back(guest(), *system_base);
    EXPECT_THAT(error, HasSubstr("'" + folder.path().string() + "'"));
    EXPECT_THAT(error, HasSubstr("'dir' in"));
    EXPECT_THAT(error, HasSubstr("'d/inner' in"));
    EXPECT_EQ(read_file(folder / "dir.gpu-run-conflict-1/f"), "f");
    EXPECT_EQ(read_file(folder / "d/inner.gpu-run-conflict-1/x"), "new");
    EXPECT_EQ(read_file(folder / "file"), "new");
    EXPECT_EQ(read_file(folder / "d/y"), "new");
    EXPECT_EQ(read_file(folder / "d/inner"), "a file");
    EXPECT_EQ(read_file(folder / "dir"), "a file");
}

TEST_F(WriteBack, DiskFull) {
    guest().change("file", pattern(100'000));
    guest().change("other", "small");
    guest().rename("d/y", "renamed");
    guest().remove("link");
    rlimit old_limit, limit;
    getrlimit(RLIMIT_FSIZE, &old_limit);
    limit = old_limit;
    limit.rlim_cur = 50'000;
    auto* old_handler = signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &limit);
    std::string error = write_back(guest(), *system_base);
    setrlimit(RLIMIT_FSIZE, &old_limit);
    signal(SIGXFSZ, old_handler);
    EXPECT_THAT(error, HasSubstr("cannot write 'file' in"));
    EXPECT_THAT(error, HasSubstr("file too large"));
    // What could be written was; nothing was removed.
    Tree expected = before;
    expected["other"] = "=small";
    expected["renamed"] = "=y";
    EXPECT_EQ(folder.tree(), expected);
}

TEST_F(WriteBack, NoPermission) {
    chmod((folder / "d").c_str(), 0777);
    chmod((folder / "d/inner").c_str(), 0555);
    guest().change("d/inner/x", "new");
    guest().change("d/y", "new");
    guest().remove("link");
    std::string error;
    {
        Unprivileged unprivileged(folder);
        error = write_back(guest(), *system_base);
    }
    EXPECT_THAT(error, HasSubstr("cannot write 'inner/x' in '" + (folder / "d").string()));
    EXPECT_THAT(error, HasSubstr("permission denied"));
    Tree expected = before;
    expected["d/x.gpu-run-conflict-1"] = "=new";
    expected["d/y"] = "=new";
    EXPECT_EQ(folder.tree(), expected);
    chmod((folder / "d/inner").c_str(), 0755);
}

TEST_F(WriteBack, DirectoryInTheWay) {
    guest().change("file", "new");
    fs::remove(folder / "file");
    folder.make_directory("file");
    std::string error = write_back(guest(), *system_base);
    EXPECT_THAT(error, HasSubstr("'file.gpu-run-conflict-1'"));
    EXPECT_TRUE(fs::is_directory(folder / "file"));
    EXPECT_EQ(read_file(folder / "file.gpu-run-conflict-1"), "new");
}

TEST_F(WriteBack, NotThroughLinksOfTheHost) {
    Folder outside;
    outside.write("y", "outside");
    outside.write("inner/x", "outside");
    Tree outside_before = outside.tree();
    guest().change("d/y", "escaped");
    guest().change("d/inner/x", "escaped");
    guest().add("d/made", guest().file("escaped"));
    guest().add("d/dir", guest().make(NodeKind::directory));
    fs::remove_all(folder / "d");
    folder.link("d", outside.path().string());
    EXPECT_NE(write_back(guest(), *system_base), "");
    EXPECT_EQ(outside.tree(), outside_before);

    // Removals neither.
    fs::remove(folder / "d");
    folder.write("d/y", "");
    folder.write("d/inner/x", "");
    SystemBase again = make_system_base(options_for(folder));
    Guest process(again);
    process.remove("d");
    fs::remove_all(folder / "d");
    folder.link("d", outside.path().string());
    EXPECT_NE(write_back(process, again), "");
    EXPECT_EQ(outside.tree(), outside_before);
}

TEST_F(WriteBack, LinkInPlaceOfFile) {
    Folder outside;
    outside.write("target", "outside");
    guest().change("file", "new");
    fs::remove(folder / "file");
    folder.link("file", (outside / "target").string());
    EXPECT_THAT(write_back(guest(), *system_base), HasSubstr("'file.gpu-run-conflict-1'"));
    EXPECT_EQ(read_file(outside / "target"), "outside");
    EXPECT_TRUE(fs::is_symlink(folder / "file"));
    EXPECT_EQ(read_file(folder / "file.gpu-run-conflict-1"), "new");
}

TEST_F(WriteBack, LinksThatLeadOut) {
    const char* refused[] = {"/etc/passwd", "..", "../x", "d/../../x", "./..//x", "d/../x"};
    for (const char* text : refused) {
        Guest process(*(guest(), system_base));
        process.add("out", process.symlink(text));
        EXPECT_THAT(write_back(process, *system_base), HasSubstr("leads out")) << text;
        EXPECT_EQ(folder.tree(), before);
    }
    guest().add("d/in", guest().symlink("../file"));
    guest().add("d/inner/in", guest().symlink("../../d/./y"));
    expect_same();
}

// A link of the host's own may be moved though it leads out.
TEST_F(WriteBack, LinkOfTheHost) {
    folder.link("abs", "/etc/passwd");
    guest().rename("abs", "moved");
    expect_same();
}

struct Store : WriteBack {};

TEST_F(Store, ChangedFiles) {
    Folder out;
    guest().change("d/inner/x", "new");
    guest().remove("file");
    guest().rename("other", "d/other");
    guest().add("empty", guest().make(NodeKind::directory));
    std::string path = (out / "a/7").string();
    Result<void> stored = host::store(guest().bytes, guest().process, *system_base, path);
    EXPECT_TRUE(stored);
    EXPECT_EQ(out.tree(), (Tree{{"a", "directory"},
                                {"a/7", "directory"},
                                {"a/7/d", "directory"},
                                {"a/7/d/inner", "directory"},
                                {"a/7/d/inner/x", "=new"},
                                {"a/7/d/other", "=other"},
                                {"a/7/empty", "directory"}}));
    EXPECT_EQ(folder.tree(), before);
    // The same once more, over what is there.
    EXPECT_TRUE(host::store(guest().bytes, guest().process, *system_base, path));
}

TEST_F(Store, NothingMakesNoFolder) {
    Folder out;
    guest().remove("file");
    EXPECT_TRUE(host::store(guest().bytes, guest().process, *system_base, (out / "7").string()));
    EXPECT_TRUE(out.tree().empty());
}

TEST_F(Store, SeveralPreopens) {
    Folder out;
    SystemOptions options = options_for(folder, false);
    for (const char* path : {"/data/x", "data_x", "..", "."})
        options.mounts.push_back({folder.path().string(), path, true});
    SystemBase many = make_system_base(options);
    Guest process(many);
    for (u32 i = 0; i < 5; i++) process.add("f", process.file(std::to_string(i)), i);
    EXPECT_TRUE(host::store(process.bytes, process.process, many, out.path().string()));
    Tree files = out.tree();
    std::erase_if(files, [](auto& entry) { return entry.second == "directory"; });
    EXPECT_EQ(files, (Tree{{"root/f", "=0"},
                           {"data_x/f", "=1"},
                           {"data_x-2/f", "=2"},
                           {"root-2/f", "=3"},
                           {"root-3/f", "=4"}}));
}

TEST_F(Store, FolderThatCannotBe) {
    guest().add("f", guest().file("f"));
    Result<void> stored =
        host::store(guest().bytes, guest().process, *system_base, (folder / "file/x").string());
    ASSERT_FALSE(stored);
    EXPECT_THAT(stored.error().message, HasSubstr("file/x': not a directory"));
}

}  // namespace
}  // namespace gpurun::test
