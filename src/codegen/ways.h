// The ways through a function that do not leave it.
#pragma once

#include <vector>

#include "base/ints.h"
#include "codegen/llvm.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/DenseSet.h>

namespace gpurun::codegen {

// The call that ends all leaving has this attribute.
inline constexpr const char* leaves_attribute = "gpurun-leaves";

// Returns the block that ends all leaving, or null if the function never leaves.
llvm::BasicBlock* find_last(llvm::Function& function);

// Returns the blocks from which all ways lead to `last`, and that one.
llvm::DenseSet<llvm::BasicBlock*> find_leaving(llvm::BasicBlock* last);

// The blocks that do not leave, numbered in reverse post-order, and which of them all ways pass.
class Ways {
public:
    static constexpr u32 exit = 0;  // the number of what follows every return

    Ways(llvm::Function& function, const llvm::DenseSet<llvm::BasicBlock*>& leaving);

    u32 count() const { return u32(blocks_.size()); }
    llvm::BasicBlock* block(u32 number) const { return blocks_[number]; }
    u32 number(llvm::BasicBlock* block) const { return numbers_.lookup(block); }  // 0: it leaves
    // Returns the first block behind `at` that all ways from there pass.
    u32 behind(u32 at) const { return behind_[at]; }
    // Returns true if `a` is passed before `b`, where both are behind some block.
    bool is_before(u32 a, u32 b) const { return order_[a] < order_[b]; }
    // Returns true if all ways from `from` pass `at`, or it is that block.
    bool always_pass(u32 from, u32 at) const {
        return tree_begin_[at] <= tree_begin_[from] && tree_begin_[from] < tree_end_[at];
    }
    // Returns how many edges lead to a block from blocks before it, or from those behind.
    usize entering(u32 at) const;
    usize returning(u32 at) const { return predecessors_[at].size() - entering(at); }

private:
    void connect(u32 from, u32 to);
    void end_endless();
    std::vector<u32> find_order();
    void find_behind();
    void number_tree();
    u32 meet(u32 a, u32 b) const;

    std::vector<llvm::BasicBlock*> blocks_;
    llvm::DenseMap<llvm::BasicBlock*, u32> numbers_;
    std::vector<std::vector<u32>> successors_, predecessors_;
    std::vector<u32> order_, behind_;
    std::vector<u32> tree_begin_, tree_end_;  // those behind which a block is: numbers in between
};

}  // namespace gpurun::codegen
