// A switch becomes a tree of comparisons: the values that go the same way, one after another, are a
// range, and the middle one comes first. What no case has goes to the default.
#include "codegen/switches.h"

#include <algorithm>
#include <span>
#include <vector>

#include "base/ints.h"

namespace gpurun::codegen {
namespace {

class Lowering {
public:
    explicit Lowering(llvm::SwitchInst& from)
        : switch_(from),
          block_(from.getParent()),
          value_(from.getCondition()),
          has_default_(!from.defaultDestUnreachable()),
          b_(&from) {
        for (const auto& one : from.cases())
            cases_.push_back({one.getCaseValue()->getZExtValue(), one.getCaseSuccessor()});
        std::ranges::sort(cases_, {}, &Case::first);
        find_ranges();
    }

    void lower() {
        build(block_, ranges_);
        for (u32 i = 0; i < switch_.getNumSuccessors(); i++)
            for (llvm::PHINode& phi : switch_.getSuccessor(i)->phis())
                for (int at; (at = phi.getBasicBlockIndex(block_)) >= 0;)
                    phi.removeIncomingValue(u32(at), false);
        switch_.eraseFromParent();
    }

private:
    // Values from `first` on, up to the next one's.
    struct Case {
        u64 first;
        llvm::BasicBlock* to;
    };

    // Without a default, what is between cases may go anywhere.
    void find_ranges() {
        auto add = [&](u64 first, llvm::BasicBlock* to) {
            if (ranges_.empty() || ranges_.back().to != to) ranges_.push_back({first, to});
        };
        u64 next = 0;
        for (const Case& one : cases_) {
            if (has_default_ && one.first > next) add(next, switch_.getDefaultDest());
            add(one.first, one.to);
            next = one.first + 1;
        }
        const u32 bits = value_->getType()->getIntegerBitWidth();
        if (has_default_ && (bits == 64 ? next != 0 : next < u64{1} << bits))
            add(next, switch_.getDefaultDest());
    }

    llvm::BasicBlock* new_block() {
        return llvm::BasicBlock::Create(block_->getContext(), "", block_->getParent());
    }

    // A block that goes there, as the switch did.
    llvm::BasicBlock* leaf(llvm::BasicBlock* to) {
        llvm::BasicBlock* made = new_block();
        llvm::IRBuilder<>(made).CreateBr(to);
        for (llvm::PHINode& phi : to->phis())
            phi.addIncoming(phi.getIncomingValueForBlock(block_), made);
        return made;
    }

    llvm::BasicBlock* target(std::span<const Case> ranges) {
        if (ranges.size() == 1) return leaf(ranges.front().to);
        llvm::BasicBlock* made = new_block();
        build(made, ranges);
        return made;
    }

    // In `at`: on to the range that has the value.
    void build(llvm::BasicBlock* at, std::span<const Case> ranges) {
        if (at == block_)
            b_.SetInsertPoint(&switch_);
        else
            b_.SetInsertPoint(at);
        if (ranges.size() == 1) {
            b_.CreateBr(leaf(ranges.front().to));
            return;
        }
        const usize middle = ranges.size() / 2;
        llvm::Value* is_below = b_.CreateICmpULT(
            value_, llvm::ConstantInt::get(value_->getType(), ranges[middle].first));
        llvm::Instruction* branch = b_.CreateCondBr(is_below, at, at);
        llvm::BasicBlock* below = target(ranges.first(middle));
        llvm::BasicBlock* above = target(ranges.subspan(middle));
        branch->setSuccessor(0, below);
        branch->setSuccessor(1, above);
    }

    llvm::SwitchInst& switch_;
    llvm::BasicBlock* block_;
    llvm::Value* value_;
    const bool has_default_;  // else the value is one of the cases
    llvm::IRBuilder<> b_;
    std::vector<Case> cases_, ranges_;
};

}  // namespace

void lower_switches(llvm::Function& function) {
    std::vector<llvm::SwitchInst*> all;
    for (llvm::BasicBlock& block : function)
        if (auto* found = llvm::dyn_cast<llvm::SwitchInst>(block.getTerminator()))
            if (found->getNumCases() > 0) all.push_back(found);
    for (llvm::SwitchInst* one : all) Lowering(*one).lower();
}

}  // namespace gpurun::codegen
