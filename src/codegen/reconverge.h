// Lets lanes of a warp meet again behind branches and loops in which some of them may leave.
#pragma once

#include "codegen/llvm.h"

namespace gpurun::codegen {

// The assembler lets lanes that took different ways meet again in the first block that all ways
// pass. A way that leaves the function passes none of the blocks behind, so that lanes would meet
// where the function returns, and not before: each alone in all loops until then.
//
// So whoever leaves goes to the next block where other ways meet, with a flag that takes it from
// there to the one after, and so on to the end. Lanes that stay test the flag there, which is all
// that it costs them.
//
// Done for functions with the attribute meets_attribute; the call that ends all leaving has
// leaves_attribute.
void reconverge(llvm::Function& function);

inline constexpr const char* meets_attribute = "gpurun-meets";

}  // namespace gpurun::codegen
