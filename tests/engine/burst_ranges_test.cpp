// A burst that is run in ranges ends as one that is not, and its layout is tried, chosen and
// remembered; on a device that is played here, whose processes run on the CPU.
#include "engine/burst_ranges.h"

#include <gmock/gmock.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "base/format.h"
#include "engine/beside.h"
#include "engine/burst.h"
#include "text/assemble.h"
#include "wasm/decode.h"

namespace gpurun::engine {
namespace {

using device::Burst;
using device::BurstOutcome;
using device::RunControl;
using device::Tier;
using testing::ElementsAre;
using Reason = LayoutChoice::Reason;
using Ran = std::vector<std::string>;

void await_beside() {
    while (is_working_beside()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

class NoCode final : public device::NativeCode {};

// Has two multiprocessors with 64 lanes: a range is 16 processes at the least, 64 at the most.
class PlayedDevice final : public device::Device {
public:
    PlayedDevice() : cpu_(std::move(*device::open_device("cpu"))) {
        info_ = cpu_->info();
        info_.name = "played";
        info_.multiprocessors = 2;
        info_.block_lanes = 8;
        info_.lanes = 64;
        info_.has_layouts = true;
    }

    Ran ran;  // "linear 0+64", with "native" behind it if it has machine code
    double linear_rate = 100, interleaved_rate = 200;
    bool refuses_interleaved = false, outgrows = false;
    u32 begun_before_enough = 100;   // processes, before anybody is asked
    std::function<void()> on_range;  // called when each begins

    const device::DeviceInfo& info() const override { return info_; }
    device::DeviceInfo& change_info() { return info_; }
    const device::Usage& usage() const override { return usage_; }
    std::map<std::string, u64> driver_calls() const override { return {}; }
    device::KernelCounts kernel_counts() const override { return {}; }
    Result<void> prepare(device::Mode) override { return {}; }
    std::function<void()> kernel_assembler(device::Mode, Layout layout) const override {
        if (layout == Layout::linear || !assembles) return {};
        return [] {};
    }
    bool assembles = false;
    Result<std::unique_ptr<device::SystemMemory>> make_system(u64 size) override {
        return cpu_->make_system(size);
    }
    Result<std::unique_ptr<device::Space>> make_space(const device::Sizes& sizes) override {
        return cpu_->make_space(sizes);
    }
    Result<std::shared_ptr<const device::NativeCode>> load_native(
        const codegen::Image&, codegen::Target, const device::NativeCode*) override {
        await_beside();  // this takes a GPU longer than it takes others to read a cache
        return std::shared_ptr<const device::NativeCode>(std::make_shared<NoCode>());
    }
    device::Assembler assembler(codegen::Target) const override {
        return [](const codegen::Image&) {};
    }
    codegen::Target target(device::Mode mode, Layout layout) const override {
        if (mode != device::Mode::burst) return codegen::Target::host;
        return layout == Layout::linear ? codegen::Target::cuda_burst
                                        : codegen::Target::cuda_interleaved;
    }
    bool takes_late_native() const override { return true; }
    bool loads_beside_machine() const override { return true; }
    Result<device::MachineShape> machine_shape() override { return Error{"no machines"}; }
    Result<std::unique_ptr<device::MachineRunner>> make_machine(device::SystemMemory&,
                                                                device::SystemMemory&) override {
        return Error{"no machines"};
    }

    Result<BurstOutcome> run_burst(std::span<const Burst> parts,
                                   const RunControl& control) override {
        const Layout layout = parts[0].layout;
        if (refuses_interleaved && layout == Layout::interleaved)
            return Error{"not enough device memory"};
        usage_.launches++;
        if (on_range) on_range();
        std::vector<Burst> copies(parts.begin(), parts.end());
        for (Burst& part : copies) {
            await_native(part);
            part.native = {};
            part.late_native = {};
            part.tier = Tier::interp;
        }
        await_enough(copies, control);
        for (usize i = 0; i < parts.size(); i++)
            ran.push_back(format("%s %u+%u%s", layout == Layout::linear ? "linear" : "interleaved",
                                 copies[i].first, copies[i].processes,
                                 parts[i].native.empty() ? "" : " native"));
        RunControl mine = control;
        mine.progress = {};
        BurstOutcome outcome = TRY(cpu_->run_burst(copies, mine));
        u32 count = 0;
        for (const Burst& part : copies) count += part.processes;
        if (control.progress) control.progress(count);
        outcome.seconds = count / (layout == Layout::linear ? linear_rate : interleaved_rate);
        outcome.layout = layout;
        outcome.has_outgrown = outgrows;
        return outcome;
    }

private:
    void await_native(const Burst& part) {
        for (bool is_last = !part.late_native; !is_last; is_last = part.late_native({}).is_last)
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    // Has some processes begun, and then asks for a long time.
    void await_enough(std::span<Burst> parts, const RunControl& control) {
        if (!control.is_enough || parts[0].processes <= begun_before_enough) return;
        const u64 left = parts[0].processes - begun_before_enough;
        for (u32 turn = 0; turn < 1000; turn++) {
            if (control.is_enough(left)) {
                parts[0].processes = begun_before_enough;
                return;
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
        }
    }

    std::unique_ptr<device::Device> cpu_;
    device::DeviceInfo info_;
    device::Usage usage_;
};

class BurstRangesTest : public testing::Test {
protected:
    void SetUp() override {
        if (const char* cache = getenv("GPURUN_CACHE")) before_ = cache;
        std::string pattern = testing::TempDir() + "ranges-XXXXXX";
        folder_ = mkdtemp(pattern.data());
        setenv("GPURUN_CACHE", (folder_ + "/cache").c_str(), 1);
        run_.function = "run";
        run_.arguments = {"{}"};
        run_.many.processes = 1024;
        use("(memory 1)");
    }
    void TearDown() override {
        await_beside();  // what it made is for this folder
        before_ ? setenv("GPURUN_CACHE", before_->c_str(), 1) : unsetenv("GPURUN_CACHE");
        std::filesystem::remove_all(folder_);
    }

    // Makes the program: it gives back three times the number of the process, and traps for 77.
    void use(const std::string& memory) {
        const std::string text = "(module " + memory + R"(
            (func (export "run") (param i32) (result i32)
              (if (i32.eq (local.get 0) (i32.const 77)) (then (unreachable)))
              (i32.mul (local.get 0) (i32.const 3))))";
        program_.module = *wasm::load(std::move(text::assemble(text + ")", "x")->bytes));
        program_.images = std::make_shared<Images>(program_.module, "x");
    }
    // Returns "" if processes ended as they should: those behind `stopped` never began.
    std::string differences(const BurstReport& report, u32 stopped = ~u32{0}) const {
        for (u32 i = 0; i < report.processes(); i++) {
            const Completion ended = report.of(i);
            const bool is_right = i >= stopped ? ended.kind == Completion::Kind::stopped
                                  : i == 77    ? ended.kind == Completion::Kind::trapped
                                               : ended.kind == Completion::Kind::returned &&
                                                     ended.results[0].bits.word[0] == 3 * i;
            if (!is_right) return format("process %u: %s", i, ended.to_string().c_str());
        }
        return "";
    }
    // Runs the program, and checks how its processes ended.
    LayoutChoice run_it() {
        device_.ran.clear();
        const Job job{program_, run_};
        auto report = run_burst(device_, {&job, 1}, {});
        EXPECT_TRUE(report.ok()) << report.error().to_string();
        if (!report) return {};
        EXPECT_EQ(differences(*report), "");
        return report->layout_choice();
    }

    PlayedDevice device_;
    Program program_;
    engine::Run run_;
    std::string folder_;

private:
    std::optional<std::string> before_;
};

TEST_F(BurstRangesTest, TheFasterLayoutIsFoundAndRemembered) {
    LayoutChoice choice = run_it();
    EXPECT_THAT(device_.ran,
                ElementsAre("linear 0+64", "interleaved 64+64", "interleaved 128+896"));
    EXPECT_EQ(choice.reason, Reason::measured);
    EXPECT_EQ(choice.layout, Layout::interleaved);
    EXPECT_NEAR(choice.rates.linear.per_second, 100, 1e-6);
    EXPECT_NEAR(choice.rates.interleaved.per_second, 200, 1e-6);
    choice = run_it();
    EXPECT_THAT(device_.ran, ElementsAre("interleaved 0+1024"));
    EXPECT_EQ(choice.reason, Reason::remembered);
    // Another device knows nothing of it.
    device_.change_info().name = "another";
    device_.interleaved_rate = 50;
    EXPECT_EQ(run_it().layout, Layout::linear);
    EXPECT_THAT(device_.ran, ElementsAre("linear 0+64", "interleaved 64+64", "linear 128+896"));
}

TEST_F(BurstRangesTest, ADamagedEntryIsMadeAgain) {
    run_it();
    for (const auto& entry : std::filesystem::directory_iterator(folder_ + "/cache")) {
        std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
        file.seekp(-1, std::ios::end);
        file.put('\x55');
    }
    EXPECT_EQ(run_it().reason, Reason::measured);
    EXPECT_EQ(run_it().reason, Reason::remembered);
}

TEST_F(BurstRangesTest, SmallBurstsCompleteEachOther) {
    run_.many.processes = 200;
    device_.change_info().lanes = 1024;
    device_.change_info().block_lanes = 40;
    EXPECT_EQ(run_it().reason, Reason::untried);
    EXPECT_THAT(device_.ran, ElementsAre("linear 0+200"));
    EXPECT_EQ(run_it().reason, Reason::measured);
    EXPECT_THAT(device_.ran, ElementsAre("interleaved 0+200"));
    EXPECT_EQ(run_it().reason, Reason::remembered);
    // Less than a block for each multiprocessor.
    run_.many.processes = 79;
    EXPECT_EQ(run_it().reason, Reason::untried);
    EXPECT_THAT(device_.ran, ElementsAre("linear 0+79"));
}

TEST_F(BurstRangesTest, BurstsWithATimeLimitAreNotSplit) {
    run_.timeout = 1000;
    EXPECT_EQ(run_it().reason, Reason::untried);
    EXPECT_THAT(device_.ran, ElementsAre("linear 0+1024"));
    EXPECT_EQ(run_it().reason, Reason::measured);
    EXPECT_THAT(device_.ran, ElementsAre("interleaved 0+1024"));
    run_.timeout = {};
    EXPECT_EQ(run_it().reason, Reason::remembered);
}

TEST_F(BurstRangesTest, MachineCodeIsMadeBesideLinearRanges) {
    run_.tier = Tier::native;
    EXPECT_EQ(run_it().reason, Reason::measured);
    EXPECT_THAT(device_.ran,
                ElementsAre("linear 0+100 native", "linear 100+64 native",
                            "interleaved 164+64 native", "interleaved 228+796 native"));
    // What the interpreter would do is another question.
    run_.tier = Tier::interp;
    EXPECT_EQ(run_it().reason, Reason::measured);
    run_.tier = Tier::automatic;
    EXPECT_EQ(run_it().reason, Reason::remembered);
    EXPECT_THAT(device_.ran, ElementsAre("interleaved 0+1024 native"));
}

TEST_F(BurstRangesTest, MachineCodeThatComesLateIsMeasuredOnceItIsThere) {
    run_.tier = Tier::automatic;
    EXPECT_EQ(run_it().reason, Reason::measured);
    EXPECT_THAT(device_.ran,
                ElementsAre("linear 0+100", "linear 100+64 native", "interleaved 164+64 native",
                            "interleaved 228+796 native"));
}

TEST_F(BurstRangesTest, ABurstThatSwitchesTiersIsNotMeasured) {
    run_.tier = Tier::automatic;
    run_.many.processes = 63;  // too few for ranges
    EXPECT_EQ(run_it().rates.linear.processes, 0u);
    EXPECT_EQ(run_it().rates.linear.processes, 63u);
}

// As in programs that each run one burst.
TEST_F(BurstRangesTest, SmallBurstsHaveMachineCodeMadeForLaterOnes) {
    run_.tier = Tier::native;
    run_.many.processes = 63;
    EXPECT_EQ(run_it().rates.linear.processes, 63u);
    use("(memory 1)");
    EXPECT_EQ(run_it().reason, Reason::untried);
    EXPECT_THAT(device_.ran, ElementsAre("linear 0+63 native"));
    await_beside();
    use("(memory 1)");
    EXPECT_EQ(run_it().reason, Reason::measured);
    EXPECT_THAT(device_.ran, ElementsAre("interleaved 0+63 native"));
}

TEST_F(BurstRangesTest, AllIsLinearIfTheOtherCodeNeverComes) {
    run_.tier = Tier::native;
    program_.images = nullptr;
    device_.begun_before_enough = 2000;  // nobody is asked in time
    EXPECT_EQ(run_it().reason, Reason::untried);
    EXPECT_THAT(device_.ran, ElementsAre("linear 0+1024 native"));
}

TEST_F(BurstRangesTest, AKernelThatHasToBeAssembledIsAwaited) {
    device_.assembles = true;
    EXPECT_EQ(run_it().reason, Reason::measured);
    EXPECT_THAT(device_.ran, ElementsAre("linear 0+100", "linear 100+64", "interleaved 164+64",
                                         "interleaved 228+796"));
}

TEST_F(BurstRangesTest, WhatCannotInterleaveIsLinear) {
    device_.refuses_interleaved = true;
    EXPECT_EQ(run_it().reason, Reason::untried);
    EXPECT_THAT(device_.ran, ElementsAre("linear 0+64", "linear 64+960"));
    // Nor is it an error if there was room for it once.
    device_.refuses_interleaved = false;
    EXPECT_EQ(run_it().layout, Layout::interleaved);
    device_.refuses_interleaved = true;
    EXPECT_EQ(run_it().layout, Layout::linear);
    EXPECT_THAT(device_.ran, ElementsAre("linear 0+1024"));
    // Whoever asks for it wants to know.
    run_.layout = Layout::interleaved;
    const Job job{program_, run_};
    EXPECT_FALSE(run_burst(device_, {&job, 1}, {}).ok());
}

TEST_F(BurstRangesTest, ProcessesThatOutgrowTheirSlotsStayLinear) {
    device_.outgrows = true;
    EXPECT_EQ(run_it().reason, Reason::untried);
    EXPECT_THAT(device_.ran, ElementsAre("linear 0+64", "linear 64+960"));
}

TEST_F(BurstRangesTest, NothingIsTriedWhereNothingCanInterleave) {
    auto is_linear = [&] {
        EXPECT_EQ(run_it().reason, Reason::untried);
        EXPECT_THAT(device_.ran, ElementsAre("linear 0+1024"));
    };
    for (const char* memory : {"", "(memory i64 1)", "(memory 1 2 shared)"}) {
        SCOPED_TRACE(memory);
        use(memory);
        is_linear();
    }
    use("(memory 1)");
    run_.is_profiled = true;
    is_linear();
    run_.is_profiled = false;
    run_.tier = Tier::early;
    is_linear();
    run_.tier = Tier::interp;
    device_.change_info().has_layouts = false;
    is_linear();
}

TEST_F(BurstRangesTest, AFixedLayoutIsNotTried) {
    for (Layout layout : {Layout::linear, Layout::interleaved}) {
        run_.layout = layout;
        const LayoutChoice choice = run_it();
        EXPECT_EQ(choice.reason, Reason::asked);
        EXPECT_EQ(choice.layout, layout);
        EXPECT_EQ(device_.ran.size(), 1u);
    }
    EXPECT_FALSE(std::filesystem::exists(folder_ + "/cache"));
}

TEST_F(BurstRangesTest, AStopEndsAnyRange) {
    auto stop = std::make_shared<std::atomic<bool>>(false);
    run_.stop = stop;
    const u32 begun[] = {0, 64, 128};
    for (u32 range = 0; range < 3; range++) {
        SCOPED_TRACE(range);
        *stop = false;
        u32 count = 0;
        device_.on_range = [&] { *stop = count++ == range; };
        device_.interleaved_rate = 200 + range;
        device_.change_info().name = format("stopped %u", range);
        const Job job{program_, run_};
        auto report = run_burst(device_, {&job, 1}, {});
        ASSERT_TRUE(report.ok());
        EXPECT_EQ(count, range + 1);
        EXPECT_EQ(report->outcome().parts[0].words.size(),
                  1024u * report->outcome().parts[0].stride);
        EXPECT_EQ(differences(*report, begun[range]), "");
    }
}

TEST_F(BurstRangesTest, JobsShareRangesAndProgressGoesOn) {
    engine::Run other = run_;
    other.many.processes = 3;
    std::vector<u64> seen;
    run_.progress = [&](u64 ended, u64 all) {
        EXPECT_EQ(all, 1027u);
        seen.push_back(ended);
    };
    const Job jobs[] = {{program_, run_}, {program_, other}};
    auto report = run_burst(device_, jobs, {});
    ASSERT_TRUE(report.ok()) << report.error().to_string();
    EXPECT_EQ(differences(*report), "");
    for (u32 i = 0; i < 3; i++) EXPECT_EQ(report->of(i, 1).results[0].bits.word[0], 3 * i);
    EXPECT_THAT(seen, ElementsAre(64, 128, 1027));
    EXPECT_THAT(device_.ran,
                ElementsAre("linear 0+63", "linear 0+1", "interleaved 63+63", "interleaved 1+1",
                            "interleaved 126+898", "interleaved 2+1"));
}

}  // namespace
}  // namespace gpurun::engine
