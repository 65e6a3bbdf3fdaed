// The device's end of the mailbox (abi/machine.h): what the first warp of a launch does.
#pragma once

#include "runtime/machine/machine.h"

namespace gpurun::rt {

inline constexpr u64 stats_every_ns = 10'000'000;  // MachineStats are added up, and reported

// Serves the mailbox, by all lanes of the warp. Tells the other warps to stop when the host says
// so, and returns then or after `until` ns (0: no limit).
void serve_mailbox(const Machine& m, Mailbox& mailbox, u64 until);

}  // namespace gpurun::rt
