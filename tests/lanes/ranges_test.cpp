// Bursts that the code for NVIDIA GPUs runs in ranges, with kernels on warps of fibers: processes
// end, write and trap as in one launch, whichever layout a range has.
#include <gmock/gmock.h>

#include <thread>

#include "base/format.h"
#include "engine/burst.h"
#include "lanes_cuda.h"
#include "text/assemble.h"
#include "wasm/decode.h"

namespace gpurun::test {
namespace {

using engine::BurstReport;
using engine::Completion;
using Reason = engine::LayoutChoice::Reason;

// Writes a letter for each process, counts in memory, and ends by a trap, an exit code or a value.
// `forever`: the number of a process that does not end.
std::string program(u32 rounds, u32 forever) {
    return format(R"((module
        (import "wasi_snapshot_preview1" "fd_write"
            (func $write (param i32 i32 i32 i32) (result i32)))
        (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
        (memory (export "memory") 1) (data (i32.const 32) "A\n")
        (func (export "run") (param i32) (result i32) (local $left i32)
          (local.set $left (i32.const %u))
          (i32.store (i32.const 0) (i32.const 32)) (i32.store (i32.const 4) (i32.const 2))
          (i32.store8 (i32.const 32) (i32.add (i32.const 65)
                                              (i32.rem_u (local.get 0) (i32.const 26))))
          (loop $next
            (i32.store (i32.const 100) (i32.add (i32.load (i32.const 100)) (local.get 0)))
            (br_if $next (local.tee $left (i32.sub (local.get $left) (i32.const 1)))))
          (loop $again (br_if $again (i32.eq (local.get 0) (i32.const %u))))
          (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))
          (if (i32.eq (i32.rem_u (local.get 0) (i32.const 50)) (i32.const 7)) (then (unreachable)))
          (if (i32.eq (i32.rem_u (local.get 0) (i32.const 50)) (i32.const 8))
            (then (call $exit (local.get 0))))
          (i32.load (i32.const 100)))))",
                  rounds, forever);
}

std::string ending(const BurstReport& report, u32 process) {
    const Completion completion = report.of(process);
    std::string text = completion.to_string();
    for (const engine::Value& value : completion.results) text += " " + value.to_string();
    auto written = report.stream(process, 1);
    return text + " [" + (written ? *written : written.error().to_string()) + "]";
}

class Ranges : public LanesCudaTest {
protected:
    void SetUp() override {
        LanesCudaTest::SetUp();
        run_.function = "run";
        run_.arguments = {"{}"};
        run_.limits.memory_bytes = 4 << 16;
        run_.limits.stack_slots = 1024;
        run_.limits.system_bytes = 128 << 20;
    }

    Result<BurstReport> run(u32 processes, const std::string& text) {
        text::Assembled assembled = TRY(text::assemble(text, "x"));
        const engine::Program made{TRY(wasm::load(std::move(assembled.bytes)))};
        run_.many.processes = processes;
        const engine::Job job{made, run_};
        return engine::run_burst(*device_, {&job, 1}, {});
    }
    // Has the other layout's kernel at once. In a build for development it would be assembled
    // first.
    void load_interleaved() { ASSERT_TRUE(device_->gang_kernel(false, Layout::interleaved).ok()); }
    // Returns how the first process ended that ended otherwise than expected; "" if none did.
    static std::string difference(const BurstReport& report, const BurstReport& expected) {
        for (u32 i = 0; i < expected.processes(); i++)
            if (const std::string is = ending(report, i), wanted = ending(expected, i);
                is != wanted)
                return format("process %u: %s, not %s", i, is.c_str(), wanted.c_str());
        return "";
    }

    engine::Run run_;
};

TEST_F(Ranges, EndAsOneBurst) {
    const std::string text = program(60, ~0u);
    run_.layout = Layout::linear;
    auto whole = run(3000, text);
    ASSERT_TRUE(whole.ok()) << whole.error().to_string();
    run_.layout = {};
    load_interleaved();
    auto ranges = run(3000, text);
    ASSERT_TRUE(ranges.ok()) << ranges.error().to_string();
    EXPECT_EQ(difference(*ranges, *whole), "");
    const engine::LayoutChoice& choice = ranges->layout_choice();
    EXPECT_EQ(choice.reason, Reason::measured);
    EXPECT_EQ(choice.rates.linear.processes, 128u);
    EXPECT_EQ(choice.rates.interleaved.processes, 128u);
    EXPECT_EQ(ranges->outcome().slots, 128u);
    auto again = run(3000, text);
    ASSERT_TRUE(again.ok()) << again.error().to_string();
    EXPECT_EQ(difference(*again, *whole), "");
    EXPECT_EQ(again->layout_choice().reason, Reason::remembered);
}

// The kernel for interleaved memories is assembled by another thread: processes that have begun by
// then are linear, and the rest is left to other ranges.
TEST_F(Ranges, BeginOnceThereIsAKernel) {
    const std::string text = program(300, ~0u);
    constexpr u32 processes = 8000;  // for a second or more
    run_.layout = Layout::linear;
    auto whole = run(processes, text);
    ASSERT_TRUE(whole.ok()) << whole.error().to_string();
    run_.layout = {};
    u64 seen = 0;
    run_.progress = [&](u64 ended, u64 all) {
        EXPECT_LE(seen, ended);
        EXPECT_LE(ended, all);
        seen = ended;
    };
    auto ranges = run(processes, text);
    ASSERT_TRUE(ranges.ok()) << ranges.error().to_string();
    EXPECT_EQ(difference(*ranges, *whole), "");
    EXPECT_EQ(ranges->layout_choice().reason, Reason::measured);
    EXPECT_EQ(ranges->layout_choice().rates.linear.processes, 128u);
    EXPECT_GT(seen, 0u);
}

// Whatever range it is in, a process that does not end is stopped with those that run beside it;
// those before it have ended, and those behind it never begin.
TEST_F(Ranges, EndByAStop) {
    load_interleaved();
    auto stop = std::make_shared<std::atomic<bool>>(false);
    run_.stop = stop;
    for (u32 forever : {5u, 130u, 300u}) {
        SCOPED_TRACE(forever);
        *stop = false;
        std::thread stopper([stop] {
            std::this_thread::sleep_for(std::chrono::seconds(1));
            *stop = true;
        });
        auto report = run(512, program(3, forever));
        stopper.join();
        ASSERT_TRUE(report.ok()) << report.error().to_string();
        const u32 begin = forever < 256 ? forever / 128 * 128 : 256;
        for (u32 i = 0; i < 512; i++) {
            const Completion::Kind kind = report->of(i).kind;
            if (i < begin) EXPECT_NE(kind, Completion::Kind::stopped) << i;
            if (i == forever || i >= begin + 256) EXPECT_EQ(kind, Completion::Kind::stopped) << i;
        }
        EXPECT_TRUE(report->outcome().stop_seconds);
    }
}

// A process that does not end keeps none from beginning.
TEST_F(Ranges, AreNoneWithATimeLimit) {
    load_interleaved();
    run_.timeout = 2;
    auto report = run(512, program(3, 5));
    ASSERT_TRUE(report.ok()) << report.error().to_string();
    for (u32 i = 0; i < 512; i++)
        EXPECT_EQ(report->of(i).kind == Completion::Kind::stopped, i == 5) << i;
    EXPECT_EQ(report->layout_choice().reason, Reason::untried);
    EXPECT_EQ(report->layout_choice().rates.linear.processes, 0u);
}

TEST_F(Ranges, DumpWhatTraps) {
    load_interleaved();
    run_.dump = folder_ + "/dumps";
    auto report = run(1000, program(3, ~0u));
    ASSERT_TRUE(report.ok()) << report.error().to_string();
    EXPECT_EQ(report->layout_choice().reason, Reason::measured);
    EXPECT_EQ(report->dumps(), 20u);
    EXPECT_FALSE(report->dump_problem());
    EXPECT_EQ(ending(*report, 957), "unreachable [V\n]");
    EXPECT_EQ(ending(*report, 958), "exited with 958 [W\n]");
}

// Fewer processes than a range.
// Lanes that find the ring of records full wait until the host has emptied it.
TEST_F(Ranges, LoseNothingThatIsNoted) {
    constexpr u32 processes = 300, lines = 40;
    constexpr const char* text = R"((import "gpu" "debug_i32" (func $debug (param i32)))
        (func (export "run") (param i32) (local $i i32)
          (loop $next
            (call $debug (local.get $i))
            (br_if $next (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1)))
                                   (i32.const 40))))))";
    static_assert(processes * lines > 2 * engine::held_records);
    for (Layout layout : {Layout::linear, Layout::interleaved}) {
        std::vector<u32> next(processes);
        u32 wrong = 0;
        run_.take_line = [&](const std::string& line) {
            u32 process = 0, number = 0;
            const bool is_line =
                std::sscanf(line.c_str(), "process %u: %u", &process, &number) == 2;
            wrong += !is_line || process >= processes || number != next[process]++;
        };
        run_.layout = layout;
        auto report = run(processes, text);
        ASSERT_TRUE(report.ok()) << report.error().to_string();
        EXPECT_EQ(wrong, 0u);
        EXPECT_EQ(next, std::vector<u32>(processes, lines));
        EXPECT_EQ(report->notes()->lost(), 0u);
    }
}

TEST_F(Ranges, OfFewProcessesAreNone) {
    load_interleaved();
    auto report = run(127, program(3, ~0u));
    ASSERT_TRUE(report.ok()) << report.error().to_string();
    EXPECT_EQ(report->layout_choice().reason, Reason::untried);
    EXPECT_EQ(report->layout_choice().rates.linear.processes, 0u);
    EXPECT_EQ(ending(*report, 126), "returned 378 [W\n]");
}

}  // namespace
}  // namespace gpurun::test
