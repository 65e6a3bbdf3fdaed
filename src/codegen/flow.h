// The flow of one function's code: its blocks, what each slot holds at their beginnings, which
// slots are needed there, and the handlers that are open. Knows nothing of LLVM.
#pragma once

#include <vector>

#include "translate/effects.h"

namespace gpurun::codegen {

// What a slot holds. A value of several words says of each which of its words it is.
enum class Held : u8 {
    nothing,  // or different things by different ways: nobody reads it
    zero,     // since `enter`; may be read as any kind of value
    word,
    low,
    high,  // of 64 bits
    v0,
    v1,
    v2,
    v3,  // words of a vector
};

using SlotStates = std::vector<Held>;

// The value that `slot` holds a word of; that word alone if the others have been overwritten.
translate::SlotValue value_around(const SlotStates& states, u32 slot);
// All in [begin, end), each whole if it is all there.
std::vector<translate::SlotValue> values_in(const SlotStates& states, u32 begin, u32 end);
void hold(SlotStates& states, translate::SlotValue value);

class SlotSet {
public:
    explicit SlotSet(u32 slots) : bits_((slots + 63) / 64) {}
    bool has(u32 slot) const { return bits_[slot / 64] >> slot % 64 & 1; }
    void add(u32 slot) { bits_[slot / 64] |= u64{1} << slot % 64; }
    void remove(u32 slot) { bits_[slot / 64] &= ~(u64{1} << slot % 64); }
    void remove_from(u32 slot);
    u32 count() const;
    // Whether it became larger.
    bool add_all(const SlotSet& other);

private:
    std::vector<u64> bits_;
};

struct FlowBlock {
    u32 begin = 0, end = 0;  // positions
    std::vector<u32> successors;
    std::vector<u32> throws_to;  // handler blocks
    SlotStates states;           // at `begin`; empty: never reached
    SlotSet live{0};             // at `begin`
    std::vector<u32> handlers;   // positions of those that are open at `begin`, outermost first
    u32 loop_words = 0;          // heads of loops: how long the longest is
    bool is_handler = false;
    bool is_behind_import = false;  // a call of one: it may block, and comes back here then

    // Whether a thread that stands at `begin` may go on here.
    bool is_entry() const {
        return !states.empty() && (loop_words > 0 || is_handler || is_behind_import);
    }
};

class Flow {
public:
    // The function's code is [begin, end).
    Flow(const translate::CodeEffects& effects, u32 func, u32 begin, u32 end);

    u32 begin() const { return begin_; }
    u32 slots() const { return slots_; }
    const std::vector<FlowBlock>& blocks() const { return blocks_; }
    u32 block_at(u32 position) const;
    // What is live before each instruction of a block, in order.
    std::vector<SlotSet> live_before(const FlowBlock& block) const;
    // What is live while a call runs, of which `after` is live afterwards.
    SlotSet live_during(const translate::Effects& e, const SlotSet& after,
                        const std::vector<u32>& handlers) const;
    SlotSet live_after(const FlowBlock& block) const;
    // The most slots that are live at once.
    u32 most_live() const;

    // Changes `states` and `handlers` as the instruction does.
    void apply(const translate::Effects& e, u32 position, SlotStates& states,
               std::vector<u32>& handlers) const;

private:
    void find_blocks();
    void follow_states();
    void follow_liveness();
    void live_through(const translate::Effects& e, u32 position, SlotSet& live) const;
    bool merge(FlowBlock& block, const SlotStates& states, const std::vector<u32>& handlers) const;

    const translate::CodeEffects& effects_;
    const wasm::FuncType& type_;
    const u32 begin_, end_;
    u32 slots_;
    std::vector<FlowBlock> blocks_;
};

}  // namespace gpurun::codegen
