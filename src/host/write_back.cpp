// Plans how the changes of a process come to directories of the host: what is staged, and which
// rows (host/transaction.h) give it its names. Every directory is reached from the mount's own
// without following a link, whatever a program has put in between.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "base/format.h"
#include "host/harvest.h"
#include "host/transaction.h"

namespace gpurun::host {
namespace {

timespec time_of(u64 nanoseconds) {
    return {time_t(nanoseconds / 1'000'000'000), long(nanoseconds % 1'000'000'000)};
}

bool is_removal(const Change& change) {
    return change.kind == ChangeKind::remove_file || change.kind == ChangeKind::remove_directory;
}

// Whether a symbolic link in `folder` could lead out of the mount: by an absolute path, by more
// ".." than the folder is deep, or by a ".." after a name. That name may become a link to anywhere
// later; without such names a path is within the mount at every step, whatever the others become.
bool leads_out(std::string_view folder, std::string_view text) {
    s64 depth = folder.empty() ? 0 : 1 + std::count(folder.begin(), folder.end(), '/');
    if (text.starts_with('/')) return true;
    for (bool has_name = false; !text.empty();) {
        std::string_view name = text.substr(0, text.find('/'));
        text.remove_prefix(std::min(text.size(), name.size() + 1));
        if (name == ".." && (has_name || --depth < 0)) return true;
        has_name |= !name.empty() && name != "." && name != "..";
    }
    return false;
}

// Makes what a process left, under a name that is free.
class Maker {
public:
    // `syncs`: each file and directory by itself.
    Maker(Arena arena, const SystemImage& image, bool syncs)
        : arena_(arena), image_(image), syncs_(syncs) {}

    Result<void> make_file(const Change& change, int directory, const std::string& name) const;
    Result<void> make_symlink(const Change& change, int directory, const std::string& name) const;
    // What a directory gets last, when all that is in it has been made.
    void finish_directory(const Change& change, int directory) const;
    Result<void> check_name(const Change& change) const;

private:
    Result<void> write_content(int file, Content& content) const;
    const HostFile* source_of(const Change& change, const Node& node) const;

    Arena arena_;
    const SystemImage& image_;
    bool syncs_;
};

Result<void> Maker::check_name(const Change& change) const {
    if (split_path(change.path).second == staging_name)
        return Error{"gpu-run keeps that name for itself"};
    return {};
}

// Whose owner and mode a thing has: of what it is a copy of, or of what it takes the name of.
const HostFile* Maker::source_of(const Change& change, const Node& node) const {
    const bool is_base = offset_of(change.node) < image_.base_end();
    const HostFile* source = image_.host_file(is_base ? change.node : node.origin);
    if (!source && change.base) source = image_.host_file(change.base);
    const bool is_directory = node.kind == NodeKind::directory;
    if (source && S_ISDIR(source->mode) == is_directory && !S_ISLNK(source->mode)) return source;
    return nullptr;
}

// Gives what the system allows. Bits beyond those of reading, writing and executing are not for a
// program to give its own contents.
bool set_attributes(int file, const HostFile& source, u32 more) {
    if (fchown(file, source.owner, source.group) != 0) (void)!fchown(file, -1, source.group);
    return fchmod(file, (source.mode & 0777) | more) == 0;
}

Result<void> Maker::write_content(int file, Content& content) const {
    auto fail = [] { return Error{reason(errno)}; };
    u64 end = 0;
    for (u64 i = content.next_block(0); i < content.block_count(); i = content.next_block(i + 1)) {
        Arena block = TRY(content.block(i));
        if (is_zero(block)) continue;
        if (!write_at(file, i * file_block, block)) return fail();
        end = i * file_block + block.size();
    }
    if (end != content.size() && ftruncate(file, off_t(content.size())) != 0) return fail();
    timespec times[2] = {time_of(content.node().accessed), time_of(content.node().modified)};
    futimens(file, times);  // some file systems have none
    return {};
}

Result<void> Maker::make_file(const Change& change, int directory, const std::string& name) const {
    Content content = TRY(Content::make(arena_, change.node, &image_));
    const HostFile* source = source_of(change, content.node());
    File file(openat(directory, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                     source ? 0600 : 0644));
    if (!file) return Error{reason(errno)};
    Result<void> written = write_content(file.get(), content);
    if (written && source && !set_attributes(file.get(), *source, 0))
        written = Error{reason(errno)};
    if (written && syncs_ && fsync(file.get()) != 0) written = Error{reason(errno)};
    if (!file.close() && written) written = Error{reason(errno)};
    if (!written) unlinkat(directory, name.c_str(), 0);
    return written;
}

Result<void> Maker::make_symlink(const Change& change, int directory,
                                 const std::string& name) const {
    Node node = TRY(node_at(arena_, change.node));
    std::string text(TRY(symlink_text(arena_, node)));
    // An absolute link of the host means the same wherever it is.
    bool is_hosts = offset_of(change.node) < image_.base_end() ||
                    (node.origin && image_.host_file(node.origin));
    bool is_allowed =
        !leads_out(split_path(change.path).first, text) || (is_hosts && text.starts_with('/'));
    if (text.empty() || text.find('\0') != text.npos || !is_allowed)
        return Error{
            "a symbolic link that leads out of the directory, or could once names have moved"};
    if (symlinkat(text.c_str(), directory, name.c_str()) != 0) return Error{reason(errno)};
    return {};
}

// The user can write there whatever it was like: else what is in it could not be moved.
void Maker::finish_directory(const Change& change, int directory) const {
    Result<Node> node = node_at(arena_, change.node);
    File file(openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!node || !file) return;
    if (const HostFile* source = source_of(change, *node))
        set_attributes(file.get(), *source, S_IRWXU);
    timespec times[2] = {time_of(node->accessed), time_of(node->modified)};
    futimens(file.get(), times);
    if (syncs_) fsync(file.get());
}

// A directory of the host that is changed as a whole, with all that is to be done there.
class Site {
public:
    Site(File directory, std::string shown, const struct stat& info)
        : directory_(std::move(directory)), shown_(std::move(shown)), info_(info) {}

    bool is(const struct stat& other) const {
        return info_.st_dev == other.st_dev && info_.st_ino == other.st_ino;
    }
    auto order() const { return std::pair(info_.st_dev, info_.st_ino); }
    const std::string& shown() const { return shown_; }
    int directory() const { return directory_.get(); }

    Result<void> begin() {
        transaction_.emplace(TRY(Transaction::begin(directory_.get(), shown_)));
        return {};
    }
    Transaction* transaction() { return transaction_ ? &*transaction_ : nullptr; }

    // In the order in which they are carried out.
    std::vector<Row> given, removed, replaced, times;

private:
    File directory_;
    std::string shown_;
    struct stat info_;
    std::optional<Transaction> transaction_;
};

// The changes that one site gets from one mount.
struct Group {
    Site* site = nullptr;
    u32 preopen = 0;
    std::string prefix;  // of their paths: how the site's directory is reached, with a '/' after it
    std::vector<const Change*> changes;

    std::string path(const Change& change) const { return change.path.substr(prefix.size()); }
};

// Stages what a group of changes makes, and lists what gives it its names.
class Planner {
public:
    Planner(Arena arena, const SystemImage& image, bool syncs, Group& group, Problems& problems)
        : maker_(arena, image, syncs),
          arena_(arena),
          image_(image),
          group_(group),
          site_(*group.site),
          problems_(problems) {}

    void stage();
    void remove();
    void keep_times(const std::vector<Change>& directories);

private:
    void stage(const Change& change);
    Result<void> stage(const Change& change, int folder, const std::string& name);
    void add_row(const Change& change, u64 number);
    Expected expected(Handle base) const;
    int staged_directory(const std::string& path);
    void fail(const Change& change, const char* what, const std::string& why) {
        problems_.add(format("cannot %s '%s' in '%s': %s", what, group_.path(change).c_str(),
                             site_.shown().c_str(), why.c_str()));
    }

    Maker maker_;
    Arena arena_;
    const SystemImage& image_;
    Group& group_;
    Site& site_;
    Problems& problems_;

    // New directories: where they are in the staging folder, or "": they are not to be made.
    std::unordered_map<std::string_view, std::string> staged_;
    std::unordered_set<std::string_view> replaced_;  // names of what was of another kind
    File place_;                                     // the staged directory that was opened last
    std::string place_path_;
};

int Planner::staged_directory(const std::string& path) {
    if (!place_ || place_path_ != path) {
        place_ = open_directory(site_.transaction()->folder(), path);
        place_path_ = path;
    }
    return place_.get();
}

void Planner::stage() {
    std::vector<const Change*> directories;
    for (const Change* change : group_.changes) {
        if (is_removal(*change)) continue;
        stage(*change);
        if (change->kind == ChangeKind::make_directory) directories.push_back(change);
    }
    for (auto change = directories.rbegin(); change != directories.rend(); ++change) {
        const std::string& place = staged_[(*change)->path];
        if (place.empty()) continue;
        if (int directory = staged_directory(place); directory >= 0)
            maker_.finish_directory(**change, directory);
    }
}

// What is in a new directory is staged in it; the rest under a number, and it gets a row.
void Planner::stage(const Change& change) {
    auto [folder, name] = split_path(change.path);
    const bool is_directory = change.kind == ChangeKind::make_directory;
    if (is_directory) staged_[change.path];
    auto outer = staged_.find(folder);
    if (outer != staged_.end() && outer->second.empty()) return;  // told already
    const bool is_inner = outer != staged_.end();
    u64 number = is_inner ? 0 : site_.transaction()->next_number();
    std::string staged = is_inner ? std::string(name) : std::to_string(number);
    int directory = is_inner ? staged_directory(outer->second) : site_.transaction()->folder();
    Result<void> made = directory < 0 ? Error{reason(errno)} : stage(change, directory, staged);
    if (!made)
        return fail(change, change.kind == ChangeKind::write_file ? "write" : "make",
                    made.error().to_string());
    if (is_directory) staged_[change.path] = is_inner ? outer->second + "/" + staged : staged;
    if (!is_inner) add_row(change, number);
}

Result<void> Planner::stage(const Change& change, int folder, const std::string& name) {
    TRY(maker_.check_name(change));
    switch (change.kind) {
        case ChangeKind::write_file: return maker_.make_file(change, folder, name);
        case ChangeKind::make_symlink: return maker_.make_symlink(change, folder, name);
        default: break;
    }
    if (mkdirat(folder, name.c_str(), 0777) != 0) return Error{reason(errno)};
    return {};
}

Expected Planner::expected(Handle base) const {
    const HostFile* file = base ? image_.host_file(base) : nullptr;
    if (!file) return {};
    if (S_ISDIR(file->mode)) return {Expected::Kind::directory, {}};
    return {Expected::Kind::file, file->identity};
}

void Planner::add_row(const Change& change, u64 number) {
    Row row{Row::Kind::place, group_.path(change), number, expected(change.base)};
    const bool was_directory = row.expected.kind == Expected::Kind::directory;
    const bool is_other_kind = row.expected.kind != Expected::Kind::nothing &&
                               was_directory != (change.kind == ChangeKind::make_directory);
    if (is_other_kind) replaced_.insert(change.path);
    (is_other_kind ? site_.replaced : site_.given).push_back(std::move(row));
}

// After stage(): a name that something of another kind gets is not removed by a row of its own.
void Planner::remove() {
    for (const Change* change : group_.changes) {
        if (!is_removal(*change) || replaced_.contains(change->path)) continue;
        Row row{Row::Kind::remove_directory, group_.path(*change)};
        if (change->kind == ChangeKind::remove_file) {
            row.kind = Row::Kind::remove;
            row.expected = expected(change->node);
            if (row.expected.kind != Expected::Kind::file) continue;
        }
        site_.removed.push_back(std::move(row));
    }
}

// Directories that nobody else has changed get the times that they have for the process.
void Planner::keep_times(const std::vector<Change>& directories) {
    for (const Change& directory : directories) {
        const bool is_root = directory.path + "/" == group_.prefix ||
                             (directory.path.empty() && group_.prefix.empty());
        if (directory.preopen != group_.preopen ||
            (!is_root && !directory.path.starts_with(group_.prefix)))
            continue;
        const HostFile* before = image_.host_file(directory.base);
        Result<Node> node = node_at(arena_, directory.node);
        if (!before || !node) continue;
        struct stat now = site_.transaction()->before();
        std::string path = is_root ? "" : group_.path(directory);
        if (!is_root) {
            auto [folder, name] = split_path(path);
            File parent = open_directory(site_.directory(), folder);
            if (!parent ||
                fstatat(parent.get(), std::string(name).c_str(), &now, AT_SYMLINK_NOFOLLOW) != 0)
                continue;
        }
        if (!S_ISDIR(now.st_mode) || Identity::of(now) != before->identity) continue;
        Row row{Row::Kind::set_times, path};
        row.accessed = s64(node->accessed);
        row.modified = s64(node->modified);
        site_.times.push_back(std::move(row));
    }
}

// Divides changes among the directories that can be changed as a whole: those of the mounts, those
// where another file system begins, and where this user cannot write, those below.
class Divider {
public:
    Divider(const SystemImage& image, Problems& problems) : image_(image), problems_(problems) {}

    void add(u32 preopen, const std::vector<const Change*>& changes);
    std::vector<std::unique_ptr<Site>> sites;
    std::vector<Group> groups;

private:
    void add(Group group);
    const SystemImage& image_;
    Problems& problems_;
};

void Divider::add(u32 preopen, const std::vector<const Change*>& changes) {
    std::map<std::string, Group> parts;
    const std::vector<std::string>& inner = image_.file_systems(preopen);
    for (const Change* change : changes) {
        std::string prefix;
        for (const std::string& path : inner)
            if (path.size() > prefix.size() && change->path.starts_with(path + "/"))
                prefix = path + "/";
        Group& group = parts[prefix];
        group.preopen = preopen;
        group.prefix = prefix;
        group.changes.push_back(change);
    }
    for (auto& [prefix, group] : parts) add(std::move(group));
}

void Divider::add(Group group) {
    std::string path = group.prefix, shown = image_.mount(group.preopen).host_path;
    if (!path.empty()) path.pop_back();
    if (!path.empty()) shown += "/" + path;
    auto fail = [&](const Change& change, int error) {
        problems_.add(format("cannot %s '%s' in '%s': %s", is_removal(change) ? "remove" : "write",
                             group.path(change).c_str(), shown.c_str(), reason(error).c_str()));
    };
    File way = open_directory(image_.directory(group.preopen), path);
    File directory(way ? openat(way.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1);
    struct stat info;
    if (!directory || fstat(directory.get(), &info) != 0) {
        int error = errno;
        for (const Change* change : group.changes) fail(*change, error);
        return;
    }
    if (faccessat(directory.get(), ".", W_OK | X_OK, AT_EACCESS) == 0) {
        for (const auto& site : sites)
            if (site->is(info)) group.site = site.get();
        if (!group.site) {
            sites.push_back(std::make_unique<Site>(std::move(directory), shown, info));
            group.site = sites.back().get();
        }
        groups.push_back(std::move(group));
        return;
    }
    const int error = errno;
    std::map<std::string, Group> parts;
    for (const Change* change : group.changes) {
        std::string below = group.path(*change);
        usize slash = below.find('/');
        if (slash == below.npos) {
            fail(*change, error);
            continue;
        }
        std::string prefix = group.prefix + below.substr(0, slash + 1);
        Group& part = parts[prefix];
        part.preopen = group.preopen;
        part.prefix = prefix;
        part.changes.push_back(change);
    }
    for (auto& [prefix, part] : parts) add(std::move(part));
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

// Makes what a process left below a folder, in place of what is there.
class Storer {
public:
    Storer(Arena arena, const SystemImage& image, int root)
        : maker_(arena, image, false), root_(root) {}

    Result<void> store(const Change& change) {
        auto [folder, last] = split_path(change.path);
        const std::string name(last);
        TRY(maker_.check_name(change));
        if (!parent_ || parent_path_ != folder) {
            parent_ = reach_directory(root_, folder);
            parent_path_ = folder;
        }
        if (!parent_) return Error{reason(errno)};
        if (change.kind == ChangeKind::make_directory) {
            if (!make_directory(parent_.get(), name)) return Error{reason(errno)};
            return {};
        }
        unlinkat(parent_.get(), name.c_str(), 0);
        return change.kind == ChangeKind::write_file
                   ? maker_.make_file(change, parent_.get(), name)
                   : maker_.make_symlink(change, parent_.get(), name);
    }
    void finish(const std::vector<const Change*>& changes) {
        for (auto change = changes.rbegin(); change != changes.rend(); ++change)
            if ((*change)->kind == ChangeKind::make_directory)
                if (File directory = open_directory(root_, (*change)->path))
                    maker_.finish_directory(**change, directory.get());
    }

private:
    Maker maker_;
    int root_;
    // The directory that was opened last: neighbours come one after another.
    File parent_;
    std::string parent_path_;
};

}  // namespace

Result<void> write_back(Arena arena, Handle process, const SystemImage& image) {
    std::vector<Change> directories, all = TRY(changes(arena, process, &directories));
    ByPreopen parts = TRY(by_preopen(all, image));
    Problems problems;
    Divider divider(image, problems);
    for (u32 i = 0; i < parts.size(); i++)
        if (image.mount(i).is_writable) divider.add(i, parts[i]);
    // All who write to the same directories lock them in the same order.
    std::vector<std::unique_ptr<Site>>& sites = divider.sites;
    std::ranges::sort(sites, {}, [](const auto& site) { return site->order(); });
    for (const auto& site : sites)
        if (Result<void> begun = site->begin(); !begun)
            problems.add(format("cannot write back to '%s': %s", site->shown().c_str(),
                                begun.error().message.c_str()));
    std::erase_if(divider.groups, [](const Group& group) { return !group.site->transaction(); });
    // Few files are synced one by one: a file system as a whole may have much to sync of others.
    const bool syncs = all.size() <= few_files;
    for (Group& group : divider.groups) {
        Planner planner(arena, image, syncs, group, problems);
        planner.stage();
        planner.remove();
        planner.keep_times(directories);
    }
    bool may_remove = problems.count() == 0;
    auto commit = [&](Site& site, std::initializer_list<std::vector<Row>*> lists) {
        std::vector<Row> rows;
        for (std::vector<Row>* list : lists) std::ranges::move(*list, std::back_inserter(rows));
        may_remove &= site.transaction()->commit(rows, syncs, problems);
    };
    std::erase_if(sites, [](const auto& site) { return !site->transaction(); });
    // A file may have gone from one site to another, so of several all have their new names first.
    if (sites.size() > 1)
        for (const auto& site : sites) {
            commit(*site, {&site->given});
            site->given.clear();
        }
    for (const auto& site : sites) {
        if (!may_remove) site->removed.clear();
        // What is in the way is then not removed either.
        for (Row& row : site->replaced)
            if (!may_remove) row.expected = {};
        commit(*site, {&site->given, &site->removed, &site->replaced, &site->times});
    }
    return problems.result();
}

// Writes to a folder that is nobody else's, so there is nothing to be safe from.
Result<void> store(Arena arena, Handle process, const SystemImage& image,
                   const std::string& folder) {
    std::vector<Change> all = TRY(changes(arena, process));
    ByPreopen parts = TRY(by_preopen(all, image));
    Problems problems;
    for (u32 i = 0; i < parts.size(); i++) {
        std::erase_if(parts[i], [](const Change* change) { return is_removal(*change); });
        if (parts[i].empty()) continue;
        std::string path = folder;
        if (parts.size() > 1) path += "/" + folder_names(image)[i];
        File root = make_folder(path);
        if (!root) {
            problems.add(format("cannot make '%s': %s", path.c_str(), reason(errno).c_str()));
            continue;
        }
        Storer storer(arena, image, root.get());
        for (const Change* change : parts[i])
            if (Result<void> stored = storer.store(*change); !stored)
                problems.add(format("cannot write '%s' in '%s': %s", change->path.c_str(),
                                    path.c_str(), stored.error().to_string().c_str()));
        storer.finish(parts[i]);
    }
    return problems.result();
}

}  // namespace gpurun::host
