// Bursts on the CPU.
#pragma once

#include "device/device.h"

namespace gpurun::device {

// Runs the parts one after another, each by a thread a core that takes the next process that nobody
// has taken.
Result<BurstOutcome> run_cpu_burst(std::span<const Burst> parts, const RunControl& control,
                                   u32 cores);

}  // namespace gpurun::device
