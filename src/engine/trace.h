// What processes noted for people to read: debug_* calls of the module gpu, and traced system
// calls.
#pragma once

#include <string>

#include "abi/system.h"

namespace gpurun::engine {

// "42", or of a call "fd_write(1, \"Hello\", 1, 0x10f0) = success, 5". Trusts nothing in it.
std::string describe(const DebugRecord& record);
// The same with "process 3: " before it.
std::string to_string(const DebugRecord& record);

}  // namespace gpurun::engine
