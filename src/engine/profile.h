// Where a process spends its time: its stack, looked at whenever a slice of time is over.
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
    // Of the thread in use, which stands still.
    Result<void> look(Store& store);
    // What was seen, with names.
    std::vector<StackSample> samples(Store& store) const;

private:
    std::map<std::vector<u32>, u64> seen_;  // by positions of code, innermost first
    u64 others_ = 0;                        // of stacks that are not kept
};

}  // namespace gpurun::engine
