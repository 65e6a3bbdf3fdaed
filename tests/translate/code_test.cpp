// What functions become: listings of their code. A change in one of them is a change of speed or
// of meaning; see that it was meant.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>

#include "text/assemble.h"
#include "translate/print.h"
#include "translate/translate.h"
#include "wasm/print.h"

namespace gpurun::translate {
namespace {

std::shared_ptr<const wasm::Module> load(std::string_view wat) {
    auto assembled = text::assemble(wat, "test.wat");
    EXPECT_TRUE(assembled.ok()) << assembled.error().to_string();
    auto module = wasm::load(std::move(assembled->bytes));
    EXPECT_TRUE(module.ok()) << module.error().to_string();
    return *module;
}

// The last function: a line an instruction, "position: name operands".
std::string listing(std::string_view wat, const Options& options = {}) {
    auto module = load(wat);
    InstanceLayout layout(*module);
    auto code = translate_function(*module, layout, u32(module->funcs.size() - 1), options);
    wasm::Printer names(*module);
    CodePrinter printer(names, layout);
    std::string out;
    for (u32 at = 0; at < code->words.size(); at += code_size(code->words[at])) {
        std::string line;
        printer.instr(line, *code, at);
        line.erase(std::unique(line.begin(), line.end(),
                               [](char a, char b) { return a == ' ' && b == ' '; }),
                   line.end());
        out += "\n" + std::to_string(at) + ": " + line;
    }
    return out;
}

TEST(Code, SumLoopHasNoCopies) {
    EXPECT_EQ(listing(R"((memory 1)
        (func (param $n i32) (result i32) (local $i i32) (local $s i32)
          (loop $next
            (local.set $s (i32.add (local.get $s)
                                   (i32.load (i32.shl (local.get $i) (i32.const 2)))))
            (br_if $next (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1)))
                                   (local.get $n))))
          (local.get $s)))"),
              R"(
0: enter frame 9, zero 2 from s1
1: i32_shl_k s4 = s1, 2
2: i32_load s4 = [s4 + 0]
3: i32_add s2 = s2, s4
4: i32_add_k s1 = s1, 1
5: br_i32_lt_u s1, s0 -> 1
6: ret_32 s2)");
}

TEST(Code, ConstantsAreFolded) {
    EXPECT_EQ(listing(R"((func (param i32 i64)
        (local.set 0 (i32.add (i32.const -5) (local.get 0)))
        (local.set 0 (i32.sub (local.get 0) (i32.const 32768)))
        (local.set 0 (i32.sub (i32.const 3) (local.get 0)))
        (local.set 0 (i32.add (local.get 0) (i32.const 40000)))
        (local.set 1 (i64.mul (i64.const 9) (local.get 1)))
        (local.set 0 (i64.gt_s (i64.const 9) (local.get 1)))
        (local.set 0 (i64.gt_s (i64.const 90000) (local.get 1)))))"),
              R"(
0: enter frame 10
1: i32_add_k s0 = s0, -5
2: i32_add_k s0 = s0, -32768
3: const_32 s3 = 3
4: i32_sub s0 = s3, s0
5: const_32 s4 = 40000
6: i32_add s0 = s0, s4
7: i64_mul_k s1 = s1, 9
8: i64_lt_s_k s0 = s1, 9
9: const_64_k s3 = 90000
10: i64_gt_s s0 = s3, s1
11: ret)");
}

TEST(Code, ComparisonsFuseWithBranches) {
    EXPECT_EQ(listing(R"((func (param i32 i64 f64) (result i32)
        (if (i32.lt_s (local.get 0) (i32.const 5)) (then (return (i32.const 1))))
        (if (i32.eqz (local.get 0)) (then (return (i32.const 2))))
        (if (i64.eqz (local.get 1)) (then (return (i32.const 3))))
        (if (f64.eq (local.get 2) (local.get 2)) (then (return (i32.const 4))))
        (if (f64.lt (local.get 2) (local.get 2)) (then (return (i32.const 5))))
        (i32.const 6)))"),
              R"(
0: enter frame 12
1: br_i32_ge_s_k s0, 5 -> 4
2: const_32 s0 = 1
3: ret
4: br_nz s0 -> 7
5: const_32 s0 = 2
6: ret
7: br_i64_ne_k s1, 0 -> 10
8: const_32 s0 = 3
9: ret
10: br_f64_ne s3, s3 -> 13
11: const_32 s0 = 4
12: ret
13: f64_lt s5 = s3, s3
14: br_z s5 -> 17
15: const_32 s0 = 5
16: ret
17: const_32 s0 = 6
18: ret)");
}

TEST(Code, LocalsKeepTheirOldValueForWhoReadIt) {
    // The operand that was read first must not see the new value; the result goes straight in
    // only where nobody waits for the old one.
    EXPECT_EQ(listing(R"((func (param i32 i64) (result i32)
        (local.get 0)
        (local.set 0 (i32.add (local.get 0) (i32.const 1)))
        (i32.wrap_i64 (local.get 1))
        (local.set 1 (i64.add (local.get 1) (i64.const 1)))
        (i32.add) (i32.add (local.get 0))))"),
              R"(
0: enter frame 12
1: i32_add_k s4 = s0, 1
2: copy_32 s3 = s0
3: copy_32 s0 = s4
4: i64_add_k s5 = s1, 1
5: copy_32 s4 = s1
6: copy_64 s1 = s5
7: i32_add s3 = s3, s4
8: i32_add s3 = s3, s0
9: ret_32 s3)");
}

TEST(Code, WithoutAnInstruction) {
    EXPECT_EQ(listing(R"((func (param f64 i64) (result i64)
        (drop (i32.const 1)) (nop) (drop (local.get 0))
        (local.set 1 (i64.reinterpret_f64 (f64.abs (local.get 0))))
        (block (result i64) (local.tee 1 (local.get 1)))))"),
              R"(
0: enter frame 9
1: f64_abs s2 = s0
2: copy_64 s4 = s2
3: ret_64 s4)");
}

TEST(Code, CallsTakeArgumentsWhereTheyStand) {
    EXPECT_EQ(listing(R"((func $f (param i32 i64) (result i64) (local.get 1))
        (func (param i32 i64) (result i64)
          (i64.add (call $f (i32.add (local.get 0) (i32.const 1)) (local.get 1))
                   (call $f (i32.const 7) (i64.mul (local.get 1) (local.get 1))))))"),
              R"(
0: enter frame 13
1: i32_add_k s3 = s0, 1
2: copy_64 s4 = s1
3: call $f, s3
4: i64_mul s6 = s1, s1
5: const_32 s5 = 7
6: call $f, s5
7: i64_add s3 = s3, s5
8: ret_64 s3)");
}

TEST(Code, BranchesMoveValuesOnlyWhereTheyMust) {
    // In place: a bare branch. Elsewhere: around the moves.
    EXPECT_EQ(listing(R"((func (param i32) (result i32)
        (block $b (result i32)
          (br_if $b (i32.const 8) (local.get 0))
          (drop)
          (i64.const 1)
          (br_if $b (i32.const 9) (local.get 0))
          (drop) (drop) (i32.const 10))))"),
              R"(
0: enter frame 8
1: const_32 s1 = 8
2: br_nz s0 -> 8
3: const_32 s3 = 9
4: br_z s0 -> 7
5: copy_32 s1 = s3
6: ret_32 s1
7: const_32 s1 = 10
8: ret_32 s1)");
}

TEST(Code, ManyValuesMoveAtOnce) {
    EXPECT_EQ(listing(R"((func (param i32 i64) (result i32 i64 i32 i64)
        (local.get 0) (local.get 1) (local.get 0) (local.get 1)))"),
              R"(
0: enter frame 12
1: copy_32 s3 = s0
2: copy_64 s4 = s1
3: copy_32 s6 = s0
4: copy_64 s7 = s1
5: copy_words s0 = s3, 6 words
6: ret)");
}

TEST(Code, HandlersAreCode) {
    EXPECT_EQ(listing(R"((tag $t (param i32)) (func $f)
        (func (result i32)
          (block $h (result i32)
            (try_table (catch $t $h) (call $f))
            (i32.const 5))))"),
              R"(
0: enter frame 8
1: try_begin handler 5
2: call $f, s0
3: try_end 1
4: br -> 10
5: catch_tag tag 0, else -> 9
7: catch_values s0
8: ret_32 s0
9: throw_again
10: const_32 s0 = 5
11: ret_32 s0)");
}

TEST(Code, LongAddressesTakeTheGeneralForm) {
    EXPECT_EQ(listing(R"((memory 1) (memory $m 1)
        (func (param i32) (result i32)
          (i32.store offset=65536 (local.get 0) (i32.load offset=65535 (local.get 0)))
          (i32.load8_u $m (local.get 0))))"),
              R"(
0: enter frame 6
1: i32_load s2 = [s0 + 65535]
2: i32_store_w [s0 + 65536] = s2
4: i32_load8_u_x s1 = memory 1 [s0 + 0]
7: ret_32 s1)");
}

TEST(Code, FuelIsChargedPerBlock) {
    Options metered;
    metered.metered = true;
    EXPECT_EQ(listing(R"((func (param i32)
        (loop (br_if 0 (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
        (drop (i32.const 1))))",
                      metered),
              R"(
0: enter frame 6
1: charge 5
2: i32_add_k s0 = s0, -1
3: br_nz s0 -> 1
4: charge 1
5: ret)");
}

// ---- the map -----------------------------------------------------------------------

TEST(Map, PointsTellWhereEverythingStands) {
    auto module = load(R"((func $f)
        (func (param i32 i64) (local v128)
          (local.get 0) (i64.const 5)
          (call $f)
          (loop (param i64) (f64.const 1) (call $f) (drop) (drop))
          (drop) (call $f)))");
    FunctionMap map = map_function(*module, 1, {});
    EXPECT_EQ(map.local_slots, (std::vector<u32>{0, 1, 3}));
    std::string text;
    for (const FunctionMap::Point& point : map.points) {
        text += point.is_loop ? "loop:" : "call:";
        for (u32 at = point.top; at != FunctionMap::none; at = map.operands[at].below)
            text += " s" + std::to_string(map.operands[at].slot);
        text += "\n";
    }
    EXPECT_EQ(text, "call: s8 s7\nloop: s8 s7\ncall: s10 s8 s7\ncall:\n");
}

TEST(Map, LinesLeadBackToTheInstruction) {
    auto module = load("(func (param i32) (result i32) (i32.div_s (local.get 0) (i32.const 0)))");
    FunctionMap map = map_function(*module, 0, {});
    wasm::InstrReader reader(module->bytes, module->funcs[0].code, module->funcs[0].end);
    wasm::Instr instr;
    while (reader.next(instr) && instr.op != wasm::Op::i32_div_s) {
    }
    EXPECT_EQ(map.wasm_offset_at(2), instr.offset);  // enter, constant, division
}

}  // namespace
}  // namespace gpurun::translate
