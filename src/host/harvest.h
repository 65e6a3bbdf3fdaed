// What processes left in system memory, streams and changed files, and their way back to
// directories of the host. Takes a copy of the arena, which it does not trust (host/arena.h), and
// of which [0, bump) is enough.
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

// All bytes of a file or a stream. A file that is mostly holes can be larger than what memory has:
// then an Error. Cold files need the base.
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

// How the files that a process sees differ from the base: removals, what is in a directory before
// the directory; then what is made, the directory first. A thing that was renamed is removed and
// made; so is a name that led to a directory and now does not, or the other way round.
// `directories` gets those that are there before and after and have other entries, or others in
// them: the base's node, and the process's.
Result<std::vector<Change>> changes(Arena arena, Handle process,
                                    std::vector<Change>* directories = nullptr);

// Brings the changes below writable mounts to the host's directories, each of which is changed as a
// whole (host/transaction.h). What others changed since the base was made stays as it is, and what
// the process left is put beside it. What cannot be written there is put into a new folder below
// temporary_folder(). What fails does not keep the rest from being written, but nothing is removed
// then. The Error names what is not as the process left it, and where that is.
Result<void> write_back(Arena arena, Handle process, const SystemBase& system_base);

// Writes what the process made or changed to a folder, which is made when there is something; with
// several preopens, to a folder for each in it.
Result<void> store(Arena arena, Handle process, const SystemBase& system_base,
                   const std::string& folder);

}  // namespace gpurun::host
