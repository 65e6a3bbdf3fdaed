// Runs a burst on a device that has kernels. Slots are small at first: processes that outgrow them
// go on in larger ones, which take turns with the others. A launch parks whenever lanes wait for
// the host, and the next one goes on.
#pragma once

#include "device/kernel_device.h"

namespace gpurun::burst {

// Runs all parts in one launch, which is repeated until every process has ended.
Result<device::BurstOutcome> run(device::KernelDevice& device, std::span<const device::Burst> parts,
                                 const device::RunControl& control);

}  // namespace gpurun::burst
