// Fuel is exact and can be refilled, metering changes nothing else, and whatever a thread does it
// stops within 100 ms of being asked to, and can go on.
#include <gtest/gtest.h>
#include <pthread.h>
#include <time.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "process.h"

namespace gpurun::test {
namespace {

using Kind = Completion::Kind;

engine::StoreOptions with_fuel(u64 fuel) {
    engine::StoreOptions options = small_options();
    options.fuel = fuel;
    return options;
}

// How much a call of "run" takes.
u64 fuel_of(std::string_view wat, const std::vector<Value>& arguments = {}) {
    auto process = Process::make(wat, with_fuel(1000));
    EXPECT_TRUE(process.ok()) << process.error().to_string();
    Completion completion = process->call("run", arguments);
    EXPECT_EQ(completion.kind, Kind::returned) << to_string(completion);
    return 1000 - *process->store().fuel();
}

// The cost table (wasm/fuel.h): every instruction costs 1 but nop, drop, unreachable, return and
// those that only mark a block.
TEST(Fuel, CountsInstructions) {
    EXPECT_EQ(fuel_of("(func (export \"run\"))"), 0u);
    EXPECT_EQ(fuel_of("(func (export \"run\") nop block nop end)"), 0u);
    EXPECT_EQ(fuel_of("(func (export \"run\") (drop (i32.const 1)))"), 1u);
    EXPECT_EQ(fuel_of("(func (export \"run\") (result i32) (i32.add (i32.const 1) (i32.const 2)))"),
              3u);
    EXPECT_EQ(fuel_of("(func (export \"run\") (result i32) (return (i32.const 1)))"), 1u);
    EXPECT_EQ(fuel_of("(func (export \"run\") (local i32) (local.set 0 (local.get 0)))"), 2u);
    EXPECT_EQ(fuel_of("(memory 1) (func (export \"run\")"
                      "  (memory.fill (i32.const 0) (i32.const 0) (i32.const 65536)))"),
              4u);
}

TEST(Fuel, CountsWhatIsReached) {
    constexpr std::string_view choose = R"((func (export "run") (param i32) (result i32)
        (if (result i32) (local.get 0)
          (then (i32.add (i32.const 1) (i32.const 2)))
          (else (i32.const 3)))))";
    EXPECT_EQ(fuel_of(choose, {Value::i32(1)}), 2 + 3u);
    EXPECT_EQ(fuel_of(choose, {Value::i32(0)}), 2 + 1u);

    constexpr std::string_view skip = R"((func (export "run") (param i32)
        (block (br_if 0 (local.get 0)) (drop (i32.const 1)) (drop (i32.const 2)))))";
    EXPECT_EQ(fuel_of(skip, {Value::i32(1)}), 2u);
    EXPECT_EQ(fuel_of(skip, {Value::i32(0)}), 2 + 2u);

    constexpr std::string_view loop = R"((func (export "run") (param i32)
        (loop (br_if 0 (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))))";
    EXPECT_EQ(fuel_of(loop, {Value::i32(1)}), 5u);
    EXPECT_EQ(fuel_of(loop, {Value::i32(7)}), 7 * 5u);

    constexpr std::string_view calls = R"(
        (func $f (param i32) (result i32) (i32.mul (local.get 0) (local.get 0)))
        (func (export "run") (result i32) (call $f (call $f (i32.const 3)))))";
    EXPECT_EQ(fuel_of(calls), 3 + 2 * 3u);
}

TEST(Fuel, IsTheSameForAnyBlockOrder) {
    // A catch costs what it executes; the throw and the call before it are paid once.
    constexpr std::string_view wat = R"((tag $t (param i32))
        (func $f (throw $t (i32.const 1)))
        (func (export "run") (result i32)
          (block $h (result i32) (try_table (catch $t $h) (call $f)) (i32.const 2))))";
    EXPECT_EQ(fuel_of(wat), 1 + 2u);
}

constexpr std::string_view busy = R"(
    (memory 1)
    (func $fib (param i32) (result i32)
      (if (result i32) (i32.lt_u (local.get 0) (i32.const 2)) (then (local.get 0))
        (else (i32.add (call $fib (i32.sub (local.get 0) (i32.const 1)))
                       (call $fib (i32.sub (local.get 0) (i32.const 2)))))))
    (func (export "run") (result i32 i32) (local i32)
      (loop $next
        (i32.store8 (local.get 0) (call $fib (i32.and (local.get 0) (i32.const 7))))
        (br_if $next (i32.lt_u (local.tee 0 (i32.add (local.get 0) (i32.const 1)))
                               (i32.const 50))))
      (i32.load (i32.const 3)) (call $fib (i32.const 10))))";

TEST(Fuel, MoreFuelGoesOn) {
    auto unmetered = Process::make(busy);
    ASSERT_TRUE(unmetered.ok());
    const std::string expected = to_string(unmetered->call("run"));

    for (u64 portion : {1, 10, 13, 100, 5000}) {
        auto process = Process::make(busy, with_fuel(portion));
        ASSERT_TRUE(process.ok());
        engine::Store& store = process->store();
        Completion completion = process->call("run");
        u64 given = portion;
        while (completion.kind == Kind::out_of_fuel) {
            given += portion;
            u64 left = *store.fuel();
            ASSERT_TRUE(store.set_fuel(left + portion).ok());
            auto resumed = store.resume(process->func("run"), {});
            ASSERT_TRUE(resumed.ok());
            completion = *resumed;
        }
        EXPECT_EQ(to_string(completion), expected);
        // In portions or at once: the same total.
        auto whole = Process::make(busy, with_fuel(1'000'000));
        whole->call("run");
        EXPECT_EQ(given - *store.fuel(), 1'000'000 - *whole->store().fuel());
    }
}

TEST(Fuel, OfTheStartFunction) {
    auto process = Process::make("(func $f (loop (br 0))) (start $f)", with_fuel(1000));
    ASSERT_FALSE(process.ok());
    EXPECT_EQ(process.error().message, "out of fuel");
}

TEST(Fuel, EndlessThingsRunOut) {
    for (const char* body :
         {"(func (export \"run\") (loop (br 0)))", "(func $f (export \"run\") (return_call $f))",
          "(memory 1) (func (export \"run\") (loop (memory.fill (i32.const 0) (i32.const 0)"
          "  (i32.const 100)) (br 0)))",
          "(tag $t) (func (export \"run\")"
          "  (loop $l (try_table (catch $t $l) (throw $t))))"}) {
        SCOPED_TRACE(body);
        auto process = Process::make(body, with_fuel(100'000));
        ASSERT_TRUE(process.ok()) << process.error().to_string();
        EXPECT_EQ(process->call("run").kind, Kind::out_of_fuel);
    }
}

// ---- stop requests -----------------------------------------------------------------

// Sanitizers watch every byte of a bulk operation.
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
constexpr int limit_ms = 1000;
#else
constexpr int limit_ms = 100;
#endif

struct Endless {
    const char* name;
    const char* wat;
};

class Stop : public testing::TestWithParam<Endless> {};

// Returns how long a thread has run: a busy machine changes nothing in it.
std::chrono::nanoseconds time_of(clockid_t clock) {
    timespec time;
    clock_gettime(clock, &time);
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}
std::chrono::nanoseconds thread_time() { return time_of(CLOCK_THREAD_CPUTIME_ID); }

// Sets the flag while it runs; twice, so that it is seen to go on.
TEST_P(Stop, IsHonouredWithin100Ms) {
    using namespace std::chrono;
    engine::StoreOptions options = small_options();
    options.memory_bytes = u64{4} << 30;
    options.all_memory_bytes = u64{8} << 30;
    auto process = Process::make(GetParam().wat, options);
    ASSERT_TRUE(process.ok()) << process.error().to_string();
    engine::Store& store = process->store();
    ASSERT_TRUE(store.begin_call(process->func("run"), {}).ok());
    clockid_t own_clock;
    ASSERT_EQ(pthread_getcpuclockid(pthread_self(), &own_clock), 0);
    for (int round = 0; round < 2; round++) {
        std::atomic<bool> stop = false;
        nanoseconds asked;
        std::thread asker([&] {
            std::this_thread::sleep_for(milliseconds(60));
            asked = time_of(own_clock);
            stop = true;
        });
        auto completion = store.resume(process->func("run"), {.stop = &stop, .deadline = {}});
        const nanoseconds stopped = thread_time();
        asker.join();
        ASSERT_TRUE(completion.ok());
        EXPECT_EQ(completion->kind, Kind::stopped) << to_string(*completion);
        EXPECT_LT(duration_cast<milliseconds>(stopped - asked).count(), limit_ms);
    }
}

const Endless endless[] = {
    {"Loop", "(func (export \"run\") (loop (br 0)))"},
    {"TailCalls", "(func $f (export \"run\") (return_call $f))"},
    {"IndirectTailCalls",
     "(table funcref (elem $f)) (func $f (export \"run\") (return_call_indirect (i32.const 0)))"},
    {"Calls", "(func $f) (func (export \"run\") (loop (call $f) (br 0)))"},
    {"Exceptions", R"((tag $t) (func (export "run")
        (local $e exnref)
        (block $h (result exnref) (try_table (catch_all_ref $h) (throw $t)) (unreachable))
        (local.set $e)
        (loop $l (try_table (catch_all $l) (throw_ref (local.get $e))))))"},
    {"MemoryFill", R"((memory 65536) (func (export "run")
        (loop (memory.fill (i32.const 0) (i32.const 1) (i32.const -1)) (br 0))))"},
    {"MemoryFillOfWarmPages", R"((memory 1024) (func (export "run")
        (loop (memory.fill (i32.const 0) (i32.const 1) (i32.const 0x4000000)) (br 0))))"},
    {"MemoryCopy", R"((memory 1024) (func (export "run")
        (loop (memory.copy (i32.const 1) (i32.const 0) (i32.const 0x3ffffff)) (br 0))))"},
    {"TableFill", R"((table 100000 funcref) (func (export "run")
        (loop (table.fill (i32.const 0) (ref.null func) (i32.const 100000)) (br 0))))"},
    {"ArrayCopy", R"((type $a (array (mut i8))) (func (export "run") (local (ref null $a))
        (local.set 0 (array.new_default $a (i32.const 900000)))
        (loop (array.copy $a $a (local.get 0) (i32.const 1) (local.get 0) (i32.const 0)
                                (i32.const 899999)) (br 0))))"},
    {"Wait", R"((memory 1 1 shared) (func (export "run")
        (drop (memory.atomic.wait32 (i32.const 0) (i32.const 0) (i64.const 100000000000)))))"},
};

INSTANTIATE_TEST_SUITE_P(Endless, Stop, testing::ValuesIn(endless),
                         [](const auto& info) { return info.param.name; });

// A long body between two branches, and long functions in a loop.
TEST(Stop, SeesLongCode) {
    using namespace std::chrono;
    std::string adds;
    for (int i = 0; i < 20'000; i++) adds += "(local.set 0 (i32.mul (local.get 0) (i32.const 3)))";
    for (const std::string& wat :
         {"(func (export \"run\") (local i32) (loop " + adds + "(br 0)))",
          "(func $f (local i32) " + adds + ") (func (export \"run\") (loop (call $f) (br 0)))"}) {
        auto process = Process::make(wat);
        ASSERT_TRUE(process.ok());
        const auto begin = thread_time();
        Completion completion = process->call(
            "run", {}, {.stop = nullptr, .deadline = steady_clock::now() + milliseconds(50)});
        EXPECT_EQ(completion.kind, Kind::stopped);
        EXPECT_LT(duration_cast<milliseconds>(thread_time() - begin).count(), 50 + limit_ms);
    }
}

TEST(Stop, LeavesAResult) {
    // Interrupted again and again, it still ends as if it had not been.
    auto process = Process::make(R"((func (export "run") (result i64) (local i64 i64)
        (loop (local.set 1 (i64.add (i64.mul (local.get 1) (i64.const 7)) (local.get 0)))
              (br_if 0 (i64.lt_u (local.tee 0 (i64.add (local.get 0) (i64.const 1)))
                                 (i64.const 2000000))))
        (local.get 1)))");
    ASSERT_TRUE(process.ok());
    engine::Store& store = process->store();
    const std::string expected = to_string(process->call("run"));
    std::atomic<bool> stop = true;  // before it begins: each resume runs a little
    ASSERT_TRUE(store.begin_call(process->func("run"), {}).ok());
    u32 rounds = 0;
    for (;; rounds++) {
        auto completion = store.resume(process->func("run"), {.stop = &stop, .deadline = {}});
        ASSERT_TRUE(completion.ok());
        if (completion->kind == Kind::stopped) continue;
        EXPECT_EQ(to_string(*completion), expected);
        break;
    }
    EXPECT_GT(rounds, 1u);
}

// A fill looks at the request several times, also where the interpreter does it beside machine
// code.
TEST(Stop, IsSeenWithinLongOperations) {
    constexpr u64 bytes = u64{256} << 20, least_looks = bytes / (u64{8} << 20);
    engine::StoreOptions options = small_options();
    options.memory_bytes = options.all_memory_bytes = bytes;
    for (device::Tier tier : {device::Tier::interp, device::Tier::native, device::Tier::partial}) {
        options.tier = tier;
        const std::string fill =
            "(memory.fill (i32.const 0) (i32.const 1) (i32.const " + std::to_string(bytes) + "))";
        auto process =
            Process::make("(memory " + std::to_string(bytes >> 16) + ") (func (export \"one\") " +
                              fill + ") (func (export \"other\") " + fill + ")",
                          options);
        ASSERT_TRUE(process.ok()) << process.error().to_string();
        const std::atomic<bool> stop = true;
        for (const char* name : {"one", "other"}) {
            ASSERT_TRUE(process->store().begin_call(process->func(name), {}).ok());
            u64 looks = 0;
            while (process->store()
                       .resume(process->func(name), {.stop = &stop, .deadline = {}})
                       ->kind == Kind::stopped)
                looks++;
            EXPECT_GE(looks, least_looks) << int(tier) << ", " << name;
        }
    }
}

TEST(Wait, TimesOut) {
    auto process =
        Process::make(R"((memory 1 1 shared) (func (export "run") (param i64) (result i32)
        (memory.atomic.wait64 (i32.const 0) (i64.const 0) (local.get 0))))");
    ASSERT_TRUE(process.ok());
    EXPECT_EQ(to_string(process->call("run", {Value::i64(0)})), "2");
    EXPECT_EQ(to_string(process->call("run", {Value::i64(20'000'000)})), "2");
    // For ever: nobody else runs, so it stays blocked however often it is resumed.
    EXPECT_EQ(process->call("run", {Value::i64(~u64{0})}).kind, Kind::blocked);
    EXPECT_EQ(process->store().resume(process->func("run"), {})->kind, Kind::blocked);
}

TEST(Trapped, StaysTrapped) {
    auto process = Process::make(R"((global $g (mut i32) (i32.const 0))
        (func (export "run") (result i32)
          (global.set $g (i32.add (global.get $g) (i32.const 1)))
          (i32.div_u (i32.const 1) (i32.sub (global.get $g) (i32.const 1)))))");
    ASSERT_TRUE(process.ok());
    EXPECT_EQ(to_string(process->call("run")), "integer divide by zero");
    EXPECT_EQ(to_string(*process->store().resume(process->func("run"), {})),
              "integer divide by zero");
    EXPECT_EQ(to_string(process->call("run")), "1");
}

}  // namespace
}  // namespace gpurun::test
