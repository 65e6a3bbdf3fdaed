// System memory with random damage: every answer is a value or an Error, and soon.
#include <gtest/gtest.h>

#include <cstddef>
#include <random>

#include "host/harvest.h"
#include "tree.h"

namespace gpurun::test {
namespace {

TEST(Hostile, RandomDamage) {
    Folder folder, out;
    folder.write("file", pattern(9000));
    folder.write("d/inner/x", "x");
    folder.write("d/y", "y");
    folder.write("cold", pattern(host::cold_size + 1));
    folder.link("link", "file");
    for (u32 i = 0; i < 12; i++) folder.write("many/" + std::to_string(i), "x");
    SystemOptions options = options_for(folder, false);
    options.mounts.push_back({(folder / "d").string(), "d", false});
    Tree before = folder.tree();
    SystemBase system_base = make_system_base(options);
    Guest guest(system_base);
    guest.change("d/inner/x", pattern(5000));
    guest.change("many/3", "");
    guest.own("cold");
    guest.node(guest.own("cold")).flags |= node_is_changed;
    guest.add("dir", guest.make(NodeKind::directory));
    guest.add("dir/f", guest.file("f"));
    guest.add("dir/l", guest.symlink("../file"));
    guest.rename("d/y", "renamed");
    guest.rename("many", "dir/many");
    guest.add("second", guest.file("2"), 1);
    ASSERT_TRUE(host::changes(guest.bytes, guest.process));

    // Where structures are, not contents: the header, and all handles of nodes and tables.
    std::vector<u64> places;
    auto add_range = [&](Handle handle, u64 size) {
        for (u64 i = 0; handle && i < size; i++)
            places.push_back((u64{handle} << handle_shift) + i);
    };
    std::vector<Handle> nodes = {guest.root(0), guest.root(1), guest.own_root(0),
                                 guest.own_root(1)};
    for (usize i = 0; i < nodes.size(); i++) {
        Node node = guest.node(nodes[i]);
        add_range(nodes[i], sizeof node);
        if (node.kind == NodeKind::file) add_range(node.content, node.content_count * 4);
        if (node.kind != NodeKind::directory) continue;
        add_range(node.content, node.content_count * sizeof(DirEntry));
        for (u32 k = 0; k < node.content_count; k++)
            if (Handle inner = guest.entry(nodes[i], k).node) nodes.push_back(inner);
    }
    // The header but for the free lists, which are not the host's to read.
    for (u64 i = 0; i < sizeof(SystemHeader); i++)
        if (i < offsetof(SystemHeader, free_lists) || i >= offsetof(SystemHeader, debug_count))
            places.push_back(i);
    add_range(guest.process, sizeof(ProcessBlock));
    add_range(guest.get<ProcessBlock>(guest.process).roots, 8);
    add_range(guest.header().preopens, 2 * sizeof(Preopen));

    std::mt19937_64 random(1);
    u32 whole = 0;
    Memory damaged{guest.bytes};
    for (u32 i = 0; i < 20'000; i++) {
        std::vector<std::pair<u64, u8>> undo;
        for (u32 flips = 1 + random() % 4; flips; flips--) {
            u64 at = places[random() % places.size()];
            undo.emplace_back(at, damaged.bytes[at]);
            // Small numbers are more often almost right.
            damaged.bytes[at] = random() % 2 ? u8(random() % 4) : u8(random());
        }
        Result<std::vector<host::Change>> changes = host::changes(damaged.bytes, guest.process);
        whole += changes.ok();
        if (changes && i % 4 == 0)
            for (const host::Change& change : *changes)
                (void)host::contents(damaged.bytes, change.node, &system_base).ok();
        (void)host::contents(damaged.bytes, nodes[random() % nodes.size()], &system_base).ok();
        (void)host::contents(damaged.bytes, Handle(random()), &system_base).ok();
        if (i % 200 == 0) {
            (void)host::store(damaged.bytes, guest.process, system_base, (out / "in/out").string())
                .ok();
            fs::remove_all(out / "in/out");
            EXPECT_EQ(out.tree().size(), 1u);
        }
        while (!undo.empty()) {
            damaged.bytes[undo.back().first] = undo.back().second;
            undo.pop_back();
        }
    }
    EXPECT_GT(whole, 1000u);
    EXPECT_LT(whole, 19'000u);
    EXPECT_EQ(folder.tree(), before);
    // Cut short anywhere.
    for (usize size = 0; size < damaged.bytes.size(); size += 1 + size / 50)
        (void)host::changes(std::span(damaged.bytes).first(size), guest.process).ok();
}

// Directories that share their entries must not be walked as often as there are ways to them.
TEST(Hostile, EndsSoon) {
    Folder folder;
    folder.write("file", "");
    SystemBase system_base = make_system_base(options_for(folder));
    Guest guest(system_base);
    constexpr u32 levels = 40;
    Handle at = guest.file("x");
    for (u32 i = 0; i < levels; i++) {
        Handle directory = guest.make(NodeKind::directory);
        Handle entries = guest.allocate(2 * sizeof(DirEntry)), names = guest.allocate(2);
        u64 name = u64{names} << handle_shift;
        guest.at<u8>(name) = 'a';
        guest.at<u8>(name + 1) = 'b';
        guest.get<DirEntry>(entries, 0) = {at, 0, 1, 1, name};
        guest.get<DirEntry>(entries, 1) = {at, 0, 2, 1, name + 1};
        guest.node(directory).content = entries;
        guest.node(directory).content_count = 2;
        at = directory;
    }
    guest.add("dir", at);
    EXPECT_FALSE(host::changes(guest.bytes, guest.process));
}

}  // namespace
}  // namespace gpurun::test
