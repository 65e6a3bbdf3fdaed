// Makes the base of system memory. Walks the host's directories with an explicit stack; the
// descriptor of each directory on the way down stays open, which is why max_host_depth limits it.
#include "host/system_base.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <ctime>
#include <mutex>
#include <string_view>

#include "base/check.h"
#include "base/format.h"
#include "base/utf8.h"

namespace gpurun::host {
namespace {

constexpr u32 min_indexed = 9;  // entries of a directory that has an index

u64 nanoseconds(const timespec& time) {
    return time.tv_sec < 0 ? 0 : u64(time.tv_sec) * 1'000'000'000 + u64(time.tv_nsec);
}

u64 now(clockid_t clock) {
    timespec time;
    CHECK(clock_gettime(clock, &time) == 0);
    return nanoseconds(time);
}

// Returns the next output of splitmix64, whose state starts at the seed.
u64 next_random(u64& state) {
    u64 z = state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

// Makes the key of the processes' random numbers: from the kernel's, or from the seed, four outputs
// of splitmix64.
Result<void> make_key(std::optional<u64> seed, u32 (&key)[8]) {
    if (seed) {
        u64 state = *seed;
        for (u32 i = 0; i < 8; i += 2) {
            u64 word = next_random(state);
            key[i] = u32(word);
            key[i + 1] = u32(word >> 32);
        }
        return {};
    }
    // getrandom() never returns a part of up to 256 bytes.
    ssize_t got;
    do got = getrandom(key, sizeof key, 0);
    while (got < 0 && errno == EINTR);
    if (got != sizeof key) return Error{"no random numbers from the kernel: " + reason(errno)};
    return {};
}

u32 hash_of(std::string_view name) {
    u32 hash = name_hash_start;
    for (char c : name) hash = name_hash(hash, u8(c));
    return hash;
}

// Reads until `to` is full or the file ends. Returns how many bytes there were, or nullopt.
std::optional<u64> read_at(int file, u64 offset, std::span<u8> to) {
    u64 done = 0;
    while (done < to.size()) {
        ssize_t got = pread(file, to.data() + done, to.size() - done, off_t(offset + done));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return std::nullopt;
        if (got == 0) break;
        done += u64(got);
    }
    return done;
}

}  // namespace

struct SystemBase::ColdFiles {
    struct Entry {
        u32 preopen;
        std::string path;
        u64 size;
        File kept_open;  // set once its path leads to another file
    };
    std::vector<Entry> entries;
    // The file that was read last stays open.
    std::mutex mutex;
    u32 open_id = 0;
    File open_file;
};

class SystemBaseBuilder {
public:
    explicit SystemBaseBuilder(const SystemOptions& options) : options_(options) {
        max_warm_ = std::min(options.warm_bytes, options.arena_size / 4);
    }
    Result<SystemBase> build();

private:
    struct Directory {
        File file;
        Handle node;
        std::string path;  // below the mount, with a '/' after it unless empty
        dev_t device = 0;
        std::vector<std::pair<std::string, Handle>> inner;  // directories in it, the first last
    };

    Result<u64> find_room(u64 size, u64 alignment) const;
    Result<u64> place(u64 size, u64 alignment);
    Result<Handle> allocate(u64 size);
    void write(u64 offset, const void* from, u64 size);
    template <class T>
    void write(Handle handle, const T& value) {
        write(u64{handle} << handle_shift, &value, sizeof value);
    }
    template <class T>
    Result<Handle> place_all(const std::vector<T>& values);
    Result<void> place_blocks(std::span<const u8> content, Node& node);
    Result<void> place_table(const std::vector<Handle>& blocks, Node& node);
    Result<u32> place_strings(const std::vector<std::string>& strings, const char* what,
                              Handle& handle);

    Node make_node(NodeKind kind, Handle parent, const struct stat& info);
    Result<void> add_mount(u32 number, Preopen& preopen);
    Result<void> add_mounts(SystemHeader& header);
    Result<Handle> add_stream(std::span<const u8> room, u64 size, u32 flags);
    Result<void> add_input(SystemHeader& header);
    Result<void> add_inputs(SystemHeader& header);
    Result<void> fill(Directory& directory);
    Result<Handle> add_entry(Directory& directory, const std::string& name);
    Result<Handle> add_file(Directory& directory, const std::string& name, const struct stat& info);
    Result<Handle> add_symlink(Directory& directory, const std::string& name,
                               const struct stat& info);
    Result<void> write_entries(Handle node, std::vector<DirEntry>& entries);
    bool read_file(int directory, const std::string& name, u64 size);
    void remember(Handle node, const struct stat& info);

    const SystemOptions& options_;
    u64 max_warm_;
    SystemBase system_base_;
    u32 preopen_ = 0;  // that is being walked
    u64 now_ = now(CLOCK_REALTIME);
    u64 next_inode_ = 1;
    u64 warm_ = 0;             // bytes of blocks so far
    std::vector<u8> content_;  // of the file that is being added
};

// Finds where the next `size` bytes begin.
Result<u64> SystemBaseBuilder::find_room(u64 size, u64 alignment) const {
    u64 offset = (system_base_.bytes_.size() + alignment - 1) & ~(alignment - 1);
    if (size > options_.arena_size || offset > options_.arena_size - size)
        return Error{
            format("the files of --dir, arguments and standard input take more than the "
                   "%llu MiB of system memory: need %llu MiB and more",
                   Number(options_.arena_size >> 20), Number((offset + size) >> 20))};
    return offset;
}

Result<u64> SystemBaseBuilder::place(u64 size, u64 alignment) {
    u64 offset = TRY(find_room(size, alignment));
    system_base_.bytes_.resize(offset + size);
    return offset;
}

Result<Handle> SystemBaseBuilder::allocate(u64 size) {
    u64 offset = TRY(place(size, least_block));
    return Handle(offset >> handle_shift);
}

void SystemBaseBuilder::write(u64 offset, const void* from, u64 size) {
    CHECK(offset <= system_base_.bytes_.size() && size <= system_base_.bytes_.size() - offset);
    if (size) std::memcpy(system_base_.bytes_.data() + offset, from, size);
}

template <class T>
Result<Handle> SystemBaseBuilder::place_all(const std::vector<T>& values) {
    if (values.empty()) return Handle{0};
    Handle handle = TRY(allocate(values.size() * sizeof(T)));
    write(u64{handle} << handle_shift, values.data(), values.size() * sizeof(T));
    return handle;
}

// Writes the blocks of a content. Blocks of zeros in files are left out. A stream has no holes, and
// its last block is as short as its content, since nobody copies it to write there. So is the only
// block of a small file: there may be very many, and a copy of one gets a whole block.
Result<void> SystemBaseBuilder::place_blocks(std::span<const u8> content, Node& node) {
    const bool is_stream = node.kind == NodeKind::stream;
    std::vector<Handle> table((content.size() + file_block - 1) / file_block);
    for (usize i = 0; i < table.size(); i++) {
        std::span<const u8> block = content.subspan(
            i * file_block, std::min<u64>(file_block, content.size() - i * file_block));
        if (!is_stream && is_zero(block)) continue;
        const bool is_short = is_stream || table.size() == 1;
        table[i] = TRY(allocate(is_short ? block.size() : file_block));
        write(u64{table[i]} << handle_shift, block.data(), block.size());
    }
    return place_table(table, node);
}

Result<void> SystemBaseBuilder::place_table(const std::vector<Handle>& blocks, Node& node) {
    std::vector<Handle> tables;
    for (usize i = 0; blocks.size() > table_blocks && i < blocks.size(); i += table_blocks) {
        std::vector<Handle> table(blocks.begin() + s64(i),
                                  blocks.begin() + s64(std::min(i + table_blocks, blocks.size())));
        table.resize(table_blocks, zero_block);
        tables.push_back(TRY(place_all(table)));
    }
    if (!tables.empty()) node.flags |= node_is_deep;
    const std::vector<Handle>& content = tables.empty() ? blocks : tables;
    node.content = TRY(place_all(content));
    node.content_count = node.content_capacity = u32(content.size());
    return {};
}

// Writes strings, each with a NUL after it. Returns the number of bytes.
Result<u32> SystemBaseBuilder::place_strings(const std::vector<std::string>& strings,
                                             const char* what, Handle& handle) {
    std::vector<char> all;
    for (const std::string& text : strings) {
        if (text.find('\0') != text.npos) return Error{format("a NUL byte in %s", what)};
        all.insert(all.end(), text.begin(), text.end());
        all.push_back('\0');
    }
    if (all.size() > ~u32{0}) return Error{format("%s of more than 4 GiB", what)};
    handle = TRY(place_all(all));
    return u32(all.size());
}

Node SystemBaseBuilder::make_node(NodeKind kind, Handle parent, const struct stat& info) {
    Node node{};
    node.kind = kind;
    node.parent = parent;
    if (kind == NodeKind::directory) node.next_serial = 1;
    node.link_count = 1;
    node.inode = next_inode_++;
    node.accessed = nanoseconds(info.st_atim);
    node.modified = nanoseconds(info.st_mtim);
    node.changed = nanoseconds(info.st_ctim);
    return node;
}

void SystemBaseBuilder::remember(Handle node, const struct stat& info) {
    system_base_.host_files_.push_back({node, info.st_mode, info.st_uid, info.st_gid,
                                        Identity::of(info), s64(nanoseconds(info.st_atim))});
}

Result<SystemBase> SystemBaseBuilder::build() {
    if (options_.arena_size > max_arena)
        return Error{format("system memory of %llu GiB: at most %llu GiB can be used",
                            Number(options_.arena_size >> 30), Number(max_arena >> 30))};
    SystemHeader header{};
    TRY(allocate(sizeof header));
    header.size = options_.arena_size;
    header.has_numbered_arguments = options_.has_numbered_arguments;
    header.process_count = options_.process_count;
    header.is_live = options_.is_live;
    header.output_limit = options_.output_limit;
    header.keeps_files = options_.keeps_files;
    header.is_traced = options_.is_traced;
    TRY(make_key(options_.seed, header.random_key));
    header.argument_count = u32(options_.arguments.size());
    header.argument_bytes = TRY(place_strings(options_.arguments, "arguments", header.arguments));
    header.environment_count = u32(options_.environment.size());
    header.environment_bytes =
        TRY(place_strings(options_.environment, "the environment", header.environment));
    system_base_.write_listener_ = options_.write_listener;
    TRY(add_mounts(header));
    TRY(add_input(header));
    TRY(add_inputs(header));
    header.debug_capacity = options_.debug_capacity;
    // Room that is all zeros is not part of the base's bytes.
    const u64 records_size = u64{header.debug_capacity} * sizeof(DebugRecord);
    const u64 records = TRY(find_room(records_size, least_block));
    TRY(place(0, least_block));
    if (header.debug_capacity) header.debug = Handle(records >> handle_shift);
    system_base_.base_end_ = (records + records_size + heap_alignment - 1) & ~(heap_alignment - 1);
    header.base_end = header.bump = system_base_.base_end();
    if (header.base_end > header.size || header.size - header.base_end < heap_alignment)
        return Error{
            format("the files of --dir, arguments and standard input take %llu MiB, and "
                   "system memory has %llu MiB: nothing is left for the processes",
                   Number(header.base_end >> 20), Number(header.size >> 20))};
    SystemBase::stamp(header);
    write(Handle{0}, header);
    return std::move(system_base_);
}

// Makes a stream's node. The first `size` bytes of its room can be read.
Result<Handle> SystemBaseBuilder::add_stream(std::span<const u8> room, u64 size, u32 flags) {
    Node node = make_node(NodeKind::stream, 0, {});
    node.accessed = node.modified = node.changed = now_;
    node.flags = flags;
    node.size = size;
    TRY(place_blocks(room, node));
    Handle handle = TRY(allocate(sizeof node));
    write(handle, node);
    return handle;
}

Result<void> SystemBaseBuilder::add_input(SystemHeader& header) {
    if (options_.input) {
        header.stdin_node = TRY(add_stream(*options_.input, options_.input->size(), node_is_ended));
    } else if (options_.is_live) {
        // The host fills this room again whenever all of it was read.
        header.stdin_node = TRY(add_stream(std::vector<u8>(live_input), 0, 0));
    }
    return {};
}

// Writes the table of inputs, then what it refers to, in the order of the processes.
Result<void> SystemBaseBuilder::add_inputs(SystemHeader& header) {
    if (options_.inputs.empty()) return {};
    CHECK(options_.inputs.size() == options_.process_count);
    // Reserves memory for all inputs at once: they can be most of the base, and growing would take
    // twice as much.
    u64 room = u64{options_.debug_capacity} * sizeof(DebugRecord) + 2 * heap_alignment;
    for (const ProcessInput& given : options_.inputs) {
        room += sizeof(InputEntry) + sizeof(Node) + 3 * least_block;
        if (given.input) room += given.input->size() + given.input->size() / 512;
        for (const std::string& text : given.arguments) room += text.size() + 1;
    }
    system_base_.bytes_.reserve(system_base_.bytes_.size() + room);
    header.inputs = TRY(allocate(options_.inputs.size() * sizeof(InputEntry)));
    u64 at = u64{header.inputs} << handle_shift;
    for (const ProcessInput& given : options_.inputs) {
        InputEntry entry{};
        entry.number = given.number;
        entry.argument_count = u32(given.arguments.size());
        Handle strings = 0;
        entry.argument_bytes = TRY(place_strings(given.arguments, "arguments", strings));
        entry.arguments = u64{strings} << handle_shift;
        if (given.input)
            entry.stdin_node = TRY(add_stream(*given.input, given.input->size(), node_is_ended));
        write(at, &entry, sizeof entry);
        at += sizeof entry;
    }
    return {};
}

Result<void> SystemBaseBuilder::add_mounts(SystemHeader& header) {
    if (options_.mounts.size() > max_preopens)
        return Error{
            format("--dir: at most %u directories, got %zu", max_preopens, options_.mounts.size())};
    std::vector<Preopen> preopens(options_.mounts.size());
    for (u32 i = 0; i < preopens.size(); i++) TRY(add_mount(i, preopens[i]));
    header.preopen_count = u32(preopens.size());
    header.preopens = TRY(place_all(preopens));
    return {};
}

Result<void> SystemBaseBuilder::add_mount(u32 number, Preopen& preopen) {
    const Mount& mount = options_.mounts[number];
    const std::string& name = mount.guest_path;
    auto refuse = [&](const std::string& why) {
        return Error{
            format("%s %s: %s", mount.is_writable ? "--dir" : "--dir-ro",
                   name == mount.host_path ? name.c_str() : (mount.host_path + "::" + name).c_str(),
                   why.c_str())};
    };
    if (name.empty() || name.size() >= max_path || !is_utf8(name) || name.find('\0') != name.npos)
        return refuse("not a path that a program can use");
    for (u32 i = 0; i < number; i++)
        if (options_.mounts[i].guest_path == name)
            return refuse("another directory has the same path in the program");

    File file(open(mount.host_path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!file) return refuse("cannot open the directory: " + reason(errno));
    struct stat info;
    if (fstat(file.get(), &info) != 0)
        return refuse("cannot look at the directory: " + reason(errno));
    File kept(openat(file.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!kept) return refuse("cannot open the directory: " + reason(errno));
    system_base_.mounts_.push_back(mount);
    system_base_.directories_.push_back(std::move(kept));
    system_base_.file_systems_.emplace_back();
    preopen_ = number;

    preopen.is_writable = mount.is_writable;
    preopen.name_length = u32(name.size());
    preopen.name = TRY(place(name.size(), 1));
    write(preopen.name, name.data(), name.size());
    preopen.node = TRY(allocate(sizeof(Node)));
    write(preopen.node, make_node(NodeKind::directory, 0, info));
    remember(preopen.node, info);

    std::vector<Directory> stack;
    stack.push_back({std::move(file), preopen.node, "", info.st_dev, {}});
    TRY(fill(stack.back()));
    while (!stack.empty()) {
        Directory& outer = stack.back();
        if (outer.inner.empty()) {
            stack.pop_back();
            continue;
        }
        auto [inner_name, node] = std::move(outer.inner.back());
        outer.inner.pop_back();
        Directory inner;
        inner.file = File(openat(outer.file.get(), inner_name.c_str(),
                                 O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
        inner.node = node;
        inner.path = outer.path + inner_name + "/";
        if (!inner.file || fstat(inner.file.get(), &info) != 0) {
            system_base_.unreadable_++;
            continue;
        }
        inner.device = info.st_dev;
        if (inner.device != outer.device)
            system_base_.file_systems_.back().push_back(outer.path + inner_name);
        if (stack.size() >= max_host_depth)
            return refuse(format("directories are nested more than %u deep", max_host_depth));
        TRY(fill(inner));
        stack.push_back(std::move(inner));
    }
    return {};
}

Result<void> SystemBaseBuilder::fill(Directory& directory) {
    std::optional<std::vector<std::string>> names = list_names(directory.file.get());
    if (!names) {
        system_base_.unreadable_++;
        return {};
    }
    // A run that was killed may have left an unfinished transaction there.
    if (std::binary_search(names->begin(), names->end(), staging_name)) {
        const Mount& mount = options_.mounts[preopen_];
        if (mount.is_writable) {
            std::string shown = mount.host_path + "/" + directory.path;
            shown.pop_back();
            TRY(recover(directory.file.get(), shown, options_.write_listener));
            names = list_names(directory.file.get());
            if (!names) names.emplace();
        }
        std::erase(*names, staging_name);
    }
    std::vector<DirEntry> entries;
    for (const std::string& name : *names) {
        if (!is_utf8(name)) {
            system_base_.skipped_names_++;
            continue;
        }
        Handle node = TRY(add_entry(directory, name));
        if (!node) continue;
        DirEntry entry{};
        entry.node = node;
        const u32 position = u32(entries.size());
        write((u64{node} << handle_shift) + offsetof(Node, position), &position, sizeof position);
        entry.hash = hash_of(name);
        entry.serial = position + 1;
        entry.name_length = u32(name.size());
        entry.name = TRY(place(name.size(), 1));
        write(entry.name, name.data(), name.size());
        entries.push_back(entry);
    }
    std::reverse(directory.inner.begin(), directory.inner.end());
    return write_entries(directory.node, entries);
}

Result<void> SystemBaseBuilder::write_entries(Handle handle, std::vector<DirEntry>& entries) {
    Node node;
    std::memcpy(&node, system_base_.bytes_.data() + (u64{handle} << handle_shift), sizeof node);
    node.content = TRY(place_all(entries));
    node.content_count = node.content_capacity = node.live_entries = u32(entries.size());
    node.next_serial = u32(entries.size()) + 1;
    if (entries.size() >= min_indexed) {
        std::vector<u32> index(std::bit_ceil(entries.size() * 2));
        node.index_mask = u32(index.size() - 1);
        for (u32 i = 0; i < entries.size(); i++) {
            u32 at = entries[i].hash & node.index_mask;
            while (index[at]) at = (at + 1) & node.index_mask;
            index[at] = i + 1;
        }
        node.index = TRY(place_all(index));
    }
    write(handle, node);
    return {};
}

// Adds an entry of a directory. Returns its node, or 0 if programs do not see it.
Result<Handle> SystemBaseBuilder::add_entry(Directory& directory, const std::string& name) {
    if (options_.is_cancelled && options_.is_cancelled())
        return Error{"stopped while folders were read"};
    struct stat info;
    if (fstatat(directory.file.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
        if (errno != ENOENT) system_base_.unreadable_++;
        return Handle{0};
    }
    if (S_ISREG(info.st_mode)) return add_file(directory, name, info);
    if (S_ISLNK(info.st_mode)) return add_symlink(directory, name, info);
    if (!S_ISDIR(info.st_mode)) return Handle{0};
    Node node = make_node(NodeKind::directory, directory.node, info);
    Handle handle = TRY(allocate(sizeof node));
    write(handle, node);
    remember(handle, info);
    directory.inner.emplace_back(name, handle);
    return handle;
}

// Reads a file into content_, up to its present end.
bool SystemBaseBuilder::read_file(int directory, const std::string& name, u64 size) {
    File file(
        openat(directory, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    if (!file) return false;
    content_.resize(size);
    std::optional<u64> got = read_at(file.get(), 0, content_);
    if (!got) return false;
    content_.resize(*got);
    return true;
}

Result<Handle> SystemBaseBuilder::add_file(Directory& directory, const std::string& name,
                                           const struct stat& info) {
    u64 size = u64(info.st_size);
    if (size > max_file) {
        system_base_.unreadable_++;
        return Handle{0};
    }
    Node node = make_node(NodeKind::file, directory.node, info);
    bool is_warm = size <= options_.warm_file && size <= max_warm_ - warm_;
    if (is_warm && !read_file(directory.file.get(), name, size)) {
        // The file is listed all the same: reading it fails when a program tries.
        system_base_.unreadable_++;
        is_warm = false;
    }
    if (is_warm) {
        u64 before = system_base_.bytes_.size();
        node.size = content_.size();
        TRY(place_blocks(content_, node));
        warm_ = std::min(max_warm_, warm_ + system_base_.bytes_.size() - before);
    } else {
        node.flags = node_is_cold;
        node.size = size;
        node.host_id = u32(system_base_.cold_->entries.size());
        system_base_.cold_->entries.push_back({preopen_, directory.path + name, size, File()});
        TRY(place_table(std::vector<Handle>((size + file_block - 1) / file_block), node));
    }
    Handle handle = TRY(allocate(sizeof node));
    write(handle, node);
    remember(handle, info);
    return handle;
}

Result<Handle> SystemBaseBuilder::add_symlink(Directory& directory, const std::string& name,
                                              const struct stat& info) {
    std::vector<char> text(max_path);
    ssize_t length = readlinkat(directory.file.get(), name.c_str(), text.data(), text.size());
    if (length < 0 || usize(length) == text.size()) {
        system_base_.unreadable_++;
        return Handle{0};
    }
    text.resize(usize(length));
    if (!is_utf8({text.data(), text.size()})) {
        system_base_.skipped_names_++;
        return Handle{0};
    }
    Node node = make_node(NodeKind::symlink, directory.node, info);
    node.size = text.size();
    node.content_count = node.content_capacity = u32(text.size());
    node.content = TRY(place_all(text));
    Handle handle = TRY(allocate(sizeof node));
    write(handle, node);
    remember(handle, info);
    return handle;
}

SystemBase::SystemBase()
    : cold_(std::make_unique<ColdFiles>()), written_(std::make_unique<WrittenThrough>()) {}
SystemBase::SystemBase(SystemBase&&) noexcept = default;
SystemBase& SystemBase::operator=(SystemBase&&) noexcept = default;
SystemBase::~SystemBase() = default;

Result<SystemBase> SystemBase::make(const SystemOptions& options) {
    return SystemBaseBuilder(options).build();
}

SystemHeader SystemBase::fresh_header() const {
    SystemHeader header;
    std::memcpy(&header, bytes_.data(), sizeof header);
    stamp(header);
    return header;
}

void SystemBase::stamp(SystemHeader& header) {
    header.realtime = now(CLOCK_REALTIME);
    header.monotonic = now(CLOCK_MONOTONIC);
}

const HostFile* SystemBase::host_file(Handle node) const {
    auto found = std::ranges::lower_bound(host_files_, node, {}, &HostFile::node);
    return found != host_files_.end() && found->node == node ? &*found : nullptr;
}

u32 SystemBase::cold_count() const { return u32(cold_->entries.size()); }

Result<std::vector<u8>> SystemBase::read_blocks(u32 host_id, u64 block, u64 count) const {
    std::vector<u8> bytes(count * file_block);
    TRY(read_cold(host_id, block > max_file / file_block ? max_file : block * file_block, bytes));
    return bytes;
}

Result<void> SystemBase::read_cold(u32 host_id, u64 offset, std::span<u8> to) const {
    if (host_id >= cold_->entries.size())
        return Error{format("no file of the host has the number %u", host_id)};
    const ColdFiles::Entry& entry = cold_->entries[host_id];
    std::lock_guard lock(cold_->mutex);
    auto fail = [&] {
        return Error{format("cannot read '%s' below '%s': %s", entry.path.c_str(),
                            mounts_[entry.preopen].host_path.c_str(), reason(errno).c_str())};
    };
    if (!entry.kept_open && (!cold_->open_file || cold_->open_id != host_id)) {
        cold_->open_file = open_regular(directories_[entry.preopen].get(), entry.path);
        cold_->open_id = host_id;
        if (!cold_->open_file) return fail();
    }
    const File& file = entry.kept_open ? entry.kept_open : cold_->open_file;
    u64 wanted = offset < entry.size ? std::min<u64>(to.size(), entry.size - offset) : 0;
    std::optional<u64> got = read_at(file.get(), offset, to.first(wanted));
    if (!got) return fail();
    std::fill(to.begin() + s64(*got), to.end(), u8{0});
    return {};
}

void SystemBase::keep_cold_open(u32 preopen, const std::string& path) const {
    std::lock_guard lock(cold_->mutex);
    for (ColdFiles::Entry& entry : cold_->entries)
        if (entry.preopen == preopen && entry.path == path && !entry.kept_open)
            entry.kept_open = open_regular(directories_[preopen].get(), path);
}

}  // namespace gpurun::host
