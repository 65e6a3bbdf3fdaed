// What src/burst does between launches, with the kernels of a GPU on warps of fibers, and by the
// code for NVIDIA GPUs on a driver without one: processes that outgrow their slots, machine code
// that comes late, the host's part. They end as on the CPU, which has none of that.
#include <gmock/gmock.h>

#include <set>

#include "../runtime/process.h"
#include "engine/burst.h"
#include "lanes_cuda.h"
#include "lanes_device.h"

namespace gpurun::test {
namespace {

using device::Burst;
using device::BurstOutcome;
using device::RunControl;
using testing::Each;
using testing::ElementsAre;
using testing::Field;

constexpr char growing[] = R"((module
  (memory 1 60) (data (i32.const 8) "first")
  (func $down (param i32) (result i32)
    (if (result i32) (local.get 0)
      (then (i32.add (call $down (i32.sub (local.get 0) (i32.const 1))) (local.get 0)))
      (else (i32.const 0))))
  ;; Every third one goes deep.
  (func (export "deep") (param i32) (result i32)
    (call $down (i32.mul (local.get 0)
      (select (i32.const 90) (i32.const 1)
              (i32.eqz (i32.rem_u (local.get 0) (i32.const 3)))))))
  ;; Every third one has a memory that grows page by page, and all of what it has written there.
  (func (export "large") (param $n i32) (result i32 i32) (local $i i32) (local $sum i32)
    (i32.store8 (i32.const 9) (local.get $n))
    (if (i32.rem_u (local.get $n) (i32.const 3))
      (then (return (i32.load (i32.const 8)) (memory.size))))
    (loop $next
      (if (i32.eq (memory.grow (i32.const 1)) (i32.const -1))
        (then (return (i32.const -1) (i32.load (i32.const 8)))))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (i32.store offset=3 (i32.shl (local.get $i) (i32.const 16))
                          (i32.mul (local.get $i) (local.get $n)))
      (br_if $next (i32.lt_u (local.get $i) (i32.const 40))))
    (loop $add
      (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31))
                               (i32.load offset=3 (i32.shl (local.get $i) (i32.const 16)))))
      (br_if $add (local.tee $i (i32.sub (local.get $i) (i32.const 1)))))
    (local.get $sum) (i32.load (i32.const 8)))
  ;; Long, and the first one needs larger slots before.
  (func $rounds (param $n i32) (param $left i32) (result i32) (local $sum i32)
    (if (i32.eqz (local.get $n)) (then (drop (memory.grow (i32.const 40)))))
    (loop $next
      (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31)) (local.get $n)))
      (br_if $next (local.tee $left (i32.sub (local.get $left) (i32.const 1)))))
    (local.get $sum))
  (func (export "long") (param i32) (result i32) (call $rounds (local.get 0) (i32.const 20000)))
  (func (export "longer") (param i32) (result i32) (call $rounds (local.get 0) (i32.const 300000)))
  (func (export "trap") (param $n i32) (result i32)
    (i32.store (i32.const 16) (local.get $n))
    (if (i32.eqz (i32.rem_u (local.get $n) (i32.const 2))) (then (unreachable)))
    (i32.load (i32.const 16)))
))";

Burst make(Process& process, const char* function, u32 processes) {
    std::vector<u32> arguments;
    for (u32 i = 0; i < processes; i++) arguments.push_back(i);
    auto burst = process.store().make_burst(process.func(function), arguments, processes);
    EXPECT_TRUE(burst.ok()) << burst.error().to_string();
    return std::move(*burst);
}

// Little of everything, so that slots are small.
Process make_process(u32 stack_slots = 4096) {
    engine::StoreOptions options = small_options();
    options.stack_slots = stack_slots;
    options.heap_words = 1024;
    options.table_growth = 16;
    options.memory_bytes = 60 << page_bits;
    return std::move(*Process::make(growing, options));
}

std::vector<u32> on_cpu(const Burst& burst) {
    Burst plain = burst;
    plain.native.clear();
    plain.late_native = {};
    plain.look = {};
    plain.sample = {};
    plain.words[plain.thread + thread_is_looked_at] = 0;
    auto cpu = device::open_device("cpu");
    return (*cpu)->run_burst({&plain, 1}, {})->parts[0].words;
}

// Runs a burst on 2 warps where there is so much memory; `device` knows what was launched.
Result<BurstOutcome> run(LanesDevice& device, std::span<const Burst> parts,
                         const RunControl& control = {}) {
    auto outcome = device.run_burst(parts, control);
    EXPECT_EQ(device.allocated(), 0u);  // whatever the outcome is
    return outcome;
}

struct Shape {
    u32 lanes;
    Layout layout;
};
class Bursts : public testing::TestWithParam<Shape> {
protected:
    LanesDevice device_{GetParam().lanes, 2, 1};
    // Slots have 5 pages at first with that.
    static constexpr u64 little = 64 << 20;

    Burst make_burst(Process& process, const char* function, u32 processes) const {
        Burst burst = make(process, function, processes);
        burst.layout = GetParam().layout;
        return burst;
    }
    // Returns the rooms of the stages that were launched, the first part's, each once.
    template <class RoomOf>
    std::vector<u64> rooms(RoomOf room_of) const {
        std::set<u64> rooms;
        for (const LanesDevice::Launch& launch : device_.launched)
            rooms.insert(room_of(launch.parts[0]));
        return {rooms.begin(), rooms.end()};
    }
};

TEST_P(Bursts, StacksGoOnInLargerSlots) {
    Process process = make_process(1 << 17);
    const Burst burst = make_burst(process, "deep", 150);
    auto outcome = run(device_, {&burst, 1});
    ASSERT_TRUE(outcome.ok()) << outcome.error().to_string();
    EXPECT_EQ(outcome->parts[0].words, on_cpu(burst));
    EXPECT_TRUE(outcome->has_outgrown);
    EXPECT_THAT(rooms([](const BurstPart& part) { return part.stack_end - part.stack; }),
                ElementsAre(8192, 32768, 131072));
    for (const LanesDevice::Launch& launch : device_.launched)
        EXPECT_EQ(launch.kind.is_deep, launch.parts[0].stack_end - launch.parts[0].stack > 8192);
}

TEST_P(Bursts, MemoriesGoOnInLargerSlots) {
    Process process = make_process();
    device_.set_memory(little * (GetParam().lanes == 4 ? 1 : 8));
    const Burst burst = make_burst(process, "large", 100);
    auto outcome = run(device_, {&burst, 1});
    ASSERT_TRUE(outcome.ok()) << outcome.error().to_string();
    EXPECT_EQ(outcome->parts[0].words, on_cpu(burst));
    EXPECT_TRUE(outcome->has_outgrown);
    EXPECT_GE(rooms([](const BurstPart& part) { return part.bytes_per_process; }).size(), 2u);
    // Those that did not grow stayed where they were.
    for (const LanesDevice::Launch& launch : device_.launched)
        if (launch.parts[0].moved) EXPECT_LE(launch.parts[0].processes, 34u);
}

// Growing fails where there is no larger slot to be had.
TEST_P(Bursts, StayWhereThereIsNoRoom) {
    Process process = make_process();
    const Burst burst = make_burst(process, "large", 40);
    const bool is_wide = GetParam().lanes == 32 && GetParam().layout == Layout::interleaved;
    device_.set_memory((is_wide ? 250 : 25) * (u64{1} << 20) / 10);
    auto outcome = run(device_, {&burst, 1});
    ASSERT_TRUE(outcome.ok()) << outcome.error().to_string();
    const std::vector<u32> expected = on_cpu(burst);
    EXPECT_TRUE(outcome->has_outgrown);
    EXPECT_EQ(rooms([](const BurstPart& part) { return part.bytes_per_process; }).size(), 1u);
    for (u32 i = 0; i < 40; i++) {
        const u32* result = outcome->parts[0].of(i).data();
        EXPECT_EQ(ThreadState(result[result_state]), ThreadState::finished);
        const u32 wanted = i % 3 == 0 ? ~0u : expected[i * outcome->parts[0].stride + result_first];
        EXPECT_EQ(result[result_first], wanted) << i;
    }
}

TEST_P(Bursts, PartsHaveLargerSlotsOfTheirOwn) {
    Process process = make_process(1 << 17);
    const std::vector<Burst> parts{make_burst(process, "deep", 50), make_burst(process, "trap", 30),
                                   make_burst(process, "deep", 70)};
    auto outcome = run(device_, parts);
    ASSERT_TRUE(outcome.ok()) << outcome.error().to_string();
    for (usize i = 0; i < parts.size(); i++)
        EXPECT_EQ(outcome->parts[i].words, on_cpu(parts[i])) << i;
    std::map<u64, u32> stages;  // of each part that has some, by where its code is
    for (const LanesDevice::Launch& launch : device_.launched) {
        if (!launch.parts[0].moved) continue;
        EXPECT_EQ(launch.parts.size(), 1u);
        stages[launch.parts[0].code]++;
    }
    EXPECT_EQ(device_.launched[0].parts.size(), 3u);
    EXPECT_EQ(stages.size(), 2u);
    EXPECT_FALSE(stages.contains(device_.launched[0].parts[1].code));
}

INSTANTIATE_TEST_SUITE_P(Shapes, Bursts,
                         testing::Values(Shape{4, Layout::linear}, Shape{4, Layout::interleaved},
                                         Shape{32, Layout::linear}, Shape{32, Layout::interleaved}),
                         [](const auto& info) {
                             return std::to_string(info.param.lanes) +
                                    (info.param.layout == Layout::linear ? "Linear"
                                                                         : "Interleaved");
                         });

// A process in a larger slot and those in small ones take turns, however long they run.
TEST(BurstTurns, AreTakenByStages) {
    LanesDevice device(4, 1, 1);
    device.set_memory(16 << 20);
    Process process = make_process();
    const Burst burst = make(process, "longer", 4);
    auto outcome = run(device, {&burst, 1});
    ASSERT_TRUE(outcome.ok()) << outcome.error().to_string();
    EXPECT_EQ(outcome->parts[0].words, on_cpu(burst));
    std::string order;
    for (const LanesDevice::Launch& launch : device.launched)
        order += launch.parts[0].moved ? 'l' : 's';
    EXPECT_THAT(order, testing::StartsWith("slsl"));
}

// ---- machine code --------------------------------------------------------------------

u32 entered = 0;
// Leaves at once: the interpreter executes the instruction.
NativeStatus enter(void*, u32*, u32*, u32) {
    entered++;
    return NativeStatus::interpret;
}
Burst::Late late(bool is_last) {
    return {{{std::make_shared<LanesNativeCode>(enter), 0}}, is_last};
}

TEST(BurstNative, RunsFromTheBeginning) {
    LanesDevice device(4, 2, 1);
    Process process = make_process();
    Burst burst = make(process, "deep", 30);
    burst.native = late(true).parts;
    entered = 0;
    auto outcome = run(device, {&burst, 1});
    ASSERT_TRUE(outcome.ok()) << outcome.error().to_string();
    EXPECT_EQ(outcome->parts[0].words, on_cpu(burst));
    EXPECT_GT(entered, 30u);
    for (const LanesDevice::Launch& launch : device.launched) EXPECT_TRUE(launch.kind.is_native);
}

// Processes that run go on with it; what has come is asked for until there is no more.
TEST(BurstNative, TakesOverWhereItComesLate) {
    LanesDevice device(4, 2, 1);
    device.set_memory(16 << 20);
    Process process = make_process();
    std::vector<Burst> parts{make(process, "long", 8), make(process, "long", 8)};
    u32 asked = 0, entered_before = 0;
    parts[0].tier = parts[1].tier = device::Tier::early;
    parts[1].late_native = [&](const device::Activity&) {
        asked++;
        if (asked < 3) return Burst::Late{};
        Burst::Late more = late(asked == 4);
        // The last of it has no entries: the first goes on.
        if (more.is_last) more.parts[0].begin = u32(parts[1].code.size());
        entered_before = entered;
        return more;
    };
    entered = 0;
    auto outcome = run(device, parts);
    ASSERT_TRUE(outcome.ok()) << outcome.error().to_string();
    for (usize i = 0; i < parts.size(); i++)
        EXPECT_EQ(outcome->parts[i].words, on_cpu(parts[i])) << i;
    EXPECT_EQ(asked, 4u);
    EXPECT_GT(entered, entered_before + 8);
    // From then on all stages run by it, those too that are made later.
    bool is_native = false, has_moved = false;
    for (const LanesDevice::Launch& launch : device.launched) {
        EXPECT_TRUE(launch.kind.is_native || !is_native);
        is_native |= launch.kind.is_native;
        for (const BurstPart& part : launch.parts) {
            EXPECT_EQ(part.native.entry_at != 0, launch.kind.is_native);
            has_moved |= is_native && part.moved;
        }
    }
    EXPECT_TRUE(is_native);
    EXPECT_TRUE(has_moved);
}

// Launches of processes that neither end nor wait park for it.
TEST(BurstNative, InterruptsThoseThatRun) {
    LanesDevice device(4, 2, 1);
    Process process = make_process();
    Burst burst = make(process, "long", 8);
    burst.tier = device::Tier::early;
    burst.late_native = [](const device::Activity&) { return late(true); };
    entered = 0;
    auto outcome = run(device, {&burst, 1});
    ASSERT_TRUE(outcome.ok()) << outcome.error().to_string();
    EXPECT_EQ(outcome->parts[0].words, on_cpu(burst));
    EXPECT_EQ(device.launched.size(), 2u);
    EXPECT_FALSE(outcome->has_outgrown);
    EXPECT_GT(entered, 8u);
}

// ---- the host's part -----------------------------------------------------------------

// Calls a function of the host before its memory has grown and behind that. What the host writes
// where the guest writes nothing is gone when the next process begins.
constexpr char asking[] = R"((module
  (import "env" "ask" (func $ask (param i32) (result i32)))
  (memory (export "memory") 1 60)
  (func (export "run") (param $n i32) (result i32 i32 i32) (local $at i32)
    (local.set $at (i32.const 1000))
    (i32.store (local.get $at) (i32.add (local.get $n) (i32.const 7)))
    (call $ask (local.get $at))
    (i32.load (local.get $at))
    (drop (memory.grow (i32.mul (i32.const 4) (i32.rem_u (local.get $n) (i32.const 15)))))
    (local.set $at (i32.sub (i32.shl (memory.size) (i32.const 16)) (i32.const 8)))
    (i32.store (local.get $at) (local.get $n))
    (if (result i32) (i32.gt_u (memory.size) (i32.const 4))
      (then (i32.load (i32.const 131072))) (else (i32.const 0)))
    (i32.add (i32.add (call $ask (local.get $at)) (i32.load (local.get $at)))))))";

TEST_P(Bursts, HostAnswersEachRequestOnce) {
    auto module = module_from(asking);
    ASSERT_TRUE(module.ok());
    const engine::Program program{*module};
    // Not all lanes of warps of 32 have one.
    const u32 processes = GetParam().lanes == 4 ? 64 : 40;
    std::map<u32, u32> calls;
    engine::HostFunction ask{"env", "ask", {{wasm::ValType::i32}, {wasm::ValType::i32}}, {}};
    ask.call = [&](engine::HostCall& call) -> Result<std::vector<Value>> {
        calls[call.process()]++;
        const u32 at = call.arguments()[0].bits.word[0];
        u32 word = 0;
        std::span<u8> bytes(reinterpret_cast<u8*>(&word), sizeof word);
        TRY(call.read_memory(at, bytes));
        Value answer = call.arguments()[0];
        answer.bits.word[0] = word * 3;
        word += 1000;
        TRY(call.write_memory(at, bytes));
        if (call.memory_size() > u64{4} << page_bits) TRY(call.write_memory(131072, bytes));
        return std::vector<Value>{answer};
    };
    device_.set_memory(little * (GetParam().lanes == 4 ? 1 : 8));
    engine::Run wanted;
    wanted.function = "run";
    wanted.arguments = {"{}"};
    wanted.many.processes = processes;
    wanted.limits.stack_slots = 1024;
    wanted.limits.memory_bytes = 60 << page_bits;
    wanted.limits.system_bytes = 4 << 20;
    wanted.layout = GetParam().layout;
    wanted.functions = {ask};
    const engine::Job job{program, wanted};
    auto report = engine::run_burst(device_, {&job, 1}, {});
    ASSERT_TRUE(report.ok()) << report.error().to_string();
    EXPECT_TRUE(report->outcome().has_outgrown);
    for (u32 i = 0; i < processes; i++) {
        EXPECT_EQ(calls[i], 2u) << i;
        const std::string expected = std::to_string((i + 7) * 3) + " " + std::to_string(i + 1007) +
                                     " " + std::to_string(i * 3 + i + 1000);
        EXPECT_EQ(to_string(report->of(i)), expected) << i;
    }
}

// Those that trap are shown as they are then, until enough have been seen.
TEST_P(Bursts, HostLooksAtWhatTraps) {
    Process process = make_process();
    Burst burst = make_burst(process, "trap", 200);
    burst.words[burst.thread + thread_is_looked_at] = 1;
    std::vector<u32> seen;
    burst.look = [&](device::WaitingProcess& waiting, u32 id) -> Result<bool> {
        u32 number = ~0u;
        TRY(waiting.read_bytes(16, {reinterpret_cast<u8*>(&number), sizeof number}));
        EXPECT_EQ(waiting.id(), id);
        EXPECT_EQ(number, id);
        seen.push_back(id);
        return seen.size() < 3;
    };
    auto outcome = run(device_, {&burst, 1});
    ASSERT_TRUE(outcome.ok()) << outcome.error().to_string();
    EXPECT_EQ(outcome->parts[0].words, on_cpu(burst));
    EXPECT_EQ(std::set<u32>(seen.begin(), seen.end()).size(), seen.size());
    EXPECT_THAT(seen, Each(testing::Truly([](u32 id) { return id % 2 == 0; })));
    // Then processes that begin end by themselves: those that had begun are shown.
    EXPECT_GE(seen.size(), 3u);
    EXPECT_LE(seen.size(), device_.info().lanes);
}

TEST_P(Bursts, HostSeesStacksOfThoseThatRun) {
    Process process = make_process();
    Burst burst = make_burst(process, "long", GetParam().lanes == 4 ? 128 : 64);
    u32 looks = 0;
    std::set<u32> positions;
    burst.sample = [&](device::ProcessMemory& running, u32 times) -> Result<void> {
        u32 state = 0, position = 0;
        TRY(running.read_words(burst.thread + thread_state, {&state, 1}));
        TRY(running.read_words(burst.thread + thread_pc, {&position, 1}));
        EXPECT_EQ(ThreadState(state), ThreadState::ready);
        EXPECT_EQ(times, 1u);  // there are no more than are looked at
        positions.insert(position);
        looks++;
        return {};
    };
    auto outcome = run(device_, {&burst, 1});
    ASSERT_TRUE(outcome.ok()) << outcome.error().to_string();
    EXPECT_EQ(outcome->parts[0].words, on_cpu(burst));
    EXPECT_GT(looks, 0u);
    EXPECT_FALSE(positions.contains(0));
}

// ---- ends ----------------------------------------------------------------------------

// Once somebody has enough, those that have begun go on to their end, and no others begin.
TEST_P(Bursts, EndWhereSomebodyHasEnough) {
    Process process = make_process();
    Burst burst = make_burst(process, "long", 20 * device_.info().lanes);
    burst.tier = device::Tier::early;  // asks after the first poll
    RunControl control;
    u64 left = 0;
    control.is_enough = [&](u64 not_begun) {
        left = not_begun;
        return true;
    };
    auto outcome = run(device_, {&burst, 1}, control);
    ASSERT_TRUE(outcome.ok()) << outcome.error().to_string();
    const std::vector<u32>& words = outcome->parts[0].words;
    const u64 begun = words.size() / outcome->parts[0].stride;
    EXPECT_EQ(begun + left, burst.processes);
    EXPECT_GT(left, 0u);
    const std::vector<u32> expected = on_cpu(burst);
    EXPECT_TRUE(std::equal(words.begin(), words.end(), expected.begin()));
}

TEST_P(Bursts, EndByAStopWhereverTheyAre) {
    Process process = make_process();
    device_.set_memory(little * (GetParam().lanes == 4 ? 1 : 8));
    const Burst burst = make_burst(process, "long", 8 * device_.info().lanes);
    std::atomic<bool> stop = false;
    RunControl control;
    control.stop = &stop;
    u64 ended = 0;
    control.progress = [&](u64 now) {
        EXPECT_LE(ended, now);
        ended = now;
        if (device_.launched.size() > 1) stop = true;
    };
    auto outcome = run(device_, {&burst, 1}, control);
    ASSERT_TRUE(outcome.ok()) << outcome.error().to_string();
    EXPECT_TRUE(outcome->stop_seconds);
    u32 stopped = 0, finished = 0;
    for (u32 i = 0; i < burst.processes; i++) {
        const ThreadState state{outcome->parts[0].of(i)[result_state]};
        stopped += state == ThreadState::ready;
        finished += state == ThreadState::finished;
    }
    EXPECT_EQ(stopped + finished, burst.processes);
    EXPECT_GE(finished, ended);
    EXPECT_GT(stopped, 0u);
}

// ---- by the code for NVIDIA GPUs -----------------------------------------------------

class CudaBursts : public LanesCudaTest, public testing::WithParamInterface<Layout> {};

TEST_P(CudaBursts, GoOnInLargerSlots) {
    Process process = make_process(1 << 17);
    Burst burst = make(process, "deep", 200);
    burst.layout = GetParam();
    auto outcome = device_->run_burst({&burst, 1}, {});
    ASSERT_TRUE(outcome.ok()) << outcome.error().to_string();
    EXPECT_EQ(outcome->parts[0].words, on_cpu(burst));
    EXPECT_TRUE(outcome->has_outgrown);
    EXPECT_EQ(device_->usage().bytes, 0u);
    EXPECT_EQ(device_->usage().launches, outcome->launches);
    EXPECT_EQ(device_->kernel_counts().loaded, 2u);  // one for each kind of stack
}

TEST_P(CudaBursts, GoOnWithMachineCodeThatComesLate) {
    Process process = make_process(1 << 17);
    Burst burst = make(process, "deep", 200);
    burst.layout = GetParam();
    u32 asked = 0;
    device::Account account;
    burst.late_native = [&](const device::Activity&) {
        asked++;
        Burst::Late late{{}, asked == 2};
        if (late.is_last)
            late.parts.push_back(
                {std::make_shared<device::CudaNativeCode>(lanes_driver(), account), 0});
        return late;
    };
    auto outcome = device_->run_burst({&burst, 1}, {});
    ASSERT_TRUE(outcome.ok()) << outcome.error().to_string();
    EXPECT_EQ(outcome->parts[0].words, on_cpu(burst));
    EXPECT_EQ(asked, 2u);
    EXPECT_EQ(device_->usage().bytes, 0u);
}

INSTANTIATE_TEST_SUITE_P(Layouts, CudaBursts, testing::Values(Layout::linear, Layout::interleaved),
                         [](const auto& info) {
                             return info.param == Layout::linear ? "Linear" : "Interleaved";
                         });

}  // namespace
}  // namespace gpurun::test
