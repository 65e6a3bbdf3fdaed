// What is read from the memory that processes left.
#include "host/harvest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tree.h"

namespace gpurun::test {
namespace {

using host::Change;
using host::ChangeKind;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

std::vector<std::string> changes_of(const Guest& guest) {
    Result<std::vector<Change>> changes = host::changes(guest.bytes, guest.process);
    if (!changes) return {changes.error().message};
    std::vector<std::string> lines;
    for (const Change& change : *changes) {
        const char* kinds[] = {"remove ", "rmdir ", "mkdir ", "write ", "link "};
        std::string preopen = change.preopen ? std::to_string(change.preopen) + ":" : "";
        lines.push_back(kinds[u32(change.kind)] + preopen + change.path);
    }
    return lines;
}

struct Harvest : testing::Test {
    Folder folder;
    std::unique_ptr<SystemBase> system_base;
    std::unique_ptr<Guest> made;

    Harvest() {
        folder.write("file", "old");
        folder.write("other", "other");
        folder.write("d/inner/x", "x");
        folder.write("d/y", "y");
        folder.link("link", "file");
    }
    Guest& guest() {
        if (!made) {
            system_base = std::make_unique<SystemBase>(make_system_base(options_for(folder)));
            made = std::make_unique<Guest>(*system_base);
        }
        return *made;
    }
};

TEST_F(Harvest, NothingChanged) {
    EXPECT_THAT(changes_of(guest()), IsEmpty());
    guest().own("d/inner/x");
    guest().own("link");
    EXPECT_THAT(changes_of(guest()), IsEmpty());
    guest().get<ProcessBlock>(guest().process).roots = 0;
    EXPECT_THAT(changes_of(guest()), IsEmpty());
}

TEST_F(Harvest, FilesMadeAndChanged) {
    guest().change("d/inner/x", "new");
    guest().add("made", guest().file("made"));
    guest().add("dir", guest().make(NodeKind::directory));
    guest().add("dir/in", guest().file(""));
    guest().add("dir/link", guest().symlink("../file"));
    EXPECT_THAT(changes_of(guest()),
                UnorderedElementsAre("write d/inner/x", "write made", "mkdir dir", "write dir/in",
                                     "link dir/link"));
}

TEST_F(Harvest, RemovedThings) {
    guest().remove("d");
    guest().remove("link");
    EXPECT_THAT(changes_of(guest()), ElementsAre("remove d/inner/x", "remove d/y", "rmdir d/inner",
                                                 "remove link", "rmdir d"));
    guest().remove("file");
    guest().add("file", guest().file("another"));
    EXPECT_THAT(changes_of(guest()), testing::Contains("write file"));
}

TEST_F(Harvest, RenamedThings) {
    guest().rename("file", "renamed");
    guest().rename("d/inner", "moved");
    EXPECT_THAT(changes_of(guest()),
                UnorderedElementsAre("remove file", "write renamed", "remove d/inner/x",
                                     "rmdir d/inner", "mkdir moved", "write moved/x"));
}

TEST_F(Harvest, OtherKinds) {
    guest().remove("d");
    guest().add("d", guest().file("now a file"));
    guest().remove("file");
    guest().add("file", guest().make(NodeKind::directory));
    guest().remove("link");
    guest().add("link", guest().symlink("other"));
    guest().remove("other");
    guest().add("other", guest().symlink("file"));
    EXPECT_THAT(
        changes_of(guest()),
        UnorderedElementsAre("remove d/inner/x", "remove d/y", "rmdir d/inner", "rmdir d",
                             "write d", "remove file", "mkdir file", "link link", "link other"));
}

TEST_F(Harvest, Preopens) {
    SystemOptions options = options_for(folder);
    options.mounts.push_back({(folder / "d").string(), "second", true});
    SystemBase two = make_system_base(options);
    Guest process(two);
    process.add("in second", process.file("1"), 1);
    process.remove("y", 1);
    EXPECT_THAT(changes_of(process), ElementsAre("remove 1:y", "write 1:in second"));
}

TEST_F(Harvest, Contents) {
    std::string text = pattern(3 * file_block + 17);
    Handle stream = guest().file(text, NodeKind::stream);
    EXPECT_EQ(*host::contents(guest().bytes, stream), text);
    EXPECT_EQ(*host::contents(guest().bytes, guest().lookup("d/y")), "y");
    Handle empty = guest().file("");
    EXPECT_EQ(*host::contents(guest().bytes, empty), "");
    EXPECT_FALSE(host::contents(guest().bytes, guest().root()));
    EXPECT_FALSE(host::contents(guest().bytes, 0));
    EXPECT_FALSE(host::contents(guest().bytes, ~Handle{0}));

    // Holes: a handle of 0, one of zero_block, and what the table does not reach.
    Handle holes = guest().file(text);
    Node& node = guest().node(holes);
    guest().get<Handle>(node.content, 0) = 0;
    guest().get<Handle>(node.content, 1) = zero_block;
    node.size += 100'000;
    std::string expected(2 * file_block, '\0');
    expected += text.substr(2 * file_block) + std::string(100'000, '\0');
    EXPECT_EQ(*host::contents(guest().bytes, holes), expected);
    guest().node(holes).size = max_file;
    EXPECT_FALSE(host::contents(guest().bytes, holes));
}

TEST_F(Harvest, ColdContents) {
    std::string text = pattern(host::cold_size * 2 + 99);
    folder.write("cold", text);
    Handle base = guest().lookup("cold");
    EXPECT_FALSE(host::contents(guest().bytes, base));
    EXPECT_EQ(*host::contents(guest().bytes, base, system_base.get()), text);

    // One block written, one cut off and grown again.
    Handle own = guest().own("cold");
    Handle block = guest().allocate(file_block);
    std::memset(&guest().get<u8>(block), 'b', file_block);
    guest().get<Handle>(guest().node(own).content, 70) = block;
    guest().get<Handle>(guest().node(own).content, 80) = zero_block;
    guest().node(own).flags |= node_is_changed;
    std::fill_n(text.begin() + 70 * file_block, file_block, 'b');
    std::fill_n(text.begin() + 80 * file_block, file_block, '\0');
    EXPECT_EQ(*host::contents(guest().bytes, own, system_base.get()), text);
    EXPECT_THAT(changes_of(guest()), ElementsAre("write cold"));
}

TEST_F(Harvest, BrokenTrees) {
    const char* names[] = {"..", ".", "a/b", "", "/"};
    for (const char* name : names) {
        Guest process(*(guest(), system_base));
        process.add("x", process.file("x"));
        Handle root = process.own("");
        DirEntry& entry = process.entry(root, process.node(root).content_count - 1);
        entry.name_length = u32(std::strlen(name));
        std::memcpy(&process.at<u8>(entry.name), name, std::strlen(name));
        EXPECT_THAT(changes_of(process), ElementsAre(testing::HasSubstr("invalid name")));
    }
    Guest process(*system_base);
    process.add("x", process.file("x"));
    process.add("x", process.file("x"));
    EXPECT_THAT(changes_of(process), ElementsAre(testing::HasSubstr("twice")));

    Guest loop(*system_base);
    loop.add("loop", loop.make(NodeKind::directory));
    loop.add("loop/loop", loop.lookup("none"));
    Handle inner = loop.own("loop");
    loop.entry(inner, 0).node = inner;
    EXPECT_THAT(changes_of(loop), ElementsAre(testing::HasSubstr("in two places")));

    Guest stream(*system_base);
    stream.add("stream", stream.make(NodeKind::stream));
    EXPECT_THAT(changes_of(stream), ElementsAre(testing::HasSubstr("a stream in a directory")));

    Guest deep(*system_base);
    Handle at = deep.make(NodeKind::directory);
    for (u32 i = 0; i < host::max_tree_depth; i++) {
        Handle outer = deep.make(NodeKind::directory), entries = deep.allocate(sizeof(DirEntry));
        deep.get<DirEntry>(entries) = {at, 0, 1, 1, deep.entry(deep.root(), 0).name};
        deep.node(outer).content = entries;
        deep.node(outer).content_count = 1;
        at = outer;
    }
    deep.add("deep", at);
    EXPECT_THAT(changes_of(deep), ElementsAre(testing::HasSubstr("more than 1024 deep")));
}

}  // namespace
}  // namespace gpurun::test
