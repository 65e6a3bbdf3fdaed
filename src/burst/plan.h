// Plans how many slots the parts of a burst get, how large they are, and how they are spread over
// warps. This is arithmetic alone and uses no device.
#pragma once

#include <algorithm>

#include "burst/slot_layout.h"

namespace gpurun::burst {

// The warps, lanes and room that the processes of a part get.
struct Plan {
    Layout layout = Layout::linear;
    u32 warp_lanes = 0;
    u64 words_per_warp = 0, bytes_per_lane = 0;  // both in bytes
    u64 warps = 0;
    u32 lanes = 0;  // of each warp that have processes

    // Returns how many lanes of a warp have room for memories. Where those interleave, lanes
    // without a process have room too.
    u32 lanes_with_bytes() const { return layout == Layout::linear ? lanes : warp_lanes; }
    double warp_size() const {
        return double(words_per_warp) + double(bytes_per_lane) * lanes_with_bytes();
    }
    double size() const { return double(warps) * warp_size(); }
};

// Returns the size of a part's slots in a stage: stage 0 has the smallest, each further one four
// times as much room, and the last as much as processes may have. `lanes` is how many the device
// has, `free` its free memory.
SlotSize slot_size(const Burst& part, u32 stage, u64 lanes, u64 free);

// Chooses warps and lanes for each plan: as many warps as can be `resident` and have room, shared
// by how many processes the parts have; one at least.
void spread(std::span<Plan> plans, std::span<const u64> processes, u64 resident, double room);

}  // namespace gpurun::burst
