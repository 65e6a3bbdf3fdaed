// The runtime's kernels as PTX text, carried inside the binary for the CUDA driver to assemble.
#pragma once

#include <string_view>

namespace gpurun {

// A NUL stands after the last character.
std::string_view runtime_ptx();

}  // namespace gpurun
