// How a function leaves: one call with all that it takes along, until LLVM has done its work.
#pragma once

#include <span>
#include <vector>

#include "codegen/llvm.h"
#include "translate/effects.h"

namespace gpurun::codegen {

enum class LeaveKind : u32 {
    entering,   // before it is known that there is room for more than the arguments
    innermost,  // where the thread stands
    caller,     // because the callee has left
};

// A slot that is live, and what it holds.
struct LeftSlot {
    translate::SlotValue place;
    llvm::Value* value;
};

// Adds the call: writes `slots` to the frame at `fp`. Slots from `limit` on are another's.
void create_leave(llvm::IRBuilder<>& b, LeaveKind kind, llvm::Value* fp, u32 limit,
                  std::span<const LeftSlot> slots);

// Makes stores of the calls. Where lanes of a warp meet again, each place that leaves from a loop
// has its own: every value that it took elsewhere would need a register in all blocks on the way.
// Else places share a cold block, which is less code.
void expand_leaves(llvm::Function& function);

// The runtime's functions by which slots are written, for values of one, two and four words.
inline constexpr const char* slot_writers[] = {"native_set_32", "native_set_64", "native_set_128"};

}  // namespace gpurun::codegen
