// Printed code: every instruction reads as abi/code.h says, and its size is where the next begins.
#include "translate/print.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "text/assemble.h"

using namespace gpurun;
using namespace gpurun::translate;
namespace fs = std::filesystem;

namespace {

std::shared_ptr<const wasm::Module> module_of(std::string_view text) {
    auto assembled = text::assemble(text, "test");
    auto module = wasm::load(assembled->bytes);
    return module ? *module : nullptr;
}

// The code of a function without `enter`, an instruction a line, blanks made one.
std::string code_of(std::string_view text, u32 func = 0) {
    auto module = module_of(text);
    if (!module) return "invalid";
    wasm::Printer printer(*module);
    InstanceLayout layout(*module);
    CodePrinter code_printer(printer, layout);
    std::optional<FunctionCode> code = translate_function(*module, layout, func, {});
    std::string out, lines;
    for (u32 at = code_size(code->words[0]); at < code->words.size();
         at += code_size(code->words[at])) {
        code_printer.instr(out, *code, at);
        out += '\n';
    }
    for (usize i = 0; i < out.size(); i++)
        if (out[i] != ' ' || out[i + 1] != ' ') lines += out[i];
    return lines;
}

TEST(PrintCode, numbers) {
    EXPECT_EQ(code_of("(func (param i32 i32) (result i32) (i32.add (i32.mul (local.get 0) "
                      "(local.get 1)) (i32.const -4)))"),
              "i32_mul s2 = s0, s1\n"
              "i32_add_k s2 = s2, -4\n"
              "ret_32 s2\n");
    EXPECT_EQ(code_of("(func (result i64) (i64.const 0x123456789a))"),
              "const_64 s0 = 78187493530\n"
              "ret\n");
}

TEST(PrintCode, branches) {
    EXPECT_EQ(code_of("(func (param i32) (loop (br_if 0 (i32.lt_s (local.get 0) (i32.const 5))) "
                      "(br_if 0 (local.get 0))))"),
              "br_i32_lt_s_k s0, 5 -> 1\n"
              "br_nz s0 -> 1\n"
              "ret\n");
    EXPECT_EQ(code_of("(func (param i32) (block (block (br_table 0 1 0 (local.get 0))) (nop)))"),
              "br_table s0 -> 4, 4, else 4\n"
              "ret\n");
}

TEST(PrintCode, calls) {
    EXPECT_EQ(
        code_of("(import \"a\" \"b\" (func $b)) (table 1 funcref) (type $t (func (param i32)))"
                "(func $f (param i32) (call $b) (call $f (local.get 0))"
                "  (call_indirect (type $t) (local.get 0) (i32.const 1)) (return_call $f "
                "(local.get 0)))",
                1),
        "call_import $b, s1\n"
        "copy_32 s1 = s0\n"
        "call $f, s1\n"
        "const_32 s2 = 1\n"
        "copy_32 s1 = s0\n"
        "call_indirect table 0 [s2], type 0, s1\n"
        "copy_32 s1 = s0\n"
        "return_call $f, s1, 1 words\n");
}

TEST(PrintCode, memories_and_globals) {
    EXPECT_EQ(code_of("(memory 1) (memory 1) (global $a i64 (i64.const 1)) (global $b (mut i32) "
                      "(i32.const 1))"
                      "(func (param i32) (global.set $b (i32.load offset=8 (local.get 0)))"
                      "  (i32.store8 1 offset=3 (local.get 0) (global.get $b))"
                      "  (memory.copy 1 0 (local.get 0) (local.get 0) (local.get 0)))"),
              "i32_load s1 = [s0 + 8]\n"
              "global_set_32 global 1 = s1\n"
              "global_get_32 s2 = global 1\n"
              "i32_store8_x memory 1 [s0 + 3] = s2\n"
              "copy_32 s3 = s0\n"
              "copy_32 s2 = s0\n"
              "copy_32 s1 = s0\n"
              "memory_copy memory 1 [s1], memory 0 [s2], count s3\n"
              "ret\n");
}

// The fuzzers' seeds hold every instruction of wasm.
TEST(PrintCode, sizes_fit_everywhere) {
    const char* build = std::getenv("GPURUN_BUILD");
    fs::path seeds = fs::path(build ? build : "build") / "fuzz/seeds/wasm";
    if (!fs::exists(seeds)) GTEST_SKIP() << seeds << " is not there";
    for (const auto& entry : fs::directory_iterator(seeds)) {
        SCOPED_TRACE(entry.path());
        std::ifstream file(entry.path(), std::ios::binary);
        auto module = wasm::load(wasm::Bytes{std::istreambuf_iterator<char>(file), {}});
        ASSERT_TRUE(module.ok());
        wasm::Printer printer(**module);
        InstanceLayout layout(**module);
        CodePrinter code_printer(printer, layout);
        for (u32 func = (*module)->imported_funcs; func < (*module)->funcs.size(); func++) {
            for (bool metered : {false, true}) {
                std::optional<FunctionCode> code =
                    translate_function(**module, layout, func, {metered});
                ASSERT_TRUE(code);
                std::set<u32> starts;
                u32 at = 0;
                for (; at < code->words.size(); at += code_size(code->words[at])) {
                    starts.insert(at);
                    std::string text;
                    code_printer.instr(text, *code, at);
                    EXPECT_EQ(text.find('%'), text.npos) << text;
                }
                EXPECT_EQ(at, code->words.size());
                for (const FunctionMap::Line& line : code->map.lines)
                    EXPECT_TRUE(starts.count(line.position) || line.position == at)
                        << line.position;
            }
        }
    }
}

}  // namespace
