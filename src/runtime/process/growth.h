// Stacks and memories that become larger while their machine runs.
#pragma once

#include "runtime/machine/tasks.h"

namespace gpurun::rt {

// Gives a task that has outgrown its stack or memory more of it, and makes it ready. All lanes call
// it; the task is off its lane, and all others of its process with it.
[[gnu::noinline]] void grow_task(const Machine& m, Pulse& pulse, u32 index);
// Asks the other threads of a task's process to leave their lanes, so that a memory that they share
// can grow. Returns true if they have; else the last to leave grows it.
bool ask_for_quiet(const Machine& m, u32 index);

}  // namespace gpurun::rt
