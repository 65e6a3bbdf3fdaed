// The interpreter: runs one thread of one process until it ends, blocks, or its quantum is
// used up. All of its state is in the process's words before and after.
#pragma once

#include "runtime/memory/state.h"

namespace gpurun::rt {

// Runs a thread for about `quantum` words of code. Returns the state that is in the thread's words
// then; `ready` means that the quantum was used up.
//
// On platforms with several lanes to a warp all lanes call it together, those without a thread
// with 0. It then returns once no more than `enough` of their threads can go on.
ThreadState run(const Process& process, u32 thread, s64 quantum, u32 enough = 0);

// Runs a thread that has machine code beside the interpreter. Returns when run() does, and before
// an instruction to which a call or a loop leads if `entry_at` has an entry for it; platforms whose
// interpreter does not look at entries return before any such instruction. The others set `used` to
// how much of the quantum they used, which may be more than it had, unless `used` is more already.
[[maybe_unused]] ThreadState run_to_entry(const Process& process, u32 thread, const u32* entry_at,
                                          s64 quantum, s64* used);

// Does what run() does, but `quantum` counts single instructions of code.
[[maybe_unused]] ThreadState step(const Process& process, u32 thread, s64 quantum);

}  // namespace gpurun::rt
