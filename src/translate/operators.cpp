// Looks operators up in tables made from the rows of code_ops.def.
#include "translate/operators.h"

#include <array>

namespace gpurun::translate {
namespace {

using wasm::Op;

constexpr auto operators = [] {
    std::array<Operator, usize(Op::count)> table{};
#define OP(name)
#define UN(name, R, A) table[usize(Op::name)] = {CodeOp::name, Shape::unary};
#define UN_TRAP(name, R, A) table[usize(Op::name)] = {CodeOp::name, Shape::unary};
#define BIN(name, R, A, B) table[usize(Op::name)] = {CodeOp::name, Shape::binary};
#define BIN_TRAP(name, R, A, B) table[usize(Op::name)] = {CodeOp::name, Shape::binary};
#define BIN_INT(name, T) table[usize(Op::name)] = {CodeOp::name, Shape::binary_int};
#define CMP_INT(name, T) table[usize(Op::name)] = {CodeOp::name, Shape::compare_int};
#define CMP_FLOAT(name, T) table[usize(Op::name)] = {CodeOp::name, Shape::compare_float};
#define VEC_UN(name, R, A) table[usize(Op::name)] = {CodeOp::name, Shape::unary};
#define VEC_BIN(name, R, A, B) table[usize(Op::name)] = {CodeOp::name, Shape::binary};
#define VEC_TERN(name, R, A, B, C) table[usize(Op::name)] = {CodeOp::name, Shape::ternary};
#define LANE_GET(name, R) table[usize(Op::name)] = {CodeOp::name, Shape::lane_get};
#define LANE_SET(name, A) table[usize(Op::name)] = {CodeOp::name, Shape::lane_set};
#define LOAD(name, R, M) table[usize(Op::name)] = {CodeOp::name, Shape::load};
#define STORE(name, A, M) table[usize(Op::name)] = {CodeOp::name, Shape::store};
#define VEC_LOAD(name, M) table[usize(Op::name)] = {CodeOp::name, Shape::vec_load};
#define VEC_STORE(name) table[usize(Op::name)] = {CodeOp::name, Shape::vec_store};
#define VEC_LOAD_LANE(name, M) table[usize(Op::name)] = {CodeOp::name, Shape::vec_load_lane};
#define VEC_STORE_LANE(name, M) table[usize(Op::name)] = {CodeOp::name, Shape::vec_store_lane};
#define ATOMIC_LOAD(name, V, M) table[usize(Op::name)] = {CodeOp::name, Shape::atomic_load};
#define ATOMIC_STORE(name, V, M) table[usize(Op::name)] = {CodeOp::name, Shape::atomic_store};
#define ATOMIC_RMW(name, V, M, f) table[usize(Op::name)] = {CodeOp::name, Shape::atomic_rmw};
#define ATOMIC_CMPXCHG(name, V, M) table[usize(Op::name)] = {CodeOp::name, Shape::atomic_cmpxchg};
#include "abi/code_ops.def"
#undef OP
    return table;
}();

constexpr auto general_forms = [] {
    std::array<CodeOp, usize(CodeOp::count)> table{};
#define OP(name)
#define LOAD_X(name, R, M) table[usize(CodeOp::name)] = CodeOp::name##_x;
#define STORE_X(name, A, M) table[usize(CodeOp::name)] = CodeOp::name##_x;
#include "abi/code_ops.def"
#undef OP
    return table;
}();

struct Relations {
    CodeOp branch_if_true = CodeOp::count, branch_if_false = CodeOp::count, swapped = CodeOp::count;
};

constexpr auto relations = [] {
    std::array<Relations, usize(CodeOp::count)> table{};
    auto at = [&](CodeOp op) -> Relations& { return table[usize(op)]; };
#define COMPARE(T, name, inverse, other_way)                                                   \
    at(CodeOp::T##_##name) = {CodeOp::br_##T##_##name, CodeOp::br_##T##_##inverse,             \
                              CodeOp::T##_##other_way};                                        \
    at(CodeOp::T##_##name##_k) = {CodeOp::br_##T##_##name##_k, CodeOp::br_##T##_##inverse##_k, \
                                  CodeOp::count};
#define COMPARES(T)              \
    COMPARE(T, eq, ne, eq)       \
    COMPARE(T, ne, eq, ne)       \
    COMPARE(T, lt_s, ge_s, gt_s) \
    COMPARE(T, lt_u, ge_u, gt_u) \
    COMPARE(T, gt_s, le_s, lt_s) \
    COMPARE(T, gt_u, le_u, lt_u) \
    COMPARE(T, le_s, gt_s, ge_s) \
    COMPARE(T, le_u, gt_u, ge_u) \
    COMPARE(T, ge_s, lt_s, le_s) \
    COMPARE(T, ge_u, lt_u, le_u)
    COMPARES(i32)
    COMPARES(i64)
#undef COMPARES
#undef COMPARE
    // Not (a < b) is not (a >= b) for floats: only eq and ne have an inverse.
#define OP(name)
#define CMP_FLOAT(name, T) at(CodeOp::name).branch_if_true = CodeOp::br_##name;
#include "abi/code_ops.def"
#undef OP
    at(CodeOp::f32_eq).branch_if_false = CodeOp::br_f32_ne;
    at(CodeOp::f32_ne).branch_if_false = CodeOp::br_f32_eq;
    at(CodeOp::f64_eq).branch_if_false = CodeOp::br_f64_ne;
    at(CodeOp::f64_ne).branch_if_false = CodeOp::br_f64_eq;
    at(CodeOp::i64_eqz) = {CodeOp::br_i64_eq_k, CodeOp::br_i64_ne_k, CodeOp::count};
    for (CodeOp op :
         {CodeOp::i32_add, CodeOp::i32_mul, CodeOp::i32_and, CodeOp::i32_or, CodeOp::i32_xor,
          CodeOp::i64_add, CodeOp::i64_mul, CodeOp::i64_and, CodeOp::i64_or, CodeOp::i64_xor})
        at(op).swapped = op;
    return table;
}();

}  // namespace

const Operator& operator_of(Op op) { return operators[usize(op)]; }

CodeOp general_form(CodeOp op) { return general_forms[usize(op)]; }

CodeOp fused_branch(CodeOp compare, bool when) {
    const Relations& r = relations[usize(compare)];
    return when ? r.branch_if_true : r.branch_if_false;
}

CodeOp swapped(CodeOp op) { return relations[usize(op)].swapped; }

}  // namespace gpurun::translate
