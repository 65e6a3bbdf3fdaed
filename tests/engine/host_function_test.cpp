// Host functions: arguments, results and guest memory both ways, from one process and from many.
#include "engine/host_function.h"

#include <gtest/gtest.h>

#include "engine/burst.h"
#include "engine/program.h"
#include "text/assemble.h"
#include "wasm/decode.h"

namespace gpurun::engine {
namespace {

using wasm::ValType;

// Calls env.mix with numbers of every kind and a string in memory, which the host turns round.
constexpr const char* source = R"(
  (module
    (import "env" "mix" (func $mix (param i32 i64 f32 f64 i32 i32) (result i64 i32)))
    (import "env" "fail" (func $fail (param i32)))
    (memory (export "memory") 1)
    (data (i32.const 100) "drawer")
    (func (export "go") (param $n i32) (result i64)
      (local $sum i64)
      (call $mix (local.get $n) (i64.const -5) (f32.const 1.5) (f64.const 2.25)
                 (i32.const 100) (i32.const 6))
      (i64.extend_i32_u)
      (i64.add)
      (i64.add (i64.shl (i64.load8_u (i32.const 100)) (i64.const 32))))
    (func (export "bad") (param $n i32) (result i64)
      (call $fail (local.get $n))
      (i64.const 0)))
)";

// Its start function asks the host for a number.
constexpr const char* asking = R"(
  (module
    (import "env" "number" (func $number (result i32)))
    (global $n (mut i32) (i32.const 0))
    (func $start (global.set $n (call $number)))
    (start $start)
    (func (export "go") (result i32) (global.get $n)))
)";

std::shared_ptr<const wasm::Module> module(const char* text = source) {
    auto assembled = text::assemble(text, "test");
    return *wasm::load(std::move(assembled->bytes));
}

Value i32(u32 value) { return Value{ValType::i32, {{value}}}; }
Value i64(u64 value) { return Value{ValType::i64, {{u32(value), u32(value >> 32)}}}; }

std::vector<HostFunction> functions(u32& calls) {
    HostFunction mix{
        "env",
        "mix",
        {{ValType::i32, ValType::i64, ValType::f32, ValType::f64, ValType::i32, ValType::i32},
         {ValType::i64, ValType::i32}},
        {}};
    mix.call = [&calls](HostCall& call) -> Result<std::vector<Value>> {
        calls++;
        auto arguments = call.arguments();
        EXPECT_EQ(arguments[2].to_string(), "1.5");
        EXPECT_EQ(arguments[3].to_string(), "2.25");
        u32 at = arguments[4].bits.word[0], size = arguments[5].bits.word[0];
        std::vector<u8> text(size);
        TRY(call.read_memory(at, text));
        std::reverse(text.begin(), text.end());
        TRY(call.write_memory(at, text));
        EXPECT_FALSE(call.read_memory(call.memory_size() - 1, text));
        EXPECT_FALSE(call.write_memory(~u64{0}, text));
        return std::vector<Value>{i64(call.process() * 1000), i32(arguments[0].bits.word[0] + 7)};
    };
    HostFunction fail{"env", "fail", {{ValType::i32}, {}}, {}};
    fail.call = [](HostCall&) -> Result<std::vector<Value>> { return Error{"no"}; };
    return {mix, fail};
}

// GPURUN_DEVICE names another device than the CPU.
std::unique_ptr<device::Device> device() {
    const char* id = std::getenv("GPURUN_DEVICE");
    return std::move(*device::open_device(id ? id : "cpu"));
}

TEST(HostFunction, OneProcess) {
    u32 calls = 0;
    auto where = device();
    engine::Run run;
    run.function = "go";
    run.arguments = {"35"};
    run.functions = functions(calls);
    auto ending = run_program(*where, {{module()}, run});
    ASSERT_TRUE(ending) << ending.error().to_string();
    ASSERT_EQ(ending->completion.kind, Completion::Kind::returned)
        << ending->completion.to_string();
    EXPECT_EQ(ending->completion.results[0].to_string(),
              std::to_string((u64{'r'} << 32) + 0 + 35 + 7));
    EXPECT_EQ(calls, 1u);
}

TEST(HostFunction, ManyProcesses) {
    u32 calls = 0;
    auto where = device();
    const Program program{module()};
    engine::Run run;
    run.many.processes = 1000;
    run.function = "go";
    run.arguments = {"{}"};
    run.functions = functions(calls);
    const Job job{program, run};
    auto report = run_burst(*where, {&job, 1}, {});
    ASSERT_TRUE(report) << report.error().to_string();
    for (u32 id = 0; id < 1000; id++) {
        Completion completion = report->of(id);
        ASSERT_EQ(completion.kind, Completion::Kind::returned) << completion.to_string();
        EXPECT_EQ(completion.results[0].to_string(),
                  std::to_string((u64{'r'} << 32) + u64{id} * 1000 + id + 7));
    }
    EXPECT_EQ(calls, 1000u);
}

TEST(HostFunction, FailureIsATrap) {
    u32 calls = 0;
    auto where = device();
    engine::Run run;
    run.function = "bad";
    run.arguments = {"1"};
    run.functions = functions(calls);
    auto ending = run_program(*where, {{module()}, run});
    ASSERT_TRUE(ending) << ending.error().to_string();
    EXPECT_EQ(ending->completion.kind, Completion::Kind::trapped);
    EXPECT_EQ(ending->completion.to_string(), "a host function failed");
}

TEST(HostFunction, SeveralModulesInOneBurst) {
    u32 calls = 0;
    auto where = device();
    const Program program{module()};
    engine::Run runs[3];
    std::vector<Job> jobs;
    for (u32 i = 0; i < 3; i++) {
        runs[i].many.processes = 10 + i;
        runs[i].function = "go";
        runs[i].arguments = {std::to_string(i * 100)};
        runs[i].functions = functions(calls);
        jobs.push_back({program, runs[i]});
    }
    auto report = run_burst(*where, jobs, {});
    ASSERT_TRUE(report) << report.error().to_string();
    ASSERT_EQ(report->jobs(), 3u);
    for (u32 i = 0; i < 3; i++)
        for (u32 id = 0; id < report->processes(i); id++)
            EXPECT_EQ(report->of(id, i).results[0].to_string(),
                      std::to_string((u64{'r'} << 32) + u64{id} * 1000 + i * 100 + 7));
    EXPECT_EQ(calls, 33u);
}

TEST(HostFunction, StartFunctionsOfManyCallIt) {
    auto where = device();
    const Program program{module(asking)};
    engine::Run run;
    run.many.processes = 40;
    run.function = "go";
    run.functions = {{"env", "number", {{}, {ValType::i32}}, {}}};
    run.functions[0].call = [](HostCall& call) -> Result<std::vector<Value>> {
        return std::vector<Value>{i32(100 + call.process())};
    };
    const Job job{program, run};
    auto report = run_burst(*where, {&job, 1}, {});
    ASSERT_TRUE(report) << report.error().to_string();
    for (u32 id = 0; id < 40; id++)
        EXPECT_EQ(report->of(id).results[0].to_string(), std::to_string(100 + id));
}

}  // namespace
}  // namespace gpurun::engine
