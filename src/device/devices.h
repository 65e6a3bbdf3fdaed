// Makes each kind of device. For device.cpp alone.
#pragma once

#include "device/device.h"

namespace gpurun::device {

DeviceInfo cpu_info();
std::unique_ptr<Device> make_cpu_device();

Result<std::vector<DeviceInfo>> cuda_infos();
Result<std::unique_ptr<Device>> make_cuda_device(u32 ordinal);

}  // namespace gpurun::device
