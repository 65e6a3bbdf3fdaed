// The runtime's kernels as PTX text, carried inside the binary for the CUDA driver to assemble.
// A NUL stands after the last character.
#pragma once

#include <string_view>

namespace gpurun {

// gpurun_burst, for capability 7.5 as 75, 8.0 as 80, …; deep: for stacks beyond gang_stack_slots.
std::string_view gang_ptx(unsigned capability, bool is_deep);
// gpurun_solo; deep: for stacks that use more than stack_window.
std::string_view solo_ptx(bool is_deep);
// The same for machine code, which is loaded apart from them.
std::string_view native_gang_ptx();
std::string_view native_solo_ptx();
// gpurun_resident.
std::string_view resident_ptx(unsigned capability);

}  // namespace gpurun
