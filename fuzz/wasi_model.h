// What WASI's files are expected to do, in terms of std::map and std::string: a tree, descriptors,
// and for each call the errno and the change. Written from the documents, not from the runtime; it
// shares only the numbers with it.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "abi/system.h"
#include "abi/wasi.h"

namespace gpurun::fuzz {

using wasi::Errno;
using namespace wasi;

struct File;
using FilePtr = std::shared_ptr<File>;

struct File {
    explicit File(NodeKind k, std::string content = {}) : kind(k), bytes(std::move(content)) {
        size = kind == NodeKind::directory ? file_block : bytes.size();
    }

    NodeKind kind;
    std::string bytes;  // contents, as far as they were ever written; text of a symbolic link
    u64 size;
    u32 links = 1;
    // Directories: entries in the order of their serial numbers.
    struct Entry {
        u64 serial;
        std::string name;
        FilePtr file;
    };
    std::vector<Entry> entries;
    u64 next_serial = 1;
    File* parent = nullptr;
    bool is_removed = false;
    // What the guest was told, or said itself.
    std::optional<u64> inode, accessed, modified;

    Entry* find(std::string_view name) {
        auto found = std::ranges::find(entries, name, &Entry::name);
        return found == entries.end() ? nullptr : &*found;
    }
    void add(const std::string& name, const FilePtr& file) {
        entries.push_back({next_serial++, name, file});
        if (file->kind == NodeKind::directory) file->parent = this;
        modified.reset();
    }
    void remove(std::string_view name) {
        std::erase_if(entries, [&](const Entry& entry) { return entry.name == name; });
        modified.reset();
    }
    std::string read(u64 offset, u64 count) const {
        if (offset >= size) return {};
        count = std::min(count, size - offset);
        std::string all(count, '\0');
        if (offset < bytes.size()) bytes.copy(all.data(), count, offset);
        return all;
    }
    void write(u64 offset, std::string_view data) {
        if (data.empty()) return;
        if (bytes.size() < offset + data.size()) bytes.resize(offset + data.size());
        bytes.replace(offset, data.size(), data);
        size = std::max(size, offset + data.size());
        modified.reset();
    }
    void resize(u64 to) {
        if (to < bytes.size()) bytes.resize(to);
        size = to;
        modified.reset();
    }
};

struct OpenFile {
    FilePtr file;  // null: closed
    u64 offset = 0;
    u64 rights = 0, inheriting = 0;
    u32 flags = 0;
    u32 preopen = 0;  // number + 1

    bool is_stream() const { return file->kind == NodeKind::stream; }
    bool is_directory() const { return file->kind == NodeKind::directory; }
    bool may(u64 wanted) const { return (rights & wanted) == wanted; }
};

struct PathArgument {
    u32 fd = 0;
    std::string path;
    bool is_bad = false;  // the pointer is
};

class Model {
public:
    std::vector<OpenFile> files;
    std::vector<FilePtr> roots;

    OpenFile* get(u32 fd) { return fd < files.size() && files[fd].file ? &files[fd] : nullptr; }

    // ---- paths ---------------------------------------------------------------------------

    struct Found {
        Errno error = Errno::success;
        FilePtr directory, file;
        std::string name;
        bool has_slash = false;
    };

    static Errno check_text(std::string_view text) {
        for (usize i = 0; i < text.size();) {
            u8 c = u8(text[i]);
            if (c == 0) return Errno::inval;
            usize more = c < 0x80 ? 0 : c >> 5 == 6 ? 1 : c >> 4 == 14 ? 2 : c >> 3 == 30 ? 3 : 9;
            if (more == 9 || i + more >= text.size()) return Errno::ilseq;
            u32 value = more == 0 ? c : c & (0x3f >> more);
            for (usize k = 1; k <= more; k++) {
                if (u8(text[i + k]) >> 6 != 2) return Errno::ilseq;
                value = value << 6 | (u8(text[i + k]) & 0x3f);
            }
            constexpr u32 least[] = {0, 0x80, 0x800, 0x10000};
            if (value < least[more] || value > 0x10ffff || (value >= 0xd800 && value < 0xe000))
                return Errno::ilseq;
            i += more + 1;
        }
        return text.starts_with('/') ? Errno::perm : Errno::success;
    }

    // `is_about_name`: whether or not a slash follows, a link at the end stands for itself.
    Found resolve(const FilePtr& start, std::string rest, bool follows, bool is_about_name) const {
        auto failed = [](Errno error) { return Found{error, nullptr, nullptr, {}, false}; };
        if (rest.size() >= max_path) return failed(Errno::nametoolong);
        if (rest.empty()) return failed(Errno::noent);
        if (Errno error = check_text(rest); error != Errno::success) return failed(error);
        FilePtr at = start;
        for (u32 links = 0, text = 0;;) {
            std::string name = rest.substr(0, rest.find('/'));
            rest.erase(0, name.size());
            bool has_slash = !rest.empty();
            rest.erase(0, std::min(rest.find_first_not_of('/'), rest.size()));
            bool is_last = rest.empty();
            if (name.size() > max_name) return failed(Errno::nametoolong);
            if (name.empty() || name == "." || name == "..") {
                if (name == "..") {
                    if (at == start) return failed(Errno::perm);
                    at = pointer_to(at->parent);
                }
                if (is_last) return {Errno::success, at, at, {}, true};
                continue;
            }
            File::Entry* entry = at->find(name);
            FilePtr file = entry ? entry->file : nullptr;
            bool is_name = is_last && is_about_name;
            if (file && file->kind == NodeKind::symlink && !is_name &&
                (!is_last || has_slash || follows)) {
                text += u32(file->bytes.size());
                if (++links > max_symlinks || text > 4 * max_path) return failed(Errno::loop);
                if (file->bytes.empty()) return failed(Errno::noent);
                if (file->bytes[0] == '/') return failed(Errno::perm);
                std::string longer = file->bytes;
                if (!is_last || has_slash) longer += '/';
                rest = longer + rest;
                if (rest.size() > 2 * max_path) return failed(Errno::nametoolong);
                continue;
            }
            if (!file && !is_last) return failed(Errno::noent);
            if (file && (!is_last || has_slash) && !is_name && file->kind != NodeKind::directory)
                return failed(Errno::notdir);
            if (is_last) return {Errno::success, at, file, name, has_slash};
            at = file;
        }
    }

    Found find_name(const PathArgument& path, u64 rights) {
        return find(path, rights, false, true);
    }
    Found find(const PathArgument& path, u64 rights, bool follows, bool is_about_name = false) {
        auto failed = [](Errno error) { return Found{error, nullptr, nullptr, {}, false}; };
        OpenFile* start = get(path.fd);
        if (!start) return failed(Errno::badf);
        if (!start->is_directory()) return failed(Errno::notdir);
        if (!start->may(rights)) return failed(Errno::notcapable);
        if (path.is_bad) return failed(Errno::fault);
        return resolve(start->file, path.path, follows, is_about_name);
    }

    Errno make_directory(const PathArgument& path) {
        Found at = find_name(path, right_path_create_directory);
        if (at.error != Errno::success) return at.error;
        if (at.file) return Errno::exist;
        if (at.directory->is_removed) return Errno::noent;
        at.directory->add(at.name, std::make_shared<File>(NodeKind::directory));
        return Errno::success;
    }
    Errno remove_directory(const PathArgument& path) {
        Found at = find_name(path, right_path_remove_directory);
        if (at.error != Errno::success) return at.error;
        if (!at.file) return Errno::noent;
        if (at.name.empty()) return Errno::inval;
        if (at.file->kind != NodeKind::directory) return Errno::notdir;
        if (!at.file->entries.empty()) return Errno::notempty;
        at.directory->remove(at.name);
        drop(at.file);
        return Errno::success;
    }
    Errno unlink(const PathArgument& path) {
        Found at = find_name(path, right_path_unlink_file);
        if (at.error != Errno::success) return at.error;
        if (!at.file) return Errno::noent;
        if (at.file->kind == NodeKind::directory) return Errno::isdir;
        if (at.has_slash) return Errno::notdir;
        at.directory->remove(at.name);
        drop(at.file);
        return Errno::success;
    }
    Errno symlink(const std::string& text, bool is_bad_text, const PathArgument& path) {
        Found at = find_name(path, right_path_symlink);
        if (at.error != Errno::success) return at.error;
        if (is_bad_text) return Errno::fault;
        if (text.empty()) return Errno::noent;
        if (text.size() >= max_path) return Errno::nametoolong;
        if (Errno error = check_text(text); error != Errno::success) return error;
        if (at.file) return Errno::exist;
        if (at.has_slash || at.directory->is_removed) return Errno::noent;
        at.directory->add(at.name, std::make_shared<File>(NodeKind::symlink, text));
        return Errno::success;
    }
    Errno link(const PathArgument& from, bool follows, const PathArgument& to) {
        Found source = find(from, right_path_link_source, follows);
        if (source.error != Errno::success) return source.error;
        Found at = find_name(to, right_path_link_target);
        if (at.error != Errno::success) return at.error;
        if (!source.file) return Errno::noent;
        if (source.file->kind == NodeKind::directory) return Errno::perm;
        if (at.file) return Errno::exist;
        if (at.has_slash || at.directory->is_removed) return Errno::noent;
        at.directory->add(at.name, source.file);
        source.file->links++;
        return Errno::success;
    }
    Errno rename(const PathArgument& from, const PathArgument& to) {
        Found source = find_name(from, right_path_rename_source);
        if (source.error != Errno::success) return source.error;
        Found at = find_name(to, right_path_rename_target);
        if (at.error != Errno::success) return at.error;
        if (!source.file) return Errno::noent;
        if (source.name.empty() || at.name.empty()) return Errno::busy;
        bool is_directory = source.file->kind == NodeKind::directory;
        if ((source.has_slash || at.has_slash) && !is_directory) return Errno::notdir;
        if (at.directory->is_removed) return Errno::noent;
        if (source.file == at.file) return Errno::success;
        for (File* up = at.directory.get(); up && is_directory; up = up->parent)
            if (up == source.file.get()) return Errno::inval;
        if (at.file) {
            bool onto_directory = at.file->kind == NodeKind::directory;
            if (onto_directory && !is_directory) return Errno::isdir;
            if (!onto_directory && is_directory) return Errno::notdir;
            if (!at.file->entries.empty()) return Errno::notempty;
            at.directory->find(at.name)->file = source.file;
            at.directory->modified.reset();
            drop(at.file);
        } else {
            at.directory->add(at.name, source.file);
        }
        source.directory->remove(source.name);
        if (is_directory) source.file->parent = at.directory.get();
        return Errno::success;
    }

    struct OpenOptions {
        bool follows;
        u32 oflags;
        u64 rights, inheriting;
        u32 fdflags;
        bool is_bad_result;
    };
    Errno open(const PathArgument& path, const OpenOptions& options, u32& fd) {
        bool creates = options.oflags & oflag_creat, excludes = options.oflags & oflag_excl;
        bool truncates = options.oflags & oflag_trunc,
             wants_directory = options.oflags & oflag_directory;
        Found at = find(path, right_path_open, options.follows && !(creates && excludes));
        if (at.error != Errno::success) return at.error;
        OpenFile start = *get(path.fd);
        if (options.oflags > all_oflags || options.fdflags > all_fdflags) return Errno::inval;
        if (creates && wants_directory) return Errno::inval;
        FilePtr file = at.file;
        bool is_directory = file && file->kind == NodeKind::directory;
        if (!file) {
            if (!creates) return Errno::noent;
            if (!start.may(right_path_create_file)) return Errno::notcapable;
            if (at.has_slash) return Errno::isdir;
            if (at.directory->is_removed) return Errno::noent;
        } else {
            if (creates && excludes) return Errno::exist;
            if (file->kind == NodeKind::symlink) return Errno::loop;
            if (wants_directory && !is_directory) return Errno::notdir;
            if (is_directory && (options.rights & right_fd_write)) return Errno::isdir;
            if ((creates || truncates) && is_directory) return Errno::isdir;
            if (truncates && !start.may(right_path_filestat_set_size)) return Errno::notcapable;
        }
        if (options.rights & right_fd_write & ~start.inheriting) return Errno::notcapable;
        if (options.is_bad_result) return Errno::fault;
        fd = free_number();
        if (fd == max_descriptors) return Errno::mfile;
        if (!file) {
            file = std::make_shared<File>(NodeKind::file);
            at.directory->add(at.name, file);
        } else if (truncates) {
            file->resize(0);
        }
        if (fd == files.size()) files.emplace_back();
        files[fd] = {
            file,
            0,
            options.rights & (is_directory ? directory_rights : file_rights) & start.inheriting,
            is_directory ? options.inheriting & start.inheriting : 0,
            options.fdflags,
            0};
        return Errno::success;
    }

    // ---- descriptors ---------------------------------------------------------------------

    Errno close(u32 fd) {
        if (!get(fd)) return Errno::badf;
        files[fd] = {};
        return Errno::success;
    }
    Errno renumber(u32 from, u32 to) {
        if (!get(from) || !get(to)) return Errno::badf;
        if (from == to) return Errno::success;
        files[to] = files[from];
        files[from] = {};
        return Errno::success;
    }

    // What is wrong with a transfer before a byte moves.
    Errno check_transfer(u32 fd, bool is_write, bool is_positioned, bool is_bad_result) {
        OpenFile* file = get(fd);
        if (!file) return Errno::badf;
        if (is_positioned && file->is_stream()) return Errno::spipe;
        u64 rights = (is_write ? right_fd_write : right_fd_read) |
                     (is_positioned ? u64{right_fd_seek} : u64{0});
        if (!file->may(rights)) return Errno::notcapable;
        return is_bad_result ? Errno::fault : Errno::success;
    }
    Errno seek(u32 fd, s64 distance, u32 whence, bool only_tells, bool is_bad_result, u64& to) {
        OpenFile* file = get(fd);
        if (!file) return Errno::badf;
        if (file->is_stream()) return Errno::spipe;
        bool only_asks = distance == 0 && whence == whence_cur && file->may(right_fd_tell);
        if (!only_asks && !file->may(only_tells ? right_fd_tell : right_fd_seek))
            return Errno::notcapable;
        if (whence > whence_end) return Errno::inval;
        __int128 sum = distance;
        if (whence == whence_cur) sum += file->offset;
        if (whence == whence_end) sum += file->file->size;
        if (sum < 0 || sum >> 63 != 0) return Errno::inval;
        if (is_bad_result) return Errno::fault;
        file->offset = to = u64(sum);
        return Errno::success;
    }
    Errno set_size(u32 fd, u64 size) {
        OpenFile* file = get(fd);
        if (!file) return Errno::badf;
        if (!file->may(right_fd_filestat_set_size)) return Errno::notcapable;
        if (size > max_file) return Errno::fbig;
        file->file->resize(size);
        return Errno::success;
    }
    Errno allocate(u32 fd, u64 offset, u64 length) {
        OpenFile* file = get(fd);
        if (!file) return Errno::badf;
        if (!file->may(right_fd_allocate)) return Errno::notcapable;
        if (length == 0) return Errno::inval;
        if (offset > max_file || length > max_file - offset) return Errno::fbig;
        if (offset + length > file->file->size) file->file->resize(offset + length);
        return Errno::success;
    }
    static Errno check_times(u32 flags) {
        bool is_bad = flags > 15 || (flags & 3) == 3 || (flags & 12) == 12;
        return is_bad ? Errno::inval : Errno::success;
    }
    static void set_times(File& file, u64 accessed, u64 modified, u32 flags) {
        if (flags & fst_atim) file.accessed = accessed;
        if (flags & fst_atim_now) file.accessed.reset();
        if (flags & fst_mtim) file.modified = modified;
        if (flags & fst_mtim_now) file.modified.reset();
    }

    u32 free_number() const {
        u32 fd = 0;
        while (fd < files.size() && files[fd].file) fd++;
        return fd;
    }

private:
    static void drop(const FilePtr& file) {
        if (--file->links == 0) file->is_removed = true;
        if (file->kind == NodeKind::directory) file->parent = nullptr;
    }
    // Of a directory that is in the tree.
    FilePtr pointer_to(const File* directory) const {
        for (const FilePtr& root : roots)
            if (root.get() == directory) return root;
        for (const File::Entry& entry : directory->parent->entries)
            if (entry.file.get() == directory) return entry.file;
        return nullptr;
    }
};

}  // namespace gpurun::fuzz
