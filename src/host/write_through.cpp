// Reads a file of a process piece by piece from the device, and puts it in its place.
#include "host/write_through.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>

#include "base/format.h"
#include "host/maker.h"

namespace gpurun::host {
namespace {

// A copy of system memory that has only what was fetched; the rest is zeros.
class Mirror {
public:
    Mirror(const ReadSystem& read, u64 size) : read_(read), size_(size) {
        void* at = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (at != MAP_FAILED) bytes_ = static_cast<u8*>(at);
    }
    Mirror(const Mirror&) = delete;
    Mirror& operator=(const Mirror&) = delete;
    ~Mirror() {
        if (bytes_) munmap(bytes_, size_);
    }

    Arena arena() const { return {bytes_, bytes_ ? size_ : 0}; }
    Result<void> fetch(u64 offset, u64 size) {
        if (!bytes_) return Error{"no addresses for a copy of system memory"};
        if (offset > size_ || size > size_ - offset) return broken("something outside", offset);
        return read_(offset, {bytes_ + offset, size});
    }
    Result<Node> fetch_node(Handle handle) {
        TRY(fetch(offset_of(handle), sizeof(Node)));
        return node_at(arena(), handle);
    }

private:
    const ReadSystem& read_;
    u64 size_;
    u8* bytes_ = nullptr;
};

// Fetches everything that Content reads of a file.
Result<void> fetch_content(Mirror& mirror, Handle handle) {
    TRY(mirror.fetch(0, offsetof(SystemHeader, device_time)));
    const u64 heap_end = TRY(value_at<u64>(mirror.arena(), offsetof(SystemHeader, size), ""));
    const Node node = TRY(mirror.fetch_node(handle));
    if (node.origin) TRY(mirror.fetch_node(node.origin));
    TRY(mirror.fetch(offset_of(node.content), u64{node.content_count} * sizeof(Handle)));
    auto fetch_blocks = [&](u64 table_at, u64 count, u64 first) -> Result<void> {
        for (u64 i = 0; i < count && (first + i) * file_block < node.size; i++) {
            Handle block = TRY(value_at<Handle>(mirror.arena(), table_at + i * sizeof block, ""));
            if (block <= zero_block || offset_of(block) >= heap_end) continue;
            TRY(mirror.fetch(offset_of(block),
                             std::min(file_block, node.size - (first + i) * file_block)));
        }
        return {};
    };
    if (!(node.flags & node_is_deep))
        return fetch_blocks(offset_of(node.content), node.content_count, 0);
    for (u64 i = 0; i < node.content_count; i++) {
        Handle table =
            TRY(value_at<Handle>(mirror.arena(), offset_of(node.content) + i * sizeof(Handle), ""));
        if (table == 0) continue;
        TRY(mirror.fetch(offset_of(table), file_block));
        TRY(fetch_blocks(offset_of(table), table_blocks, i * table_blocks));
    }
    return {};
}

// Returns all names that a private node has in a process's trees. Only the process's own
// directories can have one. Ends: no directory is entered twice.
Result<std::vector<Change>> names_of(Mirror& mirror, Handle process, Handle wanted,
                                     const SystemBase& system_base) {
    struct Directory {
        Handle node;
        u32 preopen;
        std::string path;
    };
    TRY(mirror.fetch(offset_of(process), sizeof(ProcessBlock)));
    ProcessBlock block = TRY(value_at<ProcessBlock>(mirror.arena(), offset_of(process), ""));
    std::vector<Directory> stack;
    std::set<Handle> entered;
    auto enter = [&](Handle node, u32 preopen, std::string path) {
        const bool is_own = offset_of(node) >= system_base.base_end();
        if (is_own && entered.insert(node).second)
            stack.push_back({node, preopen, std::move(path)});
    };
    TRY(mirror.fetch(offset_of(block.roots), system_base.preopen_count() * sizeof(Handle)));
    for (u32 i = 0; i < system_base.preopen_count() && block.roots; i++)
        enter(
            TRY(value_at<Handle>(mirror.arena(), offset_of(block.roots) + i * sizeof(Handle), "")),
            i, "");
    std::vector<Change> names;
    while (!stack.empty()) {
        Directory at = std::move(stack.back());
        stack.pop_back();
        const Node node = TRY(mirror.fetch_node(at.node));
        if (node.kind != NodeKind::directory) continue;
        const u64 entries = offset_of(node.content);
        TRY(mirror.fetch(entries, u64{node.content_count} * sizeof(DirEntry)));
        for (u64 i = 0; i < node.content_count; i++) {
            auto entry =
                TRY(value_at<DirEntry>(mirror.arena(), entries + i * sizeof(DirEntry), ""));
            const bool is_own = entry.node && offset_of(entry.node) >= system_base.base_end();
            if (!is_own) continue;
            const bool is_wanted = entry.node == wanted;
            if (!is_wanted && TRY(mirror.fetch_node(entry.node)).kind != NodeKind::directory)
                continue;
            TRY(mirror.fetch(entry.name, entry.name_length));
            Arena bytes = TRY(bytes_at(mirror.arena(), entry.name, entry.name_length, 1, "a name"));
            std::string name(bytes.begin(), bytes.end());
            if (!is_name(name)) return broken("an invalid name", entry.name);
            std::string path = at.path.empty() ? name : at.path + "/" + name;
            if (is_wanted)
                names.push_back({ChangeKind::write_file, at.preopen, path, wanted});
            else
                enter(entry.node, at.preopen, path);
        }
    }
    return names;
}

// Returns the node that the base has at a path, or 0.
Result<Handle> base_at(const SystemBase& system_base, u32 preopen, std::string_view path) {
    Arena base = system_base.bytes();
    Handle preopens = TRY(value_at<Handle>(base, offsetof(SystemHeader, preopens), ""));
    Handle at =
        TRY(value_at<Preopen>(base, offset_of(preopens) + preopen * sizeof(Preopen), "")).node;
    while (!path.empty()) {
        std::string_view name = path.substr(0, path.find('/'));
        path.remove_prefix(std::min(path.size(), name.size() + 1));
        if (TRY(node_at(base, at)).kind != NodeKind::directory) return Handle{0};
        std::vector<Name> names = TRY(names_in(base, at));
        auto found = std::ranges::lower_bound(names, name, {}, &Name::text);
        if (found == names.end() || found->text != name) return Handle{0};
        at = found->node;
    }
    return at;
}

// Notes which directories on the way to a file are not there yet, and so will be made for it.
void note_directories(int root, u32 preopen, std::string_view folder, WrittenThrough& written) {
    for (usize at = 0; at < folder.size();) {
        at = std::min(folder.find('/', at), folder.size());
        std::string path(folder.substr(0, at++));
        if (!open_directory(root, path) && errno == ENOENT)
            written.directories.emplace(preopen, path);
    }
}

Result<void> write_one(Change change, Arena arena, const SystemBase& system_base) {
    const Mount& mount = system_base.mount(change.preopen);
    if (!mount.is_writable) return {};
    WrittenThrough& written = system_base.written();
    const WrittenThrough::Place place{change.preopen, change.path};
    auto fail = [&](const std::string& why) {
        return Error{format("cannot sync '%s' in '%s': %s", change.path.c_str(),
                            mount.host_path.c_str(), why.c_str())};
    };
    if (written.conflicts.contains(place)) return fail("others have changed it");
    change.base = TRY(base_at(system_base, change.preopen, change.path));
    const HostFile* base = change.base ? system_base.host_file(change.base) : nullptr;
    // A file that replaces something of another kind is written back at the end, when what is in
    // its way has been removed.
    if (base && S_ISDIR(base->mode)) return fail("it has taken the place of a directory");
    Expected expected;
    if (auto found = written.files.find(place); found != written.files.end())
        expected = {Expected::Kind::file, found->second.identity};
    else if (base)
        expected = {Expected::Kind::file, base->identity};

    auto [folder, last] = split_path(change.path);
    const std::string name(last);
    const int root = system_base.directory(change.preopen);
    note_directories(root, change.preopen, folder, written);
    File way = reach_directory(root, folder);
    File directory(way ? openat(way.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1);
    if (!directory) return fail(reason(errno));
    std::string shown = mount.host_path;
    if (!folder.empty()) shown += "/" + std::string(folder);
    system_base.keep_cold_open(change.preopen, change.path);
    {
        Transaction transaction = TRY(Transaction::begin(directory.get(), shown));
        const u64 number = transaction.next_number();
        Maker maker(arena, system_base, true);
        TRY(maker.check_name(change));
        Result<void> made = maker.make_file(change, transaction.folder(), staged_name(number));
        if (!made) return fail(made.error().to_string());
        Problems problems;
        transaction.commit({{Row::Kind::place, name, number, expected}}, true, problems);
        if (Result<void> done = problems.result(); !done) {
            written.conflicts.insert(place);
            return done;
        }
    }
    struct stat info;
    if (fstatat(directory.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0)
        return fail(reason(errno));
    written.files[place] = {Identity::of(info), change.node, base != nullptr};
    return {};
}

}  // namespace

Result<void> write_through(const ReadSystem& read, u64 memory_size, Handle process, Handle node,
                           const SystemBase& system_base) {
    Mirror mirror(read, memory_size);
    std::vector<Change> names = TRY(names_of(mirror, process, node, system_base));
    if (names.empty()) return {};
    TRY(fetch_content(mirror, node));
    for (const Change& name : names) TRY(write_one(name, mirror.arena(), system_base));
    return {};
}

}  // namespace gpurun::host
