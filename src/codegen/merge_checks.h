// Lets one check of an address stand for those of all addresses near it.
#pragma once

#include "base/ints.h"
#include "codegen/llvm.h"

#include <llvm/IR/PassManager.h>

namespace gpurun::codegen {

// Generated code calls outside_name to check an access, and note_name to note where a store writes,
// until this pass makes comparisons and shifts of these calls.
//
// Addresses that differ by constants have one check: the first reaches as far as all accesses that
// follow it for sure. So a function may leave before an access that it would have done; the
// interpreter does that then. Addresses that such a check has covered cannot wrap: they become sums
// in 64 bits, whose distance from each other LLVM can see.
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
