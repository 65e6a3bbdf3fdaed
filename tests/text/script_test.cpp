// Commands of scripts, their values and their modules.
#include "text/script.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace gpurun::text {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

Script parse(std::string_view source) {
    Result<Script> script = parse_script(source, "s.wast");
    EXPECT_TRUE(script) << script.error().to_string();
    return script ? *std::move(script) : Script{};
}

std::string error(std::string_view source) {
    Result<Script> script = parse_script(source, "s.wast");
    return script ? "ok" : script.error().to_string();
}

ScriptValue value(std::string_view text) {
    Script script = parse("(assert_return (invoke \"f\") " + std::string(text) + ")");
    if (script.commands.empty() || script.commands[0].results.empty()) return {};
    return script.commands[0].results[0];
}

TEST(Script, modules) {
    Script script = parse(R"w((module $a (func))
                             (module binary "\00asm" "\01\00\00\00")
                             (module $q quote "(func" ")")
                             (module definition $d (func))
                             (module instance $i $d)
                             (module instance))w");
    ASSERT_EQ(script.commands.size(), 6u);
    EXPECT_EQ(script.commands[0].module->name, "a");
    EXPECT_EQ(script.commands[1].module->kind, ScriptModule::Kind::binary);
    EXPECT_EQ(script.commands[1].module->bytes.size(), 8u);
    EXPECT_EQ(script.commands[2].module->name, "q");
    EXPECT_FALSE(script.commands[2].module->error);
    EXPECT_EQ(script.commands[3].kind, Command::Kind::module_definition);
    EXPECT_EQ(script.commands[4].kind, Command::Kind::module_instance);
    EXPECT_EQ(script.commands[4].name, "i");
    EXPECT_EQ(script.commands[4].target, "d");
    EXPECT_EQ(script.commands[5].target, "");
}

TEST(Script, a_bad_module_does_not_end_the_script) {
    Script script =
        parse("(module)\n(module\n (func i32.foo))\n(module (func \x01))\n(invoke \"f\")");
    ASSERT_EQ(script.commands.size(), 4u);
    EXPECT_EQ(*script.commands[1].module->error, "unknown operator i32.foo");
    EXPECT_EQ(script.commands[1].module->error_position, (Position{3, 8}));
    EXPECT_EQ(script.commands[1].line, 2u);
    EXPECT_EQ(*script.commands[2].module->error, "illegal character");
    EXPECT_EQ(script.commands[3].action->field, "f");
}

TEST(Script, fields_alone_are_one_module) {
    Script script = parse("(func) (memory 0)");
    ASSERT_EQ(script.commands.size(), 1u);
    EXPECT_FALSE(script.commands[0].module->error);
}

TEST(Script, actions) {
    Script script = parse(
        R"w((register "m" $x) (invoke $x "f\00g" (i32.const -1) (ref.extern 7) (ref.null func))
                             (assert_return (get $x "e") (i64.const 0xffff_ffff_ffff_ffff)))w");
    ASSERT_EQ(script.commands.size(), 3u);
    EXPECT_EQ(script.commands[0].name, "m");
    EXPECT_EQ(script.commands[0].target, "x");
    const Action& invoke = *script.commands[1].action;
    EXPECT_EQ(invoke.module, "x");
    EXPECT_EQ(invoke.field, std::string("f\0g", 3));
    ASSERT_EQ(invoke.arguments.size(), 3u);
    EXPECT_EQ(invoke.arguments[0].bits[0], 0xffffffffu);
    EXPECT_EQ(invoke.arguments[1].number, 7u);
    EXPECT_EQ(invoke.arguments[2].heap, wasm::Heap::func);
    EXPECT_EQ(script.commands[2].action->kind, Action::Kind::get);
    EXPECT_EQ(script.commands[2].results[0].bits[0], ~u64{0});
}

TEST(Script, expectations) {
    EXPECT_EQ(value("(f32.const nan:canonical)").nan[0], Nan::canonical);
    EXPECT_EQ(value("(f64.const nan:arithmetic)").nan[0], Nan::arithmetic);
    EXPECT_EQ(value("(f32.const nan:0x200000)").bits[0], 0x7fa00000u);
    ScriptValue vector = value("(v128.const f32x4 1 nan:canonical -0 nan:arithmetic)");
    EXPECT_EQ(vector.shape, Shape::f32x4);
    EXPECT_EQ(vector.nan[1], Nan::canonical);
    EXPECT_EQ(vector.nan[3], Nan::arithmetic);
    EXPECT_EQ(vector.bits[0], 0x3f800000u);
    EXPECT_EQ(vector.bits[1], 0x80000000u);
    EXPECT_FALSE(value("(ref.null)").heap);
    EXPECT_FALSE(value("(ref.extern)").number);
    EXPECT_EQ(value("(ref.i31)").kind, ScriptValue::Kind::ref_i31);
    EXPECT_EQ(value("(either (i32.const 1) (i32.const 2))").alternatives[1].bits[0], 2u);
}

TEST(Script, values_print_as_they_are_written) {
    for (const char* text :
         {"(i32.const -7)", "(i64.const 7)", "(f32.const nan:canonical)", "(f64.const -nan:0x1)",
          "(ref.null any)", "(ref.null)", "(ref.host 3)", "(ref.func)",
          "(either (i32.const 1) (ref.null))", "(v128.const i64x2 0x1 0xff)"}) {
        EXPECT_EQ(value(text).to_string(), text);
    }
    EXPECT_EQ(value("(f32.const 1)").to_string(), "(f32.const 0x1p+0)");
}

TEST(Script, patterns_are_not_arguments) {
    EXPECT_THAT(error("(invoke \"f\" (f32.const nan:canonical))"),
                HasSubstr("unexpected token nan:canonical"));
    EXPECT_THAT(error("(invoke \"f\" (ref.extern))"), HasSubstr("unexpected token )"));
    EXPECT_THAT(error("(invoke \"f\" (either))"), HasSubstr("unexpected token either"));
}

TEST(Script, assertions) {
    Script script =
        parse(R"w((assert_trap (invoke "f") "unreachable") (assert_trap (module) "out of bounds")
                             (assert_exhaustion (invoke "f") "call stack exhausted")
                             (assert_exception (invoke "f"))
                             (assert_malformed (module quote "(") "unexpected token")
                             (assert_malformed_custom (module quote "(@custom)") "@custom")
                             (assert_invalid (module (func i32.add)) "type mismatch")
                             (assert_unlinkable (module) "unknown import"))w");
    ASSERT_EQ(script.commands.size(), 8u);
    EXPECT_TRUE(script.commands[0].action && !script.commands[0].module);
    EXPECT_TRUE(script.commands[1].module && !script.commands[1].action);
    EXPECT_EQ(script.commands[2].message, "call stack exhausted");
    EXPECT_EQ(script.commands[3].kind, Command::Kind::assert_exception);
    EXPECT_THAT(*script.commands[4].module->error, StartsWith("unexpected token"));
    EXPECT_THAT(*script.commands[5].module->error,
                StartsWith("@custom annotation: missing section name"));
    EXPECT_FALSE(script.commands[6].module->error);
    EXPECT_STREQ(to_string(script.commands[7].kind), "assert_unlinkable");
}

TEST(Script, threads) {
    Script script = parse(R"w((module $Mem (memory (export "shared") 1 1 shared))
                             (thread $T1 (shared (module $Mem))
                               (register "mem" $Mem)
                               (assert_return (invoke "run") (either (i32.const 0) (i32.const 1))))
                             (wait $T1))w");
    ASSERT_EQ(script.commands.size(), 3u);
    const Command& thread = script.commands[1];
    EXPECT_EQ(thread.name, "T1");
    EXPECT_THAT(thread.shared, testing::ElementsAre("Mem"));
    EXPECT_EQ(thread.commands.size(), 2u);
    EXPECT_EQ(script.commands[2].name, "T1");
}

TEST(Script, hostile_nesting) {
    std::string threads, alternatives = "(assert_return (invoke \"f\") ";
    for (u32 i = 0; i < 100'000; i++) {
        threads += "(thread $t ";
        alternatives += "(either ";
    }
    EXPECT_THAT(error(threads), HasSubstr("threads nest too deeply"));
    EXPECT_THAT(error(alternatives), HasSubstr("alternatives nest too deeply"));
}

TEST(Script, errors_of_the_script_itself) {
    EXPECT_EQ(error("(module)\n(frobnicate)"), "s.wast:2:2: unknown operator frobnicate");
    EXPECT_EQ(error("(module"),
              "s.wast:1:1: unexpected token: end of text, the module is not closed");
    EXPECT_EQ(error("(assert_return)"), "s.wast:1:15: unexpected token )");
    EXPECT_EQ(error("(wait)"), "s.wast:1:6: unexpected token )");
}

}  // namespace
}  // namespace gpurun::text
