// Looks at innermost loops without calls whose number of turns LLVM can bound.
#include "codegen/short_loops.h"

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/IR/IntrinsicInst.h>

namespace gpurun::codegen {
namespace {

constexpr u64 most_late = 1 << 16;  // instructions of all turns that need no look at the time

struct Body {
    u64 instructions = 0;
    bool has_calls = false;

    explicit Body(const llvm::Loop& loop) {
        for (const llvm::BasicBlock* block : loop.blocks())
            for (const llvm::Instruction& instruction : *block) {
                instructions++;
                if (auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction))
                    has_calls |= !call->isInlineAsm() && !call->doesNotAccessMemory() &&
                                 !llvm::isa<llvm::IntrinsicInst>(call);
            }
    }
};

bool drop_late(const llvm::Loop& loop) {
    bool is_changed = false;
    for (llvm::BasicBlock* block : loop.blocks()) {
        auto* branch = llvm::dyn_cast<llvm::BranchInst>(block->getTerminator());
        if (!branch || !branch->getMetadata(late_kind)) continue;
        auto* is_late = llvm::dyn_cast<llvm::Instruction>(branch->getCondition());
        branch->setCondition(llvm::ConstantInt::getFalse(branch->getContext()));
        // A look at the clock is nothing that LLVM would give up by itself.
        while (is_late && is_late->use_empty()) {
            auto* next = is_late->getNumOperands() > 0
                             ? llvm::dyn_cast<llvm::Instruction>(is_late->getOperand(0))
                             : nullptr;
            is_late->eraseFromParent();
            is_late = next;
        }
        is_changed = true;
    }
    return is_changed;
}

}  // namespace

llvm::PreservedAnalyses ShortLoopsPass::run(llvm::Function& function,
                                            llvm::FunctionAnalysisManager& analyses) {
    auto& loops = analyses.getResult<llvm::LoopAnalysis>(function);
    auto& evolution = analyses.getResult<llvm::ScalarEvolutionAnalysis>(function);
    bool is_changed = false;
    for (llvm::Loop* loop : loops.getLoopsInPreorder()) {
        const u64 turns = loop->isInnermost() ? evolution.getSmallConstantMaxTripCount(loop) : 0;
        const Body body(*loop);
        if (turns == 0 || body.has_calls || turns * body.instructions > most_late) continue;
        is_changed |= drop_late(*loop);
    }
    return is_changed ? llvm::PreservedAnalyses::none() : llvm::PreservedAnalyses::all();
}

}  // namespace gpurun::codegen
