// A folder with a few files, mounted at descriptor 3, and a process that calls.
#pragma once

#include <gtest/gtest.h>

#include <optional>

#include "../host/tree.h"
#include "caller.h"

namespace gpurun::wasi {

inline void PrintTo(Errno error, std::ostream* out) { *out << to_string(error); }

}  // namespace gpurun::wasi

namespace gpurun::test {

using namespace wasi;

class WasiTest : public testing::Test {
protected:
    WasiTest() {
        folder.write("a.txt", "hello, world");
        folder.write("empty", "");
        folder.write("d/x", pattern(5000));
        folder.write("d/e/y", "deep");
        folder.make_directory("none");
        folder.link("link", "a.txt");
        folder.link("dlink", "d");
        options = options_for(folder);
    }

    // With what `options` says by now.
    System& system() {
        if (!system_) system_.emplace(options);
        return *system_;
    }
    Caller& guest() {
        if (!guest_) guest_.emplace(system());
        return *guest_;
    }

    // Calls that tests expect to work.
    u32 open(std::string_view path, u32 oflags = 0, u64 rights = all_rights,
             u32 directory = first_preopen, u32 fdflags = 0) {
        u32 fd = ~0u;
        EXPECT_EQ(guest().open(path, fd, oflags, rights, directory, fdflags), Errno::success)
            << path;
        return fd;
    }
    u32 open_directory(std::string_view path) {
        return open(path, oflag_directory, all_rights & ~u64{right_fd_write});
    }
    void close(u32 fd) { EXPECT_EQ(guest().close(fd), Errno::success) << fd; }
    void write(u32 fd, std::string_view data) {
        u32 done = 0;
        EXPECT_EQ(guest().write(fd, data, &done), Errno::success);
        EXPECT_EQ(done, data.size());
    }
    std::string read(u32 fd, u32 count = 60'000) {
        std::string data;
        EXPECT_EQ(guest().read(fd, count, data), Errno::success);
        return data;
    }
    std::string read_path(std::string_view path) {
        u32 fd = open(path, 0, all_rights & ~writing_rights);
        std::string data = read(fd);
        close(fd);
        return data;
    }
    void make_file(std::string_view path, std::string_view data) {
        u32 fd = open(path, oflag_creat | oflag_trunc);
        write(fd, data);
        close(fd);
    }
    Caller::Filestat stat(std::string_view path, u32 lookup = 0) {
        Caller::Filestat stat{};
        EXPECT_EQ(guest().stat(path, stat, lookup), Errno::success) << path;
        return stat;
    }
    Errno stat_error(std::string_view path, u32 lookup = 0, u32 directory = first_preopen) {
        Caller::Filestat stat{};
        return guest().stat(path, stat, lookup, directory);
    }
    std::vector<std::string> names(u32 fd, u64 cookie = 2) {
        std::vector<Caller::Entry> entries;
        EXPECT_EQ(guest().readdir(fd, cookie, entries), Errno::success);
        std::vector<std::string> all;
        for (const Caller::Entry& entry : entries) all.push_back(entry.name);
        return all;
    }
    Errno open_error(std::string_view path, u32 oflags = 0, u64 rights = all_rights,
                     u32 directory = first_preopen, u32 lookup = lookup_symlink_follow) {
        u32 fd = 0;
        return guest().open(path, fd, oflags, rights, directory, 0, all_rights, lookup);
    }

    Folder folder;
    SystemOptions options;

private:
    std::optional<System> system_;
    std::optional<Caller> guest_;
};

}  // namespace gpurun::test
