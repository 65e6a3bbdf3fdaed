// What the numeric instructions compute: one pure function each, named after its row of
// abi/code_ops.def, with the same bits on every target. Vectors are in simd.h. No memory, no
// slots.
//
// Integers are unsigned words, read as signed where the instruction says so. Floats follow the
// deterministic profile: a computed NaN is the positive canonical one. A function that may trap
// sets `trap` and returns 0; otherwise it leaves `trap` alone.
#pragma once

#include "abi/trap.h"
#include "base/ints.h"

#define GPURUN_NUM [[gnu::always_inline]] static inline

namespace gpurun::num {

GPURUN_NUM u32 bits(f32 x) { return __builtin_bit_cast(u32, x); }
GPURUN_NUM u64 bits(f64 x) { return __builtin_bit_cast(u64, x); }
GPURUN_NUM f32 from_bits(u32 x) { return __builtin_bit_cast(f32, x); }
GPURUN_NUM f64 from_bits(u64 x) { return __builtin_bit_cast(f64, x); }

GPURUN_NUM f32 canonical(f32 x) { return x != x ? from_bits(u32{0x7fc00000}) : x; }
GPURUN_NUM f64 canonical(f64 x) { return x != x ? from_bits(u64{0x7ff8000000000000}) : x; }

// Comparisons

GPURUN_NUM u32 i32_eqz(u32 a) { return a == 0; }
GPURUN_NUM u32 i32_eq(u32 a, u32 b) { return a == b; }
GPURUN_NUM u32 i32_ne(u32 a, u32 b) { return a != b; }
GPURUN_NUM u32 i32_lt_s(u32 a, u32 b) { return s32(a) < s32(b); }
GPURUN_NUM u32 i32_lt_u(u32 a, u32 b) { return a < b; }
GPURUN_NUM u32 i32_gt_s(u32 a, u32 b) { return s32(a) > s32(b); }
GPURUN_NUM u32 i32_gt_u(u32 a, u32 b) { return a > b; }
GPURUN_NUM u32 i32_le_s(u32 a, u32 b) { return s32(a) <= s32(b); }
GPURUN_NUM u32 i32_le_u(u32 a, u32 b) { return a <= b; }
GPURUN_NUM u32 i32_ge_s(u32 a, u32 b) { return s32(a) >= s32(b); }
GPURUN_NUM u32 i32_ge_u(u32 a, u32 b) { return a >= b; }

GPURUN_NUM u32 i64_eqz(u64 a) { return a == 0; }
GPURUN_NUM u32 i64_eq(u64 a, u64 b) { return a == b; }
GPURUN_NUM u32 i64_ne(u64 a, u64 b) { return a != b; }
GPURUN_NUM u32 i64_lt_s(u64 a, u64 b) { return s64(a) < s64(b); }
GPURUN_NUM u32 i64_lt_u(u64 a, u64 b) { return a < b; }
GPURUN_NUM u32 i64_gt_s(u64 a, u64 b) { return s64(a) > s64(b); }
GPURUN_NUM u32 i64_gt_u(u64 a, u64 b) { return a > b; }
GPURUN_NUM u32 i64_le_s(u64 a, u64 b) { return s64(a) <= s64(b); }
GPURUN_NUM u32 i64_le_u(u64 a, u64 b) { return a <= b; }
GPURUN_NUM u32 i64_ge_s(u64 a, u64 b) { return s64(a) >= s64(b); }
GPURUN_NUM u32 i64_ge_u(u64 a, u64 b) { return a >= b; }

GPURUN_NUM u32 f32_eq(f32 a, f32 b) { return a == b; }
GPURUN_NUM u32 f32_ne(f32 a, f32 b) { return a != b; }
GPURUN_NUM u32 f32_lt(f32 a, f32 b) { return a < b; }
GPURUN_NUM u32 f32_gt(f32 a, f32 b) { return a > b; }
GPURUN_NUM u32 f32_le(f32 a, f32 b) { return a <= b; }
GPURUN_NUM u32 f32_ge(f32 a, f32 b) { return a >= b; }

GPURUN_NUM u32 f64_eq(f64 a, f64 b) { return a == b; }
GPURUN_NUM u32 f64_ne(f64 a, f64 b) { return a != b; }
GPURUN_NUM u32 f64_lt(f64 a, f64 b) { return a < b; }
GPURUN_NUM u32 f64_gt(f64 a, f64 b) { return a > b; }
GPURUN_NUM u32 f64_le(f64 a, f64 b) { return a <= b; }
GPURUN_NUM u32 f64_ge(f64 a, f64 b) { return a >= b; }

// Integers

template <class U>
GPURUN_NUM U div_u(U a, U b, Trap& trap) {
    if (b == 0) {
        trap = Trap::integer_divide_by_zero;
        return 0;
    }
    return a / b;
}

template <class U>
GPURUN_NUM U rem_u(U a, U b, Trap& trap) {
    if (b == 0) {
        trap = Trap::integer_divide_by_zero;
        return 0;
    }
    return a % b;
}

template <class S>
GPURUN_NUM S div_s(S a, S b, Trap& trap) {
    if (b == 0) {
        trap = Trap::integer_divide_by_zero;
        return 0;
    }
    constexpr S min = S(1) << (8 * sizeof(S) - 1);
    if (a == min && b == -1) {
        trap = Trap::integer_overflow;
        return 0;
    }
    return a / b;
}

template <class S>
GPURUN_NUM S rem_s(S a, S b, Trap& trap) {
    if (b == 0) {
        trap = Trap::integer_divide_by_zero;
        return 0;
    }
    return b == -1 ? 0 : a % b;  // min % -1 overflows in C++ (and faults on x86)
}

GPURUN_NUM u32 i32_clz(u32 a) { return u32(__builtin_clzg(a, 32)); }
GPURUN_NUM u32 i32_ctz(u32 a) { return u32(__builtin_ctzg(a, 32)); }
GPURUN_NUM u32 i32_popcnt(u32 a) { return u32(__builtin_popcountg(a)); }
GPURUN_NUM u32 i32_add(u32 a, u32 b) { return a + b; }
GPURUN_NUM u32 i32_sub(u32 a, u32 b) { return a - b; }
GPURUN_NUM u32 i32_mul(u32 a, u32 b) { return a * b; }
GPURUN_NUM u32 i32_div_s(u32 a, u32 b, Trap& trap) { return u32(div_s(s32(a), s32(b), trap)); }
GPURUN_NUM u32 i32_div_u(u32 a, u32 b, Trap& trap) { return div_u(a, b, trap); }
GPURUN_NUM u32 i32_rem_s(u32 a, u32 b, Trap& trap) { return u32(rem_s(s32(a), s32(b), trap)); }
GPURUN_NUM u32 i32_rem_u(u32 a, u32 b, Trap& trap) { return rem_u(a, b, trap); }
GPURUN_NUM u32 i32_and(u32 a, u32 b) { return a & b; }
GPURUN_NUM u32 i32_or(u32 a, u32 b) { return a | b; }
GPURUN_NUM u32 i32_xor(u32 a, u32 b) { return a ^ b; }
GPURUN_NUM u32 i32_shl(u32 a, u32 b) { return a << (b & 31); }
GPURUN_NUM u32 i32_shr_s(u32 a, u32 b) { return u32(s32(a) >> (b & 31)); }
GPURUN_NUM u32 i32_shr_u(u32 a, u32 b) { return a >> (b & 31); }
GPURUN_NUM u32 i32_rotl(u32 a, u32 b) { return __builtin_rotateleft32(a, b); }
GPURUN_NUM u32 i32_rotr(u32 a, u32 b) { return __builtin_rotateright32(a, b); }
GPURUN_NUM u32 i32_extend8_s(u32 a) { return u32(s8(a)); }
GPURUN_NUM u32 i32_extend16_s(u32 a) { return u32(s16(a)); }

GPURUN_NUM u64 i64_clz(u64 a) { return u64(__builtin_clzg(a, 64)); }
GPURUN_NUM u64 i64_ctz(u64 a) { return u64(__builtin_ctzg(a, 64)); }
GPURUN_NUM u64 i64_popcnt(u64 a) { return u64(__builtin_popcountg(a)); }
GPURUN_NUM u64 i64_add(u64 a, u64 b) { return a + b; }
GPURUN_NUM u64 i64_sub(u64 a, u64 b) { return a - b; }
GPURUN_NUM u64 i64_mul(u64 a, u64 b) { return a * b; }
GPURUN_NUM u64 i64_div_s(u64 a, u64 b, Trap& trap) { return u64(div_s(s64(a), s64(b), trap)); }
GPURUN_NUM u64 i64_div_u(u64 a, u64 b, Trap& trap) { return div_u(a, b, trap); }
GPURUN_NUM u64 i64_rem_s(u64 a, u64 b, Trap& trap) { return u64(rem_s(s64(a), s64(b), trap)); }
GPURUN_NUM u64 i64_rem_u(u64 a, u64 b, Trap& trap) { return rem_u(a, b, trap); }
GPURUN_NUM u64 i64_and(u64 a, u64 b) { return a & b; }
GPURUN_NUM u64 i64_or(u64 a, u64 b) { return a | b; }
GPURUN_NUM u64 i64_xor(u64 a, u64 b) { return a ^ b; }
GPURUN_NUM u64 i64_shl(u64 a, u64 b) { return a << (b & 63); }
GPURUN_NUM u64 i64_shr_s(u64 a, u64 b) { return u64(s64(a) >> (b & 63)); }
GPURUN_NUM u64 i64_shr_u(u64 a, u64 b) { return a >> (b & 63); }
GPURUN_NUM u64 i64_rotl(u64 a, u64 b) { return __builtin_rotateleft64(a, b); }
GPURUN_NUM u64 i64_rotr(u64 a, u64 b) { return __builtin_rotateright64(a, b); }
GPURUN_NUM u64 i64_extend8_s(u64 a) { return u64(s8(a)); }
GPURUN_NUM u64 i64_extend16_s(u64 a) { return u64(s16(a)); }
GPURUN_NUM u64 i64_extend32_s(u64 a) { return u64(s32(a)); }
GPURUN_NUM u64 i64_extend_i32_s(u32 a) { return u64(s32(a)); }
GPURUN_NUM u64 i64_extend_i32_u(u32 a) { return a; }

// Floats: signs. These are integer operations on the word that has the sign. They are hidden from
// the optimizer, which otherwise makes neg.f32 and abs.f32 of them: PTX does not define what those
// do to a NaN.

GPURUN_NUM u32 hidden(u32 x) {
    asm("" : "+r"(x));
    return x;
}

GPURUN_NUM u32 sign_word(f32 x) { return hidden(bits(x)); }
GPURUN_NUM u32 sign_word(f64 x) { return hidden(u32(bits(x) >> 32)); }
GPURUN_NUM f32 with_sign_word(f32, u32 word) { return from_bits(word); }
GPURUN_NUM f64 with_sign_word(f64 x, u32 word) { return from_bits(u64{word} << 32 | u32(bits(x))); }

constexpr u32 sign_bit = 0x80000000;

template <class F>
GPURUN_NUM F abs(F x) {
    return with_sign_word(x, sign_word(x) & ~sign_bit);
}
template <class F>
GPURUN_NUM F neg(F x) {
    return with_sign_word(x, sign_word(x) ^ sign_bit);
}
template <class F>
GPURUN_NUM F copysign(F x, F sign) {
    return with_sign_word(x, (sign_word(x) & ~sign_bit) | (sign_word(sign) & sign_bit));
}

// Floats: arithmetic

// Returns the root, or the canonical NaN. The root is hidden from the test for NaN: LLVM would
// reduce both to the root alone, whose NaN may have any bits.
template <class F>
GPURUN_NUM F sqrt(F x) {
    F root = __builtin_elementwise_sqrt(x);
    return canonical(with_sign_word(root, sign_word(root)));
}

GPURUN_NUM f32 f32_abs(f32 a) { return abs(a); }
GPURUN_NUM f32 f32_neg(f32 a) { return neg(a); }
GPURUN_NUM f32 f32_ceil(f32 a) { return canonical(__builtin_elementwise_ceil(a)); }
GPURUN_NUM f32 f32_floor(f32 a) { return canonical(__builtin_elementwise_floor(a)); }
GPURUN_NUM f32 f32_trunc(f32 a) { return canonical(__builtin_elementwise_trunc(a)); }
GPURUN_NUM f32 f32_nearest(f32 a) { return canonical(__builtin_elementwise_roundeven(a)); }
GPURUN_NUM f32 f32_sqrt(f32 a) { return sqrt(a); }
GPURUN_NUM f32 f32_add(f32 a, f32 b) { return canonical(a + b); }
GPURUN_NUM f32 f32_sub(f32 a, f32 b) { return canonical(a - b); }
GPURUN_NUM f32 f32_mul(f32 a, f32 b) { return canonical(a * b); }
GPURUN_NUM f32 f32_div(f32 a, f32 b) { return canonical(a / b); }
GPURUN_NUM f32 f32_min(f32 a, f32 b) { return canonical(__builtin_elementwise_minimum(a, b)); }
GPURUN_NUM f32 f32_max(f32 a, f32 b) { return canonical(__builtin_elementwise_maximum(a, b)); }
GPURUN_NUM f32 f32_copysign(f32 a, f32 b) { return copysign(a, b); }

GPURUN_NUM f64 f64_abs(f64 a) { return abs(a); }
GPURUN_NUM f64 f64_neg(f64 a) { return neg(a); }
GPURUN_NUM f64 f64_ceil(f64 a) { return canonical(__builtin_elementwise_ceil(a)); }
GPURUN_NUM f64 f64_floor(f64 a) { return canonical(__builtin_elementwise_floor(a)); }
GPURUN_NUM f64 f64_trunc(f64 a) { return canonical(__builtin_elementwise_trunc(a)); }
GPURUN_NUM f64 f64_nearest(f64 a) { return canonical(__builtin_elementwise_roundeven(a)); }
GPURUN_NUM f64 f64_sqrt(f64 a) { return sqrt(a); }
GPURUN_NUM f64 f64_add(f64 a, f64 b) { return canonical(a + b); }
GPURUN_NUM f64 f64_sub(f64 a, f64 b) { return canonical(a - b); }
GPURUN_NUM f64 f64_mul(f64 a, f64 b) { return canonical(a * b); }
GPURUN_NUM f64 f64_div(f64 a, f64 b) { return canonical(a / b); }
GPURUN_NUM f64 f64_min(f64 a, f64 b) { return canonical(__builtin_elementwise_minimum(a, b)); }
GPURUN_NUM f64 f64_max(f64 a, f64 b) { return canonical(__builtin_elementwise_maximum(a, b)); }
GPURUN_NUM f64 f64_copysign(f64 a, f64 b) { return copysign(a, b); }

// Conversions

// Returns true if x, truncated, fits I. Both bounds are powers of two (or 0), which every float
// type holds; lowest - 1 is either exact or rounds to lowest.
template <class I, class F>
GPURUN_NUM bool fits(F x) {
    constexpr bool is_signed = I(-1) < 0;
    constexpr F limit = F(u64{1} << (8 * sizeof(I) - 1)) * (is_signed ? 1 : 2);
    constexpr F lowest = is_signed ? -limit : 0;
    return (x > lowest - 1 || x >= lowest) && x < limit;
}

template <class I, class F>
GPURUN_NUM I trunc_to(F x, Trap& trap) {
    if (fits<I>(x)) return I(x);
    trap = x != x ? Trap::invalid_conversion_to_integer : Trap::integer_overflow;
    return 0;
}

template <class I, class F>
GPURUN_NUM I trunc_sat_to(F x) {
    if (fits<I>(x)) return I(x);
    constexpr bool is_signed = I(-1) < 0;
    constexpr I lowest = is_signed ? I(u64{1} << (8 * sizeof(I) - 1)) : 0;
    return x != x ? 0 : x < 0 ? lowest : I(~lowest);
}

GPURUN_NUM u32 i32_trunc_f32_s(f32 a, Trap& trap) { return u32(trunc_to<s32>(a, trap)); }
GPURUN_NUM u32 i32_trunc_f32_u(f32 a, Trap& trap) { return trunc_to<u32>(a, trap); }
GPURUN_NUM u32 i32_trunc_f64_s(f64 a, Trap& trap) { return u32(trunc_to<s32>(a, trap)); }
GPURUN_NUM u32 i32_trunc_f64_u(f64 a, Trap& trap) { return trunc_to<u32>(a, trap); }
GPURUN_NUM u64 i64_trunc_f32_s(f32 a, Trap& trap) { return u64(trunc_to<s64>(a, trap)); }
GPURUN_NUM u64 i64_trunc_f32_u(f32 a, Trap& trap) { return trunc_to<u64>(a, trap); }
GPURUN_NUM u64 i64_trunc_f64_s(f64 a, Trap& trap) { return u64(trunc_to<s64>(a, trap)); }
GPURUN_NUM u64 i64_trunc_f64_u(f64 a, Trap& trap) { return trunc_to<u64>(a, trap); }

GPURUN_NUM u32 i32_trunc_sat_f32_s(f32 a) { return u32(trunc_sat_to<s32>(a)); }
GPURUN_NUM u32 i32_trunc_sat_f32_u(f32 a) { return trunc_sat_to<u32>(a); }
GPURUN_NUM u32 i32_trunc_sat_f64_s(f64 a) { return u32(trunc_sat_to<s32>(a)); }
GPURUN_NUM u32 i32_trunc_sat_f64_u(f64 a) { return trunc_sat_to<u32>(a); }
GPURUN_NUM u64 i64_trunc_sat_f32_s(f32 a) { return u64(trunc_sat_to<s64>(a)); }
GPURUN_NUM u64 i64_trunc_sat_f32_u(f32 a) { return trunc_sat_to<u64>(a); }
GPURUN_NUM u64 i64_trunc_sat_f64_s(f64 a) { return u64(trunc_sat_to<s64>(a)); }
GPURUN_NUM u64 i64_trunc_sat_f64_u(f64 a) { return trunc_sat_to<u64>(a); }

GPURUN_NUM f32 f32_convert_i32_s(u32 a) { return f32(s32(a)); }
GPURUN_NUM f32 f32_convert_i32_u(u32 a) { return f32(a); }
GPURUN_NUM f32 f32_convert_i64_s(u64 a) { return f32(s64(a)); }
GPURUN_NUM f32 f32_convert_i64_u(u64 a) { return f32(a); }
GPURUN_NUM f32 f32_demote_f64(f64 a) { return canonical(f32(a)); }
GPURUN_NUM f64 f64_convert_i32_s(u32 a) { return f64(s32(a)); }
GPURUN_NUM f64 f64_convert_i32_u(u32 a) { return f64(a); }
GPURUN_NUM f64 f64_convert_i64_s(u64 a) { return f64(s64(a)); }
GPURUN_NUM f64 f64_convert_i64_u(u64 a) { return f64(a); }
GPURUN_NUM f64 f64_promote_f32(f32 a) { return canonical(f64(a)); }

}  // namespace gpurun::num
