// Carries out the steps of transaction.h, and recovers a transaction that was interrupted.
#include "host/transaction.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <map>
#include <set>

#include "abi/system.h"
#include "base/format.h"
#include "base/notes.h"
#include "base/threads.h"

namespace gpurun::host {
namespace {

constexpr const char* manifest_name = "manifest";
constexpr const char* new_manifest_name = "manifest.new";
constexpr std::string_view manifest_head = "gpu-run transaction 1\n";
constexpr u64 max_manifest = u64{1} << 30;  // bytes; more is not read

s64 nanoseconds(const timespec& time) { return time.tv_sec * 1'000'000'000 + time.tv_nsec; }

timespec time_of(s64 nanoseconds) {
    s64 seconds = nanoseconds / 1'000'000'000, rest = nanoseconds % 1'000'000'000;
    if (rest < 0) seconds--, rest += 1'000'000'000;
    return {time_t(seconds), long(rest)};
}

bool is_there(int directory, const std::string& name, struct stat& info) {
    return fstatat(directory, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0;
}

// Removes everything in a folder. Returns false, with errno, if that fails. Nested directories are
// moved up first, so that any depth takes two descriptors at most.
bool empty_folder(int folder) {
    u64 moved = 0;
    for (bool is_done = false; !is_done;) {
        is_done = true;
        std::optional<std::vector<std::string>> names = list_names(folder);
        if (!names) return false;
        for (const std::string& name : *names) {
            if (unlinkat(folder, name.c_str(), 0) == 0) continue;
            File inner(
                openat(folder, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
            if (!inner) return false;
            std::optional<std::vector<std::string>> in_it = list_names(inner.get());
            if (!in_it) return false;
            for (const std::string& deep : *in_it) {
                if (unlinkat(inner.get(), deep.c_str(), 0) == 0) continue;
                while (
                    !rename_new(inner.get(), deep, folder, format("moved-%llu", Number(moved++))))
                    if (errno != EEXIST) return false;
                is_done = false;
            }
            if (unlinkat(folder, name.c_str(), AT_REMOVEDIR) != 0) return false;
        }
    }
    return true;
}

// Carries out a manifest below a directory. Any step may have been done by an earlier attempt.
class Executor {
public:
    Executor(int directory, int folder, const std::string& shown, Problems& problems,
             WriteProgress* progress)
        : directory_(directory),
          folder_(folder),
          shown_(shown),
          problems_(problems),
          progress_(progress) {}

    void carry_out(const std::vector<Row>& rows);
    bool has_failed() const { return failures_ != 0; }
    bool leaves_some() const { return leaves_some_; }  // something in the folder has no name yet

private:
    void place(const Row& row);
    void give_name(int from, const std::string& staged, int to, const std::string& name,
                   const Expected& expected, const std::string& path);
    bool clear_way(const struct stat& staged, int to, const std::string& name,
                   const Expected& expected, bool& is_free);
    void merge(int from, const std::string& staged, int to, const std::string& name,
               const std::string& path);
    void give_name_beside(int from, const std::string& staged, int to, const std::string& name,
                          const std::string& path);
    void rescue(int from, const std::string& staged, const std::string& name,
                const std::string& path);
    void remove(const Row& row);
    void set_times(const Row& row);
    void sync();

    int parent(std::string_view folder, bool makes_missing);
    File reach(std::string_view path);
    void fail(const char* what, const std::string& path, const std::string& why) {
        failures_++;
        problems_.add(
            format("cannot %s '%s' in '%s': %s", what, path.c_str(), shown_.c_str(), why.c_str()));
    }

    int directory_, folder_;
    const std::string& shown_;
    Problems& problems_;
    WriteProgress* const progress_;
    u64 failures_ = 0;  // conflicts are none: they lose nothing
    bool leaves_some_ = false;

    // The directory that was opened last. Rows of one directory follow each other.
    File parent_;
    std::string parent_path_;
    bool has_parent_ = false, is_beside_ = false;  // the latter: another one stands for it
    std::set<std::string, std::less<>> touched_;   // directories, up to one more than `few_files`
    std::map<std::string, std::string> besides_;   // names of directories that stand for others
};

// Returns how many steps of progress a row is. Staging a file was one step already.
u64 steps_of(const Row& row) {
    switch (row.kind) {
        case Row::Kind::place: return WriteProgress::steps_of_file - 1;
        case Row::Kind::remove:
        case Row::Kind::remove_directory: return WriteProgress::steps_of_file;
        case Row::Kind::set_times: break;
    }
    return 0;
}

void Executor::carry_out(const std::vector<Row>& rows) {
    for (const Row& row : rows) {
        switch (row.kind) {
            case Row::Kind::place: place(row); break;
            case Row::Kind::remove:
            case Row::Kind::remove_directory:
                if (failures_ == 0) remove(row);
                break;
            case Row::Kind::set_times: set_times(row); break;
        }
        if (progress_) progress_->add(steps_of(row));
    }
    parent_ = File();
    has_parent_ = false;
    sync();
}

// Opens the directory at a path. Missing directories are made again. Where something else has
// taken a directory's name, another one is made beside it and used instead.
File Executor::reach(std::string_view path) {
    File at = open_directory(directory_, "");
    std::string so_far;
    while (at && !path.empty()) {
        std::string name(path.substr(0, path.find('/')));
        path.remove_prefix(std::min(path.size(), name.size() + 1));
        auto enter = [&](const std::string& it) {
            return File(
                openat(at.get(), it.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
        };
        File next = enter(name);
        if (!next && errno == ENOENT && mkdirat(at.get(), name.c_str(), 0777) == 0)
            next = enter(name);
        so_far += name;
        if (!next && (errno == ENOTDIR || errno == ELOOP)) {
            std::string& beside = besides_[so_far];
            for (u32 i = 1; beside.empty(); i++) {
                std::string free = conflict_name(name, i);
                if (mkdirat(at.get(), free.c_str(), 0777) == 0)
                    beside = free;
                else if (errno != EEXIST)
                    return File();
                if (!beside.empty())
                    problems_.add(format(
                        "'%s' in '%s' is no directory any more; what the program left there is in "
                        "'%s' beside it",
                        so_far.c_str(), shown_.c_str(), beside.c_str()));
            }
            is_beside_ = true;
            if (!beside.empty()) next = enter(beside);
        }
        so_far += '/';
        at = std::move(next);
    }
    return at;
}

int Executor::parent(std::string_view folder, bool makes_missing) {
    if (!has_parent_ || parent_path_ != folder || (parent_.get() < 0 && makes_missing)) {
        is_beside_ = false;
        parent_ = open_directory(directory_, folder);
        if (!parent_ && makes_missing) parent_ = reach(folder);
        parent_path_ = folder;
        has_parent_ = true;
        if (parent_ && touched_.size() <= few_files) touched_.emplace(folder);
    }
    return parent_.get();
}

void Executor::place(const Row& row) {
    auto [folder, name] = split_path(row.path);
    const std::string staged = staged_name(row.staged);
    int to = parent(folder, true);
    if (to >= 0)
        return give_name(folder_, staged, to, std::string(name),
                         is_beside_ ? Expected{} : row.expected, row.path);
    const int error = errno;
    struct stat info;
    if (!is_there(folder_, staged, info)) return;
    fail("write", row.path, reason(error));
    rescue(folder_, staged, std::string(name), row.path);
}

// Removes what has the name, if it is of another kind than what gets it. Returns false if that
// failed.
bool Executor::clear_way(const struct stat& staged, int to, const std::string& name,
                         const Expected& expected, bool& is_free) {
    struct stat now;
    const bool was_directory = expected.kind == Expected::Kind::directory;
    const bool is_same_kind = S_ISDIR(staged.st_mode) == was_directory;
    if (!is_there(to, name, now)) {
        is_free = errno == ENOENT && !is_same_kind;  // an earlier attempt removed it
        return errno == ENOENT;
    }
    const bool is_expected = was_directory
                                 ? S_ISDIR(now.st_mode)
                                 : !S_ISDIR(now.st_mode) && Identity::of(now) == expected.identity;
    is_free = is_expected;
    if (!is_expected || is_same_kind) return true;
    is_free = failures_ == 0 && unlinkat(to, name.c_str(), was_directory ? AT_REMOVEDIR : 0) == 0;
    return true;
}

void Executor::give_name(int from, const std::string& staged, int to, const std::string& name,
                         const Expected& expected, const std::string& path) {
    struct stat info;
    if (expected.kind == Expected::Kind::nothing) {
        if (rename_new(from, staged, to, name)) return;
        const int error = errno;
        if (!is_there(from, staged, info)) return;  // an earlier attempt gave it its name
        errno = error;
        if (error != EEXIST) {
            fail("write", path, reason(error));
            return rescue(from, staged, name, path);
        }
        struct stat now;
        if (S_ISDIR(info.st_mode) && is_there(to, name, now) && S_ISDIR(now.st_mode))
            return merge(from, staged, to, name, path);
        return give_name_beside(from, staged, to, name, path);
    }
    if (!is_there(from, staged, info)) return;
    bool is_free = false;
    if (clear_way(info, to, name, expected, is_free)) {
        if (!is_free) return give_name_beside(from, staged, to, name, path);
        if (renameat(from, staged.c_str(), to, name.c_str()) == 0) return;
    }
    fail("write", path, reason(errno));
    rescue(from, staged, name, path);
}

// Moves what is in a staged directory into the directory of that name that somebody else made.
void Executor::merge(int from, const std::string& staged, int to, const std::string& name,
                     const std::string& path) {
    File source(openat(from, staged.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    File target(openat(to, name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    std::optional<std::vector<std::string>> names;
    if (source && target) names = list_names(source.get());
    if (!names) {
        fail("write", path, reason(errno));
        return rescue(from, staged, name, path);
    }
    if (touched_.size() <= few_files) touched_.insert(path);
    for (const std::string& inner : *names)
        give_name(source.get(), inner, target.get(), inner, {}, path + "/" + inner);
    unlinkat(from, staged.c_str(), AT_REMOVEDIR);
}

void Executor::give_name_beside(int from, const std::string& staged, int to,
                                const std::string& name, const std::string& path) {
    std::string beside;
    for (u32 i = 1; beside.empty(); i++) {
        std::string free = conflict_name(name, i);
        if (rename_new(from, staged, to, free))
            beside = free;
        else if (errno != EEXIST)
            break;
    }
    if (beside.empty()) {
        fail("write", path, reason(errno));
        return rescue(from, staged, name, path);
    }
    std::string folder(split_path(path).first);
    problems_.add(format(
        "'%s' in '%s' was changed by others meanwhile and is kept; what the program "
        "left is in '%s'",
        path.c_str(), shown_.c_str(), (folder.empty() ? beside : folder + "/" + beside).c_str()));
}

// Moves what cannot get to its place into the directory itself, so that the user has it.
void Executor::rescue(int from, const std::string& staged, const std::string& name,
                      const std::string& path) {
    for (u32 i = 1;; i++) {
        std::string free = conflict_name(name, i);
        if (rename_new(from, staged, directory_, free)) {
            problems_.add(format("the contents of '%s' are in '%s' in '%s'", path.c_str(),
                                 free.c_str(), shown_.c_str()));
            return;
        }
        if (errno != EEXIST) break;
    }
    leaves_some_ = true;
    problems_.add(format("the contents of '%s' are in '%s/%s'; the next run tries to write them",
                         path.c_str(), shown_.c_str(), staging_name));
}

void Executor::remove(const Row& row) {
    auto [folder, last] = split_path(row.path);
    std::string name(last);
    int directory = parent(folder, false);
    struct stat now;
    // If a directory on the way is gone, so is what was in it.
    if (directory < 0 || !is_there(directory, name, now)) return;
    const bool is_directory = row.kind == Row::Kind::remove_directory;
    const bool is_expected = S_ISDIR(now.st_mode) == is_directory &&
                             (is_directory || Identity::of(now) == row.expected.identity);
    if (!is_expected) {
        problems_.add(
            format("'%s' in '%s' was changed by others meanwhile and is kept, though the program "
                   "removed it",
                   row.path.c_str(), shown_.c_str()));
        return;
    }
    if (unlinkat(directory, name.c_str(), is_directory ? AT_REMOVEDIR : 0) != 0 && errno != ENOENT)
        fail("remove", row.path, reason(errno));
}

// Sets the times of a directory. A failure is ignored: not every file system has times.
void Executor::set_times(const Row& row) {
    timespec times[2] = {time_of(row.accessed), time_of(row.modified)};
    auto [folder, name] = split_path(row.path);
    if (name.empty()) {
        futimens(directory_, times);
        return;
    }
    if (int directory = parent(folder, false); directory >= 0)
        utimensat(directory, std::string(name).c_str(), times, AT_SYMLINK_NOFOLLOW);
}

void Executor::sync() {
    if (touched_.size() > few_files) {
        syncfs(folder_);
        return;
    }
    for (const std::string& path : touched_) {
        File way = open_directory(directory_, path);
        File directory(way ? openat(way.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1);
        if (directory) fsync(directory.get());
    }
}

// ---- the manifest --------------------------------------------------------------------

std::string text_of(const Expected& expected) {
    const Identity& it = expected.identity;
    switch (expected.kind) {
        case Expected::Kind::nothing: return "nothing";
        case Expected::Kind::directory: return "directory";
        case Expected::Kind::file: break;
    }
    return format("file %llu %llu %lld %lld", Number(it.inode), Number(it.size),
                  (long long)it.modified, (long long)it.changed);
}

// Reads a manifest from its beginning to its end, or to the first text that is invalid.
class Reader {
public:
    explicit Reader(std::string_view text) : text_(text) {}

    bool has(std::string_view word) {
        if (!text_.substr(at_).starts_with(word)) return false;
        at_ += word.size();
        return true;
    }
    Result<void> want(std::string_view word) {
        if (!has(word)) return Error{format("expected \"%s\"", std::string(word).c_str()), at_};
        return {};
    }
    template <class T>
    Result<T> number() {
        T value{};
        const char *begin = text_.data() + at_, *end = text_.data() + text_.size();
        auto [stop, error] = std::from_chars(begin, end, value);
        if (error != std::errc() || stop == begin) return Error{"expected a number", at_};
        at_ += u64(stop - begin);
        TRY(want(" "));
        return value;
    }
    Result<Expected> expected() {
        if (has("nothing ")) return Expected{};
        if (has("directory ")) return Expected{Expected::Kind::directory, {}};
        TRY(want("file "));
        Expected it{Expected::Kind::file, {}};
        it.identity.inode = TRY(number<u64>());
        it.identity.size = TRY(number<u64>());
        it.identity.modified = TRY(number<s64>());
        it.identity.changed = TRY(number<s64>());
        return it;
    }
    Result<std::string> path(bool may_be_empty) {
        u64 size = TRY(number<u64>());
        u64 at = at_;
        if (size > text_.size() - at_) return Error{"a path that is cut off", at};
        std::string path(text_.substr(at_, size));
        at_ += size;
        TRY(want("\n"));
        if (path.empty() && may_be_empty) return path;
        for (std::string_view rest = path;;) {
            std::string_view name = rest.substr(0, rest.find('/'));
            if (!is_name(name) || name == staging_name)
                return Error{"a path that leads out of the directory", at};
            if (name.size() == rest.size()) return path;
            rest.remove_prefix(name.size() + 1);
        }
    }
    bool is_at_end() const { return at_ == text_.size(); }
    u64 at() const { return at_; }

private:
    std::string_view text_;
    u64 at_ = 0;
};

Result<Row> parse_row(Reader& reader) {
    Row row{};
    if (reader.has("place ")) {
        row.kind = Row::Kind::place;
        row.staged = TRY(reader.number<u64>());
        row.expected = TRY(reader.expected());
    } else if (reader.has("remove ")) {
        row.kind = Row::Kind::remove;
        row.expected = TRY(reader.expected());
        if (row.expected.kind != Expected::Kind::file)
            return Error{"a removal of what is no file", reader.at()};
    } else if (reader.has("remove-directory ")) {
        row.kind = Row::Kind::remove_directory;
    } else {
        TRY(reader.want("times "));
        row.kind = Row::Kind::set_times;
        row.accessed = TRY(reader.number<s64>());
        row.modified = TRY(reader.number<s64>());
    }
    row.path = TRY(reader.path(row.kind == Row::Kind::set_times));
    return row;
}

Result<std::string> read_whole(int folder, const char* name) {
    File file = open_regular(folder, name);
    struct stat info;
    if (!file || fstat(file.get(), &info) != 0) return Error{reason(errno)};
    if (u64(info.st_size) > max_manifest || info.st_uid != geteuid())
        return Error{"it is not one of this user's"};
    std::string text(u64(info.st_size), '\0');
    for (u64 done = 0; done < text.size();) {
        ssize_t got = read(file.get(), text.data() + done, text.size() - done);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return Error{got < 0 ? reason(errno) : "it is cut off"};
        done += u64(got);
    }
    return text;
}

// ---- recovery ------------------------------------------------------------------------

Error cannot_recover(const std::string& shown, const std::string& why) {
    return Error{
        format("'%s/%s' has what an interrupted run was writing back, and this run cannot "
               "deal with it: %s; look into that folder and remove it",
               shown.c_str(), staging_name, why.c_str())};
}

// Locks the staging folder. Returns an empty File if there is none any more.
Result<File> lock_folder(int directory, const std::string& shown) {
    for (;;) {
        File folder(
            openat(directory, staging_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
        if (!folder && errno == ENOENT) return File();
        struct stat info, now;
        if (!folder || fstat(folder.get(), &info) != 0) return cannot_recover(shown, reason(errno));
        if (info.st_uid != geteuid() || info.st_mode & 022)
            return cannot_recover(shown, "it is another user's, or others can write to it");
        // Ends: whoever has it locked is writing back, and waits for nobody else meanwhile, except
        // in the order of directories that all keep to.
        while (flock(folder.get(), LOCK_EX) != 0)
            if (errno != EINTR) return cannot_recover(shown, reason(errno));
        // It may have been removed meanwhile, and made anew.
        if (is_there(directory, staging_name, now) && now.st_ino == info.st_ino) return folder;
    }
}

// Finishes or undoes the transaction in the folder, which is locked, and leaves the folder empty.
Result<void> finish_or_undo(int directory, const File& folder, const std::string& shown,
                            const WriteListener& listener) {
    std::optional<std::vector<std::string>> names = list_names(folder.get());
    if (!names) return cannot_recover(shown, reason(errno));
    if (names->empty()) return {};
    if (std::find(names->begin(), names->end(), manifest_name) == names->end()) {
        if (!empty_folder(folder.get())) return cannot_recover(shown, reason(errno));
        note(
            format("undid what an interrupted run had begun to write back to '%s'", shown.c_str()));
        return {};
    }
    Result<std::string> text = read_whole(folder.get(), manifest_name);
    if (!text) return cannot_recover(shown, text.error().to_string());
    Result<std::vector<Row>> rows = parse_manifest(*text);
    if (!rows) return cannot_recover(shown, "its manifest, " + rows.error().to_string());
    Problems problems;
    u64 files = 0, staged = 0;
    for (const Row& row : *rows) {
        files += row.kind != Row::Kind::set_times;
        staged += row.kind == Row::Kind::place;
    }
    WriteProgress progress(listener, files);
    progress.add(staged);
    Executor executor(directory, folder.get(), shown, problems, &progress);
    executor.carry_out(*rows);
    if (Result<void> done = problems.result(); !done) note(done.error().message);
    if (executor.leaves_some()) return cannot_recover(shown, "some files still have no place");
    if (unlinkat(folder.get(), manifest_name, 0) != 0 || !empty_folder(folder.get()))
        return cannot_recover(shown, reason(errno));
    note(format("finished what an interrupted run was writing back to '%s'", shown.c_str()));
    return {};
}

}  // namespace

Identity Identity::of(const struct stat& info) {
    return {u64(info.st_ino), u64(info.st_size), nanoseconds(info.st_mtim),
            nanoseconds(info.st_ctim)};
}

void Problems::add(std::string message) {
    if (count_++ < max_messages) messages_.push_back(std::move(message));
}

Result<void> Problems::result() const {
    if (count_ == 0) return {};
    std::string all;
    for (const std::string& message : messages_) all += (all.empty() ? "" : "; ") + message;
    if (count_ > messages_.size())
        all += format("; and %llu more", Number(count_ - messages_.size()));
    if (!last_.empty()) all += "; " + last_;
    return Error{all};
}

std::string conflict_name(std::string_view name, u32 number) {
    std::string ending = format(".gpu-run-conflict-%u", number);
    usize kept = std::min<usize>(name.size(), max_name - ending.size());
    while (kept < name.size() && kept > 0 && (u8(name[kept]) & 0xc0) == 0x80) kept--;
    return std::string(name.substr(0, kept)) + ending;
}

std::string staged_name(u64 number) { return format("%08llu", Number(number)); }

bool rename_new(int from, const std::string& old_name, int to, const std::string& new_name) {
    if (renameat2(from, old_name.c_str(), to, new_name.c_str(), RENAME_NOREPLACE) == 0) return true;
    if (errno != EINVAL && errno != ENOSYS) return false;
    // This file system cannot rename without replacing, so look first.
    struct stat info;
    if (is_there(to, new_name, info)) {
        errno = EEXIST;
        return false;
    }
    return errno == ENOENT && renameat(from, old_name.c_str(), to, new_name.c_str()) == 0;
}

std::string manifest_of(const std::vector<Row>& rows) {
    std::string text(manifest_head);
    for (const Row& row : rows) {
        switch (row.kind) {
            case Row::Kind::place:
                text += format("place %llu ", Number(row.staged)) + text_of(row.expected);
                break;
            case Row::Kind::remove: text += "remove " + text_of(row.expected); break;
            case Row::Kind::remove_directory: text += "remove-directory"; break;
            case Row::Kind::set_times:
                text += format("times %lld %lld", (long long)row.accessed, (long long)row.modified);
                break;
        }
        text += format(" %zu ", row.path.size()) + row.path + "\n";
    }
    return text + format("end %zu \n", rows.size());
}

Result<std::vector<Row>> parse_manifest(std::string_view text) {
    Reader reader(text);
    TRY(reader.want(manifest_head));
    std::vector<Row> rows;
    while (!reader.has("end ")) rows.push_back(TRY(parse_row(reader)));
    u64 at = reader.at(), count = TRY(reader.number<u64>());
    TRY(reader.want("\n"));
    if (count != rows.size() || !reader.is_at_end())
        return Error{"not as many rows as it says", at};
    return rows;
}

Result<Transaction> Transaction::begin(int directory, std::string shown,
                                       const WriteListener& listener) {
    struct stat before;
    if (fstat(directory, &before) != 0) return Error{reason(errno)};
    for (;;) {
        if (mkdirat(directory, staging_name, 0700) != 0 && errno != EEXIST)
            return Error{reason(errno)};
        File folder = TRY(lock_folder(directory, shown));
        if (!folder) continue;  // the one that had it has removed it
        TRY(finish_or_undo(directory, folder, shown, listener));
        return Transaction(directory, std::move(shown), std::move(folder), before);
    }
}

Transaction::~Transaction() {
    if (!folder_ || leaves_folder_) return;
    // The folder is empty if all was committed. If it cannot be emptied, which takes memory and
    // descriptors, the next run does that.
    if (unlinkat(directory_, staging_name, AT_REMOVEDIR) != 0) {
        Result<void> emptied = guarded([&]() -> Result<void> {
            if (!empty_folder(folder_.get())) return Error{"not empty"};
            return {};
        });
        if (!emptied) return;
        unlinkat(directory_, staging_name, AT_REMOVEDIR);
    }
    if (!own_times_) return;
    timespec times[2] = {time_of(own_times_->accessed), time_of(own_times_->modified)};
    futimens(directory_, times);
}

Result<void> Transaction::write_manifest(const std::vector<Row>& rows, bool is_synced) {
    auto fail = [] { return Error{reason(errno)}; };
    if (!is_synced && syncfs(folder_.get()) != 0) return fail();
    unlinkat(folder_.get(), new_manifest_name, 0);
    File file(openat(folder_.get(), new_manifest_name,
                     O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    const std::string text = manifest_of(rows);
    if (!file ||
        !write_at(file.get(), 0, {reinterpret_cast<const u8*>(text.data()), text.size()}) ||
        fsync(file.get()) != 0 || !file.close() ||
        renameat(folder_.get(), new_manifest_name, folder_.get(), manifest_name) != 0 ||
        fsync(folder_.get()) != 0)
        return fail();
    return {};
}

bool Transaction::commit(const std::vector<Row>& rows, bool is_synced, Problems& problems,
                         WriteProgress* progress) {
    if (rows.empty()) return true;
    if (Result<void> written = write_manifest(rows, is_synced); !written) {
        problems.add(format("cannot write back to '%s': %s", shown_.c_str(),
                            written.error().message.c_str()));
        unlinkat(folder_.get(), manifest_name, 0);
        return false;
    }
    for (const Row& row : rows)
        if (row.kind == Row::Kind::set_times && row.path.empty()) own_times_ = row;
    Executor executor(directory_, folder_.get(), shown_, problems, progress);
    executor.carry_out(rows);
    leaves_folder_ |= executor.leaves_some();
    if (!leaves_folder_) unlinkat(folder_.get(), manifest_name, 0);
    return !executor.has_failed();
}

Result<void> recover(int directory, const std::string& shown, const WriteListener& listener) {
    File folder = TRY(lock_folder(directory, shown));
    if (!folder) return {};
    TRY(finish_or_undo(directory, folder, shown, listener));
    unlinkat(directory, staging_name, AT_REMOVEDIR);
    return {};
}

}  // namespace gpurun::host
