// Programs of the resident machine: how they come there, piece by piece, while it runs. All lanes
// of the warp that serves the mailbox call these together. Nothing of what the host says is
// trusted.
#pragma once

#include "runtime/machine/machine.h"

namespace gpurun::rt {

enum class LoadResult : u32 { ok, no_memory, invalid };

// Finds room for a program, of which pieces will come.
LoadResult begin_program(const Machine& m, const ProgramInfo& info);
// Puts a piece of a program where it belongs.
LoadResult add_program_data(const Machine& m, const ProgramData& data, const u8* bytes, u64 size);
// Makes the queues of a program that is all there. Returns false if there is no memory for them.
bool make_program_queues(const Machine& m, u32 number);
// Lets processes be started of a program.
void publish_program(const Machine& m, u32 number);

// Gives a queue, which has none yet, slots for every task. Returns false if there is no memory.
bool make_queue(const Machine& m, RunQueue& queue);

}  // namespace gpurun::rt
