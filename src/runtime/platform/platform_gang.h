// The platform of kernels that run a process on each lane. The words of the lanes of a warp
// interleave, so that lanes in lockstep touch neighbouring words, and the warp executes one
// position of the code at a step.
#pragma once

#include "abi/machine.h"
#include "base/ints.h"

#ifndef GPURUN_LANES
#define GPURUN_LANES 32
#endif

namespace gpurun::rt {

inline constexpr bool stack_is_window = false;
inline constexpr bool lanes_are_processes = true;
#if GPURUN_INTERLEAVED
inline constexpr bool memories_interleave = true;
#else
inline constexpr bool memories_interleave = false;
#endif
#if GPURUN_RESIDENT
inline constexpr bool may_be_resident = true;
inline constexpr u32 lane_stride = 1;  // a process goes from lane to lane: its words lie together
#else
inline constexpr bool may_be_resident = false;
inline constexpr u32 lane_stride = GPURUN_LANES;
#endif
inline constexpr u32 slow_bit = 1u << 31;  // of a position: this lane waits to go out of line

// Steps take so many bits: a quantum has fewer steps than that can count.
inline constexpr u32 followed_shift = 27;
inline u32 steps_of(u32 turn) { return turn & ((1u << followed_shift) - 1); }
inline u32 followed_in(u32 turn) { return turn >> followed_shift; }

// Stacks of up to gang_stack_slots are in the lane's local memory: its cache keeps what
// was just written, where that of global memory does not. Deeper ones lie among the words.
// Those of the resident machine may be either.
#if GPURUN_RESIDENT
using StackWord = u32;
inline constexpr u32 slot_stride = 1;
inline constexpr u32 lane_stack_slots = resident_stack_slots;  // of local memory
// Warps without work nap between looks at the queues: each look is traffic on cache lines that
// working warps need, and there are thousands of warps.
inline constexpr u32 longest_nap_ns = 500'000, longest_eager_nap_ns = 1'000,
                     longest_mailbox_nap_ns = 1'000, longest_clock_nap_ns = 20'000;
#elif GPURUN_LOCAL_STACK
using StackWord = __attribute__((address_space(5))) u32;
inline constexpr u32 slot_stride = 1;
#else
using StackWord = u32;
inline constexpr u32 slot_stride = lane_stride;
#endif

}  // namespace gpurun::rt

// The warp executes one instruction at a step: it elects the lowest position of its lanes, and the
// lanes that stand there execute. So lanes that went different ways meet again. But a lane that
// never leaves a loop would keep those behind it waiting: so a quarter of the steps follow one lane
// after another, whatever its position.
//
// The inner loop calls nothing, so that its variables have all registers; what is out of line
// is done by the outer loop.
#define INTERPRETER_IS_THREADED 0
// `turn` has the steps so far and, in its upper bits, the lane that is followed: this saves a
// register.
#define INTERPRETER_BEGIN                                                                          \
    bool live = thread_index != 0, is_over = false;                                                \
    for (u32 turn = 0; !is_over;) {                                                                \
        u32 position, elected, low, high;                                                          \
        for (;; turn++) {                                                                          \
            position = live ? pc : ~0u;                                                            \
            elected = warp_min(position);                                                          \
            if ((turn & 63) >= 48) {                                                               \
                if ((turn & 63) == 48) {                                                           \
                    const u32 lanes = ballot(live);                                                \
                    is_over = steps_of(turn) >= quantum || popcount(lanes) <= enough;              \
                    if (is_over) break;                                                            \
                    turn = steps_of(turn) | next_lane(lanes, followed_in(turn)) << followed_shift; \
                }                                                                                  \
                const u32 other = shuffle(position, followed_in(turn));                            \
                if (other != ~0u) elected = other;                                                 \
            }                                                                                      \
            if (elected & slow_bit) break;                                                         \
            fetch(code, elected, low, high);                                                       \
            if (u16(low) >= u32(first_rare)) break;                                                \
            if (position != elected) continue;                                                     \
            switch (u16(low)) {
#define CASE(name) case u32(CodeOp::name):
#define RARE_CASE(name)
#define INTERPRETER_CASES_END         \
    default: __builtin_unreachable(); \
        }                             \
        goto stepped;
#define INTERPRETER_STEP_END \
    live = false;            \
    stepped:;                \
    }                        \
    if (elected == ~0u) break;
#define INTERPRETER_OUT_OF_LINE                            \
    turn++;                                                \
    const bool goes_out = position == elected && !is_over; \
    Chore chore{};                                         \
    bool is_chunk = false;                                 \
    if (goes_out) {                                        \
        pc &= ~slow_bit;                                   \
        w = code[pc];                                      \
    }                                                      \
    if (goes_out)
#define INTERPRETER_CHORE(mine) chore = mine;
// Stops a lane at a call or a loop if machine code may go on there.
#if GPURUN_RESIDENT
#define INTERPRETER_STOPS (quantum == quantum_to_next)
#elif GPURUN_NATIVE
#define INTERPRETER_STOPS true
#else
#define INTERPRETER_STOPS false
#endif
#define INTERPRETER_AFTER(outcome)                                                                 \
    if (outcome >= Outcome::trap || (INTERPRETER_STOPS && outcome != Outcome::next)) live = false; \
    is_chunk = outcome == Outcome::chunk;
#define INTERPRETER_END                             \
    do_chores(chore);                               \
    if (ballot(is_chunk) != 0) turn += chunk_steps; \
    }                                               \
    pc &= ~slow_bit;                                \
    if (live) state = ThreadState::ready;
#define NEXT(n)       \
    {                 \
        pc += (n);    \
        goto stepped; \
    }
#define GO_COUNTED                           \
    {                                        \
        if (INTERPRETER_STOPS) live = false; \
        goto stepped;                        \
    }
#define GO_OUT_OF_LINE  \
    {                   \
        pc |= slow_bit; \
        goto stepped;   \
    }
#define GO(distance)                                             \
    {                                                            \
        const s32 go_distance = (distance);                      \
        pc += u32(go_distance);                                  \
        if (INTERPRETER_STOPS && go_distance <= 0) live = false; \
        goto stepped;                                            \
    }
#define FIELD_A (low >> 16)
#define FIELD_B (high & 0xffff)
#define FIELD_C (high >> 16)
#define FIELD_IMM high
