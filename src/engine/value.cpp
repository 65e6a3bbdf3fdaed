// Values from and to text.
#include "engine/value.h"

#include <charconv>
#include <cmath>
#include <cstring>

#include "base/format.h"

namespace gpurun::engine {
namespace {

using wasm::ValType;

// The shortest decimal that reads back as the same number.
template <class T>
std::string float_text(T value) {
    if (std::isnan(value)) return std::signbit(value) ? "-nan" : "nan";
    if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
    char buffer[64];
    auto end = std::to_chars(buffer, buffer + sizeof buffer, value);
    return std::string(buffer, end.ptr);
}

template <class T>
T from_bits(const V128& bits) {
    T value;
    std::memcpy(&value, bits.word, sizeof value);
    return value;
}

Error bad_value(std::string_view text, const char* type) {
    return {format("\"%.*s\" is not a value of type %s", int(text.size()), text.data(), type)};
}

// Signed or unsigned, decimal or 0x…, of at most `bits` bits.
Result<u64> parse_integer(std::string_view text, u32 bits, const char* type) {
    std::string_view digits = text;
    bool negative = !digits.empty() && digits[0] == '-';
    if (!digits.empty() && (digits[0] == '-' || digits[0] == '+')) digits.remove_prefix(1);
    int base = 10;
    if (digits.starts_with("0x") || digits.starts_with("0X")) {
        base = 16;
        digits.remove_prefix(2);
    }
    u64 value = 0;
    auto end = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
    u64 limit = bits == 64 ? ~u64{0} : (u64{1} << bits) - 1;
    if (negative) limit = u64{1} << (bits - 1);
    if (digits.empty() || end.ec != std::errc() || end.ptr != digits.data() + digits.size() || value > limit)
        return bad_value(text, type);
    return (negative ? 0 - value : value) & (bits == 64 ? ~u64{0} : (u64{1} << bits) - 1);
}

template <class T>
Result<T> parse_float(std::string_view text, const char* type) {
    std::string copy(text);
    char* end = nullptr;
    T value = sizeof(T) == 4 ? T(std::strtof(copy.c_str(), &end)) : T(std::strtod(copy.c_str(), &end));
    if (copy.empty() || *end != '\0' || copy[0] == ' ') return bad_value(text, type);
    return value;
}

}  // namespace

std::string Value::to_string() const {
    if (type.is_ref()) return low() == 0 ? "null" : "ref";
    switch (type.kind()) {
        case ValType::i32: return std::to_string(s32(low()));
        case ValType::i64: return std::to_string(s64(wide()));
        case ValType::f32: return float_text(from_bits<f32>(bits));
        case ValType::f64: return float_text(from_bits<f64>(bits));
        default:
            return format("0x%08x%08x%08x%08x", bits.word[3], bits.word[2], bits.word[1], bits.word[0]);
    }
}

Result<Value> parse_value(ValType type, std::string_view text) {
    if (type.is_ref()) {
        if (text == "null" && type.is_nullable()) return Value::ref(type, 0);
        return bad_value(text, "a reference (only null can be given)");
    }
    switch (type.kind()) {
        case ValType::i32: return Value::i32(u32(TRY(parse_integer(text, 32, "i32"))));
        case ValType::i64: return Value::i64(TRY(parse_integer(text, 64, "i64")));
        case ValType::f32: return Value::f32_bits(__builtin_bit_cast(u32, TRY(parse_float<f32>(text, "f32"))));
        case ValType::f64: return Value::f64_bits(__builtin_bit_cast(u64, TRY(parse_float<f64>(text, "f64"))));
        default: {
            // 0x and 32 digits, the last lane first, as to_string writes it.
            if (text.size() != 34 || !text.starts_with("0x")) return bad_value(text, "v128");
            u64 high = TRY(parse_integer(std::string("0x").append(text.substr(2, 16)), 64, "v128"));
            u64 low = TRY(parse_integer(std::string("0x").append(text.substr(18)), 64, "v128"));
            return Value::v128({{u32(low), u32(low >> 32), u32(high), u32(high >> 32)}});
        }
    }
}

}  // namespace gpurun::engine
