// The functions of the fake driver that do nothing: fake_driver.cpp has the others.
#include "device/cuda/cuda_driver.h"

using gpurun::u32;
using gpurun::usize;
using gpurun::device::cuda::DevicePointer;
using gpurun::device::cuda::DriverHandle;
using gpurun::device::cuda::Status;

extern "C" {
#define F(name, symbol, parameters) \
    [[gnu::weak]] Status symbol parameters { return 0; }
GPURUN_CUDA_FUNCTIONS(F)
}
