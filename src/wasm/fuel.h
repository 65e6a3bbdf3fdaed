// What each instruction costs in fuel: the one table that every tier charges from.
#pragma once

#include "wasm/instr.h"

namespace gpurun::wasm {

constexpr u32 fuel_cost(Op op) {
    switch (op) {
        case Op::nop:
        case Op::drop:
        case Op::block:
        case Op::loop:
        case Op::try_:
        case Op::try_table:
        case Op::else_:
        case Op::end:
        case Op::catch_:
        case Op::catch_all:
        case Op::delegate:
        case Op::unreachable:
        case Op::return_: return 0;
        default: return 1;
    }
}

// Returns true if a new basic block for charging begins after the instruction: control may come
// there from elsewhere, or may have gone elsewhere.
constexpr bool ends_fuel_block(Op op) {
    switch (op) {
        case Op::loop:
        case Op::if_:
        case Op::else_:
        case Op::end:
        case Op::try_:
        case Op::try_table:
        case Op::catch_:
        case Op::catch_all:
        case Op::delegate:
        case Op::br_if:
        case Op::br_on_null:
        case Op::br_on_non_null:
        case Op::br_on_cast:
        case Op::br_on_cast_fail: return true;
        default: return false;
    }
}

}  // namespace gpurun::wasm
