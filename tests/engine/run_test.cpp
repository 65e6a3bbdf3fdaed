// One description of a run means the same for a process alone, for many and on a machine; and
// whatever ends a machine, its files are written back.
#include "engine/run.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "engine/burst.h"
#include "engine/program.h"
#include "engine/resident.h"
#include "text/assemble.h"
#include "wasm/decode.h"

namespace gpurun::engine {
namespace {

// Writes its arguments, its environment and a file "made", then what it reads.
const char* const shows = R"((module
    (import "wasi_snapshot_preview1" "args_sizes_get"
        (func $args_sizes_get (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "args_get" (func $args_get (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "environ_sizes_get"
        (func $environ_sizes_get (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "environ_get"
        (func $environ_get (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "path_open"
        (func $path_open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_read"
        (func $fd_read (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_write"
        (func $fd_write (param i32 i32 i32 i32) (result i32)))
    (memory (export "memory") 1)
    (data (i32.const 64) "made")
    (func $write (param $fd i32) (param $at i32) (param $size i32)
      (i32.store (i32.const 0) (local.get $at))
      (i32.store (i32.const 4) (local.get $size))
      (drop (call $fd_write (local.get $fd) (i32.const 0) (i32.const 1) (i32.const 8))))
    (func (export "_start")
      (drop (call $path_open (i32.const 3) (i32.const 0) (i32.const 64) (i32.const 4) (i32.const 1)
          (i64.const 64) (i64.const 64) (i32.const 0) (i32.const 16)))
      (call $write (i32.load (i32.const 16)) (i32.const 64) (i32.const 4))
      (drop (call $args_sizes_get (i32.const 16) (i32.const 20)))
      (drop (call $args_get (i32.const 1024) (i32.const 4096)))
      (call $write (i32.const 1) (i32.const 4096) (i32.load (i32.const 20)))
      (drop (call $environ_sizes_get (i32.const 16) (i32.const 20)))
      (drop (call $environ_get (i32.const 1024) (i32.const 4096)))
      (call $write (i32.const 1) (i32.const 4096) (i32.load (i32.const 20)))
      (i32.store (i32.const 0) (i32.const 8192))
      (i32.store (i32.const 4) (i32.const 100))
      (drop (call $fd_read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
      (call $write (i32.const 1) (i32.const 8192) (i32.load (i32.const 8))))))";

Resident::Deadline soon() { return std::chrono::steady_clock::now() + std::chrono::seconds(60); }

class OneRun : public testing::Test {
protected:
    OneRun() {
        std::string name = testing::TempDir() + "gpurun-run-XXXXXX";
        folder_ = mkdtemp(name.data());
        auto text = text::assemble(shows, "shows.wat");
        program_ = {*wasm::load(std::move(text->bytes)), "shows"};
        run_.arguments = {"one", "two"};
        run_.system.environment = {"NAME=value"};
        run_.system.input = std::make_shared<const std::vector<u8>>(3, u8{'i'});
        run_.system.mounts = {{folder_, "/", true}};
        run_.limits.fuel = 1'000'000;
        run_.limits.stack_slots = 10'000;
        run_.machine.processes = 10;
    }
    ~OneRun() override { std::filesystem::remove_all(folder_); }

    // The file that the guest makes, as it came back. It is gone then.
    std::string take_made() {
        std::stringstream text;
        text << std::ifstream(folder_ + "/made").rdbuf();
        std::filesystem::remove(folder_ + "/made");
        return text.str();
    }

    std::unique_ptr<device::Device> device_ = std::move(*device::open_device("cpu"));
    std::string folder_;
    Program program_;
    engine::Run run_;
    const std::string wanted_{"shows\0one\0two\0NAME=value\0iii", 28};
};

TEST_F(OneRun, IsTheSameInAllModes) {
    const engine::Run& run = run_;
    const Job job{program_, run};
    auto alone = run_program(*device_, job);
    ASSERT_TRUE(alone) << alone.error().to_string();
    EXPECT_EQ(alone->completion.kind, Completion::Kind::returned);
    EXPECT_EQ(alone->output[0], wanted_);
    EXPECT_EQ(take_made(), "made");

    auto many = run_burst(*device_, {&job, 1}, {});
    ASSERT_TRUE(many) << many.error().to_string();
    ASSERT_EQ(many->processes(), 1u);
    EXPECT_EQ(many->of(0).kind, Completion::Kind::returned);
    EXPECT_EQ(*many->stream(0, 1), wanted_);
    EXPECT_EQ(take_made(), "");  // what one of many changes is its own

    auto machine = Resident::make(*device_, run);
    ASSERT_TRUE(machine) << machine.error().to_string();
    auto number = (*machine)->load(job);
    ASSERT_TRUE(number) << number.error().to_string();
    std::string output;
    Resident::Ends ends;
    ends[0] = *(*machine)->open_input(*run.system.input, Resident::Use::once);
    ends[1] = *(*machine)->open_output(
        [&](std::string_view bytes) -> Result<bool> {
            output += bytes;
            return true;
        },
        Resident::Use::once);
    ASSERT_TRUE((*machine)->spawn(*number, run, ends));
    auto ended = (*machine)->next_ending(soon());
    ASSERT_TRUE(ended && *ended);
    EXPECT_EQ((*ended)->ending, Ending::exited);
    EXPECT_TRUE((*machine)->stop());
    EXPECT_EQ(output, wanted_);
    EXPECT_EQ(take_made(), "made");
}

TEST_F(OneRun, IsLimitedInAllModes) {
    run_.limits.fuel = 10;
    const Job job{program_, run_};
    auto alone = run_program(*device_, job);
    ASSERT_TRUE(alone) << alone.error().to_string();
    EXPECT_EQ(alone->completion.kind, Completion::Kind::out_of_fuel);
    auto many = run_burst(*device_, {&job, 1}, {});
    ASSERT_TRUE(many) << many.error().to_string();
    EXPECT_EQ(many->of(0).kind, Completion::Kind::out_of_fuel);
    auto machine = Resident::make(*device_, run_);
    ASSERT_TRUE(machine) << machine.error().to_string();
    auto number = (*machine)->load(job);
    ASSERT_TRUE(number) << number.error().to_string();
    ASSERT_TRUE((*machine)->spawn(*number, run_));
    auto ended = (*machine)->next_ending(soon());
    ASSERT_TRUE(ended && *ended);
    EXPECT_EQ((*ended)->ending, Ending::out_of_fuel);
}

TEST_F(OneRun, IsStoppedInAllModes) {
    run_.stop = std::make_shared<std::atomic<bool>>(true);
    const Job job{program_, run_};
    auto alone = run_program(*device_, job);
    ASSERT_TRUE(alone) << alone.error().to_string();
    EXPECT_EQ(alone->completion.kind, Completion::Kind::stopped);
    auto many = run_burst(*device_, {&job, 1}, {});
    ASSERT_TRUE(many) << many.error().to_string();
    EXPECT_EQ(many->of(0).kind, Completion::Kind::stopped);
    EXPECT_FALSE(Resident::make(*device_, run_));
    EXPECT_EQ(take_made(), "");
}

// A callback for input fails the machine once the guest has made its file.
TEST_F(OneRun, FilesComeBackFromAMachineThatFailed) {
    auto machine = Resident::make(*device_, run_);
    ASSERT_TRUE(machine) << machine.error().to_string();
    auto number = (*machine)->load({program_, run_});
    ASSERT_TRUE(number) << number.error().to_string();
    std::atomic<bool> has_written = false;
    Resident::Ends ends;
    ends[1] = *(*machine)->open_output(
        [&](std::string_view) -> Result<bool> {
            has_written = true;
            has_written.notify_all();
            return true;
        },
        Resident::Use::once);
    ends[0] = *(*machine)->open_input(
        [&](usize, auto, auto) -> Result<host::Streams::Input> {
            has_written.wait(false);
            throw std::runtime_error("no input");
        },
        Resident::Use::once);
    ASSERT_TRUE((*machine)->spawn(*number, run_, ends));
    EXPECT_FALSE((*machine)->next_ending(soon()));
    EXPECT_FALSE((*machine)->stop());
    EXPECT_EQ(take_made(), "made");
}

TEST(Run, NumbersItsProcesses) {
    engine::Run run;
    EXPECT_FALSE(run.many.is_asked_for());
    EXPECT_EQ(run.many.count(), 1u);
    run.many.first_number = 7;
    run.many.own.resize(3);
    run.many.own[1].number = 100;
    EXPECT_TRUE(run.many.is_asked_for());
    EXPECT_EQ(run.many.count(), 3u);
    EXPECT_EQ(run.many.number_of(1), 100u);
    EXPECT_EQ(run.many.number_of(2), 9u);
}

TEST(Run, WhatIsLookedAtIsInterpreted) {
    engine::Run run;
    run.tier = device::Tier::automatic;
    EXPECT_EQ(run.chosen_tier(run.is_looked_at()), device::Tier::automatic);
    run.is_profiled = true;
    EXPECT_EQ(run.chosen_tier(run.is_looked_at()), device::Tier::interp);
    run.tier = device::Tier::native;
    EXPECT_EQ(run.chosen_tier(run.is_looked_at()), device::Tier::native);
}

}  // namespace
}  // namespace gpurun::engine
