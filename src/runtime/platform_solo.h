// A process a warp: its words lie together, and the first lane alone interprets.
#pragma once

#include "base/ints.h"

namespace gpurun::rt {

inline constexpr u32 lane_stride = 1;

// Stacks lie among the words.
using StackWord = u32;
inline constexpr u32 slot_stride = lane_stride;

}  // namespace gpurun::rt

// The inner loop calls nothing, so that its variables have all registers; what is out of line
// is done by the outer loop.
#define INTERPRETER_IS_THREADED 0
#define INTERPRETER_BEGIN                           \
    for (u32 step = 0;; step++) {                   \
        u32 low, high;                              \
        for (;; step++) {                           \
            if (step >= quantum) goto yield;        \
            fetch(code, pc, low, high);             \
            if (u16(low) >= u32(first_rare)) break; \
            switch (u16(low)) {
#define CASE(name) case u32(CodeOp::name):
#define RARE_CASE(name)
#define INTERPRETER_CASES_END         \
    default: __builtin_unreachable(); \
        }                             \
        goto stepped;
#define INTERPRETER_STEP_END \
    goto done;               \
    stepped:;                \
    }
#define INTERPRETER_OUT_OF_LINE \
    out_of_line:                \
    w = code[pc];
#define INTERPRETER_AFTER(outcome) \
    if (outcome >= Outcome::trap) goto done;
#define INTERPRETER_END \
    }                   \
    done:
#define NEXT(n)       \
    {                 \
        pc += (n);    \
        goto stepped; \
    }
#define GO_COUNTED goto stepped;
#define GO_OUT_OF_LINE goto out_of_line;
#define GO(distance)              \
    {                             \
        pc += u32(s32(distance)); \
        goto stepped;             \
    }
#define FIELD_A (low >> 16)
#define FIELD_B (high & 0xffff)
#define FIELD_C (high >> 16)
#define FIELD_IMM high
