// Finds what processes left and how it differs from the base. write_back.cpp writes it.
#include "host/harvest.h"

#include <algorithm>
#include <cstddef>
#include <unordered_set>

#include "base/format.h"

namespace gpurun::host {
namespace {

// Compares a process's trees with the base's. Ends: a directory is entered once on either side, and
// all entries together cannot be more than the arena has room for.
class Comparison {
public:
    explicit Comparison(Arena arena) : arena_(arena) {}
    Result<void> compare(Handle base, Handle own, u32 preopen);
    std::vector<Change> take();
    std::vector<Change> take_directories() { return std::move(changed_); }

private:
    struct Side {
        std::unordered_set<Handle> entered;
        u64 entries = 0;
    };
    struct Pair {
        Handle base, own;  // directories; 0: there is none
        std::string path;
        u32 depth;
    };
    Result<std::vector<Name>> enter(Side& side, Handle directory);
    Result<void> compare(const Pair& pair);
    Result<void> compare(const Pair& pair, const Name& base, const Name& own);
    Result<void> remove(const Pair& pair, const Name& name);
    Result<void> make(const Pair& pair, const Name& name, Handle base = 0);
    Result<void> note(std::vector<Change>& list, ChangeKind kind, const Pair& pair,
                      const Name& name, Handle base = 0);
    Result<void> push(const Pair& pair, std::string_view name, Handle base, Handle own);

    Arena arena_;
    u32 preopen_ = 0;
    Side base_, own_;
    u64 path_bytes_ = 0;
    std::vector<Pair> stack_;
    std::vector<Change> removed_, made_;
    std::vector<Change> changed_;  // directories on both sides
};

std::string join(const std::string& path, std::string_view name) {
    std::string joined = path;
    if (!joined.empty()) joined += '/';
    return joined.append(name);
}

Result<std::vector<Name>> Comparison::enter(Side& side, Handle directory) {
    if (!directory) return std::vector<Name>();
    if (!side.entered.insert(directory).second)
        return broken("a directory that is in two places", offset_of(directory));
    Node node = TRY(node_at(arena_, directory));
    side.entries += node.content_count;
    if (side.entries > arena_.size() / sizeof(DirEntry))
        return broken("more entries than there are", offset_of(directory));
    return names_in(arena_, directory);
}

Result<void> Comparison::note(std::vector<Change>& list, ChangeKind kind, const Pair& pair,
                              const Name& name, Handle base) {
    std::string path = join(pair.path, name.text);
    path_bytes_ += path.size();
    if (path_bytes_ > max_change_bytes)
        return Error{format("a process changed files whose paths together have more than %llu MiB",
                            (unsigned long long)(max_change_bytes >> 20))};
    list.push_back({kind, preopen_, std::move(path), name.node, base});
    return {};
}

Result<void> Comparison::push(const Pair& pair, std::string_view name, Handle base, Handle own) {
    if (base == own) return {};
    if (pair.depth >= max_tree_depth)
        return Error{format("a process nested directories more than %u deep", max_tree_depth)};
    stack_.push_back({base, own, join(pair.path, name), pair.depth + 1});
    return {};
}

Result<void> Comparison::remove(const Pair& pair, const Name& name) {
    Node node = TRY(node_at(arena_, name.node));
    if (node.kind != NodeKind::directory)
        return note(removed_, ChangeKind::remove_file, pair, name);
    TRY(note(removed_, ChangeKind::remove_directory, pair, name));
    return push(pair, name.text, name.node, 0);
}

Result<void> Comparison::make(const Pair& pair, const Name& name, Handle base) {
    Node node = TRY(node_at(arena_, name.node));
    switch (node.kind) {
        case NodeKind::file: return note(made_, ChangeKind::write_file, pair, name, base);
        case NodeKind::symlink: return note(made_, ChangeKind::make_symlink, pair, name, base);
        case NodeKind::directory:
            TRY(note(made_, ChangeKind::make_directory, pair, name, base));
            return push(pair, name.text, 0, name.node);
        case NodeKind::stream: break;
    }
    return broken("a stream in a directory", offset_of(name.node));
}

// Compares two things of one name.
Result<void> Comparison::compare(const Pair& pair, const Name& base, const Name& own) {
    if (base.node == own.node) return {};
    Node was = TRY(node_at(arena_, base.node)), is = TRY(node_at(arena_, own.node));
    bool was_directory = was.kind == NodeKind::directory;
    bool is_directory = is.kind == NodeKind::directory;
    if (was_directory && is_directory) return push(pair, own.text, base.node, own.node);
    if (was_directory || is_directory) {
        TRY(remove(pair, base));
        return make(pair, own, base.node);
    }
    if (was.kind == NodeKind::symlink && is.kind == NodeKind::symlink) {
        std::string_view old_text = TRY(symlink_text(arena_, was));
        std::string_view text = TRY(symlink_text(arena_, is));
        if (old_text == text) return {};
    }
    bool is_untouched_copy = is.origin == base.node && !(is.flags & node_is_changed);
    if (is.kind == NodeKind::file && is_untouched_copy) return {};
    return make(pair, own, base.node);
}

Result<void> Comparison::compare(const Pair& pair) {
    std::vector<Name> base = TRY(enter(base_, pair.base));
    std::vector<Name> own = TRY(enter(own_, pair.own));
    if (pair.base && pair.own)
        changed_.push_back({ChangeKind::make_directory, preopen_, pair.path, pair.own, pair.base});
    usize i = 0, j = 0;
    while (i < base.size() || j < own.size()) {
        if (j == own.size() || (i < base.size() && base[i].text < own[j].text))
            TRY(remove(pair, base[i++]));
        else if (i == base.size() || own[j].text < base[i].text)
            TRY(make(pair, own[j++]));
        else
            TRY(compare(pair, base[i++], own[j++]));
    }
    return {};
}

Result<void> Comparison::compare(Handle base, Handle own, u32 preopen) {
    preopen_ = preopen;
    if (base != own) stack_.push_back({base, own, "", 1});
    while (!stack_.empty()) {
        Pair pair = std::move(stack_.back());
        stack_.pop_back();
        TRY(compare(pair));
    }
    return {};
}

std::vector<Change> Comparison::take() {
    std::vector<Change> all(std::make_move_iterator(removed_.rbegin()),
                            std::make_move_iterator(removed_.rend()));
    all.insert(all.end(), std::make_move_iterator(made_.begin()),
               std::make_move_iterator(made_.end()));
    return all;
}

}  // namespace

Result<std::string> contents(Arena arena, Handle node, const SystemBase* system_base) {
    Content content = TRY(Content::make(arena, node, system_base));
    if (content.size() > arena.size() + max_hole_bytes)
        return Error{format("a file of %llu bytes, mostly holes, is too large to be read whole",
                            (unsigned long long)content.size())};
    std::string all;
    all.reserve(content.size());
    for (u64 i = 0; i < content.block_count(); i++) {
        Arena block = TRY(content.block(i));
        if (block.empty())
            all.resize(std::min(content.size(), (i + 1) * file_block));
        else
            all.append(reinterpret_cast<const char*>(block.data()), block.size());
    }
    all.resize(content.size());
    return all;
}

Result<std::vector<Change>> changes(Arena arena, Handle process, std::vector<Change>* directories) {
    // Only the fields are read: the header is long, and there may be many processes.
    u32 count = TRY(value_at<u32>(arena, offsetof(SystemHeader, preopen_count), "no header"));
    Handle at = TRY(value_at<Handle>(arena, offsetof(SystemHeader, preopens), "no header"));
    if (count > max_preopens) return broken("too many preopens", 0);
    Arena preopens =
        TRY(bytes_at(arena, offset_of(at), count, sizeof(Preopen), "preopens outside"));
    ProcessBlock block =
        TRY(value_at<ProcessBlock>(arena, offset_of(process), "a process outside"));
    // A process that has not begun has no roots.
    if (!block.roots) return std::vector<Change>();
    Arena roots = TRY(bytes_at(arena, offset_of(block.roots), count, sizeof(Handle),
                               "a process's roots outside"));
    Comparison comparison(arena);
    for (u32 i = 0; i < count; i++) {
        Handle base = element<Preopen>(preopens, i).node, own = element<Handle>(roots, i);
        if (!base || !own) return broken("a preopen without a root", offset_of(block.roots));
        TRY(comparison.compare(base, own, i));
    }
    if (directories) *directories = comparison.take_directories();
    return comparison.take();
}

}  // namespace gpurun::host
