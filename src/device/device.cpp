// Finds a device by its name.
#include "device/device.h"

#include <charconv>

#include "base/format.h"
#include "device/devices.h"

namespace gpurun::device {

Result<void> Space::use_native(const NativePart&) {
    return Error{"this device has no native tier"};
}

Activity Space::activity(u32) { return {}; }

Result<std::shared_ptr<const NativeCode>> Device::load_beside(const NativeCode&,
                                                              const codegen::Image&) {
    return Error{info().id + " loads machine code as a whole"};
}

Result<std::shared_ptr<const NativeCode>> Device::load_native(const codegen::Image&,
                                                              codegen::Target) {
    return Error{info().id + " has no native tier; --tier interp runs there"};
}

codegen::Target Device::space_target() const { return codegen::Target::host; }
codegen::Target Device::burst_target(Layout) const { return codegen::Target::host; }
codegen::Target Device::machine_target() const { return codegen::Target::host; }
bool Device::loads_beside_machine() const { return true; }
Assembler Device::assembler(codegen::Target) const { return {}; }

Result<NativeEntries> MachineRunner::use_native(std::span<const NativePart>, u64) {
    return Error{"this device's machines have no native tier; --tier interp runs there"};
}

Result<std::unique_ptr<Device>> open_device(std::string_view id) {
    if (id == "cpu") return make_cpu_device();
    if (id == "auto") {
        if (auto gpu = make_cuda_device(0)) return std::move(*gpu);
        return make_cpu_device();
    }
    u32 ordinal = 0;
    if (id.starts_with("cuda:")) {
        auto end = std::from_chars(id.data() + 5, id.data() + id.size(), ordinal);
        if (end.ec == std::errc() && end.ptr == id.data() + id.size())
            return make_cuda_device(ordinal);
    } else if (id == "cuda") {
        return make_cuda_device(0);
    }
    return Error{format("unknown device \"%.*s\"; there are auto, cpu, cuda and cuda:N",
                        int(id.size()), id.data())};
}

std::vector<DeviceInfo> list_devices(std::string& missing) {
    std::vector<DeviceInfo> devices{cpu_info()};
    Result<std::vector<DeviceInfo>> gpus = cuda_infos();
    if (gpus) {
        devices.insert(devices.end(), gpus->begin(), gpus->end());
    } else {
        missing = gpus.error().to_string();
    }
    return devices;
}

}  // namespace gpurun::device
