// Tokens, positions, strings, annotations, and numbers rounded exactly.
#include "text/lexer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/utf8.h"
#include "text/number.h"

namespace gpurun::text {
namespace {

using Kind = Token::Kind;
using testing::ElementsAre;

std::vector<Kind> kinds(std::string_view source) {
    Tokens tokens(source);
    std::vector<Kind> out;
    for (u32 i = 0; i + 1 < tokens.size(); i++) out.push_back(tokens[i].kind);
    return out;
}

std::string error(std::string_view source) {
    Tokens tokens(source);
    for (u32 i = 0; i < tokens.size(); i++) {
        if (tokens[i].kind == Kind::error) return tokens.error(tokens[i]);
    }
    return "";
}

TEST(Lexer, kinds_of_tokens) {
    EXPECT_THAT(
        kinds("(i32.add $x \"s\" 1 -1 1.5 nan -inf 0x1p4)"),
        ElementsAre(Kind::left, Kind::keyword, Kind::id, Kind::string, Kind::natural, Kind::integer,
                    Kind::real, Kind::keyword, Kind::real, Kind::real, Kind::right));
    EXPECT_THAT(kinds("0drop 0x 1__0 \"a\"\"b\" $a\"b\" , @x"),
                ElementsAre(Kind::reserved, Kind::reserved, Kind::reserved, Kind::reserved,
                            Kind::reserved, Kind::reserved, Kind::reserved));
}

TEST(Lexer, comments_and_positions) {
    Tokens tokens("(; a (; b ;)\n ;)x ;; y\r\n  z\rw");
    ASSERT_EQ(tokens.size(), 4u);
    EXPECT_EQ(tokens[0].position, (Position{2, 4}));
    EXPECT_EQ(tokens[1].position, (Position{3, 3}));
    EXPECT_EQ(tokens[2].position, (Position{4, 1}));
    EXPECT_EQ(error("(; (; ;)"), "unclosed comment");
}

TEST(Lexer, parentheses_are_linked) {
    Tokens tokens("(a (b) c) (d");
    EXPECT_EQ(tokens[0].link, 6u);
    EXPECT_EQ(tokens[2].link, 4u);
    EXPECT_EQ(tokens[7].link, tokens.size() - 1);
}

TEST(Lexer, strings) {
    Tokens tokens(R"("a\t\n\\\"\'\41\u{20_AC}é")");
    ASSERT_EQ(tokens[0].kind, Kind::string);
    EXPECT_EQ(tokens.string(tokens[0]), "a\t\n\\\"'A\u20acé");
    EXPECT_EQ(error("\"abc"), "unclosed string literal");
    EXPECT_EQ(error("\"a\nb\""), "unclosed string literal");
    EXPECT_EQ(error("\"\\x\""), "illegal escape");
    EXPECT_EQ(error("\"\\u{110000}\""), "illegal escape: code point out of range");
    EXPECT_EQ(error("\"\\u{d800}\""), "illegal escape: surrogate code point");
    EXPECT_EQ(error("\"\x80\""), "malformed UTF-8 encoding");
    EXPECT_EQ(error("é"), "illegal character");
    EXPECT_EQ(error(";; \xff"), "malformed UTF-8 encoding");
}

TEST(Lexer, quoted_ids) {
    Tokens tokens(R"($"fh" $fh $"\41")");
    EXPECT_EQ(tokens.id(tokens[0]), "fh");
    EXPECT_EQ(tokens.id(tokens[1]), "fh");
    EXPECT_EQ(tokens.id(tokens[2]), "A");
    EXPECT_EQ(error("$"), "empty identifier");
    EXPECT_EQ(error("$\"\""), "empty identifier");
    EXPECT_EQ(error(R"($"\ff")"), "malformed UTF-8 encoding");
}

TEST(Lexer, annotations) {
    Tokens tokens("(@other ( ) } $ (@)) a (@name \"n\") b (@custom)");
    EXPECT_EQ(tokens.size(), 3u);
    ASSERT_EQ(tokens.annotations().size(), 2u);
    EXPECT_EQ(tokens.annotations()[0].kind, Annotation::Kind::name);
    EXPECT_EQ(tokens.annotations()[0].at, 1u);
    EXPECT_EQ(tokens.annotations()[1].at, 2u);
    EXPECT_EQ(error("(@)"), "empty annotation id");
    EXPECT_EQ(error("(@x (y)"), "unclosed annotation");
}

TEST(Lexer, utf8) {
    EXPECT_TRUE(is_utf8("aé€\xf0\x9f\x98\x80"));
    for (const char* bad :
         {"\x80", "\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82"}) {
        EXPECT_FALSE(is_utf8(bad));
    }
}

u64 f64_bits(std::string_view text) {
    u64 bits = 0;
    EXPECT_EQ(parse_f64(text, bits), FloatError::none) << text;
    return bits;
}
u32 f32_bits(std::string_view text) {
    u32 bits = 0;
    EXPECT_EQ(parse_f32(text, bits), FloatError::none) << text;
    return bits;
}
FloatError f32_error(std::string_view text) {
    u32 bits;
    return parse_f32(text, bits);
}

TEST(Number, integers) {
    EXPECT_EQ(parse_integer("0xffff_ffff", 32), 0xffffffffu);
    EXPECT_EQ(parse_integer("-0x80000000", 32), 0x80000000u);
    EXPECT_EQ(parse_integer("-1", 8), 0xffu);
    EXPECT_EQ(parse_integer("4294967296", 32), std::nullopt);
    EXPECT_EQ(parse_integer("-2147483649", 32), std::nullopt);
    EXPECT_EQ(parse_integer("18446744073709551615", 64), ~u64{0});
    EXPECT_EQ(parse_integer("18446744073709551616", 64), std::nullopt);
}

TEST(Number, floats_round_to_nearest_even) {
    EXPECT_EQ(f32_bits("0x1.000001p0"), 0x3f800000u);
    EXPECT_EQ(f32_bits("0x1.0000010000000000000001p0"), 0x3f800001u);
    EXPECT_EQ(f32_bits("0x1.000003p0"), 0x3f800002u);
    EXPECT_EQ(f32_bits("16777217"), 0x4b800000u);
    EXPECT_EQ(f64_bits("9007199254740993"), 0x4340000000000000u);
    EXPECT_EQ(f64_bits("1_000.5e-0_1"), f64_bits("100.05"));
    EXPECT_EQ(f64_bits("-0"), u64{1} << 63);
}

TEST(Number, subnormal_floats) {
    EXPECT_EQ(f32_bits("0x1p-149"), 1u);
    EXPECT_EQ(f32_bits("0x1p-150"), 0u);
    EXPECT_EQ(f32_bits("0x1.000001p-150"), 1u);
    EXPECT_EQ(f32_bits("1e-1000"), 0u);
    EXPECT_EQ(f32_bits("1e-99999999999999999999"), 0u);
    EXPECT_EQ(f64_bits("0x0.8p-1022"), 0x0008000000000000u);
    EXPECT_EQ(f64_bits("0x1.fffffffffffffp-1023"), 0x0010000000000000u);
    // A tie that glibc 2.36's strtod gets wrong.
    EXPECT_EQ(f64_bits("0xd900de0a2c0e0cp-1078"), 0x000d900de0a2c0e1u);
}

TEST(Number, float_limits) {
    EXPECT_EQ(f32_bits("0x1.fffffep127"), 0x7f7fffffu);
    EXPECT_EQ(f32_error("0x1.ffffffp127"), FloatError::out_of_range);
    EXPECT_EQ(f32_error("1e39"), FloatError::out_of_range);
    EXPECT_EQ(f32_error("1e99999999999999999999"), FloatError::out_of_range);
    EXPECT_EQ(f32_error("0x1p99999999999999999999"), FloatError::out_of_range);
    EXPECT_EQ(f32_bits("-inf"), 0xff800000u);
    EXPECT_EQ(f32_bits("nan"), 0x7fc00000u);
    EXPECT_EQ(f32_bits("-nan:0x1"), 0xff800001u);
    EXPECT_EQ(f32_error("nan:0x0"), FloatError::out_of_range);
    EXPECT_EQ(f32_error("nan:0x80_0000"), FloatError::out_of_range);
}

}  // namespace
}  // namespace gpurun::text
