// Function bodies and constant expressions: what is refused, in which words, at which byte.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bytes.h"
#include "wasm/limits.h"

namespace gpurun::wasm::test {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

// The module that most bodies stand in:
//   types     0 (func)  1 (func (param i32) (result i32))  2 (func (result i32 i64))
//             3 (struct (mut i32) i8)  4 (array (mut i8))  5 (array (ref func))
//   functions 0 of type 0, 1 of type 1, 2 of type 2, 3 the body; function 1 is exported
//   table 0: funcref; memories: 0 of 32, 1 of 64 bits; tags: 0 of type 0, 1 (param i32)
//   globals: 0 i32, 1 (mut i64); elem 0: declares function 0; data 0: empty
Bytes module_with(const Bytes& type, const Bytes& code) {
    return module_of(
        {section(type_id, vec({{0x60, 0, 0},
                               {0x60, 1, 0x7f, 1, 0x7f},
                               {0x60, 0, 2, 0x7f, 0x7e},
                               {0x5f, 2, 0x7f, 1, 0x78, 0},
                               {0x5e, 0x78, 1},
                               {0x5e, 0x64, 0x70, 0},
                               {0x60, 1, 0x7f, 0},
                               type})),
         section(func_id, {4, 0, 1, 2, 7}), section(table_id, {1, 0x70, 0, 1}),
         section(memory_id, {2, 0, 1, 4, 1}), section(tag_id, {2, 0, 0, 0, 6}),
         section(global_id, {2, 0x7f, 0, 0x41, 0, 0x0b, 0x7e, 1, 0x42, 0, 0x0b}),
         section(export_id, vec({text("f") + Bytes{0, 1}})), section(elem_id, vec({{3, 0, 1, 0}})),
         section(data_count_id, {1}),
         section(code_id, vec({body({}), body({0x20, 0}), body({0x41, 0, 0x42, 0}), code})),
         section(data_id, vec({{1, 0}}))});
}

const Bytes no_params = {0x60, 0, 0};

// The outcome of a body of type [] -> [], without "0x…: "; `locals` as in the binary format.
std::string check(const Bytes& instrs, const Bytes& locals = {0}, const Bytes& type = no_params) {
    std::string got = outcome(module_with(type, body(instrs, locals)));
    usize colon = got.find(": ");
    return colon == std::string::npos ? got
                                      : got.substr(0, got.find(' ') + 1) + got.substr(colon + 2);
}

TEST(Validate, messages_name_both_sides) {
    EXPECT_EQ(check({0x41, 1, 0x43, 0, 0, 0, 0, 0x6a, 0x1a}),
              "invalid type mismatch: i32.add expects i32, got f32");
    EXPECT_EQ(check({0x6a}), "invalid type mismatch: i32.add expects i32, got nothing");
    EXPECT_EQ(check({0x1a}), "invalid type mismatch: drop expects a value, got nothing");
    EXPECT_EQ(check({0x41, 0}),
              "invalid type mismatch: end expects [] at the end of the block, got 1 values more "
              "(i32 first)");
    EXPECT_EQ(check({0x20, 5}), "invalid unknown local 5: there are 0");
    EXPECT_EQ(check({0x23, 9}), "invalid unknown global 9: there are 2");
    EXPECT_EQ(check({0x41, 0, 0x24, 0}), "invalid immutable global: global.set of global 0");
    EXPECT_EQ(check({0x0c, 1}), "invalid unknown label 1: there are 1");
    EXPECT_EQ(check({0x10, 99}), "invalid unknown function 99: there are 4");
}

TEST(Validate, the_offset_is_that_of_the_instruction) {
    Bytes bytes = module_with(no_params, body({0x01, 0x01, 0x6a}));
    auto loaded = load_or_explain(bytes);
    ASSERT_TRUE(std::holds_alternative<LoadError>(loaded));
    EXPECT_EQ(bytes[std::get<LoadError>(loaded).error.offset], 0x6a);
}

TEST(Validate, ends) {
    EXPECT_THAT(check({0x02, 0x40}),
                StartsWith("malformed unexpected end of section or function: END opcode expected"));
    EXPECT_THAT(check({0x0b, 0x01}), StartsWith("malformed section size mismatch"));
    EXPECT_THAT(check({0x05}), StartsWith("malformed END opcode expected: else without if"));
    EXPECT_THAT(check({0xff}), StartsWith("malformed illegal opcode ff"));
    EXPECT_THAT(check({0xfd, 0xff, 0x7f}), StartsWith("malformed illegal opcode fd 3fff"));
}

TEST(Validate, blocks) {
    EXPECT_EQ(check({0x02, 0x7f, 0x41, 1, 0x0b, 0x1a}), "ok");
    EXPECT_EQ(check({0x41, 1, 0x02, 1, 0x0b, 0x1a}), "ok");  // (param i32) (result i32)
    EXPECT_EQ(check({0x02, 2, 0x41, 1, 0x42, 1, 0x0b, 0x1a, 0x1a}), "ok");  // two results
    EXPECT_THAT(check({0x02, 3, 0x0b}),
                HasSubstr("block expects a function type, type 3 is a struct type"));
    EXPECT_THAT(check({0x02, 0x20, 0x0b}), HasSubstr("unknown type 32"));
    EXPECT_EQ(check({0x41, 0, 0x04, 0x40, 0x05, 0x0b}), "ok");
    EXPECT_THAT(check({0x41, 0, 0x04, 0x7f, 0x41, 0, 0x0b, 0x1a}),
                HasSubstr("type mismatch: if without else expects results [i32], got []"));
    EXPECT_EQ(check({0x03, 0x40, 0x41, 0, 0x0d, 0, 0x0b}), "ok");
}

TEST(Validate, branches) {
    EXPECT_EQ(check({0x02, 0x7f, 0x41, 1, 0x0c, 0, 0x0b, 0x1a}), "ok");
    EXPECT_EQ(check({0x02, 0x7f, 0x0c, 0, 0x0b, 0x1a}),
              "invalid type mismatch: br expects i32, got nothing");
    EXPECT_EQ(check({0x41, 0, 0x0e, 1, 0, 0}), "ok");
    EXPECT_THAT(check({0x02, 0x7f, 0x41, 0, 0x41, 0, 0x0e, 1, 1, 0, 0x0b, 0x1a}),
                HasSubstr("labels of 0 and of 1 values"));
    EXPECT_THAT(check({0x41, 0, 0x0e, 1, 3, 0}), HasSubstr("unknown label 3"));
    EXPECT_EQ(check({0x0f}), "ok");
}

TEST(Validate, unreachable_code_is_polymorphic_but_not_free) {
    EXPECT_EQ(check({0x00, 0x6a, 0x1a}), "ok");
    EXPECT_EQ(check({0x00, 0x43, 0, 0, 0, 0, 0x6a, 0x1a}),
              "invalid type mismatch: i32.add expects i32, got f32");
    EXPECT_EQ(check({0x00, 0x1b, 0x1a}), "ok");        // select of nothing
    EXPECT_EQ(check({0x00, 0xd4, 0xd1, 0x1a}), "ok");  // ref.as_non_null, ref.is_null
    EXPECT_THAT(check({0x00, 0xd4, 0x6a, 0x1a}), HasSubstr("i32.add expects i32, got (ref bot)"));
    EXPECT_EQ(check({0x02, 0x40, 0x0c, 0, 0x0b}), "ok");
}

TEST(Validate, select_takes_numbers_or_a_type) {
    EXPECT_THAT(check({0xd0, 0x70, 0xd0, 0x70, 0x41, 0, 0x1b, 0x1a}),
                HasSubstr("select expects a number or vector, got funcref"));
    EXPECT_EQ(check({0xd0, 0x70, 0xd0, 0x70, 0x41, 0, 0x1c, 1, 0x70, 0x1a}), "ok");
    EXPECT_THAT(check({0x41, 0, 0x41, 0, 0x41, 0, 0x1c, 2, 0x7f, 0x7f, 0x1a}),
                HasSubstr("invalid result arity"));
    EXPECT_THAT(check({0x41, 0, 0x42, 0, 0x41, 0, 0x1b, 0x1a}),
                HasSubstr("type mismatch: select expects i32, got i64"));
}

TEST(Validate, memory_access) {
    EXPECT_EQ(check({0x41, 0, 0x28, 2, 0, 0x1a}), "ok");
    EXPECT_THAT(
        check({0x41, 0, 0x28, 3, 0, 0x1a}),
        HasSubstr(
            "alignment must not be larger than natural: i32.load takes at most 2^2, got 2^3"));
    EXPECT_THAT(check({0x41, 0, 0x28, 0x42, 2, 0, 0x1a}), HasSubstr("unknown memory 2"));
    EXPECT_THAT(check({0x41, 0, 0x28, 0x42, 1, 0, 0x1a}),
                HasSubstr("i32.load expects i64, got i32"));
    EXPECT_EQ(check(Bytes{0x42, 0, 0x28, 0x42, 1} + leb(~u64{0}) + Bytes{0x1a}), "ok");
    EXPECT_THAT(check(Bytes{0x41, 0, 0x28, 2} + leb(u64{1} << 32) + Bytes{0x1a}),
                HasSubstr("offset out of range"));
    EXPECT_EQ(check({0x41, 0, 0xfe, 0x10, 2, 0, 0x1a}), "ok");
    EXPECT_THAT(check({0x41, 0, 0xfe, 0x10, 1, 0, 0x1a}),
                HasSubstr("atomic alignment must be natural"));
    // memory.copy between widths: the length is an i32.
    EXPECT_EQ(check({0x42, 0, 0x41, 0, 0x41, 0, 0xfc, 10, 1, 0}), "ok");
    EXPECT_THAT(check({0x42, 0, 0x41, 0, 0x42, 0, 0xfc, 10, 1, 0}),
                HasSubstr("memory.copy expects i32, got i64"));
    EXPECT_EQ(check({0x42, 0, 0x40, 1, 0x1a}), "ok");
    EXPECT_THAT(check({0x41, 0, 0x41, 0, 0x41, 0, 0xfc, 8, 1, 0}),
                HasSubstr("unknown data segment 1"));
}

TEST(Validate, lanes) {
    Bytes vector = Bytes{0xfd, 12} + Bytes(16, 0);
    EXPECT_EQ(check(vector + Bytes{0xfd, 21, 15, 0x1a}), "ok");
    EXPECT_THAT(check(vector + Bytes{0xfd, 21, 16, 0x1a}),
                HasSubstr("invalid lane index: i8x16.extract_lane_s has 16 lanes, got 16"));
    EXPECT_THAT(check(vector + vector + Bytes{0xfd, 13} + Bytes(16, 32) + Bytes{0x1a}),
                HasSubstr("invalid lane index"));
    EXPECT_THAT(check(Bytes{0x41, 0} + vector + Bytes{0xfd, 87, 3, 0, 2, 0x1a}),
                HasSubstr("invalid lane index"));
}

TEST(Validate, calls) {
    EXPECT_EQ(check({0x10, 2, 0x1a, 0x1a}), "ok");
    EXPECT_EQ(check({0x41, 1, 0x41, 0, 0x11, 1, 0, 0x1a}), "ok");
    EXPECT_EQ(check({0x12, 0}), "ok");
    EXPECT_THAT(check({0x41, 0, 0x12, 1}), HasSubstr("return_call expects results [], got [i32]"));
    EXPECT_EQ(check({0xd2, 0, 0x14, 0}), "ok");
    EXPECT_THAT(check({0x41, 0, 0xd2, 0, 0x14, 1, 0x1a}),
                HasSubstr("call_ref expects (ref null 1), got (ref 0)"));
    EXPECT_THAT(check({0xd2, 2, 0x1a}), HasSubstr("undeclared function reference: function 2"));
    EXPECT_EQ(check({0xd2, 1, 0x1a}), "ok");  // exported
}

TEST(Validate, locals_without_a_default_must_be_set) {
    const Bytes local = {1, 1, 0x64, 0x70};  // (ref func)
    EXPECT_EQ(check({0x20, 0, 0x1a}, local), "invalid uninitialized local 0 of type (ref func)");
    EXPECT_EQ(check({0xd2, 0, 0x21, 0, 0x20, 0, 0x1a}, local), "ok");
    EXPECT_EQ(check({0xd2, 0, 0x22, 0, 0x1a, 0x20, 0, 0x1a}, local), "ok");
    EXPECT_THAT(check({0x02, 0x40, 0xd2, 0, 0x21, 0, 0x0b, 0x20, 0, 0x1a}, local),
                HasSubstr("uninitialized local"));
    EXPECT_THAT(check({0x41, 0, 0x04, 0x40, 0xd2, 0, 0x21, 0, 0x05, 0x20, 0, 0x1a, 0x0b}, local),
                HasSubstr("uninitialized local"));
    EXPECT_EQ(check({0x20, 0, 0x1a}, {0}, {0x60, 1, 0x64, 0x70, 0}), "ok");
}

TEST(Validate, many_locals) {
    // 2000 of i32, 2000 of i64, 1 of (ref func)
    const Bytes locals =
        Bytes{3} + leb(2000) + Bytes{0x7f} + leb(2000) + Bytes{0x7e, 1, 0x64, 0x70};
    auto get = [](u32 index) { return Bytes{0x20} + leb(index); };
    EXPECT_EQ(check(get(999) + get(1000) + get(1999) + Bytes{0x6a, 0x6a, 0x1a}, locals), "ok");
    EXPECT_EQ(check(get(2000) + get(3999) + Bytes{0x7c, 0x1a}, locals), "ok");
    EXPECT_THAT(check(get(2000) + Bytes{0x45, 0x1a}, locals),
                HasSubstr("i32.eqz expects i32, got i64"));
    EXPECT_THAT(check(get(4000) + Bytes{0x1a}, locals), HasSubstr("uninitialized local 4000"));
    EXPECT_EQ(check(Bytes{0xd2, 0, 0x21} + leb(4000) + get(4000) + Bytes{0x1a}, locals), "ok");
    EXPECT_THAT(check(get(4001) + Bytes{0x1a}, locals),
                HasSubstr("unknown local 4001: there are 4001"));
}

TEST(Validate, structs_and_arrays) {
    EXPECT_EQ(check({0x41, 1, 0x41, 2, 0xfb, 0, 3, 0xfb, 2, 3, 0, 0x1a}), "ok");
    EXPECT_THAT(check({0xfb, 1, 3, 0xfb, 2, 3, 1, 0x1a}),
                HasSubstr("struct.get: the field is packed, it has type i8"));
    EXPECT_EQ(check({0xfb, 1, 3, 0xfb, 3, 3, 1, 0x1a}), "ok");
    EXPECT_THAT(check({0xfb, 1, 3, 0x41, 0, 0xfb, 5, 3, 1}), HasSubstr("immutable field"));
    EXPECT_THAT(check({0xfb, 1, 3, 0xfb, 2, 3, 2, 0x1a}), HasSubstr("unknown field 2"));
    EXPECT_THAT(check({0xfb, 1, 4, 0x1a}),
                HasSubstr("expects a struct type, type 4 is an array type"));
    EXPECT_THAT(check({0x41, 1, 0xfb, 7, 5, 0x1a}),
                HasSubstr("array.new_default expects an element with a default"));
    EXPECT_EQ(check({0x41, 0, 0x41, 1, 0xfb, 9, 4, 0, 0x1a}), "ok");
    EXPECT_THAT(check({0x41, 0, 0x41, 1, 0xfb, 9, 5, 0, 0x1a}),
                HasSubstr("array type is not numeric or vector"));
    EXPECT_THAT(check(Bytes{0x00, 0xfb, 8, 4} + leb(max_array_new_fixed + 1) + Bytes{0x1a}),
                HasSubstr("too many elements"));
    EXPECT_EQ(check({0x41, 7, 0xfb, 28, 0xfb, 29, 0x1a}), "ok");
    EXPECT_THAT(check({0xd0, 0x70, 0xfb, 22, 0x6e, 0x1a}),
                HasSubstr("ref.cast expects anyref, got funcref"));
}

TEST(Validate, casts_that_branch) {
    // (block (result (ref i31)) (br_on_cast 0 anyref (ref i31) (ref.null any)) unreachable)
    EXPECT_EQ(check({0x02, 0x64, 0x6c, 0xd0, 0x6e, 0xfb, 24, 1, 0, 0x6e, 0x6c, 0x00, 0x0b, 0x1a}),
              "ok");
    EXPECT_THAT(check({0x02, 0x64, 0x6c, 0xd0, 0x6e, 0xfb, 24, 1, 0, 0x6e, 0x70, 0x00, 0x0b, 0x1a}),
                HasSubstr("br_on_cast expects a subtype of anyref, got (ref func)"));
    EXPECT_THAT(check({0xd0, 0x6e, 0xfb, 24, 1, 0, 0x6e, 0x6c, 0x1a}),
                HasSubstr("a label that ends in (ref i31), got []"));
}

TEST(Validate, exceptions) {
    EXPECT_EQ(check({0x41, 0, 0x08, 1}), "ok");
    EXPECT_THAT(check({0x08, 2}), HasSubstr("unknown tag 2"));
    EXPECT_EQ(check({0x02, 0x7f, 0x1f, 0x40, 1, 0, 1, 0, 0x0b, 0x00, 0x0b, 0x1a}), "ok");
    EXPECT_EQ(check({0x02, 0x64, 0x69, 0x1f, 0x40, 1, 3, 0, 0x0b, 0x00, 0x0b, 0x0a}), "ok");
    EXPECT_THAT(check({0x1f, 0x40, 1, 0, 1, 0, 0x0b}),
                HasSubstr("type mismatch: label 0 expects [], the catch clause brings [i32]"));
    // The older form.
    EXPECT_EQ(check({0x06, 0x7f, 0x41, 0, 0x07, 1, 0x19, 0x41, 2, 0x0b, 0x1a}), "ok");
    EXPECT_EQ(check({0x06, 0x40, 0x19, 0x09, 0, 0x0b}), "ok");
    EXPECT_THAT(check({0x06, 0x40, 0x09, 0, 0x0b}), HasSubstr("invalid rethrow label"));
    EXPECT_EQ(check({0x06, 0x40, 0x18, 0}), "ok");
    EXPECT_THAT(check({0x06, 0x40, 0x18, 1}), HasSubstr("unknown label 1"));
    EXPECT_THAT(check({0x19}), HasSubstr("catch_all without try"));
}

std::string check_global(const Bytes& type, const Bytes& init) {
    return outcome(module_of({section(
        global_id, Bytes{2, 0x7f, 1, 0x41, 0, 0x0b} + type + Bytes{0} + init + Bytes{0x0b})}));
}

TEST(Validate, constant_expressions) {
    EXPECT_EQ(check_global({0x7f}, {0x41, 1, 0x41, 2, 0x6a}), "ok");
    EXPECT_EQ(check_global({0x6f}, {0x41, 1, 0xfb, 28, 0xfb, 27}),
              "ok");  // extern.convert_any (ref.i31 1)
    EXPECT_EQ(check_global({0x7f}, {0x41, 1, 0x41, 2, 0x6d}),
              "invalid 0x16: constant expression required, got i32.div_s");
    EXPECT_THAT(check_global({0x7f}, {0x23, 0}),
                EndsWith("constant expression required, global 0 is mutable"));
    EXPECT_THAT(check_global({0x7f}, {0x23, 1}), EndsWith("unknown global 1: there are 1"));
    EXPECT_THAT(check_global({0x7f}, {}), HasSubstr("type mismatch: end expects i32, got nothing"));
    EXPECT_THAT(check_global({0x7f}, {0x42, 0}),
                HasSubstr("type mismatch: end expects i32, got i64"));
    EXPECT_THAT(check_global({0x7f}, {0xd2, 0}), HasSubstr("unknown function 0"));
    EXPECT_THAT(check_global({0x7f}, {0xff}), StartsWith("malformed 0x12: illegal opcode ff"));
}

TEST(Validate, nesting_is_limited_and_not_recursive) {
    auto nested = [](u32 depth) {
        Bytes code;
        for (u32 i = 0; i < depth; i++) code.insert(code.end(), {0x02, 0x40});
        return code + Bytes(depth, 0x0b);
    };
    EXPECT_EQ(check(nested(max_nesting)), "ok");
    EXPECT_THAT(check(nested(max_nesting + 1)), HasSubstr("too many open blocks"));
}

TEST(Validate, the_operand_stack_is_limited) {
    Bytes code;
    for (u32 i = 0; i < max_operands / 2 + 1; i++) code.insert(code.end(), {0x10, 2});
    EXPECT_THAT(check(code), HasSubstr("too many operands"));
}

TEST(Validate, the_lowest_failure_is_reported_whatever_the_threads_do) {
    Bytes filler;
    for (u32 i = 0; i < 2000; i++) filler.insert(filler.end(), {0x41, 0, 0x1a});
    std::vector<Bytes> bodies(600, body(filler));
    auto build = [&] {
        return module_of({section(type_id, vec({no_params})),
                          section(func_id, leb(600) + Bytes(600, 0)),
                          section(code_id, vec(bodies))});
    };
    EXPECT_EQ(outcome(build()), "ok");
    for (u32 i : {301u, 300u, 599u}) bodies[i] = body(filler + Bytes{0x41, 0});
    bodies[300] = body(filler + Bytes{0x42, 0});
    std::string first = outcome(build());
    EXPECT_THAT(first, HasSubstr("(i64 first)"));
    for (u32 i = 0; i < 5; i++) EXPECT_EQ(outcome(build()), first);
}

}  // namespace
}  // namespace gpurun::wasm::test
