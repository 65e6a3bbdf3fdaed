// A switch becomes a tree: the highest bit of its value first. What no case has goes to the
// default.
#include "codegen/switches.h"

#include <algorithm>
#include <bit>
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
        std::ranges::sort(cases_, {}, &Case::value);
    }

    void lower() {
        llvm::BasicBlock* tree = new_block();
        const u32 bits = u32(std::bit_width(cases_.back().value));
        if (has_default_ && bits < value_->getType()->getIntegerBitWidth()) {
            // Any bit above: no case has it.
            llvm::Value* above = b_.CreateLShr(value_, bits);
            b_.CreateCondBr(is_zero(above), tree, leaf(switch_.getDefaultDest()));
        } else {
            b_.CreateBr(tree);
        }
        build(tree, cases_, bits);
        for (u32 i = 0; i < switch_.getNumSuccessors(); i++)
            for (llvm::PHINode& phi : switch_.getSuccessor(i)->phis())
                for (int at; (at = phi.getBasicBlockIndex(block_)) >= 0;)
                    phi.removeIncomingValue(u32(at), false);
        switch_.eraseFromParent();
    }

private:
    struct Case {
        u64 value;
        llvm::BasicBlock* to;
    };

    llvm::BasicBlock* new_block() {
        return llvm::BasicBlock::Create(block_->getContext(), "", block_->getParent());
    }
    llvm::Value* is_zero(llvm::Value* value) {
        return b_.CreateICmpEQ(value, llvm::ConstantInt::get(value->getType(), 0));
    }

    // A block that goes there, as the switch did.
    llvm::BasicBlock* leaf(llvm::BasicBlock* to) {
        llvm::BasicBlock* made = new_block();
        llvm::IRBuilder<>(made).CreateBr(to);
        for (llvm::PHINode& phi : to->phis())
            phi.addIncoming(phi.getIncomingValueForBlock(block_), made);
        return made;
    }

    // Whether there is a case for whatever the lowest `bits` are.
    static bool is_whole(std::span<const Case> cases, u32 bits) {
        return bits < 32 && cases.size() == u64{1} << bits;
    }

    llvm::BasicBlock* target(std::span<const Case> cases, u32 bits) {
        if (cases.empty()) return leaf(switch_.getDefaultDest());
        const bool is_one =
            std::ranges::all_of(cases, [&](const Case& one) { return one.to == cases.front().to; });
        if (is_one && is_whole(cases, bits)) return leaf(cases.front().to);
        llvm::BasicBlock* made = new_block();
        build(made, cases, bits);
        return made;
    }

    // In `at`: on to the case that the lowest `bits` of the value say.
    void build(llvm::BasicBlock* at, std::span<const Case> cases, u32 bits) {
        b_.SetInsertPoint(at);
        if (!has_default_) {
            if (std::ranges::all_of(cases,
                                    [&](const Case& one) { return one.to == cases[0].to; })) {
                b_.CreateBr(leaf(cases[0].to));
                return;
            }
            // Bits that all have in common say nothing.
            bits = u32(std::bit_width(cases.front().value ^ cases.back().value));
        }
        if (cases.size() == 1) {
            auto* wanted = llvm::ConstantInt::get(value_->getType(), cases.front().value);
            llvm::Value* is_it = b_.CreateICmpEQ(value_, wanted);
            b_.CreateCondBr(is_it, leaf(cases.front().to), leaf(switch_.getDefaultDest()));
            return;
        }
        const u64 bit = u64{1} << (bits - 1);
        llvm::Value* is_low =
            is_zero(b_.CreateAnd(value_, llvm::ConstantInt::get(value_->getType(), bit)));
        const auto middle = std::ranges::partition_point(
            cases, [&](const Case& one) { return (one.value & bit) == 0; });
        const usize low = usize(middle - cases.begin());
        llvm::BasicBlock* when_low = target(cases.first(low), bits - 1);
        llvm::BasicBlock* when_high = target(cases.subspan(low), bits - 1);
        b_.SetInsertPoint(at);
        b_.CreateCondBr(is_low, when_low, when_high);
    }

    llvm::SwitchInst& switch_;
    llvm::BasicBlock* block_;
    llvm::Value* value_;
    const bool has_default_;  // else the value is one of the cases
    llvm::IRBuilder<> b_;
    std::vector<Case> cases_;
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
