// Machine code of single instructions, with holes: what cmake/pack_stencils.cpp took from
// runtime/native/quick_stencils.cpp when gpu-run was built. Empty where that is not x86-64.
#pragma once

#include <span>

#include "abi/code.h"

namespace gpurun::codegen {

enum class Hole : u8 {
#define HOLE(name) name,
#define JUMP(name)
#include "abi/quick_holes.def"
#define HOLE(name)
#define JUMP(name) jump_##name,
#include "abi/quick_holes.def"
    constant,  // in stencil_constants; the addend says where
};

// How a hole is filled.
enum class HoleForm : u8 {
    number_32,    // in 4 bytes
    number_64,    // in 8 bytes
    distance_32,  // to somewhere, counted from the hole itself, in 4 bytes
};

struct StencilHole {
    u16 at;
    Hole hole;
    HoleForm form;
    s32 addend;  // to be added
};

struct Stencil {
    u32 begin;       // in stencil_bytes
    u32 first_hole;  // in stencil_holes
    u16 size;        // 0: there is none
    u16 holes;
    bool falls_through;  // its end is where `next` is; else it goes on elsewhere, or by a jump
};

// Stencils beside those of instructions.
#define GPURUN_STENCIL_PARTS(PART)                                                            \
    PART(leave)                                                                               \
    PART(leave_interpret) PART(leave_late) PART(leave_late_here) PART(leave_missed)           \
        PART(call_tail) PART(returned) PART(here) PART(operate) PART(enter_many) PART(zero_1) \
            PART(zero_2) PART(zero_4)
enum class Part : u8 {
#define PART(name) name,
    GPURUN_STENCIL_PARTS(PART)
#undef PART
};

extern const u8 stencil_bytes[];
extern const StencilHole stencil_holes[];
extern const Stencil stencil_of[];       // by CodeOp
extern const Stencil stencil_of_loop[];  // by CodeOp: of branches backward
extern const Stencil stencil_of_part[];  // by Part
extern const u8 stencil_constants[];
extern const u32 stencil_constants_size;  // 0: there are no stencils

}  // namespace gpurun::codegen
