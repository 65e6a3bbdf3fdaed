// For tests of the host's side: folders with files in them, a reader of system memory that trusts
// what it reads, and what a process would do to its files.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "abi/system.h"
#include "host/harvest.h"
#include "host/system_base.h"

namespace gpurun::test {

namespace fs = std::filesystem;
using host::SystemBase;
using host::SystemOptions;

// What is below a directory: path, then "directory", "-> target" or the contents after a '='.
using Tree = std::map<std::string, std::string>;

inline std::string read_file(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

inline std::string pattern(usize size, u32 seed = 1) {
    std::string text(size, '\0');
    for (char& c : text) c = char((seed = seed * 1664525 + 1013904223) >> 24);
    return text;
}

// A folder of its own that goes with the test.
class Folder {
public:
    explicit Folder(const fs::path& in = fs::temp_directory_path()) {
        std::string name = (in / "gpu-run-host-XXXXXX").string();
        path_ = mkdtemp(name.data());
    }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    ~Folder() {
        std::error_code ignored;
        fs::remove_all(path_, ignored);
    }

    const fs::path& path() const { return path_; }
    fs::path operator/(const std::string& name) const { return path_ / name; }

    void make_directory(const std::string& name) const { fs::create_directories(path_ / name); }
    void write(const std::string& name, std::string_view content) const {
        fs::create_directories((path_ / name).parent_path());
        std::ofstream(path_ / name, std::ios::binary) << content;
    }
    void link(const std::string& name, const std::string& target) const {
        fs::create_directories((path_ / name).parent_path());
        fs::create_symlink(target, path_ / name);
    }

    Tree tree() const {
        Tree tree;
        std::error_code error;
        for (auto& entry : fs::recursive_directory_iterator(path_, error)) {
            std::string& text = tree[entry.path().lexically_relative(path_).string()];
            if (entry.is_symlink())
                text = "-> " + fs::read_symlink(entry.path()).string();
            else if (entry.is_directory())
                text = "directory";
            else
                text = "=" + read_file(entry.path());
        }
        return tree;
    }

private:
    fs::path path_;
};

// While it lives, permissions hold for root too.
class Unprivileged {
public:
    explicit Unprivileged(const Folder& folder) {
        chmod(folder.path().c_str(), 0755);
        EXPECT_EQ(is_root_ ? seteuid(65534) : 0, 0);
    }
    ~Unprivileged() { EXPECT_EQ(is_root_ ? seteuid(0) : 0, 0); }

private:
    bool is_root_ = geteuid() == 0;
};

inline SystemOptions options_for(const Folder& folder, bool is_writable = true) {
    SystemOptions options;
    options.mounts = {{folder.path().string(), "/", is_writable}};
    options.arena_size = 64 << 20;
    return options;
}

inline SystemBase make_system_base(const SystemOptions& options) {
    Result<SystemBase> system_base = SystemBase::make(options);
    if (!system_base) ADD_FAILURE() << system_base.error().message;
    return *std::move(system_base);
}

inline std::vector<u8> bytes_of(std::string_view text) { return {text.begin(), text.end()}; }
inline std::shared_ptr<const std::vector<u8>> shared_bytes(std::string_view text) {
    return std::make_shared<const std::vector<u8>>(bytes_of(text));
}

// A copy of system memory.
struct Memory {
    std::vector<u8> bytes;

    template <class T>
    T& at(u64 offset) {
        EXPECT_LE(offset + sizeof(T), bytes.size());
        return *reinterpret_cast<T*>(bytes.data() + offset);
    }
    template <class T>
    T& get(Handle handle, u32 i = 0) {
        return at<T>((u64{handle} << handle_shift) + i * sizeof(T));
    }
    SystemHeader& header() { return at<SystemHeader>(0); }
    Node& node(Handle handle) { return get<Node>(handle); }
    DirEntry& entry(Handle directory, u32 i) { return get<DirEntry>(node(directory).content, i); }
    std::string text(u64 offset, u64 size) {
        EXPECT_LE(offset + size, bytes.size());
        return {bytes.begin() + s64(offset), bytes.begin() + s64(offset + size)};
    }
    std::string name(const DirEntry& entry) { return text(entry.name, entry.name_length); }
    Handle root(u32 preopen = 0) { return get<Preopen>(header().preopens, preopen).node; }

    // The position of a name, by the index where there is one; -1: none.
    int find(Handle directory, std::string_view wanted) {
        Node& dir = node(directory);
        if (!dir.index) {
            for (u32 i = 0; i < dir.content_count; i++)
                if (entry(directory, i).node && name(entry(directory, i)) == wanted) return int(i);
            return -1;
        }
        u32 hash = name_hash_start;
        for (char c : wanted) hash = name_hash(hash, u8(c));
        for (u32 i = hash & dir.index_mask;; i = (i + 1) & dir.index_mask) {
            u32 found = get<u32>(dir.index, i);
            if (!found) return -1;
            DirEntry& at = entry(directory, found - 1);
            if (at.hash == hash && name(at) == wanted) return int(found - 1);
        }
    }
    Handle lookup(const fs::path& path, u32 preopen = 0) {
        Handle at = root(preopen);
        for (const fs::path& part : path) {
            int position = find(at, part.string());
            if (position < 0) return 0;
            at = entry(at, u32(position)).node;
        }
        return at;
    }
    std::string content(Handle file, const SystemBase* system_base = nullptr) {
        Node& at = node(file);
        std::string all;
        for (u32 i = 0; i < at.content_count; i++) {
            Handle block = get<Handle>(at.content, i);
            if (!block && at.flags & node_is_cold) {
                Result<std::vector<u8>> read = system_base->read_block(at.host_id, i);
                EXPECT_TRUE(read) << read.error().message;
                all.append(read->begin(), read->end());
            } else {
                u64 size = std::min(file_block, at.size - i * file_block);
                all += block ? text(u64{block} << handle_shift, size) : std::string(size, '\0');
                all.resize((i + 1) * file_block);
            }
        }
        EXPECT_EQ(all.size(), (at.size + file_block - 1) / file_block * file_block);
        all.resize(at.size);
        return all;
    }
    Tree tree(Handle directory, const SystemBase* system_base, const std::string& prefix = "") {
        Tree all;
        for (u32 i = 0; i < node(directory).content_count; i++) {
            DirEntry at = entry(directory, i);
            if (!at.node) continue;
            std::string path = prefix + name(at);
            Node& found = node(at.node);
            if (found.kind == NodeKind::file) all[path] = "=" + content(at.node, system_base);
            if (found.kind == NodeKind::symlink)
                all[path] = "-> " + text(u64{found.content} << handle_shift, found.size);
            if (found.kind == NodeKind::directory) {
                all[path] = "directory";
                all.merge(tree(at.node, system_base, path + "/"));
            }
        }
        return all;
    }
};

// A process that changes its files, as the runtime would have it.
struct Guest : Memory {
    Handle process;

    explicit Guest(const SystemBase& system_base) {
        bytes.assign(system_base.bytes().begin(), system_base.bytes().end());
        bytes.resize(system_base.base_end());
        process = allocate(sizeof(ProcessBlock));
        Handle roots = allocate(max_preopens * sizeof(Handle));
        get<ProcessBlock>(process).roots = roots;
        for (u32 i = 0; i < header().preopen_count; i++) get<Handle>(roots, i) = root(i);
    }
    Handle allocate(u64 size) {
        u64 offset = (bytes.size() + least_block - 1) & ~(least_block - 1);
        bytes.resize(offset + std::max(size, least_block));
        return Handle(offset >> handle_shift);
    }
    bool is_base(Handle handle) { return u64{handle} << handle_shift < header().base_end; }
    Handle& own_root(u32 preopen) { return get<Handle>(get<ProcessBlock>(process).roots, preopen); }

    Handle copy(Handle from) {
        Handle made = allocate(sizeof(Node));
        Node source = node(from);
        source.origin = from;
        source.index = source.index_mask = 0;
        u64 size = source.content_count * (source.kind == NodeKind::file        ? sizeof(Handle)
                                           : source.kind == NodeKind::directory ? sizeof(DirEntry)
                                                                                : 1);
        Handle content = allocate(size);
        std::memcpy(&get<u8>(content), bytes.data() + (u64{source.content} << handle_shift), size);
        source.content = content;
        node(made) = source;
        return made;
    }
    // The process's own version of what a path leads to.
    Handle own(const fs::path& path, u32 preopen = 0) {
        if (is_base(own_root(preopen))) own_root(preopen) = copy(own_root(preopen));
        Handle at = own_root(preopen);
        for (const fs::path& part : path) {
            int position = find(at, part.string());
            EXPECT_GE(position, 0) << path;
            Handle next = entry(at, u32(position)).node;
            if (is_base(next)) {
                next = copy(next);
                entry(at, u32(position)).node = next;
            }
            at = next;
        }
        return at;
    }
    void add(const fs::path& path, Handle added, u32 preopen = 0) {
        Handle directory = own(path.parent_path(), preopen);
        std::string name = path.filename().string();
        Handle text = allocate(name.size());
        std::memcpy(&get<u8>(text), name.data(), name.size());
        u32 count = node(directory).content_count;
        Handle grown = allocate((count + 1) * sizeof(DirEntry));
        for (u32 i = 0; i < count; i++) get<DirEntry>(grown, i) = entry(directory, i);
        get<DirEntry>(grown, count) = {added, 0, node(directory).next_serial++, u32(name.size()),
                                       u64{text} << handle_shift};
        node(directory).content = grown;
        node(directory).content_count = node(directory).content_capacity = count + 1;
    }
    Handle remove(const fs::path& path, u32 preopen = 0) {
        Handle directory = own(path.parent_path(), preopen);
        int position = find(directory, path.filename().string());
        EXPECT_GE(position, 0) << path;
        return std::exchange(entry(directory, u32(position)).node, 0);
    }
    void rename(const fs::path& from, const fs::path& to) { add(to, remove(from)); }

    Handle make(NodeKind kind) {
        Handle made = allocate(sizeof(Node));
        node(made).kind = kind;
        node(made).link_count = 1;
        node(made).flags = node_is_changed;
        node(made).modified = 1'700'000'000'123'456'789;
        return made;
    }
    void set_content(Handle file, std::string_view content) {
        u32 blocks = u32((content.size() + file_block - 1) / file_block);
        Handle table = allocate(blocks * sizeof(Handle));
        for (u32 i = 0; i < blocks; i++) {
            std::string_view part = content.substr(i * file_block, file_block);
            Handle block = allocate(file_block);
            std::memcpy(&get<u8>(block), part.data(), part.size());
            get<Handle>(table, i) = block;
        }
        node(file).content = table;
        node(file).content_count = node(file).content_capacity = blocks;
        node(file).size = content.size();
        node(file).flags = node_is_changed;
    }
    Handle file(std::string_view content, NodeKind kind = NodeKind::file) {
        Handle made = make(kind);
        set_content(made, content);
        return made;
    }
    Handle symlink(std::string_view text) {
        Handle made = make(NodeKind::symlink), content = allocate(text.size());
        std::memcpy(&get<u8>(content), text.data(), text.size());
        node(made).content = content;
        node(made).content_count = u32(text.size());
        node(made).size = text.size();
        return made;
    }
    void change(const fs::path& path, std::string_view content) { set_content(own(path), content); }
};

}  // namespace gpurun::test
