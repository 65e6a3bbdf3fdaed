// Values from and to text: what a person types after --invoke, and what is printed.
#include "engine/value.h"

#include <gtest/gtest.h>

using namespace gpurun;
using engine::parse_value;
using wasm::ValType;

namespace {

// "printed form", or the message.
std::string round_trip(ValType type, std::string_view text) {
    Result<engine::Value> value = parse_value(type, text);
    return value ? value->to_string() : value.error().message;
}

TEST(Value, integers) {
    EXPECT_EQ(round_trip(ValType::i32, "42"), "42");
    EXPECT_EQ(round_trip(ValType::i32, "-0"), "0");
    EXPECT_EQ(round_trip(ValType::i32, "+7"), "7");
    EXPECT_EQ(round_trip(ValType::i32, "0xff"), "255");
    EXPECT_EQ(round_trip(ValType::i32, "-0x80000000"), "-2147483648");
    EXPECT_EQ(round_trip(ValType::i32, "4294967295"), "-1");
    EXPECT_EQ(round_trip(ValType::i32, "1_000"), "1000");
    EXPECT_EQ(round_trip(ValType::i64, "18446744073709551615"), "-1");
    EXPECT_EQ(round_trip(ValType::i64, "-9223372036854775808"), "-9223372036854775808");
}

TEST(Value, what_is_no_integer) {
    for (const char* text :
         {"", "-", "+", "0x", "x", "1x", "1.0", " 1", "1 ", "--1", "+-1", "1_", "nan", "0b1"}) {
        EXPECT_EQ(round_trip(ValType::i32, text),
                  "\"" + std::string(text) + "\" is not a value of type i32");
        EXPECT_EQ(round_trip(ValType::i64, text),
                  "\"" + std::string(text) + "\" is not a value of type i64");
    }
    EXPECT_EQ(round_trip(ValType::i32, "4294967296"), "\"4294967296\" does not fit an i32");
    EXPECT_EQ(round_trip(ValType::i32, "-2147483649"), "\"-2147483649\" does not fit an i32");
    EXPECT_EQ(round_trip(ValType::i64, "18446744073709551616"),
              "\"18446744073709551616\" does not fit an i64");
    EXPECT_EQ(round_trip(ValType::i64, "-9223372036854775809"),
              "\"-9223372036854775809\" does not fit an i64");
}

TEST(Value, floats) {
    EXPECT_EQ(round_trip(ValType::f64, "0.1"), "0.1");
    EXPECT_EQ(round_trip(ValType::f32, "0.1"), "0.1");
    EXPECT_EQ(round_trip(ValType::f64, "-0"), "-0");
    EXPECT_EQ(round_trip(ValType::f64, "7"), "7");
    EXPECT_EQ(round_trip(ValType::f64, "0x1.8p1"), "3");
    EXPECT_EQ(round_trip(ValType::f64, "1e-400"), "0");
    EXPECT_EQ(round_trip(ValType::f64, "5e-324"), "5e-324");
    EXPECT_EQ(round_trip(ValType::f64, "inf"), "inf");
    EXPECT_EQ(round_trip(ValType::f32, "-inf"), "-inf");
}

TEST(Value, nans_keep_their_bits) {
    EXPECT_EQ(parse_value(ValType::f32, "nan")->low(), 0x7fc00000u);
    EXPECT_EQ(parse_value(ValType::f32, "-nan")->low(), 0xffc00000u);
    EXPECT_EQ(parse_value(ValType::f32, "nan:0x123")->low(), 0x7f800123u);
    EXPECT_EQ(parse_value(ValType::f64, "nan:0x123")->wide(), 0x7ff0000000000123u);
    EXPECT_EQ(round_trip(ValType::f32, "nan"), "nan");
    EXPECT_EQ(round_trip(ValType::f32, "nan:0x400000"), "nan");
    EXPECT_EQ(round_trip(ValType::f32, "-nan:0x123"), "-nan:0x123");
    EXPECT_EQ(round_trip(ValType::f64, "nan:0xfffffffffffff"), "nan:0xfffffffffffff");
}

TEST(Value, what_is_no_float) {
    for (const char* text :
         {"", "-", "0x", "x", "1.5f", " 1", "1e", "e5", "nan:", "nan(1)", "infinity", "0x1p"}) {
        EXPECT_EQ(round_trip(ValType::f32, text),
                  "\"" + std::string(text) + "\" is not a value of type f32");
        EXPECT_EQ(round_trip(ValType::f64, text),
                  "\"" + std::string(text) + "\" is not a value of type f64");
    }
    EXPECT_EQ(round_trip(ValType::f32, "1e39"), "\"1e39\" does not fit an f32");
    EXPECT_EQ(round_trip(ValType::f64, "1e400"), "\"1e400\" does not fit an f64");
    EXPECT_EQ(round_trip(ValType::f32, "nan:0x800000"), "\"nan:0x800000\" does not fit an f32");
    EXPECT_EQ(round_trip(ValType::f32, "nan:0x0"), "\"nan:0x0\" does not fit an f32");
}

TEST(Value, vectors) {
    const char* text = "0x0123456789abcdef00000000fFffffff";
    EXPECT_EQ(round_trip(ValType::v128, text), "0x0123456789abcdef00000000ffffffff");
    EXPECT_EQ(parse_value(ValType::v128, text)->low(), 0xffffffffu);
    for (const char* bad :
         {"", "0x", "1", "0x0123456789abcdef00000000ffffff", "0x-123456789abcdef00000000ffffffff"})
        EXPECT_FALSE(parse_value(ValType::v128, bad).ok()) << bad;
}

TEST(Value, references) {
    ValType nullable = ValType::ref(wasm::Heap::extern_, true),
            never_null = ValType::ref(wasm::Heap::extern_, false);
    EXPECT_EQ(round_trip(nullable, "null"), "null");
    EXPECT_EQ(round_trip(nullable, "0"), "\"0\" is not a reference: only null can be given");
    EXPECT_EQ(round_trip(never_null, "null"),
              "\"null\" cannot be given for a reference that is never null");
}

}  // namespace
