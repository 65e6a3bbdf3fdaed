// Finds a device by its name.
#include "device/device.h"

#include <charconv>

#include "base/format.h"
#include "device/devices.h"

namespace gpurun::device {

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
