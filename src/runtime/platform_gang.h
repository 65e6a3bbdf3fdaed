// A process a lane: the words of the lanes of a warp interleave, so that lanes in lockstep touch
// neighbouring words, and the warp goes by one position a step.
#pragma once

#include "base/ints.h"

namespace gpurun::rt {
inline constexpr u32 lane_stride = 32;
}

// One instruction a step for the whole warp: the lowest position of its lanes is elected, and
// the lanes that stand there execute. So lanes that went different ways meet again. Now and
// then another lane's position is elected, in turn, so that none waits for ever.
#define INTERPRETER_IS_THREADED 0
#define INTERPRETER_BEGIN                                                       \
    bool live = thread_index != 0;                                              \
    for (u32 step = 0;; step++) {                                               \
        const u32 position = live ? pc : ~0u;                                   \
        u32 elected = warp_min(position);                                       \
        if (elected == ~0u) break;                                              \
        if ((step & 63) >= 60) {                                                \
            if (step >= quantum) break;                                         \
            if (popcount(ballot(live)) <= enough) break;                        \
            const u32 other = shuffle(position, step / 64 % warp_lanes);        \
            if (other != ~0u) elected = other;                                  \
        }                                                                       \
        if (position == elected) {                                              \
            w = code[pc];                                                       \
            switch (op_of(w)) {
#define CASE(name) case u32(CodeOp::name):
#define INTERPRETER_CASES_END                   \
            default: __builtin_unreachable();   \
            }                                   \
            goto stepped;
#define INTERPRETER_END \
            live = false; \
        stepped:;       \
        }               \
    }                   \
    if (live) state = ThreadState::ready;
#define NEXT(n)    \
    {              \
        pc += (n); \
        goto stepped; \
    }
#define GO_COUNTED goto stepped;
#define GO(distance)              \
    {                             \
        pc += u32(s32(distance)); \
        goto stepped;             \
    }
