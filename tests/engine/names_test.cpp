// What is suggested for names that do not exist.
#include "engine/names.h"

#include <gtest/gtest.h>

#include <vector>

using namespace gpurun;

namespace {

TEST(Names, near_ones_are_suggested) {
    const std::vector<std::string> known = {"fac", "fib", "mandelbrot"};
    EXPECT_EQ(engine::suggest("fax", known), "; did you mean \"fac\"?");
    EXPECT_EQ(engine::suggest("afc", known), "; did you mean \"fac\"?");
    EXPECT_EQ(engine::suggest("mandlebort", known), "; did you mean \"mandelbrot\"?");
    EXPECT_EQ(engine::suggest("sort", known), "; there are \"fac\", \"fib\", \"mandelbrot\"");
}

TEST(Names, no_long_lists) {
    EXPECT_EQ(engine::suggest("x", std::vector<std::string>(9, "something")), "");
    EXPECT_EQ(engine::suggest("x", std::vector<std::string>{}), "");
    EXPECT_EQ(engine::suggest("", std::vector<std::string>{"fac"}), "; there is \"fac\"");
}

TEST(Names, quoted_for_a_terminal) {
    EXPECT_EQ(engine::quoted("f"), "\"f\"");
    EXPECT_EQ(engine::quoted("\033[31m\n\"\\"), "\"\\1b[31m\\0a\\\"\\\\\"");
    EXPECT_EQ(engine::quoted("größe"), "\"größe\"");
    EXPECT_EQ(engine::quoted("\xff"), "\"\\ff\"");
}

TEST(Names, of_rust_are_made_readable) {
    EXPECT_EQ(engine::readable_name("_ZN4core9panicking5panic17h0123456789abcdefE"),
              "core::panicking::panic");
    EXPECT_EQ(engine::readable_name(
                  "_ZN4test8run_test28_$u7b$$u7b$closure$u7d$$u7d$17h0123456789abcdefE"),
              "test::run_test::{{closure}}");
    EXPECT_EQ(engine::readable_name(
                  "_ZN38_$LT$X$u20$as$u20$core..fmt..Debug$GT$3fmt17h0123456789abcdefE"),
              "<X as core::fmt::Debug>::fmt");
    EXPECT_EQ(engine::readable_name("_RNvNtCs1234_4core9panicking5panic"),
              "core::panicking::panic");
    EXPECT_EQ(engine::readable_name("_RNCNvC4main4main0.llvm.123"), "main::main::{closure#0}");
    EXPECT_EQ(engine::readable_name("_RINvNtC4core3ptr4dropINtNtC5alloc3vec3VechEQShKj2a_E"),
              "core::ptr::drop::<alloc::vec::Vec<u8>, &mut [u8], 42>");
    EXPECT_EQ(engine::readable_name("_RNvXC4mainNtB2_1XNtNtC4core3fmt5Debug3fmt"),
              "<main::X as core::fmt::Debug>::fmt");
    // References back must not go on for ever.
    for (const char* name : {"_R", "_RB_", "_RNvB_1a", "_RC99999999999a", "_RINvC1a1bE_E",
                             "_RNvC1a", "_RINvC1a1bB_E", "_RYB_B_"})
        EXPECT_EQ(engine::readable_name(name), name);
    EXPECT_EQ(engine::readable_name("_R" + std::string(10'000, 'S')),
              "_R" + std::string(10'000, 'S'));
    // Everything else is left alone: C++, what is cut off, what is no name.
    for (const char* name : {"", "main", "_ZN", "_ZNE", "_ZN3fooE", "_ZN3foo3barEv", "_ZN99fooE",
                             "_ZN4core17h0123456789abcdef", "_ZN17h0123456789abcdefE", "_ZN0E",
                             "_ZN99999999999999999999fooE", "_ZN3f$u17h0123456789abcdefEx"})
        EXPECT_EQ(engine::readable_name(name), name);
    EXPECT_EQ(engine::readable_name("_ZN4$u7$17h0123456789abcdefE"), "$u7$");
}

}  // namespace
