// What is made of modules without running them: text to look at, files to ship.
#pragma once

#include "engine/images.h"

namespace gpurun::engine {

// What is made of a module on the way, as text: LLVM's IR before it is optimised, the CPU's
// assembly, or PTX.
enum class Emitted : u8 { ir, assembly, ptx };
Result<std::string> emit(const wasm::Module& module, Emitted what);
// Compiles a module for the CPU, so that it is kept under `name`. Returns what was done, in words.
Result<std::string> compile_for_later(const std::shared_ptr<const wasm::Module>& module,
                                      const std::string& name);

// A module with its machine code for these targets; for the host's, a CPU as in codegen::Options.
// The same module gives the same bytes, wherever it is made. `done` says what was, in words.
Result<std::vector<u8>> make_package(const wasm::Module& module,
                                     std::span<const codegen::Target> targets,
                                     const std::string& cpu, std::string& done);

}  // namespace gpurun::engine
