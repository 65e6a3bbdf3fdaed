// Constants: ranges are checked here, digits are read by number.cpp.
#include "text/literal.h"

#include "base/format.h"
#include "text/number.h"

namespace gpurun::text {

namespace {

constexpr const char* shape_names[] = {"i8x16", "i16x8", "i32x4", "i64x2", "f32x4", "f64x2"};

bool is_number(const Cursor& cursor, u32 ahead = 0) {
    switch (cursor.peek(ahead).kind) {
        case Token::Kind::natural:
        case Token::Kind::integer:
        case Token::Kind::real: return true;
        case Token::Kind::keyword: {
            std::string_view word = cursor.text(ahead);
            return word == "inf" || (word.starts_with("nan") && is_known_keyword(word));
        }
        default: return false;
    }
}

void out_of_range(Cursor& cursor, const Token& token) {
    std::string_view text = cursor.tokens().text(token).substr(0, 40);
    cursor.fail(token, "constant out of range: " + std::string(text));
}

}  // namespace

const char* to_string(Shape shape) { return shape_names[u32(shape)]; }

u64 expect_integer(Cursor& cursor, u32 bits) {
    if (!cursor.is(Token::Kind::natural) && !cursor.is(Token::Kind::integer)) {
        cursor.unexpected();
        return 0;
    }
    const Token& token = cursor.take();
    std::optional<u64> value = parse_integer(cursor.tokens().text(token), bits);
    if (!value) out_of_range(cursor, token);
    return value.value_or(0);
}

u64 expect_float(Cursor& cursor, u32 bits, Nan* pattern) {
    if (pattern) {
        *pattern = cursor.accept_keyword("nan:canonical")    ? Nan::canonical
                   : cursor.accept_keyword("nan:arithmetic") ? Nan::arithmetic
                                                             : Nan::none;
        if (*pattern != Nan::none) return 0;
    }
    if (!is_number(cursor)) {
        cursor.unexpected();
        return 0;
    }
    const Token& token = cursor.take();
    std::string_view text = cursor.tokens().text(token);
    u64 value = 0;
    u32 single = 0;
    FloatError error = bits == 32 ? parse_f32(text, single) : parse_f64(text, value);
    if (error == FloatError::not_a_number) cursor.unexpected(token);
    if (error == FloatError::out_of_range) out_of_range(cursor, token);
    return bits == 32 ? single : value;
}

u32 count_numbers(const Cursor& cursor) {
    u32 count = 0;
    while (is_number(cursor, count)) count++;
    return count;
}

Vector expect_vector(Cursor& cursor, bool with_patterns) {
    Vector vector;
    const Token& shape = cursor.peek();
    u32 index = 0;
    while (index < 6 && !cursor.is_keyword(shape_names[index])) index++;
    if (index == 6) {
        cursor.unexpected();
        return vector;
    }
    cursor.take();
    vector.shape = Shape(index);
    u32 lanes = lane_count(vector.shape), bits = 128 / lanes;
    bool is_float = vector.shape >= Shape::f32x4;
    u32 given = count_numbers(cursor);
    const Token& next = cursor.peek(given);
    bool is_stray = next.kind == Token::Kind::reserved || next.kind == Token::Kind::error ||
                    (next.kind == Token::Kind::keyword && !is_known_keyword(cursor.text(given)));
    if (given != lanes && !is_stray) {
        cursor.fail(shape, format("wrong number of lane literals: %s needs %u, got %u",
                                  to_string(vector.shape), lanes, given));
    }
    for (u32 lane = 0; lane < lanes && !cursor.failed(); lane++) {
        Nan* pattern = with_patterns && is_float ? &vector.nan[lane] : nullptr;
        u64 value = is_float ? expect_float(cursor, bits, pattern) : expect_integer(cursor, bits);
        vector.bits[lane * bits / 64] |= value << (lane * bits % 64);
    }
    return vector;
}

}  // namespace gpurun::text
