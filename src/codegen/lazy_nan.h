// Leaves NaNs as the hardware computes them where nobody can see their bits.
#pragma once

#include "codegen/llvm.h"

#include <llvm/IR/PassManager.h>

namespace gpurun::codegen {

// Every float that is computed is followed by what makes a NaN canonical. Arithmetic and
// comparisons do not care which NaN they are given: they get the value before that, and so do
// values that loops carry. Where the bits matter (stores, calls, results, casts to integers), and
// where a function leaves, they are made canonical as before.
struct LazyNanPass : llvm::PassInfoMixin<LazyNanPass> {
    llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager&);
};

}  // namespace gpurun::codegen
