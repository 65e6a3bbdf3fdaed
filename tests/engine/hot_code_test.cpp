// Machine code that comes function by function: what is hot is compiled and taken over, the rest is
// not, and all that was compiled is kept.
#include "engine/hot_code.h"

#include <gtest/gtest.h>

#include <thread>

#include "engine/beside.h"
#include "engine/store.h"
#include "text/assemble.h"

namespace gpurun::engine {
namespace {

using std::chrono::milliseconds;

constexpr const char* some_functions = R"(
    (func $hot (param i32) (result i32)
      (local $sum i32)
      (loop $l
        (local.set $sum (i32.add (local.get $sum) (call $called (local.get 0))))
        (br_if $l (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
      (local.get $sum))
    (func $cold (result i32) (i32.const 7))
    (func $called (param i32) (result i32) (i32.mul (local.get 0) (i32.const 3)))
    (func (export "run") (param i32) (result i32)
      (i32.add (call $hot (local.get 0)) (call $cold))))";

struct Subject {
    std::shared_ptr<const wasm::Module> module;
    translate::Code code;
    std::vector<codegen::Image> kept;
    std::mutex mutex;

    static std::unique_ptr<Subject> make() {
        auto assembled = text::assemble(some_functions, "test.wat");
        auto module = wasm::load(std::move(assembled->bytes));
        auto code = translate::translate(**module, {});
        return std::unique_ptr<Subject>(new Subject{*module, std::move(*code), {}, {}});
    }
    std::shared_ptr<HotCode> hot(codegen::Image begun = {}) {
        return std::make_shared<HotCode>(module, "test.wat", code, false, std::move(begun),
                                         ImageSource::cache, [this](const codegen::Image& image) {
                                             std::lock_guard lock(mutex);
                                             kept.push_back(image);
                                         });
    }
    // Tells of something that was seen in code which begins at position 100.
    void see(HotCode& hot, const device::Activity& activity, std::chrono::nanoseconds ran) const {
        hot.saw(activity, 100, ran, [this](u32 position, std::span<u64> words) -> Result<void> {
            std::copy_n(code.words.begin() + (position - 100), words.size(), words.begin());
            return {};
        });
    }
    device::Activity at(u32 func, u32 begin) const {
        device::Activity activity;
        activity.position = begin + code.entries[func] + 1;
        return activity;
    }
};

// Waits until a run has so many functions.
bool await(HotCode& hot, device::Device& device, HotCode::CodeOfRun& taken, u32 functions) {
    for (u32 i = 0; i < 5000 && taken.functions < functions; i++) {
        hot.take(device, taken);
        std::this_thread::sleep_for(milliseconds(2));
    }
    while (is_working_beside()) std::this_thread::sleep_for(milliseconds(2));
    return taken.functions == functions;
}

TEST(HotCode, CompilesWhatIsHotAndKeepsIt) {
    auto subject = Subject::make();
    auto device = *device::open_device("cpu");
    auto hot = subject->hot();
    HotCode::CodeOfRun taken;
    subject->see(*hot, subject->at(1, 100), milliseconds(1));
    // Quick code comes at once; LLVM's not for so little.
    EXPECT_EQ(hot->take(*device, taken), codegen::QuickCode::is_available());
    EXPECT_EQ(taken.functions, 0u);
    subject->see(*hot, subject->at(0, 100), milliseconds(500));
    ASSERT_TRUE(await(*hot, *device, taken, 1));
    hot->give_up();
    ASSERT_FALSE(subject->kept.empty());
    const codegen::Image& kept = subject->kept.back();
    ASSERT_EQ(kept.pieces.size(), 1u);
    EXPECT_EQ(kept.pieces[0].functions, std::vector<u32>{0});
    EXPECT_EQ(kept.functions, 1u);
    EXPECT_EQ(kept.missing, 3u);

    // The next run has it from the beginning, and links it once it is worth that.
    auto bytes = codegen::to_bytes(kept);
    auto next = subject->hot(*codegen::from_bytes(bytes, u32(subject->code.words.size())));
    HotCode::CodeOfRun again;
    EXPECT_FALSE(next->take(*device, again));
    subject->see(*next, subject->at(0, 100), milliseconds(10));
    EXPECT_TRUE(next->take(*device, again));
    EXPECT_EQ(again.functions, 1u);
    EXPECT_EQ(next->seconds().emit, 0);
    // What is kept is written once.
    const usize writes = subject->kept.size();
    next->give_up();
    EXPECT_EQ(subject->kept.size(), writes);
}

TEST(HotCode, CompilesWhatMachineCodeMisses) {
    auto subject = Subject::make();
    auto device = *device::open_device("cpu");
    auto hot = subject->hot();
    device::Activity activity;
    activity.missed = {100 + subject->code.entries[2], 100 + subject->code.entries[2]};
    activity.misses = 1'000'000;
    subject->see(*hot, activity, milliseconds(1));
    HotCode::CodeOfRun taken;
    EXPECT_TRUE(await(*hot, *device, taken, 1));
    ASSERT_FALSE(subject->kept.empty());
    EXPECT_EQ(subject->kept.back().pieces[0].functions, std::vector<u32>{2});
}

TEST(HotCode, PositionsElsewhereAreNobodys) {
    auto subject = Subject::make();
    auto device = *device::open_device("cpu");
    auto hot = subject->hot();
    for (u32 position : {0u, 99u, 100u + subject->code.instantiate, ~0u}) {
        device::Activity activity;
        activity.position = position;
        subject->see(*hot, activity, std::chrono::seconds(100));
    }
    EXPECT_FALSE(is_working_beside());
}

// Several threads compile and link while others look; each function becomes machine code once.
TEST(HotCode, RunsAtTheSameTime) {
    auto subject = Subject::make();
    auto device = *device::open_device("cpu");
    auto hot = subject->hot();
    std::vector<HotCode::CodeOfRun> taken(4);
    std::vector<std::thread> runs;
    for (HotCode::CodeOfRun& mine : taken)
        runs.emplace_back([&] {
            for (u32 i = 0; i < 5000 && mine.functions < 4; i++) {
                subject->see(*hot, subject->at(i % 4, 100), milliseconds(20));
                hot->take(*device, mine);
                std::this_thread::sleep_for(milliseconds(1));
            }
        });
    for (std::thread& run : runs) run.join();
    for (const HotCode::CodeOfRun& mine : taken) EXPECT_EQ(mine.functions, 4u);
    while (is_working_beside()) std::this_thread::sleep_for(milliseconds(2));
    hot->give_up();
    u32 functions = 0;
    for (const codegen::Image::Piece& piece : subject->kept.back().pieces)
        functions += u32(piece.functions.size());
    EXPECT_EQ(functions, 4u);
    EXPECT_EQ(subject->kept.back().missing, 0u);
}

}  // namespace
}  // namespace gpurun::engine
