// A process a warp: its words lie together, and the first lane alone interprets.
#pragma once

#include "base/ints.h"

namespace gpurun::rt {
inline constexpr u32 lane_stride = 1;
}

#define INTERPRETER_IS_THREADED 0
#define INTERPRETER_BEGIN                       \
    for (u32 step = 0;; step++) {               \
        if (step >= quantum) goto yield;        \
        w = code[pc];                           \
        switch (op_of(w)) {
#define CASE(name) case u32(CodeOp::name):
#define INTERPRETER_CASES_END                   \
            default: __builtin_unreachable();   \
        }
#define INTERPRETER_END \
        break;          \
    stepped:;           \
    }
#define NEXT(n)       \
    {                 \
        pc += (n);    \
        goto stepped; \
    }
#define GO_COUNTED goto stepped;
#define GO(distance)              \
    {                             \
        pc += u32(s32(distance)); \
        goto stepped;             \
    }
