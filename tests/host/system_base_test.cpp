// Makes the base of system memory from host directories, and reads it back by other means.
#include "host/system_base.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tree.h"

namespace gpurun::test {
namespace {

using testing::HasSubstr;

Memory memory_of(const SystemBase& system_base) {
    return {{system_base.bytes().begin(), system_base.bytes().end()}};
}

std::string error_of(const SystemOptions& options) {
    Result<SystemBase> system_base = SystemBase::make(options);
    return system_base ? "no error" : system_base.error().message;
}

TEST(SystemBase, HoldsTree) {
    Folder folder;
    for (usize size : {0, 1, 4095, 4096, 4097, 100'000})
        folder.write("sizes/" + std::to_string(size), pattern(size));
    folder.write("warm", pattern(host::cold_size));
    folder.write("cold", pattern(host::cold_size + 1));
    folder.write("holes", std::string(10'000, '\0') + "x" + std::string(10'000, '\0'));
    folder.write("a/b/c/d/e/f", "deep");
    folder.make_directory("empty");
    folder.link("link", "a/b");
    folder.link("dangling", "nowhere");
    folder.link("absolute", "/etc/passwd");
    folder.link("a/up", "../../..");
    for (u32 i = 0; i < 1000; i++)
        folder.write("many/file-" + std::to_string(i), std::to_string(i));
    for (const char* name : {" ", "a\nb", "\\", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", "...", "-"})
        folder.write(std::string("weird/") + name, name);
    folder.write("weird/" + std::string(max_name, 'n'), "longest");

    SystemBase system_base = make_system_base(options_for(folder));
    Memory memory = memory_of(system_base);
    EXPECT_EQ(memory.tree(memory.root(), &system_base), folder.tree());
    EXPECT_EQ(system_base.skipped_names(), 0u);
    EXPECT_EQ(system_base.unreadable(), 0u);
    EXPECT_EQ(system_base.cold_count(), 1u);
    EXPECT_FALSE(memory.node(memory.lookup("warm")).flags & node_is_cold);
    EXPECT_TRUE(memory.node(memory.lookup("cold")).flags & node_is_cold);
    EXPECT_EQ(memory.node(memory.lookup("cold")).content_count, 257u);
    // Blocks of zeros take no room.
    EXPECT_EQ(memory.get<Handle>(memory.node(memory.lookup("holes")).content, 0), 0u);
}

TEST(SystemBase, NodesAreWhole) {
    Folder folder;
    folder.write("b/2", "x");
    folder.write("b/1", "y");
    for (u32 i = 0; i < 9; i++) folder.write("nine/" + std::to_string(i), "");
    for (u32 i = 0; i < 8; i++) folder.write("eight/" + std::to_string(i), "");
    folder.link("a", "b");
    SystemOptions options = options_for(folder);
    options.mounts.push_back({(folder / "b").string(), "second", false});
    SystemBase system_base = make_system_base(options);
    Memory memory = memory_of(system_base);

    std::set<u64> inodes;
    std::vector<Handle> directories = {memory.root(0), memory.root(1)};
    EXPECT_EQ(memory.node(directories[0]).parent, 0u);
    while (!directories.empty()) {
        Handle directory = directories.back();
        directories.pop_back();
        Node node = memory.node(directory);
        EXPECT_TRUE(inodes.insert(node.inode).second);
        EXPECT_EQ(node.live_entries, node.content_count);
        EXPECT_EQ(node.next_serial, node.content_count + 1);
        EXPECT_EQ(node.size, 0u);
        EXPECT_EQ(node.index != 0, node.content_count > 8);
        std::string before;
        for (u32 i = 0; i < node.content_count; i++) {
            DirEntry entry = memory.entry(directory, i);
            EXPECT_EQ(entry.serial, i + 1);
            EXPECT_LT(before, memory.name(entry));
            before = memory.name(entry);
            EXPECT_EQ(memory.find(directory, before), int(i));
            EXPECT_EQ(memory.node(entry.node).parent, directory);
            EXPECT_EQ(memory.node(entry.node).link_count, 1u);
            if (memory.node(entry.node).kind == NodeKind::directory)
                directories.push_back(entry.node);
            else
                EXPECT_TRUE(inodes.insert(memory.node(entry.node).inode).second);
        }
        EXPECT_EQ(memory.find(directory, "no such name"), -1);
    }
    struct stat info;
    ASSERT_EQ(stat((folder / "b/1").c_str(), &info), 0);
    EXPECT_EQ(memory.node(memory.lookup("b/1")).modified,
              u64(info.st_mtim.tv_sec) * 1'000'000'000 + u64(info.st_mtim.tv_nsec));
    Preopen second = memory.get<Preopen>(memory.header().preopens, 1);
    EXPECT_EQ(memory.text(second.name, second.name_length), "second");
    EXPECT_EQ(second.is_writable, 0u);
    EXPECT_EQ(memory.get<Preopen>(memory.header().preopens, 0).is_writable, 1u);
}

TEST(SystemBase, Header) {
    SystemOptions options;
    options.arguments = {"prog", "", "{}"};
    options.environment = {"A=1", "B="};
    options.has_numbered_arguments = true;
    options.input = shared_bytes(pattern(5000));
    options.process_count = 77;
    options.keeps_files = true;
    options.arena_size = 1 << 20;
    options.debug_capacity = 10;
    SystemBase system_base = make_system_base(options);
    Memory memory = memory_of(system_base);
    const SystemHeader& header = memory.header();
    EXPECT_EQ(header.size, 1u << 20);
    EXPECT_EQ(header.base_end, system_base.base_end());
    EXPECT_EQ(header.base_end % host::heap_alignment, 0u);
    EXPECT_EQ(header.bump, header.base_end);
    EXPECT_EQ(header.in_use, 0u);
    EXPECT_EQ(header.device_time, 0u);
    for (const auto& shard : header.free_lists)
        for (u64 list : shard) EXPECT_EQ(list, 0u);
    EXPECT_EQ(header.preopen_count, 0u);
    EXPECT_EQ(header.argument_count, 3u);
    EXPECT_EQ(memory.text(u64{header.arguments} << handle_shift, header.argument_bytes),
              std::string("prog\0\0{}\0", 9));
    EXPECT_EQ(header.environment_count, 2u);
    EXPECT_EQ(memory.text(u64{header.environment} << handle_shift, header.environment_bytes),
              std::string("A=1\0B=\0", 7));
    EXPECT_EQ(header.has_numbered_arguments, 1u);
    EXPECT_EQ(header.process_count, 77u);
    EXPECT_EQ(header.is_live, 0u);
    EXPECT_EQ(header.keeps_files, 1u);
    EXPECT_EQ(memory.content(header.stdin_node), pattern(5000));
    EXPECT_EQ(memory.node(header.stdin_node).flags, node_is_ended);
    EXPECT_EQ(header.debug_capacity, 10u);
    EXPECT_LE((u64{header.debug} << handle_shift) + 10 * sizeof(DebugRecord), header.base_end);
    EXPECT_GT(header.realtime, 1'600'000'000'000'000'000u);
    SystemHeader fresh = system_base.fresh_header();
    EXPECT_GT(fresh.monotonic, header.monotonic);
    fresh.realtime = header.realtime;
    fresh.monotonic = header.monotonic;
    EXPECT_EQ(std::memcmp(&fresh, &header, sizeof fresh), 0);
}

TEST(SystemBase, InputThatIsNotThere) {
    SystemOptions options;
    options.arena_size = 1 << 20;
    EXPECT_EQ(make_system_base(options).fresh_header().stdin_node, 0u);
    options.input = shared_bytes("");
    EXPECT_NE(make_system_base(options).fresh_header().stdin_node, 0u);
    options.input.reset();
    options.is_live = true;
    SystemBase system_base = make_system_base(options);
    Memory memory = memory_of(system_base);
    EXPECT_EQ(memory.node(memory.header().stdin_node).flags, 0u);
}

TEST(SystemBase, InputsOfMany) {
    const std::string large = pattern(2 * file_block + 1);
    std::vector<host::ProcessInput> inputs = {{4, {"p", "a"}, shared_bytes("short")},
                                              {5, {"p", "{}"}, shared_bytes(large)},
                                              {9, {"p"}, {}}};
    SystemOptions options;
    options.arena_size = 1 << 20;
    options.inputs = inputs;
    options.process_count = 3;
    SystemBase system_base = make_system_base(options);
    Memory memory = memory_of(system_base);
    ASSERT_NE(memory.header().inputs, 0u);
    auto entry = [&](u32 i) { return memory.get<InputEntry>(memory.header().inputs, i); };
    EXPECT_EQ(entry(0).number, 4u);
    EXPECT_EQ(entry(1).argument_count, 2u);
    EXPECT_EQ(memory.text(entry(1).arguments, entry(1).argument_bytes), std::string("p\0{}\0", 5));
    EXPECT_EQ(memory.content(entry(0).stdin_node), "short");
    EXPECT_EQ(memory.content(entry(1).stdin_node), large);
    EXPECT_EQ(memory.node(entry(1).stdin_node).flags, node_is_ended);
    EXPECT_EQ(entry(2).stdin_node, 0u);
    // Short inputs take little.
    std::vector<host::ProcessInput> many(2000, {0, {"p"}, shared_bytes("short")});
    options.inputs = many;
    options.process_count = u32(many.size());
    EXPECT_LT(make_system_base(options).base_end(),
              sizeof(SystemHeader) + many.size() * 400 + host::heap_alignment);

    inputs[0].arguments.push_back(std::string("a\0b", 3));
    options.inputs = inputs;
    options.process_count = 3;
    EXPECT_EQ(error_of(options), "a NUL byte in arguments");
}

TEST(SystemBase, RandomKey) {
    SystemOptions options;
    options.arena_size = 1 << 20;
    auto key = [&] {
        SystemHeader header = make_system_base(options).fresh_header();
        return std::vector<u32>(std::begin(header.random_key), std::end(header.random_key));
    };
    EXPECT_NE(key(), key());
    options.seed = 0;
    std::vector<u32> zero = key();
    EXPECT_EQ(zero, key());
    EXPECT_EQ(zero[0], 0x7b1dcdafu);  // splitmix64(0) is 0xe220a8397b1dcdaf
    EXPECT_EQ(zero[1], 0xe220a839u);
    options.seed = 1;
    EXPECT_NE(zero, key());
}

TEST(SystemBase, LeavesOut) {
    Folder folder;
    folder.write("kept", "");
    folder.write("\xff", "");
    folder.write("a\xc0\xaf", "");
    folder.link("link", "\xed\xa0\x80");
    ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
    SystemBase system_base = make_system_base(options_for(folder));
    Memory memory = memory_of(system_base);
    EXPECT_EQ(memory.tree(memory.root(), &system_base), (Tree{{"kept", "="}}));
    EXPECT_EQ(system_base.skipped_names(), 3u);
}

TEST(SystemBase, ColdBlocks) {
    Folder folder, outside;
    std::string content = pattern(host::cold_size + 5000);
    folder.write("d/cold", content);
    outside.write("cold", content);
    SystemBase system_base = make_system_base(options_for(folder));
    ASSERT_EQ(system_base.cold_count(), 1u);
    auto block = [&](u64 number) {
        Result<std::vector<u8>> read = system_base.read_block(0, number);
        return read ? std::string(read->begin(), read->end()) : "error";
    };
    std::string zeros(file_block, '\0');
    EXPECT_EQ(block(3), content.substr(3 * file_block, file_block));
    std::string last = content.substr(257 * file_block);
    EXPECT_EQ(block(257), last + zeros.substr(last.size()));
    EXPECT_EQ(block(258), zeros);
    EXPECT_EQ(block(~u64{0}), zeros);
    EXPECT_EQ(block(u64{1} << 52), zeros);
    EXPECT_FALSE(system_base.read_block(1, 0));
    EXPECT_FALSE(system_base.read_block(~u32{0}, 0));

    // A file that shrank or grew since then.
    SystemBase again = make_system_base(options_for(folder));
    fs::resize_file(folder / "d/cold", 100);
    EXPECT_EQ(block(0), content.substr(0, 100) + zeros.substr(100));
    EXPECT_EQ(block(3), zeros);
    fs::resize_file(folder / "d/cold", 0);
    folder.write("d/cold", content + content);
    EXPECT_EQ(block(257), last + zeros.substr(last.size()));

    // Something else in its place; the base that has read nothing yet has nothing open.
    fs::remove(folder / "d/cold");
    EXPECT_THAT(again.read_block(0, 0).error().message, HasSubstr("d/cold"));
    folder.link("d/cold", (outside / "cold").string());
    EXPECT_FALSE(again.read_block(0, 0));
    fs::remove(folder / "d/cold");
    ASSERT_EQ(mkfifo((folder / "d/cold").c_str(), 0600), 0);
    EXPECT_FALSE(again.read_block(0, 0));
    fs::remove_all(folder / "d");
    folder.link("d", outside.path().string());
    EXPECT_FALSE(again.read_block(0, 0));
}

TEST(SystemBase, Unreadable) {
    Folder folder;
    folder.write("d/x", "x");
    folder.write("e/y", "y");
    folder.write("secret", "secret");
    chmod((folder / "secret").c_str(), 0);
    chmod((folder / "d").c_str(), 0);
    {
        Unprivileged unprivileged(folder);
        SystemBase system_base = make_system_base(options_for(folder));
        Memory memory = memory_of(system_base);
        EXPECT_EQ(system_base.unreadable(), 2u);
        EXPECT_EQ(memory.node(memory.lookup("secret")).size, 6u);
        EXPECT_EQ(memory.node(memory.lookup("secret")).flags, node_is_cold);
        EXPECT_THAT(system_base.read_block(0, 0).error().message, HasSubstr("permission denied"));
        EXPECT_EQ(memory.node(memory.lookup("d")).content_count, 0u);
        EXPECT_EQ(memory.content(memory.lookup("e/y")), "y");
        SystemOptions options = options_for(folder);
        options.mounts[0].host_path += "/d";
        EXPECT_THAT(error_of(options), HasSubstr("permission denied"));
    }
    chmod((folder / "d").c_str(), 0755);
}

TEST(SystemBase, MuchIsCold) {
    Folder folder;
    for (u32 i = 0; i < 20; i++) folder.write(std::to_string(i), pattern(host::cold_size, i));
    SystemOptions options = options_for(folder);
    options.arena_size = 16 << 20;
    SystemBase system_base = make_system_base(options);
    Memory memory = memory_of(system_base);
    EXPECT_LT(system_base.base_end(), 5u << 20);
    EXPECT_GT(system_base.cold_count(), 15u);
    EXPECT_EQ(memory.tree(memory.root(), &system_base), folder.tree());
}

TEST(SystemBase, Errors) {
    Folder folder;
    folder.write("file", "");
    SystemOptions options;
    options.arena_size = 1 << 20;
    options.mounts = {{(folder / "none").string(), "/", false}};
    EXPECT_THAT(error_of(options), HasSubstr("none::/: cannot open the directory: no such file"));
    EXPECT_THAT(error_of(options), HasSubstr("--dir"));
    options.mounts = {{(folder / "file").string(), "/", false}};
    EXPECT_THAT(error_of(options), HasSubstr("not a directory"));
    options.mounts = {{folder.path().string(), "", false}};
    EXPECT_THAT(error_of(options), HasSubstr("not a path"));
    options.mounts = {{folder.path().string(), "\xff", false}};
    EXPECT_THAT(error_of(options), HasSubstr("not a path"));
    options.mounts.assign(2, {folder.path().string(), "/", false});
    EXPECT_THAT(error_of(options), HasSubstr("same path"));
    options.mounts.clear();
    for (u32 i = 0; i < max_preopens; i++)
        options.mounts.push_back({folder.path().string(), std::to_string(i), false});
    EXPECT_EQ(error_of(options), "no error");
    options.mounts.push_back({folder.path().string(), "more", false});
    EXPECT_THAT(error_of(options), HasSubstr("at most 64 directories, got 65"));
    options.mounts.clear();
    options.arguments = {std::string("a\0b", 3)};
    EXPECT_THAT(error_of(options), HasSubstr("NUL"));
    options.arguments.clear();
    options.arena_size = u64{1} << 40;
    EXPECT_THAT(error_of(options), HasSubstr("at most 256 GiB"));
}

TEST(SystemBase, TooLarge) {
    Folder folder;
    for (u32 i = 0; i < 1000; i++) folder.write(std::to_string(i), "x");
    SystemOptions options = options_for(folder, false);
    options.arena_size = 1 << 18;
    EXPECT_THAT(error_of(options), HasSubstr("--dir"));
    options.arena_size = 0;
    EXPECT_THAT(error_of(options), HasSubstr("--dir"));
    options.mounts.clear();
    options.arena_size = sizeof(SystemHeader) + host::heap_alignment;
    EXPECT_THAT(error_of(options), HasSubstr("nothing is left"));
    options.debug_capacity = ~u32{0};
    EXPECT_THAT(error_of(options), HasSubstr("more than"));
}

TEST(SystemBase, Deep) {
    Folder folder;
    std::string path = "d";
    for (u32 i = 2; i < host::max_host_depth; i++) path += "/d";
    folder.make_directory(path);
    EXPECT_EQ(error_of(options_for(folder)), "no error");
    folder.make_directory(path + "/d");
    EXPECT_THAT(error_of(options_for(folder)), HasSubstr("nested more than 256 deep"));
}

}  // namespace
}  // namespace gpurun::test
