// The fuzzers' seeds are valid modules, and together they hold every row of the opcode table.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "wasm/instr.h"
#include "wasm/module.h"

using namespace gpurun;
namespace fs = std::filesystem;

namespace {

void collect(const wasm::Module& module, u32 begin, u32 end, std::set<wasm::Op>& ops) {
    wasm::InstrReader reader(module.bytes, begin, end);
    wasm::Instr instr;
    while (reader.next(instr)) ops.insert(instr.op);
}

TEST(Seeds, HoldEveryInstruction) {
    std::set<wasm::Op> found;
    for (const auto& entry : fs::directory_iterator(fs::path(std::getenv("GPURUN_BUILD")) /
                                                    "fuzz/seeds/wasm")) {
        std::ifstream file(entry.path(), std::ios::binary);
        auto module = wasm::load(wasm::Bytes{std::istreambuf_iterator<char>(file), {}});
        ASSERT_TRUE(module.ok()) << entry.path() << ": " << module.error().to_string();
        for (const auto& func : (*module)->funcs) collect(**module, func.code, func.end, found);
    }
    std::set<std::string> missing;
    for (u32 op = 0; op < u32(wasm::Op::count); op++) {
        if (!found.count(wasm::Op(op))) missing.insert(wasm::op_info(wasm::Op(op)).text);
    }
    EXPECT_THAT(missing, testing::IsEmpty());
}

}  // namespace
