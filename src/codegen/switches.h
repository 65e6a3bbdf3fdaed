// Switches as branches on bits.
#pragma once

#include "codegen/llvm.h"

namespace gpurun::codegen {

// For code that may have no jump tables. NVIDIA's assembler makes some of whatever compares a value
// with one constant after another, or in a tree; it does not of tests of single bits.
void lower_switches(llvm::Function& function);

}  // namespace gpurun::codegen
