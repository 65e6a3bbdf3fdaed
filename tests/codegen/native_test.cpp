// Both tiers do the same, to the unit of fuel and to the frame of a backtrace; images are the same
// whoever makes them, and damaged ones are refused.
#include <gtest/gtest.h>

#include "../runtime/process.h"
#include "base/format.h"
#include "codegen/codegen.h"

namespace gpurun::test {
namespace {

using device::Tier;

constexpr Tier tiers[] = {Tier::interp, Tier::native, Tier::alternate, Tier::partial, Tier::quick};

// What a call of "run" leaves: results or the end, where, and the fuel.
std::string ending(const std::vector<NamedModule>& modules, engine::StoreOptions options,
                   const std::vector<Value>& arguments) {
    auto process = Process::make(options);
    if (!process) return process.error().to_string();
    for (const NamedModule& module : modules)
        if (auto added = process->add(module.name, module.wat); !added)
            return added.error().to_string();
    Completion completion = process->call("run", arguments);
    std::string text = to_string(completion);
    for (const engine::Frame& frame : completion.backtrace)
        text += format("\n%s 0x%x", frame.function.c_str(), frame.wasm_offset);
    return text + format("\nfuel %llu", (unsigned long long)*process->store().fuel());
}

void compare(const std::vector<NamedModule>& modules, engine::StoreOptions options,
             const std::vector<Value>& arguments = {}) {
    options.tier = Tier::interp;
    const std::string expected = ending(modules, options, arguments);
    for (Tier tier : tiers) {
        options.tier = tier;
        EXPECT_EQ(ending(modules, options, arguments), expected) << "tier " << int(tier);
    }
}

// Calls, loops, memory, traps of several kinds: argument 0 says how deep, 1 what happens there.
constexpr const char* mixed = R"(
    (memory 1)
    (table 4 funcref) (elem (i32.const 0) $leaf $dive)
    (type $t (func (param i32 i32) (result i64)))
    (func $leaf (type $t)
      (local $sum i64) (local $f f64)
      (if (i32.eq (local.get 1) (i32.const 1)) (then (unreachable)))
      (if (i32.eq (local.get 1) (i32.const 2))
        (then (drop (i32.div_s (i32.const 1) (local.get 0)))))
      (if (i32.eq (local.get 1) (i32.const 3))
        (then (drop (i32.load (i32.const 65533)))))
      (if (i32.eq (local.get 1) (i32.const 4))
        (then (drop (call_indirect (type $t) (local.get 0) (local.get 1) (i32.const 3)))))
      (if (i32.eq (local.get 1) (i32.const 5))
        (then (drop (i32.trunc_f64_s (f64.const 1e10)))))
      (local.set 1 (i32.const 37))
      (loop $l
        (i32.store (i32.shl (local.get 1) (i32.const 2)) (local.get 1))
        (local.set $f (f64.add (local.get $f) (f64.convert_i32_s (local.get 1))))
        (local.set $sum (i64.add (local.get $sum)
          (i64.load32_u (i32.shl (local.get 1) (i32.const 2)))))
        (br_if $l (local.tee 1 (i32.sub (local.get 1) (i32.const 1)))))
      (i64.add (local.get $sum) (i64.trunc_f64_s (local.get $f))))
    (func $dive (type $t)
      (if (result i64) (local.get 0)
        (then (i64.add (i64.extend_i32_u (local.get 0))
          (call_indirect (type $t) (i32.sub (local.get 0) (i32.const 1)) (local.get 1)
            (i32.const 1))))
        (else (call $leaf (local.get 0) (local.get 1)))))
    (func (export "run") (param i32 i32) (result i64)
      (call $dive (local.get 0) (local.get 1))))";

TEST(Native, EndsLikeTheInterpreter) {
    for (u32 how = 0; how < 6; how++)
        compare({{"", mixed}}, small_options(), {Value::i32(7), Value::i32(how)});
}

TEST(Native, FuelToTheUnit) {
    engine::StoreOptions options = small_options();
    for (u64 fuel : {0u, 1u, 5u, 20u, 60u, 100u, 150u, 333u, 700u, 800u, 1000u, 100'000u}) {
        options.fuel = fuel;
        compare({{"", mixed}}, options, {Value::i32(5), Value::i32(0)});
    }
}

// The stack ends at the same call, and the hardware's does not end before.
TEST(Native, StackExhaustion) {
    constexpr const char* recursion = R"(
        (global $depth (mut i32) (i32.const 0))
        (func $down (param i64 i32) (local v128 f64)
          (global.set $depth (i32.add (global.get $depth) (i32.const 1)))
          (call $down (local.get 0) (local.get 1)) (local.set 0 (i64.const 1)))
        (func (export "run") (result i32) (call $down (i64.const 1) (i32.const 2))
          (global.get $depth))
        (func (export "depth") (result i32) (global.get $depth)))";
    for (u32 slots : {100u, 1000u, 1u << 22}) {
        std::string expected;
        for (Tier tier : tiers) {
            if (tier == Tier::alternate && slots > 1000) continue;
            engine::StoreOptions options = small_options();
            options.stack_slots = slots;
            options.tier = tier;
            auto process = Process::make(recursion, options);
            ASSERT_TRUE(process.ok());
            EXPECT_EQ(to_string(process->call("run")), "call stack exhausted");
            const std::string depth = to_string(process->call("depth"));
            if (expected.empty()) expected = depth;
            EXPECT_EQ(depth, expected);
        }
    }
}

// Where there is no room for a frame, the records of its callers stay as they are.
TEST(Native, ExhaustedStackKeepsItsRecords) {
    engine::StoreOptions options = small_options();
    for (u32 slots = 200; slots < 260; slots += 7) {
        options.stack_slots = slots;
        compare({{"", R"(
            (memory 1)
            (func $down (param i32 i64) (result i64)
              (local i64 i64 i64 i64 i64 i64)
              (local.set 2 (i64.load (local.get 0)))
              (local.set 3 (i64.load (i32.add (local.get 0) (i32.const 8))))
              (local.set 4 (i64.add (local.get 2) (call $across (local.get 0) (local.get 3))))
              (local.set 5 (i64.load (i32.wrap_i64 (local.get 4))))
              (i64.add (local.get 5) (i64.add (local.get 3) (local.get 1))))
            (func $across (param i32 i64) (result i64)
              (call $down (local.get 0) (local.get 1)))
            (func (export "run") (result i64) (call $down (i32.const 0) (i64.const 1))))"}},
                options);
    }
}

// Tail calls of oneself, of others, of other instances; exceptions through frames of both tiers.
TEST(Native, ControlBetweenInstances) {
    constexpr const char* other = R"(
        (tag $e (export "e") (param i32 i64))
        (func (export "throws") (param i32)
          (if (i32.eqz (i32.rem_u (local.get 0) (i32.const 3)))
            (then (throw $e (local.get 0) (i64.const 5)))))
        (func (export "twice") (param i32) (result i32)
          (i32.shl (local.get 0) (i32.const 1))))";
    constexpr const char* main = R"(
        (import "other" "e" (tag $e (param i32 i64)))
        (import "other" "throws" (func $throws (param i32)))
        (import "other" "twice" (func $twice (param i32) (result i32)))
        (func $even (param i32) (result i32)
          (if (i32.eqz (local.get 0)) (then (return (i32.const 1))))
          (return_call $odd (i32.sub (local.get 0) (i32.const 1))))
        (func $odd (param i32) (result i32)
          (if (i32.eqz (local.get 0)) (then (return (i32.const 0))))
          (return_call $even (i32.sub (local.get 0) (i32.const 1))))
        (func $count (param i32 i64) (result i64)
          (if (i32.eqz (local.get 0)) (then (return (local.get 1))))
          (return_call $count (i32.sub (local.get 0) (i32.const 1))
            (i64.add (local.get 1) (i64.const 3))))
        (func $last (param i32) (result i32) (return_call $twice (local.get 0)))
        (func $try (param i32) (result i64)
          (block $caught (result i32 i64)
            (try_table (catch $e $caught) (call $throws (local.get 0)))
            (return (i64.const 1)))
          (drop) (i64.extend_i32_u))
        (func (export "run") (result i64 i32 i32)
          (local i32 i64)
          (local.set 0 (i32.const 20))
          (loop $l
            (local.set 1 (i64.add (local.get 1) (call $try (local.get 0))))
            (br_if $l (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
          (i64.add (local.get 1) (call $count (i32.const 1000) (i64.const 0)))
          (call $even (i32.const 501))
          (call $last (i32.const 21))))";
    compare({{"other", other}, {"", main}}, small_options());
}

// i32.wrap_i64 leaves its operand where it is: words of one value, read as another.
TEST(Native, WordsOfWiderValues) {
    compare({{"", R"(
        (func $pick (param i64 i32) (result i32)
          (if (result i32) (local.get 1)
            (then (i32.wrap_i64 (i64.add (local.get 0) (i64.const 1))))
            (else (i32.const 7))))
        (func (export "run") (result i32 i32)
          (call $pick (i64.const 0x1_0000_0005) (i32.const 1))
          (i32.add (i32.wrap_i64 (i64.mul (i64.const 3) (i64.const 0x2_0000_0001)))
                   (call $pick (i64.const 9) (i32.const 0)))))"}},
            small_options());
}

Result<codegen::Image> image_of(const char* wat, u32 threads) {
    auto module = TRY(module_from(wat));
    auto code = TRY(translate::translate(*module, {}));
    codegen::Options options;
    options.threads = threads;
    return codegen::compile(*module, code, options);
}

TEST(Image, IsTheSameWhoeverMakesIt) {
    auto one = image_of(mixed, 1), two = image_of(mixed, 2);
    ASSERT_TRUE(one.ok() && two.ok());
    EXPECT_EQ(one->functions, 3u);
    EXPECT_EQ(codegen::to_bytes(*one), codegen::to_bytes(*two));
}

TEST(Image, DamagedBytesAreRefused) {
    auto image = image_of(mixed, 1);
    ASSERT_TRUE(image.ok());
    const std::vector<u8> bytes = codegen::to_bytes(*image);
    EXPECT_TRUE(codegen::from_bytes(bytes, 1 << 20).ok());
    EXPECT_FALSE(codegen::from_bytes(bytes, 1).ok());  // entries beyond the code
    for (usize size = 0; size < bytes.size(); size += 1 + size / 7)
        EXPECT_FALSE(codegen::from_bytes(std::span(bytes).first(size), 1 << 20).ok()) << size;
}

}  // namespace
}  // namespace gpurun::test
