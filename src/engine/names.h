// Names that people type: quoted for messages, and what was meant where there is no such name.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "wasm/module.h"

namespace gpurun::engine {

// "fac", with escapes for what would harm a terminal.
std::string quoted(std::string_view name);

// "; did you mean \"fac\"?", or "; there are \"fac\", \"fib\"", or nothing.
std::string suggest(std::string_view name, std::span<const std::string> known);

// The exported function of that name. The Error says what there is instead.
Result<const wasm::Export*> find_function_export(const wasm::Module& module, std::string_view name);

// Returns the exported function that has to be called before `function`, or null: libraries have an
// initialiser, programs have none.
Result<const wasm::Export*> find_initialize(const wasm::Module& module, std::string_view function);

}  // namespace gpurun::engine
