// Some of the points at which the host can fail, in each mode. faults_long_test.cpp tries all.
#include <gtest/gtest.h>

#include "sweep.h"

namespace gpurun::faults {
namespace {

class Faults : public testing::TestWithParam<Case> {};

// Of each kind, in each mode; the long test has all.
#if __has_feature(address_sanitizer)
constexpr u64 points = 2;  // each takes several times as long
#else
constexpr u64 points = 4;
#endif
TEST_P(Faults, AreErrors) { sweep(*GetParam().mode, GetParam().kind, points); }

INSTANTIATE_TEST_SUITE_P(All, Faults, testing::ValuesIn(cases()), name_of_case);

// A machine that lacked a thread is launched again with the next message, and runs.
TEST(FaultsAgain, AMachineIsLaunchedAfterALaunchThatFailed) {
    constexpr char text[] = "(module (func (export \"_start\")))";
    gpurun_device* device = nullptr;
    gpurun_module* module = nullptr;
    ASSERT_EQ(gpurun_device_open("cpu", &device), nullptr);
    ASSERT_EQ(gpurun_module_load(text, sizeof text - 1, "guest.wat", &module), nullptr);
    bool has_failed = true;
    for (u64 number = 1; has_failed; number++) {
        SCOPED_TRACE(number);
        gpurun_machine* machine = nullptr;
        gpurun_result* result = nullptr;
        u32 program = 0, process = 0;
        ASSERT_EQ(gpurun_machine_open(device, nullptr, &machine), nullptr);
        arm({Kind::thread, number});
        gpurun_error* error = gpurun_machine_load(machine, "guest", module, nullptr, &program);
        disarm();
        has_failed = error != nullptr;
        gpurun_error_delete(error);
        if (has_failed)
            ASSERT_EQ(gpurun_machine_load(machine, "guest", module, nullptr, &program), nullptr);
        ASSERT_EQ(gpurun_machine_spawn(machine, program, nullptr, &process), nullptr);
        ASSERT_EQ(gpurun_machine_next(machine, 60, nullptr, &process, &result), nullptr);
        ASSERT_NE(result, nullptr) << "it does not run";
        EXPECT_EQ(gpurun_result_ending(result, 0), GPURUN_EXITED);
        gpurun_result_delete(result);
        EXPECT_EQ(gpurun_machine_close(machine), nullptr);
        gpurun_machine_delete(machine);
        if (!has_failed) EXPECT_GT(number, 3u);  // its own thread, and more than one warp
    }
    gpurun_module_delete(module);
    gpurun_device_delete(device);
}

}  // namespace
}  // namespace gpurun::faults
