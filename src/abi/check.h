// What a failed CHECK of device code leaves for the host, in host memory that the device sees: the
// kernel is ended at once, and nothing else of the device can be read afterwards.
#pragma once

#include "base/ints.h"

namespace gpurun {

struct CheckRecord {
    u32 failed;  // written last
    u32 line;
    u32 process, detail;  // whatever the place has to say
    u32 block, lane;
    char file[72];
};
static_assert(sizeof(CheckRecord) == 96);

}  // namespace gpurun
