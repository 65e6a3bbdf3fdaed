// Runs of each mode, by the C interface, that faults are injected into.
#pragma once

#include <gpurun/gpurun.h>

#include <filesystem>
#include <string>

#include "faults.h"

namespace gpurun::faults {

// What came of a run. A fault that nobody notices is fine where the results are right.
struct Outcome {
    std::string error;     // what the interface answered; empty: no error
    std::string reported;  // what the guest or the result says of it; empty: nothing
    std::string wrong;     // results that are not what they should be, though nobody said so
};

// Files of a run: made anew for each.
class Folder {
public:
    Folder();
    ~Folder();
    void reset() const;
    std::string path() const { return path_.string(); }
    std::string module() const { return (path_ / "guest.wat").string(); }
    std::string trapping_module() const { return (path_ / "traps.wat").string(); }
    std::string dump() const { return (path_ / "dump").string(); }
    std::string mount() const { return (path_ / "mount").string(); }
    // Empty: what a guest that went to its end left there is as it should be.
    std::string problem() const;

private:
    std::filesystem::path path_;
};

struct Mode {
    const char* name;
    // Arms, makes the run and disarms.
    Outcome (*run)(const Folder& folder, const Plan& plan, Seen& seen);
    // Blocks that a run leaves are counted: not where LLVM keeps some for later.
    bool is_counted;
};

extern const Mode alone, alone_streams, alone_native, many, many_native, chunks, machine,
    machine_native, machine_dump, script, cuda_alone, cuda_many, cuda_machine;

}  // namespace gpurun::faults
