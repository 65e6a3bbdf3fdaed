// Lets one check of an address stand for those of all addresses near it.
#pragma once

#include "base/ints.h"
#include "codegen/llvm.h"

#include <llvm/IR/PassManager.h>

namespace gpurun::codegen {

// Whether an access is within memory, and what a store notes of where it writes, are calls of
// outside_name and note_name until this pass: it makes comparisons and shifts of them.
//
// Addresses that differ by constants have one check: the first on the way reaches as far as all
// that follow it. So a function may leave before an access that it would have done; the interpreter
// does that then. What such a check has covered cannot wrap: the address becomes a sum in 64 bits,
// whose distance from the others LLVM can see.
class MergeChecksPass : public llvm::PassInfoMixin<MergeChecksPass> {
public:
    // `least_size`: bytes that memory 0 always has.
    explicit MergeChecksPass(u64 least_size) : least_size_(least_size) {}
    llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);

private:
    u64 least_size_;
};

inline constexpr const char *outside_name = "gpurun_is_outside", *note_name = "native_dirty";

}  // namespace gpurun::codegen
