// Sequences of system calls made from bytes. run_sequence() makes them of a process and of the
// model (wasi_model.h) and compares errno, contents, positions and listings; now and then memory
// runs short. run_wild_sequence() passes whatever numbers come. After both, every block of the heap
// has one owner, and none is left when the process has ended. A difference prints the calls that
// led there and aborts.
#pragma once

#include <stdlib.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <span>

#include "../tests/wasi/caller.h"
#include "base/format.h"
#include "wasi_model.h"

namespace gpurun::fuzz {

using rt::SystemCall;
using test::Caller;
using test::System;

// ---- what all processes begin with -------------------------------------------------------

struct Row {
    std::string path;  // with a slash at the end: a directory
    std::string content;
    bool is_link = false;
};

inline std::string noise(usize size, u32 seed) {
    std::string text(size, '\0');
    for (char& c : text) c = char((seed = seed * 1664525 + 1013904223) >> 24);
    return text;
}

inline std::vector<Row> rows(u32 preopen) {
    if (preopen == 1) return {{"r.txt", "read me"}, {"sub/", ""}, {"sub/z", noise(6000, 3)}};
    return {{"a.txt", "hello, world"},
            {"empty", ""},
            {"d/", ""},
            {"d/x", noise(5000, 1)},
            {"d/e/", ""},
            {"d/e/y", "deep"},
            {"d/back", "../a.txt", true},
            {"d/dl", "e", true},
            {"none/", ""},
            {"cold", noise((1 << 20) + 5000, 2)},
            {"link", "a.txt", true},
            {"dlink", "d", true},
            {"up", "..", true},
            {"out", "d/../../x", true},
            {"loop1", "loop2", true},
            {"loop2", "loop1", true},
            {"dangling", "n1", true}};
}

class World {
public:
    static World& get() {
        static World world;
        return world;
    }
    System system;
    std::vector<std::string> order[2];  // names of the roots' directories, as the base has them

    // A model of what is on disk.
    FilePtr tree(u32 preopen) const {
        std::map<std::string, FilePtr> made{{"", std::make_shared<File>(NodeKind::directory)}};
        for (const Row& row : rows(preopen)) {
            bool is_directory = row.path.ends_with('/');
            std::string path = row.path.substr(0, row.path.size() - is_directory);
            NodeKind kind = is_directory  ? NodeKind::directory
                            : row.is_link ? NodeKind::symlink
                                          : NodeKind::file;
            made[path] = std::make_shared<File>(kind, row.content);
        }
        for (auto& [path, file] : made) sort_into(made, path, file, preopen);
        return made[""];
    }

private:
    World() : system(options(folder())) {}

    static std::string folder() {
        static std::string path;
        if (!path.empty()) return path;
        path = (std::filesystem::temp_directory_path() / "gpu-run-wasi-XXXXXX").string();
        CHECK(mkdtemp(path.data()) != nullptr);
        for (u32 preopen : {0u, 1u}) {
            std::filesystem::path root = path + (preopen == 0 ? "/main" : "/second");
            std::filesystem::create_directories(root);
            for (const Row& row : rows(preopen)) {
                if (row.path.ends_with('/'))
                    std::filesystem::create_directory(root / row.path);
                else if (row.is_link)
                    std::filesystem::create_symlink(row.content, root / row.path);
                else
                    std::ofstream(root / row.path, std::ios::binary) << row.content;
            }
        }
        std::atexit([] {
            std::error_code ignored;
            std::filesystem::remove_all(path, ignored);
        });
        return path;
    }
    static host::SystemOptions options(const std::string& path) {
        host::SystemOptions options;
        options.output_limit = output_stays;
        options.mounts = {{path + "/main", "/", true}, {path + "/second", "ro", false}};
        options.arguments = {"fuzz", "{}", "x"};
        options.environment = {"A=1"};
        options.has_numbered_arguments = true;
        std::string input = noise(5000, 4);
        options.input = std::make_shared<std::vector<u8>>(input.begin(), input.end());
        options.process_count = 3;
        options.seed = 1;
        options.debug_capacity = 8;
        return options;
    }

    // The base's entries come in the order of their names.
    static void sort_into(std::map<std::string, FilePtr>& made, const std::string& path,
                          const FilePtr& file, u32) {
        if (path.empty()) return;
        usize slash = path.rfind('/');
        std::string parent = slash == std::string::npos ? "" : path.substr(0, slash);
        made[parent]->add(slash == std::string::npos ? path : path.substr(slash + 1), file);
    }
};

// ---- the heap ----------------------------------------------------------------------------

// Who has which block of the heap.
class Owners {
public:
    explicit Owners(const Caller& caller) : caller_(caller) {}

    void take(Handle handle, u64 size, const char* what) {
        if (handle == 0 || rt::is_base(caller_.process(), handle)) return;
        u64 at = u64(handle) << handle_shift, bytes = rt::block_size(size);
        bool is_new = blocks_.insert({at, at + bytes}).second;
        if (!is_new) fail("two have one block", what);
        sum_ += bytes;
    }
    void fail(const char* what, const char* of) const {
        std::fprintf(stderr, "heap: %s (%s)\n", what, of);
        abort();
    }
    void finish() const {
        u64 end = 0;
        for (auto [from, to] : blocks_) {
            if (from < end) fail("blocks overlap", "");
            end = to;
        }
        const SystemHeader& header = caller_.system().header();
        if (end > header.bump) fail("a block past the heap's end", "");
        for (const auto& shard : header.free_lists)
            for (u32 i = 0; i < heap_classes; i++) check_list(shard[i], least_block << i);
        if (sum_ != header.in_use) {
            std::fprintf(stderr, "heap: %llu bytes in use, %llu have an owner\n",
                         (unsigned long long)header.in_use, (unsigned long long)sum_);
            abort();
        }
    }

private:
    void check_list(u64 head, u64 size) const {
        u32 count = 0;
        for (Handle free = u32(head); free != 0; free = *caller_.at<u32>(free)) {
            u64 at = u64(free) << handle_shift;
            if (blocks_.count({at, at + size})) fail("a free block is in use", "");
            if (++count > 1'000'000) fail("a list without an end", "");
        }
    }

    const Caller& caller_;
    std::set<std::pair<u64, u64>> blocks_;
    u64 sum_ = 0;
};

// Counts what a process has, and checks the tree: links, descriptors, parents.
class TreeCheck {
public:
    explicit TreeCheck(const Caller& caller) : caller_(caller), owners_(caller) {}

    void run() {
        const ProcessBlock& me = caller_.me();
        owners_.take(caller_.block(), sizeof(ProcessBlock), "process");
        owners_.take(me.descriptors, me.descriptor_capacity * sizeof(Descriptor), "descriptors");
        owners_.take(me.roots, max_preopens * sizeof(Handle), "roots");
        struct GuestBlock {
            Handle block;
            u32 size;
        };
        const GuestBlock* guest = caller_.at<GuestBlock>(me.guest_blocks);
        if (me.guest_blocks != 0)
            owners_.take(me.guest_blocks, me.guest_block_count * sizeof(GuestBlock), "guest table");
        for (u32 i = 0; i < me.guest_block_count; i++)
            owners_.take(guest[i].block, guest[i].size, "guest block");
        for (Handle stream : {me.input, me.output, me.error}) links_[stream]++;
        for (u32 i = 0; i < caller_.system().header().preopen_count; i++) {
            Handle root = caller_.at<Handle>(me.roots)[i];
            links_[root]++;
            walk(root);
        }
        const Descriptor* files = caller_.at<Descriptor>(me.descriptors);
        for (u32 i = 0; i < me.descriptor_count; i++) {
            if (files[i].kind == DescriptorKind::closed) continue;
            opens_[files[i].node]++;
            links_[files[i].node];
        }
        for (auto [handle, links] : links_) {
            if (rt::is_base(caller_.process(), handle)) continue;
            const Node* node = caller_.at<Node>(handle);
            if (node->link_count != links) owners_.fail("links", "node");
            if (node->open_count != opens_[handle]) owners_.fail("open descriptors", "node");
            if (links == 0 && opens_[handle] == 0) owners_.fail("nobody's", "node");
            take(handle);
        }
        if (me.copies != 0) owners_.take(me.copies, me.copy_capacity * sizeof(Handle), "copies");
        u32 copies = 0;
        for (u32 i = 0; i < me.copy_capacity; i++) {
            Handle copy = caller_.at<Handle>(me.copies)[i];
            if (copy == 0) continue;
            copies++;
            if (!links_.count(copy)) owners_.fail("a copy that nobody has", "node");
            Handle origin = caller_.at<Node>(copy)->origin;
            if (rt::current_node(rt::owner_of(caller_.process(), &caller_.me()), origin) != copy)
                owners_.fail("a copy that is not found", "node");
        }
        if (copies != me.copy_count) owners_.fail("their count", "copies");
        owners_.finish();
    }

private:
    void take(Handle handle) {
        const Node* node = caller_.at<Node>(handle);
        owners_.take(handle, sizeof(Node), "node");
        u64 element = 1;
        if (node->kind == NodeKind::directory) {
            element = sizeof(DirEntry);
            u32 live = 0, serial = 0;
            for (u32 i = 0; i < node->content_count; i++) {
                const DirEntry& entry = caller_.at<DirEntry>(node->content)[i];
                if (entry.serial <= serial) owners_.fail("serial numbers", "directory");
                serial = entry.serial;
                if (entry.node == 0) continue;
                live++;
                owners_.take(Handle(entry.name >> handle_shift), entry.name_length, "name");
            }
            if (node->index != 0)
                owners_.take(node->index, (node->index_mask + 1) * sizeof(u32), "index");
            if (live != node->live_entries) owners_.fail("live entries", "directory");
            if (serial >= node->next_serial) owners_.fail("next serial number", "directory");
        } else if (node->kind != NodeKind::symlink) {
            element = sizeof(Handle);
            const Handle* content = caller_.at<Handle>(node->content);
            if (node->flags & node_is_deep) {
                for (u32 i = 0; i < node->content_count; i++) take_table(content[i]);
            } else {
                take_blocks(content, node->content_count);
            }
        }
        if (node->content != 0)
            owners_.take(node->content, node->content_capacity * element, "content");
    }
    void take_table(Handle table) {
        if (table == 0 || rt::is_base(caller_.process(), table)) return;
        owners_.take(table, file_block, "table");
        take_blocks(caller_.at<Handle>(table), table_blocks);
    }
    void take_blocks(const Handle* table, u32 count) {
        for (u32 i = 0; i < count; i++)
            if (table[i] > zero_block) owners_.take(table[i], file_block, "block");
    }
    void walk(Handle directory) {
        const Node* node = caller_.at<Node>(directory);
        for (u32 i = 0; i < node->content_count; i++) {
            Handle child = caller_.at<DirEntry>(node->content)[i].node;
            if (child == 0) continue;
            links_[child]++;
            const Node* below = caller_.at<Node>(child);
            if (below->kind != NodeKind::directory) continue;
            if (rt::current_node(rt::owner_of(caller_.process(), &caller_.me()), below->parent) !=
                directory)
                owners_.fail("parent", "directory");
            walk(child);
        }
    }
    const Caller& caller_;
    Owners owners_;
    std::map<Handle, u32> links_, opens_;
};

// The heap has `bytes` left for a while.
class Famine {
public:
    Famine(SystemHeader& header, u64 bytes) : header_(header), size_(header.size) {
        for (u32 i = 0; i < count; i++) {
            lists_[i] = list(i);
            list(i) = lists_[i] >> 32 << 32;
        }
        header.size = std::min(size_, header.bump + bytes);
    }
    Famine(const Famine&) = delete;
    Famine& operator=(const Famine&) = delete;
    ~Famine() {
        header_.size = size_;
        for (u32 i = 0; i < count; i++) {
            if (u32(list(i)) == 0) {
                list(i) |= u32(lists_[i]);
                continue;
            }
            u32* last = at(u32(list(i)));
            while (*last != 0) last = at(*last);
            *last = u32(lists_[i]);
        }
    }

private:
    static constexpr u32 count = heap_shards * heap_classes;
    u64& list(u32 i) const { return header_.free_lists[i / heap_classes][i % heap_classes]; }
    u32* at(Handle handle) const {
        return reinterpret_cast<u32*>(reinterpret_cast<u8*>(&header_) +
                                      (u64(handle) << handle_shift));
    }
    SystemHeader& header_;
    u64 size_;
    u64 lists_[count];
};

// ---- sequences -----------------------------------------------------------------------------

class Input {
public:
    explicit Input(std::span<const u8> bytes) : bytes_(bytes) {}
    bool is_empty() const { return at_ >= bytes_.size(); }
    u8 byte() { return is_empty() ? 0 : bytes_[at_++]; }
    bool one_in(u32 n) { return byte() % n == 1; }
    u64 number(u32 count) {
        u64 value = 0;
        for (u32 i = 0; i < count; i++) value = value << 8 | byte();
        return value;
    }
    template <class T, usize n>
    const T& pick(const T (&list)[n]) {
        return list[byte() % n];
    }

private:
    std::span<const u8> bytes_;
    usize at_ = 0;
};

class Sequence {
public:
    explicit Sequence(std::span<const u8> bytes)
        : in_(bytes), world_(World::get()), caller_(fresh(world_.system), 7) {
        Model& m = model_;
        for (u32 i : {0u, 1u}) m.roots.push_back(world_.tree(i));
        FilePtr streams[] = {std::make_shared<File>(NodeKind::stream, noise(5000, 4)),
                             std::make_shared<File>(NodeKind::stream),
                             std::make_shared<File>(NodeKind::stream)};
        for (u32 i = 0; i < 3; i++)
            m.files.push_back({streams[i], 0,
                               stream_rights & ~(i == 0 ? right_fd_write : right_fd_read), 0,
                               i == 0 ? 0 : fdflag_append, 0});
        m.files.push_back({m.roots[0], 0, directory_rights, all_rights, 0, 1});
        m.files.push_back({m.roots[1], 0, directory_rights & ~writing_rights,
                           all_rights & ~writing_rights, 0, 2});
    }

    void run() {
        for (u32 i = 0; !in_.is_empty() && i < 400; i++) {
            step();
            if (i % 16 == 15) TreeCheck(caller_).run();
        }
        is_famine_ = false;
        TreeCheck(caller_).run();
        for (u32 i : {0u, 1u})
            compare(caller_.at<Handle>(caller_.me().roots)[i], *model_.roots[i], "");
        for (u32 fd = 0; fd < model_.files.size(); fd++)
            if (model_.files[fd].file && !model_.files[fd].is_stream() &&
                !model_.files[fd].is_directory())
                compare_content(caller_.at<Descriptor>(caller_.me().descriptors)[fd].node,
                                *model_.files[fd].file, "open file");
        caller_.end();
        require(world_.system.header().in_use == 0, "memory that nobody gave back");
        compare_base();
    }

private:
    static System& fresh(System& system) {
        system.restart_quickly();
        return system;
    }

    // ---- what is chosen ------------------------------------------------------------------

    enum class Wanted { any, directory, file };
    // Mostly a descriptor of the kind that the call is for.
    u32 pick_fd(Wanted wanted) {
        static constexpr u32 wild[] = {~0u, 1024, 0x80000000, 99, 1023, 16};
        u8 choice = in_.byte();
        if (choice >= 250) return in_.pick(wild);
        std::vector<u32> fitting;
        for (u32 fd = 0; fd < model_.files.size(); fd++)
            if (const OpenFile* file = model_.get(fd);
                file &&
                (wanted == Wanted::any || wanted == (file->is_directory() ? Wanted::directory
                                                     : file->is_stream()  ? Wanted::any
                                                                          : Wanted::file)))
                fitting.push_back(fd);
        if (choice >= 225 || fitting.empty()) return choice % u32(model_.files.size() + 1);
        if (wanted == Wanted::directory && choice < 110) {
            // Now and then one that was removed while it was open.
            for (u32 fd : fitting)
                if (model_.files[fd].file->is_removed && choice < 30) return fd;
            return first_preopen;
        }
        return fitting[choice % fitting.size()];
    }
    // Seldom one without which little can be done.
    u32 spare_fd() {
        u32 fd = pick_fd(Wanted::any);
        u32 others = model_.files.size() > 5 ? u32(model_.files.size() - 5) : 1;
        return fd < 5 && !in_.one_in(64) ? 5 + in_.byte() % others : fd;
    }
    PathArgument pick_path() {
        static const std::string names[] = {
            "a.txt", "empty", "d",        "x",  "e",  "y",  "back", "dl", "cold", "link", "dlink",
            "up",    "loop1", "dangling", "n1", "n2", "n3", "n4",   "n5", "none", "out",  "r.txt",
            "sub",   ".",     "..",       "",   "d",  "n1", "n2",   "n3", "none", "d"};
        static const std::string wild[] = {std::string(255, 'l'),
                                           std::string(256, 'l'),
                                           std::string("nul\0x", 5),
                                           "bad\xff",
                                           "\xc3\xa9t\xc3\xa9",
                                           "\xed\xa0\x80",
                                           "\xf4\x90\x80\x80",
                                           "\xe2\x82",
                                           std::string(4095, '/'),
                                           std::string(4096, 'a'),
                                           "a.txt/",
                                           "link/"};
        PathArgument path;
        path.fd = pick_fd(Wanted::directory);
        path.is_bad = in_.one_in(128);
        u8 shape = in_.byte();
        // Half of them lead to something, or to a new name beside it.
        const OpenFile* start = model_.get(path.fd);
        if (shape < 160 && start && start->is_directory()) {
            File* at = start->file.get();
            do {
                if (at->entries.empty()) break;
                const File::Entry& entry = at->entries[in_.byte() % at->entries.size()];
                if (!path.path.empty()) path.path += '/';
                path.path += entry.name;
                at = entry.file.get();
            } while (at->kind == NodeKind::directory && in_.byte() % 3 != 0);
            if (shape < 50 && at->kind == NodeKind::directory) {
                if (!path.path.empty()) path.path += '/';
                path.path += format("n%u", in_.byte() % 8);
            }
            if (!path.path.empty()) return path;
        }
        if (shape % 64 == 63) path.path = "/";
        for (u32 i = 0, count = 1 + (shape & 3) * ((shape & 12) != 0); i < count; i++) {
            if (i > 0) path.path += '/';
            path.path += in_.one_in(24) ? in_.pick(wild) : in_.pick(names);
        }
        if ((shape & 0x30) == 0x30) path.path += '/';
        return path;
    }
    u64 pick_rights() {
        u8 choice = in_.byte();
        if (choice < 160) return all_rights;
        if (choice < 200) return all_rights & ~writing_rights;
        if (choice < 230) return all_rights & ~(u64{1} << choice % 28);
        return in_.number(8);
    }
    u64 pick_offset() {
        static constexpr u64 offsets[] = {
            0,       1,       4095,      4096,      4097,      5000,         8192,    12288,
            100'000, 1 << 20, 1'053'000, 1'053'576, 3'000'000, max_file + 1, ~u64{0}, u64{1} << 63};
        return in_.pick(offsets);
    }
    u32 pick_count() {
        static constexpr u32 counts[] = {0, 1, 2, 10, 255, 256, 257, 4096, 4097, 8192, 20'000};
        return in_.pick(counts);
    }
    // A place for a result, or one that is not there.
    u32 result_at(bool is_bad) {
        static constexpr u32 bad[] = {~0u, Caller::memory_size, Caller::memory_size - 1, ~0u - 3};
        return is_bad ? in_.pick(bad) : Caller::result + in_.byte() % 3;
    }
    test::Text text_of(const PathArgument& path, u32 number = 0) {
        if (path.is_bad)
            return number == 0 ? test::Text{Caller::memory_size - 1, 2} : test::Text{~0u, 1};
        return caller_.text(path.path, number);
    }

    // ---- calls ---------------------------------------------------------------------------

    Errno call(SystemCall which, std::initializer_list<u64> arguments) {
        std::string text(test::call_names[u32(which)]);
        for (u64 argument : arguments) text += format(" %lld", (long long)argument);
        Errno error;
        if (in_.one_in(40)) {
            is_famine_ = true;
            static constexpr u64 left[] = {0,    64,        128,  256,   1024,
                                           4096, 8192 + 64, 8192, 16384, 20000};
            Famine famine(world_.system.header(), in_.pick(left));
            error = caller_.call(which, arguments);
            text += " (famine)";
        } else {
            is_famine_ = false;
            error = caller_.call(which, arguments);
        }
        note("%s: %s", text.c_str(), to_string(error));
        require(caller_.state() == ThreadState::finished, "the call returns");
        return error;
    }
    // No memory: then nothing has changed.
    bool has_starved(Errno error) const {
        return is_famine_ && (error == Errno::nospc || error == Errno::nomem);
    }
    void same(Errno got, Errno expected) {
        if (got == expected) return;
        note("expected %s", to_string(expected));
        require(false, "the same errno");
    }

    void step() {
        switch (in_.byte() % 40) {
            case 0:
            case 1:
            case 2:
            case 3:
            case 4:
            case 5: return open();
            case 6:
            case 7: {
                u32 fd = spare_fd();
                return same(call(SystemCall::fd_close, {fd}), model_.close(fd));
            }
            case 8:
            case 9: return read(false);
            case 10: return read(true);
            case 11:
            case 12:
            case 13: return write(false);
            case 14: return write(true);
            case 15: return seek();
            case 16: {
                u32 fd = pick_fd(Wanted::file);
                u64 size = pick_offset();
                Errno got = call(SystemCall::fd_filestat_set_size, {fd, size});
                if (has_starved(got) || (is_famine_ && got == Errno::io)) return;
                return same(got, model_.set_size(fd, size));
            }
            case 17: {
                u32 fd = pick_fd(Wanted::file);
                u64 offset = pick_offset(), length = pick_offset();
                Errno got = call(SystemCall::fd_allocate, {fd, offset, length});
                if (!has_starved(got)) same(got, model_.allocate(fd, offset, length));
                return;
            }
            case 18:
            case 19: return one_path(SystemCall::path_create_directory, &Model::make_directory);
            case 20:
            case 21: return one_path(SystemCall::path_remove_directory, &Model::remove_directory);
            case 22: return one_path(SystemCall::path_unlink_file, &Model::unlink);
            case 23:
            case 24:
            case 25: return rename();
            case 26: return link();
            case 27: return symlink();
            case 28: return readlink();
            case 29:
            case 30: return stat();
            case 31: return set_times();
            case 32:
            case 33: return readdir();
            case 34: {
                u32 from = spare_fd(), to = spare_fd();
                return same(call(SystemCall::fd_renumber, {from, to}), model_.renumber(from, to));
            }
            case 35: return fdstat();
            case 36: return small_calls();
            case 37: return prestat();
            default: return guest_blocks();
        }
    }

    void open() {
        PathArgument path = pick_path();
        u8 choice = in_.byte();
        Model::OpenOptions options;
        if (choice % 16 == 9) path = {first_preopen, empty_directory(*model_.roots[0])};
        options.follows = choice & 1;
        options.oflags = choice >> 1 & 15;
        if (in_.one_in(3)) options.oflags = oflag_creat;
        if (choice % 16 == 9) options.oflags = oflag_directory;
        if (choice == 255) options.oflags = 16;
        options.rights = pick_rights();
        if (options.oflags & oflag_directory) options.rights &= ~u64{right_fd_write};
        options.inheriting = pick_rights();
        options.fdflags = in_.one_in(6) ? 1 : in_.one_in(50) ? 32 : 0;
        options.is_bad_result = in_.one_in(50);
        u32 at = result_at(options.is_bad_result);
        test::Text text = text_of(path);
        note("open \"%s\"", path.path.c_str());
        Errno got = call(SystemCall::path_open,
                         {path.fd, options.follows, text.at, text.length, options.oflags,
                          options.rights, options.inheriting, options.fdflags, at});
        if (has_starved(got)) return;
        u32 fd = 0;
        same(got, model_.open(path, options, fd));
        if (got == Errno::success) require(caller_.load<u32>(at) == fd, "the lowest descriptor");
    }

    // Up to three vectors of these sizes, at `buffer`; the total.
    u32 make_vectors(u32& count, bool& is_bad) {
        count = in_.byte() % 4;
        is_bad = false;
        u32 total = 0;
        for (u32 i = 0; i < count; i++) {
            u32 size = pick_count(), at = Caller::buffer + total;
            total += size;
            if (in_.one_in(80)) {
                is_bad = true;
                at = in_.one_in(2) ? ~0u : Caller::memory_size - size + 1;
                if (size == 0 && at == ~0u) at = Caller::memory_size + 1;
            }
            caller_.store<u32>(Caller::vectors + 1 + i * 8, at);
            caller_.store<u32>(Caller::vectors + 5 + i * 8, size);
        }
        return total;
    }

    void read(bool is_positioned) {
        u32 fd = pick_fd(Wanted::file), count;
        bool is_bad, is_bad_result = in_.one_in(60);
        u32 total = make_vectors(count, is_bad), at = result_at(is_bad_result);
        u64 offset = is_positioned ? pick_offset() : 0;
        if (in_.one_in(100)) count = 1025;
        Errno got = is_positioned
                        ? call(SystemCall::fd_pread, {fd, Caller::vectors + 1, count, offset, at})
                        : call(SystemCall::fd_read, {fd, Caller::vectors + 1, count, at});
        if (is_famine_ && got == Errno::io) return;  // of a cold file
        Errno expected = model_.check_transfer(fd, false, is_positioned, false);
        if (expected == Errno::success && count > 1024) expected = Errno::inval;
        if (expected == Errno::success && (is_bad_result || is_bad)) expected = Errno::fault;
        same(got, expected);
        if (got != Errno::success) return;
        OpenFile& file = *model_.get(fd);
        std::string data = file.file->read(is_positioned ? offset : file.offset, total);
        if (!is_positioned) file.offset += data.size();
        require(caller_.load<u32>(at) == data.size(), "as many bytes");
        require(caller_.bytes(Caller::buffer, data.size()) == data, "the same bytes");
    }

    void write(bool is_positioned) {
        u32 fd = pick_fd(Wanted::file), count;
        bool is_bad, is_bad_result = in_.one_in(60);
        u32 total = make_vectors(count, is_bad), at = result_at(is_bad_result);
        u64 offset = is_positioned ? pick_offset() : 0;
        std::string data = noise(total, seed_++);
        caller_.put(Caller::buffer, data);
        Errno got = is_positioned
                        ? call(SystemCall::fd_pwrite, {fd, Caller::vectors + 1, count, offset, at})
                        : call(SystemCall::fd_write, {fd, Caller::vectors + 1, count, at});
        if (has_starved(got) || (is_famine_ && got == Errno::io)) return;
        Errno expected = model_.check_transfer(fd, true, is_positioned, is_bad_result || is_bad);
        OpenFile* file = model_.get(fd);
        if (expected == Errno::success && !is_positioned) {
            offset = file->offset;
            if (file->flags & fdflag_append || file->is_stream()) offset = file->file->size;
        }
        if (expected == Errno::success && total > 0 && offset >= max_file) expected = Errno::fbig;
        // Far out there is no memory for the table of blocks.
        if (expected == Errno::success && total > 0 && offset > 64 << 20) expected = Errno::nospc;
        same(got, expected);
        if (got != Errno::success) return;
        u32 done = caller_.load<u32>(at);
        require(done == total || (is_famine_ && done < total), "as many bytes");
        file->file->write(offset, std::string_view(data).substr(0, done));
        if (!is_positioned) file->offset = offset + done;
    }

    void seek() {
        u32 fd = pick_fd(Wanted::file), whence = in_.byte() % 4;
        s64 distance = s64(pick_offset());
        if (in_.one_in(2)) distance = -(distance / 2);
        bool is_bad = in_.one_in(30), only_tells = in_.one_in(3);
        u32 at = result_at(is_bad);
        if (only_tells) distance = 0, whence = whence_cur;
        Errno got = only_tells ? call(SystemCall::fd_tell, {fd, at})
                               : call(SystemCall::fd_seek, {fd, u64(distance), whence, at});
        u64 to = 0;
        same(got, model_.seek(fd, distance, whence, only_tells, is_bad, to));
        if (got == Errno::success) require(caller_.load<u64>(at) == to, "the same position");
    }

    // An empty directory below a preopen; the empty path if there is none.
    static std::string empty_directory(const File& in) {
        for (const File::Entry& entry : in.entries) {
            if (entry.file->kind != NodeKind::directory) continue;
            if (entry.file->entries.empty()) return entry.name;
            std::string below = empty_directory(*entry.file);
            if (!below.empty()) return entry.name + "/" + below;
        }
        return {};
    }
    void one_path(SystemCall which, Errno (Model::*act)(const PathArgument&)) {
        PathArgument path = pick_path();
        if (which == SystemCall::path_remove_directory && in_.one_in(3))
            path = {first_preopen, empty_directory(*model_.roots[0])};
        test::Text text = text_of(path);
        note("\"%s\"", path.path.c_str());
        Errno got = call(which, {path.fd, text.at, text.length});
        if (!has_starved(got)) same(got, (model_.*act)(path));
    }
    void rename() {
        PathArgument from = pick_path(), to = pick_path();
        test::Text a = text_of(from), b = text_of(to, 1);
        note("\"%s\" to \"%s\"", from.path.c_str(), to.path.c_str());
        Errno got = call(SystemCall::path_rename, {from.fd, a.at, a.length, to.fd, b.at, b.length});
        if (!has_starved(got)) same(got, model_.rename(from, to));
    }
    void link() {
        PathArgument from = pick_path(), to = pick_path();
        test::Text a = text_of(from), b = text_of(to, 1);
        bool follows = in_.one_in(2);
        note("\"%s\" to \"%s\"", from.path.c_str(), to.path.c_str());
        Errno got =
            call(SystemCall::path_link, {from.fd, follows, a.at, a.length, to.fd, b.at, b.length});
        if (!has_starved(got)) same(got, model_.link(from, follows, to));
    }
    void symlink() {
        PathArgument target = pick_path(), path = pick_path();
        if (in_.one_in(20)) target.path.clear();
        test::Text a = text_of(target), b = text_of(path, 1);
        note("\"%s\" at \"%s\"", target.path.c_str(), path.path.c_str());
        Errno got = call(SystemCall::path_symlink, {a.at, a.length, path.fd, b.at, b.length});
        if (!has_starved(got)) same(got, model_.symlink(target.path, target.is_bad, path));
    }
    void readlink() {
        PathArgument path = pick_path();
        test::Text a = text_of(path);
        bool is_bad = in_.one_in(30);
        u32 at = result_at(is_bad), size = in_.byte();
        note("\"%s\"", path.path.c_str());
        Errno got =
            call(SystemCall::path_readlink, {path.fd, a.at, a.length, Caller::buffer, size, at});
        Model::Found found = model_.find(path, right_path_readlink, false);
        Errno expected = found.error;
        if (expected == Errno::success && !found.file) expected = Errno::noent;
        if (expected == Errno::success && found.file->kind != NodeKind::symlink)
            expected = Errno::inval;
        if (expected == Errno::success && is_bad) expected = Errno::fault;
        if (has_starved(got)) return;
        same(got, expected);
        if (got != Errno::success) return;
        std::string text = found.file->bytes.substr(0, size);
        require(caller_.load<u32>(at) == text.size(), "the link's length");
        require(caller_.bytes(Caller::buffer, text.size()) == text, "the link's text");
    }

    void compare_stat(File& file, u32 at) {
        Caller::Filestat stat = caller_.load<Caller::Filestat>(at);
        static constexpr u8 types[] = {0, filetype_regular_file, filetype_directory,
                                       filetype_symbolic_link, filetype_character_device};
        require(stat.type == types[u32(file.kind)], "the file's type");
        require(stat.size == file.size, "the file's size");
        require(stat.links == file.links || file.kind == NodeKind::stream, "links");
        if (!file.inode) file.inode = stat.inode;
        require(stat.inode == *file.inode, "the inode stays");
        require(!file.accessed || stat.accessed == *file.accessed, "time of access");
        require(!file.modified || stat.modified == *file.modified, "time of modification");
    }
    void stat() {
        bool is_bad = in_.one_in(30);
        u32 at = is_bad ? Caller::memory_size - 63 : Caller::result + in_.byte() % 3;
        if (in_.one_in(2)) {
            u32 fd = pick_fd(Wanted::any);
            Errno got = call(SystemCall::fd_filestat_get, {fd, at});
            OpenFile* file = model_.get(fd);
            same(got, !file                               ? Errno::badf
                      : !file->may(right_fd_filestat_get) ? Errno::notcapable
                      : is_bad                            ? Errno::fault
                                                          : Errno::success);
            if (got == Errno::success) compare_stat(*file->file, at);
            return;
        }
        PathArgument path = pick_path();
        test::Text a = text_of(path);
        bool follows = in_.one_in(2);
        note("\"%s\"", path.path.c_str());
        Errno got = call(SystemCall::path_filestat_get, {path.fd, follows, a.at, a.length, at});
        if (has_starved(got)) return;
        Model::Found found = model_.find(path, right_path_filestat_get, follows);
        Errno expected = found.error;
        if (expected == Errno::success && !found.file) expected = Errno::noent;
        if (expected == Errno::success && is_bad) expected = Errno::fault;
        same(got, expected);
        if (got == Errno::success) compare_stat(*found.file, at);
    }
    void set_times() {
        u64 accessed = in_.number(8), modified = in_.number(2);
        u32 flags = in_.byte() % 18;
        Errno expected = Model::check_times(flags);
        FilePtr changed;
        Errno got;
        if (in_.one_in(2)) {
            u32 fd = pick_fd(Wanted::any);
            OpenFile* file = model_.get(fd);
            if (!file)
                expected = Errno::badf;
            else if (expected == Errno::success && !file->may(right_fd_filestat_set_times))
                expected = Errno::notcapable;
            if (file) changed = file->file;
            got = call(SystemCall::fd_filestat_set_times, {fd, accessed, modified, flags});
        } else {
            PathArgument path = pick_path();
            test::Text a = text_of(path);
            bool follows = in_.one_in(2);
            note("\"%s\"", path.path.c_str());
            Model::Found found = model_.find(path, right_path_filestat_set_times, follows);
            if (found.error != Errno::success)
                expected = found.error;
            else if (expected == Errno::success && !found.file)
                expected = Errno::noent;
            changed = found.file;
            got = call(SystemCall::path_filestat_set_times,
                       {path.fd, follows, a.at, a.length, accessed, modified, flags});
        }
        if (has_starved(got)) return;
        same(got, expected);
        if (got == Errno::success) Model::set_times(*changed, accessed, modified, flags);
    }

    void readdir() {
        u32 fd = pick_fd(Wanted::directory), size = in_.one_in(3) ? in_.byte() : 1024;
        static constexpr u64 wild[] = {~u64{0}, u64{1} << 32, u64{1} << 63, 100, 0xffffffff};
        u64 cookie = in_.one_in(8) ? in_.pick(wild) : in_.byte() % 24;
        bool is_bad = in_.one_in(40), is_bad_result = in_.one_in(40);
        u32 at = result_at(is_bad_result);
        u32 buffer = is_bad ? Caller::memory_size - size + 1 : Caller::buffer + 1;
        Errno got = call(SystemCall::fd_readdir, {fd, buffer, size, cookie, at});
        OpenFile* file = model_.get(fd);
        same(got, !file                          ? Errno::badf
                  : !file->may(right_fd_readdir) ? Errno::notcapable
                  : is_bad || is_bad_result      ? Errno::fault
                                                 : Errno::success);
        if (got != Errno::success) return;
        std::string expected;
        auto put = [&](u64 next, const std::string& name, NodeKind kind) {
            expected.append(reinterpret_cast<const char*>(&next), 8);
            expected.append(8, '\0');  // inode
            u32 length = u32(name.size());
            expected.append(reinterpret_cast<const char*>(&length), 4);
            u32 type = kind == NodeKind::file        ? filetype_regular_file
                       : kind == NodeKind::directory ? filetype_directory
                                                     : filetype_symbolic_link;
            expected.append(reinterpret_cast<const char*>(&type), 4);
            expected += name;
        };
        if (cookie == 0) put(1, ".", NodeKind::directory);
        if (cookie <= 1) put(2, "..", NodeKind::directory);
        std::vector<usize> inodes;
        for (const File::Entry& entry : file->file->entries)
            if (entry.serial + 2 > cookie) put(entry.serial + 2, entry.name, entry.file->kind);
        u32 used = caller_.load<u32>(at);
        require(used == std::min<usize>(size, expected.size()), "length of the listing");
        std::string listing = caller_.bytes(buffer, used);
        // Inodes are blanked.
        for (usize i = 0; i + 8 < used;) {
            for (usize k = i + 8; k < i + 16 && k < used; k++) listing[k] = 0;
            if (i + 20 > used) break;
            i += 24 + caller_.load<u32>(buffer + u32(i) + 16);
        }
        require(listing == expected.substr(0, used), "the listing");
    }

    void fdstat() {
        u32 fd = pick_fd(Wanted::any);
        OpenFile* file = model_.get(fd);
        u8 choice = in_.byte();
        if (choice < 80) {
            u32 flags = in_.byte() % 36;
            Errno got = call(SystemCall::fd_fdstat_set_flags, {fd, flags});
            same(got, !file                                   ? Errno::badf
                      : !file->may(right_fd_fdstat_set_flags) ? Errno::notcapable
                      : flags > 31                            ? Errno::inval
                                                              : Errno::success);
            if (got == Errno::success) file->flags = flags;
        } else if (choice < 120) {
            u64 rights = pick_rights(), inheriting = pick_rights();
            if (fd < 5 && !in_.one_in(16)) rights = inheriting = all_rights;
            if (file && in_.one_in(2)) rights &= file->rights, inheriting &= file->inheriting;
            Errno got = call(SystemCall::fd_fdstat_set_rights, {fd, rights, inheriting});
            same(got, !file ? Errno::badf
                      : (rights & ~file->rights) || (inheriting & ~file->inheriting)
                          ? Errno::notcapable
                          : Errno::success);
            if (got == Errno::success) file->rights = rights, file->inheriting = inheriting;
        }
        bool is_bad = in_.one_in(30);
        u32 at = is_bad ? Caller::memory_size - 23 : Caller::result + in_.byte() % 3;
        Errno got = call(SystemCall::fd_fdstat_get, {fd, at});
        same(got, !file ? Errno::badf : is_bad ? Errno::fault : Errno::success);
        if (got != Errno::success) return;
        Caller::Fdstat stat = caller_.load<Caller::Fdstat>(at);
        require(stat.flags == file->flags, "descriptor flags");
        require(stat.rights == file->rights, "rights");
        require(stat.inheriting == file->inheriting, "inherited rights");
        require(stat.type == (file->is_stream()      ? filetype_unknown
                              : file->is_directory() ? filetype_directory
                                                     : filetype_regular_file),
                "type");
    }

    void small_calls() {
        u32 fd = pick_fd(Wanted::any);
        OpenFile* file = model_.get(fd);
        auto expect = [&](u64 right) {
            return !file ? Errno::badf : file->may(right) ? Errno::success : Errno::notcapable;
        };
        switch (in_.byte() % 5) {
            case 0: return same(call(SystemCall::fd_sync, {fd}), expect(right_fd_sync));
            case 1: return same(call(SystemCall::fd_datasync, {fd}), expect(right_fd_datasync));
            case 2: {
                u64 offset = pick_offset(), length = pick_offset();
                u32 advice = in_.byte() % 7;
                Errno expected = expect(right_fd_advise);
                if (expected == Errno::success && file->is_directory()) expected = Errno::badf;
                if (expected == Errno::success && (advice > 5 || offset + length < offset))
                    expected = Errno::inval;
                return same(call(SystemCall::fd_advise, {fd, offset, length, advice}), expected);
            }
            case 3:
                return same(call(SystemCall::sock_shutdown, {fd, 3}),
                            file ? Errno::notsock : Errno::badf);
            default:
                return same(call(SystemCall::sock_recv, {fd, 0, 0, 0, 0, 0}),
                            file ? Errno::notsock : Errno::badf);
        }
    }

    void prestat() {
        u32 fd = pick_fd(Wanted::any);
        OpenFile* file = model_.get(fd);
        bool is_preopen = file && file->preopen != 0;
        std::string name = !is_preopen ? "" : file->preopen == 1 ? "/" : "ro";
        Errno got = call(SystemCall::fd_prestat_get, {fd, Caller::result});
        same(got, is_preopen ? Errno::success : Errno::badf);
        if (is_preopen)
            require(caller_.load<u64>(Caller::result) == u64(name.size()) << 32, "prestat");
        u32 size = in_.byte() % 4;
        got = call(SystemCall::fd_prestat_dir_name, {fd, Caller::buffer, size});
        same(got, !is_preopen          ? Errno::badf
                  : size < name.size() ? Errno::nametoolong
                                       : Errno::success);
        if (got == Errno::success)
            require(caller_.bytes(Caller::buffer, name.size()) == name, "the preopen's name");
    }

    // The import module gpu: blocks of the device heap.
    void guest_blocks() {
        static constexpr u32 sizes[] = {0, 1, 63, 64, 65, 1000, 5000, 0x7fffffff, ~0u};
        u32 number = in_.byte() % (blocks_.size() + 2), size = in_.pick(sizes);
        auto is_block = [&](u32 n) { return n > 0 && n <= blocks_.size() && blocks_[n - 1]; };
        u32 free_number = 0;
        while (free_number < blocks_.size() && blocks_[free_number]) free_number++;
        switch (in_.byte() % 4) {
            case 0: {
                u32 got = caller_.call_raw(SystemCall::alloc, {size});
                note("alloc %u: %u", size, got);
                if (size == 0 || size > 0x1000000) return require(got == 0, "no block");
                require(got == free_number + 1, "the lowest number");
                if (free_number == blocks_.size()) blocks_.emplace_back();
                blocks_[free_number] = std::string(size, '\0');
                return;
            }
            case 1: {
                if (number == 0) return;
                u32 got = caller_.call_raw(SystemCall::realloc, {number, size});
                note("realloc %u %u: %u", number, size, got);
                if (!is_block(number) || size > 0x1000000) return require(got == 0, "no block");
                require(got == (size == 0 ? 0 : number), "the same number");
                if (size == 0)
                    blocks_[number - 1].reset();
                else
                    blocks_[number - 1]->resize(size);
                return;
            }
            case 2: {
                caller_.call_raw(SystemCall::free, {number});
                note("free %u", number);
                if (is_block(number)) blocks_[number - 1].reset();
                return;
            }
            default: {
                u32 offset = in_.byte(), count = in_.byte();
                bool fits = is_block(number) && offset + count <= blocks_[number - 1]->size();
                std::string data = noise(count, seed_++);
                caller_.put(Caller::buffer, data);
                note("write and read %u %u %u", number, offset, count);
                std::vector<u64> arguments = {number, offset, Caller::buffer, count};
                u32 got = caller_.call_raw(SystemCall::write, arguments);
                require(got == (fits ? count : 0), "written");
                if (fits) blocks_[number - 1]->replace(offset, count, data);
                offset = in_.byte();
                fits = is_block(number) && offset + count <= blocks_[number - 1]->size();
                arguments[1] = offset;
                got = caller_.call_raw(SystemCall::read, arguments);
                require(got == (fits ? count : 0), "read");
                if (fits)
                    require(caller_.bytes(Caller::buffer, count) ==
                                blocks_[number - 1]->substr(offset, count),
                            "what was written");
            }
        }
    }

    // ---- comparing -----------------------------------------------------------------------

    void compare(Handle handle, const File& file, const std::string& path) {
        const Node* node = caller_.at<Node>(handle);
        note("compare %s", path.c_str());
        require(node->kind == file.kind, "kind");
        if (file.kind == NodeKind::directory) {
            usize i = 0;
            for (u32 k = 0; k < node->content_count; k++) {
                const DirEntry& entry = caller_.at<DirEntry>(node->content)[k];
                if (entry.node == 0) continue;
                require(i < file.entries.size(), "a name too many");
                const File::Entry& expected = file.entries[i++];
                std::string name(reinterpret_cast<const char*>(world_.system.data()) + entry.name,
                                 entry.name_length);
                require(name == expected.name && entry.serial == expected.serial, "an entry");
                compare(entry.node, *expected.file, path + "/" + name);
            }
            require(i == file.entries.size(), "a name is missing");
        } else {
            require(node->link_count == file.links, "links");
            compare_content(handle, file, path.c_str());
        }
    }
    void compare_content(Handle handle, const File& file, const char* path) {
        const Node* node = caller_.at<Node>(handle);
        note("compare contents of %s", path);
        require(node->size == file.size, "size");
        if (node->kind == NodeKind::symlink) {
            require(std::string_view(caller_.at<char>(node->content), node->content_count) ==
                        file.bytes,
                    "text");
            return;
        }
        u64 in_tables = node->content_count * file_block;
        if (node->flags & node_is_deep) in_tables *= table_blocks;
        u64 end = std::min<u64>(file.size, std::max<u64>(file.bytes.size(), in_tables));
        for (u64 at = 0; at < end; at += file_block) {
            const Handle* slot = rt::slot_of(caller_.process(), node, at / file_block);
            Handle block = slot == nullptr ? zero_block : *slot;
            if (block == 0 && node->flags & node_is_cold) continue;
            std::string expected = file.read(at, file_block);
            std::string got(expected.size(), '\0');
            if (block > zero_block) got.assign(caller_.at<char>(block), expected.size());
            require(got == expected, "contents");
        }
    }
    // Nothing of it changes, but that the host brings blocks of cold files.
    void compare_base() {
        std::span<const u8> system_base = world_.system.base().bytes();
        for (u64 at = sizeof(SystemHeader); at < system_base.size(); at += 4) {
            u32 was, is;
            std::memcpy(&was, system_base.data() + at, 4);
            std::memcpy(&is, world_.system.data() + at, 4);
            if (was == is) continue;
            require(was == 0 && u64(is) << handle_shift >= world_.system.header().size, "the base");
            // Which of the only cold file's it is, its first bytes tell.
            static const std::string cold = noise((1 << 20) + 5000, 2) + std::string(4096, '\0');
            std::string_view block(caller_.at<char>(is), file_block);
            usize found = cold.find(block.substr(0, 16));
            require(found % file_block == 0 && cold.substr(found, file_block) == block,
                    "a block of a cold file");
        }
    }

    [[gnu::format(printf, 2, 3)]] void note(const char* text, ...) {
        char line[400];
        va_list arguments;
        va_start(arguments, text);
        std::vsnprintf(line, sizeof line, text, arguments);
        va_end(arguments);
        trace_.push_back(line);
    }
    void require(bool condition, const char* what) {
        if (condition) return;
        for (const std::string& line : trace_) std::fprintf(stderr, "%s\n", line.c_str());
        std::fprintf(stderr, "differs: %s\n", what);
        abort();
    }

    Input in_;
    World& world_;
    Caller caller_;
    Model model_;
    std::vector<std::optional<std::string>> blocks_;
    std::vector<std::string> trace_;
    bool is_famine_ = false;
    u32 seed_ = 100;
};

inline void run_sequence(std::span<const u8> bytes) { Sequence(bytes).run(); }

// Any call with any numbers; paths and vectors are sometimes what they should be.
inline void run_wild_sequence(std::span<const u8> bytes) {
    static constexpr u64 numbers[] = {0,
                                      1,
                                      2,
                                      3,
                                      4,
                                      5,
                                      6,
                                      7,
                                      8,
                                      24,
                                      48,
                                      63,
                                      255,
                                      256,
                                      1024,
                                      1025,
                                      4096,
                                      65536,
                                      Caller::result,
                                      Caller::vectors,
                                      Caller::texts,
                                      Caller::texts + 8,
                                      Caller::texts + 16,
                                      Caller::texts + 24,
                                      Caller::texts + 32,
                                      Caller::buffer,
                                      Caller::memory_size - 64,
                                      Caller::memory_size - 8,
                                      Caller::memory_size - 4,
                                      Caller::memory_size - 1,
                                      Caller::memory_size,
                                      Caller::memory_size + 1,
                                      0x7fffffff,
                                      0x80000000,
                                      0xfffffff8,
                                      0xffffffff,
                                      u64{1} << 32,
                                      max_file - 1,
                                      max_file,
                                      max_file + 1,
                                      u64{1} << 62,
                                      ~u64{0} >> 1,
                                      u64{1} << 63,
                                      ~u64{0},
                                      all_rights,
                                      all_rights & ~writing_rights};
    static const char* const words[] = {"a.txt", "d/x", "d/e",   "dlink/e/y",
                                        "cold",  "n1",  "n2/n3", "up/x"};
    World& world = World::get();
    world.system.restart_quickly();
    Input in(bytes);
    Caller caller(world.system, 9);
    for (u32 i = 0; !in.is_empty() && i < 400; i++) {
        SystemCall which = SystemCall(in.byte() % test::all_calls);
        if (which == SystemCall::proc_exit) continue;
        for (u32 k = 0; k < 8; k++) caller.put(Caller::texts + k * 16, words[k]);
        for (u32 k = 0; k < 8; k++) {
            caller.store<u32>(Caller::vectors + k * 8, u32(Caller::buffer + k * 100));
            caller.store<u32>(Caller::vectors + k * 8 + 4, u32(in.pick(numbers)));
        }
        std::vector<u64> arguments;
        for (char type : test::call_parameters[u32(which)])
            arguments.push_back(in.one_in(8) ? in.number(type == 'I' ? 8 : 4) : in.pick(numbers));
        caller.call_raw(which, arguments);
        caller.me().progress = 0;
        caller.me().request_failed = 0;
        if (i % 16 == 15) TreeCheck(caller).run();
    }
    TreeCheck(caller).run();
}

}  // namespace gpurun::fuzz
