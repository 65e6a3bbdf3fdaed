// Loops that end after a known number of turns.
#pragma once

#include "base/ints.h"
#include "codegen/llvm.h"

#include <llvm/IR/PassManager.h>

namespace gpurun::codegen {

// Metadata of the branch at a loop's head that is taken when the time is over.
inline constexpr const char* late_kind = "gpurun.late";

// A loop that is over soon need not look at the time.
struct ShortLoopsPass : llvm::PassInfoMixin<ShortLoopsPass> {
    llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
};

}  // namespace gpurun::codegen
