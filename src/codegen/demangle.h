// Names of functions as their source has them. LLVM knows the schemes of C++ and Rust.
#pragma once

#include <string>
#include <string_view>

namespace gpurun::codegen {

// Returns "core::panicking::panic" for "_ZN4core9panicking5panic17h…E", "f(int)" for "_Z1fi".
// Returns names as they are if no compiler made them, or if they are or would become very long.
std::string demangled(std::string_view name);

}  // namespace gpurun::codegen
