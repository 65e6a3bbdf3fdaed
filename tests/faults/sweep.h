// Has a run of a mode fail at one point after another, and looks at what each leaves.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "modes.h"

namespace gpurun::faults {

// Tries points of a kind in a mode, in each of its ways, and prints how many: all of them, or some
// `most` that lie evenly.
void sweep(const Mode& mode, Kind kind, u64 most = ~u64{0});

// What there is to try.
struct Case {
    const Mode* mode;
    Kind kind;
};
std::vector<Case> cases();
std::string name_of_case(const testing::TestParamInfo<Case>& info);

}  // namespace gpurun::faults
