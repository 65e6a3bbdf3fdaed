// How processes ended, for people: in a few words, and as a table of many.
#pragma once

#include <gpurun/gpurun.hpp>

#include <string>
#include <vector>

#include "base/ints.h"

namespace gpurun::tool {

// Returns "exited with 3", "trap: unreachable in f at 0x2a", or the results of a function.
std::string describe(const api::Process& process);
// Returns "10 processes, all exited with 0".
std::string all_ended(u64 count, const std::string& ending);
// Returns true if it did not end by itself: it reached its time limit, or was interrupted.
bool is_stopped(const api::Process& process);

struct EndingCount {
    std::string ending;
    u64 count = 0;
    u64 first = 0;  // the first process that ended so
    bool is_success = false;
};
// On standard error, the most common first. One line if there is one ending.
void say_endings(std::vector<EndingCount> counts);

}  // namespace gpurun::tool
