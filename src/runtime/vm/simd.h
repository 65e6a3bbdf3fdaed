// What the vector instructions compute: one pure function each, named after its row of
// abi/code_ops.def, with the same bits on every target. Floating-point lanes reuse numeric.h.
// No memory: a load takes the bytes that were read as a number, a store returns those to write.
//
// Relaxed instructions make the choices of the deterministic profile: they do what their exact
// counterparts do, madd rounds twice, dot products are signed and saturate.
#pragma once

#include "abi/v128.h"
#include "runtime/vm/numeric.h"

namespace gpurun::num {

using u8x16 = u8 __attribute__((vector_size(16)));
using s8x16 = s8 __attribute__((vector_size(16)));
using u16x8 = u16 __attribute__((vector_size(16)));
using s16x8 = s16 __attribute__((vector_size(16)));
using u32x4 = u32 __attribute__((vector_size(16)));
using s32x4 = s32 __attribute__((vector_size(16)));
using u64x2 = u64 __attribute__((vector_size(16)));
using s64x2 = s64 __attribute__((vector_size(16)));
using f32x4 = f32 __attribute__((vector_size(16)));
using f64x2 = f64 __attribute__((vector_size(16)));

template <class V>
using Lane = __remove_cvref(decltype(V{}[0]));
template <class V>
constexpr u32 lanes = sizeof(V) / sizeof(Lane<V>);

template <class V>
GPURUN_NUM V as(V128 v) {
    return __builtin_bit_cast(V, v);
}
template <class V>
GPURUN_NUM V128 v128(V v) {
    return __builtin_bit_cast(V128, v);
}
// Takes doubles apart by way of 32-bit registers. Otherwise LLVM 22 makes a 32-bit store of a
// register that holds a double, which CUDA 13 assembles wrongly.
GPURUN_NUM V128 v128(f64x2 v) {
    return {{hidden(u32(bits(v[0]))), hidden(u32(bits(v[0]) >> 32)), hidden(u32(bits(v[1]))),
             hidden(u32(bits(v[1]) >> 32))}};
}
GPURUN_NUM V128 v128(u64 low_half, u64 high_half) { return v128(u64x2{low_half, high_half}); }

// UNARY and BINARY make an instruction of an expression: a, b and the result have V's lanes.
#define UNARY(name, V, expression)      \
    GPURUN_NUM V128 name(V128 a_bits) { \
        V a = as<V>(a_bits);            \
        return v128(expression);        \
    }
#define BINARY(name, V, expression)                  \
    GPURUN_NUM V128 name(V128 a_bits, V128 b_bits) { \
        V a = as<V>(a_bits), b = as<V>(b_bits);      \
        return v128(expression);                     \
    }

// Applies op to each lane of A and writes the results into the lanes of R. The shorter of the two
// decides how many; further lanes of R are 0.
template <class R, auto op, class A = R>
GPURUN_NUM V128 each(V128 a_bits) {
    A a = as<A>(a_bits);
    R result{};
#pragma unroll
    for (u32 i = 0; i < (lanes<R> < lanes<A> ? lanes<R> : lanes<A>); i++) result[i] = op(a[i]);
    return v128(result);
}
template <class V, auto op>
GPURUN_NUM V128 each(V128 a_bits, V128 b_bits) {
    V a = as<V>(a_bits), b = as<V>(b_bits), result{};
#pragma unroll
    for (u32 i = 0; i < lanes<V>; i++) result[i] = op(a[i], b[i]);
    return v128(result);
}

// Lanes

template <class T>
GPURUN_NUM T lane(V128 v, u32 i) {
    u64x2 halves = as<u64x2>(v);
    u32 bit = i * 8 * sizeof(T);
    return T((bit < 64 ? halves[0] : halves[1]) >> bit % 64);
}

template <class T>
GPURUN_NUM V128 with_lane(V128 v, T value, u32 i) {
    u64x2 halves = as<u64x2>(v);
    u32 bit = i * 8 * sizeof(T);
    u64 mask = u64(T(-1)) << bit % 64;
    u64 half = ((bit < 64 ? halves[0] : halves[1]) & ~mask) | u64(value) << bit % 64;
    return bit < 64 ? v128(half, halves[1]) : v128(halves[0], half);
}

GPURUN_NUM u32 i8x16_extract_lane_s(V128 v, u32 i) { return u32(s8(lane<u8>(v, i))); }
GPURUN_NUM u32 i8x16_extract_lane_u(V128 v, u32 i) { return lane<u8>(v, i); }
GPURUN_NUM u32 i16x8_extract_lane_s(V128 v, u32 i) { return u32(s16(lane<u16>(v, i))); }
GPURUN_NUM u32 i16x8_extract_lane_u(V128 v, u32 i) { return lane<u16>(v, i); }
GPURUN_NUM u32 i32x4_extract_lane(V128 v, u32 i) { return lane<u32>(v, i); }
GPURUN_NUM u64 i64x2_extract_lane(V128 v, u32 i) { return lane<u64>(v, i); }
GPURUN_NUM f32 f32x4_extract_lane(V128 v, u32 i) { return from_bits(lane<u32>(v, i)); }
GPURUN_NUM f64 f64x2_extract_lane(V128 v, u32 i) { return from_bits(lane<u64>(v, i)); }

GPURUN_NUM V128 i8x16_replace_lane(V128 v, u32 x, u32 i) { return with_lane(v, u8(x), i); }
GPURUN_NUM V128 i16x8_replace_lane(V128 v, u32 x, u32 i) { return with_lane(v, u16(x), i); }
GPURUN_NUM V128 i32x4_replace_lane(V128 v, u32 x, u32 i) { return with_lane(v, x, i); }
GPURUN_NUM V128 i64x2_replace_lane(V128 v, u64 x, u32 i) { return with_lane(v, x, i); }
GPURUN_NUM V128 f32x4_replace_lane(V128 v, f32 x, u32 i) { return with_lane(v, bits(x), i); }
GPURUN_NUM V128 f64x2_replace_lane(V128 v, f64 x, u32 i) { return with_lane(v, bits(x), i); }

GPURUN_NUM V128 i8x16_splat(u32 x) { return v128(u8x16{} + u8(x)); }
GPURUN_NUM V128 i16x8_splat(u32 x) { return v128(u16x8{} + u16(x)); }
GPURUN_NUM V128 i32x4_splat(u32 x) { return v128(u32x4{} + x); }
GPURUN_NUM V128 i64x2_splat(u64 x) { return v128(u64x2{} + x); }
GPURUN_NUM V128 f32x4_splat(f32 x) { return i32x4_splat(bits(x)); }
GPURUN_NUM V128 f64x2_splat(f64 x) { return i64x2_splat(bits(x)); }

// Returns a vector whose lane i is the byte that byte i of `indices` selects from a and b, which
// count as 32 bytes in a row.
GPURUN_NUM V128 i8x16_shuffle(V128 a, V128 b, V128 indices) {
    u8x16 index = as<u8x16>(indices), result{};
#pragma unroll
    for (u32 i = 0; i < 16; i++) result[i] = lane<u8>(index[i] < 16 ? a : b, index[i] % 16);
    return v128(result);
}
GPURUN_NUM V128 i8x16_swizzle(V128 a, V128 indices) {
    u8x16 index = as<u8x16>(indices), result{};
#pragma unroll
    for (u32 i = 0; i < 16; i++) result[i] = index[i] < 16 ? lane<u8>(a, index[i] % 16) : 0;
    return v128(result);
}
GPURUN_NUM V128 i8x16_relaxed_swizzle(V128 a, V128 indices) { return i8x16_swizzle(a, indices); }

// Bits

UNARY(v128_not, u64x2, ~a)
BINARY(v128_and, u64x2, (a & b))
BINARY(v128_andnot, u64x2, a & ~b)
BINARY(v128_or, u64x2, a | b)
BINARY(v128_xor, u64x2, a ^ b)
GPURUN_NUM V128 v128_bitselect(V128 a, V128 b, V128 mask) {
    return v128_or(v128_and(a, mask), v128_andnot(b, mask));
}
GPURUN_NUM u32 v128_any_true(V128 v) {
    return (v.word[0] | v.word[1] | v.word[2] | v.word[3]) != 0;
}

GPURUN_NUM V128 i8x16_relaxed_laneselect(V128 a, V128 b, V128 mask) {
    return v128_bitselect(a, b, mask);
}
GPURUN_NUM V128 i16x8_relaxed_laneselect(V128 a, V128 b, V128 mask) {
    return v128_bitselect(a, b, mask);
}
GPURUN_NUM V128 i32x4_relaxed_laneselect(V128 a, V128 b, V128 mask) {
    return v128_bitselect(a, b, mask);
}
GPURUN_NUM V128 i64x2_relaxed_laneselect(V128 a, V128 b, V128 mask) {
    return v128_bitselect(a, b, mask);
}

// Comparisons: lanes of ones or zeros

BINARY(i8x16_eq, u8x16, a == b)
BINARY(i8x16_ne, u8x16, a != b)
BINARY(i8x16_lt_s, s8x16, a < b)
BINARY(i8x16_lt_u, u8x16, a < b)
BINARY(i8x16_gt_s, s8x16, a > b)
BINARY(i8x16_gt_u, u8x16, a > b)
BINARY(i8x16_le_s, s8x16, a <= b)
BINARY(i8x16_le_u, u8x16, a <= b)
BINARY(i8x16_ge_s, s8x16, a >= b)
BINARY(i8x16_ge_u, u8x16, a >= b)

BINARY(i16x8_eq, u16x8, a == b)
BINARY(i16x8_ne, u16x8, a != b)
BINARY(i16x8_lt_s, s16x8, a < b)
BINARY(i16x8_lt_u, u16x8, a < b)
BINARY(i16x8_gt_s, s16x8, a > b)
BINARY(i16x8_gt_u, u16x8, a > b)
BINARY(i16x8_le_s, s16x8, a <= b)
BINARY(i16x8_le_u, u16x8, a <= b)
BINARY(i16x8_ge_s, s16x8, a >= b)
BINARY(i16x8_ge_u, u16x8, a >= b)

BINARY(i32x4_eq, u32x4, a == b)
BINARY(i32x4_ne, u32x4, a != b)
BINARY(i32x4_lt_s, s32x4, a < b)
BINARY(i32x4_lt_u, u32x4, a < b)
BINARY(i32x4_gt_s, s32x4, a > b)
BINARY(i32x4_gt_u, u32x4, a > b)
BINARY(i32x4_le_s, s32x4, a <= b)
BINARY(i32x4_le_u, u32x4, a <= b)
BINARY(i32x4_ge_s, s32x4, a >= b)
BINARY(i32x4_ge_u, u32x4, a >= b)

BINARY(i64x2_eq, u64x2, a == b)
BINARY(i64x2_ne, u64x2, a != b)
BINARY(i64x2_lt_s, s64x2, a < b)
BINARY(i64x2_gt_s, s64x2, a > b)
BINARY(i64x2_le_s, s64x2, a <= b)
BINARY(i64x2_ge_s, s64x2, a >= b)

BINARY(f32x4_eq, f32x4, a == b)
BINARY(f32x4_ne, f32x4, a != b)
BINARY(f32x4_lt, f32x4, a < b)
BINARY(f32x4_gt, f32x4, a > b)
BINARY(f32x4_le, f32x4, a <= b)
BINARY(f32x4_ge, f32x4, a >= b)

BINARY(f64x2_eq, f64x2, a == b)
BINARY(f64x2_ne, f64x2, a != b)
BINARY(f64x2_lt, f64x2, a < b)
BINARY(f64x2_gt, f64x2, a > b)
BINARY(f64x2_le, f64x2, a <= b)
BINARY(f64x2_ge, f64x2, a >= b)

// Integers

template <class V>
GPURUN_NUM u32 all_true(V128 v) {
    return __builtin_reduce_min(as<V>(v)) != 0;
}
template <class V>
GPURUN_NUM u32 bitmask(V128 v) {
    V negative = as<V>(v) < 0;
    u32 mask = 0;
#pragma unroll
    for (u32 i = 0; i < lanes<V>; i++) mask |= u32(negative[i] & 1) << i;
    return mask;
}
template <class V>
GPURUN_NUM V shift_count(u32 count) {
    return V{} + Lane<V>(count % (8 * sizeof(Lane<V>)));
}
GPURUN_NUM s16 q15mulr_sat(s16 a, s16 b) {
    s32 product = (a * b + 0x4000) >> 15;
    return s16(product == 0x8000 ? 0x7fff : product);
}

UNARY(i8x16_abs, s8x16, __builtin_elementwise_abs(a))
UNARY(i8x16_neg, u8x16, -a)
UNARY(i8x16_popcnt, u8x16, __builtin_elementwise_popcount(a))
GPURUN_NUM u32 i8x16_all_true(V128 a) { return all_true<u8x16>(a); }
GPURUN_NUM u32 i8x16_bitmask(V128 a) { return bitmask<s8x16>(a); }
GPURUN_NUM V128 i8x16_shl(V128 a, u32 n) { return v128(as<u8x16>(a) << shift_count<u8x16>(n)); }
GPURUN_NUM V128 i8x16_shr_s(V128 a, u32 n) { return v128(as<s8x16>(a) >> shift_count<s8x16>(n)); }
GPURUN_NUM V128 i8x16_shr_u(V128 a, u32 n) { return v128(as<u8x16>(a) >> shift_count<u8x16>(n)); }
BINARY(i8x16_add, u8x16, a + b)
BINARY(i8x16_add_sat_s, s8x16, __builtin_elementwise_add_sat(a, b))
BINARY(i8x16_add_sat_u, u8x16, __builtin_elementwise_add_sat(a, b))
BINARY(i8x16_sub, u8x16, a - b)
BINARY(i8x16_sub_sat_s, s8x16, __builtin_elementwise_sub_sat(a, b))
BINARY(i8x16_sub_sat_u, u8x16, __builtin_elementwise_sub_sat(a, b))
BINARY(i8x16_min_s, s8x16, __builtin_elementwise_min(a, b))
BINARY(i8x16_min_u, u8x16, __builtin_elementwise_min(a, b))
BINARY(i8x16_max_s, s8x16, __builtin_elementwise_max(a, b))
BINARY(i8x16_max_u, u8x16, __builtin_elementwise_max(a, b))
BINARY(i8x16_avgr_u, u8x16, (a | b) - ((a ^ b) >> 1))

UNARY(i16x8_abs, s16x8, __builtin_elementwise_abs(a))
UNARY(i16x8_neg, u16x8, -a)
GPURUN_NUM u32 i16x8_all_true(V128 a) { return all_true<u16x8>(a); }
GPURUN_NUM u32 i16x8_bitmask(V128 a) { return bitmask<s16x8>(a); }
GPURUN_NUM V128 i16x8_shl(V128 a, u32 n) { return v128(as<u16x8>(a) << shift_count<u16x8>(n)); }
GPURUN_NUM V128 i16x8_shr_s(V128 a, u32 n) { return v128(as<s16x8>(a) >> shift_count<s16x8>(n)); }
GPURUN_NUM V128 i16x8_shr_u(V128 a, u32 n) { return v128(as<u16x8>(a) >> shift_count<u16x8>(n)); }
BINARY(i16x8_add, u16x8, a + b)
BINARY(i16x8_add_sat_s, s16x8, __builtin_elementwise_add_sat(a, b))
BINARY(i16x8_add_sat_u, u16x8, __builtin_elementwise_add_sat(a, b))
BINARY(i16x8_sub, u16x8, a - b)
BINARY(i16x8_sub_sat_s, s16x8, __builtin_elementwise_sub_sat(a, b))
BINARY(i16x8_sub_sat_u, u16x8, __builtin_elementwise_sub_sat(a, b))
BINARY(i16x8_mul, u16x8, (a * b))
BINARY(i16x8_min_s, s16x8, __builtin_elementwise_min(a, b))
BINARY(i16x8_min_u, u16x8, __builtin_elementwise_min(a, b))
BINARY(i16x8_max_s, s16x8, __builtin_elementwise_max(a, b))
BINARY(i16x8_max_u, u16x8, __builtin_elementwise_max(a, b))
BINARY(i16x8_avgr_u, u16x8, (a | b) - ((a ^ b) >> 1))
GPURUN_NUM V128 i16x8_q15mulr_sat_s(V128 a, V128 b) { return each<s16x8, q15mulr_sat>(a, b); }
GPURUN_NUM V128 i16x8_relaxed_q15mulr_s(V128 a, V128 b) { return i16x8_q15mulr_sat_s(a, b); }

UNARY(i32x4_abs, s32x4, __builtin_elementwise_abs(a))
UNARY(i32x4_neg, u32x4, -a)
GPURUN_NUM u32 i32x4_all_true(V128 a) { return all_true<u32x4>(a); }
GPURUN_NUM u32 i32x4_bitmask(V128 a) { return bitmask<s32x4>(a); }
GPURUN_NUM V128 i32x4_shl(V128 a, u32 n) { return v128(as<u32x4>(a) << shift_count<u32x4>(n)); }
GPURUN_NUM V128 i32x4_shr_s(V128 a, u32 n) { return v128(as<s32x4>(a) >> shift_count<s32x4>(n)); }
GPURUN_NUM V128 i32x4_shr_u(V128 a, u32 n) { return v128(as<u32x4>(a) >> shift_count<u32x4>(n)); }
BINARY(i32x4_add, u32x4, a + b)
BINARY(i32x4_sub, u32x4, a - b)
BINARY(i32x4_mul, u32x4, (a * b))
BINARY(i32x4_min_s, s32x4, __builtin_elementwise_min(a, b))
BINARY(i32x4_min_u, u32x4, __builtin_elementwise_min(a, b))
BINARY(i32x4_max_s, s32x4, __builtin_elementwise_max(a, b))
BINARY(i32x4_max_u, u32x4, __builtin_elementwise_max(a, b))

UNARY(i64x2_abs, s64x2, __builtin_elementwise_abs(a))
UNARY(i64x2_neg, u64x2, -a)
GPURUN_NUM u32 i64x2_all_true(V128 a) { return all_true<u64x2>(a); }
GPURUN_NUM u32 i64x2_bitmask(V128 a) { return bitmask<s64x2>(a); }
GPURUN_NUM V128 i64x2_shl(V128 a, u32 n) { return v128(as<u64x2>(a) << shift_count<u64x2>(n)); }
GPURUN_NUM V128 i64x2_shr_s(V128 a, u32 n) { return v128(as<s64x2>(a) >> shift_count<s64x2>(n)); }
GPURUN_NUM V128 i64x2_shr_u(V128 a, u32 n) { return v128(as<u64x2>(a) >> shift_count<u64x2>(n)); }
BINARY(i64x2_add, u64x2, a + b)
BINARY(i64x2_sub, u64x2, a - b)
BINARY(i64x2_mul, u64x2, (a * b))

// Integers of two widths

// Widens half of the lanes of N to those of W: sign-extends them where N is signed.
template <class W, class N, u32 first, u32 step>
GPURUN_NUM W widen(V128 v) {
    N narrow = as<N>(v);
    W result{};
#pragma unroll
    for (u32 i = 0; i < lanes<W>; i++) result[i] = Lane<W>(narrow[first + i * step]);
    return result;
}
template <class W, class N>
GPURUN_NUM W low(V128 v) {
    return widen<W, N, 0, 1>(v);
}
template <class W, class N>
GPURUN_NUM W high(V128 v) {
    return widen<W, N, lanes<W>, 1>(v);
}
template <class W, class N>
GPURUN_NUM W even(V128 v) {
    return widen<W, N, 0, 2>(v);
}
template <class W, class N>
GPURUN_NUM W odd(V128 v) {
    return widen<W, N, 1, 2>(v);
}

// Narrows the lanes of a, then those of b, and saturates them.
template <class N, class W, Lane<W> lowest, Lane<W> highest>
GPURUN_NUM V128 narrow(V128 a_bits, V128 b_bits) {
    auto saturate = [](W x) {
        return __builtin_elementwise_min(__builtin_elementwise_max(x, W{} + lowest), W{} + highest);
    };
    W a = saturate(as<W>(a_bits)), b = saturate(as<W>(b_bits));
    N result{};
#pragma unroll
    for (u32 i = 0; i < lanes<W>; i++) {
        result[i] = Lane<N>(a[i]);
        result[i + lanes<W>] = Lane<N>(b[i]);
    }
    return v128(result);
}

GPURUN_NUM V128 i8x16_narrow_i16x8_s(V128 a, V128 b) {
    return narrow<s8x16, s16x8, -128, 127>(a, b);
}
GPURUN_NUM V128 i8x16_narrow_i16x8_u(V128 a, V128 b) { return narrow<u8x16, s16x8, 0, 255>(a, b); }
GPURUN_NUM V128 i16x8_narrow_i32x4_s(V128 a, V128 b) {
    return narrow<s16x8, s32x4, -32768, 32767>(a, b);
}
GPURUN_NUM V128 i16x8_narrow_i32x4_u(V128 a, V128 b) {
    return narrow<u16x8, s32x4, 0, 65535>(a, b);
}

GPURUN_NUM V128 i16x8_extend_low_i8x16_s(V128 a) { return v128(low<u16x8, s8x16>(a)); }
GPURUN_NUM V128 i16x8_extend_low_i8x16_u(V128 a) { return v128(low<u16x8, u8x16>(a)); }
GPURUN_NUM V128 i16x8_extend_high_i8x16_s(V128 a) { return v128(high<u16x8, s8x16>(a)); }
GPURUN_NUM V128 i16x8_extend_high_i8x16_u(V128 a) { return v128(high<u16x8, u8x16>(a)); }
GPURUN_NUM V128 i32x4_extend_low_i16x8_s(V128 a) { return v128(low<u32x4, s16x8>(a)); }
GPURUN_NUM V128 i32x4_extend_low_i16x8_u(V128 a) { return v128(low<u32x4, u16x8>(a)); }
GPURUN_NUM V128 i32x4_extend_high_i16x8_s(V128 a) { return v128(high<u32x4, s16x8>(a)); }
GPURUN_NUM V128 i32x4_extend_high_i16x8_u(V128 a) { return v128(high<u32x4, u16x8>(a)); }
GPURUN_NUM V128 i64x2_extend_low_i32x4_s(V128 a) { return v128(low<u64x2, s32x4>(a)); }
GPURUN_NUM V128 i64x2_extend_low_i32x4_u(V128 a) { return v128(low<u64x2, u32x4>(a)); }
GPURUN_NUM V128 i64x2_extend_high_i32x4_s(V128 a) { return v128(high<u64x2, s32x4>(a)); }
GPURUN_NUM V128 i64x2_extend_high_i32x4_u(V128 a) { return v128(high<u64x2, u32x4>(a)); }

template <class W, class N>
GPURUN_NUM V128 extmul_low(V128 a, V128 b) {
    return v128(low<W, N>(a) * low<W, N>(b));
}
template <class W, class N>
GPURUN_NUM V128 extmul_high(V128 a, V128 b) {
    return v128(high<W, N>(a) * high<W, N>(b));
}
template <class W, class N>
GPURUN_NUM V128 extadd_pairwise(V128 a) {
    return v128(even<W, N>(a) + odd<W, N>(a));
}

GPURUN_NUM V128 i16x8_extmul_low_i8x16_s(V128 a, V128 b) { return extmul_low<u16x8, s8x16>(a, b); }
GPURUN_NUM V128 i16x8_extmul_low_i8x16_u(V128 a, V128 b) { return extmul_low<u16x8, u8x16>(a, b); }
GPURUN_NUM V128 i16x8_extmul_high_i8x16_s(V128 a, V128 b) {
    return extmul_high<u16x8, s8x16>(a, b);
}
GPURUN_NUM V128 i16x8_extmul_high_i8x16_u(V128 a, V128 b) {
    return extmul_high<u16x8, u8x16>(a, b);
}
GPURUN_NUM V128 i32x4_extmul_low_i16x8_s(V128 a, V128 b) { return extmul_low<u32x4, s16x8>(a, b); }
GPURUN_NUM V128 i32x4_extmul_low_i16x8_u(V128 a, V128 b) { return extmul_low<u32x4, u16x8>(a, b); }
GPURUN_NUM V128 i32x4_extmul_high_i16x8_s(V128 a, V128 b) {
    return extmul_high<u32x4, s16x8>(a, b);
}
GPURUN_NUM V128 i32x4_extmul_high_i16x8_u(V128 a, V128 b) {
    return extmul_high<u32x4, u16x8>(a, b);
}
GPURUN_NUM V128 i64x2_extmul_low_i32x4_s(V128 a, V128 b) { return extmul_low<u64x2, s32x4>(a, b); }
GPURUN_NUM V128 i64x2_extmul_low_i32x4_u(V128 a, V128 b) { return extmul_low<u64x2, u32x4>(a, b); }
GPURUN_NUM V128 i64x2_extmul_high_i32x4_s(V128 a, V128 b) {
    return extmul_high<u64x2, s32x4>(a, b);
}
GPURUN_NUM V128 i64x2_extmul_high_i32x4_u(V128 a, V128 b) {
    return extmul_high<u64x2, u32x4>(a, b);
}

GPURUN_NUM V128 i16x8_extadd_pairwise_i8x16_s(V128 a) { return extadd_pairwise<u16x8, s8x16>(a); }
GPURUN_NUM V128 i16x8_extadd_pairwise_i8x16_u(V128 a) { return extadd_pairwise<u16x8, u8x16>(a); }
GPURUN_NUM V128 i32x4_extadd_pairwise_i16x8_s(V128 a) { return extadd_pairwise<u32x4, s16x8>(a); }
GPURUN_NUM V128 i32x4_extadd_pairwise_i16x8_u(V128 a) { return extadd_pairwise<u32x4, u16x8>(a); }

GPURUN_NUM V128 i32x4_dot_i16x8_s(V128 a, V128 b) {
    u32x4 products_even = even<u32x4, s16x8>(a) * even<u32x4, s16x8>(b);
    return v128(products_even + odd<u32x4, s16x8>(a) * odd<u32x4, s16x8>(b));
}
GPURUN_NUM V128 i16x8_relaxed_dot_i8x16_i7x16_s(V128 a, V128 b) {
    s16x8 products_even = even<s16x8, s8x16>(a) * even<s16x8, s8x16>(b);
    s16x8 products_odd = odd<s16x8, s8x16>(a) * odd<s16x8, s8x16>(b);
    return v128(__builtin_elementwise_add_sat(products_even, products_odd));
}
GPURUN_NUM V128 i32x4_relaxed_dot_i8x16_i7x16_add_s(V128 a, V128 b, V128 c) {
    V128 dots = i16x8_relaxed_dot_i8x16_i7x16_s(a, b);
    return i32x4_add(i32x4_extadd_pairwise_i16x8_s(dots), c);
}

// Floats

UNARY(f32x4_abs, u32x4, a & 0x7fffffff)
UNARY(f32x4_neg, u32x4, a ^ ~u32{0x7fffffff})
GPURUN_NUM V128 f32x4_ceil(V128 a) { return each<f32x4, f32_ceil>(a); }
GPURUN_NUM V128 f32x4_floor(V128 a) { return each<f32x4, f32_floor>(a); }
GPURUN_NUM V128 f32x4_trunc(V128 a) { return each<f32x4, f32_trunc>(a); }
GPURUN_NUM V128 f32x4_nearest(V128 a) { return each<f32x4, f32_nearest>(a); }
GPURUN_NUM V128 f32x4_sqrt(V128 a) { return each<f32x4, f32_sqrt>(a); }
GPURUN_NUM V128 f32x4_add(V128 a, V128 b) { return each<f32x4, f32_add>(a, b); }
GPURUN_NUM V128 f32x4_sub(V128 a, V128 b) { return each<f32x4, f32_sub>(a, b); }
GPURUN_NUM V128 f32x4_mul(V128 a, V128 b) { return each<f32x4, f32_mul>(a, b); }
GPURUN_NUM V128 f32x4_div(V128 a, V128 b) { return each<f32x4, f32_div>(a, b); }
GPURUN_NUM V128 f32x4_min(V128 a, V128 b) { return each<f32x4, f32_min>(a, b); }
GPURUN_NUM V128 f32x4_max(V128 a, V128 b) { return each<f32x4, f32_max>(a, b); }
BINARY(f32x4_pmin, f32x4, b < a ? b : a)
BINARY(f32x4_pmax, f32x4, a < b ? b : a)
GPURUN_NUM V128 f32x4_relaxed_min(V128 a, V128 b) { return f32x4_min(a, b); }
GPURUN_NUM V128 f32x4_relaxed_max(V128 a, V128 b) { return f32x4_max(a, b); }
GPURUN_NUM V128 f32x4_relaxed_madd(V128 a, V128 b, V128 c) { return f32x4_add(f32x4_mul(a, b), c); }
GPURUN_NUM V128 f32x4_relaxed_nmadd(V128 a, V128 b, V128 c) {
    return f32x4_relaxed_madd(f32x4_neg(a), b, c);
}

UNARY(f64x2_abs, u64x2, a & 0x7fffffffffffffff)
UNARY(f64x2_neg, u64x2, a ^ ~u64{0x7fffffffffffffff})
GPURUN_NUM V128 f64x2_ceil(V128 a) { return each<f64x2, f64_ceil>(a); }
GPURUN_NUM V128 f64x2_floor(V128 a) { return each<f64x2, f64_floor>(a); }
GPURUN_NUM V128 f64x2_trunc(V128 a) { return each<f64x2, f64_trunc>(a); }
GPURUN_NUM V128 f64x2_nearest(V128 a) { return each<f64x2, f64_nearest>(a); }
GPURUN_NUM V128 f64x2_sqrt(V128 a) { return each<f64x2, f64_sqrt>(a); }
GPURUN_NUM V128 f64x2_add(V128 a, V128 b) { return each<f64x2, f64_add>(a, b); }
GPURUN_NUM V128 f64x2_sub(V128 a, V128 b) { return each<f64x2, f64_sub>(a, b); }
GPURUN_NUM V128 f64x2_mul(V128 a, V128 b) { return each<f64x2, f64_mul>(a, b); }
GPURUN_NUM V128 f64x2_div(V128 a, V128 b) { return each<f64x2, f64_div>(a, b); }
GPURUN_NUM V128 f64x2_min(V128 a, V128 b) { return each<f64x2, f64_min>(a, b); }
GPURUN_NUM V128 f64x2_max(V128 a, V128 b) { return each<f64x2, f64_max>(a, b); }
BINARY(f64x2_pmin, f64x2, b < a ? b : a)
BINARY(f64x2_pmax, f64x2, a < b ? b : a)
GPURUN_NUM V128 f64x2_relaxed_min(V128 a, V128 b) { return f64x2_min(a, b); }
GPURUN_NUM V128 f64x2_relaxed_max(V128 a, V128 b) { return f64x2_max(a, b); }
GPURUN_NUM V128 f64x2_relaxed_madd(V128 a, V128 b, V128 c) { return f64x2_add(f64x2_mul(a, b), c); }
GPURUN_NUM V128 f64x2_relaxed_nmadd(V128 a, V128 b, V128 c) {
    return f64x2_relaxed_madd(f64x2_neg(a), b, c);
}

// Conversions between lanes of different types

GPURUN_NUM V128 f32x4_demote_f64x2_zero(V128 a) { return each<f32x4, f32_demote_f64, f64x2>(a); }
GPURUN_NUM V128 f64x2_promote_low_f32x4(V128 a) { return each<f64x2, f64_promote_f32, f32x4>(a); }
GPURUN_NUM V128 f32x4_convert_i32x4_s(V128 a) { return each<f32x4, f32_convert_i32_s, u32x4>(a); }
GPURUN_NUM V128 f64x2_convert_low_i32x4_s(V128 a) {
    return each<f64x2, f64_convert_i32_s, u32x4>(a);
}
GPURUN_NUM V128 f32x4_convert_i32x4_u(V128 a) { return each<f32x4, f32_convert_i32_u, u32x4>(a); }
GPURUN_NUM V128 f64x2_convert_low_i32x4_u(V128 a) {
    return each<f64x2, f64_convert_i32_u, u32x4>(a);
}
GPURUN_NUM V128 i32x4_trunc_sat_f32x4_s(V128 a) {
    return each<u32x4, i32_trunc_sat_f32_s, f32x4>(a);
}
GPURUN_NUM V128 i32x4_trunc_sat_f64x2_s_zero(V128 a) {
    return each<u32x4, i32_trunc_sat_f64_s, f64x2>(a);
}
GPURUN_NUM V128 i32x4_trunc_sat_f32x4_u(V128 a) {
    return each<u32x4, i32_trunc_sat_f32_u, f32x4>(a);
}
GPURUN_NUM V128 i32x4_trunc_sat_f64x2_u_zero(V128 a) {
    return each<u32x4, i32_trunc_sat_f64_u, f64x2>(a);
}
GPURUN_NUM V128 i32x4_relaxed_trunc_f32x4_s(V128 a) { return i32x4_trunc_sat_f32x4_s(a); }
GPURUN_NUM V128 i32x4_relaxed_trunc_f64x2_s_zero(V128 a) { return i32x4_trunc_sat_f64x2_s_zero(a); }
GPURUN_NUM V128 i32x4_relaxed_trunc_f32x4_u(V128 a) { return i32x4_trunc_sat_f32x4_u(a); }
GPURUN_NUM V128 i32x4_relaxed_trunc_f64x2_u_zero(V128 a) { return i32x4_trunc_sat_f64x2_u_zero(a); }

// Loads and stores

GPURUN_NUM V128 v128_load(V128 raw) { return raw; }
GPURUN_NUM V128 v128_load8x8_s(u64 raw) { return i16x8_extend_low_i8x16_s(v128(raw, 0)); }
GPURUN_NUM V128 v128_load8x8_u(u64 raw) { return i16x8_extend_low_i8x16_u(v128(raw, 0)); }
GPURUN_NUM V128 v128_load16x4_s(u64 raw) { return i32x4_extend_low_i16x8_s(v128(raw, 0)); }
GPURUN_NUM V128 v128_load16x4_u(u64 raw) { return i32x4_extend_low_i16x8_u(v128(raw, 0)); }
GPURUN_NUM V128 v128_load32x2_s(u64 raw) { return i64x2_extend_low_i32x4_s(v128(raw, 0)); }
GPURUN_NUM V128 v128_load32x2_u(u64 raw) { return i64x2_extend_low_i32x4_u(v128(raw, 0)); }
GPURUN_NUM V128 v128_load8_splat(u8 raw) { return i8x16_splat(raw); }
GPURUN_NUM V128 v128_load16_splat(u16 raw) { return i16x8_splat(raw); }
GPURUN_NUM V128 v128_load32_splat(u32 raw) { return i32x4_splat(raw); }
GPURUN_NUM V128 v128_load64_splat(u64 raw) { return i64x2_splat(raw); }
GPURUN_NUM V128 v128_load32_zero(u32 raw) { return v128(raw, 0); }
GPURUN_NUM V128 v128_load64_zero(u64 raw) { return v128(raw, 0); }

GPURUN_NUM V128 v128_load8_lane(V128 v, u8 raw, u32 i) { return with_lane(v, raw, i); }
GPURUN_NUM V128 v128_load16_lane(V128 v, u16 raw, u32 i) { return with_lane(v, raw, i); }
GPURUN_NUM V128 v128_load32_lane(V128 v, u32 raw, u32 i) { return with_lane(v, raw, i); }
GPURUN_NUM V128 v128_load64_lane(V128 v, u64 raw, u32 i) { return with_lane(v, raw, i); }
GPURUN_NUM u8 v128_store8_lane(V128 v, u32 i) { return lane<u8>(v, i); }
GPURUN_NUM u16 v128_store16_lane(V128 v, u32 i) { return lane<u16>(v, i); }
GPURUN_NUM u32 v128_store32_lane(V128 v, u32 i) { return lane<u32>(v, i); }
GPURUN_NUM u64 v128_store64_lane(V128 v, u32 i) { return lane<u64>(v, i); }

#undef UNARY
#undef BINARY

}  // namespace gpurun::num
