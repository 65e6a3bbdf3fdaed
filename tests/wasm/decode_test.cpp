// Sections, numbers, limits and truncation: bytes in, module or message out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bytes.h"
#include "wasm/instr.h"
#include "wasm/limits.h"

namespace gpurun::wasm::test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

const Bytes empty_func = {0x60, 0, 0};

TEST(Decode, header) {
    EXPECT_EQ(outcome({}), "malformed 0x0: unexpected end of the header: 0 bytes of 8");
    EXPECT_EQ(outcome({0, 'a', 's', 'm', 1}),
              "malformed 0x5: unexpected end of the header: 5 bytes of 8");
    EXPECT_EQ(outcome({1, 'a', 's', 'm', 1, 0, 0, 0}), "malformed 0x0: magic header not detected");
    EXPECT_EQ(outcome({0, 'a', 's', 'm', 2, 0, 0, 0}),
              "malformed 0x4: unknown binary version: expected 1");
    EXPECT_EQ(outcome(module_of({})), "ok");
}

TEST(Decode, section_frame) {
    EXPECT_EQ(outcome(module_of({{14, 0}})), "malformed 0x8: malformed section id 14");
    EXPECT_THAT(outcome(module_of({{1, 5, 0}})), HasSubstr("length out of bounds"));
    EXPECT_THAT(outcome(module_of({section(type_id, {0, 0})})),
                StartsWith("malformed 0xb: section size mismatch"));
    Bytes types = section(type_id, {0}), imports = section(import_id, {0});
    EXPECT_THAT(outcome(module_of({types, types})),
                HasSubstr("0xb: unexpected content after last section"));
    EXPECT_THAT(outcome(module_of({imports, types})),
                HasSubstr("unexpected content after last section"));
    EXPECT_EQ(
        outcome(module_of({section(memory_id, {0}), section(tag_id, {0}), section(global_id, {0}),
                           section(elem_id, {0}), section(data_count_id, {0}),
                           section(code_id, {0}), section(data_id, {0})})),
        "ok");
}

TEST(Decode, numbers) {
    EXPECT_EQ(outcome(module_of({section(type_id, {0x80, 0x80, 0x80, 0x80, 0x00})})), "ok");
    EXPECT_EQ(outcome(module_of({section(type_id, {0x80, 0x80, 0x80, 0x80, 0x80, 0x00})})),
              "malformed 0xa: integer representation too long");
    EXPECT_EQ(outcome(module_of({section(type_id, {0x80, 0x80, 0x80, 0x80, 0x10})})),
              "malformed 0xa: integer too large");
    EXPECT_EQ(outcome(module_of({section(type_id, {0x80})})),
              "malformed 0xb: unexpected end of section or function");
}

TEST(Decode, counts_are_not_believed) {
    for (u8 id : {type_id, import_id, func_id, table_id, memory_id, global_id, export_id, elem_id,
                  data_id, tag_id})
        EXPECT_THAT(outcome(module_of({section(id, leb(999'999))})),
                    StartsWith("malformed 0xa: unexpected end"))
            << int(id);
    Bytes many = leb(max_params + 1) + Bytes(max_params + 1, 0x7f);
    EXPECT_EQ(outcome(module_of({section(type_id, Bytes{1, 0x60} + many + Bytes{0})})),
              "malformed 0xd: too many parameters: 1001, the limit is 1000");
}

TEST(Decode, locals) {
    auto with_locals = [](Bytes locals) {
        return module_of({section(type_id, vec({empty_func})), section(func_id, {1, 0}),
                          section(code_id, vec({body({}, locals)}))});
    };
    EXPECT_EQ(outcome(with_locals(Bytes{1} + leb(max_locals) + Bytes{0x7f})), "ok");
    EXPECT_THAT(outcome(with_locals(Bytes{1} + leb(max_locals + 1) + Bytes{0x7f})),
                HasSubstr("too many locals: 50001, the limit is 50000"));
    EXPECT_THAT(
        outcome(with_locals(Bytes{2} + leb(0xffffffff) + Bytes{0x7f} + leb(2) + Bytes{0x7e})),
        HasSubstr("too many locals"));
    EXPECT_THAT(outcome(with_locals({1, 1, 0x40})), HasSubstr("malformed value type"));
}

TEST(Decode, memories_and_tables) {
    auto memory = [](Bytes limits) {
        return outcome(module_of({section(memory_id, Bytes{1} + limits)}));
    };
    EXPECT_EQ(memory(Bytes{0} + leb(65536)), "ok");
    EXPECT_EQ(memory(Bytes{0} + leb(65537)),
              "invalid 0xb: memory size must be at most 65536 pages (4GiB), got 65537");
    EXPECT_EQ(memory(Bytes{4} + leb(u64{1} << 48)), "ok");
    EXPECT_THAT(memory(Bytes{4} + leb((u64{1} << 48) + 1)), HasSubstr("memory size"));
    EXPECT_THAT(memory({1, 2, 1}),
                HasSubstr("size minimum must not be greater than maximum: 2 and 1"));
    EXPECT_EQ(memory({3, 1, 2}), "ok");
    EXPECT_EQ(memory({2, 1}), "invalid 0xb: shared memory must have maximum");
    EXPECT_EQ(memory({8, 1}), "malformed 0xb: malformed limits flags 0x08");

    auto table = [](Bytes type) {
        return outcome(module_of({section(table_id, Bytes{1} + type)}));
    };
    EXPECT_EQ(table(Bytes{0x70, 0} + leb(0xffffffff)), "ok");
    EXPECT_THAT(table(Bytes{0x70, 0} + leb(0x100000000)), HasSubstr("table size"));
    EXPECT_EQ(table(Bytes{0x70, 4} + leb(0x100000000)), "ok");
    EXPECT_THAT(table({0x70, 3, 0, 0}), HasSubstr("malformed limits flags"));
    EXPECT_THAT(table({0x64, 0x70, 0, 0}),
                HasSubstr("type mismatch: a table of (ref func) needs an initializer"));
    EXPECT_THAT(table({0x7f, 0, 0}), HasSubstr("malformed reference type: got i32"));
}

TEST(Decode, types) {
    auto types = [](std::vector<Bytes> list) {
        return outcome(module_of({section(type_id, vec(list))}));
    };
    EXPECT_EQ(types({{0x5f, 1, 0x78, 1}, {0x5e, 0x64, 0, 0}}), "ok");
    EXPECT_EQ(types({{0x60, 1, 0x64, 1, 0}, empty_func}),
              "invalid 0xd: unknown type 1: there are 0");
    EXPECT_EQ(types({{0x4e, 2, 0x60, 1, 0x64, 1, 0, 0x60, 0, 0}}), "ok");
    EXPECT_THAT(types({{0x5e, 0x78, 2}}), HasSubstr("malformed mutability"));
    EXPECT_THAT(types({{0x50, 0, 0x60, 0, 0}, {0x50, 1, 1, 0x60, 0, 0}}),
                HasSubstr("unknown type 1"));
    EXPECT_THAT(types({empty_func, {0x50, 1, 0, 0x60, 0, 0}}),
                HasSubstr("sub type: type 1 extends a final type"));
    EXPECT_THAT(types({{0x50, 0, 0x60, 0, 0}, {0x50, 1, 0, 0x5f, 0}}),
                HasSubstr("sub type: type 1 does not match its super type"));
    EXPECT_THAT(types({{0x50, 0, 0x60, 0, 0}, {0x50, 2, 0, 0, 0x60, 0, 0}}),
                HasSubstr("at most 1"));

    std::vector<Bytes> chain = {{0x50, 0, 0x5f, 0}};
    for (u8 i = 0; i < max_subtype_depth; i++) chain.push_back({0x50, 1, i, 0x5f, 0});
    EXPECT_EQ(types(chain), "ok");
    chain.push_back({0x50, 1, max_subtype_depth, 0x5f, 0});
    EXPECT_THAT(types(chain), HasSubstr("sub type: type 64 has more than 63 supertypes"));
}

TEST(Decode, equal_types_have_one_id) {
    auto module =
        load_ok(module_of({section(type_id, vec({empty_func, {0x60, 1, 0x7f, 0}, empty_func}))}));
    ASSERT_TRUE(module);
    EXPECT_EQ(module->type_ids[0], module->type_ids[2]);
    EXPECT_NE(module->type_ids[0], module->type_ids[1]);
}

TEST(Decode, imports_and_exports) {
    auto module = load_ok(module_of(
        {section(type_id, vec({empty_func})),
         section(import_id, vec({text("env") + text("f") + Bytes{0, 0},
                                 text("env") + text("m") + Bytes{2, 0, 1},
                                 text("env") + text("g") + Bytes{3, 0x7f, 1},
                                 text("") + text("t") + Bytes{4, 0, 0}})),
         section(export_id, vec({text("run") + Bytes{0, 0}, text("mem") + Bytes{2, 0}}))}));
    ASSERT_TRUE(module);
    EXPECT_EQ(module->imports.size(), 4u);
    EXPECT_EQ(module->imported_tags, 1u);
    EXPECT_TRUE(module->globals[0].type.is_mutable);
    EXPECT_TRUE(module->funcs[0].is_declared);
    ASSERT_TRUE(module->find_export("mem"));
    EXPECT_EQ(module->find_export("mem")->kind, ExternKind::memory);
    EXPECT_FALSE(module->find_export("none"));
    EXPECT_EQ(module->func_name(0), "run");

    Bytes twice = text("a") + Bytes{2, 0};
    EXPECT_EQ(outcome(module_of(
                  {section(memory_id, {1, 0, 0}), section(export_id, vec({twice, twice}))})),
              "invalid 0x14: duplicate export name \"a\"");
    EXPECT_EQ(outcome(module_of({section(export_id, vec({twice}))})),
              "invalid 0xe: unknown memory 0: there are 0");
    EXPECT_THAT(outcome(module_of({section(import_id, vec({text("") + text("") + Bytes{5, 0}}))})),
                HasSubstr("0xd: malformed import kind 0x05"));
}

TEST(Decode, names_must_be_utf8) {
    for (Bytes bad : {Bytes{0x80}, Bytes{0xc0, 0x80}, Bytes{0xed, 0xa0, 0x80}, Bytes{0xe2, 0x82},
                      Bytes{0xf4, 0x90, 0x80, 0x80}, Bytes{0xf5, 0x80, 0x80, 0x80}})
        EXPECT_EQ(outcome(module_of({section(custom_id, sized(bad))})),
                  "malformed 0xa: malformed UTF-8 encoding");
    EXPECT_EQ(outcome(module_of({custom("\u00e9\u20ac\U0001f600", {})})), "ok");
}

TEST(Decode, a_bad_name_section_is_ignored) {
    Bytes parts[] = {
        section(type_id, vec({empty_func})),
        section(func_id, {2, 0, 0}),
        section(code_id, vec({body({}), body({})})),
    };
    Bytes good = section(1, vec({leb(0) + text("first"), leb(1) + text("second")}));
    Bytes locals = section(2, vec({leb(1) + vec({leb(0) + text("x")})}));
    auto module = load_ok(module_of({parts[0], parts[1], parts[2], custom("name", good + locals)}));
    ASSERT_TRUE(module);
    EXPECT_EQ(module->func_name(1), "second");
    EXPECT_EQ(module->names.locals[0].second[0].second, "x");

    for (Bytes bad :
         {Bytes{1}, Bytes{1, 9, 1}, good + Bytes{2, 1, 200}, Bytes{1, 4, 1, 0, 1, 0xff}}) {
        module = load_ok(module_of({parts[0], parts[1], parts[2], custom("name", bad)}));
        ASSERT_TRUE(module);
        EXPECT_EQ(module->func_name(1), "func[1]");
    }
}

TEST(Decode, branch_hints) {
    auto with_hints = [](Bytes hints) {
        return load_ok(
            module_of({section(type_id, vec({{0x60, 1, 0x7f, 0}})), section(func_id, {1, 0}),
                       custom("metadata.code.branch_hint", hints),
                       section(code_id, vec({body({0x20, 0, 0x04, 0x40, 0x0b})}))}));
    };
    auto module = with_hints({1, 0, 1, 3, 1, 1});
    ASSERT_TRUE(module);
    ASSERT_EQ(module->branch_hints.size(), 1u);
    EXPECT_EQ(module->branch_hints[0].offset, 3u);
    EXPECT_TRUE(module->branch_hints[0].likely);
    EXPECT_EQ(module->bytes[module->funcs[0].body + 3], 0x04);
    for (Bytes bad : {Bytes{1, 7, 1, 3, 1, 1}, Bytes{1, 0, 1, 3, 1, 2}, Bytes{9}}) {
        module = with_hints(bad);
        ASSERT_TRUE(module);
        EXPECT_TRUE(module->branch_hints.empty());
    }
}

TEST(Decode, elem_segments_of_functions) {
    std::vector<Bytes> parts = {section(type_id, vec({empty_func})),
                                section(func_id, {3, 0, 0, 0}),
                                section(table_id, {1, 0x70, 0, 9}),
                                {},
                                section(code_id, vec({body({}), body({}), body({})}))};
    auto with_elem = [&](Bytes segment) {
        parts[3] = section(elem_id, vec({segment}));
        return load_ok(module_of(parts));
    };
    auto module = with_elem({0, 0x41, 0, 0x0b, 2, 1, 2});
    ASSERT_TRUE(module);
    EXPECT_EQ(module->elems[0].funcs, (std::vector<u32>{1, 2}));
    EXPECT_EQ(module->elems[0].type, ValType::ref(Heap::func, false));
    EXPECT_EQ(module->elems[0].offset.end - module->elems[0].offset.begin, 3u);
    EXPECT_FALSE(module->funcs[0].is_declared);
    EXPECT_TRUE(module->funcs[2].is_declared);

    module = with_elem({5, 0x70, 2, 0xd2, 0, 0x0b, 0xd2, 2, 0x0b});
    ASSERT_TRUE(module);
    EXPECT_EQ(module->elems[0].mode, SegmentMode::passive);
    EXPECT_EQ(module->elems[0].funcs, (std::vector<u32>{0, 2}));
    EXPECT_TRUE(module->elems[0].init.empty());

    module = with_elem({7, 0x70, 2, 0xd2, 0, 0x0b, 0xd0, 0x70, 0x0b});
    ASSERT_TRUE(module);
    EXPECT_EQ(module->elems[0].mode, SegmentMode::declarative);
    EXPECT_TRUE(module->elems[0].funcs.empty());
    EXPECT_EQ(module->elems[0].size(), 2u);
}

TEST(Decode, sections_that_must_agree) {
    Bytes types = section(type_id, vec({empty_func})), funcs = section(func_id, {1, 0});
    EXPECT_THAT(outcome(module_of({types, funcs})),
                HasSubstr("function and code section have inconsistent lengths: 1 and 0"));
    EXPECT_THAT(outcome(module_of({section(code_id, vec({body({})}))})),
                HasSubstr("inconsistent lengths: 0 and 1"));
    EXPECT_THAT(outcome(module_of({section(data_count_id, {1})})),
                HasSubstr("data count and data section have inconsistent lengths: 1 and 0"));
    Bytes data = section(data_id, vec({{1, 0}}));
    Bytes drop = section(code_id, vec({body({0xfc, 9, 0})}));
    EXPECT_THAT(outcome(module_of({types, funcs, drop, data})),
                HasSubstr("malformed 0x17: data count section required"));
    EXPECT_EQ(outcome(module_of({types, funcs, section(data_count_id, {1}), drop, data})), "ok");
}

TEST(Decode, a_truncated_module_is_refused_at_every_byte) {
    Bytes whole = module_of(
        {section(
             type_id,
             vec({{0x60, 1, 0x7f, 1, 0x7f}, {0x4e, 1, 0x50, 0, 0x5f, 1, 0x64, 1, 0}, empty_func})),
         section(import_id, vec({text("env") + text("f") + Bytes{0, 0}})), section(func_id, {1, 0}),
         section(table_id, {1, 0x40, 0, 0x70, 1, 2, 4, 0xd0, 0x70, 0x0b}),
         section(memory_id, {1, 1, 1, 2}), section(tag_id, {1, 0, 2}),
         section(global_id, {1, 0x7e, 1, 0x42, 0x80, 0x01, 0x0b}),
         section(export_id, vec({text("run") + Bytes{0, 1}})),
         section(elem_id, vec({{2, 0, 0x41, 0, 0x0b, 0, 1, 1}})), section(data_count_id, {1}),
         section(code_id, vec({body({0x20, 0, 0x04, 0x7f, 0x41, 1, 0x05, 0x20, 1, 0x28, 2, 0, 0x0b},
                                    {1, 2, 0x7f})})),
         section(data_id, vec({Bytes{0, 0x41, 0, 0x0b} + text("hello")}))});
    ASSERT_EQ(outcome(whole), "ok");
    for (usize size = 0; size < whole.size(); size++) {
        Bytes part(whole.begin(), whole.begin() + s64(size));
        std::string got = outcome(part);
        // Between sections what is there can be a module of its own.
        if (got == "ok") continue;
        EXPECT_THAT(got, StartsWith("malformed ")) << size;
    }
}

TEST(Decode, no_changed_byte_is_fatal) {
    Bytes whole = module_of(
        {section(type_id, vec({{0x60, 1, 0x7f, 1, 0x7f}})), section(func_id, {1, 0}),
         section(memory_id, {1, 0, 1}),
         section(code_id, vec({body({0x02, 0x40, 0x20, 0, 0x0e, 1, 0, 0, 0x0b, 0x41, 7})}))});
    ASSERT_EQ(outcome(whole), "ok");
    for (usize i = 8; i < whole.size(); i++)
        for (u32 value = 0; value < 256; value++) {
            Bytes changed = whole;
            changed[i] = u8(value);
            outcome(std::move(changed));
        }
}

TEST(Instr, the_table_finds_every_row) {
    for (u32 i = 0; i < u32(Op::count); i++) {
        const OpInfo& info = op_info(Op(i));
        EXPECT_EQ(op_from_code(info.prefix, info.code), Op(i)) << info.text;
    }
    EXPECT_EQ(op_from_code(0, 0xff), Op::invalid);
    EXPECT_EQ(op_from_code(0, 0x100), Op::invalid);
    EXPECT_EQ(op_from_code(0xfc, 0xffffffff), Op::invalid);
    EXPECT_EQ(op_from_code(7, 0), Op::invalid);
}

TEST(Instr, immediates) {
    Bytes bytes = {0x41, 0x7f, 0x28, 0x42, 3,    0x10, 0x0e, 2, 1, 2,    3,    0x1c,
                   1,    0x63, 0x05, 0x1f, 0x40, 1,    1,    4, 0, 0x02, 0x64, 0x70};
    InstrReader reader(bytes, 0, u32(bytes.size()));
    Instr instr;
    ASSERT_TRUE(reader.next(instr));
    EXPECT_EQ(instr.bits, 0xffffffffu);
    ASSERT_TRUE(reader.next(instr));
    EXPECT_EQ(instr.op, Op::i32_load);
    EXPECT_EQ(instr.align, 2u);
    EXPECT_EQ(instr.a, 3u);
    EXPECT_EQ(instr.bits, 16u);
    ASSERT_TRUE(reader.next(instr));
    ListReader labels(bytes, instr);
    EXPECT_EQ(instr.count, 2u);
    EXPECT_EQ(labels.label(), 1u);
    EXPECT_EQ(labels.label(), 2u);
    EXPECT_EQ(instr.a, 3u);
    ASSERT_TRUE(reader.next(instr));
    s64 heap = 0;
    bool nullable = false;
    EXPECT_EQ(ListReader(bytes, instr).val_type(heap, nullable), block_long_ref);
    EXPECT_EQ(heap, 5);
    EXPECT_TRUE(nullable);
    ASSERT_TRUE(reader.next(instr));
    EXPECT_EQ(instr.block_type, block_empty);
    CatchClause clause = ListReader(bytes, instr).catch_clause();
    EXPECT_EQ(clause.kind, CatchClause::catch_ref);
    EXPECT_EQ(clause.tag, 4u);
    ASSERT_TRUE(reader.next(instr));
    EXPECT_EQ(instr.block_type, block_long_ref);
    EXPECT_EQ(instr.heap, -0x10);
    EXPECT_EQ(instr.b, 0u);
    EXPECT_FALSE(reader.next(instr));
    EXPECT_EQ(reader.error(), nullptr);
}

TEST(Instr, malformed_immediates) {
    auto error = [](Bytes bytes) {
        InstrReader reader(bytes, 0, u32(bytes.size()));
        Instr instr;
        while (reader.next(instr)) {
        }
        return std::string(reader.error() ? reader.error() : "");
    };
    EXPECT_EQ(error({0xff}), "illegal opcode");
    EXPECT_EQ(error({0xfd, 0x9a, 0x01}), "illegal opcode");
    EXPECT_EQ(error({0x41}), "unexpected end");
    EXPECT_EQ(error({0x44, 0, 0, 0}), "unexpected end");
    EXPECT_EQ(error({0x0e, 0xff, 0xff, 0xff, 0xff, 0x0f}), "unexpected end");
    EXPECT_EQ(error({0x28, 0x80, 0x01, 0}), "malformed memop flags");
    EXPECT_EQ(error({0x02, 0xff, 0x7f}), "malformed block type");
    EXPECT_EQ(error({0x02, 0x41}), "malformed block type");
    EXPECT_EQ(error({0xd0, 0x7f}), "malformed heap type");
    EXPECT_EQ(error({0xfe, 3, 1}), "zero byte expected");
    EXPECT_EQ(error({0x1f, 0x40, 1, 4, 0}), "malformed catch clause");
    EXPECT_EQ(error({0xfb, 24, 4, 0, 0x70, 0x70}), "malformed br_on_cast flags");
}

}  // namespace
}  // namespace gpurun::wasm::test
