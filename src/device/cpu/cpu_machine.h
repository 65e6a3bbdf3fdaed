// A resident launch on the CPU: a thread of the host for each warp.
#pragma once

#include "device/device.h"

namespace gpurun::device {

// The function that each warp of a launch runs: rt::run_machine (scheduler/scheduler.h), or a
// test's.
using RunWarp = void(const MachineParams& params, u32 warp, u8* stack_limit);

std::unique_ptr<MachineRunner> make_cpu_machine(u8* system, u8* pages, u32 warps, RunWarp* run);

}  // namespace gpurun::device
