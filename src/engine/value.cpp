// Reads values from text, and writes them.
#include "engine/value.h"

#include <charconv>
#include <cmath>

#include "base/format.h"
#include "text/number.h"

namespace gpurun::engine {
namespace {

using wasm::ValType;

// Returns the shortest decimal that reads back as the same number. NaNs have their payload, unless
// it is the canonical one.
template <class T, class Bits, u32 fraction>
std::string float_text(Bits bits) {
    T value = __builtin_bit_cast(T, bits);
    if (std::isnan(value)) {
        std::string text = std::signbit(value) ? "-nan" : "nan";
        Bits payload = bits & ((Bits{1} << fraction) - 1);
        bool is_canonical = payload == Bits{1} << (fraction - 1);
        return is_canonical ? text : text + format(":0x%llx", (unsigned long long)payload);
    }
    char buffer[64];
    auto end = std::to_chars(buffer, buffer + sizeof buffer, value);
    return std::string(buffer, end.ptr);
}

Error bad_value(std::string_view text, const char* what) {
    return {format("\"%.*s\" %s", int(text.size()), text.data(), what)};
}

// Reads an integer of at most `bits` bits: signed or unsigned, decimal or 0x….
Result<u64> parse_integer(std::string_view text, u32 bits) {
    bool is_32 = bits == 32;
    text::Numeral numeral = text::classify_number(text);
    if (numeral != text::Numeral::natural && numeral != text::Numeral::integer)
        return bad_value(text, is_32 ? "is not a value of type i32" : "is not a value of type i64");
    std::optional<u64> value = text::parse_integer(text, bits);
    if (!value) return bad_value(text, is_32 ? "does not fit an i32" : "does not fit an i64");
    return *value;
}

template <class Bits>
Result<Bits> parse_float(std::string_view text,
                         text::FloatError (*parse)(std::string_view, Bits&)) {
    Bits bits = 0;
    bool is_32 = sizeof(Bits) == 4;
    switch (parse(text, bits)) {
        case text::FloatError::none: break;
        case text::FloatError::not_a_number:
            return bad_value(text,
                             is_32 ? "is not a value of type f32" : "is not a value of type f64");
        case text::FloatError::out_of_range:
            return bad_value(text, is_32 ? "does not fit an f32" : "does not fit an f64");
    }
    return bits;
}

// Reads a vector: 0x and 32 digits, the last lane first, as to_string() writes it.
Result<Value> parse_vector(std::string_view text) {
    constexpr usize half = 16;
    bool is_hex = text.size() == 2 + 2 * half && text.starts_with("0x") &&
                  text.find_first_not_of("0123456789abcdefABCDEF", 2) == text.npos;
    if (!is_hex)
        return bad_value(text, "is not a value of type v128: 0x and 32 hexadecimal digits");
    u64 high = 0, low = 0;
    const char* digits = text.data() + 2;
    std::from_chars(digits, digits + half, high, 16);
    std::from_chars(digits + half, digits + 2 * half, low, 16);
    return Value::v128({{u32(low), u32(low >> 32), u32(high), u32(high >> 32)}});
}

}  // namespace

std::string Value::to_string() const {
    if (type.is_ref()) return low() == 0 ? "null" : "ref";
    switch (type.kind()) {
        case ValType::i32: return std::to_string(s32(low()));
        case ValType::i64: return std::to_string(s64(wide()));
        case ValType::f32: return float_text<f32, u32, 23>(low());
        case ValType::f64: return float_text<f64, u64, 52>(wide());
        default:
            return format("0x%08x%08x%08x%08x", bits.word[3], bits.word[2], bits.word[1],
                          bits.word[0]);
    }
}

Result<Value> parse_value(ValType type, std::string_view text) {
    if (type.is_ref()) {
        if (text == "null" && type.is_nullable()) return Value::ref(type, 0);
        return bad_value(text, type.is_nullable()
                                   ? "is not a reference: only null can be given"
                                   : "cannot be given for a reference that is never null");
    }
    switch (type.kind()) {
        case ValType::i32: return Value::i32(u32(TRY(parse_integer(text, 32))));
        case ValType::i64: return Value::i64(TRY(parse_integer(text, 64)));
        case ValType::f32: return Value::f32_bits(TRY(parse_float(text, text::parse_f32)));
        case ValType::f64: return Value::f64_bits(TRY(parse_float(text, text::parse_f64)));
        default: return parse_vector(text);
    }
}

Result<std::vector<Value>> parse_arguments(const wasm::FuncType& type, const std::string& name,
                                           std::span<const std::string> texts) {
    if (type.params.size() != texts.size())
        return Error{format("%s takes %zu argument%s, got %zu", name.c_str(), type.params.size(),
                            type.params.size() == 1 ? "" : "s", texts.size())};
    std::vector<Value> values;
    for (usize i = 0; i < texts.size(); i++) {
        Result<Value> value = parse_value(type.params[i], texts[i]);
        if (!value)
            return Error{format("argument %zu of %s: %s", i + 1, name.c_str(),
                                value.error().message.c_str())};
        values.push_back(*value);
    }
    return values;
}

}  // namespace gpurun::engine
