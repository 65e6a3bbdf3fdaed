// Text in, bytes or a message out. What the bytes mean is asked of the decoder.
#include "text/assemble.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "wasm/module.h"

namespace gpurun::text {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string error(std::string_view source) {
    Result<Assembled> result = assemble(source, "t.wat");
    return result ? "ok" : result.error().to_string();
}

std::string hex(const wasm::Bytes& bytes) {
    std::string out;
    char buffer[4];
    for (u8 byte : bytes) {
        snprintf(buffer, sizeof buffer, "%02x", byte);
        out += buffer;
    }
    return out;
}

// The body of the only function, without its locals, or the error.
std::string body(std::string_view instructions, std::string_view fields = "") {
    std::string source =
        "(module " + std::string(fields) + " (func " + std::string(instructions) + "))";
    Result<Assembled> result = assemble(source, "t.wat");
    if (!result) return result.error().to_string();
    std::string bytes = hex(result->bytes);
    u32 begin = result->lines.front().first, end = result->lines.back().first + 1;
    return bytes.substr(2 * begin, 2 * (end - begin));
}

std::shared_ptr<const wasm::Module> load(std::string_view source) {
    Result<Assembled> result = assemble(source, "t.wat");
    EXPECT_TRUE(result) << result.error().to_string();
    if (!result) return nullptr;
    auto module = wasm::load(std::move(result->bytes));
    EXPECT_TRUE(module) << module.error().to_string();
    return module ? *module : nullptr;
}

TEST(Assemble, empty) {
    Result<Assembled> result = assemble("(module)", "t.wat");
    ASSERT_TRUE(result);
    EXPECT_EQ(hex(result->bytes), "0061736d01000000");
    EXPECT_EQ(error(""), "ok");
}

TEST(Assemble, errors_name_place_and_token) {
    EXPECT_EQ(error("(module\n  (func\n      i32.foo))"), "t.wat:3:7: unknown operator i32.foo");
    EXPECT_EQ(error("(func (i32.const $x))"), "t.wat:1:18: unexpected token $x");
    EXPECT_EQ(error("(func (local.get $x))"), "t.wat:1:18: unknown local $x");
    EXPECT_EQ(error("(func"), "t.wat:1:6: unexpected token: end of text");
    EXPECT_EQ(error("(module) x"), "t.wat:1:10: unknown operator x");
}

TEST(Assemble, folded_is_as_flat) {
    EXPECT_EQ(body("(drop (i32.add (i32.const 1) (i32.const 2)))"), "410141026a1a0b");
    EXPECT_EQ(body("i32.const 1 i32.const 2 i32.add drop"), "410141026a1a0b");
    EXPECT_EQ(body("(if $l (i32.const 0) (then (br $l)) (else nop))"), "410004400c0005010b0b");
    EXPECT_EQ(body("i32.const 0 if $l br $l else $l nop end $l"), "410004400c0005010b0b");
    EXPECT_EQ(body("(loop block end)"), "034002400b0b0b");
}

TEST(Assemble, labels) {
    EXPECT_EQ(body("(block $a (block $b (block $a (br_table $a $b 3 $b (i32.const 0)))))"),
              "0240024002404100"
              "0e03000103010b0b0b0b");
    EXPECT_THAT(body("block $a end $b"), HasSubstr("mismatching label $b"));
    EXPECT_THAT(body("(block $a) (br $a)"), HasSubstr("unknown label $a"));
}

TEST(Assemble, blocks_that_do_not_close) {
    EXPECT_THAT(body("block"), HasSubstr("unexpected token )"));
    EXPECT_THAT(body("(block end)"), HasSubstr("unexpected token end"));
    EXPECT_THAT(body("else"), HasSubstr("unexpected token else"));
    EXPECT_THAT(body("(i32.eqz i32.const 0)"), HasSubstr("unexpected token i32.const"));
}

TEST(Assemble, rows_that_share_a_text) {
    EXPECT_EQ(body("select"), "1b0b");
    EXPECT_EQ(body("select (result i32)"), "1c017f0b");
    EXPECT_EQ(body("select (result) (result)"), "1c000b");
    EXPECT_EQ(body("ref.test (ref i31)"), "fb146c0b");
    EXPECT_EQ(body("ref.test i31ref"), "fb156c0b");
    EXPECT_EQ(body("ref.cast (ref null 0)"), "fb17000b");
    EXPECT_EQ(body("br_on_cast 0 anyref (ref eq)"), "fb1801006e6d0b");
}

TEST(Assemble, memory_arguments) {
    EXPECT_EQ(body("i32.load"), "2802000b");
    EXPECT_EQ(body("i32.load offset=0x10 align=1"), "2800100b");
    EXPECT_EQ(body("i32.load $b offset=1", "(memory 1) (memory $b 1)"), "284201010b");
    EXPECT_EQ(body("v128.load8_lane 3"), "fd540000030b");
    EXPECT_EQ(body("v128.load8_lane 1 3"), "fd54400100030b");
    EXPECT_EQ(body("v128.load8_lane offset=4 3"), "fd540004030b");
    EXPECT_EQ(body("i32.atomic.load"), "fe1002000b");
    EXPECT_EQ(body("memory.init 1 2"), "fc0802010b");
    EXPECT_EQ(body("memory.init 2"), "fc0802000b");
    EXPECT_EQ(body("memory.copy 1 2"), "fc0a01020b");
    EXPECT_THAT(body("i32.load align=3"), HasSubstr("alignment must be a power of two, got 3"));
    EXPECT_THAT(body("i32.load offset=-1"), HasSubstr("unknown operator offset=-1"));
}

TEST(Assemble, vectors) {
    EXPECT_EQ(body("v128.const i32x4 1 -1 0x10 0"),
              "fd0c"
              "01000000ffffffff1000000000000000"
              "0b");
    EXPECT_EQ(body("v128.const f64x2 1 -nan"),
              "fd0c"
              "000000000000f03f000000000000f8ff"
              "0b");
    EXPECT_THAT(body("v128.const i64x2 1"),
                HasSubstr("wrong number of lane literals: i64x2 needs 2, got 1"));
    EXPECT_THAT(body("v128.const i8x16 256 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0"),
                HasSubstr("constant out of range: 256"));
    EXPECT_THAT(body("i8x16.shuffle 0"), HasSubstr("invalid lane length"));
    EXPECT_THAT(body("i8x16.extract_lane_s 256"), HasSubstr("i8 constant out of range: 256"));
}

TEST(Assemble, exceptions) {
    EXPECT_EQ(body("(block $l (try_table (catch $e $l) (catch_all_ref 1) nop))", "(tag $e)"),
              "02401f4002000000030101"
              "0b0b0b");
    EXPECT_EQ(body("(try (do nop) (catch $e drop) (catch_all (rethrow 0)))", "(tag $e)"),
              "06400107001a1909000b0b");
    EXPECT_EQ(body("(block $b (try (do) (delegate $b)))"), "0240064018000b0b");
    EXPECT_EQ(body("try catch 0 catch_all end"),
              "0640070019"
              "0b0b");
    EXPECT_THAT(body("(try (do) (catch_all) (delegate 0))"),
                HasSubstr("unexpected token delegate"));
}

TEST(Assemble, implicit_types_follow_the_explicit_ones) {
    auto module = load(R"((func $a (result f64) (f64.const 0))
                          (func $b (param i32))
                          (type (func (param i32)))
                          (func $c (type 1) (result f64) (f64.const 0)))");
    ASSERT_TRUE(module);
    EXPECT_EQ(module->type_ids.size(), 2u);
    EXPECT_EQ(module->funcs[0].type, module->funcs[2].type);
    EXPECT_THAT(error("(type (func)) (func (type 0) (result i32))"),
                HasSubstr("inline function type"));
    EXPECT_THAT(error("(func (type 1) (param i32))"), HasSubstr("unknown type 1"));
    EXPECT_EQ(error("(func (type 1))"), "ok");  // invalid, not malformed
}

TEST(Assemble, a_type_in_place_is_never_one_of_a_larger_group) {
    auto module = load("(rec (type (func)) (type (func))) (func)");
    ASSERT_TRUE(module);
    EXPECT_EQ(module->type_ids.size(), 3u);
    EXPECT_EQ(module->funcs[0].type, module->type_ids[2]);
}

TEST(Assemble, fields_and_supertypes) {
    auto module =
        load(R"((rec (type $node (sub (struct (field $next (mut (ref null $node))) (field i8 i16))))
                               (type $leaf (sub final $node
                                 (struct (field (mut (ref null $node))) (field i8) (field i16)))))
                          (type $list (array (mut (ref null $node))))
                          (func (param (ref $leaf)) (result (ref null $node))
                            (struct.get $node $next (local.get 0))))");
    ASSERT_TRUE(module);
    EXPECT_EQ(module->types[module->type_ids[0]].fields.size(), 3u);
    EXPECT_THAT(error("(type (struct (field $x i32) (field $x i32)))"),
                HasSubstr("duplicate field $x"));
}

TEST(Assemble, inline_imports_and_exports) {
    auto module = load(R"((func $f (export "a") (export "b") (import "m" "n") (param i32))
                          (memory (export "mem") (data "hello" "\00"))
                          (table (export "tab") funcref (elem $f $f)))");
    ASSERT_TRUE(module);
    EXPECT_EQ(module->imports.size(), 1u);
    EXPECT_EQ(module->exports.size(), 4u);
    EXPECT_EQ(module->data[0].end - module->data[0].begin, 6u);
    EXPECT_EQ(module->elems[0].funcs.size(), 2u);
    EXPECT_THAT(error("(memory 1) (import \"\" \"\" (func))"), HasSubstr("import after memory"));
    EXPECT_THAT(error("(func $f) (func $f)"), HasSubstr("duplicate func $f"));
    EXPECT_THAT(error("(import \"\\80\" \"\" (func))"), HasSubstr("malformed UTF-8 encoding"));
}

TEST(Assemble, memories_and_tables_of_64_bits) {
    auto module = load(R"((memory $a i64 1 2) (memory $s i64 1 2 shared) (memory $d i64 (data "x"))
                          (table $t i64 3 funcref) (table i64 funcref (elem 0)) (func)
                          (data (memory $a) (offset i64.const 5) "y")
                          (elem (table $t) (i64.const 1) func 0))");
    ASSERT_TRUE(module);
    EXPECT_TRUE(module->memories[1].limits.is_64 && module->memories[1].limits.is_shared);
    EXPECT_TRUE(module->tables[1].type.limits.is_64);
    EXPECT_EQ(module->data[0].memory, 2u);
}

TEST(Assemble, names) {
    auto module = load(R"((module $m (func $f (param $p i32) (local i64) (local $q i64))
                                     (func (@name "λ")) (func $g (@name "h"))))");
    ASSERT_TRUE(module);
    EXPECT_EQ(module->names.module, "m");
    using Names = std::vector<std::pair<u32, std::string>>;
    EXPECT_EQ(module->names.funcs, (Names{{0, "f"}, {1, "λ"}, {2, "h"}}));
    ASSERT_EQ(module->names.locals.size(), 1u);
    EXPECT_EQ(module->names.locals[0].second, (Names{{0, "p"}, {2, "q"}}));
    EXPECT_THAT(error("(func (nop (@name \"x\")))"), HasSubstr("misplaced @name annotation"));
}

TEST(Assemble, custom_sections) {
    auto module = load(R"((@custom "a" "1" "2") (func) (@custom "b" (before type) "3"))");
    ASSERT_TRUE(module);
    ASSERT_EQ(module->customs.size(), 2u);
    EXPECT_EQ(module->customs[0].name, "b");
    EXPECT_EQ(module->customs[1].end - module->customs[1].begin, 2u);
    EXPECT_THAT(error("(@custom \"a\" (aft type))"),
                HasSubstr("@custom annotation: malformed placement"));
}

TEST(Assemble, branch_hints) {
    auto module = load(R"((func (param i32) (local i64)
                            (@metadata.code.branch_hint "\01") (if (local.get 0) (then))
                            local.get 0 (@metadata.code.branch_hint "\00") br_if 0))");
    ASSERT_TRUE(module);
    ASSERT_EQ(module->branch_hints.size(), 2u);
    const wasm::BranchHint& first = module->branch_hints[0];
    EXPECT_EQ(module->bytes[module->funcs[0].body + first.offset], 0x04);
    EXPECT_TRUE(first.likely);
    const wasm::BranchHint& second = module->branch_hints[1];
    EXPECT_EQ(module->bytes[module->funcs[0].body + second.offset], 0x0d);
    EXPECT_FALSE(second.likely);
    EXPECT_THAT(error("(func (@metadata.code.branch_hint \"\\01\") nop)"),
                HasSubstr("invalid target"));
}

TEST(Assemble, lines_of_instructions) {
    Result<Assembled> result = assemble("(func\n  (drop\n    (i32.const 1)))", "t.wat");
    ASSERT_TRUE(result);
    ASSERT_EQ(result->lines.size(), 3u);
    EXPECT_EQ(result->lines[0].second, (Position{3, 6}));
    EXPECT_EQ(result->bytes[result->lines[0].first], 0x41);
    EXPECT_EQ(result->lines[1].second, (Position{2, 4}));
    EXPECT_EQ(result->bytes[result->lines[1].first], 0x1a);
    EXPECT_EQ(result->bytes[result->lines[2].first], 0x0b);
}

TEST(Assemble, a_failed_first_pass_is_the_end) {
    EXPECT_THAT(error("(rec (type $a (\x01)) (type $b (struct)) (type $c"), StartsWith("t.wat:"));
}

TEST(Assemble, nesting_costs_no_stack) {
    constexpr u32 depth = 200'000;
    std::string source = "(func ";
    for (u32 i = 0; i < depth; i++) source += "(block $a ";
    source += "(br $a)";
    source.append(depth, ')');
    source += ")";
    EXPECT_EQ(error(source), "ok");
    EXPECT_THAT(error(std::string(1'000'000, '(')), HasSubstr("unexpected token ("));
}

}  // namespace
}  // namespace gpurun::text
