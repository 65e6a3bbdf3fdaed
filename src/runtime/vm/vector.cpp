// Executes vector instructions that do not touch memory.
#include "runtime/memory/state.h"
#include "runtime/vm/simd.h"

namespace gpurun::rt {

Outcome run_vector(const Process& p, Registers& r, u64 w) {
    const u64* more = p.code + r.pc + 1;
    u32 a = a_of(w), b = b_of(w), c = c_of(w);
    switch (CodeOp(op_of(w))) {
#define OP(name)
#define VEC_UN(name, R, A)                           \
    case CodeOp::name: {                             \
        set<R>(r.fp, a, num::name(get<A>(r.fp, b))); \
        r.pc += 1;                                   \
        return Outcome::next;                        \
    }
#define VEC_BIN(name, R, A, B)                                        \
    case CodeOp::name: {                                              \
        set<R>(r.fp, a, num::name(get<A>(r.fp, b), get<B>(r.fp, c))); \
        r.pc += 1;                                                    \
        return Outcome::next;                                         \
    }
#define VEC_TERN(name, R, A, B, C)                                                               \
    case CodeOp::name: {                                                                         \
        set<R>(r.fp, a, num::name(get<A>(r.fp, b), get<B>(r.fp, c), get<C>(r.fp, a_of(*more)))); \
        r.pc += 2;                                                                               \
        return Outcome::next;                                                                    \
    }
#define LANE_GET(name, R)                                  \
    case CodeOp::name: {                                   \
        set<R>(r.fp, a, num::name(get<V128>(r.fp, b), c)); \
        r.pc += 1;                                         \
        return Outcome::next;                              \
    }
#define LANE_SET(name, A)                                                                \
    case CodeOp::name: {                                                                 \
        set<V128>(r.fp, a, num::name(get<V128>(r.fp, b), get<A>(r.fp, c), a_of(*more))); \
        r.pc += 2;                                                                       \
        return Outcome::next;                                                            \
    }
#define VEC_SHUFFLE(name)                                                                      \
    case CodeOp::name: {                                                                       \
        V128 lanes = {{low_of(more[0]), high_of(more[0]), low_of(more[1]), high_of(more[1])}}; \
        set<V128>(r.fp, a, num::name(get<V128>(r.fp, b), get<V128>(r.fp, c), lanes));          \
        r.pc += 3;                                                                             \
        return Outcome::next;                                                                  \
    }
#include "abi/code_ops.def"
#undef OP
        default: __builtin_unreachable();
    }
}

}  // namespace gpurun::rt
