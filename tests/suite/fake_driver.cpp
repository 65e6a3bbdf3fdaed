// A CUDA driver without a GPU, for by-hand: linked with the kernel of one job, compiled for the
// host, it runs that for every lane of a launch, one after another.
#include "fake_driver.h"

#include <cstdlib>
#include <cstring>
#include <string>

#include "device/cuda/cuda_driver.h"

using gpurun::u32;
using gpurun::u64;
using gpurun::usize;
using gpurun::device::cuda::DevicePointer;
using gpurun::device::cuda::DriverHandle;
using gpurun::device::cuda::Status;

extern "C" {

unsigned fake_block, fake_blocks, fake_lane, fake_lanes;

// Those of the kernel (bench/suite/by_hand/kernel.c).
extern char* suite_arenas;
extern u64 suite_arena_size;
void suite_kernel(u32 count, u32 step, u32* results);

// What by-hand wants to be done. fake_driver_rest.cpp has all the others.

Status cuMemGetInfo_v2(usize* free, usize* total) {
    *free = *total = 1 << 30;
    return 0;
}
Status cuMemAlloc_v2(DevicePointer* pointer, usize bytes) {
    *pointer = DevicePointer(std::malloc(bytes));
    return *pointer ? 0 : gpurun::device::cuda::out_of_memory;
}
Status cuMemcpyHtoDAsync_v2(DevicePointer to, const void* from, usize bytes, DriverHandle) {
    std::memcpy(reinterpret_cast<void*>(to), from, bytes);
    return 0;
}
Status cuMemcpyDtoHAsync_v2(void* to, DevicePointer from, usize bytes, DriverHandle) {
    std::memcpy(to, reinterpret_cast<void*>(from), bytes);
    return 0;
}
Status cuMemsetD8Async(DevicePointer to, unsigned char value, usize bytes, DriverHandle) {
    std::memset(reinterpret_cast<void*>(to), value, bytes);
    return 0;
}
Status cuModuleGetGlobal_v2(DevicePointer* pointer, usize* bytes, DriverHandle, const char* name) {
    *bytes = sizeof(u64);
    *pointer = std::string(name) == "suite_arenas" ? DevicePointer(&suite_arenas)
                                                   : DevicePointer(&suite_arena_size);
    return 0;
}
Status cuLaunchKernel(DriverHandle, unsigned blocks, unsigned, unsigned, unsigned lanes, unsigned,
                      unsigned, unsigned, DriverHandle, void** parameters, void**) {
    fake_blocks = blocks, fake_lanes = lanes;
    for (fake_block = 0; fake_block < blocks; fake_block++)
        for (fake_lane = 0; fake_lane < lanes; fake_lane++)
            suite_kernel(*static_cast<u32*>(parameters[0]), *static_cast<u32*>(parameters[1]),
                         *static_cast<u32**>(parameters[2]));
    return 0;
}

}  // extern "C"
