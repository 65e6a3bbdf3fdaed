// Stacks and memories that become larger while their machine runs.
#pragma once

#include "runtime/tasks.h"

namespace gpurun::rt {

// All lanes, for one task that is off its lane and all others of its process with it.
[[gnu::noinline]] void grow_task(const Machine& m, Pulse& pulse, u32 index);
// A memory that threads share grows when all of them are off the lanes: true if they are.
bool ask_for_quiet(const Machine& m, u32 index);

}  // namespace gpurun::rt
