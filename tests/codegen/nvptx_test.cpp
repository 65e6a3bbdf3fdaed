// Images for NVIDIA's GPUs: facts of the PTX that matter.
#include <gtest/gtest.h>

#include "base/format.h"
#include "codegen/codegen.h"
#include "engine/load.h"

namespace gpurun::test {
namespace {

constexpr const char* source = R"((module
  (memory 1 1 shared)
  (table 2 funcref) (elem (i32.const 0) $sum $sum)
  (type $t (func (param f64 i32) (result f64)))
  (func $sum (export "sum") (type $t)
    (loop $l
      (local.set 0 (f64.add (f64.mul (local.get 0) (local.get 0)) (f64.const 1)))
      (br_if $l (local.tee 1 (i32.sub (local.get 1) (i32.const 1)))))
    (local.get 0))
  (func (export "chain") (param i32) (result f64)
    (call_indirect (type $t) (f64.const 0.5) (i32.const 3) (local.get 0)))
  (func (export "count") (result i32)
    (i32.atomic.rmw.add (i32.const 8) (i32.const 1)))))";

std::string ptx(codegen::Target target, std::string_view text = source) {
    auto module = engine::load_bytes({text.begin(), text.end()}, "test.wat");
    if (!module) return module.error().to_string();
    auto code = translate::translate(**module, {});
    if (!code) return code.error().to_string();
    auto image = codegen::compile(**module, *code, {target});
    if (!image) return image.error().to_string();
    EXPECT_EQ(image->pieces.size(), 1u);
    const std::vector<u8>& made = image->pieces[0].object;
    return {made.begin(), made.end()};
}

// A function's text, from its head to its end.
std::string function(const std::string& all, const std::string& name) {
    for (usize at = 0; (at = all.find(") " + name + "(\n", at)) != std::string::npos; at++) {
        const usize open = all.find_first_of(";{", at), end = all.find("\n}\n", at);
        if (open != std::string::npos && all[open] == '{') return all.substr(at, end - at);
    }
    return "";
}

TEST(Nvptx, AnImageIsAModuleOfItsOwn) {
    for (codegen::Target target : {codegen::Target::cuda_burst, codegen::Target::cuda_space,
                                   codegen::Target::cuda_machine}) {
        const std::string text = ptx(target);
        EXPECT_NE(text.find(".version 7.0\n.target sm_75"), std::string::npos)
            << text.substr(0, 300);
        EXPECT_NE(text.find(".entry gpurun_native_image("), std::string::npos);
        EXPECT_NE(text.find(") gpurun_native_enter_0("), std::string::npos);
        // What is the runtime's is reached by address.
        EXPECT_EQ(text.find(".extern"), std::string::npos);
        EXPECT_EQ(text.find("gpurun_check"), std::string::npos);
        EXPECT_EQ(ptx(target), text);
    }
}

TEST(Nvptx, LoopsAreInRegistersAndRoundEachOperation) {
    const std::string sum = function(ptx(codegen::Target::cuda_burst), "f0");
    EXPECT_NE(sum.find("mul.rn.f64"), std::string::npos) << sum;
    EXPECT_NE(sum.find("add.rn.f64"), std::string::npos) << sum;
    EXPECT_EQ(sum.find("fma"), std::string::npos) << sum;
    // What is called is called when it leaves.
    const usize loop = sum.find("mul.rn.f64");
    EXPECT_EQ(sum.substr(0, loop).find("call"), std::string::npos) << sum;
}

TEST(Nvptx, AtomicsAreOrdered) {
    const std::string count = function(ptx(codegen::Target::cuda_burst), "f2");
    const usize fence = count.find("fence.sc.gpu"), atom = count.find("atom.");
    ASSERT_NE(fence, std::string::npos) << count;
    ASSERT_NE(atom, std::string::npos) << count;
    EXPECT_LT(fence, atom);
    EXPECT_NE(count.find("fence.sc.gpu", atom), std::string::npos) << count;
}

// PTX says nothing of the least number's negation.
TEST(Nvptx, NothingIsNegated) {
    const std::string text = ptx(codegen::Target::cuda_burst, R"((module
      (func (param v128 v128) (result v128) (i16x8.lt_s (i16x8.neg (local.get 0)) (local.get 1)))
      (func (param v128) (result v128) (i16x8.abs (local.get 0)))
      (func (param i32) (result i32) (i32.sub (i32.const 0) (local.get 0)))
      (func (param f64) (result f64) (f64.neg (local.get 0)))))");
    EXPECT_EQ(text.find("neg.s"), std::string::npos);
    EXPECT_EQ(text.find("abs.s"), std::string::npos);
    EXPECT_NE(function(text, "f0").find("sub.u16"), std::string::npos);
    EXPECT_NE(function(text, "f1").find("max.s16"), std::string::npos);
}

// They would be in constant memory, which is the kernel's.
TEST(Nvptx, ThereAreNoJumpTables) {
    const std::string text = ptx(codegen::Target::cuda_burst, R"((module
      (func (param i32) (result i32)
        (block (block (block (block (block (block
          (br_table 0 1 2 3 4 5 (local.get 0)))
          (return (i32.const 10))) (return (i32.const 11))) (return (i32.const 12)))
          (return (i32.const 13))) (return (i32.const 14)))
        (i32.const 15))))");
    EXPECT_EQ(text.find("brx"), std::string::npos);
}

// What would take much of a small stack: not slots, but those that are live together.
TEST(Nvptx, FunctionsWithMuchThatIsLiveStayInTheInterpreter) {
    auto sets = [](u32 first, u32 end) {
        std::string made;
        for (u32 i = first; i < end; i++)
            made += format("(local.set %u (i32.load offset=%u (local.get 0)))", i, 4 * i);
        return made;
    };
    auto stores = [](u32 first, u32 end) {
        std::string made;
        for (u32 i = first; i < end; i++)
            made += format("(i32.store offset=%u (local.get 0) (local.get %u))", 4 * i, i);
        return made;
    };
    std::string locals, few, params, gets;
    for (u32 i = 0; i < 600; i++) locals += " i32";
    for (u32 i = 1; i < 600; i++) few += sets(i, i + 1) + stores(i, i + 1);
    for (u32 i = 0; i < 40; i++) {
        params += " i64";
        gets += format("(i64.store (i32.const 0) (local.get %u))", i);
    }
    const std::string head = "(func (param i32) (local" + locals + ") ";
    const std::string text =
        ptx(codegen::Target::cuda_burst, "(module (memory 1) " + head + sets(1, 250) +
                                             stores(1, 250) + ") " + head + few + ") (func (param" +
                                             params + ") " + gets + "))");
    EXPECT_EQ(function(text, "f0"), "");
    EXPECT_NE(function(text, "f1"), "");
    EXPECT_NE(function(text, "f2"), "");
}

// Far locals are in the frame, not in registers: they are not live.
TEST(Nvptx, FunctionsWithFarLocalsAreCompiled) {
    std::string locals;
    for (u32 i = 0; i < 40'000; i++) locals += " i64";
    const std::string wat = "(module (func (param i64) (result i64) (local" + locals + R"()
        (local.set 39999 (local.get 0))
        (loop $l (br_if $l (i64.eqz (local.tee 30000 (local.get 39999)))))
        (call 0 (local.get 30000)))))";
    for (codegen::Target target : codegen::targets)
        if (target != codegen::Target::host) {
            const std::string text = function(ptx(target, wat), "f0");
            EXPECT_NE(text, "");
            EXPECT_LT(text.size(), 20'000u);
        }
}

// Of a large module the pieces are in groups, each with a kernel and a table of its own.
TEST(Nvptx, GroupsCallEachOtherByTheirTables) {
    constexpr u32 functions = codegen::Image::group_pieces + 1, operations = 2'000;
    std::string text = "(module ";
    for (u32 i = 0; i < functions; i++) {
        // Each is a piece: its code is longer than one has about.
        text += format("(func $f%u (export \"f%u\") (param i32) (result i32)", i, i);
        for (u32 k = 0; k < operations; k++)
            text += format(
                "(local.set 0 (i32.xor (i32.rotl (local.get 0) (i32.const 5)) "
                "(i32.const %u)))",
                i * operations + k);
        text += format("(call $f%u (local.get 0)))", (i + 1) % functions);
    }
    text += ")";
    auto module = engine::load_bytes({text.begin(), text.end()}, "test.wat");
    ASSERT_TRUE(module) << module.error().to_string();
    auto code = translate::translate(**module, {});
    ASSERT_TRUE(code);
    auto image = codegen::compile(**module, *code, {codegen::Target::cuda_burst});
    ASSERT_TRUE(image) << image.error().to_string();
    ASSERT_EQ(image->group_count(), 2u);
    std::string groups[2];
    for (u32 i = 0; i < 2; i++)
        for (const codegen::Image::Piece& piece : image->group(i))
            groups[i].append(piece.object.begin(), piece.object.end());
    auto count = [](const std::string& in, const std::string& what) {
        usize found = 0;
        for (usize at = 0; (at = in.find(what, at)) != std::string::npos; at++) found++;
        return found;
    };
    const std::string table = ".visible .global .align 8 .u64 gpurun_functions[", first = "f0",
                      last = format("f%u", functions - 1);
    for (const std::string& group : groups) {
        EXPECT_EQ(count(group, ".entry gpurun_native_image("), 1u);
        EXPECT_EQ(count(group, table), 1u);
    }
    EXPECT_NE(function(groups[0], first), "");
    EXPECT_EQ(count(groups[0], last + "("), 0u);
    EXPECT_EQ(count(groups[0], last + "\n"), 0u);
    EXPECT_NE(function(groups[1], last), "");
    EXPECT_EQ(count(groups[1], first + "\n"), 0u);
    // The table's last entry, which is the other group's; and its first.
    EXPECT_EQ(count(groups[0], format("f%u, 0}", functions - 2)), 1u);
    EXPECT_EQ(count(groups[1], "0, " + last + "}"), 1u);
}

}  // namespace
}  // namespace gpurun::test
