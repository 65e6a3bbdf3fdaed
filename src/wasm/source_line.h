// Where in its source an instruction comes from, by the DWARF that compilers leave in custom
// sections (.debug_line, versions 2 to 5). Reads only what it needs for one answer, keeps nothing.
#pragma once

#include <string>

#include "wasm/module.h"

namespace gpurun::wasm {

// "src/main.c:12:5", for the instruction at a byte offset of the module. Empty where the module
// does not say, or where what it says is broken.
std::string source_line(const Module& module, u32 offset);

}  // namespace gpurun::wasm
