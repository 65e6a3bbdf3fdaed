// A piece of memory to be filled or copied. Platforms with idle lanes use all of them for it.
#pragma once

#include "base/ints.h"

namespace gpurun::rt {

struct Chore {
    u8* to;
    const u8* from;  // null: to be filled with `value`
    u64 count;       // 0: nothing to do
    u32 value;
};

}  // namespace gpurun::rt
