// The platform of kernels that run a process on each warp. Its words lie together. The first lane
// interprets; the others help it with long copies and fills (together.h).
#pragma once

#include "base/ints.h"

namespace gpurun::rt {

inline constexpr bool may_be_resident = false;
inline constexpr bool lanes_are_processes = false;
inline constexpr bool memories_interleave = false;
inline constexpr u32 lane_stride = 1;

// Both ends of the stack, stack_window slots in all, are in shared memory, which is many times
// faster than global memory. Deeper stacks lie among the words.
#if GPURUN_WINDOW
using StackWord = __attribute__((address_space(3))) u32;
inline constexpr bool stack_is_window = true;
#else
using StackWord = u32;
inline constexpr bool stack_is_window = false;
#endif
inline constexpr u32 slot_stride = 1;

}  // namespace gpurun::rt

// The inner loop calls nothing, so that its variables have all registers; what is out of line
// is done by the outer loop. The next word of code is on its way while an instruction executes.
#define INTERPRETER_IS_THREADED 0
#define INTERPRETER_BEGIN                                   \
    for (u32 step = 0;; step++) {                           \
        u32 low, high, next_low, next_high;                 \
        fetch(code, pc, low, high);                         \
        for (;; step++) {                                   \
            if (step >= quantum) goto yield;                \
            if (u16(low) >= u32(first_rare)) break;         \
            fetch_ahead(code, pc + 1, next_low, next_high); \
            switch (u16(low)) {
#define CASE(name) case u32(CodeOp::name):
#define RARE_CASE(name)
#define INTERPRETER_CASES_END         \
    default: __builtin_unreachable(); \
        }                             \
        goto jumped;
#define INTERPRETER_STEP_END    \
    goto done;                  \
    jumped:                     \
    fetch(code, pc, low, high); \
    continue;                   \
    stepped:                    \
    low = next_low;             \
    high = next_high;           \
    }
#define INTERPRETER_OUT_OF_LINE \
    out_of_line:                \
    w = code[pc];
#define INTERPRETER_CHORE(chore) do_chore(chore);
// Stops at a call or a loop if machine code may go on there.
#if GPURUN_NATIVE
#define INTERPRETER_STOPS true
#else
#define INTERPRETER_STOPS false
#endif
#define INTERPRETER_AFTER(outcome)                                                     \
    if (outcome == Outcome::chunk) step += chunk_steps;                                \
    if (INTERPRETER_STOPS && (outcome == Outcome::chunk || outcome == Outcome::again)) \
        step = 1u << 31;                                                               \
    if (outcome >= Outcome::trap) goto done;
#define INTERPRETER_END \
    }                   \
    done:
#define NEXT(n)                   \
    {                             \
        pc += (n);                \
        if constexpr ((n) == 1) { \
            goto stepped;         \
        } else {                  \
            goto jumped;          \
        }                         \
    }
#define GO_COUNTED                              \
    {                                           \
        if (INTERPRETER_STOPS) step = 1u << 31; \
        goto jumped;                            \
    }
#define GO_OUT_OF_LINE goto out_of_line;
#define GO(distance)                                                \
    {                                                               \
        const s32 go_distance = (distance);                         \
        pc += u32(go_distance);                                     \
        if (INTERPRETER_STOPS && go_distance <= 0) step = 1u << 31; \
        goto jumped;                                                \
    }
#define FIELD_A (low >> 16)
#define FIELD_B (high & 0xffff)
#define FIELD_C (high >> 16)
#define FIELD_IMM high
