// Work that cannot be interrupted is abandoned when somebody wants a stop.
#include "engine/beside.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "engine/images.h"
#include "engine/load.h"

namespace gpurun::test {
namespace {

using engine::is_working_beside;

// Ends: what is abandoned is given up piece by piece.
void await_workers() {
    while (is_working_beside()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

TEST(Beside, IsWaitedForOrAbandoned) {
    std::atomic<bool> stop = false;
    device::RunControl control;
    control.stop = &stop;
    auto ran = engine::run_beside([] {}, control);
    ASSERT_TRUE(ran);
    EXPECT_TRUE(*ran);
    // It ends only once nobody waits for it any more.
    auto may_end = std::make_shared<std::atomic<bool>>(false);
    stop = true;
    ran = engine::run_beside(
        [may_end] {
            while (!*may_end) std::this_thread::yield();
        },
        control);
    ASSERT_TRUE(ran);
    EXPECT_FALSE(*ran);
    EXPECT_TRUE(is_working_beside());
    *may_end = true;
    await_workers();
}

TEST(Beside, AStopAbandonsCompiling) {
    std::string text = "(module";
    for (int i = 0; i < 2000; i++)
        text += "(func (param i32) (result i32) (i32.mul (local.get 0) (i32.const " +
                std::to_string(i) + ")))";
    text += ")";
    auto module = engine::load_bytes({text.begin(), text.end()}, "many.wat");
    ASSERT_TRUE(module) << module.error().to_string();
    engine::Images images(*module);
    std::atomic<bool> stop = true;
    device::RunControl control;
    control.stop = &stop;
    auto made = images.get(codegen::Target::host, false, control);
    ASSERT_TRUE(made) << made.error().to_string();
    EXPECT_FALSE(*made);
    await_workers();
}

}  // namespace
}  // namespace gpurun::test
