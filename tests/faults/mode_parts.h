// What modes of different devices share.
#pragma once

#include "modes.h"

namespace gpurun::faults {

using OpenDevice = gpurun_error*(gpurun_device** device);

Outcome run_alone(const Folder& folder, const Plan& plan, Seen& seen, gpurun_tier tier,
                  OpenDevice* open);
Outcome run_many(const Folder& folder, const Plan& plan, Seen& seen, gpurun_tier tier,
                 OpenDevice* open);
Outcome run_machine(const Folder& folder, const Plan& plan, Seen& seen, gpurun_tier tier,
                    OpenDevice* open);

}  // namespace gpurun::faults
