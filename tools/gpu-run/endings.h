// How processes ended, for people: in a few words, and as a table of many.
#pragma once

#include <gpurun/gpurun.hpp>

#include <string>
#include <vector>

#include "base/ints.h"

namespace gpurun::tool {

// "exit 3", "trap: unreachable in f at 0x2a"; of a function that returned its results.
std::string describe(const api::Process& process);
// It did not end by itself: time was up, or somebody wanted it to stop.
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
