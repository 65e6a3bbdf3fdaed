// Casts of pointers go before the arithmetic on them.
#include "codegen/address_spaces.h"

#include <vector>

#include "base/ints.h"

#include <llvm/IR/InstIterator.h>

namespace gpurun::codegen {
namespace {

class Casts {
public:
    explicit Casts(llvm::Function& function) : function_(function), b_(function.getContext()) {}

    bool move() {
        std::vector<llvm::AddrSpaceCastInst*> all;
        for (llvm::Instruction& instruction : llvm::instructions(function_))
            if (auto* found = llvm::dyn_cast<llvm::AddrSpaceCastInst>(&instruction))
                if (found->getSrcAddressSpace() == 0) all.push_back(found);
        for (llvm::AddrSpaceCastInst* one : all) {
            llvm::Value* moved = cast(one->getPointerOperand(), one->getType());
            if (!moved) continue;
            one->replaceAllUsesWith(moved);
            one->eraseFromParent();
        }
        return !all.empty();
    }

private:
    // `pointer` as one of that type, where it is defined; null for constants.
    llvm::Value* cast(llvm::Value* pointer, llvm::Type* type) {
        if (auto found = made_.find({pointer, type}); found != made_.end()) return found->second;
        llvm::Value* result = nullptr;
        if (auto* element = llvm::dyn_cast<llvm::GetElementPtrInst>(pointer)) {
            if (llvm::Value* base = cast(element->getPointerOperand(), type)) {
                b_.SetInsertPoint(element);
                llvm::SmallVector<llvm::Value*, 4> indices(element->indices());
                result = b_.CreateGEP(element->getSourceElementType(), base, indices, "",
                                      element->getNoWrapFlags());
            }
        } else if (llvm::isa<llvm::Argument>(pointer)) {
            b_.SetInsertPoint(&function_.getEntryBlock(),
                              function_.getEntryBlock().getFirstInsertionPt());
            result = b_.CreateAddrSpaceCast(pointer, type);
        } else if (auto* instruction = llvm::dyn_cast<llvm::Instruction>(pointer)) {
            if (auto after = instruction->getInsertionPointAfterDef()) {
                b_.SetInsertPoint(*after);
                result = b_.CreateAddrSpaceCast(pointer, type);
            }
        }
        made_[{pointer, type}] = result;
        return result;
    }

    llvm::Function& function_;
    llvm::IRBuilder<> b_;
    llvm::DenseMap<std::pair<llvm::Value*, llvm::Type*>, llvm::Value*> made_;
};

}  // namespace

llvm::PreservedAnalyses AddressSpacesPass::run(llvm::Function& function,
                                               llvm::FunctionAnalysisManager&) {
    if (!Casts(function).move()) return llvm::PreservedAnalyses::all();
    llvm::PreservedAnalyses kept;
    kept.preserveSet<llvm::CFGAnalyses>();
    return kept;
}

}  // namespace gpurun::codegen
