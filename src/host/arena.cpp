#include "host/arena.h"

#include <algorithm>

#include "host/files.h"

namespace gpurun::host {
namespace {

constexpr u64 cold_blocks = 64;  // read at a time

}  // namespace

Result<Node> node_at(Arena arena, Handle handle) {
    if (!handle) return broken("no node where there must be one", 0);
    Node node = TRY(value_at<Node>(arena, offset_of(handle), "a node outside"));
    if (node.kind < NodeKind::file || node.kind > NodeKind::stream)
        return broken("a node of no kind", offset_of(handle));
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
        if (!is_name(text)) return broken("a name that cannot be", entry.name);
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

Result<Content> Content::make(Arena arena, Handle handle, const SystemImage* image) {
    Content content;
    Node node = TRY(node_at(arena, handle));
    if (node.kind != NodeKind::file && node.kind != NodeKind::stream)
        return broken("not a file", offset_of(handle));
    if (node.size > max_file) return broken("a file that is too large", offset_of(handle));
    content.arena_ = arena;
    content.node_ = node;
    content.table_ = TRY(bytes_at(arena, offset_of(node.content), node.content_count,
                                  sizeof(Handle), "the table of a file outside"));
    content.block_count_ =
        std::min<u64>((node.size + file_block - 1) / file_block, node.content_count);
    SystemHeader header = TRY(value_at<SystemHeader>(arena, 0, "the header"));
    content.heap_end_ = header.size;
    u64 present = 0;
    for (u64 i = 0; i < content.block_count_; i++)
        present += element<Handle>(content.table_, i) > zero_block &&
                   offset_of(element<Handle>(content.table_, i)) < header.size;
    // A block has one place in one file, so there cannot be more than fit.
    if (present > arena.size() / file_block)
        return broken("a file with more blocks than there are", offset_of(handle));
    if (node.flags & node_is_cold) {
        if (!image) return Error{"a file's contents are with the host", offset_of(handle)};
        // A private copy has the number by way of the base's node.
        Node base = node;
        if (offset_of(handle) >= image->base_end()) base = TRY(node_at(arena, node.origin));
        content.host_id_ = base.host_id;
        content.image_ = image;
    }
    return content;
}

Result<Arena> Content::block(u64 number) {
    if (number >= block_count_) return Arena();
    u64 size = std::min(file_block, node_.size - number * file_block);
    Handle handle = element<Handle>(table_, number);
    // Behind the heap is only what the host brought: it is read here once more.
    bool is_brought = image_ != nullptr && offset_of(handle) >= heap_end_;
    if (handle > zero_block && !is_brought)
        return bytes_at(arena_, offset_of(handle), size, 1, "a block of a file outside");
    if (!image_ || handle == zero_block) return Arena();
    if (cold_.empty() || number < cold_first_ || number >= cold_first_ + cold_blocks) {
        cold_.resize(cold_blocks * file_block);
        cold_first_ = number;
        Result<void> read = image_->read_cold(host_id_, number * file_block, cold_);
        if (!read) {
            cold_.clear();
            return std::move(read).error();
        }
    }
    return Arena(cold_).subspan((number - cold_first_) * file_block, size);
}

}  // namespace gpurun::host
