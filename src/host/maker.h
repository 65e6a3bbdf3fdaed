// Makes files, directories and symbolic links of the host from what a process left.
#pragma once

#include <string>

#include "base/result.h"
#include "host/arena.h"
#include "host/harvest.h"
#include "host/system_base.h"

namespace gpurun::host {

// Makes what a process left, each under a name that nothing has.
class Maker {
public:
    // If `syncs`, each file and directory is synced by itself.
    Maker(Arena arena, const SystemBase& system_base, bool syncs)
        : arena_(arena), system_base_(system_base), syncs_(syncs) {}

    Result<void> make_file(const Change& change, int directory, const std::string& name) const;
    Result<void> make_symlink(const Change& change, int directory, const std::string& name) const;
    // Sets mode, owner and times of a directory, once all that is in it has been made.
    void finish_directory(const Change& change, int directory) const;
    Result<void> check_name(const Change& change) const;

private:
    Result<void> write_content(int file, Content& content) const;
    const HostFile* source_of(const Change& change, const Node& node) const;

    Arena arena_;
    const SystemBase& system_base_;
    bool syncs_;
};

// Makes a directory unless there is one. Returns false, with errno, if that fails.
bool make_directory(int directory, const std::string& name);
// Opens a directory as open_directory() does, and makes the directories that are missing.
File reach_directory(int root, std::string_view path);

}  // namespace gpurun::host
