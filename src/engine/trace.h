// Shows what processes noted for people to read: debug_* calls of the module gpu, and traced system
// calls.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/run.h"

namespace gpurun::engine {

// Returns a record as text: "42", or for a call "fd_write(1, \"Hello\", 1, 0x10f0) = success, 5".
// Trusts nothing in it.
std::string describe(const DebugRecord& record);
// Returns a record as text, with "process 3: " before it.
std::string to_string(const DebugRecord& record);

// Takes what processes of a run note: shows it as it comes, or keeps it until the run has ended.
class Notes {
public:
    // If nobody takes lines, up to `most` are kept. Lines that are shown begin with the number of
    // the process if `is_numbered`.
    Notes(const Run& run, u64 most, bool is_numbered)
        : take_line_(run.take_line), most_(most), is_numbered_(is_numbered) {}

    // Takes the records that are in system memory.
    Result<void> take_from(System& system);
    void add(const DebugRecord& record);
    const std::vector<DebugRecord>& kept() const { return kept_; }
    u64 lost() const { return lost_ + lost_on_device_; }

private:
    std::function<void(const std::string& line)> take_line_;
    u64 most_;
    bool is_numbered_;
    std::vector<DebugRecord> kept_;
    u64 lost_ = 0, lost_on_device_ = 0;
};

}  // namespace gpurun::engine
