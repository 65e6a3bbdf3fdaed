// The runtime's kernels as PTX text, carried inside the binary for the CUDA driver to assemble.
// A NUL stands after the last character.
#pragma once

#include <string_view>

namespace gpurun {

std::string_view gang_ptx(unsigned capability);  // gpurun_burst, for 7.5 as 75, 8.0 as 80, …
std::string_view deep_ptx();                     // the same for stacks beyond gang_stack_slots
std::string_view solo_ptx();                     // gpurun_solo

}  // namespace gpurun
