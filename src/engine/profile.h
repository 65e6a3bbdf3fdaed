// Finds where processes spend their time: looks at their stacks whenever a slice of time is over.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/store.h"

namespace gpurun::engine {

struct StackSample {
    std::vector<std::string> functions;  // outermost first
    u64 count = 0;                       // how often it was seen
};

class Sampler {
public:
    // Counts the stack of a process that stands still: the store's own, or one of a burst that was
    // made there. It counts `times`, for others that are not looked at.
    Result<void> look(Store& store, device::ProcessMemory& process, u64 times = 1);
    // Returns the stacks that were seen, with names of functions.
    std::vector<StackSample> samples(Store& store) const;

private:
    std::map<std::vector<u32>, u64> seen_;  // by positions of code, innermost first
    u64 others_ = 0;                        // of stacks that are not kept
};

// Puts the stacks of several samplers together, by their functions.
class MergedSamples {
public:
    // `root` becomes the outermost function, if it is not empty.
    void add(const std::vector<StackSample>& samples, const std::string& root = "");
    std::vector<StackSample> samples() const;

private:
    std::map<std::vector<std::string>, u64> seen_;
};

}  // namespace gpurun::engine
