// Handles names that people type: quotes them for messages, and suggests one that was meant.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "wasm/module.h"

namespace gpurun::engine {

// Returns a name in quotes, with escapes for control characters: "fac".
std::string quoted(std::string_view name);

// Returns the end of a message about an unknown name: "; did you mean \"fac\"?", or
// "; there are \"fac\", \"fib\"", or nothing.
std::string suggest(std::string_view name, std::span<const std::string> known);

// Returns the exported function of that name, or an Error that says what there is instead.
Result<const wasm::Export*> find_function_export(const wasm::Module& module, std::string_view name);

// Returns the exported function that has to be called before `function`, or null if there is none:
// libraries have an initialiser, programs do not.
Result<const wasm::Export*> find_initialize(const wasm::Module& module, std::string_view function);

}  // namespace gpurun::engine
