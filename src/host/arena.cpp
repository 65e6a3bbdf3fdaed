#include "host/arena.h"

#include <algorithm>
#include <cstddef>

#include "host/files.h"

namespace gpurun::host {
namespace {

constexpr u64 cold_blocks = 64;  // read at a time

}  // namespace

Result<Node> node_at(Arena arena, Handle handle) {
    if (!handle) return broken("no node where there must be one", 0);
    Node node = TRY(value_at<Node>(arena, offset_of(handle), "a node outside"));
    if (node.kind < NodeKind::file || node.kind > NodeKind::stream)
        return broken("a node of an unknown kind", offset_of(handle));
    return node;
}

Result<std::vector<Name>> names_in(Arena arena, Handle directory) {
    Node node = TRY(node_at(arena, directory));
    if (node.kind != NodeKind::directory) return broken("not a directory", offset_of(directory));
    Arena entries = TRY(bytes_at(arena, offset_of(node.content), node.content_count,
                                 sizeof(DirEntry), "entries of a directory outside"));
    std::vector<Name> names;
    for (u32 i = 0; i < node.content_count; i++) {
        DirEntry entry = element<DirEntry>(entries, i);
        if (!entry.node) continue;
        Arena bytes = TRY(bytes_at(arena, entry.name, entry.name_length, 1, "a name outside"));
        std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
        if (!is_name(text)) return broken("an invalid name", entry.name);
        names.push_back({text, entry.node});
    }
    auto before = [](const Name& a, const Name& b) { return a.text < b.text; };
    auto same = [](const Name& a, const Name& b) { return a.text == b.text; };
    std::sort(names.begin(), names.end(), before);
    if (std::adjacent_find(names.begin(), names.end(), same) != names.end())
        return broken("a name twice in a directory", offset_of(directory));
    return names;
}

Result<std::string_view> symlink_text(Arena arena, const Node& node) {
    Arena bytes = TRY(bytes_at(arena, offset_of(node.content), node.content_count, 1,
                               "the text of a symbolic link outside"));
    if (bytes.size() > max_path)
        return broken("a symbolic link that is too long", offset_of(node.content));
    return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

Result<Content> Content::make(Arena arena, Handle handle, const SystemBase* system_base) {
    Content content;
    Node node = TRY(node_at(arena, handle));
    if (node.kind != NodeKind::file && node.kind != NodeKind::stream)
        return broken("not a file", offset_of(handle));
    if (node.size > max_file) return broken("a file that is too large", offset_of(handle));
    content.arena_ = arena;
    content.node_ = node;
    content.content_ = TRY(bytes_at(arena, offset_of(node.content), node.content_count,
                                    sizeof(Handle), "the table of a file outside"));
    content.heap_end_ = TRY(value_at<u64>(arena, offsetof(SystemHeader, size), "no header"));
    content.blocks_a_table_ = node.flags & node_is_deep ? table_blocks : node.content_count;
    u64 in_tables =
        node.flags & node_is_deep ? u64{node.content_count} * table_blocks : node.content_count;
    content.block_count_ = std::min<u64>((node.size + file_block - 1) / file_block, in_tables);
    TRY(content.check_tables(offset_of(handle)));
    if (node.flags & node_is_cold) {
        if (!system_base) return Error{"a file's contents are with the host", offset_of(handle)};
        // The base's node has the number of the file, also for a private copy.
        Node base = node;
        if (offset_of(handle) >= system_base->base_end()) base = TRY(node_at(arena, node.origin));
        content.host_id_ = base.host_id;
        content.system_base_ = system_base;
    }
    return content;
}

Arena Content::table(u64 number) const {
    if (!(node_.flags & node_is_deep)) return content_;
    Handle handle = element<Handle>(content_, number);
    return handle == 0 ? Arena() : arena_.subspan(offset_of(handle), file_block);
}

// Checks that all tables and blocks are inside the arena. Each has one place in one file, so there
// cannot be more of them than fit.
Result<void> Content::check_tables(u64 offset) const {
    const u64 most = arena_.size() / file_block;
    u64 tables = 0, blocks = 0;
    for (u64 first = 0; first < block_count_; first += blocks_a_table_) {
        u64 number = first / blocks_a_table_;
        if (node_.flags & node_is_deep) {
            Handle handle = element<Handle>(content_, number);
            TRY(bytes_at(arena_, offset_of(handle), 1, file_block, "a table of a file outside"));
            if (handle != 0 && ++tables > most)
                return broken("a file with more tables than there are", offset);
        }
        Arena handles = table(number);
        for (u64 i = 0; i < handles.size() / sizeof(Handle); i++) {
            Handle block = element<Handle>(handles, i);
            blocks += block > zero_block && offset_of(block) < heap_end_;
        }
    }
    if (blocks > most) return broken("a file with more blocks than there are", offset);
    return {};
}

u64 Content::next_block(u64 number) const {
    while (number < block_count_ && table(number / blocks_a_table_).empty())
        number = (number / blocks_a_table_ + 1) * blocks_a_table_;
    return std::min(number, block_count_);
}

Result<Arena> Content::block(u64 number) {
    if (number >= block_count_) return Arena();
    u64 size = std::min(file_block, node_.size - number * file_block);
    Arena handles = table(number / blocks_a_table_);
    if (handles.empty()) return Arena();
    Handle handle = element<Handle>(handles, number % blocks_a_table_);
    // Behind the heap are only blocks that the host wrote there. They are read from the host's file
    // again.
    bool is_cold_block = system_base_ != nullptr && offset_of(handle) >= heap_end_;
    if (handle > zero_block && !is_cold_block)
        return bytes_at(arena_, offset_of(handle), size, 1, "a block of a file outside");
    if (!system_base_ || handle == zero_block) return Arena();
    if (cold_.empty() || number < cold_first_ || number >= cold_first_ + cold_blocks) {
        cold_.resize(cold_blocks * file_block);
        cold_first_ = number;
        Result<void> read = system_base_->read_cold(host_id_, number * file_block, cold_);
        if (!read) {
            cold_.clear();
            return std::move(read).error();
        }
    }
    return Arena(cold_).subspan((number - cold_first_) * file_block, size);
}

}  // namespace gpurun::host
