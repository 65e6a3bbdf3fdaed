// Carries out fd_sync of a file that is to be written back: its contents go to the host at once,
// whatever happens to the process later. Also remembers what was written, for write_back().
#pragma once

#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>

#include "abi/system.h"
#include "base/ints.h"
#include "base/result.h"
#include "host/transaction.h"

namespace gpurun::host {

class SystemBase;

// What was written through so far, by preopen and path.
struct WrittenThrough {
    struct File {
        Identity identity;
        Handle node;      // that had the name
        bool is_of_base;  // the base has a file of that name
    };
    using Place = std::pair<u32, std::string>;
    std::map<Place, File> files;
    std::set<Place> directories;  // that were made for them
    std::set<Place> conflicts;    // that others changed: they were put beside, once
};

// Reads system memory of a device on which nothing runs meanwhile.
using ReadSystem = std::function<Result<void>(u64 offset, std::span<u8> bytes)>;

// Writes a file of a process to the host, and returns once it is on the disk. Does nothing if the
// file no longer has a name, or none in a writable mount. If others changed the host's file
// meanwhile, that is kept, the process's is put beside it, and the result is an Error.
// `memory_size` is that of system memory in bytes.
Result<void> write_through(const ReadSystem& read, u64 memory_size, Handle process, Handle node,
                           const SystemBase& system_base);

}  // namespace gpurun::host
