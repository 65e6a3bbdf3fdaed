// Says of pointers where they point as early as that is known. Private to src/codegen.
#pragma once

#include "codegen/llvm.h"

#include <llvm/IR/PassManager.h>

namespace gpurun::codegen {

// The runtime's functions say it of each place that they access: a cast of an address that was
// computed from something else. Here the cast comes first, once, and the distance is left to the
// access itself.
struct AddressSpacesPass : llvm::PassInfoMixin<AddressSpacesPass> {
    llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager&);
};

}  // namespace gpurun::codegen
