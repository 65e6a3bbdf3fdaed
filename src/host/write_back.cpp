// Plans how the changes of a process get into directories of the host: what is staged, and which
// rows (host/transaction.h) give it its names. Every directory is opened from the mount's own
// without following a link, whatever a program has put in between.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "base/folders.h"
#include "base/format.h"
#include "host/harvest.h"
#include "host/maker.h"
#include "host/transaction.h"

namespace gpurun::host {
namespace {

bool is_removal(const Change& change) {
    return change.kind == ChangeKind::remove_file || change.kind == ChangeKind::remove_directory;
}

// Changes that could not be written to their places.
using Refused = std::vector<const Change*>;

// A directory of the host that is changed as a whole, with all changes for it.
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

    Result<void> begin(const WriteListener& listener) {
        transaction_.emplace(TRY(Transaction::begin(directory_.get(), shown_, listener)));
        return {};
    }
    Transaction* transaction() { return transaction_ ? &*transaction_ : nullptr; }

    // The rows, in the order in which they are carried out.
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

// Stages what a group of changes makes, and lists the rows that give it its names.
class Planner {
public:
    Planner(Arena arena, const SystemBase& system_base, bool syncs, Group& group,
            Problems& problems, Refused& refused, WriteProgress& progress)
        : maker_(arena, system_base, syncs),
          arena_(arena),
          system_base_(system_base),
          group_(group),
          site_(*group.site),
          problems_(problems),
          refused_(refused),
          progress_(progress) {}

    void stage();
    void remove();
    void keep_times(const std::vector<Change>& directories);

private:
    void stage(const Change& change);
    Result<void> stage(const Change& change, int folder, const std::string& name);
    void add_row(const Change& change, u64 number);
    Expected expected(const std::string& path, Handle base) const;
    bool is_written(const Change& change) const;
    int staged_directory(const std::string& path);
    void fail(const Change& change, const char* what, const std::string& why) {
        refused_.push_back(&change);
        problems_.add(format("cannot %s '%s' in '%s': %s", what, group_.path(change).c_str(),
                             site_.shown().c_str(), why.c_str()));
    }

    Maker maker_;
    Arena arena_;
    const SystemBase& system_base_;
    Group& group_;
    Site& site_;
    Problems& problems_;
    Refused& refused_;
    WriteProgress& progress_;

    // Where new directories are in the staging folder, or "" if they are not to be made.
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
        if (is_written(*change)) {
            progress_.add(WriteProgress::steps_of_file);
            continue;
        }
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

// Stages what a change makes: in the new directory that it is in, or else under a number, with a
// row of its own.
void Planner::stage(const Change& change) {
    auto [folder, name] = split_path(change.path);
    const bool is_directory = change.kind == ChangeKind::make_directory;
    if (is_directory) staged_[change.path];
    auto outer = staged_.find(folder);
    if (outer != staged_.end() && outer->second.empty()) {
        refused_.push_back(&change);  // reported already
        return;
    }
    const bool is_inner = outer != staged_.end();
    u64 number = is_inner ? 0 : site_.transaction()->next_number();
    std::string staged = is_inner ? std::string(name) : staged_name(number);
    int directory = is_inner ? staged_directory(outer->second) : site_.transaction()->folder();
    Result<void> made = directory < 0 ? Error{reason(errno)} : stage(change, directory, staged);
    progress_.add(is_inner ? WriteProgress::steps_of_file : 1);
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

// Returns what a name leads to unless others have changed it: the file that was written through, or
// the base's.
Expected Planner::expected(const std::string& path, Handle base) const {
    const WrittenThrough& written = system_base_.written();
    if (auto found = written.files.find({group_.preopen, path}); found != written.files.end())
        return {Expected::Kind::file, found->second.identity};
    const HostFile* file = base ? system_base_.host_file(base) : nullptr;
    if (!file) return {};
    if (S_ISDIR(file->mode)) return {Expected::Kind::directory, {}};
    return {Expected::Kind::file, file->identity};
}

// Returns true if the host has the file already, with the contents and name of now.
bool Planner::is_written(const Change& change) const {
    const WrittenThrough& written = system_base_.written();
    if (change.kind == ChangeKind::make_directory)
        return written.directories.contains({group_.preopen, change.path});
    auto found = written.files.find({group_.preopen, change.path});
    if (found == written.files.end() || found->second.node != change.node) return false;
    Result<Node> node = node_at(arena_, change.node);
    return node && !(node->flags & node_is_changed);
}

void Planner::add_row(const Change& change, u64 number) {
    Row row{Row::Kind::place, group_.path(change), number, expected(change.path, change.base)};
    const bool was_directory = row.expected.kind == Expected::Kind::directory;
    const bool is_other_kind = row.expected.kind != Expected::Kind::nothing &&
                               was_directory != (change.kind == ChangeKind::make_directory);
    if (is_other_kind) replaced_.insert(change.path);
    (is_other_kind ? site_.replaced : site_.given).push_back(std::move(row));
}

// Lists removals. Called after stage(): a name that something of another kind gets is not removed
// by a row of its own.
void Planner::remove() {
    for (const Change* change : group_.changes) {
        if (!is_removal(*change) || replaced_.contains(change->path)) continue;
        Row row{Row::Kind::remove_directory, group_.path(*change)};
        if (change->kind == ChangeKind::remove_file) {
            row.kind = Row::Kind::remove;
            row.expected = expected(change->path, change->node);
            if (row.expected.kind != Expected::Kind::file) continue;
        }
        site_.removed.push_back(std::move(row));
    }
}

// Gives directories that nobody else has changed the times that they have for the process.
void Planner::keep_times(const std::vector<Change>& directories) {
    for (const Change& directory : directories) {
        const bool is_root = directory.path + "/" == group_.prefix ||
                             (directory.path.empty() && group_.prefix.empty());
        if (directory.preopen != group_.preopen ||
            (!is_root && !directory.path.starts_with(group_.prefix)))
            continue;
        const HostFile* before = system_base_.host_file(directory.base);
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
    Divider(const SystemBase& system_base, Problems& problems)
        : system_base_(system_base), problems_(problems) {}

    void add(u32 preopen, const std::vector<const Change*>& changes);
    std::vector<std::unique_ptr<Site>> sites;
    std::vector<Group> groups;
    Refused refused;

private:
    void add(Group group);
    const SystemBase& system_base_;
    Problems& problems_;
};

void Divider::add(u32 preopen, const std::vector<const Change*>& changes) {
    std::map<std::string, Group> parts;
    const std::vector<std::string>& inner = system_base_.file_systems(preopen);
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
    std::string path = group.prefix, shown = system_base_.mount(group.preopen).host_path;
    if (!path.empty()) path.pop_back();
    if (!path.empty()) shown += "/" + path;
    auto fail = [&](const Change& change, int error) {
        refused.push_back(&change);
        problems_.add(format("cannot %s '%s' in '%s': %s", is_removal(change) ? "remove" : "write",
                             group.path(change).c_str(), shown.c_str(), reason(error).c_str()));
    };
    File way = open_directory(system_base_.directory(group.preopen), path);
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

// Returns a name for a preopen's folder: its path in the program, with '_' for '/'.
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

std::vector<std::string> folder_names(const SystemBase& system_base) {
    std::vector<std::string> names;
    std::set<std::string> taken;
    for (u32 i = 0; i < system_base.preopen_count(); i++) {
        std::string name = folder_name(system_base.mount(i).guest_path), unique = name;
        for (u32 n = 2; !taken.insert(unique).second; n++) {
            std::string ending = format("-%u", n);
            unique = name.substr(0, max_name - ending.size()) + ending;
        }
        names.push_back(unique);
    }
    return names;
}

File make_folder(const std::string& folder) {
    make_folders(folder, 0777);
    return File(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

// Adds removals of what was written through and is not there any more.
void add_forgotten(std::vector<Change>& all, const WrittenThrough& written) {
    std::set<WrittenThrough::Place> known;
    for (const Change& change : all) known.emplace(change.preopen, change.path);
    std::vector<Change> gone;
    for (const auto& [place, file] : written.files)
        if (!file.is_of_base && !known.contains(place))
            gone.push_back({ChangeKind::remove_file, place.first, place.second, 0});
    for (auto place = written.directories.rbegin(); place != written.directories.rend(); ++place)
        if (!known.contains(*place))
            gone.push_back({ChangeKind::remove_directory, place->first, place->second, 0});
    all.insert(all.begin(), gone.begin(), gone.end());
}

// Changes by preopen.
using ByPreopen = std::vector<std::vector<const Change*>>;
Result<ByPreopen> by_preopen(const std::vector<Change>& all, const SystemBase& system_base) {
    ByPreopen parts(system_base.preopen_count());
    for (const Change& change : all) {
        if (change.preopen >= parts.size()) return broken("more preopens than mounts", 0);
        parts[change.preopen].push_back(&change);
    }
    return parts;
}

// Makes what a process left below a folder, in place of what is there.
class Storer {
public:
    Storer(Arena arena, const SystemBase& system_base, int root)
        : maker_(arena, system_base, false), root_(root) {}

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
    // The directory that was opened last. Changes of one directory follow each other.
    File parent_;
    std::string parent_path_;
};

// Writes what was made or changed to a folder; with several preopens, to a folder for each in it.
// Returns how many changes were written.
u64 store_changes(Arena arena, const SystemBase& system_base, ByPreopen parts,
                  const std::string& folder, Problems& problems) {
    u64 stored = 0;
    for (u32 i = 0; i < parts.size(); i++) {
        std::erase_if(parts[i], [](const Change* change) { return is_removal(*change); });
        if (parts[i].empty()) continue;
        std::string path = folder;
        if (parts.size() > 1) path += "/" + folder_names(system_base)[i];
        File root = make_folder(path);
        if (!root) {
            problems.add(format("cannot make '%s': %s", path.c_str(), reason(errno).c_str()));
            continue;
        }
        Storer storer(arena, system_base, root.get());
        for (const Change* change : parts[i]) {
            Result<void> made = storer.store(*change);
            stored += made.ok();
            if (!made)
                problems.add(format("cannot write '%s' in '%s': %s", change->path.c_str(),
                                    path.c_str(), made.error().to_string().c_str()));
        }
        storer.finish(parts[i]);
    }
    return stored;
}

// Writes refused changes to a folder of their own, and adds a message that says where. Links that
// would be refused everywhere are left out.
void keep_elsewhere(Arena arena, const SystemBase& system_base, Refused refused,
                    Problems& problems) {
    std::erase_if(refused, [](const Change* change) { return is_removal(*change); });
    if (refused.empty()) return;
    std::ranges::sort(refused);  // directories come before what is in them
    ByPreopen parts(system_base.preopen_count());
    for (const Change* change : refused) parts[change->preopen].push_back(change);
    std::string folder = temporary_folder() + "/gpu-run-unwritten-XXXXXX";
    if (!mkdtemp(folder.data()))
        return problems.add_last(
            format("what the program left is lost, since '%s' cannot be made: %s", folder.c_str(),
                   reason(errno).c_str()));
    Problems lost;  // most of the reasons were reported already
    const u64 kept = store_changes(arena, system_base, std::move(parts), folder, lost);
    if (kept == refused.size())
        problems.add_last(format("what the program left is in '%s'", folder.c_str()));
    else if (kept > 0)
        problems.add_last(format("what the program left of %llu of %zu is in '%s'", Number(kept),
                                 refused.size(), folder.c_str()));
    std::error_code ignored;
    if (kept == 0) std::filesystem::remove_all(folder, ignored);
}

}  // namespace

Result<void> write_back(Arena arena, Handle process, const SystemBase& system_base) {
    std::vector<Change> directories, all = TRY(changes(arena, process, &directories));
    add_forgotten(all, system_base.written());
    ByPreopen parts = TRY(by_preopen(all, system_base));
    Problems problems;
    Divider divider(system_base, problems);
    for (u32 i = 0; i < parts.size(); i++)
        if (system_base.mount(i).is_writable) divider.add(i, parts[i]);
    // All who write to the same directories lock them in the same order.
    std::vector<std::unique_ptr<Site>>& sites = divider.sites;
    std::ranges::sort(sites, {}, [](const auto& site) { return site->order(); });
    for (const auto& site : sites)
        if (Result<void> begun = site->begin(system_base.write_listener()); !begun)
            problems.add(format("cannot write back to '%s': %s", site->shown().c_str(),
                                begun.error().message.c_str()));
    Refused& refused = divider.refused;
    std::erase_if(divider.groups, [&](const Group& group) {
        if (group.site->transaction()) return false;
        refused.insert(refused.end(), group.changes.begin(), group.changes.end());
        return true;
    });
    // Few files are synced one by one: syncing the whole file system may include much of others.
    const bool syncs = all.size() <= few_files;
    WriteProgress progress(system_base.write_listener(), all.size());
    for (Group& group : divider.groups) {
        Planner planner(arena, system_base, syncs, group, problems, refused, progress);
        planner.stage();
        planner.remove();
        planner.keep_times(directories);
    }
    bool may_remove = problems.count() == 0;
    auto commit = [&](Site& site, std::initializer_list<std::vector<Row>*> lists) {
        std::vector<Row> rows;
        for (std::vector<Row>* list : lists) std::ranges::move(*list, std::back_inserter(rows));
        may_remove &= site.transaction()->commit(rows, syncs, problems, &progress);
    };
    std::erase_if(sites, [](const auto& site) { return !site->transaction(); });
    // A file may have moved from one site to another, so all sites give new names before any
    // removes one.
    if (sites.size() > 1)
        for (const auto& site : sites) {
            commit(*site, {&site->given});
            site->given.clear();
        }
    for (const auto& site : sites) {
        if (!may_remove) site->removed.clear();
        // After a failure, things of another kind that have the names are not removed either.
        for (Row& row : site->replaced)
            if (!may_remove) row.expected = {};
        commit(*site, {&site->given, &site->removed, &site->replaced, &site->times});
    }
    keep_elsewhere(arena, system_base, std::move(refused), problems);
    return problems.result();
}

// Nobody else uses the folder, so no transaction is needed.
Result<void> store(Arena arena, Handle process, const SystemBase& system_base,
                   const std::string& folder) {
    const std::vector<Change> all = TRY(changes(arena, process));
    Problems problems;
    store_changes(arena, system_base, TRY(by_preopen(all, system_base)), folder, problems);
    return problems.result();
}

}  // namespace gpurun::host
