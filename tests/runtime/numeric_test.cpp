// The numeric instructions at their boundaries. Floats are compared by their bits.
#include "runtime/vm/numeric.h"

#include <gtest/gtest.h>

namespace gpurun {
namespace {

using namespace num;

constexpr u32 min32 = 0x80000000, max32 = 0x7fffffff;
constexpr u64 min64 = 0x8000000000000000, max64 = 0x7fffffffffffffff;
constexpr u32 nan32 = 0x7fc00000, inf32 = 0x7f800000;
constexpr u64 nan64 = 0x7ff8000000000000, inf64 = 0x7ff0000000000000;

// NaNs that no instruction may compute: signalling, negative, with a payload.
constexpr u32 odd_nans32[] = {0x7fa00000, 0xffc00000, 0x7fffffff, 0xff800001};
constexpr u64 odd_nans64[] = {0x7ff4000000000000, 0xfff8000000000000, 0x7fffffffffffffff,
                              0xfff0000000000001};

template <class Op, class... Args>
Trap trap_of(Op op, Args... args) {
    Trap trap = Trap::none;
    auto result = op(args..., trap);
    if (trap != Trap::none) EXPECT_EQ(result, decltype(result){0});
    return trap;
}
template <class Op, class... Args>
auto value_of(Op op, Args... args) {
    Trap trap = Trap::none;
    auto result = op(args..., trap);
    EXPECT_EQ(trap, Trap::none);
    return result;
}

TEST(Integers, CompareSignedAndUnsigned) {
    EXPECT_EQ(i32_lt_s(min32, 0), 1u);
    EXPECT_EQ(i32_lt_u(min32, 0), 0u);
    EXPECT_EQ(i32_ge_s(~0u, 0), 0u);
    EXPECT_EQ(i32_ge_u(~0u, 0), 1u);
    EXPECT_EQ(i32_gt_s(max32, min32), 1u);
    EXPECT_EQ(i32_le_u(max32, min32), 1u);
    EXPECT_EQ(i64_lt_s(min64, max64), 1u);
    EXPECT_EQ(i64_lt_u(min64, max64), 0u);
    EXPECT_EQ(i64_eqz(u64{1} << 32), 0u);
    EXPECT_EQ(i64_eq(u64{1} << 32, 0), 0u);
}

TEST(Integers, CountBits) {
    EXPECT_EQ(i32_clz(0), 32u);
    EXPECT_EQ(i32_ctz(0), 32u);
    EXPECT_EQ(i32_clz(1), 31u);
    EXPECT_EQ(i32_ctz(min32), 31u);
    EXPECT_EQ(i32_popcnt(~0u), 32u);
    EXPECT_EQ(i64_clz(0), 64u);
    EXPECT_EQ(i64_ctz(0), 64u);
    EXPECT_EQ(i64_clz(1), 63u);
    EXPECT_EQ(i64_ctz(min64), 63u);
    EXPECT_EQ(i64_popcnt(max64), 63u);
}

TEST(Integers, DivideOrTrap) {
    EXPECT_EQ(value_of(i32_div_s, u32(-7), 2u), u32(-3));
    EXPECT_EQ(value_of(i32_div_u, u32(-7), 2u), 0x7ffffffcu);
    EXPECT_EQ(value_of(i32_rem_s, u32(-7), 2u), u32(-1));
    EXPECT_EQ(value_of(i32_rem_s, min32, u32(-1)), 0u);
    EXPECT_EQ(value_of(i32_rem_u, min32, u32(-1)), min32);
    EXPECT_EQ(value_of(i32_div_u, min32, u32(-1)), 0u);
    EXPECT_EQ(value_of(i64_div_s, u64(-7), u64{2}), u64(-3));
    EXPECT_EQ(value_of(i64_rem_s, min64, u64(-1)), 0u);
    EXPECT_EQ(value_of(i64_rem_u, min64, u64(-1)), min64);

    EXPECT_EQ(trap_of(i32_div_s, min32, u32(-1)), Trap::integer_overflow);
    EXPECT_EQ(trap_of(i64_div_s, min64, u64(-1)), Trap::integer_overflow);
    for (auto op : {+[](u32 a, u32 b, Trap& t) { return i32_div_s(a, b, t); },
                    +[](u32 a, u32 b, Trap& t) { return i32_div_u(a, b, t); },
                    +[](u32 a, u32 b, Trap& t) { return i32_rem_s(a, b, t); },
                    +[](u32 a, u32 b, Trap& t) { return i32_rem_u(a, b, t); }})
        EXPECT_EQ(trap_of(op, min32, 0u), Trap::integer_divide_by_zero);
    for (auto op : {+[](u64 a, u64 b, Trap& t) { return i64_div_s(a, b, t); },
                    +[](u64 a, u64 b, Trap& t) { return i64_div_u(a, b, t); },
                    +[](u64 a, u64 b, Trap& t) { return i64_rem_s(a, b, t); },
                    +[](u64 a, u64 b, Trap& t) { return i64_rem_u(a, b, t); }})
        EXPECT_EQ(trap_of(op, min64, u64{0}), Trap::integer_divide_by_zero);
}

TEST(Integers, AnEarlierTrapIsLeftAlone) {
    Trap trap = Trap::unreachable;
    EXPECT_EQ(i32_div_u(6, 2, trap), 3u);
    EXPECT_EQ(i64_trunc_f64_s(-1.5, trap), u64(-1));
    EXPECT_EQ(trap, Trap::unreachable);
}

TEST(Integers, ShiftCountsWrap) {
    EXPECT_EQ(i32_shl(1, 33), 2u);
    EXPECT_EQ(i32_shr_s(min32, 63), ~0u);
    EXPECT_EQ(i32_shr_u(min32, 63), 1u);
    EXPECT_EQ(i32_rotl(0x80000001, 33), 3u);
    EXPECT_EQ(i32_rotr(0x80000001, 32), 0x80000001u);
    EXPECT_EQ(i64_shl(1, 65), 2u);
    EXPECT_EQ(i64_shr_s(min64, 127), ~u64{0});
    EXPECT_EQ(i64_shr_u(min64, 127), 1u);
    EXPECT_EQ(i64_rotl(min64 | 1, 65), 3u);
    EXPECT_EQ(i64_rotr(min64 | 1, u64(-1)), 3u);
}

TEST(Integers, Extend) {
    EXPECT_EQ(i32_extend8_s(0x17f), 0x7fu);
    EXPECT_EQ(i32_extend8_s(0x80), 0xffffff80u);
    EXPECT_EQ(i32_extend16_s(0x18000), 0xffff8000u);
    EXPECT_EQ(i64_extend8_s(0x80), 0xffffffffffffff80u);
    EXPECT_EQ(i64_extend16_s(0x8000), 0xffffffffffff8000u);
    EXPECT_EQ(i64_extend32_s(min32), 0xffffffff80000000u);
    EXPECT_EQ(i64_extend_i32_s(min32), 0xffffffff80000000u);
    EXPECT_EQ(i64_extend_i32_u(min32), 0x80000000u);
}

TEST(Floats, ComputedNansAreCanonical) {
    for (u32 nan : odd_nans32) {
        f32 x = from_bits(nan);
        for (f32 r : {f32_ceil(x), f32_floor(x), f32_trunc(x), f32_nearest(x), f32_sqrt(x),
                      f32_add(x, 1), f32_add(1, x), f32_sub(x, x), f32_mul(x, 0), f32_div(1, x),
                      f32_min(x, 1), f32_min(1, x), f32_max(x, 1), f32_max(1, x)})
            EXPECT_EQ(bits(r), nan32) << std::hex << nan;
        EXPECT_EQ(bits(f64_promote_f32(x)), nan64) << std::hex << nan;
    }
    for (u64 nan : odd_nans64) {
        f64 x = from_bits(nan);
        for (f64 r : {f64_ceil(x), f64_floor(x), f64_trunc(x), f64_nearest(x), f64_sqrt(x),
                      f64_add(x, 1), f64_add(1, x), f64_sub(x, x), f64_mul(x, 0), f64_div(1, x),
                      f64_min(x, 1), f64_min(1, x), f64_max(x, 1), f64_max(1, x)})
            EXPECT_EQ(bits(r), nan64) << std::hex << nan;
        EXPECT_EQ(bits(f32_demote_f64(x)), nan32) << std::hex << nan;
    }
    f32 inf = from_bits(inf32);
    EXPECT_EQ(bits(f32_sub(inf, inf)), nan32);
    EXPECT_EQ(bits(f32_mul(inf, 0)), nan32);
    EXPECT_EQ(bits(f32_div(0, 0)), nan32);
    EXPECT_EQ(bits(f32_sqrt(-1)), nan32);
    EXPECT_EQ(bits(f64_div(0, 0)), nan64);
    EXPECT_EQ(bits(f64_sqrt(-1)), nan64);
}

TEST(Floats, SignInstructionsKeepNans) {
    for (u32 nan : odd_nans32) {
        f32 x = from_bits(nan);
        EXPECT_EQ(bits(f32_abs(x)), nan & max32);
        EXPECT_EQ(bits(f32_neg(x)), nan ^ min32);
        EXPECT_EQ(bits(f32_copysign(x, -1)), nan | min32);
        EXPECT_EQ(bits(f32_copysign(1, x)), 0x3f800000 | (nan & min32));
    }
    for (u64 nan : odd_nans64) {
        f64 x = from_bits(nan);
        EXPECT_EQ(bits(f64_abs(x)), nan & max64);
        EXPECT_EQ(bits(f64_neg(x)), nan ^ min64);
        EXPECT_EQ(bits(f64_copysign(x, -1)), nan | min64);
        EXPECT_EQ(bits(f64_copysign(1, x)), 0x3ff0000000000000 | (nan & min64));
    }
}

TEST(Floats, ZerosHaveSigns) {
    EXPECT_EQ(bits(f32_min(0.f, -0.f)), min32);
    EXPECT_EQ(bits(f32_min(-0.f, 0.f)), min32);
    EXPECT_EQ(bits(f32_max(0.f, -0.f)), 0u);
    EXPECT_EQ(bits(f32_max(-0.f, 0.f)), 0u);
    EXPECT_EQ(bits(f64_min(0., -0.)), min64);
    EXPECT_EQ(bits(f64_min(-0., 0.)), min64);
    EXPECT_EQ(bits(f64_max(0., -0.)), 0u);
    EXPECT_EQ(bits(f64_max(-0., 0.)), 0u);
    EXPECT_EQ(bits(f32_ceil(-0.5f)), min32);
    EXPECT_EQ(bits(f64_trunc(-0.5)), min64);
    EXPECT_EQ(bits(f64_nearest(-0.5)), min64);
    EXPECT_EQ(bits(f32_sqrt(-0.f)), min32);
    EXPECT_EQ(bits(f32_add(-0.f, -0.f)), min32);
    EXPECT_EQ(bits(f32_sub(0.f, 0.f)), 0u);
    EXPECT_EQ(f64_eq(0., -0.), 1u);
}

TEST(Floats, CompareWithNan) {
    f32 nan = from_bits(nan32);
    EXPECT_EQ(f32_ne(nan, nan), 1u);
    EXPECT_EQ(f32_eq(nan, nan), 0u);
    EXPECT_EQ(f32_lt(nan, 1) + f32_gt(nan, 1) + f32_le(nan, 1) + f32_ge(nan, 1), 0u);
    f64 nan_64 = from_bits(nan64);
    EXPECT_EQ(f64_ne(nan_64, 1), 1u);
    EXPECT_EQ(f64_lt(1, nan_64) + f64_gt(1, nan_64) + f64_le(1, nan_64) + f64_ge(1, nan_64), 0u);
}

TEST(Floats, NearestIsHalfToEven) {
    struct {
        f64 x, nearest;
    } const rows[] = {{0.5, 0}, {1.5, 2},    {2.5, 2}, {-1.5, -2}, {-2.5, -2}, {4194304.5, 4194304},
                      {3.7, 4}, {1e30, 1e30}};
    for (auto& row : rows) {
        EXPECT_EQ(f64_nearest(row.x), row.nearest);
        EXPECT_EQ(f32_nearest(f32(row.x)), f32(row.nearest));
    }
    EXPECT_EQ(f32_nearest(8388607.5f), 8388608.f);
    EXPECT_EQ(f64_nearest(4503599627370495.5), 4503599627370496.);
    EXPECT_EQ(f64_nearest(0.49999999999999994), 0.);
}

TEST(Floats, SubnormalsAreNotFlushed) {
    f32 tiny = from_bits(u32{1});
    EXPECT_EQ(bits(f32_add(tiny, tiny)), 2u);
    EXPECT_EQ(bits(f32_mul(from_bits(u32{0x00800000}), 0.5f)), 0x00400000u);
    EXPECT_EQ(bits(f32_div(tiny, 1)), 1u);
    EXPECT_EQ(bits(f32_ceil(tiny)), 0x3f800000u);
    EXPECT_EQ(bits(f64_promote_f32(tiny)), 0x36a0000000000000u);
    EXPECT_EQ(bits(f32_demote_f64(0x1p-149)), 1u);
    EXPECT_EQ(bits(f32_demote_f64(0x1p-150)), 0u);
    EXPECT_EQ(bits(f32_demote_f64(0x1.000001p-150)), 1u);
}

TEST(Conversions, DemoteRounds) {
    EXPECT_EQ(bits(f32_demote_f64(0x1.fffffefffffffp127)), 0x7f7fffffu);
    EXPECT_EQ(bits(f32_demote_f64(0x1.ffffffp127)), inf32);
    EXPECT_EQ(bits(f64_promote_f32(from_bits(inf32 | min32))), inf64 | min64);
}

// The last value inside and the first outside, at either end.
template <class Op, class Sat, class F, class U>
void expect_range(Op op, Sat sat, F lowest, F below, F highest, F above, U min, U at_highest,
                  U max) {
    EXPECT_EQ(value_of(op, lowest), min);
    EXPECT_EQ(value_of(op, highest), at_highest);
    EXPECT_EQ(trap_of(op, below), Trap::integer_overflow);
    EXPECT_EQ(trap_of(op, above), Trap::integer_overflow);
    EXPECT_EQ(sat(lowest), min);
    EXPECT_EQ(sat(highest), at_highest);
    EXPECT_EQ(sat(below), min);
    EXPECT_EQ(sat(above), max);
    F infinity = F(1) / F(0), nan = infinity - infinity;
    EXPECT_EQ(trap_of(op, infinity), Trap::integer_overflow);
    EXPECT_EQ(trap_of(op, -infinity), Trap::integer_overflow);
    EXPECT_EQ(trap_of(op, nan), Trap::invalid_conversion_to_integer);
    EXPECT_EQ(trap_of(op, -nan), Trap::invalid_conversion_to_integer);
    EXPECT_EQ(sat(infinity), max);
    EXPECT_EQ(sat(-infinity), min);
    EXPECT_EQ(sat(nan), U{0});
    EXPECT_EQ(value_of(op, F(-0.9)), U{0});
    EXPECT_EQ(sat(F(1.9)), U{1});
}

TEST(Conversions, TruncRanges) {
    expect_range(i32_trunc_f32_s, i32_trunc_sat_f32_s, -0x1p31f, -0x1.000002p31f, 0x1.fffffep30f,
                 0x1p31f, min32, 0x7fffff80u, max32);
    expect_range(i32_trunc_f32_u, i32_trunc_sat_f32_u, -0x1.fffffep-1f, -1.f, 0x1.fffffep31f,
                 0x1p32f, 0u, 0xffffff00u, ~0u);
    expect_range(i32_trunc_f64_s, i32_trunc_sat_f64_s, -2147483648.9999995, -2147483649.,
                 2147483647.9999998, 2147483648., min32, max32, max32);
    expect_range(i32_trunc_f64_u, i32_trunc_sat_f64_u, -0x1.fffffffffffffp-1, -1.,
                 4294967295.9999995, 4294967296., 0u, ~0u, ~0u);
    expect_range(i64_trunc_f32_s, i64_trunc_sat_f32_s, -0x1p63f, -0x1.000002p63f, 0x1.fffffep62f,
                 0x1p63f, min64, u64{0x7fffff8000000000}, max64);
    expect_range(i64_trunc_f32_u, i64_trunc_sat_f32_u, -0x1.fffffep-1f, -1.f, 0x1.fffffep63f,
                 0x1p64f, u64{0}, u64{0xffffff0000000000}, ~u64{0});
    expect_range(i64_trunc_f64_s, i64_trunc_sat_f64_s, -0x1p63, -0x1.0000000000001p63,
                 0x1.fffffffffffffp62, 0x1p63, min64, u64{0x7ffffffffffffc00}, max64);
    expect_range(i64_trunc_f64_u, i64_trunc_sat_f64_u, -0x1.fffffffffffffp-1, -1.,
                 0x1.fffffffffffffp63, 0x1p64, u64{0}, u64{0xfffffffffffff800}, ~u64{0});
}

TEST(Conversions, IntegersRoundOnceToEven) {
    EXPECT_EQ(f32_convert_i32_s(0x01000001), 0x1p24f);
    EXPECT_EQ(f32_convert_i32_s(0x01000003), 0x1.000004p24f);
    EXPECT_EQ(f32_convert_i32_s(min32), -0x1p31f);
    EXPECT_EQ(f32_convert_i32_u(~0u), 0x1p32f);
    EXPECT_EQ(f32_convert_i64_s(min64), -0x1p63f);
    EXPECT_EQ(f32_convert_i64_u(~u64{0}), 0x1p64f);
    // Twice rounded, by way of f64, these would be 0x1p60 and 0x1p63.
    EXPECT_EQ(f32_convert_i64_s(0x1000001000000001), 0x1.000002p60f);
    EXPECT_EQ(f32_convert_i64_u(0x8000008000000001), 0x1.000002p63f);
    EXPECT_EQ(f64_convert_i32_u(~0u), 4294967295.);
    EXPECT_EQ(f64_convert_i64_s(0x20000000000001), 0x1p53);
    EXPECT_EQ(f64_convert_i64_u(0x8000000000000400), 0x1p63);
    EXPECT_EQ(f64_convert_i64_u(0x8000000000000401), 0x1.0000000000001p63);
    EXPECT_EQ(f64_convert_i64_u(~u64{0}), 0x1p64);
}

}  // namespace
}  // namespace gpurun
