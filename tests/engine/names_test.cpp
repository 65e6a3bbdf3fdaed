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
    EXPECT_EQ(engine::suggest("mandel", known), "; did you mean \"mandelbrot\"?");
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

}  // namespace
