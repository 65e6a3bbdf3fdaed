// Sends an instruction that the interpreter's loop does not execute itself to its family.
#pragma once

#include "runtime/memory/state.h"

namespace gpurun::rt {

// Executes any instruction but the common ones, by a call of its family's function.
inline Outcome run_out_of_line(const Process& p, u32* thread, Registers& r, u64 w) {
    // Every system call begins with this one, and is made again by it.
    if (CodeOp(op_of(w)) == CodeOp::call_import) return run_call_import(p, thread, r, w);
    if (CodeOp(op_of(w)) == CodeOp::system) return run_system(p, thread, r, w);
    switch (CodeOp(op_of(w))) {
#define OP(name)
#define CONTROL(name) case CodeOp::name:
#include "abi/code_ops.def"
        case CodeOp::call_indirect:  // of another instance's function
            return run_control(p, thread, r, w);
#define BULK(name) case CodeOp::name:
#include "abi/code_ops.def"
            return run_bulk(p, thread, r, w);
#define OBJECT(name) case CodeOp::name:
#include "abi/code_ops.def"
            return run_object(p, r, w);
#define LOAD_X(name, R, M) case CodeOp::name##_x:
#define STORE_X(name, A, M) case CodeOp::name##_x:
#define VEC_LOAD(name, M) case CodeOp::name:
#define VEC_STORE(name) case CodeOp::name:
#define VEC_LOAD_LANE(name, M) case CodeOp::name:
#define VEC_STORE_LANE(name, M) case CodeOp::name:
#define ATOMIC_LOAD(name, V, M) case CodeOp::name:
#define ATOMIC_STORE(name, V, M) case CodeOp::name:
#define ATOMIC_RMW(name, V, M, f) case CodeOp::name:
#define ATOMIC_CMPXCHG(name, V, M) case CodeOp::name:
#define ATOMIC_OTHER(name) case CodeOp::name:
#include "abi/code_ops.def"
            return run_access(p, thread, r, w);
        default: return run_vector(p, r, w);
    }
#undef OP
}

}  // namespace gpurun::rt
