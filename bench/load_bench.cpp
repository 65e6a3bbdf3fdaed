// Bytes of module decoded and validated, and translated, per second: of a module made here, and
// of the real ones in the folder $GPURUN_MODULES. On one core if it may use only one.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "base/check.h"
#include "text/assemble.h"
#include "translate/translate.h"
#include "wasm/module.h"

using namespace gpurun;
namespace fs = std::filesystem;

namespace {

std::string read_file(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

// The text of one function that uses locals, memory, calls, blocks and branches as compilers do,
// repeated until the module has about `megabytes`.
wasm::Bytes large_module(u32 megabytes) {
    std::string source = "(module (memory 1) (global $g (mut i32) (i32.const 0))\n";
    for (u32 i = 0; i < megabytes * 7500; i++) {
        source += R"(
(func (param i32 i32 i64 f64) (result i32) (local i32 i32 i64)
  local.get 0 i32.eqz if (result i32) i32.const 0 else
    block block loop
      local.get 4 local.get 1 i32.ge_u br_if 2
      local.get 0 local.get 4 i32.const 3 i32.shl i32.add local.tee 5
      i64.load offset=16 local.get 2 i64.xor local.tee 6 i64.const 0xff51afd7 i64.mul
      local.set 2 local.get 5 local.get 2 i64.store offset=24
      local.get 5 local.get 3 f64.const 0.5 f64.mul f64.store offset=32
      local.get 4 i32.const 1 i32.add local.set 4
      local.get 6 i64.eqz br_if 1 br 0
    end end global.get $g i32.const 1 i32.add global.set $g end
    local.get 0 local.get 1 i32.const 1 i32.sub local.get 2 local.get 3 call 0
  end))";
    }
    auto module = text::assemble(source + ")", "large.wat");
    CHECK(module.ok());
    return std::move(module->bytes);
}

void load(benchmark::State& state, const wasm::Bytes& bytes) {
    for (auto _ : state) {
        state.PauseTiming();
        wasm::Bytes copy = bytes;
        state.ResumeTiming();
        CHECK(wasm::load(std::move(copy)).ok());
    }
    state.SetBytesProcessed(s64(state.iterations()) * s64(bytes.size()));
}

void translate(benchmark::State& state, const wasm::Bytes& bytes) {
    auto module = wasm::load(bytes);
    CHECK(module.ok());
    for (auto _ : state) CHECK(translate::translate(**module, {}).ok());
    state.SetBytesProcessed(s64(state.iterations()) * s64(bytes.size()));
}

void load_generated(benchmark::State& state) { load(state, large_module(10)); }
BENCHMARK(load_generated)->Unit(benchmark::kMillisecond)->UseRealTime()->MinTime(0.3);
void translate_generated(benchmark::State& state) { translate(state, large_module(10)); }
BENCHMARK(translate_generated)->Unit(benchmark::kMillisecond)->UseRealTime()->MinTime(0.3);

// Registered before main runs.
const bool real_modules = [] {
    const char* folder = std::getenv("GPURUN_MODULES");
    if (!folder) return false;
    for (const auto& entry : fs::directory_iterator(folder)) {
        if (entry.path().extension() != ".wasm") continue;
        std::string file = read_file(entry.path());
        wasm::Bytes bytes(file.begin(), file.end());
        std::string name = "/" + entry.path().filename().string();
        benchmark::RegisterBenchmark(("load" + name).c_str(),
                                     [bytes](auto& state) { load(state, bytes); })
            ->Unit(benchmark::kMillisecond)
            ->UseRealTime()
            ->MinTime(0.3);
        benchmark::RegisterBenchmark(("translate" + name).c_str(),
                                     [bytes](auto& state) { translate(state, bytes); })
            ->Unit(benchmark::kMillisecond)
            ->UseRealTime()
            ->MinTime(0.3);
    }
    return true;
}();

}  // namespace
