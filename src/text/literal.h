// The constants of instructions and of scripts: what follows i32.const, f64.const, v128.const.
#pragma once

#include "base/ints.h"
#include "text/cursor.h"

namespace gpurun::text {

enum class Nan : u8 { none, canonical, arithmetic };
enum class Shape : u8 { i8x16, i16x8, i32x4, i64x2, f32x4, f64x2 };

constexpr u32 lane_count(Shape shape) {
    constexpr u32 counts[] = {16, 8, 4, 2, 4, 2};
    return counts[u32(shape)];
}
const char* to_string(Shape shape);

struct Vector {
    Shape shape = Shape::i8x16;
    u64 bits[2] = {0, 0};
    Nan nan[4] = {Nan::none, Nan::none, Nan::none, Nan::none};
};

// An integer of 8, 16, 32 or 64 bits, in two's complement.
u64 expect_integer(Cursor& cursor, u32 bits);
// IEEE bits of a float of 32 or 64 bits. Patterns such as nan:canonical are for those who pass
// a place for them.
u64 expect_float(Cursor& cursor, u32 bits, Nan* pattern = nullptr);
// How many numbers of any kind follow.
u32 count_numbers(const Cursor& cursor);
// A shape and its lanes.
Vector expect_vector(Cursor& cursor, bool with_patterns = false);

}  // namespace gpurun::text
