// Reads streams and changed files that processes left in system memory, and writes them back to
// directories of the host. Works on a copy of the arena, of which [0, bump) is enough, and does not
// trust it (host/arena.h).
#pragma once

#include <string>
#include <vector>

#include "abi/system.h"
#include "base/ints.h"
#include "base/result.h"
#include "host/arena.h"
#include "host/system_base.h"

namespace gpurun::host {

inline constexpr u32 max_tree_depth = 1024;              // of what a process made
inline constexpr u64 max_change_bytes = u64{256} << 20;  // of all paths of a process
inline constexpr u64 max_hole_bytes = u64{16} << 20;     // contents() beyond the arena's size

// Returns all bytes of a file or a stream. A file that is mostly holes can be larger than memory,
// which is an Error. Cold files need the base.
Result<std::string> contents(Arena arena, Handle node, const SystemBase* system_base = nullptr);

enum class ChangeKind : u32 {
    remove_file,  // or symbolic link
    remove_directory,
    make_directory,
    write_file,    // made, changed or moved here
    make_symlink,  // in place of what has the name, if that is no directory
};

struct Change {
    ChangeKind kind;
    u32 preopen;
    std::string path;  // below the preopen's directory
    Handle node;       // that now has the name, or had it
    Handle base = 0;   // what is made: that had the name in the base, or 0
};

// Returns how the files that a process sees differ from the base: first removals, those in a
// directory before the directory itself; then what is made, a directory before what is in it. What
// was renamed is removed and made, and so is a name that led to a directory and now does not, or
// the other way round. `directories` gets the base's and the process's node of each directory that
// both have and in which, or below which, something changed.
Result<std::vector<Change>> changes(Arena arena, Handle process,
                                    std::vector<Change>* directories = nullptr);

// Writes the changes below writable mounts to the host's directories, each of which is changed as a
// whole (host/transaction.h). What others changed since the base was made stays as it is, and what
// the process left is put beside it. What cannot be written there is put into a new folder below
// temporary_folder(). After a failure the rest is still written, but nothing is removed. The Error
// names the files that are not as the process left them, and where its versions are.
Result<void> write_back(Arena arena, Handle process, const SystemBase& system_base);

// Writes what the process made or changed to a folder, which is made when there is something; with
// several preopens, to a folder for each in it.
Result<void> store(Arena arena, Handle process, const SystemBase& system_base,
                   const std::string& folder);

}  // namespace gpurun::host
