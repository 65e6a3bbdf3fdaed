// The same work in three ways: in bursts, on a machine, and in bursts of half a second with pauses
// of a second between them.
#pragma once

#include "resident/figures.h"

namespace resident_load {

struct CompareOptions {
    uint32_t processes = 20000;             // that are all there at the beginning
    uint32_t rounds = 20000;                // that each computes
    double seconds = 15;                    // in which others arrive
    uint32_t arrivals = 1000;               // of them a second
    gpurun_tier tier = GPURUN_TIER_INTERP;  // of all three ways
};

std::string run_compare(const gpu::Device& device, const std::string& guests,
                        const CompareOptions& options, Checks& checks);

}  // namespace resident_load
