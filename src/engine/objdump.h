// Shows a module as text: its sections and declarations, and its functions with their wasm and the
// interpreter's code, each piece of code below the instruction that it comes from.
#pragma once

#include <functional>
#include <string_view>

#include "base/result.h"
#include "wasm/module.h"

namespace gpurun::engine {

struct ObjdumpOptions {
    bool headers_only = false;
    std::string function;  // only this one, by index or name; empty: all, and the headers
};

// Takes the next piece of the text. Returns false if no more is wanted.
using TextSink = std::function<bool(std::string_view)>;

// Writes the text of a module. Returns an Error if there is no such function.
Result<void> objdump(const wasm::Module& module, const ObjdumpOptions& options,
                     const TextSink& sink);

}  // namespace gpurun::engine
