// Finds where in its source an instruction comes from, by the DWARF that compilers write to custom
// sections (.debug_line, versions 2 to 5). Reads only what it needs for one answer, and keeps
// nothing.
#pragma once

#include <string>

#include "wasm/module.h"

namespace gpurun::wasm {

// Returns "src/main.c:12:5" for the instruction at a byte offset of the module, or nothing if the
// module does not say or its DWARF is broken.
std::string source_line(const Module& module, u32 offset);

}  // namespace gpurun::wasm
