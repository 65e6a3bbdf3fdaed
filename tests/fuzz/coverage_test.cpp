// The fuzzers' seeds and corpus execute at least 95 % of the rows of the opcode table: not merely
// hold them. Modules are stepped through; each position reached leads back to its instruction.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "engine/store.h"
#include "wasm/instr.h"

using namespace gpurun;
namespace fs = std::filesystem;

namespace {

using wasm::Op;
using ModulePtr = std::shared_ptr<const wasm::Module>;

constexpr u32 max_steps = 2000;  // of one call

// Instructions that control may reach in other ways than by falling through from above.
bool is_join(Op op) {
    return op == Op::end || op == Op::else_ || op == Op::catch_ || op == Op::catch_all ||
           op == Op::delegate;
}

// Many instructions have no code of their own: constants and locals become operands, comparisons
// part of a branch. They were executed if one that can only be reached through them was.
void mark(const wasm::Module& module, u32 func, u32 offset, std::set<Op>& executed) {
    std::vector<wasm::Instr> body;
    wasm::InstrReader reader(module.bytes, module.funcs[func].code, module.funcs[func].end);
    wasm::Instr instr;
    usize at = 0;
    while (reader.next(instr)) {
        if (instr.offset == offset) at = body.size();
        body.push_back(instr);
    }
    if (body[at].offset != offset) return;
    executed.insert(body[at].op);
    if (is_join(body[at].op) && at + 1 < body.size()) return;
    while (at > 0) {
        Op op = body[--at].op;
        if (op == Op::end || op == Op::delegate) return;
        executed.insert(op);
        if (is_join(op)) return;
    }
}

void step_through(engine::Store& store, const wasm::Module& module, const engine::Extern& func,
                  std::set<Op>& executed) {
    std::vector<engine::Value> zeros;
    for (wasm::ValType type : store.type_of(func).params) {
        if (!type.is_defaultable()) return;
        zeros.push_back({type});
    }
    if (!store.begin_call(func, zeros)) return;
    std::set<u32> seen;
    ThreadState state = ThreadState::ready;
    for (u32 steps = 0; state == ThreadState::ready && steps < max_steps; steps++) {
        u32 position;
        ASSERT_TRUE(store.space().read_words(store.thread() + thread_pc, {&position, 1}).ok());
        if (seen.insert(position).second) {
            auto standing = store.finish_call(func, state);  // as if interrupted here
            ASSERT_TRUE(standing.ok());
            if (!standing->backtrace.empty()) {  // as it is at the very end
                const engine::Frame& frame = standing->backtrace[0];
                mark(module, frame.func, frame.wasm_offset, executed);
            }
        }
        auto stepped = store.space().step(store.thread(), 1);
        ASSERT_TRUE(stepped.ok());
        state = *stepped;
    }
}

void run_module(const fs::path& path, std::set<Op>& executed) {
    std::ifstream file(path, std::ios::binary);
    auto module = wasm::load(wasm::Bytes{std::istreambuf_iterator<char>(file), {}});
    if (!module || !(*module)->imports.empty() || (*module)->start) return;
    engine::StoreOptions options;
    options.stack_slots = 1 << 12;
    options.memory_bytes = 1 << 20;
    options.all_memory_bytes = 16 << 20;
    auto store = engine::Store::create(options);
    ASSERT_TRUE(store.ok());
    auto made = (*store)->instantiate(*module, {}, {});
    if (!made || made->completion.kind != engine::Completion::Kind::returned) return;
    for (const wasm::Export& exported : (*module)->exports) {
        if (exported.kind != wasm::ExternKind::func) continue;
        auto func = (*store)->find_export(*made->instance, exported.name);
        step_through(**store, **module, *func, executed);
    }
}

TEST(Coverage, OfExecutedInstructions) {
    std::set<Op> executed;
    const fs::path folders[] = {fs::path(std::getenv("GPURUN_BUILD")) / "fuzz/seeds/wasm",
                                fs::path(std::getenv("GPURUN_SOURCE")) / "fuzz/corpus/run"};
    for (const fs::path& folder : folders) {
        if (!fs::is_directory(folder)) continue;
        for (const auto& entry : fs::directory_iterator(folder)) run_module(entry.path(), executed);
    }
    std::set<std::string> missing;
    for (u32 op = 0; op < u32(Op::count); op++) {
        if (!executed.count(Op(op))) missing.insert(wasm::op_info(Op(op)).text);
    }
    std::printf("%zu of %u rows executed; not: %s\n", executed.size(), u32(Op::count),
                testing::PrintToString(missing).c_str());
    EXPECT_GE(executed.size() * 100, usize(Op::count) * 95);
}

}  // namespace
