// Programs of the resident machine: how they come there, piece by piece, while it runs. All lanes
// of the warp that serves the mailbox call these together. Nothing of what the host says is
// trusted.
#pragma once

#include "runtime/machine.h"

namespace gpurun::rt {

enum class Bringing : u32 { fine, no_memory, cannot_be };

// Room for one, of which pieces will come.
Bringing begin_program(const Machine& m, const ProgramInfo& info);
Bringing add_program_data(const Machine& m, const ProgramData& data, const u8* bytes, u64 size);
// When all of it is there: false: there is no memory for its queues.
bool make_program_queues(const Machine& m, u32 number);
// From now on there can be processes of it.
void publish_program(const Machine& m, u32 number);

// Slots for every task, once.
bool make_queue(const Machine& m, RunQueue& queue);

}  // namespace gpurun::rt
