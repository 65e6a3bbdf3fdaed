// Hexadecimal floats are rounded here; decimal ones by std::from_chars, which rounds exactly.
#include "text/number.h"

#include <bit>
#include <charconv>
#include <string>
#include <system_error>

namespace gpurun::text {

namespace {

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_hex(char c) { return is_digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f'); }
constexpr u32 hex_value(char c) { return is_digit(c) ? u32(c - '0') : u32((c | 0x20) - 'a') + 10; }

// Takes digits, single underscores between them allowed. False if there is none.
bool take_digits(std::string_view& text, bool hex) {
    auto is = [&](char c) { return hex ? is_hex(c) : is_digit(c); };
    if (text.empty() || !is(text[0])) return false;
    usize i = 1;
    while (i < text.size() &&
           (is(text[i]) || (text[i] == '_' && i + 1 < text.size() && is(text[i + 1]))))
        i++;
    text.remove_prefix(i);
    return true;
}

bool take_sign(std::string_view& text) {
    if (text.empty() || (text[0] != '+' && text[0] != '-')) return false;
    text.remove_prefix(1);
    return true;
}

bool is_nan_or_inf(std::string_view text) {
    if (text == "nan" || text == "inf") return true;
    if (!text.starts_with("nan:0x")) return false;
    text.remove_prefix(6);
    return take_digits(text, true) && text.empty();
}

// Layout of an IEEE format: bits of the fraction, and of the exponent.
struct Format {
    u32 fraction, exponent;
    u64 infinity() const { return ((u64{1} << exponent) - 1) << fraction; }
    s64 bias() const { return (s64{1} << (exponent - 1)) - 1; }
};
constexpr Format f32_format{23, 8}, f64_format{52, 11};

// An exponent beyond this makes any number zero or infinite that fits a source.
constexpr s64 huge_exponent = s64{1} << 40;

s64 parse_exponent(std::string_view text) {
    bool negative = text.starts_with('-');
    take_sign(text);
    s64 value = 0;
    for (char c : text) {
        if (c != '_' && value < huge_exponent) value = value * 10 + (c - '0');
    }
    return negative ? -value : value;
}

// The magnitude of digits [. digits] [p exponent], after its "0x".
FloatError parse_hex(std::string_view text, const Format& format, u64& bits) {
    u64 significand = 0;
    bool sticky = false, after_point = false;
    s64 exponent = 0;  // of the significand's last bit
    usize i = 0;
    for (; i < text.size() && (text[i] | 0x20) != 'p'; i++) {
        if (text[i] == '_') continue;
        if (text[i] == '.') {
            after_point = true;
            continue;
        }
        if (after_point) exponent -= 4;
        if (significand >> 60) {
            sticky |= text[i] != '0';
            exponent += 4;
        } else {
            significand = significand << 4 | hex_value(text[i]);
        }
    }
    if (i < text.size()) exponent += parse_exponent(text.substr(i + 1));
    bits = 0;
    if (significand == 0) return FloatError::none;

    // 1.xxx × 2^scale. Keep the fraction's bits, fewer for a subnormal, and round the rest.
    s64 scale = exponent + 63 - std::countl_zero(significand);
    s64 min_scale = 1 - format.bias();
    s64 last = (scale < min_scale ? min_scale : scale) - format.fraction;  // weight of the last bit
    s64 drop = last - exponent;
    u64 kept;
    if (drop <= 0) {
        kept = significand << -drop;  // fits: its top bit lands at most on the fraction's top
    } else if (drop > 64) {
        kept = 0;
    } else {
        kept = drop == 64 ? 0 : significand >> drop;
        u64 half = u64{1} << (drop - 1);
        u64 rest = significand & (half | (half - 1));
        bool up = rest > half || (rest == half && (sticky || (kept & 1)));
        kept += up;
    }
    u64 hidden = u64{1} << format.fraction;
    if (scale > format.bias()) return FloatError::out_of_range;
    // A carry out of the fraction raises the exponent by itself.
    bits = scale < min_scale ? kept
                             : (u64(scale + format.bias()) << format.fraction) + (kept - hidden);
    return bits >= format.infinity() ? FloatError::out_of_range : FloatError::none;
}

// Whether a decimal number that cannot be represented is too large, rather than too small.
bool is_large(std::string_view text) {
    s64 magnitude = 0;  // power of ten just above the first digit that is not zero
    bool after_point = false, found = false;
    usize i = 0;
    for (; i < text.size() && (text[i] | 0x20) != 'e'; i++) {
        if (text[i] == '.') {
            after_point = true;
            continue;
        }
        found |= text[i] != '0';
        if (found && !after_point) magnitude++;
        if (!found && after_point) magnitude--;
    }
    if (i < text.size()) magnitude += parse_exponent(text.substr(i + 1));
    return found && magnitude > 0;
}

template <class Float, class Bits>
FloatError parse_decimal(std::string_view text, const Format& format, u64& bits) {
    std::string plain;
    if (text.find('_') != text.npos) {
        for (char c : text) {
            if (c != '_') plain += c;
        }
        text = plain;
    }
    Float value = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc::result_out_of_range) {
        if (is_large(text)) return FloatError::out_of_range;
        value = 0;
    } else if (error != std::errc() || end != text.data() + text.size()) {
        return FloatError::not_a_number;
    }
    bits = std::bit_cast<Bits>(value);
    return bits >= format.infinity() ? FloatError::out_of_range : FloatError::none;
}

FloatError parse_nan(std::string_view text, const Format& format, u64& bits) {
    u64 payload = u64{1} << (format.fraction - 1);
    if (text.size() > 3) {
        std::optional<u64> given = parse_natural(text.substr(4));
        if (!given || *given == 0 || *given >> format.fraction) return FloatError::out_of_range;
        payload = *given;
    }
    bits = format.infinity() | payload;
    return FloatError::none;
}

template <class Float, class Bits>
FloatError parse_float(std::string_view text, const Format& format, Bits& out) {
    bool negative = text.starts_with('-');
    take_sign(text);
    u64 bits = 0;
    FloatError error = FloatError::none;
    if (text == "inf") {
        bits = format.infinity();
    } else if (is_nan_or_inf(text)) {
        error = parse_nan(text, format, bits);
    } else if (classify_number(text) == Numeral::none) {
        return FloatError::not_a_number;
    } else if (text.starts_with("0x")) {
        error = parse_hex(text.substr(2), format, bits);
    } else {
        error = parse_decimal<Float, Bits>(text, format, bits);
    }
    out = Bits(bits | u64(negative) << (format.fraction + format.exponent));
    return error;
}

}  // namespace

Numeral classify_number(std::string_view text) {
    bool has_sign = take_sign(text);
    if (has_sign && is_nan_or_inf(text)) return Numeral::real;
    bool hex = text.starts_with("0x");
    if (hex) text.remove_prefix(2);
    if (!take_digits(text, hex)) return Numeral::none;
    if (text.empty()) return has_sign ? Numeral::integer : Numeral::natural;
    if (text[0] == '.') {
        text.remove_prefix(1);
        take_digits(text, hex);
    }
    if (!text.empty() && (text[0] | 0x20) == (hex ? 'p' : 'e')) {
        text.remove_prefix(1);
        take_sign(text);
        if (!take_digits(text, false)) return Numeral::none;
    }
    return text.empty() ? Numeral::real : Numeral::none;
}

std::optional<u64> parse_natural(std::string_view text) {
    bool hex = text.starts_with("0x");
    if (hex) text.remove_prefix(2);
    u64 value = 0;
    for (char c : text) {
        if (c == '_') continue;
        if (__builtin_mul_overflow(value, hex ? u64{16} : u64{10}, &value)) return std::nullopt;
        if (__builtin_add_overflow(value, u64{hex_value(c)}, &value)) return std::nullopt;
    }
    return value;
}

std::optional<u64> parse_integer(std::string_view text, u32 bits) {
    bool negative = text.starts_with('-');
    take_sign(text);
    std::optional<u64> magnitude = parse_natural(text);
    if (!magnitude) return std::nullopt;
    u64 max = ~u64{0} >> (64 - bits);
    if (*magnitude > (negative ? max / 2 + 1 : max)) return std::nullopt;
    return (negative ? -*magnitude : *magnitude) & max;
}

FloatError parse_f32(std::string_view text, u32& bits) {
    return parse_float<float, u32>(text, f32_format, bits);
}
FloatError parse_f64(std::string_view text, u64& bits) {
    return parse_float<double, u64>(text, f64_format, bits);
}

}  // namespace gpurun::text
