// Finds ready tasks for the lanes of a warp.
#pragma once

#include "runtime/machine/machine.h"

namespace gpurun::rt {

// A queue with ready tasks. max_programs: there is none.
struct ReadyQueue {
    u32 program = max_programs, level = 0;
    QueueLook seen = {};
};

// Finds ready tasks of the best level that there is among the first `count` programs, or of the
// worst, from `start` on. To look costs no order; who takes something from it gets that with it.
ReadyQueue find_ready(const Machine& m, u32 count, u32 start, bool is_fair);
// Finds ready tasks of that program: the best there are or, to be fair, the worst.
ReadyQueue find_ready(const Machine& m, u32 program, bool is_fair);

}  // namespace gpurun::rt
