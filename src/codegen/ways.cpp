// Finds where ways meet: post-dominators of a function without the blocks that leave it.
#include "codegen/ways.h"

#include <algorithm>

#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/InstrTypes.h>

namespace gpurun::codegen {

using llvm::BasicBlock;
using llvm::Function;

BasicBlock* find_last(Function& function) {
    for (BasicBlock& block : function)
        for (llvm::Instruction& instruction : block)
            if (auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction))
                if (call->hasFnAttr(leaves_attribute)) return &block;
    return nullptr;
}

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

Ways::Ways(Function& function, const llvm::DenseSet<BasicBlock*>& leaving) : blocks_(1) {
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
    number_tree();
}

usize Ways::entering(u32 at) const {
    return usize(std::ranges::count_if(predecessors_[at], [&](u32 from) { return from < at; }));
}

void Ways::connect(u32 from, u32 to) {
    successors_[from].push_back(to);
    predecessors_[to].push_back(from);
}

// Gives the last block of a loop without an end a way to the exit.
void Ways::end_endless() {
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
std::vector<u32> Ways::find_order() {
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
void Ways::find_behind() {
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

u32 Ways::meet(u32 a, u32 b) const {
    while (a != b) {
        while (order_[a] < order_[b]) a = behind_[a];
        while (order_[b] < order_[a]) b = behind_[b];
    }
    return a;
}

// Numbers the tree of blocks and those behind which they are, so that always_pass() is a
// comparison.
void Ways::number_tree() {
    std::vector<std::vector<u32>> before(count());
    for (u32 i = 1; i < count(); i++) before[behind_[i]].push_back(i);
    tree_begin_.resize(count());
    tree_end_.resize(count());
    u32 next = 0;
    std::vector<std::pair<u32, usize>> stack = {{exit, 0}};
    while (!stack.empty()) {
        auto& [at, child] = stack.back();
        if (child == 0) tree_begin_[at] = next++;
        if (child == before[at].size()) {
            tree_end_[at] = next;
            stack.pop_back();
            continue;
        }
        stack.push_back({before[at][child++], 0});
    }
}

}  // namespace gpurun::codegen
