// Keeps what takes long to make in a folder, named by a hash of what it was made from. Entries are
// written whole and renamed into place, so that processes can share the folder; a damaged one is
// dropped, with a note. The entries that were not used for longest are removed when there is too
// much. Entries are machine code that runs: a folder or an entry that another user could have made
// or changed is not used, with a note. No symbolic link is followed, and nothing but regular files
// is read.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ints.h"

namespace gpurun::cache {

class Cache {
public:
    // With an empty folder name nothing is kept.
    explicit Cache(std::string folder);
    // Returns $GPURUN_CACHE, $XDG_CACHE_HOME/gpu-run or ~/.cache/gpu-run; the first may be empty.
    static std::string default_folder();

    std::optional<std::vector<u8>> get(std::string_view key) const;
    // Writes an entry; a failure is ignored. `label` is a name for people.
    void put(std::string_view key, std::span<const u8> content, std::string_view label = "") const;
    // Removes an entry whose content get() returned and its user found wrong, with a note.
    void drop(std::string_view key, const char* why) const;

    struct Entry {
        std::string name;  // of its file
        std::string kind;  // the first word of its key
        std::string label;
        u64 bytes;
        s64 used;  // seconds since 1970
    };
    static constexpr u64 most_bytes = u64{1} << 30;  // of all entries, unless a limit was set
    // Returns how many bytes all entries may have before the least recently used are removed.
    u64 limit() const;
    bool set_limit(u64 bytes) const;  // keeps it in the folder, and trims
    const std::string& folder() const { return folder_; }
    std::vector<Entry> entries() const;  // those used last come first
    // Removes the least recently used entries until the rest has at most so many bytes.
    void trim(u64 bytes) const;

private:
    std::string folder_;
};

}  // namespace gpurun::cache
