// What processes noted for people to read: debug_* calls of the module gpu, and traced system
// calls.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/run.h"

namespace gpurun::engine {

// "42", or of a call "fd_write(1, \"Hello\", 1, 0x10f0) = success, 5". Trusts nothing in it.
std::string describe(const DebugRecord& record);
// The same with "process 3: " before it.
std::string to_string(const DebugRecord& record);

// What processes of a run noted: shown as it comes, or kept until it has ended.
class Notes {
public:
    // Where nobody takes lines as many as `most` are kept. Lines that are shown have the number of
    // the process before them, if `is_numbered`.
    Notes(const Run& run, u64 most, bool is_numbered)
        : take_line_(run.take_line), most_(most), is_numbered_(is_numbered) {}

    // Takes what there is in system memory.
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
