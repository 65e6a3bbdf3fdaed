// Images of modules, from the cache where they have been made before.
#pragma once

#include "codegen/codegen.h"

namespace gpurun::engine {

// `code` is the module's, with or without charges for fuel.
Result<codegen::Image> compiled(const wasm::Module& module, const translate::Code& code,
                                codegen::Target target, bool is_metered);

// What is made of a module on the way, as text: LLVM's IR before it is optimised, the CPU's
// assembly, or PTX.
enum class Emitted : u8 { ir, assembly, ptx };
Result<std::string> emit(const wasm::Module& module, Emitted what);
// Compiles it for the CPU, so that it is kept. What was done, in words.
Result<std::string> compile_for_later(const wasm::Module& module);

}  // namespace gpurun::engine
