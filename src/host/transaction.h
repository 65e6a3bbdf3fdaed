// Changes a directory of the host as a whole: after a kill at any point, the next run that uses the
// directory either finishes the change or undoes it, and never loses a file in between.
//
//   1. The folder `.gpu-run-transaction` is made in the directory and locked by flock. The lock
//      goes with the process that holds it, so a folder that can be locked belongs to nobody
//      alive.
//   2. Whatever is new is written into the folder under a number: files, symbolic links, and new
//      directories with all that is in them.
//   3. The manifest lists what is to be done, a row for each name. It and all that was staged are
//      synced; then it is renamed from `manifest.new` to `manifest`. From then on the change is
//      finished, until then it is undone by emptying the folder.
//   4. The rows are carried out in their order: new names are given, then old ones are removed,
//      then those names are given that something of another kind had. A name is given by a rename,
//      so a row is done exactly if what it stages is gone; carrying a row out again is harmless.
//      One thread does all of it: the kernel has one lock for all renames between directories.
//   5. The changed directories are synced, then manifest and folder are removed.
//
// Each row says what its name is expected to lead to. Where it leads to something else, somebody
// else changed it meanwhile: that is kept, and ours gets the name `NAME.gpu-run-conflict-N` beside
// it. This is looked at right before the rename, in recovery too.
//
// A manifest is not trusted: it is ours only in a folder that this user owns and nobody else can
// write to, and every path in it is reached from the directory without following a link.
#pragma once

#include <sys/stat.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ints.h"
#include "base/result.h"
#include "host/files.h"
#include "host/write_progress.h"

namespace gpurun::host {

// The folder's name. Programs do not see it, and cannot make a file of that name on the host.
inline constexpr const char* staging_name = ".gpu-run-transaction";

inline constexpr usize few_files = 32;  // are synced one by one, more of them all at once

// The properties by which a file or a symbolic link is recognised as unchanged.
struct Identity {
    u64 inode = 0, size = 0;
    s64 modified = 0, changed = 0;  // ns

    static Identity of(const struct stat& info);
    bool operator==(const Identity&) const = default;
};

// What a name is expected to lead to, unless somebody else has changed it.
struct Expected {
    enum class Kind : u32 { nothing, file, directory } kind = Kind::nothing;
    Identity identity = {};  // of a file or a symbolic link
};

struct Row {
    enum class Kind : u32 { place, remove, remove_directory, set_times } kind;
    std::string path;        // below the directory; set_times: may be empty, the directory itself
    u64 staged = 0;          // place: the number of what gets the name
    Expected expected = {};  // place, remove
    s64 accessed = 0, modified = 0;  // set_times: ns
};

// Collects what went wrong. The message has the first few, and how many more there were.
class Problems {
public:
    void add(std::string message);
    // Sets a text that the message ends with, however many problems there are. It is no problem of
    // its own.
    void add_last(std::string message) { last_ = std::move(message); }
    u64 count() const { return count_; }
    Result<void> result() const;  // an Error that names them

private:
    static constexpr u64 max_messages = 5;
    std::vector<std::string> messages_;
    std::string last_;
    u64 count_ = 0;
};

class Transaction {
public:
    // Locks the directory, and waits for those who have it locked now. Finishes or undoes what a
    // killed process left there, with a note. `shown` is what messages call the directory.
    static Result<Transaction> begin(int directory, std::string shown,
                                     const WriteListener& listener = {});
    Transaction(Transaction&&) = default;
    Transaction& operator=(Transaction&&) = delete;
    ~Transaction();  // undoes what was not committed

    int folder() const { return folder_.get(); }
    u64 next_number() { return next_number_++; }

    // Returns the directory's properties from before the folder was made in it.
    const struct stat& before() const { return before_; }

    // Carries all rows out, even if this process is killed meanwhile: then the next run does. If
    // `is_synced`, what they place was synced by itself. A row that cannot be carried out is a
    // problem, and keeps the rows after it from removing anything. Returns false if there was one;
    // files that others changed are problems too, but nothing is lost by them. More rows may follow
    // later. `progress` gets a step for each name.
    bool commit(const std::vector<Row>& rows, bool is_synced, Problems& problems,
                WriteProgress* progress = nullptr);

private:
    Transaction(int directory, std::string shown, File folder, const struct stat& before)
        : directory_(directory),
          shown_(std::move(shown)),
          folder_(std::move(folder)),
          before_(before) {}
    Result<void> write_manifest(const std::vector<Row>& rows, bool is_synced);

    int directory_;
    std::string shown_;
    File folder_;
    struct stat before_;
    u64 next_number_ = 0;
    bool leaves_folder_ = false;    // with what is still to be done
    std::optional<Row> own_times_;  // removing the folder changes the directory's times once more
};

// Finishes or undoes, with a note, what a killed process left in a directory. Does nothing if there
// is no staging folder. Returns an Error if there is one and neither is possible.
Result<void> recover(int directory, const std::string& shown, const WriteListener& listener = {});

// Writes a manifest's text, and reads it back. Text that manifest_of() cannot have written is an
// Error.
std::string manifest_of(const std::vector<Row>& rows);
Result<std::vector<Row>> parse_manifest(std::string_view text);

// Returns the name that `number` has in the staging folder.
std::string staged_name(u64 number);
// Returns the name beside `name` for a file that cannot have it: NAME.gpu-run-conflict-N.
std::string conflict_name(std::string_view name, u32 number);
// Renames unless something has the new name. Returns false, with errno, if that fails: EEXIST if
// something has it.
bool rename_new(int from, const std::string& old_name, int to, const std::string& new_name);

}  // namespace gpurun::host
