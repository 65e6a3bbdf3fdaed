#include "codegen/lazy_nan.h"

#include <vector>

#include "base/ints.h"

#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/ProfDataUtils.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>

namespace gpurun::codegen {
namespace {

using llvm::BasicBlock;
using llvm::Instruction;
using llvm::PHINode;
using llvm::SelectInst;
using llvm::Type;
using llvm::Use;
using llvm::Value;

// Returns the value that a select makes canonical, or null if it does not make one so.
Value* made_canonical(Value* value) {
    auto* select = llvm::dyn_cast<SelectInst>(value);
    if (!select || !select->getType()->isFloatingPointTy()) return nullptr;
    auto* compare = llvm::dyn_cast<llvm::FCmpInst>(select->getCondition());
    if (!compare) return nullptr;
    const bool is_unordered = compare->getPredicate() == llvm::FCmpInst::FCMP_UNO;
    if (!is_unordered && compare->getPredicate() != llvm::FCmpInst::FCMP_ORD) return nullptr;
    Value *nan = is_unordered ? select->getTrueValue() : select->getFalseValue(),
          *other = is_unordered ? select->getFalseValue() : select->getTrueValue();
    auto* constant = llvm::dyn_cast<llvm::ConstantFP>(nan);
    if (!constant || !constant->isNaN() || compare->getOperand(0) != other) return nullptr;
    auto* with = llvm::dyn_cast<llvm::ConstantFP>(compare->getOperand(1));
    if (compare->getOperand(1) != other && (!with || with->isNaN())) return nullptr;
    return other;
}

Value* without_casts(Value* value) {
    while (auto* cast = llvm::dyn_cast<llvm::BitCastInst>(value)) value = cast->getOperand(0);
    return value;
}

// Returns true if an instruction does the same with every NaN. What it computes is made canonical
// itself.
bool takes_any_nan(const Instruction* user) {
    switch (user->getOpcode()) {
        case Instruction::FAdd:
        case Instruction::FSub:
        case Instruction::FMul:
        case Instruction::FDiv:
        case Instruction::FCmp:
        case Instruction::FPExt:
        case Instruction::FPTrunc:
        case Instruction::FPToSI:
        case Instruction::FPToUI: return true;
        case Instruction::Call: break;
        default: return false;
    }
    switch (llvm::cast<llvm::CallBase>(user)->getIntrinsicID()) {
        case llvm::Intrinsic::sqrt:
        case llvm::Intrinsic::ceil:
        case llvm::Intrinsic::floor:
        case llvm::Intrinsic::trunc:
        case llvm::Intrinsic::roundeven:
        case llvm::Intrinsic::minimum:
        case llvm::Intrinsic::maximum:
        case llvm::Intrinsic::fptosi_sat:
        case llvm::Intrinsic::fptoui_sat: return true;
        default: return false;
    }
}

bool is_rare(BasicBlock* from, BasicBlock* to) {
    auto* branch = llvm::dyn_cast<llvm::BranchInst>(from->getTerminator());
    if (!branch) return false;
    if (branch->isUnconditional()) {
        BasicBlock* before = from->getSinglePredecessor();
        return before && before != to && is_rare(before, from);
    }
    uint64_t first = 0, second = 0;
    if (branch->getSuccessor(0) == branch->getSuccessor(1) ||
        !llvm::extractBranchWeights(*branch, first, second))
        return false;
    const uint64_t weight = branch->getSuccessor(0) == to ? first : second;
    return weight * 1000 < first + second;
}

class Function {
public:
    explicit Function(llvm::Function& function) : function_(function) {}

    bool run() {
        std::vector<SelectInst*> selects;
        for (Instruction& at : llvm::instructions(function_))
            if (made_canonical(&at)) selects.push_back(llvm::cast<SelectInst>(&at));
        find_phis(selects);
        for (SelectInst* select : selects) spread(select, made_canonical(select), nullptr);
        for (PHINode* phi : order_)
            if (phis_.contains(phi)) open(phi);
        return !selects.empty();
    }

private:
    // Values that merge nothing but what was made canonical and what is no NaN can be any NaN
    // instead.
    void find_phis(llvm::ArrayRef<SelectInst*> selects) {
        auto find_at = [&](Value* value) {
            for_phis(value, [&](PHINode* phi) {
                if (phis_.insert(phi).second) order_.push_back(phi);
            });
        };
        for (SelectInst* select : selects) find_at(select);
        for (usize i = 0; i < order_.size(); i++) find_at(order_[i]);
        std::vector<PHINode*> work = order_;
        while (!work.empty()) {
            PHINode* phi = work.back();
            work.pop_back();
            if (!phis_.contains(phi) ||
                llvm::all_of(phi->incoming_values(), [&](Value* in) { return may_open(in); }))
                continue;
            phis_.erase(phi);
            for_phis(phi, [&](PHINode* other) { work.push_back(other); });
        }
    }

    // Calls act(phi) for each that a value goes to, as it is or cast.
    template <class Act>
    static void for_phis(Value* value, const Act& act) {
        for (llvm::User* user : value->users()) {
            if (auto* phi = llvm::dyn_cast<PHINode>(user)) act(phi);
            if (llvm::isa<llvm::BitCastInst>(user)) for_phis(user, act);
        }
    }

    bool may_open(Value* in) const {
        Value* bare = without_casts(in);
        if (made_canonical(bare)) return true;
        if (auto* phi = llvm::dyn_cast<PHINode>(bare)) return phis_.contains(phi);
        if (auto* number = llvm::dyn_cast<llvm::ConstantFP>(bare)) return !number->isNaN();
        if (auto* bits = llvm::dyn_cast<llvm::ConstantInt>(bare)) {
            const bool is_wide = bits->getBitWidth() == 64;
            return !llvm::APFloat(
                        is_wide ? llvm::APFloat::IEEEdouble() : llvm::APFloat::IEEEsingle(),
                        bits->getValue())
                        .isNaN();
        }
        return llvm::isa<llvm::SIToFPInst, llvm::UIToFPInst>(bare);
    }

    // Gives `open` to the uses of `value` that take any NaN, and has the others that are rare make
    // it canonical where they are. `cast`: the type that `value` is cast to where it is used.
    void spread(Value* value, Value* open, Type* cast) {
        for (Use& use : llvm::make_early_inc_range(value->uses())) {
            auto* user = llvm::cast<Instruction>(use.getUser());
            if (auto* bits = llvm::dyn_cast<llvm::BitCastInst>(user)) {
                spread(bits, open, bits->getType());
            } else if (takes_any_nan(user)) {
                if (!cast) use.set(open);
            } else if (auto* phi = llvm::dyn_cast<PHINode>(user)) {
                BasicBlock* from = phi->getIncomingBlock(use);
                if (phis_.contains(phi))
                    use.set(cast_to(open, use->getType(), from->getTerminator()));
                else if (is_rare(from, phi->getParent()))
                    use.set(make_canonical(open, use->getType(), place_on(from, phi->getParent())));
            }
        }
    }

    // A phi whose value may be any NaN now: uses that want a canonical one get that.
    void open(PHINode* phi) {
        std::vector<Use*> uses;
        collect(phi, uses);
        Value* canonical = nullptr;
        for (Use* use : uses) {
            auto* user = llvm::cast<Instruction>(use->getUser());
            if (takes_any_nan(user)) continue;
            if (auto* other = llvm::dyn_cast<PHINode>(user)) {
                if (phis_.contains(other)) continue;
                BasicBlock* from = other->getIncomingBlock(*use);
                if (is_rare(from, other->getParent())) {
                    use->set(
                        make_canonical(phi, (*use)->getType(), place_on(from, other->getParent())));
                    continue;
                }
            }
            Type* type = (*use)->getType();
            if (!canonical)
                canonical =
                    make_canonical(phi, phi->getType(), &*phi->getParent()->getFirstInsertionPt());
            Instruction* at = user;
            if (auto* other = llvm::dyn_cast<PHINode>(user))
                at = other->getIncomingBlock(*use)->getTerminator();
            use->set(cast_to(canonical, type, at));
        }
    }

    // The uses of a value, and of what it is cast to; but not those that make it canonical.
    void collect(Value* value, std::vector<Use*>& uses) {
        for (Use& use : value->uses()) {
            if (made_.contains(use.getUser())) continue;
            if (llvm::isa<llvm::BitCastInst>(use.getUser()))
                collect(use.getUser(), uses);
            else
                uses.push_back(&use);
        }
    }

    // A place on the way from one block to the other alone.
    Instruction* place_on(BasicBlock* from, BasicBlock* to) {
        if (llvm::cast<llvm::BranchInst>(from->getTerminator())->isUnconditional())
            return from->getTerminator();
        return llvm::SplitEdge(from, to)->getTerminator();
    }

    Value* cast_to(Value* value, Type* type, Instruction* at) {
        if (value->getType() == type) return value;
        llvm::IRBuilder<> b(at);
        Value* made = b.CreateBitCast(value, type);
        if (auto* cast = llvm::dyn_cast<Instruction>(made)) made_.insert(cast);
        return made;
    }

    Value* make_canonical(Value* value, Type* type, Instruction* at) {
        const bool is_wide = value->getType()->getPrimitiveSizeInBits() == 64;
        llvm::IRBuilder<> b(at);
        Type* number = is_wide ? b.getDoubleTy() : b.getFloatTy();
        Value* given = cast_to(value, number, at);
        Value* is_nan = b.CreateFCmpUNO(given, given);
        Value* nan = llvm::ConstantFP::getNaN(number);
        Value* made = b.CreateSelect(is_nan, nan, given);
        for (Value* each : {is_nan, made}) made_.insert(each);
        return cast_to(made, type, at);
    }

    llvm::Function& function_;
    llvm::SmallPtrSet<PHINode*, 16> phis_;  // whose value may be any NaN
    std::vector<PHINode*> order_;           // in which they were found
    llvm::SmallPtrSet<Value*, 16> made_;    // here
};

}  // namespace

llvm::PreservedAnalyses LazyNanPass::run(llvm::Function& function, llvm::FunctionAnalysisManager&) {
    return Function(function).run() ? llvm::PreservedAnalyses::none()
                                    : llvm::PreservedAnalyses::all();
}

}  // namespace gpurun::codegen
