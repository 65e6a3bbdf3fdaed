// The vector instructions, lane by lane against a plain model, over pairs of boundary values;
// and that every row of the instruction table has its function.
#include "runtime/vm/simd.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <type_traits>

namespace gpurun {
namespace {

using namespace num;

#define OP(name)
#define HAS(name, ...) static_assert(std::is_same_v<decltype(num::name), __VA_ARGS__>);
#define CMP_INT(name, T) HAS(name, u32(T, T))
#define CMP_FLOAT(name, T) HAS(name, u32(T, T))
#define BIN_INT(name, T) HAS(name, T(T, T))
#define UN(name, R, A) HAS(name, R(A))
#define UN_TRAP(name, R, A) HAS(name, R(A, Trap&))
#define BIN(name, R, A, B) HAS(name, R(A, B))
#define BIN_TRAP(name, R, A, B) HAS(name, R(A, B, Trap&))
#define VEC_UN(name, R, A) HAS(name, R(A))
#define VEC_BIN(name, R, A, B) HAS(name, R(A, B))
#define VEC_TERN(name, R, A, B, C) HAS(name, R(A, B, C))
#define LANE_GET(name, R) HAS(name, R(V128, u32))
#define LANE_SET(name, A) HAS(name, V128(V128, A, u32))
#define VEC_LOAD(name, M) HAS(name, V128(M))
#define VEC_LOAD_LANE(name, M) HAS(name, V128(V128, M, u32))
#define VEC_STORE_LANE(name, M) HAS(name, M(V128, u32))
#include "abi/code_ops.def"
#undef HAS
#undef OP

template <class T>
using Array = std::array<T, 16 / sizeof(T)>;

template <class T>
Array<T> lanes_of(V128 v) {
    return __builtin_bit_cast(Array<T>, v);
}
template <class T>
V128 vector(Array<T> a) {
    return __builtin_bit_cast(V128, a);
}
template <class T>
V128 fill(T x) {
    Array<T> a;
    a.fill(x);
    return vector<T>(a);
}

template <class T>
std::array<T, 10> boundaries() {
    T min = std::numeric_limits<T>::min(), max = std::numeric_limits<T>::max();
    return {0, 1, 2, T(-1), T(-2), min, T(min + 1), max, T(max - 1), T(0x5555555555555555)};
}

// One vector that holds boundary value i, i + 1, ... in its lanes.
template <class T>
V128 boundary_vector(usize i) {
    Array<T> a;
    for (T& x : a) x = boundaries<T>()[i++ % 10];
    return vector<T>(a);
}

// op of lanes of T gives lanes of R, as many, as `model` does it.
template <class T, class R = T, class Op, class Model>
void expect_unary(Op op, Model model) {
    for (usize i = 0; i < 10; i++) {
        V128 a = boundary_vector<T>(i);
        Array<R> result = lanes_of<R>(op(a));
        for (usize n = 0; n < result.size(); n++)
            EXPECT_EQ(result[n], R(model(lanes_of<T>(a)[n]))) << "lane " << n << " of " << i;
    }
}
template <class T, class R = T, class Op, class Model>
void expect_binary(Op op, Model model) {
    for (usize i = 0; i < 10; i++) {
        for (usize j = 0; j < 10; j++) {
            V128 a = boundary_vector<T>(i), b = boundary_vector<T>(j);
            Array<R> result = lanes_of<R>(op(a, b));
            for (usize n = 0; n < result.size(); n++)
                EXPECT_EQ(result[n], R(model(lanes_of<T>(a)[n], lanes_of<T>(b)[n])))
                    << "lane " << n << " of " << i << ", " << j;
        }
    }
}

template <class T>
T saturate(s64 x) {
    return T(std::clamp<s64>(x, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
}
template <class T>
constexpr auto saturated =
    [](auto f) { return [f](s64 a, s64 b) { return saturate<T>(f(a, b)); }; };

constexpr auto sum = [](auto a, auto b) { return u64(a) + u64(b); };
constexpr auto difference = [](auto a, auto b) { return u64(a) - u64(b); };
constexpr auto product = [](auto a, auto b) { return u64(a) * u64(b); };
constexpr auto smaller = [](auto a, auto b) { return a < b ? a : b; };
constexpr auto larger = [](auto a, auto b) { return a < b ? b : a; };
constexpr auto mask = [](auto f) { return [f](auto a, auto b) { return f(a, b) ? -1 : 0; }; };
constexpr auto average = [](u32 a, u32 b) { return (a + b + 1) / 2; };
constexpr auto absolute = [](auto a) { return a < 0 ? -u64(a) : u64(a); };
constexpr auto negative = [](auto a) { return -u64(a); };

#define EXPECT_SHAPE(shape, S, U)                            \
    expect_unary<S>(shape##_abs, absolute);                  \
    expect_unary<S>(shape##_neg, negative);                  \
    expect_binary<U>(shape##_add, sum);                      \
    expect_binary<U>(shape##_sub, difference);               \
    expect_binary<U>(shape##_eq, mask(std::equal_to()));     \
    expect_binary<U>(shape##_ne, mask(std::not_equal_to())); \
    expect_binary<S>(shape##_lt_s, mask(std::less()));       \
    expect_binary<S>(shape##_gt_s, mask(std::greater()));    \
    expect_binary<S>(shape##_le_s, mask(std::less_equal())); \
    expect_binary<S>(shape##_ge_s, mask(std::greater_equal()));
#define EXPECT_ORDER(shape, S, U)                               \
    expect_binary<U>(shape##_lt_u, mask(std::less()));          \
    expect_binary<U>(shape##_gt_u, mask(std::greater()));       \
    expect_binary<U>(shape##_le_u, mask(std::less_equal()));    \
    expect_binary<U>(shape##_ge_u, mask(std::greater_equal())); \
    expect_binary<S>(shape##_min_s, smaller);                   \
    expect_binary<U>(shape##_min_u, smaller);                   \
    expect_binary<S>(shape##_max_s, larger);                    \
    expect_binary<U>(shape##_max_u, larger);
#define EXPECT_SATURATION(shape, S, U)                               \
    expect_binary<S>(shape##_add_sat_s, saturated<S>(std::plus()));  \
    expect_binary<U>(shape##_add_sat_u, saturated<U>(std::plus()));  \
    expect_binary<S>(shape##_sub_sat_s, saturated<S>(std::minus())); \
    expect_binary<U>(shape##_sub_sat_u, saturated<U>(std::minus())); \
    expect_binary<U>(shape##_avgr_u, average);

TEST(Vectors, IntegerLanes) {
    EXPECT_SHAPE(i8x16, s8, u8)
    EXPECT_SHAPE(i16x8, s16, u16)
    EXPECT_SHAPE(i32x4, s32, u32)
    EXPECT_SHAPE(i64x2, s64, u64)
    EXPECT_ORDER(i8x16, s8, u8)
    EXPECT_ORDER(i16x8, s16, u16)
    EXPECT_ORDER(i32x4, s32, u32)
    EXPECT_SATURATION(i8x16, s8, u8)
    EXPECT_SATURATION(i16x8, s16, u16)
    expect_binary<u16>(i16x8_mul, product);
    expect_binary<u32>(i32x4_mul, product);
    expect_binary<u64>(i64x2_mul, product);
    expect_unary<u8>(i8x16_popcnt, [](u8 a) { return __builtin_popcount(a); });
    auto q15 = [](s32 a, s32 b) { return saturate<s16>((a * b + 0x4000) >> 15); };
    expect_binary<s16>(i16x8_q15mulr_sat_s, q15);
    expect_binary<s16>(i16x8_relaxed_q15mulr_s, q15);
}

template <class T, class Op, class Model>
void expect_shift(Op op, Model model) {
    constexpr u32 width = 8 * sizeof(T);
    for (u32 count : {0u, 1u, width - 1, width, width + 1, 0xffffffffu})
        expect_unary<T>([=](V128 a) { return op(a, count); },
                        [=](T a) { return model(a, count % width); });
}

TEST(Vectors, ShiftCountsWrap) {
    auto left = [](auto a, u32 n) { return u64(a) << n; };
    auto right = [](auto a, u32 n) { return a >> n; };
    expect_shift<u8>(i8x16_shl, left);
    expect_shift<s8>(i8x16_shr_s, right);
    expect_shift<u8>(i8x16_shr_u, right);
    expect_shift<u16>(i16x8_shl, left);
    expect_shift<s16>(i16x8_shr_s, right);
    expect_shift<u16>(i16x8_shr_u, right);
    expect_shift<u32>(i32x4_shl, left);
    expect_shift<s32>(i32x4_shr_s, right);
    expect_shift<u32>(i32x4_shr_u, right);
    expect_shift<u64>(i64x2_shl, left);
    expect_shift<s64>(i64x2_shr_s, right);
    expect_shift<u64>(i64x2_shr_u, right);
}

TEST(Vectors, Bits) {
    V128 a{{0xff00ff00, 0x12345678, 0, ~0u}}, b{{0x0ff00ff0, 0x9abcdef0, 5, 6}};
    V128 m{{0xffff0000, 0x0f0f0f0f, ~0u, 0}};
    for (int i = 0; i < 4; i++) {
        u32 x = a.word[i], y = b.word[i], selected = (x & m.word[i]) | (y & ~m.word[i]);
        EXPECT_EQ(v128_not(a).word[i], ~x);
        EXPECT_EQ(v128_and(a, b).word[i], x & y);
        EXPECT_EQ(v128_andnot(a, b).word[i], x & ~y);
        EXPECT_EQ(v128_or(a, b).word[i], x | y);
        EXPECT_EQ(v128_xor(a, b).word[i], x ^ y);
        EXPECT_EQ(v128_bitselect(a, b, m).word[i], selected);
        EXPECT_EQ(i8x16_relaxed_laneselect(a, b, m).word[i], selected);
        EXPECT_EQ(i64x2_relaxed_laneselect(a, b, m).word[i], selected);
    }
    EXPECT_EQ(v128_any_true(V128{}), 0u);
    EXPECT_EQ(v128_any_true(V128{{0, 0, 0, 0x80000000}}), 1u);
}

TEST(Vectors, TestsOfAllLanes) {
    V128 v{{0x80000001, 0x00010000, 0x7fff8000, 0xff000000}};
    EXPECT_EQ(i8x16_all_true(v), 0u);
    EXPECT_EQ(i8x16_all_true(fill<u8>(1)), 1u);
    EXPECT_EQ(i16x8_all_true(v), 0u);
    EXPECT_EQ(i16x8_all_true(fill<u16>(0x100)), 1u);
    EXPECT_EQ(i32x4_all_true(v), 1u);
    EXPECT_EQ(i64x2_all_true(v), 1u);
    EXPECT_EQ(i64x2_all_true(V128{{0, 1, 0, 0}}), 0u);
    EXPECT_EQ(i8x16_bitmask(v), 0b1000'0110'0000'1000u);
    EXPECT_EQ(i16x8_bitmask(v), 0b10010010u);
    EXPECT_EQ(i32x4_bitmask(v), 0b1001u);
    EXPECT_EQ(i64x2_bitmask(v), 0b10u);
}

template <class W, class N, class Low, class High>
void expect_extend(Low extend_low, High extend_high) {
    V128 v = boundary_vector<N>(0);
    for (usize i = 0; i < 16 / sizeof(W); i++) {
        EXPECT_EQ(lanes_of<W>(extend_low(v))[i], W(lanes_of<N>(v)[i]));
        EXPECT_EQ(lanes_of<W>(extend_high(v))[i], W(lanes_of<N>(v)[i + 16 / sizeof(W)]));
    }
}

// Pairs of lanes of N combine into one of W; low and high take their halves.
template <class W, class N, class Low, class High>
void expect_extmul(Low low_op, High high_op) {
    for (usize i = 0; i < 100; i++) {
        V128 a = boundary_vector<N>(i / 10), b = boundary_vector<N>(i % 10);
        Array<N> x = lanes_of<N>(a), y = lanes_of<N>(b);
        usize half = x.size() / 2;
        for (usize n = 0; n < half; n++) {
            EXPECT_EQ(lanes_of<W>(low_op(a, b))[n], W(W(x[n]) * W(y[n])));
            EXPECT_EQ(lanes_of<W>(high_op(a, b))[n], W(W(x[n + half]) * W(y[n + half])));
        }
    }
}

template <class W, class N, class Op>
void expect_pairwise(Op op) {
    for (usize i = 0; i < 10; i++) {
        Array<N> x = lanes_of<N>(boundary_vector<N>(i));
        for (usize n = 0; n < x.size() / 2; n++)
            EXPECT_EQ(lanes_of<W>(op(vector<N>(x)))[n], W(W(x[2 * n]) + W(x[2 * n + 1])));
    }
}

TEST(Vectors, TwoWidths) {
    expect_extend<u16, s8>(i16x8_extend_low_i8x16_s, i16x8_extend_high_i8x16_s);
    expect_extend<u16, u8>(i16x8_extend_low_i8x16_u, i16x8_extend_high_i8x16_u);
    expect_extend<u32, s16>(i32x4_extend_low_i16x8_s, i32x4_extend_high_i16x8_s);
    expect_extend<u32, u16>(i32x4_extend_low_i16x8_u, i32x4_extend_high_i16x8_u);
    expect_extend<u64, s32>(i64x2_extend_low_i32x4_s, i64x2_extend_high_i32x4_s);
    expect_extend<u64, u32>(i64x2_extend_low_i32x4_u, i64x2_extend_high_i32x4_u);
    expect_extmul<s16, s8>(i16x8_extmul_low_i8x16_s, i16x8_extmul_high_i8x16_s);
    expect_extmul<u16, u8>(i16x8_extmul_low_i8x16_u, i16x8_extmul_high_i8x16_u);
    expect_extmul<s32, s16>(i32x4_extmul_low_i16x8_s, i32x4_extmul_high_i16x8_s);
    expect_extmul<u32, u16>(i32x4_extmul_low_i16x8_u, i32x4_extmul_high_i16x8_u);
    expect_extmul<s64, s32>(i64x2_extmul_low_i32x4_s, i64x2_extmul_high_i32x4_s);
    expect_extmul<u64, u32>(i64x2_extmul_low_i32x4_u, i64x2_extmul_high_i32x4_u);
    expect_pairwise<s16, s8>(i16x8_extadd_pairwise_i8x16_s);
    expect_pairwise<u16, u8>(i16x8_extadd_pairwise_i8x16_u);
    expect_pairwise<s32, s16>(i32x4_extadd_pairwise_i16x8_s);
    expect_pairwise<u32, u16>(i32x4_extadd_pairwise_i16x8_u);
}

TEST(Vectors, NarrowSaturates) {
    V128 a = vector<s16>({-32768, -129, -128, -1, 0, 127, 128, 255});
    V128 b = vector<s16>({256, 32767, 1, 2, 3, 4, 5, 6});
    EXPECT_EQ(lanes_of<s8>(i8x16_narrow_i16x8_s(a, b)),
              (Array<s8>{-128, -128, -128, -1, 0, 127, 127, 127, 127, 127, 1, 2, 3, 4, 5, 6}));
    EXPECT_EQ(lanes_of<u8>(i8x16_narrow_i16x8_u(a, b)),
              (Array<u8>{0, 0, 0, 0, 0, 127, 128, 255, 255, 255, 1, 2, 3, 4, 5, 6}));
    V128 c = vector<s32>({-2147483647 - 1, -32769, -32768, 32767});
    V128 d = vector<s32>({32768, 65535, 65536, 2147483647});
    EXPECT_EQ(lanes_of<s16>(i16x8_narrow_i32x4_s(c, d)),
              (Array<s16>{-32768, -32768, -32768, 32767, 32767, 32767, 32767, 32767}));
    EXPECT_EQ(lanes_of<u16>(i16x8_narrow_i32x4_u(c, d)),
              (Array<u16>{0, 0, 0, 32767, 32768, 65535, 65535, 65535}));
}

TEST(Vectors, DotProducts) {
    V128 least = fill<s16>(-32768);
    EXPECT_EQ(lanes_of<u32>(i32x4_dot_i16x8_s(least, least)), lanes_of<u32>(fill(0x80000000u)));
    V128 a = vector<s8>({-128, -128, 127, 127, -128, -128, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
    V128 b = vector<s8>({127, 127, 127, 127, -128, -128, -1, 1, 1, 1, 1, 1, 1, 1, 1, 1});
    EXPECT_EQ(lanes_of<s16>(i16x8_relaxed_dot_i8x16_i7x16_s(a, b)),
              (Array<s16>{-32512, 32258, 32767, 1, 7, 11, 15, 19}));
    V128 c = vector<s32>({1, 2, 3, 0x7fffffff});
    EXPECT_EQ(lanes_of<s32>(i32x4_relaxed_dot_i8x16_i7x16_add_s(a, b, c)),
              (Array<s32>{-253, 32770, 21, -2147483647 - 1 + 33}));
}

TEST(Vectors, LanesAndSplats) {
    V128 v = vector<u8>({0x80, 1, 2, 3, 4, 5, 6, 0x87, 8, 9, 10, 11, 12, 13, 14, 0xff});
    EXPECT_EQ(i8x16_extract_lane_s(v, 0), 0xffffff80u);
    EXPECT_EQ(i8x16_extract_lane_u(v, 15), 0xffu);
    EXPECT_EQ(i16x8_extract_lane_s(v, 3), 0xffff8706u);
    EXPECT_EQ(i16x8_extract_lane_u(v, 7), 0xff0eu);
    EXPECT_EQ(i32x4_extract_lane(v, 2), 0x0b0a0908u);
    EXPECT_EQ(i64x2_extract_lane(v, 1), 0xff0e0d0c0b0a0908u);
    EXPECT_EQ(v128_store16_lane(v, 4), 0x0908u);
    for (u32 i = 0; i < 16; i++) {
        Array<u8> expected = lanes_of<u8>(v);
        expected[i] = 0xaa;
        EXPECT_EQ(lanes_of<u8>(i8x16_replace_lane(v, 0x1aa, i)), expected);
        EXPECT_EQ(lanes_of<u8>(v128_load8_lane(v, 0xaa, i)), expected);
    }
    for (u32 i = 0; i < 4; i++) {
        Array<u32> expected = lanes_of<u32>(v);
        expected[i] = 0x7fa00000;
        EXPECT_EQ(lanes_of<u32>(i32x4_replace_lane(v, 0x7fa00000, i)), expected);
        V128 replaced = f32x4_replace_lane(v, from_bits(u32{0x7fa00000}), i);
        EXPECT_EQ(lanes_of<u32>(replaced), expected);
        EXPECT_EQ(bits(f32x4_extract_lane(replaced, i)), 0x7fa00000u);
    }
    for (u32 i = 0; i < 2; i++) {
        Array<u64> expected = lanes_of<u64>(v);
        expected[i] = 0xfff0000000000001;
        EXPECT_EQ(lanes_of<u64>(i64x2_replace_lane(v, 0xfff0000000000001, i)), expected);
        V128 replaced = f64x2_replace_lane(v, from_bits(u64{0xfff0000000000001}), i);
        EXPECT_EQ(lanes_of<u64>(replaced), expected);
    }
    EXPECT_EQ(lanes_of<u8>(i8x16_splat(0x1ff)), lanes_of<u8>(fill<u8>(0xff)));
    EXPECT_EQ(lanes_of<u16>(i16x8_splat(0x1ffff)), lanes_of<u16>(fill<u16>(0xffff)));
    EXPECT_EQ(lanes_of<u32>(f32x4_splat(-0.f)), lanes_of<u32>(fill(0x80000000u)));
    EXPECT_EQ(lanes_of<u64>(f64x2_splat(from_bits(u64{0xfff0000000000001}))),
              lanes_of<u64>(fill<u64>(0xfff0000000000001)));
}

TEST(Vectors, SwizzleAndShuffle) {
    V128 a = vector<u8>({100, 101, 102, 103, 104, 105, 106, 107,  //
                         108, 109, 110, 111, 112, 113, 114, 115});
    V128 b = i8x16_add(a, fill<u8>(100));
    V128 indices = vector<u8>({15, 0, 16, 31, 7, 8, 17, 24, 1, 2, 3, 4, 30, 23, 22, 9});
    EXPECT_EQ(lanes_of<u8>(i8x16_shuffle(a, b, indices)),
              (Array<u8>{115, 100, 200, 215, 107, 108, 201, 208,  //
                         101, 102, 103, 104, 214, 207, 206, 109}));
    V128 far = vector<u8>({15, 0, 16, 31, 7, 8, 127, 128, 255, 2, 3, 4, 144, 1, 240, 9});
    Array<u8> swizzled{115, 100, 0, 0, 107, 108, 0, 0, 0, 102, 103, 104, 0, 101, 0, 109};
    EXPECT_EQ(lanes_of<u8>(i8x16_swizzle(a, far)), swizzled);
    EXPECT_EQ(lanes_of<u8>(i8x16_relaxed_swizzle(a, far)), swizzled);
}

TEST(Vectors, Loads) {
    u64 raw = 0x8000'7fff'0180'ff7f;
    EXPECT_EQ(lanes_of<s16>(v128_load8x8_s(raw)), (Array<s16>{127, -1, -128, 1, -1, 127, 0, -128}));
    EXPECT_EQ(lanes_of<u16>(v128_load8x8_u(raw)), (Array<u16>{127, 255, 128, 1, 255, 127, 0, 128}));
    EXPECT_EQ(lanes_of<u32>(v128_load16x4_s(raw)),
              (Array<u32>{0xffffff7f, 0x180, 0x7fff, 0xffff8000}));
    EXPECT_EQ(lanes_of<u32>(v128_load16x4_u(raw)), (Array<u32>{0xff7f, 0x180, 0x7fff, 0x8000}));
    EXPECT_EQ(lanes_of<u64>(v128_load32x2_s(raw)), (Array<u64>{0x0180ff7f, 0xffffffff80007fff}));
    EXPECT_EQ(lanes_of<u64>(v128_load32x2_u(raw)), (Array<u64>{0x0180ff7f, 0x80007fff}));
    EXPECT_EQ(lanes_of<u16>(v128_load16_splat(0x1234)), lanes_of<u16>(fill<u16>(0x1234)));
    EXPECT_EQ(lanes_of<u64>(v128_load64_splat(raw)), lanes_of<u64>(fill(raw)));
    EXPECT_EQ(lanes_of<u64>(v128_load32_zero(0xffffffff)), (Array<u64>{0xffffffff, 0}));
    EXPECT_EQ(lanes_of<u64>(v128_load64_zero(raw)), (Array<u64>{raw, 0}));
}

// Values of f32 and f64 that make every pair interesting, NaNs with payloads among them.
constexpr u32 floats32[] = {0,          0x80000000, 1,          0x80000001, 0x3f800000, 0xbfc00000,
                            0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000, 0x7fa00000, 0xffc12345,
                            0x4f000000, 0xcf000000, 0x4b000001, 0x40200000};
constexpr u64 floats64[] = {0,
                            0x8000000000000000,
                            1,
                            0x3ff0000000000000,
                            0xbff8000000000000,
                            0x7fefffffffffffff,
                            0x7ff0000000000000,
                            0xfff0000000000000,
                            0x7ff4000000000000,
                            0xfff8123456789abc,
                            0x41dfffffffffffff,
                            0xc1e0000000000000,
                            0x4004000000000000};

template <class F, class U, usize n, class Vector, class Scalar>
void expect_float_binary(const U (&values)[n], Vector vector_op, Scalar scalar_op) {
    for (U a : values)
        for (U b : values)
            EXPECT_EQ(lanes_of<U>(vector_op(fill(a), fill(b))),
                      lanes_of<U>(fill(__builtin_bit_cast(
                          U, scalar_op(__builtin_bit_cast(F, a), __builtin_bit_cast(F, b))))))
                << std::hex << a << " " << b;
}
template <class F, class U, usize n, class Vector, class Scalar>
void expect_float_unary(const U (&values)[n], Vector vector_op, Scalar scalar_op) {
    for (U a : values)
        EXPECT_EQ(lanes_of<U>(vector_op(fill(a))),
                  lanes_of<U>(fill(__builtin_bit_cast(U, scalar_op(__builtin_bit_cast(F, a))))))
            << std::hex << a;
}

// Selections, which keep the bits of NaNs.
constexpr auto pseudo_min = [](auto a, auto b) { return b < a ? b : a; };
constexpr auto pseudo_max = [](auto a, auto b) { return a < b ? b : a; };

#define EXPECT_FLOATS(F, U, values, shape, scalar)                                      \
    expect_float_unary<F, U>(values, shape##_abs, scalar##_abs);                        \
    expect_float_unary<F, U>(values, shape##_neg, scalar##_neg);                        \
    expect_float_unary<F, U>(values, shape##_ceil, scalar##_ceil);                      \
    expect_float_unary<F, U>(values, shape##_floor, scalar##_floor);                    \
    expect_float_unary<F, U>(values, shape##_trunc, scalar##_trunc);                    \
    expect_float_unary<F, U>(values, shape##_nearest, scalar##_nearest);                \
    expect_float_unary<F, U>(values, shape##_sqrt, scalar##_sqrt);                      \
    expect_float_binary<F, U>(values, shape##_add, scalar##_add);                       \
    expect_float_binary<F, U>(values, shape##_sub, scalar##_sub);                       \
    expect_float_binary<F, U>(values, shape##_mul, scalar##_mul);                       \
    expect_float_binary<F, U>(values, shape##_div, scalar##_div);                       \
    expect_float_binary<F, U>(values, shape##_min, scalar##_min);                       \
    expect_float_binary<F, U>(values, shape##_max, scalar##_max);                       \
    expect_float_binary<F, U>(values, shape##_relaxed_min, scalar##_min);               \
    expect_float_binary<F, U>(values, shape##_relaxed_max, scalar##_max);               \
    expect_float_binary<F, U>(values, shape##_pmin, pseudo_min);                        \
    expect_float_binary<F, U>(values, shape##_pmax, pseudo_max);                        \
    expect_float_binary<F, U>(values, shape##_eq, [](F a, F b) { return -U(a == b); }); \
    expect_float_binary<F, U>(values, shape##_ne, [](F a, F b) { return -U(a != b); }); \
    expect_float_binary<F, U>(values, shape##_lt, [](F a, F b) { return -U(a < b); });  \
    expect_float_binary<F, U>(values, shape##_gt, [](F a, F b) { return -U(a > b); });  \
    expect_float_binary<F, U>(values, shape##_le, [](F a, F b) { return -U(a <= b); }); \
    expect_float_binary<F, U>(values, shape##_ge, [](F a, F b) { return -U(a >= b); });

TEST(Vectors, FloatLanes){EXPECT_FLOATS(f32, u32, floats32, f32x4, f32)
                              EXPECT_FLOATS(f64, u64, floats64, f64x2, f64)}

TEST(Vectors, FloatConversions) {
    expect_float_unary<f32, u32>(floats32, i32x4_trunc_sat_f32x4_s, i32_trunc_sat_f32_s);
    expect_float_unary<f32, u32>(floats32, i32x4_trunc_sat_f32x4_u, i32_trunc_sat_f32_u);
    expect_float_unary<f32, u32>(floats32, i32x4_relaxed_trunc_f32x4_s, i32_trunc_sat_f32_s);
    expect_float_unary<f32, u32>(floats32, i32x4_relaxed_trunc_f32x4_u, i32_trunc_sat_f32_u);
    for (u64 x : floats64) {
        f64 a = from_bits(x);
        V128 v = vector<u64>({x, bits(3.5)});
        u32 s = i32_trunc_sat_f64_s(a), u = i32_trunc_sat_f64_u(a), f = bits(f32_demote_f64(a));
        EXPECT_EQ(lanes_of<u32>(i32x4_trunc_sat_f64x2_s_zero(v)), (Array<u32>{s, 3, 0, 0}));
        EXPECT_EQ(lanes_of<u32>(i32x4_trunc_sat_f64x2_u_zero(v)), (Array<u32>{u, 3, 0, 0}));
        EXPECT_EQ(lanes_of<u32>(i32x4_relaxed_trunc_f64x2_s_zero(v)), (Array<u32>{s, 3, 0, 0}));
        EXPECT_EQ(lanes_of<u32>(i32x4_relaxed_trunc_f64x2_u_zero(v)), (Array<u32>{u, 3, 0, 0}));
        EXPECT_EQ(lanes_of<u32>(f32x4_demote_f64x2_zero(v)), (Array<u32>{f, bits(3.5f), 0, 0}));
    }
    for (u32 x : floats32) {
        V128 v = vector<u32>({x, bits(3.5f), 7, 8});
        EXPECT_EQ(lanes_of<u64>(f64x2_promote_low_f32x4(v)),
                  (Array<u64>{bits(f64_promote_f32(from_bits(x))), bits(3.5)}));
    }
    V128 v = vector<u32>({0xffffffff, 0x80000000, 0x01000001, 0x7fffffff});
    EXPECT_EQ(lanes_of<f32>(f32x4_convert_i32x4_s(v)),
              (Array<f32>{-1, -0x1p31f, 0x1p24f, 0x1p31f}));
    EXPECT_EQ(lanes_of<f32>(f32x4_convert_i32x4_u(v)),
              (Array<f32>{0x1p32f, 0x1p31f, 0x1p24f, 0x1p31f}));
    EXPECT_EQ(lanes_of<f64>(f64x2_convert_low_i32x4_s(v)), (Array<f64>{-1, -0x1p31}));
    EXPECT_EQ(lanes_of<f64>(f64x2_convert_low_i32x4_u(v)), (Array<f64>{4294967295., 0x1p31}));
}

TEST(Vectors, RelaxedMaddRoundsTwice) {
    V128 a = fill(0x1.000004p+0f), b = fill(0x1.0002p+0f), c = fill(-0x1.000204p+0f);
    EXPECT_EQ(lanes_of<f32>(f32x4_relaxed_madd(a, b, c)), lanes_of<f32>(fill(0.f)));
    EXPECT_EQ(lanes_of<f32>(f32x4_relaxed_nmadd(f32x4_neg(a), b, c)), lanes_of<f32>(fill(0.f)));
    V128 d = fill(0x1.00000004p+0), e = fill(0x1.000002p+0), f = fill(-0x1.00000204p+0);
    EXPECT_EQ(lanes_of<f64>(f64x2_relaxed_madd(d, e, f)), lanes_of<f64>(fill(0.)));
    EXPECT_EQ(lanes_of<f64>(f64x2_relaxed_nmadd(d, f64x2_neg(e), f)), lanes_of<f64>(fill(0.)));
    V128 nan = fill<u32>(0xffc12345);
    EXPECT_EQ(lanes_of<u32>(f32x4_relaxed_nmadd(nan, b, c)), lanes_of<u32>(fill<u32>(0x7fc00000)));
}

}  // namespace
}  // namespace gpurun
