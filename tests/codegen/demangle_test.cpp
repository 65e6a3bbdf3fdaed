// Names of functions, made readable.
#include "codegen/demangle.h"

#include <gtest/gtest.h>

using namespace gpurun;

namespace {

using codegen::demangled;

TEST(Demangle, cpp) {
    EXPECT_EQ(demangled("_ZN3foo3barEv"), "foo::bar()");
    EXPECT_EQ(demangled("_Z1fi"), "f(int)");
    EXPECT_EQ(demangled("_ZNSt6vectorIiSaIiEE9push_backERKi"),
              "std::vector<int, std::allocator<int>>::push_back(int const&)");
    EXPECT_EQ(demangled("_ZN12_GLOBAL__N_14hereEv"), "(anonymous namespace)::here()");
    EXPECT_EQ(demangled("_ZZ4mainENK3$_0clEi"), "main::$_0::operator()(int) const");
}

TEST(Demangle, rust) {
    EXPECT_EQ(demangled("_ZN4core9panicking5panic17h0123456789abcdefE"), "core::panicking::panic");
    EXPECT_EQ(demangled("_ZN4test8run_test28_$u7b$$u7b$closure$u7d$$u7d$17h0123456789abcdefE"),
              "test::run_test::{{closure}}");
    EXPECT_EQ(demangled("_ZN38_$LT$X$u20$as$u20$core..fmt..Debug$GT$3fmt17h0123456789abcdefE"),
              "<X as core::fmt::Debug>::fmt");
    EXPECT_EQ(demangled("_ZN4$u7$17h0123456789abcdefE"), "$u7$");
    EXPECT_EQ(demangled("_RNvNtCs1234_4core9panicking5panic"), "core::panicking::panic");
    EXPECT_EQ(demangled("_RNCNvC4main4main0.llvm.123"), "main::main::{closure#0} (.llvm.123)");
    EXPECT_EQ(demangled("_RINvNtC4core3ptr4dropINtNtC5alloc3vec3VechEQShKj2a_E"),
              "core::ptr::drop::<alloc::vec::Vec<u8>, &mut [u8], 42>");
    EXPECT_EQ(demangled("_RNvXC4mainNtB2_1XNtNtC4core3fmt5Debug3fmt"),
              "<main::X as core::fmt::Debug>::fmt");
}

TEST(Demangle, others_stay) {
    for (const char* name :
         {"", "main", "_ZN", "_ZNE", "_ZN99fooE", "_ZN4core17h0123456789abcdef", "_ZN0E",
          "_ZN99999999999999999999fooE", "_R", "_RB_", "_RNvB_1a", "_RC99999999999a",
          "_RINvC1a1bE_E", "_RNvC1a", "_RINvC1a1bB_E", "_RYB_B_", "_Z1\x1bv"})
        EXPECT_EQ(demangled(name), name);
    const std::string zero("_Z1fi\0x", 7);
    EXPECT_EQ(demangled(zero), zero);
}

// Modules choose their names: none may take all of the stack, of memory or of time.
TEST(Demangle, hostile_names_end_soon) {
    for (const char* kind : {"S", "P", "F", "I", "N"})
        for (const char* begin : {"_R", "_Z1f"}) {
            const std::string long_one = begin + std::string(2000, *kind);
            EXPECT_EQ(demangled(long_one), long_one);
            const std::string too_long = begin + std::string(1'000'000, *kind);
            EXPECT_EQ(demangled(too_long), too_long);
        }
    EXPECT_EQ(demangled("_Z1f" + std::string(1500, 'P') + "i"),
              "f(int" + std::string(1500, '*') + ")");
    // Each template has the one before it twice.
    const std::string digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    std::string doubling = "_Z1f1AIiE";
    for (int i = 1; i < 60; i++) {
        std::string before = "S";
        const int number = 2 * i - 2;
        if (number >= 36) before += digits[size_t(number / 36)];
        before += digits[size_t(number % 36)];
        before += "_";
        doubling += "1AI" + before + before + "E";
    }
    EXPECT_LT(demangled(doubling).size(), 10'000u);
    // Each tuple has the one before it twice, by way of references back.
    std::string tuples = "_RINvC1a1bTmmE";
    size_t last = 7;
    for (int i = 0; i < 16; i++) {
        const char at[] = {
            "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"[last - 1]};
        const std::string reference = "B" + std::string(at, 1) + "_";
        last = tuples.size() - 2;
        tuples += "T" + reference + reference + "E";
        if (last > 60) break;
    }
    EXPECT_LE(demangled(tuples + "E").size(), 10'000u);
}

}  // namespace
