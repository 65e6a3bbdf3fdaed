// A folder of things that take long to make, named by a hash of what they were made from.
// Entries are written whole and renamed into place, so that processes can share it; one that
// does not check out is dropped, with a note. What has not been used for longest goes when there is
// too much. Entries are machine code that runs: whatever another user could have made or changed,
// a folder or an entry, is not used, with a note. No symbolic link is followed, and nothing but
// regular files is read.
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
    // An empty folder name: nothing is kept.
    explicit Cache(std::string folder);
    // $GPURUN_CACHE, $XDG_CACHE_HOME/gpu-run or ~/.cache/gpu-run; the first may be empty.
    static std::string default_folder();

    std::optional<std::vector<u8>> get(std::string_view key) const;
    // Failing is no error. `label` is what a person knows it by.
    void put(std::string_view key, std::span<const u8> content, std::string_view label = "") const;
    // For whoever finds that what it got is no good.
    void drop(std::string_view key, const char* why) const;

    struct Entry {
        std::string name;  // of its file
        std::string kind;  // the first word of its key
        std::string label;
        u64 bytes;
        s64 used;  // seconds since 1970
    };
    static constexpr u64 most_bytes = u64{1} << 30;  // of all entries, unless a limit was set
    // How much all entries may have: then those go that were not used for longest.
    u64 limit() const;
    bool set_limit(u64 bytes) const;  // keeps it in the folder, and trims
    const std::string& folder() const { return folder_; }
    std::vector<Entry> entries() const;  // those used last come first
    // Removes the oldest until the rest has no more bytes than that.
    void trim(u64 bytes) const;

private:
    std::string folder_;
};

}  // namespace gpurun::cache
