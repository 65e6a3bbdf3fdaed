// Devices of the interface: opening one, and listing them.
#include "device/device.h"

#include "api/handles.h"

using gpurun::Error;
using gpurun::Result;
using gpurun::api::guarded;

namespace gpurun::api {

thread_local const Inside* Inside::innermost_ = nullptr;

Result<void> Inside::check(const gpurun_device& device) {
    for (const Inside* it = innermost_; it; it = it->outer_)
        if (&it->device_ == device.device.get())
            return Error{
                "a callback of what runs on a device cannot run something on it; open the device "
                "once more for that"};
    return {};
}

}  // namespace gpurun::api

gpurun_error* gpurun_device_open(const char* name, gpurun_device** device) {
    return guarded([&]() -> Result<void> {
        if (!name || !device)
            return Error{"gpurun_device_open wants a name and a place for the device"};
        auto made = std::make_unique<gpurun_device>();
        made->device = TRY(gpurun::device::open_device(name));
        *device = made.release();
        return {};
    });
}

void gpurun_device_delete(gpurun_device* device) { delete device; }

const char* gpurun_device_id(const gpurun_device* device) {
    return device ? device->device->info().id.c_str() : nullptr;
}
const char* gpurun_device_name(const gpurun_device* device) {
    return device ? device->device->info().name.c_str() : nullptr;
}
uint64_t gpurun_device_memory(const gpurun_device* device) {
    return device ? device->device->info().memory_free : 0;
}
const char* gpurun_device_driver(const gpurun_device* device) {
    return device ? device->device->info().driver.c_str() : nullptr;
}
uint32_t gpurun_device_lanes(const gpurun_device* device) {
    return device ? device->device->info().lanes : 0;
}
gpurun_error* gpurun_device_prepare(gpurun_device* device, bool for_several) {
    return guarded([&]() -> Result<void> {
        if (!device) return Error{"gpurun_device_prepare wants a device"};
        TRY(gpurun::api::Inside::check(*device));
        gpurun::api::DeviceLock lock(*device);
        return device->device->prepare(for_several ? gpurun::device::Mode::burst
                                                   : gpurun::device::Mode::space);
    });
}

uint64_t gpurun_device_launches(const gpurun_device* device) {
    return device ? device->device->usage().launches : 0;
}
uint64_t gpurun_device_bytes_in(const gpurun_device* device) {
    return device ? device->device->usage().bytes_in : 0;
}
uint64_t gpurun_device_bytes_out(const gpurun_device* device) {
    return device ? device->device->usage().bytes_out : 0;
}
uint64_t gpurun_device_peak_bytes(const gpurun_device* device) {
    return device ? device->device->usage().peak_bytes : 0;
}
void gpurun_device_get_kernels(const gpurun_device* device, gpurun_kernels* kernels) {
    if (!kernels) return;
    gpurun::device::KernelCounts counts;
    if (device) counts = device->device->kernel_counts();
    *kernels = {counts.loaded, counts.shipped, counts.refused, counts.assembled};
}
void gpurun_device_driver_calls(const gpurun_device* device,
                                void (*each)(void* data, const char* name, uint64_t calls),
                                void* data) {
    if (!device || !each) return;
    gpurun_error_delete(guarded([&]() -> Result<void> {
        for (const auto& [name, calls] : device->device->driver_calls())
            each(data, name.c_str(), calls);
        return {};
    }));
}

gpurun_error* gpurun_devices_list(gpurun_devices** devices) {
    return guarded([&]() -> Result<void> {
        if (!devices) return Error{"gpurun_devices_list wants a place for the list"};
        auto made = std::make_unique<gpurun_devices>();
        made->infos = gpurun::device::list_devices(made->missing);
        *devices = made.release();
        return {};
    });
}

void gpurun_devices_delete(gpurun_devices* devices) { delete devices; }

size_t gpurun_devices_count(const gpurun_devices* devices) {
    return devices ? devices->infos.size() : 0;
}
const char* gpurun_devices_id(const gpurun_devices* devices, size_t index) {
    return index < gpurun_devices_count(devices) ? devices->infos[index].id.c_str() : nullptr;
}
const char* gpurun_devices_name(const gpurun_devices* devices, size_t index) {
    return index < gpurun_devices_count(devices) ? devices->infos[index].name.c_str() : nullptr;
}
uint64_t gpurun_devices_memory(const gpurun_devices* devices, size_t index) {
    return index < gpurun_devices_count(devices) ? devices->infos[index].memory_free : 0;
}
const char* gpurun_devices_missing(const gpurun_devices* devices) {
    return devices && !devices->missing.empty() ? devices->missing.c_str() : nullptr;
}
