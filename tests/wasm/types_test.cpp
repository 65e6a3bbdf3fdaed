// Interning of recursion groups and the subtype relation.
#include <gtest/gtest.h>

#include "wasm/types.h"

namespace gpurun::wasm {
namespace {

constexpr u32 member(u32 index) { return TypeTable::group_ref | index; }

SubType func(std::vector<ValType> params, std::vector<ValType> results) {
    SubType type;
    type.func = {std::move(params), std::move(results)};
    return type;
}

SubType structure(std::vector<FieldType> fields, u32 super = SubType::no_super) {
    SubType type;
    type.kind = TypeKind::struct_;
    type.is_final = false;
    type.super = super;
    type.fields = std::move(fields);
    return type;
}

u32 add(TypeTable& table, SubType type) { return table.add_group({&type, 1}); }

TEST(Types, equal_functions_share_an_id) {
    TypeTable table;
    u32 a = add(table, func({ValType::i32}, {ValType::i64}));
    u32 b = add(table, func({ValType::i64}, {ValType::i32}));
    EXPECT_NE(a, b);
    EXPECT_EQ(a, add(table, func({ValType::i32}, {ValType::i64})));
    EXPECT_EQ(table.size(), 2u);
}

TEST(Types, params_and_results_do_not_run_together) {
    TypeTable table;
    EXPECT_NE(add(table, func({ValType::i32}, {})), add(table, func({}, {ValType::i32})));
}

TEST(Types, finality_and_mutability_count) {
    TypeTable table;
    SubType open = func({}, {});
    open.is_final = false;
    EXPECT_NE(add(table, func({}, {})), add(table, open));
    EXPECT_NE(add(table, structure({{ValType::i8, true}})),
              add(table, structure({{ValType::i8, false}})));
}

TEST(Types, recursive_groups_are_equal_by_shape) {
    TypeTable table;
    ValType self = ValType::ref(member(0), true);
    u32 a = add(table, structure({{self, false}}));
    u32 other = add(table, structure({{self, true}}));
    u32 b = add(table, structure({{self, false}}));
    EXPECT_EQ(a, b);
    EXPECT_NE(a, other);
    EXPECT_EQ(table[a].fields[0].type, ValType::ref(a, true));
    EXPECT_EQ(table[other].fields[0].type, ValType::ref(other, true));
    // One step unrolled is another type: equality is that of the groups.
    EXPECT_NE(a, add(table, structure({{ValType::ref(a, true), false}})));
}

TEST(Types, members_of_a_group_differ_by_position) {
    TypeTable table;
    SubType group[] = {func({}, {}), func({}, {})};
    u32 first = table.add_group(group);
    u32 alone = add(table, func({}, {}));
    EXPECT_NE(first, alone);
    EXPECT_NE(first + 1, alone);
    EXPECT_EQ(table.group_start(first + 1), first);
    EXPECT_EQ(table.group_size(first + 1), 2u);
    EXPECT_EQ(table.add_group(group), first);
}

TEST(Types, subtypes_follow_the_declared_chain) {
    TypeTable table;
    u32 top = add(table, structure({}));
    u32 middle = add(table, structure({{ValType::i32, false}}, top));
    u32 bottom = add(table, structure({{ValType::i32, false}, {ValType::f32, true}}, middle));
    u32 stranger = add(table, structure({{ValType::i64, false}}));
    EXPECT_TRUE(table.is_subtype(bottom, top));
    EXPECT_TRUE(table.is_subtype(middle, middle));
    EXPECT_FALSE(table.is_subtype(top, bottom));
    EXPECT_FALSE(table.is_subtype(bottom, stranger));
    EXPECT_EQ(table.depth(top), 0u);
    EXPECT_EQ(table.depth(bottom), 2u);
}

TEST(Types, heap_hierarchies) {
    TypeTable table;
    u32 f = add(table, func({}, {})), s = add(table, structure({}));
    SubType array;
    array.kind = TypeKind::array;
    array.fields = {{ValType::i8, true}};
    u32 a = add(table, array);
    auto matches = [&](auto sub, auto super) { return table.heap_matches(u32(sub), u32(super)); };

    for (u32 sub : {u32(Heap::i31), u32(Heap::struct_), u32(Heap::array), u32(Heap::none), s, a}) {
        EXPECT_TRUE(matches(sub, Heap::eq)) << table.heap_name(sub);
        EXPECT_TRUE(matches(sub, Heap::any)) << table.heap_name(sub);
        EXPECT_FALSE(matches(sub, Heap::func)) << table.heap_name(sub);
        EXPECT_FALSE(matches(Heap::any, sub)) << table.heap_name(sub);
    }
    EXPECT_TRUE(matches(s, Heap::struct_));
    EXPECT_FALSE(matches(s, Heap::array));
    EXPECT_TRUE(matches(a, Heap::array));
    EXPECT_TRUE(matches(f, Heap::func));
    EXPECT_TRUE(matches(Heap::nofunc, f));
    EXPECT_FALSE(matches(Heap::none, f));
    EXPECT_TRUE(matches(Heap::none, s));
    EXPECT_FALSE(matches(Heap::nofunc, s));
    EXPECT_TRUE(matches(Heap::noextern, Heap::extern_));
    EXPECT_TRUE(matches(Heap::noexn, Heap::exn));
    EXPECT_FALSE(matches(Heap::exn, Heap::any));
    EXPECT_EQ(table.top(f), Heap::func);
    EXPECT_EQ(table.top(a), Heap::any);
    EXPECT_EQ(table.top(u32(Heap::noexn)), Heap::exn);
}

TEST(Types, nullability_and_variance) {
    TypeTable table;
    ValType any = ValType::ref(Heap::any, true), eq = ValType::ref(Heap::eq, false);
    EXPECT_TRUE(table.matches(eq, any));
    EXPECT_FALSE(table.matches(any, eq));
    EXPECT_FALSE(table.matches(any, any.with_null(false)));
    EXPECT_FALSE(table.matches(ValType::i32, ValType::i64));
    EXPECT_TRUE(table.matches(FuncType{{any}, {eq}}, FuncType{{eq}, {any}}));
    EXPECT_FALSE(table.matches(FuncType{{eq}, {any}}, FuncType{{any}, {any}}));
    EXPECT_TRUE(table.matches(FieldType{eq, false}, FieldType{any, false}));
    EXPECT_FALSE(table.matches(FieldType{eq, true}, FieldType{any, true}));
}

TEST(Types, names_are_those_of_the_text_format) {
    TypeTable table;
    EXPECT_EQ(table.name(ValType::v128), "v128");
    EXPECT_EQ(table.name(ValType::ref(Heap::func, true)), "funcref");
    EXPECT_EQ(table.name(ValType::ref(Heap::func, false)), "(ref func)");
    EXPECT_EQ(table.name(ValType::ref(Heap::none, true)), "nullref");
    EXPECT_EQ(table.name(ValType::ref(3u, true)), "(ref null 3)");
}

}  // namespace
}  // namespace gpurun::wasm
