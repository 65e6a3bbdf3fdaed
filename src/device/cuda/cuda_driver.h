// The CUDA driver's functions, opened at run time: no toolkit is needed to build or to run.
// Every function used is one row; every call is counted and checked and its failure translated.
#pragma once

#include <atomic>
#include <map>
#include <string>

#include "base/ints.h"
#include "base/result.h"

namespace gpurun::device::cuda {

using Status = int;  // CUresult: 0 is success
using DevicePointer = u64;
using DriverHandle = void*;  // contexts, modules, functions, streams, events, links

inline constexpr Status not_ready = 600;
inline constexpr Status out_of_memory = 2;

#define GPURUN_CUDA_FUNCTIONS(F)                                                                   \
    F(init, cuInit, (unsigned flags))                                                              \
    F(driver_version, cuDriverGetVersion, (int* version))                                          \
    F(device_count, cuDeviceGetCount, (int* count))                                                \
    F(device_get, cuDeviceGet, (int* device, int ordinal))                                         \
    F(device_name, cuDeviceGetName, (char* name, int length, int device))                          \
    F(device_attribute, cuDeviceGetAttribute, (int* value, int attribute, int device))             \
    F(device_memory, cuDeviceTotalMem_v2, (usize * bytes, int device))                             \
    F(context_retain, cuDevicePrimaryCtxRetain, (DriverHandle * context, int device))              \
    F(context_release, cuDevicePrimaryCtxRelease_v2, (int device))                                 \
    F(context_set, cuCtxSetCurrent, (DriverHandle context))                                        \
    F(memory_info, cuMemGetInfo_v2, (usize * free, usize * total))                                 \
    F(memory_alloc, cuMemAlloc_v2, (DevicePointer * pointer, usize bytes))                         \
    F(memory_free, cuMemFree_v2, (DevicePointer pointer))                                          \
    F(host_alloc, cuMemHostAlloc, (void** pointer, usize bytes, unsigned flags))                   \
    F(host_free, cuMemFreeHost, (void* pointer))                                                   \
    F(host_device_pointer, cuMemHostGetDevicePointer_v2,                                           \
      (DevicePointer * pointer, void* host, unsigned flags))                                       \
    F(copy_to_device, cuMemcpyHtoDAsync_v2,                                                        \
      (DevicePointer to, const void* from, usize bytes, DriverHandle stream))                      \
    F(copy_to_host, cuMemcpyDtoHAsync_v2,                                                          \
      (void* to, DevicePointer from, usize bytes, DriverHandle stream))                            \
    F(fill_bytes, cuMemsetD8Async,                                                                 \
      (DevicePointer to, unsigned char value, usize bytes, DriverHandle stream))                   \
    F(stream_create, cuStreamCreate, (DriverHandle * stream, unsigned flags))                      \
    F(stream_destroy, cuStreamDestroy_v2, (DriverHandle stream))                                   \
    F(stream_query, cuStreamQuery, (DriverHandle stream))                                          \
    F(stream_synchronize, cuStreamSynchronize, (DriverHandle stream))                              \
    F(event_create, cuEventCreate, (DriverHandle * event, unsigned flags))                         \
    F(event_destroy, cuEventDestroy_v2, (DriverHandle event))                                      \
    F(event_record, cuEventRecord, (DriverHandle event, DriverHandle stream))                      \
    F(event_synchronize, cuEventSynchronize, (DriverHandle event))                                 \
    F(module_load, cuModuleLoadData, (DriverHandle * module, const void* image))                   \
    F(module_unload, cuModuleUnload, (DriverHandle module))                                        \
    F(module_function, cuModuleGetFunction,                                                        \
      (DriverHandle * function, DriverHandle module, const char* name))                            \
    F(module_global, cuModuleGetGlobal_v2,                                                         \
      (DevicePointer * pointer, usize * bytes, DriverHandle module, const char* name))             \
    F(function_attribute, cuFuncGetAttribute, (int* value, int attribute, DriverHandle function))  \
    F(occupancy, cuOccupancyMaxActiveBlocksPerMultiprocessor,                                      \
      (int* blocks, DriverHandle function, int block_lanes, usize shared_bytes))                   \
    F(context_limit, cuCtxSetLimit, (int limit, usize value))                                      \
    F(launch, cuLaunchKernel,                                                                      \
      (DriverHandle function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, \
       unsigned block_y, unsigned block_z, unsigned shared_bytes, DriverHandle stream,             \
       void** params, void** extra))                                                               \
    F(launch_cooperative, cuLaunchCooperativeKernel,                                               \
      (DriverHandle function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, \
       unsigned block_y, unsigned block_z, unsigned shared_bytes, DriverHandle stream,             \
       void** params))                                                                             \
    F(link_create, cuLinkCreate_v2,                                                                \
      (unsigned count, int* options, void** values, DriverHandle* link))                           \
    F(link_add, cuLinkAddData_v2,                                                                  \
      (DriverHandle link, int type, void* data, usize size, const char* name, unsigned count,      \
       int* options, void** values))                                                               \
    F(link_complete, cuLinkComplete, (DriverHandle link, void** cubin, usize* size))               \
    F(link_destroy, cuLinkDestroy, (DriverHandle link))                                            \
    F(error_name, cuGetErrorName, (Status status, const char** name))                              \
    F(error_text, cuGetErrorString, (Status status, const char** text))

// Functions that an older driver may lack.
#define GPURUN_CUDA_NEWER_FUNCTIONS(F)           \
    F(stream_wait_value, cuStreamWaitValue32_v2, \
      (DriverHandle stream, DevicePointer at, u32 value, unsigned flags))

template <class Signature>
class Function;
template <class... Parameters>
class Function<Status(Parameters...)> {
public:
    using Pointer = Status (*)(Parameters...);

    Status operator()(Parameters... parameters) const {
        calls_.fetch_add(1, std::memory_order_relaxed);
        return pointer_(parameters...);
    }
    explicit operator bool() const { return pointer_ != nullptr; }
    void set(Pointer pointer) { pointer_ = pointer; }
    u64 calls() const { return calls_.load(std::memory_order_relaxed); }

private:
    Pointer pointer_ = nullptr;
    mutable std::atomic<u64> calls_ = 0;
};

struct Driver {
#define F(name, symbol, parameters) Function<Status parameters> name;
    GPURUN_CUDA_FUNCTIONS(F)
    GPURUN_CUDA_NEWER_FUNCTIONS(F)
#undef F
    int version = 0;

    // Returns how often each function was called, by its symbol, without those that never were.
    std::map<std::string, u64> calls() const;

    // Returns an Error if `status` is one: "CUDA: what: text (CUDA_ERROR_NAME)".
    Result<void> check(Status status, const char* what) const;
};

// Returns the driver, which is opened and initialised once, or an Error that says what is missing.
Result<const Driver*> open_driver();

// CUdevice_attribute
enum Attribute : int {
    attribute_clock_khz = 13,
    attribute_multiprocessors = 16,
    attribute_kernel_timeout = 17,
    attribute_lanes_per_multiprocessor = 39,
    attribute_capability_major = 75,
    attribute_capability_minor = 76,
};

}  // namespace gpurun::device::cuda
