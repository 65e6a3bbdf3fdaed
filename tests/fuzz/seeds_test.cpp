// The fuzzers' seeds are valid modules that run to their end, and together they hold every row of
// the opcode table.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "engine/store.h"
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

void expect_returns(const std::shared_ptr<const wasm::Module>& module) {
    auto store = engine::Store::create({.fuel = 100'000});
    ASSERT_TRUE(store.ok());
    auto made = (*store)->instantiate(module, {}, {});
    ASSERT_TRUE(made.ok());
    auto run = (*store)->find_export(*made->instance, "run");
    ASSERT_TRUE(run.has_value());
    auto completion = (*store)->call(*run, {}, {});
    ASSERT_TRUE(completion.ok());
    EXPECT_EQ(completion->kind, engine::Completion::Kind::returned) << completion->to_string();
}

TEST(Seeds, RunAndHoldEveryInstruction) {
    std::set<wasm::Op> found;
    for (const auto& entry :
         fs::directory_iterator(fs::path(std::getenv("GPURUN_BUILD")) / "fuzz/seeds/wasm")) {
        SCOPED_TRACE(entry.path());
        std::ifstream file(entry.path(), std::ios::binary);
        auto module = wasm::load(wasm::Bytes{std::istreambuf_iterator<char>(file), {}});
        ASSERT_TRUE(module.ok()) << module.error().to_string();
        expect_returns(*module);
        for (const auto& func : (*module)->funcs) collect(**module, func.code, func.end, found);
    }
    std::set<std::string> missing;
    for (u32 op = 0; op < u32(wasm::Op::count); op++) {
        if (!found.count(wasm::Op(op))) missing.insert(wasm::op_info(wasm::Op(op)).text);
    }
    EXPECT_THAT(missing, testing::IsEmpty());
}

}  // namespace
