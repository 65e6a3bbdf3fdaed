// A vector as it lies in four slots: little-endian, lane 0 first.
#pragma once

#include "base/ints.h"

namespace gpurun {

struct V128 {
    u32 word[4];
};
static_assert(sizeof(V128) == 16);

}  // namespace gpurun
