// Changes of directories that are interrupted, and changes that others make meanwhile.
#include "host/transaction.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include <algorithm>
#include <thread>

#include "base/format.h"
#include "base/notes.h"
#include "base/utf8.h"
#include "host/harvest.h"
#include "tree.h"

namespace gpurun::test {
namespace {

using host::Expected;
using host::File;
using host::Row;
using testing::HasSubstr;

std::string write_back(const Guest& guest, const SystemBase& system_base) {
    Result<void> done = host::write_back(guest.bytes, guest.process, system_base);
    return done ? "" : done.error().message;
}

File open_folder(const Folder& folder) {
    return File(open(folder.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

// Hears what is said while it lives.
struct Notes {
    std::string text;
    Notes() {
        hear_notes([this](const std::string& line) { text += line + "\n"; });
    }
    ~Notes() { hear_notes({}); }
};

struct stat stat_of(const fs::path& path) {
    struct stat info = {};
    EXPECT_EQ(lstat(path.c_str(), &info), 0) << path;
    return info;
}

// ---- what others change meanwhile ----------------------------------------------------

struct Conflict : testing::Test {
    Folder folder;
    std::unique_ptr<SystemBase> system_base;
    std::unique_ptr<Guest> made;

    Conflict() {
        folder.write("log", "first\n");
        folder.write("old", "old");
        folder.write("d/x", "x");
    }
    Guest& guest() {
        if (!made) {
            system_base = std::make_unique<SystemBase>(make_system_base(options_for(folder)));
            made = std::make_unique<Guest>(*system_base);
        }
        return *made;
    }
    void expect_conflict(const std::string& name, const Tree& expected) {
        std::string message = write_back(guest(), *system_base);
        EXPECT_THAT(message, HasSubstr("'" + name + "' in"));
        EXPECT_THAT(message, HasSubstr("by others meanwhile"));
        EXPECT_EQ(folder.tree(), expected);
    }
};

TEST_F(Conflict, Appended) {
    guest().change("log", "first\nguest\n");
    std::ofstream(folder / "log", std::ios::app) << "host\n";
    Tree expected = folder.tree();
    expected["log.gpu-run-conflict-1"] = "=first\nguest\n";
    expect_conflict("log", expected);
    // The first free name.
    expected["log.gpu-run-conflict-2"] = "=first\nguest\n";
    expect_conflict("log", expected);
}

// Of the same size, and with its old times.
TEST_F(Conflict, Rewritten) {
    guest().change("old", "new");
    const struct stat before = stat_of(folder / "old");
    folder.write("old", "NEW");
    timespec times[2] = {before.st_atim, before.st_mtim};
    ASSERT_EQ(utimensat(AT_FDCWD, (folder / "old").c_str(), times, 0), 0);
    Tree expected = folder.tree();
    expected["old.gpu-run-conflict-1"] = "=new";
    expect_conflict("old", expected);
}

TEST_F(Conflict, Removed) {
    guest().change("old", "new");
    fs::remove(folder / "old");
    Tree expected = folder.tree();
    expected["old.gpu-run-conflict-1"] = "=new";
    expect_conflict("old", expected);
}

TEST_F(Conflict, RemovedWithItsDirectory) {
    guest().change("d/x", "new");
    fs::remove_all(folder / "d");
    Tree expected = folder.tree();
    expected["d"] = "directory";
    expected["d/x.gpu-run-conflict-1"] = "=new";
    expect_conflict("d/x", expected);
}

TEST_F(Conflict, MadeToo) {
    guest().add("made", guest().file("guest"));
    folder.write("made", "host");
    Tree expected = folder.tree();
    expected["made.gpu-run-conflict-1"] = "=guest";
    expect_conflict("made", expected);
}

// What is in both is in one directory afterwards.
TEST_F(Conflict, DirectoryMadeToo) {
    guest().add("out", guest().make(NodeKind::directory));
    guest().add("out/a", guest().file("guest"));
    guest().add("out/b", guest().file("guest"));
    guest().add("out/in", guest().make(NodeKind::directory));
    guest().add("out/in/c", guest().file("guest"));
    folder.write("out/a", "host");
    folder.write("out/in/d", "host");
    Tree expected = folder.tree();
    expected["out/a.gpu-run-conflict-1"] = "=guest";
    expected["out/b"] = "=guest";
    expected["out/in/c"] = "=guest";
    expect_conflict("out/a", expected);
}

TEST_F(Conflict, RemovedByTheProgram) {
    guest().remove("old");
    folder.write("old", "host");
    expect_conflict("old", folder.tree());
}

// Renamed by the program: its contents have the new name, and the host's the old one.
TEST_F(Conflict, Renamed) {
    guest().rename("log", "log.1");
    std::ofstream(folder / "log", std::ios::app) << "host\n";
    Tree expected = folder.tree();
    expected["log.1"] = "=first\n";
    expect_conflict("log", expected);
}

TEST_F(Conflict, FileInADirectoryThatTheProgramRemoved) {
    guest().remove("d");
    folder.write("d/host", "host");
    std::string message = write_back(guest(), *system_base);
    EXPECT_THAT(message, HasSubstr("cannot remove 'd' in"));
    EXPECT_EQ(read_file(folder / "d/host"), "host");
}

TEST_F(Conflict, LongName) {
    std::string name(max_name, 'n');
    guest().add(name, guest().file("guest"));
    folder.write(name, "host");
    EXPECT_NE(write_back(guest(), *system_base), "");
    std::string beside = host::conflict_name(name, 1);
    EXPECT_EQ(beside.size(), max_name);
    EXPECT_EQ(read_file(folder / beside), "guest");
    EXPECT_EQ(host::conflict_name("ä", 12), "ä.gpu-run-conflict-12");
    std::string cut = host::conflict_name(std::string(233, 'n') + "ää", 1);
    EXPECT_TRUE(is_utf8(cut));
}

// Of four that append, the first to end is written and the others are beside it.
TEST_F(Conflict, FourRuns) {
    std::vector<SystemBase> bases;
    for (u32 i = 0; i < 4; i++) bases.push_back(make_system_base(options_for(folder)));
    for (u32 i = 0; i < 4; i++) {
        Guest process(bases[i]);
        process.change("log", "first\n" + std::to_string(i) + "\n");
        EXPECT_EQ(write_back(process, bases[i]) == "", i == 0);
    }
    Tree tree = folder.tree();
    EXPECT_EQ(tree["log"], "=first\n0\n");
    for (u32 i = 1; i < 4; i++)
        EXPECT_EQ(tree["log.gpu-run-conflict-" + std::to_string(i)],
                  "=first\n" + std::to_string(i) + "\n");
}

// ---- links, names, owners and times --------------------------------------------------

struct Refusal : Conflict {};

TEST_F(Refusal, RefusedLinksLoseNothing) {
    folder.link("link", "log");
    guest().remove("link");
    guest().add("link", guest().symlink("/etc/passwd"));
    guest().add("new", guest().make(NodeKind::directory));
    guest().add("new/out", guest().symlink("../.."));
    guest().add("new/in", guest().symlink("../log"));
    guest().add("new/file", guest().file("new"));
    guest().change("log", "changed");
    guest().remove("old");
    Tree expected = folder.tree();
    expected["new"] = "directory";
    expected["new/in"] = "-> ../log";
    expected["new/file"] = "=new";
    expected["log"] = "=changed";
    std::string message = write_back(guest(), *system_base);
    EXPECT_THAT(message, HasSubstr("cannot make 'link' in"));
    EXPECT_THAT(message, HasSubstr("cannot make 'new/out' in"));
    EXPECT_EQ(folder.tree(), expected);
}

// A link that was within leads out when its directory comes nearer to the root.
TEST_F(Refusal, MovedLinks) {
    folder.write("a/b/file", "");
    folder.link("a/b/up", "../../log");
    folder.link("a/b/near", "../x");
    guest().rename("a/b", "b");
    std::string message = write_back(guest(), *system_base);
    EXPECT_THAT(message, HasSubstr("cannot make 'b/up' in"));
    Tree tree = folder.tree();
    EXPECT_EQ(tree["b/near"], "-> ../x");
    EXPECT_FALSE(tree.contains("b/up"));
    EXPECT_EQ(tree["a/b/up"], "-> ../../log");  // nothing was removed
}

TEST_F(Refusal, ReservedName) {
    guest().add(host::staging_name, guest().make(NodeKind::directory));
    guest().add(fs::path(host::staging_name) / "manifest", guest().file("forged"));
    guest().add("d/" + std::string(host::staging_name), guest().file("forged"));
    guest().add("made", guest().file("made"));
    Tree expected = folder.tree();
    expected["made"] = "=made";
    const std::string message = write_back(guest(), *system_base);
    EXPECT_THAT(message, HasSubstr("keeps that name"));
    EXPECT_THAT(message, Not(HasSubstr("what the program left")));
    EXPECT_EQ(folder.tree(), expected);
}

TEST_F(Refusal, OwnerAndMode) {
    chmod((folder / "log").c_str(), 0640);
    chmod((folder / "old").c_str(), 0755);
    chmod((folder / "d").c_str(), 0750);
    const bool is_root = geteuid() == 0;
    if (is_root) {
        ASSERT_EQ(chown((folder / "log").c_str(), 1234, 4321), 0);
        ASSERT_EQ(chown((folder / "d").c_str(), 1234, 4321), 0);
    }
    guest().change("log", "changed");
    guest().rename("old", "moved");
    guest().rename("d", "e");
    EXPECT_EQ(write_back(guest(), *system_base), "");
    EXPECT_EQ(stat_of(folder / "log").st_mode & 07777, 0640u);
    EXPECT_EQ(stat_of(folder / "moved").st_mode & 07777, 0755u);
    EXPECT_EQ(stat_of(folder / "e").st_mode & 07777, 0750u);
    for (const char* name : {"log", "e"}) {
        EXPECT_EQ(stat_of(folder / name).st_uid, is_root ? 1234 : geteuid());
        EXPECT_EQ(stat_of(folder / name).st_gid, is_root ? 4321 : getegid());
    }
}

TEST_F(Refusal, TimesOfDirectories) {
    timespec times[2] = {{1'600'000'000, 1}, {1'600'000'000, 2}};
    folder.write("touched/x", "x");
    for (const char* name : {"d", "touched", ""})
        ASSERT_EQ(utimensat(AT_FDCWD, (folder / name).c_str(), times, 0), 0);
    guest().change("d/x", "changed");
    guest().change("touched/x", "changed");
    folder.write("touched/host", "");
    EXPECT_EQ(write_back(guest(), *system_base), "");
    EXPECT_EQ(stat_of(folder / "d").st_mtim.tv_nsec, 2);
    EXPECT_EQ(stat_of(folder / "").st_mtim.tv_nsec, 2);
    EXPECT_NE(stat_of(folder / "touched").st_mtim.tv_sec, 1'600'000'000);
}

// ---- manifests -----------------------------------------------------------------------

std::vector<Row> some_rows() {
    Expected file{Expected::Kind::file, {7, 8, -9, 10}};
    std::vector<Row> rows(5);
    rows[0] = {Row::Kind::place, "a b\nc/d", 3};
    rows[1] = {Row::Kind::place, "x", 4, file};
    rows[2] = {Row::Kind::remove, "y", 0, file};
    rows[3] = {Row::Kind::remove_directory, "z"};
    rows[4] = {Row::Kind::set_times, "", 0, {}, -5, 6};
    return rows;
}

TEST(Manifest, RoundTrip) {
    std::string text = host::manifest_of(some_rows());
    Result<std::vector<Row>> rows = host::parse_manifest(text);
    ASSERT_TRUE(rows) << rows.error().to_string();
    EXPECT_EQ(host::manifest_of(*rows), text);
    EXPECT_EQ(rows->at(0).path, "a b\nc/d");
    EXPECT_EQ(rows->at(2).expected.identity.modified, -9);
}

TEST(Manifest, Garbled) {
    std::string text = host::manifest_of(some_rows());
    for (usize i = 0; i < text.size(); i++)
        EXPECT_FALSE(host::parse_manifest(std::string_view(text).substr(0, i))) << i;
    EXPECT_FALSE(host::parse_manifest(text + "\n"));
    for (const char* path : {"../x", "/etc/passwd", "a//b", "a/", ".", "a/../../b", "",
                             ".gpu-run-transaction/manifest", "a/.gpu-run-transaction"}) {
        Row row{Row::Kind::place, path, 0};
        EXPECT_FALSE(host::parse_manifest(host::manifest_of({row}))) << path;
    }
    EXPECT_FALSE(host::parse_manifest(host::manifest_of({{Row::Kind::remove, "x"}})));
    // Whatever one byte becomes, there is an answer.
    for (usize i = 0; i < text.size(); i++)
        for (char byte : {'\0', '\n', ' ', '/', '9', '-', '\xff'}) {
            std::string other = text;
            other[i] = byte;
            (void)host::parse_manifest(other);
        }
}

struct Recovery : Conflict {
    // As a process that was killed leaves it.
    void leave(const std::string& manifest) {
        fs::create_directory(folder / host::staging_name);
        fs::permissions(folder / host::staging_name, fs::perms(0700));
        folder.write(std::string(host::staging_name) + "/" + host::staged_name(0), "staged");
        if (!manifest.empty())
            folder.write(std::string(host::staging_name) + "/manifest", manifest);
    }
    std::string load(bool is_writable = true) {
        Result<SystemBase> loaded = SystemBase::make(options_for(folder, is_writable));
        return loaded ? "" : loaded.error().message;
    }
};

TEST_F(Recovery, Finishes) {
    Notes notes;
    Tree expected = folder.tree();
    expected["new"] = "=staged";
    leave(host::manifest_of({{Row::Kind::place, "new", 0}}));
    EXPECT_EQ(load(), "");
    EXPECT_EQ(folder.tree(), expected);
    EXPECT_THAT(notes.text, HasSubstr("finished what an interrupted run"));
}

TEST_F(Recovery, Undoes) {
    Notes notes;
    Tree expected = folder.tree();
    leave("");
    folder.write(std::string(host::staging_name) + "/manifest.new", "gpu-run transaction 1\npla");
    folder.write(std::string(host::staging_name) + "/1/deep/er/x", "");
    EXPECT_EQ(load(), "");
    EXPECT_EQ(folder.tree(), expected);
    EXPECT_THAT(notes.text, HasSubstr("undid what an interrupted run"));
}

// In a directory of the mount, as of a run that had that one alone.
TEST_F(Recovery, Deeper) {
    Folder outer;
    fs::rename(folder.path(), outer / "inner");
    Tree expected = outer.tree();
    fs::rename(outer / "inner", folder.path());
    leave(host::manifest_of({{Row::Kind::place, "new", 0}}));
    fs::rename(folder.path(), outer / "inner");
    expected["inner/new"] = "=staged";
    EXPECT_TRUE(SystemBase::make(options_for(outer)));
    EXPECT_EQ(outer.tree(), expected);
}

TEST_F(Recovery, GarbledManifest) {
    Folder outside;
    folder.link("out", outside.path().string());
    for (const std::string& manifest :
         {std::string("garbage"), host::manifest_of({{Row::Kind::place, "../x", 0}}),
          host::manifest_of({{Row::Kind::place, outside.path().string() + "/x", 0}})}) {
        leave(manifest);
        Tree before = folder.tree();
        EXPECT_THAT(load(), HasSubstr("its manifest, 0x"));
        EXPECT_EQ(folder.tree(), before);
    }
    // Not through links either: it is put beside.
    Tree expected = folder.tree();
    std::erase_if(expected, [](auto& at) { return at.first.starts_with(host::staging_name); });
    expected["out.gpu-run-conflict-1"] = "directory";
    expected["out.gpu-run-conflict-1/x"] = "=staged";
    leave(host::manifest_of({{Row::Kind::place, "out/x", 0}}));
    EXPECT_EQ(load(), "");
    EXPECT_EQ(folder.tree(), expected);
    EXPECT_TRUE(outside.tree().empty());
}

TEST_F(Recovery, OfAnotherUser) {
    leave(host::manifest_of({{Row::Kind::place, "new", 0}}));
    fs::permissions(folder / host::staging_name, fs::perms(0777));
    Tree before = folder.tree();
    EXPECT_THAT(load(), HasSubstr("others can write to it"));
    EXPECT_EQ(folder.tree(), before);
    // Who only reads does not mind, and does not see it.
    SystemBase system_base = make_system_base(options_for(folder, false));
    Guest guest(system_base);
    EXPECT_FALSE(guest.tree(guest.root(), &system_base).contains(host::staging_name));
    EXPECT_EQ(folder.tree(), before);
}

TEST_F(Recovery, InPlaceOfTheFolder) {
    folder.link(host::staging_name, "d");
    EXPECT_THAT(load(), HasSubstr("cannot deal with it"));
    EXPECT_EQ(read_file(folder / "d/x"), "x");
}

// Who is still at it is waited for.
TEST_F(Recovery, WaitsForTheLiving) {
    File directory = open_folder(folder);
    pid_t child;
    {
        Result<host::Transaction> live =
            host::Transaction::begin(directory.get(), folder.path().string());
        ASSERT_TRUE(live);
        child = fork();
        if (child == 0) {
            (void)fcntl(live->folder(), F_GETFD);
            // Not the lock that was inherited: a process of its own would not have that.
            close(live->folder());
            Result<SystemBase> loaded = SystemBase::make(options_for(folder));
            _exit(loaded && fs::exists(folder / "new") ? 0 : 1);
        }
        File staged(openat(live->folder(), host::staged_name(0).c_str(), O_CREAT | O_WRONLY, 0600));
        usleep(50'000);
        int status;
        EXPECT_EQ(waitpid(child, &status, WNOHANG), 0);
        host::Problems problems;
        EXPECT_TRUE(live->commit({{Row::Kind::place, "new", live->next_number()}}, true, problems));
    }
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_FALSE(fs::exists(folder / host::staging_name));
}

// ---- many ----------------------------------------------------------------------------

// More than are synced one by one, of every kind of row.
struct Many : testing::Test {
    static constexpr u32 count = 600;
    Folder folder{fs::is_directory("/dev/shm") ? "/dev/shm" : fs::temp_directory_path()};
    std::vector<std::pair<u64, u64>> progress;  // of progress
    std::unique_ptr<SystemBase> system_base;
    std::unique_ptr<Guest> guest;

    static std::string in(const char* what, u32 i) {
        return format("w/d%u/%s%03u", i % 5, what, i);
    }
    SystemOptions options() {
        SystemOptions made = options_for(folder);
        made.write_listener = [this](u64 done, u64 all) { progress.emplace_back(done, all); };
        return made;
    }
    void SetUp() override {
        for (u32 i = 0; i < count; i++) {
            folder.write(in("changed", i), "before");
            folder.write(in("removed", i), "removed");
            folder.write(in("renamed", i), std::to_string(i));
        }
        folder.write("w/directory/file", "");
        folder.write("w/file", "");
        system_base = std::make_unique<SystemBase>(make_system_base(options()));
        guest = std::make_unique<Guest>(*system_base);
        for (u32 i = 0; i < count; i++) {
            guest->change(in("changed", i), "after " + std::to_string(i));
            guest->remove(in("removed", i));
            guest->rename(in("renamed", i), in("name", i));
            guest->add(in("new", i), guest->file("new"));
        }
        guest->add("w/tree", guest->make(NodeKind::directory));
        for (u32 i = 0; i < count; i++)
            guest->add(format("w/tree/%u", i), guest->file(std::to_string(i)));
        guest->remove("w/directory");
        guest->add("w/directory", guest->file("is a file"));
        guest->remove("w/file");
        guest->add("w/file", guest->make(NodeKind::directory));
        guest->add("w/file/in", guest->file("in a directory"));
    }
    Tree wanted() { return guest->tree(guest->own_root(0), system_base.get()); }
    void expect_told() {
        ASSERT_GE(progress.size(), 2u);
        const u64 all = progress.back().second;
        EXPECT_GT(all, u64{count});
        EXPECT_EQ(progress.front(), std::pair(u64{0}, all));
        EXPECT_EQ(progress.back(), std::pair(all, all));
        EXPECT_TRUE(std::ranges::is_sorted(progress));
    }
};

TEST_F(Many, AreWritten) {
    EXPECT_EQ(write_back(*guest, *system_base), "");
    EXPECT_EQ(folder.tree(), wanted());
    expect_told();
}

// Problems come in the order of the files.
TEST_F(Many, Conflicts) {
    Tree expected = wanted();
    for (u32 i = 0; i < count; i += 50) {
        folder.write(in("changed", i), "host's own");
        expected[in("changed", i)] = "=host's own";
        expected[in("changed", i) + ".gpu-run-conflict-1"] = "=after " + std::to_string(i);
    }
    std::string message = write_back(*guest, *system_base);
    EXPECT_THAT(message, HasSubstr("; and 7 more"));
    std::vector<usize> places;
    for (u32 i = 0; i < count; i += 50)
        if (usize at = message.find("'" + in("changed", i) + "' in"); at != message.npos)
            places.push_back(at);
    EXPECT_EQ(places.size(), 5u) << message;
    EXPECT_TRUE(std::ranges::is_sorted(places)) << message;
    EXPECT_EQ(folder.tree(), expected);
}

// Where a name cannot be given, nothing is removed, nor is anything lost.
TEST_F(Many, NamesThatCannotBeGiven) {
    for (const char* name : {"w", "w/d0", "w/d2", "w/d3", "w/d4"})
        chmod((folder / name).c_str(), 0777);
    chmod((folder / "w/d1").c_str(), 0555);
    {
        Unprivileged user(folder);
        EXPECT_THAT(write_back(*guest, *system_base), HasSubstr("cannot write 'd1/changed001' in"));
    }
    chmod((folder / "w/d1").c_str(), 0755);
    for (u32 i = 0; i < count; i++) {
        const bool is_written = i % 5 != 1;
        EXPECT_TRUE(fs::exists(folder / in("removed", i)));
        EXPECT_EQ(fs::exists(folder / in("new", i)), is_written);
        EXPECT_EQ(fs::exists(folder / format("w/new%03u.gpu-run-conflict-1", i)), !is_written);
        EXPECT_EQ(read_file(folder / in("renamed", i)), std::to_string(i));
    }
    EXPECT_TRUE(fs::is_directory(folder / "w/directory"));
}

TEST_F(Many, AreRecovered) {
    pid_t child = fork();
    if (child == 0) {
        // Ends when the first file has a name that only a manifest gives it.
        std::thread killer([&] {
            while (!fs::exists(folder / in("new", 0))) {
            }
            kill(getpid(), SIGKILL);
        });
        killer.detach();
        write_back(*guest, *system_base);
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    Notes notes;
    make_system_base(options());
    EXPECT_EQ(folder.tree(), wanted());
    if (!notes.text.empty()) expect_told();
}

// ---- kills ---------------------------------------------------------------------------

// What became of a process that wrote back.
enum class Fate { killed, ended, unknown };

// Kills it before its system call number `point`. Unknown: this system does not let us.
Fate killed_at(u64 point, const Guest& guest, const SystemBase& system_base) {
    pid_t child = fork();
    if (child == 0) {
        if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(2);
        raise(SIGSTOP);
        _exit(host::write_back(guest.bytes, guest.process, system_base) ? 0 : 1);
    }
    int status;
    waitpid(child, &status, 0);
    for (u64 stops = 0; WIFSTOPPED(status); stops++) {
        if (stops == 2 * point || ptrace(PTRACE_SYSCALL, child, nullptr, nullptr) != 0)
            kill(child, SIGKILL);
        waitpid(child, &status, 0);
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 2) return Fate::unknown;
    EXPECT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
    return WIFEXITED(status) ? Fate::ended : Fate::killed;
}

// Kills it after a while.
Fate killed_after(u64 microseconds, const Guest& guest, const SystemBase& system_base) {
    pid_t child = fork();
    if (child == 0) _exit(host::write_back(guest.bytes, guest.process, system_base) ? 0 : 1);
    usleep(useconds_t(microseconds));
    kill(child, SIGKILL);
    int status;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
    return WIFEXITED(status) ? Fate::ended : Fate::killed;
}

// Files that are renamed, and names that come to mean something of another kind.
struct Renames {
    // Where there is one, in a file system that need not wait for a disk.
    Folder folder{fs::is_directory("/dev/shm") ? "/dev/shm" : fs::temp_directory_path()};
    u32 files;
    Tree before, after;
    std::unique_ptr<SystemBase> system_base;
    std::unique_ptr<Guest> guest;
    bool was_finished = false, was_undone = false;

    explicit Renames(u32 files) : files(files) {
        for (u32 i = 0; i < files; i++) folder.write("old" + std::to_string(i), std::to_string(i));
        folder.write("d/was a directory", "");
        folder.write("f", "was a file");
        before = folder.tree();
        system_base = std::make_unique<SystemBase>(make_system_base(options_for(folder)));
        guest = std::make_unique<Guest>(*system_base);
        for (u32 i = 0; i < files; i++)
            guest->rename("old" + std::to_string(i), "new" + std::to_string(i));
        guest->remove("d");
        guest->add("d", guest->file("is a file"));
        guest->remove("f");
        guest->add("f", guest->make(NodeKind::directory));
        guest->add("f/in", guest->file("in a directory"));
        after = guest->tree(guest->own_root(0), system_base.get());
    }

    // After a kill every file has a name, and the next run makes the tree whole.
    void expect_safe(u64 point) {
        const Tree torn = folder.tree();
        for (u32 i = 0; i < files; i++) {
            const std::string number = std::to_string(i), whole = "=" + number;
            auto has = [&](const std::string& name) {
                auto found = torn.find(name);
                return found != torn.end() && found->second == whole;
            };
            ASSERT_TRUE(has("old" + number) || has("new" + number))
                << "file " << i << ", killed at " << point;
        }
        const bool has_left_some =
            torn.contains(host::staging_name) && !fs::is_empty(folder / host::staging_name);
        Notes notes;
        make_system_base(options_for(folder));
        const Tree tree = folder.tree();
        ASSERT_TRUE(tree == before || tree == after) << "killed at " << point;
        if (!has_left_some) return;
        EXPECT_THAT(notes.text, HasSubstr("interrupted run")) << point;
        (tree == after ? was_finished : was_undone) = true;
    }
};

TEST(Killed, AtEveryPoint) {
    bool has_finished = false, has_undone = false;
    Fate fate = Fate::killed;
    for (u64 point = 1; fate == Fate::killed; point++) {
        Renames renames(1);
        fate = killed_at(point, *renames.guest, *renames.system_base);
        if (fate == Fate::unknown) GTEST_SKIP() << "no ptrace here";
        renames.expect_safe(point);
        has_finished |= renames.was_finished;
        has_undone |= renames.was_undone;
    }
    EXPECT_TRUE(has_finished && has_undone);
}

TEST(Killed, AmongHundreds) {
    Fate fate = Fate::killed;
    for (u64 delay = 500; fate == Fate::killed; delay += delay / 4) {
        Renames renames(400);
        fate = killed_after(delay, *renames.guest, *renames.system_base);
        renames.expect_safe(delay);
    }
}

}  // namespace
}  // namespace gpurun::test
