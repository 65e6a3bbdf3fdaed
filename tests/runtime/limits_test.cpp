// At the limits: what is allowed works, and what is not ends in the error or trap that is meant
// for it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/format.h"
#include "process.h"

namespace gpurun::test {
namespace {

using testing::HasSubstr;

std::string repeat(const std::string& text, u32 count) {
    std::string result;
    result.reserve(text.size() * count);
    for (u32 i = 0; i < count; i++) result += text;
    return result;
}

std::string run(const std::string& wat, const std::vector<Value>& arguments = {},
                const engine::StoreOptions& options = small_options()) {
    auto process = Process::make(wat, options);
    if (!process) return process.error().to_string();
    return to_string(process->call("run", arguments));
}

engine::StoreOptions with_stack(u32 slots) {
    engine::StoreOptions options = small_options();
    options.stack_slots = slots;
    return options;
}

// ---- stacks ------------------------------------------------------------------------

constexpr const char* deep = R"(
    (global $depth (export "depth") (mut i32) (i32.const 0))
    (func $f (param i32 i64) (global.set $depth (i32.add (global.get $depth) (i32.const 1)))
      (call $f (local.get 0) (local.get 1)))
    (func (export "run") (call $f (i32.const 1) (i64.const 2))))";

TEST(Stack, IsUsedToItsEndThenTraps) {
    u32 last = 0;
    for (u32 slots : {64u, 65u, 100u, 1000u, 100'000u, 1u << 24}) {
        auto process = Process::make(deep, with_stack(slots));
        ASSERT_TRUE(process.ok()) << process.error().to_string();
        EXPECT_EQ(to_string(process->call("run")), "call stack exhausted");
        u32 depth = process->store().read_global(process->func("depth"))->low();
        EXPECT_GE(depth, last);
        EXPECT_GT(depth, slots / 16);  // 3 slots of arguments, 3 of a record
        last = depth;
        // The innermost frame is the one that was refused; run called the first.
        EXPECT_EQ(process->call("run").backtrace.size(), std::min(100u, depth + 2));
    }
}

TEST(Stack, OfHandlersAndArguments) {
    EXPECT_EQ(
        run("(tag $t) (func $f (export \"run\") (block $h (try_table (catch $t $h) (call $f))))"),
        "call stack exhausted");
    EXPECT_EQ(run("(table funcref (elem $f)) (func $f (export \"run\") (param i32)"
                  "  (call_indirect (param i32) (local.get 0) (i32.const 0)))",
                  {Value::i32(0)}),
              "call stack exhausted");
    // More results or arguments than the stack holds.
    std::string many = "(type $t (func" + repeat(" (param i64)", 500) + "))";
    EXPECT_EQ(run(many + "(func (export \"run\") (type $t))",
                  std::vector<Value>(500, Value::i64(1)), with_stack(1006)),
              "");
    EXPECT_EQ(run(many + "(func (export \"run\") (type $t) (call 0 " +
                      repeat("(i64.const 1)", 500) + "))",
                  std::vector<Value>(500, Value::i64(1)), with_stack(1007)),
              "call stack exhausted");
    auto process = Process::make(many + "(func (export \"run\") (type $t))", with_stack(100));
    ASSERT_TRUE(process.ok());
    auto completion =
        process->store().call(process->func("run"), std::vector<Value>(500, Value::i64(1)), {});
    ASSERT_FALSE(completion.ok());
    EXPECT_THAT(completion.error().message, HasSubstr("arguments do not fit the stack"));
}

TEST(Stack, HasALeastSize) {
    auto process = Process::make("(func (export \"run\"))", with_stack(1));
    ASSERT_FALSE(process.ok());
    EXPECT_THAT(process.error().message, HasSubstr("too small"));
}

// ---- frames ------------------------------------------------------------------------

std::string with_locals(const char* type, u32 count) {
    u32 last = count - 1;
    return format(
        "(func (export \"run\") (param %s) (result %s) (local%s)"
        "  (local.set %u (local.get 0)) (local.set %u (local.get %u))"
        "  (local.set 0 (local.get %u)) (local.get %u))",
        type, type, repeat(std::string(" ") + type, count - 1).c_str(), last, last / 2, last,
        count - 2, last / 2);
}

TEST(Frame, HoldsManyLocals) {
    auto options = with_stack(1 << 20);
    EXPECT_EQ(run(with_locals("i32", 50'000), {Value::i32(7)}, options), "7");
    EXPECT_EQ(run(with_locals("i64", 32'000), {Value::i64(7)}, options), "7");
    EXPECT_EQ(run(with_locals("v128", 16'000), {Value::v128({{7, 0, 0, 9}})}, options),
              "0x00000009000000000000000000000007");
    EXPECT_EQ(run(with_locals("i32", 50'000), {Value::i32(7)}), "call stack exhausted");
}

// More than the fields of an instruction can name.
TEST(Frame, HoldsFarLocals) {
    auto options = with_stack(1 << 20);
    EXPECT_EQ(run(with_locals("i64", 50'000), {Value::i64(7)}, options), "7");
    EXPECT_EQ(run(with_locals("v128", 50'000), {Value::v128({{7, 0, 0, 9}})}, options),
              "0x00000009000000000000000000000007");
    EXPECT_EQ(run(with_locals("i64", 50'000), {Value::i64(7)}), "call stack exhausted");
    // The stack has to hold the locals, some operands and a record, and no more than that.
    EXPECT_EQ(run(with_locals("i64", 50'000), {Value::i64(7)}, with_stack(100'010)), "7");
    EXPECT_EQ(run(with_locals("i64", 50'000), {Value::i64(7)}, with_stack(99'990)),
              "call stack exhausted");
}

// Returns a function with far locals $i, $l, $f, $d, $v, $r and $last.
std::string with_far_locals(const std::string& head, const std::string& body) {
    return "(func $f (export \"run\") " + head + " (local" + repeat(" i64", 40'000) +
           ") (local $i i32) (local $l i64) (local $f f32) (local $d f64) (local $v v128)"
           " (local $r externref) (local $last i64)" +
           body + ")";
}

TEST(Frame, FarLocalsAreOfAnyType) {
    EXPECT_EQ(run(with_far_locals("(param i32) (result i32 i64 f32 f64 v128 i32 i64)", R"(
                  (local.set $i (local.get 0))
                  (local.set $l (i64.extend_i32_s
                    (local.tee $i (i32.add (local.get $i) (i32.const 1)))))
                  (local.set $f (f32.convert_i32_s (local.get $i)))
                  (local.set $d (f64.mul (local.tee $d (f64.const 2.5)) (local.get $d)))
                  (local.set $v (i64x2.splat (local.get $l)))
                  (local.get $i) (local.get $l) (local.get $f) (local.get $d) (local.get $v)
                  (ref.is_null (local.get $r)) (local.get $last))"),
                  {Value::i32(6)}, with_stack(1 << 20)),
              "7 7 7 6.25 0x00000000000000070000000000000007 1 0");
}

// What a callee does to its frame is nothing to the caller's locals, in every way to call one.
TEST(Frame, FarLocalsSurviveCalls) {
    const std::string others = R"((type $t (func (param i32 i64) (result i64 i32)))
        (table funcref (elem $g $f)) (elem declare func $g)
        (func $g (param i32 i64) (result i64 i32) (local i64 i64 i64)
          (local.set 4 (i64.const -1)) (local.set 3 (i64.const -1)) (local.set 2 (i64.const -1))
          (i64.mul (local.get 1) (i64.const 3)) (i32.add (local.get 0) (i32.const 1))))";
    for (const char* call :
         {"(call $g (local.get $i) (local.get $l))",
          "(call_indirect (type $t) (local.get $i) (local.get $l) (i32.const 0))",
          "(call_ref $t (local.get $i) (local.get $l) (ref.func $g))"})
        EXPECT_EQ(run(others + with_far_locals("(param i32) (result i64 i32 i64)",
                                               std::string(R"((local.set $i (i32.const 3))
                          (local.set $l (i64.const 5)) (local.set $last (i64.const 9))
                          (i64.const 4) )") + call + R"((local.set $i) (local.set $l)
                          (local.set $last (i64.add (local.get $last)))
                          (local.get $l) (local.get $i) (local.get $last))"),
                      {Value::i32(0)}, with_stack(1 << 20)),
                  "15 4 13")
            << call;
    // Traps of call_indirect and call_ref are what they are elsewhere.
    for (auto [call, trap] :
         {std::pair("(call_indirect (type $t) (i32.const 9))", "undefined element"),
          std::pair("(call_indirect (type $t) (i32.const 1))", "indirect call type mismatch"),
          std::pair("(call_ref $t (ref.null $t))", "null function reference")})
        EXPECT_EQ(run(others + with_far_locals("(param i32) (result i64 i32)",
                                               std::string("(i32.const 1) (i64.const 2)") + call),
                      {Value::i32(0)}, with_stack(1 << 20)),
                  trap)
            << call;
}

TEST(Frame, FarLocalsAreEachCallsOwn) {
    // Nine frames fit; each has its own $l, which begins as zero.
    const std::string sum = with_far_locals("(param i32) (result i64)", R"(
        (local.set $l (i64.add (local.get $l) (i64.extend_i32_u (local.get 0))))
        (if (local.get 0)
          (then (local.set $last (call $f (i32.sub (local.get 0) (i32.const 1))))))
        (i64.add (local.get $l) (local.get $last)))");
    EXPECT_EQ(run(sum, {Value::i32(8)}, with_stack(1 << 20)), "36");
    EXPECT_EQ(run(sum, {Value::i32(100)}, with_stack(1 << 20)), "call stack exhausted");
    // A tail call is in place of its caller, whose locals are gone.
    EXPECT_EQ(run(with_far_locals("(param i32) (result i64)", R"(
                  (local.set $l (i64.add (local.get $l) (i64.const 1)))
                  (if (i32.eqz (local.get 0)) (then (return (local.get $l))))
                  (return_call $f (i32.sub (local.get 0) (i32.const 1))))"),
                  {Value::i32(300)}, with_stack(1 << 20)),
              "1");
}

TEST(Frame, FarLocalsInLoopsAndHandlers) {
    EXPECT_EQ(run("(tag $t (param i64)) (func $throw (param i64) (throw $t (local.get 0)))" +
                      with_far_locals("(param i32) (result i64)", R"(
                  (loop $again
                    (local.set $last (i64.add (local.get $last)
                      (block $caught (result i64)
                        (try_table (result i64) (catch $t $caught)
                          (local.set $l (i64.add (local.get $l) (i64.const 2)))
                          (call $throw (local.get $l))
                          (unreachable)))))
                    (br_if $again (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
                  (i64.add (i64.mul (local.get $last) (i64.const 1000)) (local.get $l)))"),
                  {Value::i32(50)}, with_stack(1 << 20)),
              "2550100");
}

TEST(Frame, ThatIsTooLargeIsAnError) {
    std::string operands = repeat("(i64.const 1)", 33'000) + repeat("drop ", 33'000);
    EXPECT_THAT(run("(func (export \"run\") " + operands + ")"),
                HasSubstr("needs more than 65535 slots"));
}

// ---- long and deep code ------------------------------------------------------------

// Branches across more code than a short distance reaches, both ways and in every form.
TEST(Code, FarBranches) {
    std::string fill = repeat(
        "(local.set 1 (i32.add (i32.mul (local.get 1) (i32.const 3)) (local.get 0)))\n", 20'000);
    std::string wat = R"((func (export "run") (param i32) (result i32) (local i32)
        (block $out
          (loop $again
            (if (i32.lt_s (local.get 0) (i32.const 5))
              (then )" +
                      fill + R"()
              (else (br_if $out (i32.gt_s (local.get 0) (i32.const 6)))))
            (br_if $out (f64.gt (f64.convert_i32_s (local.get 0)) (f64.const 100)))
            (block (br_if 0 (i64.eqz (i64.extend_i32_s (local.get 0)))) )" +
                      fill + R"()
            (local.set 0 (i32.add (local.get 0) (i32.const 1)))
            (br_if $again (i32.le_s (local.get 0) (i32.const 8)))))
        (local.get 1)))";
    u32 x = 0;
    for (u32 n = 3; n <= 8; n++) {
        if (n > 6) break;
        for (u32 i = 0; i < (n < 5 ? 40'000u : 20'000u); i++) x = x * 3 + n;
    }
    EXPECT_EQ(run(wat, {Value::i32(3)}), std::to_string(s32(x)));
}

TEST(Code, DeepNesting) {
    constexpr u32 depth = 99'000;  // the body is a block too
    std::string wat = "(func (export \"run\") (param i32) (result i32)" + repeat("block ", depth) +
                      "local.get 0 br_if 0 local.get 0 i32.const 1 i32.add" +
                      format(" local.set 0 br %u ", depth - 1) + repeat("end ", depth) +
                      "local.get 0)";
    EXPECT_EQ(run(wat, {Value::i32(0)}), "1");
    EXPECT_EQ(run(wat, {Value::i32(5)}), "5");
}

TEST(Code, LargeBrTable) {
    constexpr u32 blocks = 1000, entries = 100'000;
    std::string table;
    for (u32 i = 0; i < entries; i++) table += " " + std::to_string(i * 7 % blocks);
    // Block k adds its number on the way out, so the sum tells where the table led.
    std::string wat = "(func (export \"run\") (param i32) (result i64) (local i64)" +
                      repeat("block (result i32) ", blocks) + "i32.const 9 local.get 0 br_table" +
                      table + " 3 ";
    for (u32 i = 0; i < blocks; i++)
        wat += format("end drop local.get 1 i64.const %u i64.add local.set 1 i32.const 9 ", i);
    wat += "drop local.get 1)";
    auto process = Process::make(wat);
    ASSERT_TRUE(process.ok()) << process.error().to_string();
    auto sum_from = [](u64 first) { return blocks * (blocks - 1) / 2 - first * (first - 1) / 2; };
    for (u32 index : {0u, 1u, 999u, 50'000u, 99'998u, 99'999u}) {
        EXPECT_EQ(to_string(process->call("run", {Value::i32(index)})),
                  std::to_string(sum_from(u64(index) * 7 % blocks)))
            << index;
    }
    for (u32 index : {100'000u, ~0u})
        EXPECT_EQ(to_string(process->call("run", {Value::i32(index)})),
                  std::to_string(sum_from(3)));
}

TEST(Code, ManyParametersAndResults) {
    std::string types = repeat(" (param i64)", 1000) + repeat(" (result i64)", 1000);
    std::string body;
    for (int i = 999; i >= 0; i--) body += format("(local.get %d)", i);
    // Twice reversed, once through a block that moves them all.
    std::string wat = "(type $t (func" + types + ")) (func $f (type $t) " + body + ")" +
                      "(func (export \"run\") (type $t) (f32.const 0) " + body +
                      "(block (type $t) (br_if 0 (i32.const 1)) (unreachable)) (call $f) (return))";
    auto process = Process::make(wat, with_stack(20'000));
    ASSERT_TRUE(process.ok()) << process.error().to_string();
    std::vector<Value> arguments;
    for (u64 i = 0; i < 1000; i++) arguments.push_back(Value::i64(i * i));
    Completion completion = process->call("run", arguments);
    ASSERT_EQ(completion.results.size(), 1000u) << to_string(completion);
    for (u64 i = 0; i < 1000; i++) EXPECT_EQ(completion.results[i].wide(), i * i);
}

// Many conditional branches that each move many values: code must not grow with their product.
TEST(Code, BranchesThatMoveManyValues) {
    std::string wat = "(type $t (func" + repeat(" (result i32)", 1000) + "))" +
                      "(func (export \"run\") (param i32) (result i32) (i64.const 0)" +
                      "(block (type $t) (f32.const 0)" + repeat("(i32.const 1)", 1000) +
                      repeat("(br_if 0 (local.get 0))", 20'000) + "(br 0))" +
                      repeat("i32.add ", 999) + "(return))";
    auto module = module_from(wat);
    ASSERT_TRUE(module.ok()) << module.error().to_string();
    auto code = translate::translate(**module, {});
    ASSERT_TRUE(code.ok());
    EXPECT_LT(code->words.size(), 200'000u);
    EXPECT_EQ(run(wat, {Value::i32(0)}), "1000");
    EXPECT_EQ(run(wat, {Value::i32(1)}), "1000");
}

// ---- heap, tables, memories, instances ---------------------------------------------

TEST(Heap, Exhausted) {
    EXPECT_EQ(run("(type $a (array i8)) (func (export \"run\")"
                  "  (loop (drop (array.new_default $a (i32.const 1000))) (br 0)))"),
              "object heap exhausted");
    EXPECT_EQ(run("(type $a (array v128)) (func (export \"run\")"
                  "  (drop (array.new_default $a (i32.const -1))))"),
              "object heap exhausted");
    EXPECT_EQ(run("(type $s (struct (field i64))) (func (export \"run\")"
                  "  (loop (drop (struct.new_default $s)) (br 0)))"),
              "object heap exhausted");
    EXPECT_EQ(run("(tag $t (param i64)) (func (export \"run\")"
                  "  (loop $l (block $h (result i64)"
                  "    (try_table (catch $t $h) (throw $t (i64.const 1))) (unreachable))"
                  "    (drop) (br $l)))"),
              "object heap exhausted");
}

TEST(Table, GrowsToItsCapacityOnly) {
    constexpr const char* wat = R"((table $t 10 funcref) (table $m 1 20 funcref)
        (func (export "run") (result i32 i32 i32 i32 i32)
          (table.grow $t (ref.null func) (i32.const 10))
          (table.grow $t (ref.null func) (i32.const -1))
          (table.grow $m (ref.null func) (i32.const 19))
          (table.grow $m (ref.null func) (i32.const 1))
          (table.size $m)))";
    EXPECT_EQ(run(wat), "10 -1 1 -1 20");
    EXPECT_THAT(run("(table 200000 funcref) (func (export \"run\"))"),
                HasSubstr("larger than the limit"));
}

TEST(Memory, GrowsToItsLimits) {
    constexpr const char* wat = R"((memory $a 1 3) (memory $b 0) (memory $c i64 1)
        (func (export "run") (result i32 i32 i32 i32 i32 i64 i64 i32)
          (memory.grow $a (i32.const 2)) (memory.grow $a (i32.const 1))
          (memory.grow $b (i32.const 256)) (memory.grow $b (i32.const 1))
          (memory.grow $b (i32.const -1))
          (memory.grow $c (i64.const 255)) (memory.grow $c (i64.const -1))
          (i32.store $b (i32.const 0xfffffc) (i32.const 5))
          (i32.load $b (i32.const 0xfffffc))))";
    EXPECT_EQ(run(wat), "1 -1 0 -1 -1 1 -1 5");
    EXPECT_THAT(run("(memory 300) (func (export \"run\"))"), HasSubstr("--memory raises it"));
    EXPECT_THAT(run(repeat("(memory 0)", 5) + "(func (export \"run\"))"),
                HasSubstr("no address space left"));
}

TEST(Memory, AddressesNearTheEndOf64Bits) {
    for (const char* access :
         {"(i32.load (local.get 0))", "(i32.load8_u offset=0xffffffffffffffff (local.get 0))",
          "(i32.load offset=16 (local.get 0))", "(i32.atomic.load offset=8 (local.get 0))"}) {
        std::string wat =
            std::string("(memory i64 1) (func (export \"run\") (param i64) (result i32) ") +
            access + ")";
        for (u64 address :
             {~u64{0}, ~u64{0} - 3, ~u64{0} - 7, ~u64{0} - 15, u64{1} << 63, u64{0x10000}}) {
            const bool is_unaligned = wat.find("atomic") != wat.npos && address % 4 != 0;
            EXPECT_EQ(run(wat, {Value::i64(address)}),
                      is_unaligned ? "unaligned atomic" : "out of bounds memory access")
                << access << address;
        }
    }
    constexpr const char* bulk =
        R"((memory i64 1) (data $d "abc") (func (export "run") (param i64 i64)
        (memory.fill (local.get 0) (i32.const 1) (local.get 1))))";
    EXPECT_EQ(run(bulk, {Value::i64(~u64{0}), Value::i64(2)}), "out of bounds memory access");
    EXPECT_EQ(run(bulk, {Value::i64(2), Value::i64(~u64{0})}), "out of bounds memory access");
    EXPECT_EQ(run(bulk, {Value::i64(0x10000), Value::i64(0)}), "");
    EXPECT_EQ(run("(table i64 3 funcref) (func (export \"run\") (param i64)"
                  "  (drop (table.get (local.get 0))))",
                  {Value::i64(u64{1} << 32)}),
              "out of bounds table access");
    EXPECT_EQ(run("(table i64 3 funcref) (func (export \"run\") (param i64)"
                  "  (call_indirect (local.get 0)))",
                  {Value::i64(u64{1} << 32)}),
              "undefined element");
}

// The cached size and place of memory 0 are those of the instance that runs.
TEST(Memory, GrownByAnotherInstance) {
    auto process = Process::make(small_options());
    ASSERT_TRUE(process.ok());
    ASSERT_TRUE(process
                    ->add("a", R"((memory (export "m") 1 10)
        (func (export "grow") (result i32) (memory.grow (i32.const 1)))
        (func (export "grow_and_call") (param funcref) (drop (memory.grow (i32.const 1)))))")
                    .ok());
    ASSERT_TRUE(process
                    ->add("b", R"((import "a" "grow" (func $grow (result i32)))
        (import "a" "m" (memory $m 1 10)) (memory $own 3)
        (tag $t)
        (func (export "throwing") (drop (call $grow)) (throw $t))
        (export "t" (tag $t))
        (func (export "tail") (result i32) (return_call $grow)))")
                    .ok());
    ASSERT_TRUE(process
                    ->add("", R"((import "a" "m" (memory 1))
        (import "b" "throwing" (func $throwing)) (import "b" "t" (tag $t))
        (import "b" "tail" (func $tail (result i32)))
        (func (export "run") (result i32 i32 i32 i32 i32)
          (memory.size) (call $tail) (memory.size)
          (i32.store (i32.const 131068) (i32.const 1))
          (block $h (try_table (catch $t $h) (call $throwing)))
          (memory.size)
          (i32.load (i32.const 196604))))")
                    .ok());
    EXPECT_EQ(to_string(process->call("run")), "1 1 2 3 0");
}

TEST(Instances, AreLimited) {
    engine::StoreOptions options = small_options();
    auto process = Process::make(options);
    ASSERT_TRUE(process.ok());
    auto module = module_from("(global (export \"g\") (mut i32) (i32.const 5))");
    ASSERT_TRUE(module.ok());
    for (u32 i = 0; i < max_instances; i++)
        ASSERT_TRUE(process->store().instantiate(*module, {}, {}).ok()) << i;
    auto made = process->store().instantiate(*module, {}, {});
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.error().message, "a process holds 4095 instances at the most");
}

// A module whose code does not fit leaves the process usable.
TEST(Instances, CodeThatDoesNotFit) {
    engine::StoreOptions options = small_options();
    options.code_words = 2000;
    auto process = Process::make(options);
    ASSERT_TRUE(process.ok());
    std::string types;
    for (u32 i = 0; i < 2500; i++) types += format("(type (array (ref null %u)))", i);
    auto refused = process->add("", "(type (func)) " + types + "(func (export \"run\"))");
    ASSERT_FALSE(refused.ok());
    EXPECT_THAT(refused.error().message, HasSubstr("does not fit"));
    ASSERT_TRUE(process
                    ->add("", R"((type $a (array i8)) (func (export "run") (result i32)
        (ref.test (ref $a) (array.new_default $a (i32.const 1)))))")
                    .ok());
    EXPECT_EQ(to_string(process->call("run")), "1");
}

}  // namespace
}  // namespace gpurun::test
