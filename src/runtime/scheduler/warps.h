// What warps of a machine are for, until they are told to park.
#pragma once

#include "runtime/machine/machine.h"

namespace gpurun::rt {

// Runs tasks, on all lanes of the calling warp.
void run_worker(const Machine& m, u32 warp, u64 until, u8* stack_limit);
// Wakes tasks whose time has come, and adds up statistics.
void run_clock(const Machine& m, u32 warp, u64 until);

}  // namespace gpurun::rt
