// Bursts on the CPU.
#pragma once

#include "device/device.h"

namespace gpurun::device {

// Runs the parts one after another, each by a thread for each core. A thread takes the next process
// that no other has taken.
Result<BurstOutcome> run_cpu_burst(std::span<const Burst> parts, const RunControl& control,
                                   u32 cores);

}  // namespace gpurun::device
