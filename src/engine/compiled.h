// Compiles modules without running them: to text that shows the code, or to files to ship.
#pragma once

#include "engine/images.h"

namespace gpurun::engine {

// A form that a module has on the way to machine code, as text: LLVM's IR before it is optimised,
// the CPU's assembly, or PTX.
enum class Emitted : u8 { ir, assembly, ptx };
Result<std::string> emit(const wasm::Module& module, Emitted what);
// Compiles a module for the CPU into the cache, under `name`. Returns a description of the result.
Result<std::string> compile_for_later(const std::shared_ptr<const wasm::Module>& module,
                                      const std::string& name);

// Returns a file that has a module with its machine code for these targets; for the host's, `cpu`
// is as in codegen::Options. The same module gives the same bytes, wherever it is made. `done` gets
// a description of what was compiled.
Result<std::vector<u8>> make_package(const wasm::Module& module,
                                     std::span<const codegen::Target> targets,
                                     const std::string& cpu, std::string& done);

}  // namespace gpurun::engine
