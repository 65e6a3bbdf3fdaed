// The scheduler of the resident machine: what each warp of its launch does until it is told to
// park.
#pragma once

#include "abi/machine.h"

namespace gpurun::rt {

// Does the part of warp `warp`, whose lanes call it together. Returns once the machine's stop word
// says so, or after params.until; everything is in memory then, and another launch goes on from
// there. `stack_limit`: how far down machine code may use the hardware's stack.
void run_machine(const MachineParams& params, u32 warp, u8* stack_limit);

}  // namespace gpurun::rt
