// The resident machine on warps of fibers: its scheduler, processes, pipes and threads do what they
// do on the CPU, in whatever order lanes and warps take turns; and what was taken is given back.
#include "engine/resident.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "lanes_device.h"
#include "text/assemble.h"

namespace gpurun::test {
namespace {

using engine::Resident;
using Modules = std::map<std::string, std::shared_ptr<const wasm::Module>>;

// What one run of a program and its children came to.
struct Came {
    std::string output, ending;
    u64 launches = 0;
};

engine::Run small_machine() {
    engine::Run run;
    run.limits.system_bytes = 24 << 20;
    run.machine.memory_bytes = 96 << 20;
    run.machine.processes = 64;
    return run;
}

std::string describe(const engine::ProcessEnding& ending) {
    if (ending.refusal) return std::string("refused: ") + wasi::to_string(*ending.refusal);
    const char* kinds[] = {"exited", "trapped", "killed", "out of fuel"};
    return std::string(kinds[u32(ending.ending)]) + " " + std::to_string(ending.code);
}

// The first of the names is run with the arguments.
Result<Came> run(device::Device& device, const Modules& modules, const std::string& name,
                 std::vector<std::string> arguments, device::Tier tier = device::Tier::interp) {
    std::unique_ptr<Resident> machine = TRY(Resident::make(device, small_machine()));
    std::map<std::string, u32> programs;
    engine::Run run;
    run.tier = tier;
    for (const auto& [key, module] : modules)
        programs[key] = TRY(machine->load({{module, key}, run}));
    Came came;
    const u32 output = TRY(machine->open_output(
        [&](std::string_view bytes) -> Result<bool> {
            came.output += bytes;
            return true;
        },
        Resident::Use::always));
    run.arguments = std::move(arguments);
    run.system.environment = {"NAME=value"};
    const u32 request = TRY(machine->spawn(programs[name], run, {std::nullopt, output, output}));
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(120);
    std::optional<engine::ProcessEnding> ending = TRY(machine->next_ending(limit));
    if (!ending) return Error{"it does not end; so far: " + came.output};
    if (ending->request != request) return Error{"another's ending"};
    came.ending = describe(*ending);
    if (!TRY(machine->wait_idle(limit))) return Error{"some of its processes do not end"};
    came.launches = machine->stats().launches;
    TRY(machine->stop());
    return came;
}

std::shared_ptr<const wasm::Module> assembled(const char* wat) {
    auto text = text::assemble(wat, "test.wat");
    EXPECT_TRUE(text.ok()) << text.error().to_string();
    auto module = wasm::load(std::move(text->bytes));
    EXPECT_TRUE(module.ok()) << module.error().to_string();
    return *module;
}

// Null: it was not built.
std::shared_ptr<const wasm::Module> guest(const std::string& name) {
    const char* source = std::getenv("GPURUN_SOURCE");
    std::ifstream file(std::string(source ? source : ".") + "/build/guests/" + name + ".wasm",
                       std::ios::binary);
    if (!file) return nullptr;
    auto module = wasm::load(wasm::Bytes(std::istreambuf_iterator<char>(file), {}));
    EXPECT_TRUE(module.ok());
    return *module;
}

struct Shape {
    u32 lanes, warps;
    u64 seed;
};
const Shape shapes[] = {{4, 3, 1}, {4, 4, 2}, {4, 5, 3}, {32, 3, 4}, {32, 4, 5}};

void expect_same(const Modules& modules, const std::string& name,
                 const std::vector<std::string>& arguments,
                 device::Tier tier = device::Tier::interp) {
    SCOPED_TRACE(testing::Message()
                 << name << " " << testing::PrintToString(arguments) << ", tier " << u32(tier));
    auto cpu = device::open_device("cpu");
    ASSERT_TRUE(cpu.ok());
    auto expected = run(**cpu, modules, name, arguments);
    ASSERT_TRUE(expected.ok()) << expected.error().to_string();
    for (const Shape& shape : shapes) {
        SCOPED_TRACE(testing::Message()
                     << shape.lanes << " lanes, " << shape.warps << " warps, seed " << shape.seed);
        LanesDevice device(shape.lanes, shape.warps, shape.seed);
        auto found = run(device, modules, name, arguments, tier);
        ASSERT_TRUE(found.ok()) << found.error().to_string();
        EXPECT_EQ(found->output, expected->output);
        EXPECT_EQ(found->ending, expected->ending);
    }
}

// Five children at once, each with a number of its own; the sum of what they exit with.
constexpr const char* parent = R"(
    (import "gpu" "spawn" (func $spawn (param i32 i32 i32 i32 i32 i32 i32 i32 i32) (result i32)))
    (import "gpu" "wait" (func $wait (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
    (memory (export "memory") 1)
    (data (i32.const 0) "child\00") (data (i32.const 16) "child\000\00")
    (func (export "_start") (local $i i32) (local $sum i32)
      (loop $next
        (i32.store8 (i32.const 22) (i32.add (i32.const 48) (local.get $i)))
        (if (call $spawn (i32.const 0) (i32.const 5) (i32.const 16) (i32.const 8) (i32.const 0)
                         (i32.const 0) (i32.const 0) (i32.const -1) (i32.const 64))
          (then (call $exit (i32.const 99))))
        (br_if $next (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1)))
                               (i32.const 5))))
      (loop $next
        (if (call $wait (i32.const -1) (i32.const 0) (i32.const 64) (i32.const 72))
          (then (call $exit (i32.const 98))))
        (local.set $sum (i32.add (local.get $sum) (i32.load (i32.const 76))))
        (br_if $next (local.tee $i (i32.sub (local.get $i) (i32.const 1)))))
      (call $exit (local.get $sum))))";
constexpr const char* child = R"(
    (import "wasi_snapshot_preview1" "args_get" (func $args (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
    (memory (export "memory") 1)
    (func (export "_start") (local $n i32) (local $i i32)
      (drop (call $args (i32.const 0) (i32.const 64)))
      (local.set $n (i32.sub (i32.load8_u (i32.load (i32.const 4))) (i32.const 48)))
      (loop $work (br_if $work (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1)))
                                         (i32.mul (local.get $n) (i32.const 100)))))
      (call $exit (i32.mul (local.get $n) (i32.const 3)))))";
TEST(ResidentOnLanes, StartsAndWaits) {
    expect_same({{"parent", assembled(parent)}, {"child", assembled(child)}}, "parent", {});
}

// Four threads that add to one word; the first waits until all have said that they are done.
constexpr const char* threads = R"(
    (import "wasi" "thread-spawn" (func $spawn (param i32) (result i32)))
    (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
    (import "env" "memory" (memory 1 1 shared))
    (func (export "wasi_thread_start") (param i32 i32)
      (loop $next
        (drop (i32.atomic.rmw.add (i32.const 0) (i32.const 1)))
        (br_if $next (local.tee 1 (i32.sub (local.get 1) (i32.const 1)))))
      (drop (i32.atomic.rmw.add (i32.const 4) (i32.const 1)))
      (drop (memory.atomic.notify (i32.const 4) (i32.const 1))))
    (func (export "_start") (local $i i32) (local $seen i32)
      (loop $next
        (if (i32.le_s (call $spawn (i32.add (i32.const 7) (local.get $i))) (i32.const 0))
          (then (call $exit (i32.const 99))))
        (br_if $next (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1)))
                               (i32.const 4))))
      (loop $wait
        (local.set $seen (i32.atomic.load (i32.const 4)))
        (if (i32.ne (local.get $seen) (i32.const 4))
          (then
            (drop (memory.atomic.wait32 (i32.const 4) (local.get $seen) (i64.const -1)))
            (br $wait))))
      (call $exit (i32.load (i32.const 0)))))";
// Two thousand bytes, by a pipe, from a thread that sleeps first to one that waits for them.
constexpr const char* pipe = R"(
    (import "wasi" "thread-spawn" (func $spawn (param i32) (result i32)))
    (import "gpu" "pipe" (func $pipe (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "poll_oneoff"
      (func $poll (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
    (import "env" "memory" (memory 1 1 shared))
    (func $must (param i32) (if (local.get 0) (then (call $exit (local.get 0)))))
    (func (export "wasi_thread_start") (param i32 i32)
      (memory.fill (i32.const 4096) (i32.const 7) (i32.const 2000))
      (i32.store (i32.const 116) (i32.const 1))         ;; the monotonic clock,
      (i64.store (i32.const 124) (i64.const 1000000))   ;; in a millisecond
      (call $must (call $poll (i32.const 100) (i32.const 200) (i32.const 1) (i32.const 300)))
      (i32.store (i32.const 40) (i32.const 4096))
      (i32.store (i32.const 44) (i32.const 2000))
      (call $must (call $write (i32.load (i32.const 4)) (i32.const 40) (i32.const 1)
                               (i32.const 48))))
    (func (export "_start") (local $i i32) (local $sum i32)
      (call $must (call $pipe (i32.const 0) (i32.const 4)))
      (drop (call $spawn (i32.const 7)))
      (i32.store (i32.const 20) (i32.const 8192))
      (i32.store (i32.const 24) (i32.const 2000))
      (call $must (call $read (i32.load (i32.const 0)) (i32.const 20) (i32.const 1)
                              (i32.const 28)))
      (loop $next
        (local.set $sum (i32.add (local.get $sum)
                                 (i32.load8_u (i32.add (i32.const 8192) (local.get $i)))))
        (br_if $next (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1)))
                               (i32.load (i32.const 28)))))
      (call $exit (local.get $sum))))";

// As many as there is room for are killed at once, twice: all that they had is there again.
TEST(ResidentOnLanes, ManyEndAtOnce) {
    constexpr u32 most = 63;  // small_machine's processes; number 0 is not used
    const auto spins = assembled(R"((module (memory (export "memory") 1)
                                      (func (export "_start") (loop br 0))))");
    for (const Shape& shape : shapes) {
        SCOPED_TRACE(testing::Message()
                     << shape.lanes << " lanes, " << shape.warps << " warps, seed " << shape.seed);
        LanesDevice device(shape.lanes, shape.warps, shape.seed);
        auto machine = Resident::make(device, small_machine());
        ASSERT_TRUE(machine.ok()) << machine.error().to_string();
        auto program = (*machine)->load({{spins, "spins"}, {}});
        ASSERT_TRUE(program.ok()) << program.error().to_string();
        const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(120);
        std::map<std::string, u32> endings;
        auto take = [&](u32 count) {
            for (u32 i = 0; i < count; i++) {
                auto ending = (*machine)->next_ending(limit);
                ASSERT_TRUE(ending.ok() && *ending);
                endings[describe(**ending)]++;
            }
        };
        for (u32 turn = 0; turn < 2; turn++) {
            u32 last = 0;
            for (u32 i = 0; i <= most; i++) {
                auto request = (*machine)->spawn(*program, {});
                ASSERT_TRUE(request.ok()) << request.error().to_string();
                last = *request;
            }
            take(1);  // of the one that there is no room for
            ASSERT_FALSE((*machine)->pid_of(last));
            ASSERT_TRUE((*machine)->kill(0, 9).ok());
            take(most);
        }
        auto is_idle = (*machine)->wait_idle(limit);
        EXPECT_TRUE(is_idle.ok() && *is_idle);
        const std::map<std::string, u32> expected = {{"killed 9", 2 * most}, {"refused: again", 2}};
        EXPECT_EQ(endings, expected);
        EXPECT_TRUE((*machine)->stop().ok());
    }
}

// Traps in a frame below the first, by which its stack is more than what a lane begins with.
constexpr const char* traps = R"(
    (memory (export "memory") 1)
    (global $g (mut i32) (i32.const 5))
    (func $deep (param $n i32) (param $wide i64)
      (i32.store (local.get $n) (i32.const 0x1234))
      (if (i32.eqz (local.get $n)) (then (unreachable)))
      (global.set $g (local.get $n))
      (call $deep (i32.sub (local.get $n) (i32.const 1)) (i64.const -7)))
    (func (export "_start") (call $deep (i32.const 9) (i64.const 3))))";
std::string contents(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

// What the host sees of processes that trapped, some at once: the same as on the CPU.
TEST(ResidentOnLanes, ShowsTraps) {
    const std::filesystem::path folder =
        std::filesystem::path(testing::TempDir()) / "gpurun-lanes-dumps";
    constexpr u32 processes = 7;
    auto dump = [&](device::Device& device, const std::string& name) {
        engine::Run options = small_machine();
        options.dump = folder / name;
        auto machine = Resident::make(device, options);
        ASSERT_TRUE(machine.ok()) << machine.error().to_string();
        auto program = (*machine)->load({{assembled(traps), "traps"}, {}});
        ASSERT_TRUE(program.ok()) << program.error().to_string();
        for (u32 i = 0; i < processes; i++) ASSERT_TRUE((*machine)->spawn(*program, {}).ok());
        const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(120);
        for (u32 i = 0; i < processes; i++) {
            auto ending = (*machine)->next_ending(limit);
            ASSERT_TRUE(ending.ok() && *ending);
            EXPECT_EQ((*ending)->ending, Ending::trapped);
        }
        EXPECT_TRUE((*machine)->stop().ok());
        EXPECT_EQ((*machine)->dumps().written, processes);
        EXPECT_FALSE((*machine)->dumps().problem);
    };
    auto cpu = device::open_device("cpu");
    dump(**cpu, "cpu");
    for (const Shape& shape : shapes) {
        SCOPED_TRACE(testing::Message()
                     << shape.lanes << " lanes, " << shape.warps << " warps, seed " << shape.seed);
        LanesDevice device(shape.lanes, shape.warps, shape.seed);
        const std::string name = "lanes" + std::to_string(shape.seed);
        dump(device, name);
        for (u32 i = 0; i < processes; i++)
            for (const char* file : {"state", "memory.0"}) {
                const std::string number = std::to_string(i);
                EXPECT_EQ(contents(folder / name / number / file),
                          contents(folder / "cpu" / number / file));
            }
    }
    EXPECT_NE(contents(folder / "cpu/0/state").find("ending trap: unreachable"), std::string::npos);
    std::filesystem::remove_all(folder);
}

// It parks for looks at stacks, and those that ran are seen where they were.
TEST(ResidentOnLanes, IsProfiled) {
    const auto spins = assembled(R"((module
        (func $spin (loop br 0))
        (func (export "_start") (call $spin))))");
    for (const Shape& shape : shapes) {
        LanesDevice device(shape.lanes, shape.warps, shape.seed);
        engine::Run options = small_machine();
        options.is_profiled = true;
        auto machine = Resident::make(device, options);
        ASSERT_TRUE(machine.ok()) << machine.error().to_string();
        auto program = (*machine)->load({{spins, "spins"}, {}});
        ASSERT_TRUE(program.ok()) << program.error().to_string();
        for (u32 i = 0; i < 9; i++) ASSERT_TRUE((*machine)->spawn(*program, {}).ok());
        const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
        std::vector<engine::StackSample> samples;
        while (samples.empty() && std::chrono::steady_clock::now() < limit)
            samples = (*machine)->samples();
        ASSERT_EQ(samples.size(), 1u);
        EXPECT_EQ(samples[0].functions, (std::vector<std::string>{"_start", "spin"}));
        EXPECT_TRUE((*machine)->stop().ok());
    }
}

TEST(ResidentOnLanes, HasThreads) { expect_same({{"threads", assembled(threads)}}, "threads", {}); }

// Lanes that go on with a call that blocked, and others that are interpreted, meet again.
TEST(ResidentOnLanes, GoesOnWithCallsBesideMachineCode) {
    for (device::Tier tier : {device::Tier::native, device::Tier::alternate}) {
        expect_same({{"parent", assembled(parent)}, {"child", assembled(child)}}, "parent", {},
                    tier);
        expect_same({{"threads", assembled(threads)}}, "threads", {}, tier);
        expect_same({{"pipe", assembled(pipe)}}, "pipe", {}, tier);
    }
}

// It parks in the midst of everything, and is launched again.
TEST(ResidentOnLanes, GoesOnAfterItParked) {
    Modules modules = {{"parent", assembled(parent)},
                       {"child", assembled(child)},
                       {"threads", assembled(threads)}};
    for (const char* name : {"parent", "threads"})
        for (u64 ns : {30'000, 200'000}) {
            SCOPED_TRACE(testing::Message() << name << ", parked every " << ns << " ns");
            auto cpu = device::open_device("cpu");
            auto expected = run(**cpu, modules, name, {});
            ASSERT_TRUE(expected.ok()) << expected.error().to_string();
            LanesDevice device(4, 4, ns);
            device.park_every(ns);
            auto found = run(device, modules, name, {});
            ASSERT_TRUE(found.ok()) << found.error().to_string();
            EXPECT_EQ(found->ending, expected->ending);
            if (ns < 100'000) EXPECT_GT(found->launches, 1u);  // it may have ended before
        }
}

class Guests : public testing::TestWithParam<std::vector<std::string>> {};

// The program's name, then its arguments.
TEST_P(Guests, DoAsOnTheCpu) {
    std::vector<std::string> arguments = GetParam();
    const std::string name = arguments.front();
    arguments.erase(arguments.begin());
    auto module = guest(name);
    if (module == nullptr) GTEST_SKIP() << name << " was not built";
    expect_same({{name, module}}, name, arguments);
}

const std::vector<std::string> cases[] = {
    {"c_processes", "exits"}, {"c_processes", "waits"},       {"c_processes", "family"},
    {"c_processes", "pipes"}, {"c_processes", "descriptors"}, {"c_processes", "polls"},

    {"c_processes", "kills"}, {"c_processes", "faults"},      {"c_processes", "arguments"},
    {"c_wasix", "spawns"},    {"c_wasix", "spawn2"},          {"c_wasix", "spawn3"},
    {"c_wasix", "pipes"},     {"c_wasix", "joins"},           {"tree", "20"},
    {"jobs", "30", "5"},
};
INSTANTIATE_TEST_SUITE_P(Programs, Guests, testing::ValuesIn(cases), [](const auto& info) {
    std::string name;
    for (const std::string& word : info.param) name += (name.empty() ? "" : "_") + word;
    return name;
});

}  // namespace
}  // namespace gpurun::test
