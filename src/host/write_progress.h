// Counts what has been written back to the host, and reports it to a listener.
#pragma once

#include <functional>

#include "base/ints.h"

namespace gpurun::host {

// Called with how many files of how many have been written back: first with 0, then about ten times
// a second, last with all.
using WriteListener = std::function<void(u64 done, u64 all)>;

class WriteProgress {
public:
    WriteProgress(const WriteListener& listener, u64 files);
    WriteProgress(const WriteProgress&) = delete;
    WriteProgress& operator=(const WriteProgress&) = delete;
    ~WriteProgress();

    // A file that is new or changed takes two steps: it is staged, then it gets its name.
    static constexpr u64 steps_of_file = 2;
    void add(u64 steps);

private:
    const WriteListener& listener_;
    const u64 files_;
    u64 steps_ = 0;
    s64 reported_at_;  // ns
};

}  // namespace gpurun::host
