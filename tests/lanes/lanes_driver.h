// A CUDA driver without a GPU that runs kernels: memory is the host's, and the kernels are those of
// warps.h.
#pragma once

#include "device/cuda/cuda_driver.h"

namespace gpurun::test {

// Fills in a driver that fill_in() of fake_cuda.h has filled in before. The device has one
// multiprocessor, with a block of lanes.
void fill_in_lanes(device::cuda::Driver& driver);
// Returns such a driver, for a GPU of its own.
device::cuda::Driver& lanes_driver();

}  // namespace gpurun::test
