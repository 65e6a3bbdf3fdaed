// Finds where the ways of a function meet that do not leave it, and sends those there that do.
#include "codegen/reconverge.h"

#include <algorithm>
#include <vector>

#include "base/ints.h"

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

// Returns the block that ends all leaving, or null if the function never leaves.
BasicBlock* find_last(Function& function) {
    for (BasicBlock& block : function)
        for (llvm::Instruction& instruction : block)
            if (auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction))
                if (call->hasFnAttr(leaves_attribute)) return &block;
    return nullptr;
}

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

// Returns the blocks from which all ways lead to `last`, and that one.
llvm::DenseSet<BasicBlock*> find_leaving(BasicBlock* last) {
    llvm::DenseSet<BasicBlock*> leaving = {last};
    llvm::DenseMap<BasicBlock*, usize> others;  // edges that lead elsewhere
    std::vector<BasicBlock*> work = {last};
    while (!work.empty()) {
        BasicBlock* block = work.back();
        work.pop_back();
        for (BasicBlock* from : llvm::predecessors(block)) {
            if (from->isEntryBlock() || leaving.contains(from)) continue;
            auto [found, is_new] = others.try_emplace(from, 0);
            if (is_new) found->second = usize(llvm::succ_size(from));
            if (--found->second > 0) continue;
            leaving.insert(from);
            work.push_back(from);
        }
    }
    return leaving;
}

// The blocks that do not leave, numbered in reverse post-order, and which of them all ways pass.
class Ways {
public:
    static constexpr u32 exit = 0;  // the number of what follows every return

    Ways(Function& function, const llvm::DenseSet<BasicBlock*>& leaving) : blocks_(1) {
        for (BasicBlock* block : llvm::ReversePostOrderTraversal<Function*>(&function)) {
            if (leaving.contains(block)) continue;
            numbers_[block] = count();
            blocks_.push_back(block);
        }
        successors_.resize(count());
        predecessors_.resize(count());
        for (u32 i = 1; i < count(); i++) {
            for (BasicBlock* next : llvm::successors(blocks_[i]))
                if (u32 number = numbers_.lookup(next)) connect(i, number);
            if (successors_[i].empty()) connect(i, exit);
        }
        end_endless();
        find_behind();
    }

    u32 count() const { return u32(blocks_.size()); }
    BasicBlock* block(u32 number) const { return blocks_[number]; }
    u32 number(BasicBlock* block) const { return numbers_.lookup(block); }  // 0: it leaves
    // Returns the first block behind `at` that all ways from there pass.
    u32 behind(u32 at) const { return behind_[at]; }
    // Returns true if `a` is passed before `b`, where both are behind some block.
    bool is_before(u32 a, u32 b) const { return order_[a] < order_[b]; }
    // Returns how many edges lead to a block from blocks before it, or from those behind.
    usize entering(u32 at) const {
        return usize(std::ranges::count_if(predecessors_[at], [&](u32 from) { return from < at; }));
    }
    usize returning(u32 at) const { return predecessors_[at].size() - entering(at); }

private:
    void connect(u32 from, u32 to) {
        successors_[from].push_back(to);
        predecessors_[to].push_back(from);
    }

    // Gives the last block of a loop without an end a way to the exit.
    void end_endless() {
        std::vector<bool> ends(count());
        auto mark = [&](u32 from) {
            std::vector<u32> work = {from};
            ends[from] = true;
            while (!work.empty()) {
                const u32 at = work.back();
                work.pop_back();
                for (u32 before : predecessors_[at]) {
                    if (ends[before]) continue;
                    ends[before] = true;
                    work.push_back(before);
                }
            }
        };
        mark(exit);
        for (u32 at = count(); --at > 0;) {
            if (ends[at]) continue;
            connect(at, exit);
            mark(at);
        }
    }

    // Numbers the blocks in post-order of the graph turned round.
    std::vector<u32> find_order() {
        std::vector<u32> sequence;
        std::vector<bool> is_seen(count());
        std::vector<std::pair<u32, usize>> stack = {{exit, 0}};
        is_seen[exit] = true;
        while (!stack.empty()) {
            auto& [at, next] = stack.back();
            if (next == predecessors_[at].size()) {
                sequence.push_back(at);
                stack.pop_back();
                continue;
            }
            const u32 from = predecessors_[at][next++];
            if (is_seen[from]) continue;
            is_seen[from] = true;
            stack.push_back({from, 0});
        }
        order_.resize(count());
        for (u32 i = 0; i < sequence.size(); i++) order_[sequence[i]] = i;
        return sequence;
    }

    // Finds post-dominators, by Cooper, Harvey and Kennedy.
    void find_behind() {
        constexpr u32 unknown = ~u32{0};
        const std::vector<u32> sequence = find_order();
        behind_.assign(count(), unknown);
        behind_[exit] = exit;
        for (bool is_changed = true; is_changed;) {
            is_changed = false;
            for (usize i = sequence.size() - 1; i-- > 0;) {
                u32 common = unknown;
                for (u32 next : successors_[sequence[i]])
                    if (behind_[next] != unknown)
                        common = common == unknown ? next : meet(next, common);
                if (behind_[sequence[i]] == common) continue;
                behind_[sequence[i]] = common;
                is_changed = true;
            }
        }
    }
    u32 meet(u32 a, u32 b) const {
        while (a != b) {
            while (order_[a] < order_[b]) a = behind_[a];
            while (order_[b] < order_[a]) b = behind_[b];
        }
        return a;
    }

    std::vector<BasicBlock*> blocks_;
    llvm::DenseMap<BasicBlock*, u32> numbers_;
    std::vector<std::vector<u32>> successors_, predecessors_;
    std::vector<u32> order_, behind_;
};

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
        for (BasicBlock* next : llvm::successors(last_)) returned_ = ways_.number(next);
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
        if (at == returned_) return exit;
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
    u32 returned_ = exit;  // the block that returns, if the last one shares it with others
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
