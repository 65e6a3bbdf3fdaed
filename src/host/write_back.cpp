// Writing what processes changed, in three steps, so that no file of the host is gone before all
// that may depend on it is written: new contents go to temporary files, then what was removed is
// removed, then directories are made and files get their names. Every directory is reached from the
// mount's own without following a link, whatever a program has put in between.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "base/format.h"
#include "host/harvest.h"

namespace gpurun::host {
namespace {

// Collects what failed.
class Failures {
public:
    void add(std::string message) {
        if (!count_++) first_ = std::move(message);
    }
    u64 count() const { return count_; }
    Result<void> result() const {
        if (!count_) return {};
        if (count_ == 1) return Error{first_};
        return Error{
            format("%s (and %llu more)", first_.c_str(), (unsigned long long)(count_ - 1))};
    }

private:
    std::string first_;
    u64 count_ = 0;
};

timespec time_of(u64 nanoseconds) {
    return {time_t(nanoseconds / 1'000'000'000), long(nanoseconds % 1'000'000'000)};
}

bool write_at(int file, u64 offset, Arena bytes) {
    for (u64 done = 0; done < bytes.size();) {
        ssize_t put = pwrite(file, bytes.data() + done, bytes.size() - done, off_t(offset + done));
        if (put < 0 && errno == EINTR) continue;
        if (put == 0) errno = ENOSPC;
        if (put <= 0) return false;
        done += u64(put);
    }
    return true;
}

Result<void> write_content(int file, Content& content) {
    auto fail = [] { return Error{reason(errno)}; };
    if (ftruncate(file, off_t(content.size())) != 0) return fail();
    for (u64 i = content.next_block(0); i < content.block_count(); i = content.next_block(i + 1)) {
        Arena block = TRY(content.block(i));
        if (!is_zero(block) && !write_at(file, i * file_block, block)) return fail();
    }
    timespec times[2] = {time_of(content.node().accessed), time_of(content.node().modified)};
    futimens(file, times);  // some file systems have none
    return {};
}

// A new name in a directory, of which there is no other.
std::string temporary_name() {
    static u64 counter = 0;
    timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    return format(".gpu-run-%d-%llx-%llx", getpid(), (unsigned long long)time.tv_nsec,
                  (unsigned long long)__atomic_fetch_add(&counter, 1, __ATOMIC_RELAXED));
}

// The whole file under a temporary name. `mode`: of the file that it will replace. Bits beyond
// those of reading, writing and executing are not for a program to give its own contents.
Result<std::string> write_temporary(int directory, Content& content, std::optional<mode_t> mode) {
    std::string name = temporary_name();
    File file(openat(directory, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                     mode ? 0600 : 0644));
    if (!file) return Error{reason(errno)};
    Result<void> written = write_content(file.get(), content);
    if (written && mode && fchmod(file.get(), *mode & 0777) != 0) written = Error{reason(errno)};
    if (!file.close() && written) written = Error{reason(errno)};
    if (written) return name;
    unlinkat(directory, name.c_str(), 0);
    return std::move(written).error();
}

std::optional<mode_t> mode_of(int directory, const std::string& name) {
    struct stat info;
    if (fstatat(directory, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) return std::nullopt;
    return S_ISREG(info.st_mode) ? std::optional(info.st_mode) : std::nullopt;
}

// Makes a directory unless there is one. False: errno says why.
bool make_directory(int directory, const std::string& name) {
    if (mkdirat(directory, name.c_str(), 0777) == 0) return true;
    if (errno != EEXIST) return false;
    struct stat info;
    if (fstatat(directory, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(info.st_mode))
        return true;
    errno = EEXIST;
    return false;
}

// open_directory, which makes what is missing.
File reach_directory(int root, std::string_view path) {
    File at = open_directory(root, path);
    if (at || errno != ENOENT) return at;
    at = open_directory(root, "");
    while (at && !path.empty()) {
        std::string name(path.substr(0, path.find('/')));
        path.remove_prefix(std::min(path.size(), name.size() + 1));
        if (!is_name(name) || !make_directory(at.get(), name)) return File();
        at = open_directory(at.get(), name);
    }
    return at;
}

// Whether a link in `folder` would mean another file on the host than it means to the program: one
// outside. (Lexically: we never follow it ourselves.)
bool leads_out(std::string_view folder, std::string_view text) {
    s64 depth = folder.empty() ? 0 : 1 + std::count(folder.begin(), folder.end(), '/');
    if (text[0] == '/') return true;
    while (!text.empty() && depth >= 0) {
        std::string_view name = text.substr(0, text.find('/'));
        text.remove_prefix(std::min(text.size(), name.size() + 1));
        if (name == "..")
            depth--;
        else if (!name.empty() && name != ".")
            depth++;
    }
    return depth < 0;
}

// Carries changes out below one directory of the host.
class Writer {
public:
    Writer(Arena arena, const SystemImage& image, int root, std::string shown, Failures& failures)
        : arena_(arena),
          image_(image),
          root_(root),
          shown_(std::move(shown)),
          failures_(failures) {}

    void stage(const std::vector<const Change*>& changes);
    void remove(const Change& change);
    void make(const Change& change);
    void begin_making() { parent_ = File(); }

private:
    struct Staged {
        std::string folder, name;
    };
    void stage(const Change& change);
    void make_symlink(const Change& change, const std::string& name);
    void write_file(const Change& change, const std::string& name, int directory);
    int parent(std::string_view folder, bool makes_missing);
    void fail(const Change& change, const char* what, const std::string& why) {
        failures_.add(format("cannot %s '%s' in '%s': %s", what, change.path.c_str(),
                             shown_.c_str(), why.c_str()));
    }

    Arena arena_;
    const SystemImage& image_;
    int root_;
    std::string shown_;
    Failures& failures_;

    // The directory that was opened last: neighbours come one after another.
    File parent_;
    std::string parent_path_;

    std::unordered_set<std::string_view> removed_;  // directories
    std::unordered_map<const Change*, Staged> staged_;
};

int Writer::parent(std::string_view folder, bool makes_missing) {
    if (!parent_ || parent_path_ != folder) {
        parent_ = makes_missing ? reach_directory(root_, folder) : open_directory(root_, folder);
        parent_path_ = folder;
    }
    return parent_.get();
}

// Files go to where they will be, or as near as a directory is that stays.
void Writer::stage(const std::vector<const Change*>& changes) {
    for (const Change* change : changes)
        if (change->kind == ChangeKind::remove_directory) removed_.insert(change->path);
    for (const Change* change : changes)
        if (change->kind == ChangeKind::write_file) stage(*change);
}

void Writer::stage(const Change& change) {
    auto [folder, name] = split_path(change.path);
    std::string_view place = folder;
    auto is_there = [&] { return !removed_.contains(place) && parent(place, false) >= 0; };
    while (!is_there() && !place.empty()) place = split_path(place).first;
    int directory = parent(place, false);
    if (directory < 0) return fail(change, "write", reason(errno));
    std::optional<mode_t> mode;
    if (place == folder) mode = mode_of(directory, std::string(name));
    Result<Content> content = Content::make(arena_, change.node, &image_);
    if (!content) return fail(change, "write", content.error().to_string());
    Result<std::string> temporary = write_temporary(directory, *content, mode);
    if (!temporary) return fail(change, "write", temporary.error().to_string());
    staged_[&change] = {std::string(place), *std::move(temporary)};
}

void Writer::remove(const Change& change) {
    auto [folder, name] = split_path(change.path);
    int directory = parent(folder, false);
    int flags = change.kind == ChangeKind::remove_directory ? AT_REMOVEDIR : 0;
    if (directory >= 0 && unlinkat(directory, std::string(name).c_str(), flags) == 0) return;
    if (errno != ENOENT) fail(change, "remove", reason(errno));
}

void Writer::make(const Change& change) {
    auto [folder, last] = split_path(change.path);
    std::string name(last);
    int directory = parent(folder, true);
    if (change.kind == ChangeKind::write_file) return write_file(change, name, directory);
    if (directory < 0) return fail(change, "make", reason(errno));
    switch (change.kind) {
        case ChangeKind::make_directory:
            if (!make_directory(directory, name)) fail(change, "make", reason(errno));
            return;
        case ChangeKind::make_symlink: return make_symlink(change, name);
        case ChangeKind::write_file:
        case ChangeKind::remove_file:
        case ChangeKind::remove_directory: return;
    }
}

void Writer::make_symlink(const Change& change, const std::string& name) {
    Result<Node> node = node_at(arena_, change.node);
    if (!node) return fail(change, "make", node.error().to_string());
    Result<std::string_view> found = symlink_text(arena_, *node);
    if (!found) return fail(change, "make", found.error().to_string());
    std::string text(*found);
    // The base's links came from the host and may lead anywhere.
    bool is_own = offset_of(change.node) >= image_.base_end();
    if (text.empty() || text.find('\0') != text.npos || (is_own && leads_out(parent_path_, text)))
        return fail(change, "make", "a symbolic link that leads out of the directory");
    std::string temporary = temporary_name();
    if (symlinkat(text.c_str(), parent_.get(), temporary.c_str()) != 0)
        return fail(change, "make", reason(errno));
    if (renameat(parent_.get(), temporary.c_str(), parent_.get(), name.c_str()) == 0) return;
    fail(change, "make", reason(errno));
    unlinkat(parent_.get(), temporary.c_str(), 0);
}

void Writer::write_file(const Change& change, const std::string& name, int directory) {
    auto found = staged_.find(&change);
    if (found == staged_.end()) return;  // that failed already
    const Staged& staged = found->second;
    int error = errno;
    if (directory >= 0) {
        File from = open_directory(root_, staged.folder);
        if (from && renameat(from.get(), staged.name.c_str(), directory, name.c_str()) == 0) return;
        error = errno;
    }
    // What it was made from may be gone by now, so this stays.
    std::string where = staged.folder.empty() ? staged.name : staged.folder + "/" + staged.name;
    fail(change, "write", reason(error) + "; its contents are in '" + where + "'");
}

// A name for a preopen's folder: its path in the program, with '_' for '/'.
std::string folder_name(const std::string& guest_path) {
    std::string name;
    for (char c : guest_path)
        if (c != '/')
            name += c;
        else if (!name.empty() && name.back() != '_')
            name += '_';
    while (!name.empty() && name.back() == '_') name.pop_back();
    if (name.size() > max_name) name.resize(max_name);
    return is_name(name) ? name : "root";
}

std::vector<std::string> folder_names(const SystemImage& image) {
    std::vector<std::string> names;
    std::set<std::string> taken;
    for (u32 i = 0; i < image.preopen_count(); i++) {
        std::string name = folder_name(image.mount(i).guest_path), unique = name;
        for (u32 n = 2; !taken.insert(unique).second; n++) {
            std::string ending = format("-%u", n);
            unique = name.substr(0, max_name - ending.size()) + ending;
        }
        names.push_back(unique);
    }
    return names;
}

File make_folder(const std::string& folder) {
    for (usize at = folder.find('/', 1); at != folder.npos; at = folder.find('/', at + 1))
        mkdir(folder.substr(0, at).c_str(), 0777);
    mkdir(folder.c_str(), 0777);
    return File(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

// changes(), by preopen.
using ByPreopen = std::vector<std::vector<const Change*>>;
Result<ByPreopen> by_preopen(const std::vector<Change>& all, const SystemImage& image) {
    ByPreopen parts(image.preopen_count());
    for (const Change& change : all) {
        if (change.preopen >= parts.size()) return broken("more preopens than mounts", 0);
        parts[change.preopen].push_back(&change);
    }
    return parts;
}

bool is_removal(const Change& change) {
    return change.kind == ChangeKind::remove_file || change.kind == ChangeKind::remove_directory;
}

}  // namespace

Result<void> write_back(Arena arena, Handle process, const SystemImage& image) {
    std::vector<Change> all = TRY(changes(arena, process));
    ByPreopen parts = TRY(by_preopen(all, image));
    Failures failures;
    std::vector<Writer> writers;
    for (u32 i = 0; i < parts.size(); i++) {
        const Mount& mount = image.mount(i);
        if (!mount.is_writable) parts[i].clear();
        writers.emplace_back(arena, image, image.directory(i), mount.host_path, failures);
        writers[i].stage(parts[i]);
    }
    bool removes = failures.count() == 0;
    for (u32 i = 0; i < parts.size(); i++)
        for (const Change* change : parts[i])
            if (removes && is_removal(*change)) writers[i].remove(*change);
    for (u32 i = 0; i < parts.size(); i++) {
        writers[i].begin_making();
        for (const Change* change : parts[i])
            if (!is_removal(*change)) writers[i].make(*change);
    }
    return failures.result();
}

Result<void> store(Arena arena, Handle process, const SystemImage& image,
                   const std::string& folder) {
    std::vector<Change> all = TRY(changes(arena, process));
    ByPreopen parts = TRY(by_preopen(all, image));
    Failures failures;
    for (u32 i = 0; i < parts.size(); i++) {
        std::erase_if(parts[i], [](const Change* change) { return is_removal(*change); });
        if (parts[i].empty()) continue;
        std::string path = folder;
        if (parts.size() > 1) path += "/" + folder_names(image)[i];
        File root = make_folder(path);
        if (!root) {
            failures.add(format("cannot make '%s': %s", path.c_str(), reason(errno).c_str()));
            continue;
        }
        Writer writer(arena, image, root.get(), path, failures);
        writer.stage(parts[i]);
        writer.begin_making();
        for (const Change* change : parts[i]) writer.make(*change);
    }
    return failures.result();
}

}  // namespace gpurun::host
