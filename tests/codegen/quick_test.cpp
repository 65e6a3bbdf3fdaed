// Quick code: which instructions have stencils, how it is left and entered in the middle, and how
// it calls, and is called by, code of the other tiers.
#include <gtest/gtest.h>

#include <set>

#include "../runtime/process.h"
#include "codegen/quick.h"
#include "codegen/stencils.h"
#include "device/device.h"
#include "translate/translate.h"

namespace gpurun::test {
namespace {

using device::Tier;

class Quick : public testing::Test {
protected:
    void SetUp() override {
        if (!codegen::QuickCode::is_available()) GTEST_SKIP() << "there are no stencils here";
    }
};

std::string call(const std::string& wat, Tier tier, const std::vector<Value>& arguments = {}) {
    engine::StoreOptions options = small_options();
    options.tier = tier;
    auto process = Process::make(wat, options);
    if (!process) return process.error().to_string();
    return to_string(process->call("run", arguments));
}

// The tier `partial` has functions 1 and 3 by LLVM, 2 as quick code, and 0 interpreted.
void expect_same(const std::string& wat, const std::vector<Value>& arguments = {}) {
    const std::string expected = call(wat, Tier::interp, arguments);
    EXPECT_EQ(call(wat, Tier::quick, arguments), expected);
    EXPECT_EQ(call(wat, Tier::partial, arguments), expected);
}

TEST_F(Quick, HasStencilsForWhatIsCommon) {
    std::set<std::string> missing;
#define OP(name)
#define HOT(name) \
    if (codegen::stencil_of[u32(CodeOp::name)].size == 0) missing.insert(#name);
#define UN(name, R, A) HOT(name)
#define UN_TRAP UN
#define BIN(name, R, A, B) HOT(name)
#define BIN_TRAP BIN
#define VEC_UN UN
#define VEC_BIN BIN
#define CMP_INT(name, T) HOT(name) HOT(name##_k) HOT(br_##name) HOT(br_##name##_k)
#define CMP_FLOAT(name, T) HOT(name) HOT(br_##name)
#define BIN_INT(name, T) HOT(name) HOT(name##_k)
#define LOAD(name, R, M) HOT(name) HOT(name##_w)
#define STORE(name, A, M) LOAD(name, A, M)
#include "abi/code_ops.def"
#undef OP
    EXPECT_EQ(missing, std::set<std::string>{"halt"});
}

TEST_F(Quick, HasNoRoomForMoreThanWasReserved) {
    auto code = codegen::QuickCode::make(10);
    ASSERT_TRUE(code.ok()) << code.error().to_string();
    const std::vector<u64> small = {code_word(CodeOp::enter, 0, 0, 4), code_word(CodeOp::ret)};
    auto made = (*code)->add(small, 0);
    ASSERT_TRUE(made.ok()) << made.error().to_string();
    EXPECT_EQ(made->entries.size(), 2u);
    const std::vector<u64> large(100'000, code_word(CodeOp::ret));
    EXPECT_FALSE((*code)->add(large, 2).ok());
}

// Another thread may enter a function before the table has all of it: br_table then leaves.
TEST_F(Quick, LeavesWhereTheTableHasNoMore) {
    const char* wat = R"((func (export "run") (param i32) (result i32)
        (block $c (block $b (block $a (br_table $a $b $c (local.get 0)))
            (return (i32.const 10)))
            (return (i32.const 20)))
        (i32.const 30)))";
    auto module = module_from(wat);
    ASSERT_TRUE(module.ok());
    auto translated = translate::translate(**module, {});
    ASSERT_TRUE(translated.ok());
    engine::StoreOptions options = small_options();
    options.tier = Tier::interp;
    auto process = Process::make(wat, options);
    ASSERT_TRUE(process.ok());
    auto quick = codegen::QuickCode::make(translated->words.size());
    ASSERT_TRUE(quick.ok());
    const u32 first = translated->entries[0];
    auto function = (*quick)->add(
        std::span(translated->words).subspan(first, translated->instantiate - first), first);
    ASSERT_TRUE(function.ok());
    function->entries.resize(1);
    const u32 begin = process->store().entry_of(process->func("run")) - first;
    auto burst = process->store().make_burst(process->func("run"), {0, 1, 2}, 3);
    ASSERT_TRUE(burst.ok()) << burst.error().to_string();
    burst->tier = Tier::native;
    burst->native.push_back({device::use_quick_code(*quick, {*function}), begin});
    auto device = *device::open_device("cpu");
    auto outcome = device->run_burst({&*burst, 1}, {});
    ASSERT_TRUE(outcome.ok()) << outcome.error().to_string();
    for (u32 i = 0; i < 3; i++)
        EXPECT_EQ(outcome->parts[0].of(i).back(), 10 * (i + 1)) << "process " << i;
}

TEST_F(Quick, CallsAndIsCalledByOtherTiers) {
    expect_same(R"((func $a (param i32) (result i32)
            (if (result i32) (local.get 0)
                (then (i32.add (call $b (i32.sub (local.get 0) (i32.const 1))) (i32.const 1)))
                (else (i32.const 7))))
        (func $b (param i32) (result i32)
            (if (result i32) (local.get 0)
                (then (i32.add (call $c (i32.sub (local.get 0) (i32.const 1))) (i32.const 10)))
                (else (i32.const 7))))
        (func $c (param i32) (result i32)
            (if (result i32) (local.get 0)
                (then (i32.add (call $a (i32.sub (local.get 0) (i32.const 1))) (i32.const 100)))
                (else (i32.const 7))))
        (func (export "run") (param i32) (result i32) (call $c (local.get 0))))",
                {Value::i32(1000)});
}

TEST_F(Quick, CallsByReferencesAndTables) {
    // Deep, by way of the runtime: more than the host's stack has room for.
    expect_same(R"((type $f (func (param i32) (result i32)))
        (table funcref (elem $down $down_ref))
        (elem declare func $down_ref)
        (func $down (type $f)
            (if (result i32) (local.get 0)
                (then (i32.add (call_ref $f (i32.sub (local.get 0) (i32.const 1))
                                            (ref.func $down_ref)) (i32.const 1)))
                (else (i32.const 0))))
        (func $down_ref (type $f)
            (if (result i32) (local.get 0)
                (then (i32.add (call_indirect (type $f) (i32.sub (local.get 0) (i32.const 1))
                                              (i32.and (local.get 0) (i32.const 1)))
                               (i32.const 1)))
                (else (i32.const 0))))
        (func (export "run") (result i32) (call $down (i32.const 3000))))");
}

TEST_F(Quick, LeavesForTrapsAndExceptions) {
    expect_same(R"((tag $t (param i32))
        (func $throws (param i32) (throw $t (local.get 0)))
        (func $catches (param i32) (result i32)
            (block $h (result i32)
                (try_table (catch $t $h) (call $throws (local.get 0)))
                (i32.const -1)))
        (func (export "run") (result i32) (local i32 i32)
            (loop $l
                (local.set 1 (i32.add (local.get 1) (call $catches (local.get 0))))
                (br_if $l (i32.lt_u (local.tee 0 (i32.add (local.get 0) (i32.const 1)))
                                    (i32.const 100))))
            (local.get 1)))");
    expect_same(R"((memory 1) (func $f (param i32) (result i32) (i32.load (local.get 0)))
        (func (export "run") (result i32) (call $f (i32.const 65533))))");
    expect_same(R"((func $f (param i32 i32) (result i32) (i32.div_s (local.get 0) (local.get 1)))
        (func (export "run") (result i32) (call $f (i32.const 0x80000000) (i32.const -1))))");
    expect_same(R"((func $f (export "run") (result i32) (i32.add (call $f) (i32.const 1))))");
}

TEST_F(Quick, SeesMemoryThatACalleeHasGrown) {
    expect_same(R"((memory 1 4)
        (func $grow (result i32) (memory.grow (i32.const 1)))
        (func $use (result i32) (i32.store (i32.const 65536) (i32.const 42)) (call $grow) drop
            (i32.store (i32.const 131072) (i32.const 1)) (i32.load (i32.const 65536)))
        (func (export "run") (result i32) (drop (call $grow))
            (i32.add (call $use) (i32.mul (memory.size) (i32.const 1000)))))");
}

}  // namespace
}  // namespace gpurun::test
