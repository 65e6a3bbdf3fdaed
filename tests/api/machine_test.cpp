// Resident machines through gpurun.hpp, and so gpurun.h.
#include <gpurun/gpurun.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

#include "common.h"

namespace gpurun::api {
namespace {

using std::chrono::steady_clock;
using testing::AllOf;
using testing::HasSubstr;

constexpr const char* forever = R"((module (func (export "_start") (loop $l (br $l)))))";
constexpr const char* divides = R"(
  (module
    (func $divide (param i32) (result i32) (i32.div_u (i32.const 1) (local.get 0)))
    (func (export "_start") (drop (call $divide (i32.const 0))))))";

// Starts the program "child" with what it has itself, waits for it, and ends as it did.
constexpr const char* parent = R"(
  (module
    (import "gpu" "spawn" (func $spawn (param i32 i32 i32 i32 i32 i32 i32 i32 i32) (result i32)))
    (import "gpu" "wait" (func $wait (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
    (memory (export "memory") 1)
    (data (i32.const 0) "child\00x\00")
    (func (export "_start")
      (if (call $spawn (i32.const 0) (i32.const 5) (i32.const 0) (i32.const 8)
            (i32.const 0) (i32.const 0) (i32.const 0) (i32.const -1) (i32.const 64))
        (then (call $exit (i32.const 99))))
      (drop (call $wait (i32.const -1) (i32.const 0) (i32.const 64) (i32.const 72)))
      (call $exit (i32.load (i32.const 76))))))";

// Writes "changed" to the file "out" of its first directory.
constexpr const char* writer = R"(
  (module
    (import "wasi_snapshot_preview1" "path_open"
      (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
    (memory (export "memory") 1)
    (data (i32.const 0) "outchanged")
    (func (export "_start")
      (call_if (call $open (i32.const 3) (i32.const 0) (i32.const 0) (i32.const 3) (i32.const 1)
        (i64.const 64) (i64.const 0) (i32.const 0) (i32.const 32)))
      (i32.store (i32.const 16) (i32.const 3))
      (i32.store (i32.const 20) (i32.const 7))
      (call_if (call $write (i32.load (i32.const 32)) (i32.const 16) (i32.const 1) (i32.const 40))))
    (func $call_if (param i32) (if (local.get 0) (then (call $exit (local.get 0)))))))";

// Reads a byte in every 64 KiB of the file "large" of its first directory, the last block first,
// and exits with their sum.
constexpr const char* reader = R"(
  (module
    (import "wasi_snapshot_preview1" "path_open"
      (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_pread"
      (func $read (param i32 i32 i32 i64 i32) (result i32)))
    (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
    (memory (export "memory") 1)
    (data (i32.const 0) "large")
    (func (export "_start") (local $at i64) (local $sum i32)
      (call_if (call $open (i32.const 3) (i32.const 0) (i32.const 0) (i32.const 5) (i32.const 0)
        (i64.const 6) (i64.const 0) (i32.const 0) (i32.const 32)))
      (i32.store (i32.const 16) (i32.const 64))
      (i32.store (i32.const 20) (i32.const 1))
      (local.set $at (i64.const 0x2000000))
      (loop $again
        (local.set $at (i64.sub (local.get $at) (i64.const 0x10000)))
        (call_if (call $read (i32.load (i32.const 32)) (i32.const 16) (i32.const 1)
          (local.get $at) (i32.const 40)))
        (local.set $sum (i32.add (local.get $sum) (i32.load8_u (i32.const 64))))
        (br_if $again (i64.ne (local.get $at) (i64.const 0))))
      (call $exit (local.get $sum)))
    (func $call_if (param i32)
      (if (local.get 0) (then (call $exit (i32.add (i32.const 1000) (local.get 0))))))))";

constexpr uint32_t large_sum = 511;
void make_large_file(const std::filesystem::path& folder) {
    std::filesystem::create_directory(folder);
    std::ofstream file(folder / "large", std::ios::binary);
    for (int i = 0; i < 512; i++) {
        file.seekp(i * 0x10000);
        file.put(char(i % 3));
    }
    file.seekp(0x2000000 - 1);
    file.put('\0');
}

std::string with_calls(std::string source) {
    for (size_t at; (at = source.find("(call_if ")) != source.npos;)
        source.replace(at, 9, "(call $call_if ");
    return source;
}

TEST(Machine, RunsProcessesAndTellsHowTheyEnded) {
    Machine machine(device());
    const uint32_t program = machine.load("copier", module(copier));
    const uint32_t process =
        machine.spawn(program, Config().argument("a").argument("b").input("some input"));
    auto ended = machine.next();
    ASSERT_TRUE(ended);
    EXPECT_EQ(ended->process, process);
    const Process it = ended->result[0];
    EXPECT_EQ(it.ending(), GPURUN_EXITED);
    EXPECT_EQ(it.exit_code(), 43u);
    EXPECT_EQ(it.output(), "some input");
    EXPECT_EQ(it.error(), "err");
    EXPECT_EQ(it.message(), "exited with 43");
    EXPECT_TRUE(machine.wait_idle());
    EXPECT_EQ(machine.pid(process), 0u);
    EXPECT_FALSE(machine.next(0));
    machine.close();
    EXPECT_THAT(error_of([&] { machine.spawn(program, Config()); }), HasSubstr("stopped"));
}

TEST(Machine, HasTheDeviceToItself) {
    {
        Machine machine(device());
        EXPECT_THAT(error_of([] { Machine second(device()); }), HasSubstr("has a machine already"));
        EXPECT_THAT(error_of([] { run(device(), module(divides), Config()); }),
                    HasSubstr("a machine has the device"));
    }
    EXPECT_EQ(run(device(), module(divides), Config())[0].ending(), GPURUN_TRAPPED);
}

TEST(Machine, MoreInputThanAPipeHoldsArrivesInOrder) {
    std::string input;
    for (int i = 0; input.size() < 300'000; i++) input += std::to_string(i) + "\n";
    Machine machine(device());
    const uint32_t program = machine.load("copier", module(copier));
    machine.spawn(program, Config().input(input));
    auto ended = machine.next();
    ASSERT_TRUE(ended);
    EXPECT_TRUE(ended->result[0].output() == input);
}

TEST(Machine, CallbacksBringInputAndTakeOutput) {
    std::string text = "one two three", taken;
    size_t at = 0;
    uint32_t number = 0;
    Config config;
    config.input_callback([&](size_t most) {
        std::string piece = text.substr(at, std::min<size_t>(most, 4));
        at += piece.size();
        return piece;
    });
    config.output_callback([&](uint32_t process, int stream, std::string_view bytes) {
        number = process;
        if (stream == 1) taken += bytes;
        return true;
    });
    Machine machine(device());
    machine.spawn(machine.load("copier", module(copier)), config);
    auto ended = machine.next();
    ASSERT_TRUE(ended);
    EXPECT_EQ(taken, text);
    EXPECT_EQ(number, ended->process);
    EXPECT_EQ(ended->result[0].output(), "");
}

// More streams than a machine has at once: those of processes that ended are used again.
TEST(Machine, ManyProcessesEachWithStreamsOfItsOwn) {
    constexpr uint32_t count = 2000, at_once = 100;
    Machine machine(device());
    const uint32_t program = machine.load("copier", module(copier));
    std::map<uint32_t, uint32_t> numbers;
    uint32_t begun = 0, ended = 0;
    while (ended < count) {
        for (; begun < count && begun - ended < at_once; begun++)
            numbers[machine.spawn(program, Config().input(std::to_string(begun)))] = begun;
        auto next = machine.next(20);
        ASSERT_TRUE(next) << ended;
        ASSERT_EQ(next->result[0].ending(), GPURUN_EXITED) << next->result[0].message();
        ASSERT_EQ(next->result[0].output(), std::to_string(numbers.at(next->process)));
        numbers.erase(next->process);
        ended++;
    }
    EXPECT_TRUE(machine.wait_idle(20));
    const gpurun_machine_stats stats = machine.stats();
    EXPECT_EQ(stats.launches, 1u);
}

size_t threads() {
    const std::filesystem::directory_iterator tasks("/proc/self/task");
    return size_t(std::distance(begin(tasks), end(tasks)));
}

size_t address_space() {  // bytes
    size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    return pages * size_t(getpagesize());
}

// A thread that brings input ends with it.
// Those that have ended are read while others write on, and their room is used again.
TEST(Machine, LargeOutputsAreWhole) {
    constexpr uint32_t numbers = 5 << 18;
    Machine machine(device());
    const uint32_t some = machine.load("some", module(counter(numbers))),
                   endless = machine.load("endless", module(counter(0)));
    machine.spawn(endless, Config());
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 2; i++) machine.spawn(some, Config());
        for (int i = 0; i < 2; i++) {
            auto ended = machine.next(60);
            ASSERT_TRUE(ended);
            EXPECT_EQ(ended->result.output_problem(), "");
            EXPECT_EQ(ended->result[0].output().size(), numbers * 4u);
            EXPECT_TRUE(counts(ended->result[0].output()));
        }
    }
    machine.close();
    auto ended = machine.next(0);
    ASSERT_TRUE(ended);
    EXPECT_EQ(ended->result.output_problem(), "");
    EXPECT_EQ(ended->result[0].ending(), GPURUN_STOPPED);
    EXPECT_GT(ended->result[0].output().size(), 0u);
    EXPECT_TRUE(counts(ended->result[0].output()));
}

TEST(Machine, CallbacksForInputLeaveNoThreads) {
    constexpr uint32_t count = 500, at_once = 10;
    std::deque<Config> configs;
    Machine machine(device());
    const uint32_t program = machine.load("copier", module(copier));
    size_t threads_before = 0, bytes_before = 0;
    std::atomic<uint32_t> calls = 0;
    uint32_t begun = 0;
    for (uint32_t ended = 0; ended < count; ended++) {
        for (; begun < count && begun - ended < at_once; begun++) {
            auto bring = [&calls, is_done = false](size_t) mutable {
                calls++;
                return std::exchange(is_done, true) ? "" : "input";
            };
            machine.spawn(program, configs.emplace_back().input_callback(bring));
        }
        auto next = machine.next(20);
        ASSERT_TRUE(next) << ended;
        ASSERT_EQ(next->result[0].output(), "input");
        if (ended != 100) continue;
        threads_before = threads();
        bytes_before = address_space();
    }
    EXPECT_GE(calls, count);
    EXPECT_LE(threads(), threads_before + at_once);
    EXPECT_LE(address_space(), bytes_before + (size_t{256} << 20));
}

// Nobody can end a callback that does not return, but there are never many whose process is gone.
TEST(Machine, CallbacksForInputThatDoNotReturnAreBounded) {
    std::atomic<bool> may_return = false;
    Config stuck;
    stuck.input_callback([&](size_t) {
        while (!may_return) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        return std::string();
    });
    Machine machine(device());
    const uint32_t program = machine.load("ends", module("(module (func (export \"_start\")))"));
    const size_t threads_before = threads();
    std::string said = "no error";
    for (int i = 0; i < 300 && said == "no error"; i++) {
        said = error_of([&] {
            machine.spawn(program, stuck);
            machine.next(20);
        });
    }
    EXPECT_THAT(said, HasSubstr("have not returned"));
    EXPECT_LE(threads(), threads_before + 100);
    may_return = true;
    // They are joined once they are done.
    for (int i = 0; i < 2000 && error_of([&] { machine.spawn(program, stuck); }) != "no error"; i++)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_TRUE(machine.next(20));
    for (int i = 0; i < 2000 && threads() > threads_before + 4; i++) {
        machine.ping();  // so that the machine's thread looks at them
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    EXPECT_LE(threads(), threads_before + 4);
}

TEST(Machine, CallbacksForOutputCannotWaitForIt) {
    Machine machine(device());
    const uint32_t program = machine.load("copier", module(copier));
    std::string ping, load, close;
    Config config;
    config.input("x").output_callback([&](uint32_t, int, std::string_view) {
        ping = error_of([&] { machine.ping(); });
        load = error_of([&] { machine.load("another", module(copier)); });
        close = error_of([&] { machine.close(); });
        return true;
    });
    machine.spawn(program, config);
    ASSERT_TRUE(machine.next(20));
    for (const std::string* said : {&ping, &load, &close})
        EXPECT_THAT(*said, HasSubstr("a callback for output cannot"));
    EXPECT_GT(machine.ping(), 0);
}

TEST(Machine, FaultsHaveAPlace) {
    Machine machine(device());
    machine.spawn(machine.load("divides", module(divides)), Config());
    auto ended = machine.next();
    ASSERT_TRUE(ended);
    EXPECT_EQ(ended->result[0].ending(), GPURUN_TRAPPED);
    EXPECT_EQ(ended->result[0].message(), "integer divide by zero");
    ASSERT_EQ(ended->result[0].frames().size(), 2u);
    EXPECT_EQ(ended->result[0].frames()[0].function, "divide");
    EXPECT_EQ(ended->result[0].frames()[1].function, "_start");
}

class Dumps : public testing::Test {
protected:
    void SetUp() override {
        std::string pattern = testing::TempDir() + "gpurun-dump-XXXXXX";
        ASSERT_TRUE(mkdtemp(pattern.data()));
        folder_ = pattern;
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }
    std::string read(const std::filesystem::path& name) const {
        std::ifstream file(folder_ / name);
        return {std::istreambuf_iterator<char>(file), {}};
    }
    // The numbers of the processes whose state is there.
    std::vector<std::string> numbers() const {
        std::vector<std::string> found;
        for (const auto& entry : std::filesystem::directory_iterator(folder_))
            if (entry.is_directory()) found.push_back(entry.path().filename());
        return found;
    }
    std::filesystem::path folder_;
};

// One that the host started has its number there, one that another started its pid. The module of
// each is beside them.
TEST_F(Dumps, AreOfParentsAndChildren) {
    Machine machine(device(), Config().dump(folder_));
    const uint32_t first = machine.load("child", module(divides)),
                   second = machine.load("parent", module(parent));
    machine.spawn(second, Config());
    auto ended = machine.next(20);
    ASSERT_TRUE(ended);
    EXPECT_EQ(ended->result[0].ending(), GPURUN_EXITED);  // it told its child's end
    const uint32_t alone = machine.spawn(first, Config());
    EXPECT_EQ(alone, 1u);
    ASSERT_TRUE(machine.next(20));
    EXPECT_TRUE(machine.wait_idle(20));
    const Result seen = machine.observe();
    EXPECT_EQ(seen.size(), 0u);
    EXPECT_EQ(seen.dump_count(), 2u);
    EXPECT_EQ(seen.fault_count(), 2u);
    EXPECT_EQ(seen.dump_problem(), "");
    ASSERT_EQ(numbers().size(), 2u);
    for (const std::string& number : numbers())
        EXPECT_THAT(read(std::filesystem::path(number) / "state"),
                    AllOf(HasSubstr("process " + number + "\n"),
                          HasSubstr("ending trap: integer divide by zero")));
    EXPECT_THAT(numbers(), testing::Contains("1"));
    EXPECT_FALSE(read("module.wasm").empty());
    // Of a program that is not the first.
    machine.spawn(machine.load("other", module(divides)), Config());
    ASSERT_TRUE(machine.next(20));
    EXPECT_THAT(read("2/state"), HasSubstr("\nmodule 2\n"));
    EXPECT_EQ(read("module.2.wasm"), read("module.wasm"));
}

TEST_F(Dumps, AreAHundredAtTheMost) {
    Machine machine(device(), Config().dump(folder_));
    const uint32_t program = machine.load("divides", module(divides));
    constexpr uint32_t count = 250;
    for (uint32_t i = 0; i < count; i++) machine.spawn(program, Config());
    for (uint32_t i = 0; i < count; i++) {
        auto ended = machine.next(60);
        ASSERT_TRUE(ended) << i;
        ASSERT_EQ(ended->result[0].ending(), GPURUN_TRAPPED);
    }
    EXPECT_EQ(machine.observe().dump_count(), 100u);
    EXPECT_EQ(machine.observe().fault_count(), count);
    EXPECT_EQ(numbers().size(), 100u);
}

// What cannot be written is told, and keeps nobody from its end.
TEST_F(Dumps, MayNotBeWritable) {
    EXPECT_THAT(error_of([] { Machine refused(device(), Config().dump("/dev/null/x")); }),
                HasSubstr("/dev/null/x"));
    std::ofstream(folder_ / "0") << "in the way";
    Machine machine(device(), Config().dump(folder_));
    const uint32_t program = machine.load("divides", module(divides));
    for (int i = 0; i < 3; i++) {
        machine.spawn(program, Config());
        auto ended = machine.next(20);
        ASSERT_TRUE(ended);
        EXPECT_EQ(ended->result[0].ending(), GPURUN_TRAPPED);
    }
    EXPECT_TRUE(machine.wait_idle(20));
    EXPECT_THAT(machine.observe().dump_problem(), HasSubstr("/0"));
    EXPECT_EQ(machine.observe().dump_count(), 0u);
    machine.close();
}

// Processes are killed and the machine is stopped while some wait for the host to look at them:
// whoever trapped first is dumped, and all end.
TEST_F(Dumps, EndWithTheMachine) {
    for (int turn = 0; turn < 5; turn++) {
        const std::filesystem::path folder = folder_ / std::to_string(turn);
        uint32_t trapped = 0;
        uint64_t faults = 0;
        Machine machine(device(), Config().dump(folder));
        const uint32_t traps = machine.load("divides", module(divides)),
                       spins = machine.load("forever", module(forever));
        for (int i = 0; i < 20; i++) machine.spawn(i % 2 ? traps : spins, Config());
        machine.kill(0, 9);
        if (turn % 2 == 0) {
            for (int i = 0; i < 20; i++) {
                auto ended = machine.next(20);
                ASSERT_TRUE(ended);
                trapped += ended->result[0].ending() == GPURUN_TRAPPED;
            }
            EXPECT_EQ(machine.observe().dump_count(), trapped);
        }
        machine.close();
        faults = machine.observe().fault_count();
        EXPECT_GE(machine.observe().dump_count(), faults);
        EXPECT_EQ(machine.observe().dump_problem(), "");
    }
}

TEST(Machine, IsProfiled) {
    Machine machine(device(), Config().profiled());
    const uint32_t spins = machine.load("forever", module(forever));
    for (int i = 0; i < 3; i++) machine.spawn(spins, Config());
    const auto end = steady_clock::now() + std::chrono::seconds(20);
    while (machine.observe().stacks().empty() && steady_clock::now() < end) usleep(1000);
    std::vector<StackSample> stacks = machine.observe().stacks();
    ASSERT_EQ(stacks.size(), 1u);
    EXPECT_GE(stacks[0].count, 1u);
    EXPECT_THAT(stacks[0].functions, testing::ElementsAre("_start"));
    // Of several programs.
    machine.load("divides", module(divides));
    EXPECT_THAT(machine.observe().stacks().at(0).functions,
                testing::ElementsAre("forever", "_start"));
    machine.close();
    EXPECT_FALSE(machine.observe().stacks().empty());
}

TEST(Machine, SignalsEndProcesses) {
    Machine machine(device());
    const uint32_t process = machine.spawn(machine.load("forever", module(forever)), Config());
    uint32_t pid = 0;
    while (pid == 0) pid = machine.pid(process);
    EXPECT_FALSE(machine.next(0.05));
    EXPECT_FALSE(machine.wait_idle(0));
    machine.kill(pid, 9);
    auto ended = machine.next();
    ASSERT_TRUE(ended);
    EXPECT_EQ(ended->result[0].ending(), GPURUN_KILLED);
    EXPECT_EQ(ended->result[0].exit_code(), 137u);
    EXPECT_EQ(ended->result[0].message(), "killed by signal 9");
    EXPECT_TRUE(machine.wait_idle());
}

TEST(Machine, FuelEndsThem) {
    Machine machine(device());
    const uint32_t program = machine.load("forever", module(forever), Config().fuel(1'000'000));
    machine.spawn(program, Config());
    machine.spawn(program, Config().fuel(1000));
    for (int i = 0; i < 2; i++) {
        auto ended = machine.next();
        ASSERT_TRUE(ended);
        EXPECT_EQ(ended->result[0].ending(), GPURUN_NO_FUEL);
    }
    const uint32_t endless = machine.load("endless", module(forever));
    EXPECT_THAT(error_of([&] { machine.spawn(endless, Config().fuel(5)); }), HasSubstr("fuel"));
}

TEST(Machine, ProcessesStartOthers) {
    Machine machine(device());
    machine.load("child", module(copier));
    const uint32_t program = machine.load("parent", module(parent));
    machine.spawn(program, Config().input("passed on"));
    auto ended = machine.next();
    ASSERT_TRUE(ended);
    EXPECT_EQ(ended->result[0].exit_code(), 42u);
    EXPECT_EQ(ended->result[0].output(), "passed on");
    EXPECT_THAT(error_of([&] { machine.load("child", module(copier)); }), HasSubstr("already"));
}

TEST(Machine, TakesSeveralPrograms) {
    const Module child = module(copier), other = module(parent);
    const Config config;
    Machine machine(device());
    const Program programs[] = {{"child", &child, &config}, {"parent", &other, &config}};
    const std::vector<uint32_t> numbers = machine.load(programs);
    ASSERT_EQ(numbers.size(), 2u);
    EXPECT_EQ(machine.stats().launches, 1u);
    machine.spawn(numbers[1], Config().input("passed on"));
    auto ended = machine.next();
    ASSERT_TRUE(ended);
    EXPECT_EQ(ended->result[0].output(), "passed on");
    EXPECT_THAT(error_of([&] { machine.load(programs); }), HasSubstr("already"));
    EXPECT_THAT(error_of([&] { machine.load({}); }), HasSubstr("the programs and places"));
}

TEST(Machine, ClosesWhateverRuns) {
    Machine machine(device());
    const uint32_t program = machine.load("forever", module(forever));
    for (int i = 0; i < 50; i++) machine.spawn(program, Config());
    EXPECT_FALSE(machine.next(0.1));
    const auto begin = steady_clock::now();
    machine.close();
    EXPECT_LT(steady_clock::now() - begin, std::chrono::seconds(2));
}

// Writes 64 KiB at a time, as often as it has arguments, and then for ever nothing.
constexpr const char* talker = R"(
  (module
    (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "args_sizes_get" (func $sizes (param i32 i32) (result i32)))
    (memory (export "memory") 2)
    (data (i32.const 16) "\00\00\01\00\00\00\01\00")
    (func (export "_start")
      (drop (call $sizes (i32.const 0) (i32.const 4)))
      (memory.fill (i32.const 65536) (i32.const 46) (i32.const 65536))
      (loop $more
        (drop (call $write (i32.const 1) (i32.const 16) (i32.const 1) (i32.const 32)))
        (i32.store (i32.const 0) (i32.sub (i32.load (i32.const 0)) (i32.const 1)))
        (br_if $more (i32.load (i32.const 0))))
      (loop $forever (br $forever))))
)";

TEST(Machine, WhatItStopsHasEndings) {
    std::atomic<uint64_t> size = 0;
    Machine machine(device(), Config());
    const uint32_t program = machine.load("talker", module(talker));
    const uint32_t silent = machine.spawn(program, Config());
    Config captured, streamed;
    for (int i = 0; i < 40; i++) captured.argument("x"), streamed.argument("x");
    const uint32_t large = machine.spawn(program, captured);
    streamed.output_callback([&](uint32_t, int, std::string_view bytes) {
        size += bytes.size();
        return true;
    });
    machine.spawn(program, streamed);
    const auto end = steady_clock::now() + std::chrono::seconds(20);
    while (size < 41 * 65536 && steady_clock::now() < end) usleep(1000);
    EXPECT_FALSE(machine.next(0.5));
    machine.close();
    std::map<uint32_t, size_t> sizes;
    for (int i = 0; i < 3; i++) {
        auto ended = machine.next(0);
        ASSERT_TRUE(ended);
        EXPECT_EQ(ended->result[0].ending(), GPURUN_STOPPED);
        EXPECT_EQ(ended->result[0].message(), "interrupted");
        EXPECT_EQ(ended->result.output_problem(), "");
        ASSERT_FALSE(ended->result[0].frames().empty());
        EXPECT_EQ(ended->result[0].frames().back().function, "_start");
        sizes[ended->process] = ended->result[0].output().size();
    }
    EXPECT_EQ(sizes[silent], 65536u);
    EXPECT_EQ(sizes[large], 41 * 65536u);
    EXPECT_THAT(error_of([&] { machine.next(0); }), HasSubstr("stopped"));
}

TEST(Machine, WritesFilesBack) {
    const auto folder =
        std::filesystem::temp_directory_path() / ("gpurun-machine-" + std::to_string(getpid()));
    std::filesystem::create_directories(folder);
    {
        Config config;
        config.directory(folder.string(), "/", true);
        Machine machine(device(), config);
        machine.spawn(machine.load("writer", module(with_calls(writer))), config);
        auto ended = machine.next();
        ASSERT_TRUE(ended);
        EXPECT_EQ(ended->result[0].exit_code(), 0u);
        EXPECT_FALSE(std::filesystem::exists(folder / "out"));
        machine.close();
    }
    std::ifstream file(folder / "out");
    std::string text;
    std::getline(file, text);
    EXPECT_EQ(text, "changed");
    std::filesystem::remove_all(folder);
}

// The same of a file that the process has changed: the rest of it is still with the host.
TEST(Machine, LargeFilesCanBeChanged) {
    const auto folder =
        std::filesystem::temp_directory_path() / ("gpurun-machine-" + std::to_string(getpid()));
    make_large_file(folder);
    std::string source = with_calls(reader);
    // Opened to be read and written; one byte of it is changed first, from 1 to 5.
    source.replace(source.find("(i64.const 6)"), 13, "(i64.const 70)");
    source.replace(source.find("(local.set $at (i64.const 0x2000000))"), 0, R"(
      (i32.store8 (i32.const 64) (i32.const 5))
      (call $call_if (call $write (i32.load (i32.const 32)) (i32.const 16) (i32.const 1)
        (i64.const 0x10000) (i32.const 40)))
)");
    source.replace(source.find("(import"), 0, R"(
    (import "wasi_snapshot_preview1" "fd_pwrite"
      (func $write (param i32 i32 i32 i64 i32) (result i32)))
)");
    {
        Config config;
        config.directory(folder.string(), "/", true);
        Machine machine(device(), config);
        const uint32_t program = machine.load("reader", module(source));
        for (int i = 0; i < 2; i++) {
            machine.spawn(program, config);
            auto ended = machine.next();
            ASSERT_TRUE(ended);
            EXPECT_EQ(ended->result[0].exit_code(), large_sum + 4);
        }
        machine.close();
    }
    std::ifstream file(folder / "large", std::ios::binary);
    uint32_t sum = 0;
    for (int i = 0; i < 512; i++) {
        file.seekg(i * 0x10000);
        sum += uint32_t(file.get());
    }
    EXPECT_EQ(sum, large_sum + 4);
    std::filesystem::remove_all(folder);
}

// What is too large for the device stays with the host, which is asked for its blocks; meanwhile
// some who asked are killed.
TEST(Machine, LargeFilesComeBlockByBlock) {
    const auto folder =
        std::filesystem::temp_directory_path() / ("gpurun-machine-" + std::to_string(getpid()));
    make_large_file(folder);
    constexpr uint32_t processes = 32;
    {
        Machine machine(device(), Config().directory(folder.string(), "/", false));
        const uint32_t program = machine.load("reader", module(with_calls(reader)));
        std::map<uint32_t, uint32_t> ends;  // by how
        for (uint32_t i = 0; i < processes; i++) {
            const uint32_t process = machine.spawn(program, Config());
            if (i % 4 != 1) continue;
            // It may have ended by then.
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
            if (const uint32_t pid = machine.pid(process)) machine.kill(pid, 9);
        }
        for (uint32_t i = 0; i < processes; i++) {
            auto ended = machine.next();
            ASSERT_TRUE(ended);
            const Process it = ended->result[0];
            if (it.ending() == GPURUN_EXITED) {
                EXPECT_EQ(it.exit_code(), large_sum);
            } else {
                EXPECT_EQ(it.ending(), GPURUN_KILLED);
            }
            ends[it.ending()]++;
        }
        EXPECT_GE(ends[GPURUN_EXITED], processes * 3 / 4);
        EXPECT_TRUE(machine.wait_idle());
    }
    std::filesystem::remove_all(folder);
}

TEST(Machine, AnswersAndCounts) {
    Machine machine(device(), Config().share(50).machine_processes(100).spin(100));
    EXPECT_LT(machine.ping(), 1.0);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    const gpurun_machine_stats stats = machine.stats();
    EXPECT_EQ(stats.launches, 1u);
    EXPECT_EQ(stats.processes, 0u);
    EXPECT_GT(stats.lanes, 0u);
    EXPECT_GT(stats.memory, stats.memory_used);
    EXPECT_GT(stats.seconds, 0.1);
}

TEST(Machine, HasTheMemoryItIsGiven) {
    EXPECT_THAT(error_of([] { Machine small(device(), Config().machine_memory(4096)); }),
                HasSubstr("too few for programs and processes"));
    constexpr uint64_t size = 64 << 20;
    Machine machine(device(), Config().machine_memory(size).machine_processes(100));
    EXPECT_EQ(machine.stats().memory, size);
    const uint32_t fits = machine.load("copier", module(copier));
    const uint32_t large =
        machine.load("large", module(R"((module (memory 2048) (func (export "_start"))))"));
    machine.spawn(large, Config());
    const auto refused = machine.next();
    EXPECT_EQ(refused->result[0].ending(), GPURUN_REFUSED);
    EXPECT_THAT(refused->result[0].message(), HasSubstr("nomem"));
    machine.spawn(fits, Config());
    EXPECT_EQ(machine.next()->result[0].exit_code(), 41u);
}

TEST(Machine, StopsWaitingWhenToldTo) {
    Machine machine(device());
    machine.spawn(machine.load("forever", module(forever)), Config());
    Stop stop;
    std::thread other([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        stop.request();
    });
    EXPECT_FALSE(machine.next(-1, stop.get()));
    other.join();
    EXPECT_FALSE(machine.wait_idle(-1, stop.get()));
}

TEST(Machine, WhatIsWrongIsAnError) {
    EXPECT_THAT(error_of([] { Machine machine(device(), Config().share(0)); }),
                HasSubstr("1 to 100 percent"));
    Machine machine(device());
    EXPECT_THAT(error_of([&] { machine.spawn(7, Config()); }), HasSubstr("no program"));
    EXPECT_THAT(error_of([&] { machine.load("", module(forever)); }), HasSubstr("no name"));
    EXPECT_THAT(error_of([&] { machine.load("x", module("(module)")); }),
                HasSubstr("no exported function \"_start\""));
    EXPECT_THAT(error_of([&] {
                    machine.load("x", module("(module (import \"a\" \"b\" (func)) "
                                             "(func (export \"_start\")))"));
                }),
                HasSubstr("unknown import"));
    const uint32_t program = machine.load("copier", module(copier));
    EXPECT_THAT(
        error_of([&] { machine.spawn(program, Config().argument(std::string(70'000, 'x'))); }),
        AllOf(HasSubstr("take 7"), HasSubstr("the most")));
    EXPECT_THAT(error_of([&] { machine.spawn(program, Config().inherit_streams()); }),
                HasSubstr("without the standard streams"));
}

}  // namespace
}  // namespace gpurun::api
