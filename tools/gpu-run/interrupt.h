// Ctrl-C and time limits: what may end a run early.
#pragma once

#include <optional>

#include "device/device.h"

namespace gpurun::tool {

// Watches for Ctrl-C from now on: the first one asks the program to stop, a second one ends
// gpu-run itself.
device::RunControl run_control(std::optional<double> timeout_seconds);
bool was_interrupted();

}  // namespace gpurun::tool
