// Maps wasm's plain operators to code operators, and combines code operators. Private to
// src/translate.
#pragma once

#include "abi/code.h"
#include "wasm/instr.h"

namespace gpurun::translate {

// The shape of a wasm operator's code.
enum class Shape : u8 {
    other,  // translated by hand
    unary,
    binary,
    ternary,
    binary_int,   // has a form with a constant
    compare_int,  // the same, and branches
    compare_float,
    lane_get,
    lane_set,
    load,
    store,  // plain and general form
    vec_load,
    vec_store,
    vec_load_lane,
    vec_store_lane,
    atomic_load,
    atomic_store,
    atomic_rmw,
    atomic_cmpxchg,
};

struct Operator {
    CodeOp code = CodeOp::count;
    Shape shape = Shape::other;
};
const Operator& operator_of(wasm::Op op);

// Returns the instruction that branches where `compare` yields `when`, or CodeOp::count if there is
// none. (Its first field is the distance, the others are the comparison's.)
CodeOp fused_branch(CodeOp compare, bool when);

// Returns the operator with operands exchanged, or CodeOp::count if there is none.
CodeOp swapped(CodeOp op);

constexpr CodeOp with_constant(CodeOp op) { return CodeOp(u16(op) + 1); }
constexpr CodeOp with_wide_offset(CodeOp op) { return CodeOp(u16(op) + 1); }
CodeOp general_form(CodeOp op);  // of a load or store

}  // namespace gpurun::translate
