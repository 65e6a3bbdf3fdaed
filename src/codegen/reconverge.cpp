// Finds where the ways of a function meet that do not leave it, and sends those there that do.
#include "codegen/reconverge.h"

#include <algorithm>
#include <vector>

#include "codegen/ways.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/DenseSet.h>
#include <llvm/ADT/MapVector.h>
#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/Transforms/Utils/SSAUpdater.h>

namespace gpurun::codegen {
namespace {

using llvm::BasicBlock;
using llvm::Function;
using llvm::PHINode;
using llvm::Value;

// Puts a block between `last` and each block that may go there or elsewhere.
void separate_edges(BasicBlock* last) {
    const std::vector<BasicBlock*> all(llvm::pred_begin(last), llvm::pred_end(last));
    llvm::DenseSet<BasicBlock*> is_done;
    for (BasicBlock* block : all) {
        if (!is_done.insert(block).second || llvm::succ_size(block) == 1) continue;
        BasicBlock* between =
            BasicBlock::Create(last->getContext(), "leave", last->getParent(), last);
        llvm::IRBuilder<>(between).CreateBr(last);
        block->getTerminator()->replaceSuccessorWith(last, between);
        for (PHINode& phi : last->phis()) {
            Value* value = phi.getIncomingValueForBlock(block);
            while (phi.getBasicBlockIndex(block) >= 0) phi.removeIncomingValue(block, false);
            phi.addIncoming(value, between);
        }
    }
}

class Reconverger {
public:
    Reconverger(Function& function, BasicBlock* last)
        : function_(function),
          last_(last),
          leaving_(find_leaving(last)),
          dominators_(function),
          loops_(dominators_),
          ways_(function, leaving_) {}

    void run() {
        find_ended();
        find_targets();
        if (joins_.empty()) return;
        for (u32 join : joins_) split(join);
        send_leaving();
        pass_on();
        repair();
    }

private:
    static constexpr u32 exit = Ways::exit;

    // Returns the next join behind `from`, or the exit.
    u32 join_behind(u32 from) {
        u32 at = ways_.behind(from);
        while (at != exit && !is_join(at, from)) at = ways_.behind(at);
        if (ended_.contains(ways_.block(at))) return exit;
        if (at <= from) is_met_within_.insert(at);
        return at;
    }
    // Returns true if ways meet at `at` that were apart at `from`: behind branches, and behind the
    // loop of `from`, which lanes may end one after the other.
    bool is_join(u32 at, u32 from) const {
        BasicBlock *here = ways_.block(from), *there = ways_.block(at);
        const llvm::Loop *mine = loops_.getLoopFor(here), *other = loops_.getLoopFor(there);
        // Nothing may go into a loop but by its head.
        if (other && other->getHeader() == there && at > from) other = other->getParentLoop();
        if (other && !other->contains(here)) return false;
        if (mine && !mine->contains(there)) return true;
        return (at > from ? ways_.entering(at) : ways_.returning(at)) > 1;
    }

    void find_ended() {
        std::vector<BasicBlock*> work = {last_};
        while (!work.empty()) {
            BasicBlock* block = work.back();
            work.pop_back();
            for (BasicBlock* next : llvm::successors(block))
                if (ended_.insert(next).second) work.push_back(next);
        }
    }

    // Finds the join that each block before the last one goes to in place of that.
    void find_targets() {
        for (u32 from = 1; from < ways_.count(); from++)
            for (BasicBlock* next : llvm::successors(ways_.block(from)))
                if (leaving_.contains(next)) leave_by(next, join_behind(from));
        for (auto& [block, target] : targets_)
            for (u32 at = target; at != exit && is_target_.insert(at).second; at = join_behind(at))
                joins_.push_back(at);
    }
    void leave_by(BasicBlock* first, u32 target) {
        std::vector<BasicBlock*> work = {first};
        llvm::DenseSet<BasicBlock*> is_seen = {first};
        while (!work.empty()) {
            BasicBlock* block = work.back();
            work.pop_back();
            for (BasicBlock* next : llvm::successors(block)) {
                if (next == last_) {
                    auto [found, is_new] = targets_.try_emplace(block, target);
                    if (!is_new) found->second = common_join(found->second, target);
                } else if (is_seen.insert(next).second) {
                    work.push_back(next);
                }
            }
        }
    }
    u32 common_join(u32 a, u32 b) {
        while (a != b) {
            while (ways_.is_before(a, b)) a = join_behind(a);
            while (ways_.is_before(b, a)) b = join_behind(b);
        }
        return a;
    }

    // Puts a block before a join that takes those further who leave. Before the head of a loop it
    // is in the loop only if somebody comes from there.
    void split(u32 join) {
        BasicBlock* block = ways_.block(join);
        BasicBlock* before = BasicBlock::Create(function_.getContext(), "meet", &function_, block);
        const bool is_within = is_met_within_.contains(join);
        std::vector<BasicBlock*> from;  // a switch may come by several edges
        for (BasicBlock* pred : llvm::predecessors(block))
            if (is_within || ways_.number(pred) < join) from.push_back(pred);
        llvm::IRBuilder<> b(before);
        for (PHINode& phi : block->phis()) {
            PHINode* met = b.CreatePHI(phi.getType(), u32(from.size()));
            for (BasicBlock* pred : from)
                met->addIncoming(phi.getIncomingValueForBlock(pred), pred);
            phi.removeIncomingValueIf(
                [&](unsigned i) { return llvm::is_contained(from, phi.getIncomingBlock(i)); },
                false);
            phi.addIncoming(met, before);
        }
        PHINode* has_left = b.CreatePHI(b.getInt1Ty(), u32(from.size()), "has_left");
        for (BasicBlock* pred : from) has_left->addIncoming(b.getFalse(), pred);
        for (BasicBlock* pred : from) pred->getTerminator()->replaceSuccessorWith(block, before);
        meets_[join] = {before, has_left};
    }

    // Adds an edge of those who leave: of all values the join has for others it needs none.
    void add_leaving(u32 join, BasicBlock* from) {
        const Meet& meet = meets_[join];
        for (PHINode& phi : meet.block->phis())
            phi.addIncoming(&phi == meet.has_left
                                ? static_cast<Value*>(llvm::ConstantInt::getTrue(phi.getContext()))
                                : llvm::PoisonValue::get(phi.getType()),
                            from);
    }

    // Sends who leaves to the joins; remembers what the last block would have got.
    void send_leaving() {
        for (PHINode& phi : last_->phis()) taken_along_.push_back({&phi, {}});
        for (auto& [block, target] : targets_) {
            if (target == exit) continue;
            for (auto& [phi, values] : taken_along_) {
                values.push_back({block, phi->getIncomingValueForBlock(block)});
                phi->removeIncomingValue(block, false);
            }
            block->getTerminator()->replaceSuccessorWith(last_, meets_[target].block);
            add_leaving(target, block);
        }
    }

    // Passes who leaves on from join to join, and from the last join to the last block.
    void pass_on() {
        std::vector<BasicBlock*> ends;
        for (u32 join : joins_) {
            const Meet& meet = meets_[join];
            const u32 next = join_behind(join);
            llvm::IRBuilder<>(meet.block)
                .CreateCondBr(meet.has_left, next == exit ? last_ : meets_[next].block,
                              ways_.block(join));
            if (next == exit)
                ends.push_back(meet.block);
            else
                add_leaving(next, meet.block);
        }
        for (auto& [phi, values] : taken_along_) {
            llvm::SSAUpdater updater;
            begin_update(updater, phi->getType());
            for (auto [block, value] : values) updater.AddAvailableValue(block, value);
            for (BasicBlock* end : ends) phi->addIncoming(updater.GetValueAtEndOfBlock(end), end);
        }
    }

    // Values that were defined on all ways to where they are used are not on those that leave.
    void repair() {
        llvm::DominatorTree dominators(function_);
        for (BasicBlock& block : function_)
            for (llvm::Instruction& instruction : block) {
                std::vector<llvm::Use*> broken;
                for (llvm::Use& use : instruction.uses())
                    if (!dominators.dominates(&instruction, use)) broken.push_back(&use);
                if (broken.empty()) continue;
                llvm::SSAUpdater updater;
                begin_update(updater, instruction.getType());
                updater.AddAvailableValue(&block, &instruction);
                for (llvm::Use* use : broken) updater.RewriteUseAfterInsertions(*use);
            }
    }
    void begin_update(llvm::SSAUpdater& updater, llvm::Type* type) {
        updater.Initialize(type, "");
        updater.AddAvailableValue(&function_.getEntryBlock(), llvm::PoisonValue::get(type));
    }

    struct Meet {
        BasicBlock* block = nullptr;  // before the join
        PHINode* has_left = nullptr;
    };
    struct TakenAlong {
        PHINode* phi;  // of the last block
        std::vector<std::pair<BasicBlock*, Value*>> values;
    };

    Function& function_;
    BasicBlock* const last_;
    const llvm::DenseSet<BasicBlock*> leaving_;
    const llvm::DominatorTree dominators_;
    const llvm::LoopInfo loops_;
    const Ways ways_;
    llvm::DenseSet<BasicBlock*>
        ended_;  // blocks behind the last one, of which others may share some
    llvm::MapVector<BasicBlock*, u32> targets_;      // of blocks before the last
    llvm::DenseSet<u32> is_target_, is_met_within_;  // joins; heads that their loops go to
    std::vector<u32> joins_;
    llvm::DenseMap<u32, Meet> meets_;
    std::vector<TakenAlong> taken_along_;
};

}  // namespace

void reconverge(Function& function) {
    BasicBlock* last = function.hasFnAttribute(meets_attribute) ? find_last(function) : nullptr;
    if (!last) return;
    separate_edges(last);
    Reconverger(function, last).run();
}

}  // namespace gpurun::codegen
