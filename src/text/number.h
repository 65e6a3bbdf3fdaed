// Numbers as text: integers of any width, and floats rounded exactly.
#pragma once

#include <optional>
#include <string_view>

#include "base/ints.h"

namespace gpurun::text {

enum class Numeral : u8 { none, natural, integer, real };

// What a token is that starts with a digit or a sign. Signed nan and inf are reals.
Numeral classify_number(std::string_view text);

// Nothing if it does not fit 64 bits. `text` is a natural.
std::optional<u64> parse_natural(std::string_view text);

// A natural or an integer as `bits` bits of two's complement; nothing if it fits neither the
// signed nor the unsigned range.
std::optional<u64> parse_integer(std::string_view text, u32 bits);

// IEEE bits of a natural, an integer, a real, or of "nan", "nan:0x…", "inf", signed or not.
enum class FloatError : u8 { none, not_a_number, out_of_range };
FloatError parse_f32(std::string_view text, u32& bits);
FloatError parse_f64(std::string_view text, u64& bits);

}  // namespace gpurun::text
