// Walks the dominator tree with the checks that have been passed.
#include "codegen/merge_checks.h"

#include <algorithm>
#include <memory>
#include <ranges>
#include <vector>

#include "abi/layout.h"
#include "base/check.h"
#include "codegen/ways.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/Transforms/Utils/Cloning.h>

namespace gpurun::codegen {
namespace {

using llvm::BasicBlock;
using llvm::CallInst;
using llvm::Value;

// No check reaches farther: addresses that are so far apart have little to do with each other.
constexpr s64 farthest = 1 << 20;
constexpr s64 most_bytes = 16;  // of a store
// So many of the checks or notes of a base are looked at, the latest first. A function may have
// thousands.
constexpr usize most_looks = 16;

// A 32-bit address as a sum: modulo 2^32.
struct Sum {
    Value* base;
    u32 offset;
};

Sum sum_of(Value* address) {
    using namespace llvm::PatternMatch;
    u32 offset = 0;
    for (;;) {
        Value* rest = nullptr;
        const llvm::APInt* number = nullptr;
        if (match(address, m_Add(m_Value(rest), m_APInt(number))) ||
            match(address, m_DisjointOr(m_Value(rest), m_APInt(number))))
            offset += u32(number->getZExtValue());
        else
            return {address, offset};
        address = rest;
    }
}

// A check or a note that stands for others: of bytes [low, high) from its address on.
struct Leader {
    CallInst* call;
    Sum sum;
    s64 low, high;
    std::vector<const Leader*> passed;  // notes: checks of that base before it
};

class CheckMerger {
public:
    CheckMerger(llvm::Function& function, u64 least_size)
        : dominators_(function),
          loops_(dominators_),
          ways_(function, leaving_of(function)),
          least_size_(least_size) {
        const llvm::Module& module = *function.getParent();
        outside_ = module.getFunction(outside_name);
        note_ = module.getFunction(note_name);
    }

    bool run() {
        visit(dominators_.getRootNode());
        for (const Covered& covered : covered_) rewrite(covered);
        for (Leader* check : checks_) expand_check(*check);
        for (CallInst* call : gone_) call->eraseFromParent();
        for (Leader* note : notes_) expand_note(*note);
        return !checks_.empty() || !notes_.empty();
    }

private:
    // The checks that have been passed on the way to where we are, or the notes taken, by base.
    using Known = llvm::DenseMap<Value*, std::vector<Leader*>>;
    // A sum in 64 bits, if the check reaches there in the end.
    struct Covered {
        llvm::ZExtInst* wide;
        Leader* check;
        s64 distance;
    };

    static llvm::DenseSet<BasicBlock*> leaving_of(llvm::Function& function) {
        BasicBlock* last = find_last(function);
        return last ? find_leaving(last) : llvm::DenseSet<BasicBlock*>();
    }

    // Returns true if whoever passes the leader comes to `block` with the same address, or leaves.
    // A check that reached for what may not be accessed would leave for nothing: memory often ends
    // with the array that it is about.
    bool comes_to(const Leader& leader, BasicBlock* block) const {
        BasicBlock* from = leader.call->getParent();
        const llvm::Loop* loop = loops_.getLoopFor(from);
        const u32 number = ways_.number(block), first = ways_.number(from);
        return number != 0 && first != 0 && (!loop || loop->contains(block)) &&
               ways_.always_pass(first, number);
    }

    static auto latest(const std::vector<Leader*>& leaders) {
        return leaders | std::views::reverse | std::views::take(most_looks);
    }

    // Returns how far an address of the leader's base is from the leader's.
    static s64 distance(const Leader& leader, u32 offset) {
        return s64(s32(offset - leader.sum.offset));
    }

    void visit(const llvm::DomTreeNode* root) {
        // Deep functions have deep trees: no recursion.
        struct Step {
            const llvm::DomTreeNode* node;
            usize next = 0;
            std::vector<Value*> checked, noted;
        };
        std::vector<Step> stack;
        auto begin = [&](const llvm::DomTreeNode* node) {
            stack.push_back({node, 0, {}, {}});
            visit_block(*node->getBlock(), stack.back().checked, stack.back().noted);
        };
        begin(root);
        while (!stack.empty()) {
            Step& step = stack.back();
            if (step.next < step.node->getNumChildren()) {
                begin(*(step.node->begin() + std::ptrdiff_t(step.next++)));
                continue;
            }
            for (Value* base : step.checked) passed_[base].pop_back();
            for (Value* base : step.noted) taken_[base].pop_back();
            stack.pop_back();
        }
    }

    void visit_block(BasicBlock& block, std::vector<Value*>& checked, std::vector<Value*>& noted) {
        if (BasicBlock* before = block.getSinglePredecessor())
            if (auto* branch = llvm::dyn_cast<llvm::BranchInst>(before->getTerminator());
                branch && branch->isConditional() && branch->getSuccessor(1) == &block &&
                branch->getSuccessor(0) != &block)
                pass(branch->getCondition(), checked);
        for (llvm::Instruction& instruction : block) {
            if (auto* wide = llvm::dyn_cast<llvm::ZExtInst>(&instruction)) {
                if (wide->getType()->isIntegerTy(64) && wide->getSrcTy()->isIntegerTy(32))
                    look_at(wide);
            } else if (auto* call = llvm::dyn_cast<CallInst>(&instruction)) {
                if (outside_ && call->getCalledFunction() == outside_) add_check(call);
                if (note_ && call->getCalledFunction() == note_) add_note(call, noted);
            }
        }
    }

    // Adds the checks that make `condition` true: where it is false they have been passed.
    void pass(Value* condition, std::vector<Value*>& checked) {
        using namespace llvm::PatternMatch;
        Value *a = nullptr, *b = nullptr;
        if (match(condition, m_LogicalOr(m_Value(a), m_Value(b)))) {
            pass(a, checked);
            pass(b, checked);
            return;
        }
        auto found = leader_of_.find(condition);
        if (found == leader_of_.end()) return;
        passed_[found->second->sum.base].push_back(found->second);
        checked.push_back(found->second->sum.base);
    }

    void add_check(CallInst* call) {
        const Sum sum = sum_of(call->getArgOperand(1));
        const s64 end = llvm::cast<llvm::ConstantInt>(call->getArgOperand(2))->getSExtValue();
        if (auto* at = llvm::dyn_cast<llvm::ConstantInt>(call->getArgOperand(1));
            at && at->getZExtValue() + u64(end) <= least_size_)
            return replace(call, llvm::ConstantInt::getFalse(call->getContext()));
        for (Leader* known : latest(passed_[sum.base])) {
            Leader& leader = *known;
            const s64 from = distance(leader, sum.offset);
            const s64 low = std::min(leader.low, from), high = std::max(leader.high, from + end);
            if (low != leader.low || high != leader.high) {
                if (low < -farthest || high > farthest || u64(high - low) > least_size_ ||
                    !comes_to(leader, call->getParent()))
                    continue;
                leader.low = low;
                leader.high = high;
            }
            replace(call, llvm::ConstantInt::getFalse(call->getContext()));
            return;
        }
        checks_.push_back(new_leader(call, sum, 0, end));
        leader_of_[call] = checks_.back();
    }

    void add_note(CallInst* call, std::vector<Value*>& noted) {
        const Sum sum = sum_of(call->getArgOperand(1));
        const s64 offset = llvm::cast<llvm::ConstantInt>(call->getArgOperand(2))->getSExtValue();
        std::vector<Leader*>& known = taken_[sum.base];
        const std::vector<Leader*>& passed = passed_[sum.base];
        for (Leader* one : latest(known)) {
            Leader& leader = *one;
            const s64 from = distance(leader, sum.offset) + offset;
            const s64 low = std::min(leader.low, from);
            const s64 high = std::max(leader.high, from + most_bytes);
            // No sum may wrap.
            if (high - low > s64(dirty_reach) || !is_checked(latest(passed), leader, from) ||
                (low < leader.low && !is_checked(leader.passed, leader, low)))
                continue;
            leader.low = low;
            leader.high = high;
            replace(call, llvm::ConstantInt::get(call->getType(), 0));
            return;
        }
        Leader* leader = new_leader(call, sum, offset, offset + most_bytes);
        for (const Leader* check : latest(passed)) leader->passed.push_back(check);
        notes_.push_back(leader);
        // Others may rely on a note only where it has been added to the rest.
        if (!call->hasOneUse() ||
            llvm::cast<llvm::Instruction>(call->user_back())->getParent() != call->getParent())
            return;
        known.push_back(leader);
        noted.push_back(sum.base);
    }

    // Returns true if one of the checks covers both a note's address and what is so far from it.
    template <class Checks>
    static bool is_checked(Checks&& checks, const Leader& note, s64 from) {
        return std::ranges::any_of(checks, [&](const Leader* check) {
            const s64 at = distance(*check, note.sum.offset);
            return std::min(at, at + from) >= check->low && std::max(at, at + from) < check->high;
        });
    }

    void look_at(llvm::ZExtInst* wide) {
        const Sum sum = sum_of(wide->getOperand(0));
        auto found = passed_.find(sum.base);
        if (found == passed_.end()) return;
        for (Leader* check : latest(found->second))
            covered_.push_back({wide, check, distance(*check, sum.offset)});
    }

    void rewrite(const Covered& covered) {
        const auto [wide, check, distance] = covered;
        if (wide->use_empty() || distance < check->low || distance >= check->high) return;
        Value* address = check->call->getArgOperand(1);
        if (wide->getOperand(0) == address) return;
        Value*& base = wide_[check];
        if (!base) {
            llvm::IRBuilder<> b(check->call);
            base = b.CreateZExt(address, b.getInt64Ty());
        }
        llvm::IRBuilder<> b(wide);
        wide->replaceAllUsesWith(
            distance ? b.CreateAdd(base, b.getInt64(u64(distance)), "", distance > 0, true) : base);
    }

    // Makes a comparison of a check: [address + low, address + high) is not within [0, size).
    void expand_check(const Leader& check) {
        llvm::IRBuilder<> b(check.call);
        Value *size = check.call->getArgOperand(0), *address = check.call->getArgOperand(1);
        const u64 length = u64(check.high - check.low);
        Value* result;
        if (length <= least_size_) {
            // Modulo 2^32: what is below 0 is larger than any such sum.
            Value* last = b.CreateTrunc(b.CreateSub(size, b.getInt64(length)), b.getInt32Ty());
            result = b.CreateICmpUGT(b.CreateAdd(address, b.getInt32(u32(check.low))), last);
        } else {
            Value* end = b.CreateAdd(b.CreateZExt(address, b.getInt64Ty()),
                                     b.getInt64(u64(check.high)), "", true, true);
            result = b.CreateICmpUGT(end, size);
        }
        replace(check.call, result);
    }

    void expand_note(const Leader& note) {
        llvm::IRBuilder<> b(note.call);
        note.call->setArgOperand(2, b.getInt64(u64(note.low)));
        llvm::InlineFunctionInfo info;
        CHECK(llvm::InlineFunction(*note.call, info).isSuccess());
    }

    void replace(CallInst* call, Value* value) {
        call->replaceAllUsesWith(value);
        gone_.push_back(call);
    }
    Leader* new_leader(CallInst* call, Sum sum, s64 low, s64 high) {
        leaders_.push_back(std::make_unique<Leader>(Leader{call, sum, low, high, {}}));
        return leaders_.back().get();
    }

    llvm::DominatorTree dominators_;
    const llvm::LoopInfo loops_;
    const Ways ways_;
    const u64 least_size_;
    const llvm::Function *outside_, *note_;
    std::vector<std::unique_ptr<Leader>> leaders_;
    std::vector<Leader*> checks_, notes_;
    llvm::DenseMap<Value*, Leader*> leader_of_;
    Known passed_, taken_;
    std::vector<Covered> covered_;
    llvm::DenseMap<const Leader*, Value*> wide_;
    std::vector<CallInst*> gone_;
};

}  // namespace

llvm::PreservedAnalyses MergeChecksPass::run(llvm::Function& function,
                                             llvm::FunctionAnalysisManager&) {
    if (!CheckMerger(function, least_size_).run()) return llvm::PreservedAnalyses::all();
    llvm::PreservedAnalyses kept;
    kept.preserveSet<llvm::CFGAnalyses>();
    return kept;
}

}  // namespace gpurun::codegen
