// Machine code that is made while modules run, by whoever embeds gpu-run.
#include <gpurun/gpurun.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "common.h"

namespace gpurun::api {
namespace {

// Nobody else has one with that number, now or before: nothing of it is in a cache.
std::string spinner(int number) {
    const auto now = std::chrono::system_clock::now().time_since_epoch().count();
    return "(module (func (export \"spin\") (param i64) (result i64) (local i64) (loop"
           " (local.set 1 (i64.xor (i64.mul (local.get 1) (i64.const 31)) (local.get 0)))"
           " (local.set 0 (i64.sub (local.get 0) (i64.const 1)))"
           " (br_if 0 (i64.ne (local.get 0) (i64.const 0)))) (i64.xor (local.get 1) (i64.const " +
           std::to_string(now + number) + "))))";
}

Config spin(const std::string& times, gpurun_tier tier = GPURUN_TIER_AUTO) {
    Config config;
    config.function("spin").argument(times).tier(tier);
    return config;
}

// Until the time is over.
gpurun_ending spin_for(double seconds, const Device& on, const Module& module) {
    Config config = spin("100000000000");
    config.timeout(seconds);
    return run(on, module, config)[0].ending();
}

// Each of them is short; all together they are not.
TEST(Auto, RunsOfAModuleCountTogether) {
    if (device().id() != "cpu") GTEST_SKIP() << "machine code comes while something runs there";
    const Module module = Module::from_bytes(spinner(1));
    const std::string expected =
        to_string(run(device(), module, spin("1000000", GPURUN_TIER_INTERP))[0].values()[0]);
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    gpurun_native native = {};
    while (native.source == GPURUN_IMAGE_NONE && std::chrono::steady_clock::now() < end) {
        Result result = run(device(), module, spin("1000000"));
        EXPECT_EQ(to_string(result[0].values()[0]), expected);
        native = result.native();
    }
    EXPECT_EQ(native.source, GPURUN_IMAGE_COMPILED);
    EXPECT_EQ(native.functions, 1u);
    native = run(device(), module, spin("1000000")).native();
    EXPECT_EQ(native.source, GPURUN_IMAGE_COMPILED);
    EXPECT_LT(native.interpreted_seconds, 0);  // natively from the beginning
    EXPECT_GT(native.emit_seconds, 0);
}

// Whoever compiles it finds out, and nobody waits for that.
TEST(Auto, ModulesCanGoWhileTheyAreCompiled) {
    for (int i = 0; i < 10; i++) {
        const Module module = Module::from_bytes(spinner(10 + i));
        EXPECT_EQ(spin_for(0.1 + 0.01 * i, device(), module), GPURUN_TIMED_OUT);
    }
    for (int i = 0; i < 6000 && gpurun_is_compiling(); i++)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_FALSE(gpurun_is_compiling());
}

// The program ends while it is compiled: what is static is gone afterwards.
TEST(Auto, ProgramsCanEndMeanwhile) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");  // there may be threads of the tests before
    static const Module module = Module::from_bytes(spinner(100));
    EXPECT_EXIT(
        {
            Device other(device().id());
            (void)spin_for(0.12, other, module);
            std::exit(7);
        },
        testing::ExitedWithCode(7), "");
}

TEST(Auto, SwitchesInProcessesOfABurst) {
    if (device().id() != "cpu") GTEST_SKIP() << "machine code comes while something runs there";
    const Module module = Module::from_bytes(spinner(200));
    std::vector<std::string> expected;
    for (gpurun_tier tier : {GPURUN_TIER_INTERP, GPURUN_TIER_EARLY, GPURUN_TIER_AUTO}) {
        std::vector<std::string> values;
        Config config = spin("1{}000", tier);
        Result result = run(device(), module, config.processes(50));
        for (uint32_t i = 0; i < result.size(); i++)
            values.push_back(to_string(result[i].values()[0]));
        if (expected.empty()) expected = values;
        EXPECT_EQ(values, expected);
        // By GPURUN_TIER_AUTO what is there takes over once it is worth linking, if ever.
        if (tier != GPURUN_TIER_AUTO)
            EXPECT_EQ(result.native().interpreted_seconds >= 0, tier == GPURUN_TIER_EARLY);
    }
}

}  // namespace
}  // namespace gpurun::api
