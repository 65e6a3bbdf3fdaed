// Files that a process syncs: on the host at once, and what write_back makes of that.
#include "host/write_through.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host/harvest.h"
#include "tree.h"

namespace gpurun::test {
namespace {

using testing::HasSubstr;

struct WriteThrough : testing::Test {
    Folder folder;
    std::unique_ptr<SystemBase> system_base;
    std::unique_ptr<Guest> made;

    WriteThrough() {
        folder.write("log", "first\n");
        folder.write("d/x", "x");
    }
    Guest& guest() {
        if (!made) {
            system_base = std::make_unique<SystemBase>(make_system_base(options_for(folder)));
            made = std::make_unique<Guest>(*system_base);
        }
        return *made;
    }
    // As the engine does it.
    std::string sync(const std::string& path) {
        const Handle node = guest().own(path);
        auto read = [&](u64 offset, std::span<u8> to) -> Result<void> {
            std::memset(to.data(), 0, to.size());
            if (offset < made->bytes.size())
                std::memcpy(to.data(), made->bytes.data() + offset,
                            std::min<u64>(to.size(), made->bytes.size() - offset));
            return {};
        };
        Result<void> done = host::write_through(read, 256 << 20, made->process, node, *system_base);
        if (done) made->node(node).flags &= ~node_is_changed;
        return done ? "" : done.error().message;
    }
    std::string write_back() {
        Result<void> done = host::write_back(made->bytes, made->process, *system_base);
        return done ? "" : done.error().message;
    }
    void expect_same() {
        EXPECT_EQ(write_back(), "");
        EXPECT_EQ(folder.tree(), made->tree(made->own_root(0), system_base.get()));
    }
};

TEST_F(WriteThrough, ChangedAndNew) {
    guest().change("log", "first\nsecond\n");
    guest().change("d/x", "not synced");
    guest().add("new", guest().make(NodeKind::directory));
    guest().add("new/deep", guest().make(NodeKind::directory));
    guest().add("new/deep/file", guest().file(pattern(10'000)));
    EXPECT_EQ(sync("log"), "");
    EXPECT_EQ(sync("new/deep/file"), "");
    EXPECT_EQ(folder.tree(), (Tree{{"d", "directory"},
                                   {"d/x", "=x"},
                                   {"log", "=first\nsecond\n"},
                                   {"new", "directory"},
                                   {"new/deep", "directory"},
                                   {"new/deep/file", "=" + pattern(10'000)}}));
    // Once more, changed again.
    guest().change("log", "first\nsecond\nthird\n");
    guest().add("new/other", guest().file("other"));
    EXPECT_EQ(sync("log"), "");
    EXPECT_EQ(read_file(folder / "log"), "first\nsecond\nthird\n");
    guest().change("new/deep/file", "short");
    expect_same();
}

// What is as it was synced is not written once more.
TEST_F(WriteThrough, WrittenOnce) {
    guest().change("log", "changed");
    guest().add("new", guest().file("new"));
    EXPECT_EQ(sync("log"), "");
    EXPECT_EQ(sync("new"), "");
    struct stat before[2], after[2];
    lstat((folder / "log").c_str(), &before[0]);
    lstat((folder / "new").c_str(), &before[1]);
    expect_same();
    lstat((folder / "log").c_str(), &after[0]);
    lstat((folder / "new").c_str(), &after[1]);
    for (u32 i = 0; i < 2; i++) EXPECT_EQ(before[i].st_ino, after[i].st_ino);
}

TEST_F(WriteThrough, RenamedAndRemovedLater) {
    guest().add("tmp", guest().file("contents"));
    guest().add("gone", guest().file("gone"));
    guest().add("dir", guest().make(NodeKind::directory));
    guest().add("dir/gone", guest().file("gone"));
    guest().change("d/x", "changed");
    for (const char* path : {"tmp", "gone", "dir/gone", "d/x"}) EXPECT_EQ(sync(path), "");
    guest().rename("tmp", "final");
    guest().remove("gone");
    guest().remove("dir/gone");
    guest().remove("dir");
    guest().rename("d/x", "y");
    expect_same();
    EXPECT_EQ(read_file(folder / "final"), "contents");
    EXPECT_EQ(read_file(folder / "y"), "changed");
}

TEST_F(WriteThrough, ChangedByOthers) {
    guest().change("log", "guest");
    folder.write("log", "host");
    EXPECT_THAT(sync("log"), HasSubstr("'log.gpu-run-conflict-1'"));
    EXPECT_THAT(sync("log"), HasSubstr("others have changed it"));  // and no third copy
    EXPECT_EQ(folder.tree(), (Tree{{"d", "directory"},
                                   {"d/x", "=x"},
                                   {"log", "=host"},
                                   {"log.gpu-run-conflict-1", "=guest"}}));
}

TEST_F(WriteThrough, ChangedByOthersAfterwards) {
    guest().change("log", "guest");
    EXPECT_EQ(sync("log"), "");
    folder.write("log", "host");
    guest().change("log", "guest again");
    EXPECT_THAT(write_back(), HasSubstr("'log.gpu-run-conflict-1'"));
    EXPECT_EQ(read_file(folder / "log"), "host");
    EXPECT_EQ(read_file(folder / "log.gpu-run-conflict-1"), "guest again");
}

// Of a cold file those who have the base still read what it was.
TEST_F(WriteThrough, ColdFile) {
    const std::string before = pattern(host::cold_size * 5);
    folder.write("cold", before);
    Handle own = guest().own("cold");
    EXPECT_TRUE(guest().node(own).flags & node_is_cold);
    guest().node(own).size = host::cold_size;
    guest().node(own).flags |= node_is_changed;
    EXPECT_EQ(sync("cold"), "");
    EXPECT_TRUE(read_file(folder / "cold") == before.substr(0, host::cold_size));
    Result<std::vector<u8>> late =
        system_base->read_block(guest().node(guest().lookup("cold")).host_id, 1000);
    ASSERT_TRUE(late);
    EXPECT_TRUE(std::string(late->begin(), late->end()) ==
                before.substr(1000 * file_block, file_block));
}

TEST_F(WriteThrough, MemoryThatCannotBeRead) {
    guest().change("log", "guest");
    auto read = [](u64, std::span<u8>) -> Result<void> { return Error{"cannot"}; };
    EXPECT_FALSE(
        host::write_through(read, 1 << 20, made->process, guest().own("log"), *system_base));
    EXPECT_EQ(read_file(folder / "log"), "first\n");
}

}  // namespace
}  // namespace gpurun::test
