// What fd_sync means for a file that is to be written back: its contents go to the host at once,
// whatever becomes of the process later. Also remembers what was written, for write_back().
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

// Writes a file of a process to the host, and returns when it is there to stay. Does nothing if the
// file has no name any more, or none in a writable mount. What others changed meanwhile is kept and
// the file put beside it; that is an Error. `memory_size`: bytes of system memory.
Result<void> write_through(const ReadSystem& read, u64 memory_size, Handle process, Handle node,
                           const SystemBase& system_base);

}  // namespace gpurun::host
