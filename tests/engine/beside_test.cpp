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

// A module that takes a while to compile.
Result<std::shared_ptr<const wasm::Module>> module_of(int functions) {
    std::string text = "(module";
    for (int i = 0; i < functions; i++)
        text += "(func (param i32) (result i32) (i32.mul (local.get 0) (i32.const " +
                std::to_string(i) + ")))";
    text += ")";
    return engine::load_bytes({text.begin(), text.end()}, "many.wat");
}

TEST(Beside, AStopAbandonsCompiling) {
    auto module = module_of(2000);
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

// Two wait for the same machine code, and one gives up.
TEST(Beside, AStopOfOneLeavesTheOtherWaiting) {
    auto module = module_of(1);
    ASSERT_TRUE(module) << module.error().to_string();
    engine::Images images(*module);
    auto may_end = std::make_shared<std::atomic<bool>>(false);
    auto assemble = [may_end](const codegen::Image&) {
        while (!*may_end) std::this_thread::yield();
    };
    Result<std::shared_ptr<const engine::FoundImage>> other = Error{"nothing yet"};
    std::thread waiting([&] { other = images.get(codegen::Target::host, false, {}, assemble); });
    // Ends: the other begins, and what it began does not end yet.
    while (!is_working_beside()) std::this_thread::yield();
    std::atomic<bool> stop = true;
    device::RunControl control;
    control.stop = &stop;
    auto made = images.get(codegen::Target::host, false, control);
    *may_end = true;
    waiting.join();
    ASSERT_TRUE(made) << made.error().to_string();
    EXPECT_FALSE(*made);
    ASSERT_TRUE(other) << other.error().to_string();
    EXPECT_TRUE(*other);
    await_workers();
}

}  // namespace
}  // namespace gpurun::test
