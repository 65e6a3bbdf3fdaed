// Blocks, what slots hold and which are live: two analyses over the effects of instructions.
#include "codegen/flow.h"

#include <algorithm>
#include <bit>
#include <deque>

#include "base/check.h"

namespace gpurun::codegen {

using translate::Effects;
using translate::SlotValue;

namespace {

Held first_held(u32 words) { return words == 1 ? Held::word : words == 2 ? Held::low : Held::v0; }

// Where ways meet: the same, or zero where the other has been written since; else a word is a word,
// whatever it was part of (i32.wrap_i64 leaves its operand where it is).
Held meet(Held a, Held b) {
    if (a == b) return a;
    if (a == Held::nothing || b == Held::nothing) return Held::nothing;
    if (a == Held::zero) return b;
    if (b == Held::zero) return a;
    return Held::word;
}

u64 word_at(const translate::CodeEffects& effects, u32 position) {
    return effects.code().words[position];
}

}  // namespace

SlotValue value_around(const SlotStates& states, u32 slot) {
    SlotValue value = {slot, 1};
    if (states[slot] == Held::low || states[slot] == Held::high)
        value = {slot - (u32(states[slot]) - u32(Held::low)), 2};
    if (states[slot] >= Held::v0) value = {slot - (u32(states[slot]) - u32(Held::v0)), 4};
    for (u32 i = 0; i < value.words && value.words > 1; i++)
        if (value.slot + i >= states.size() ||
            states[value.slot + i] != Held(u32(first_held(value.words)) + i))
            return {slot, 1};
    return value;
}

std::vector<SlotValue> values_in(const SlotStates& states, u32 begin, u32 end) {
    std::vector<SlotValue> values;
    for (u32 slot = begin; slot < end; slot += values.back().words) {
        SlotValue value = value_around(states, slot);
        bool is_inside = value.slot == slot && slot + value.words <= end;
        values.push_back(is_inside ? value : SlotValue{slot, 1});
    }
    return values;
}

void hold(SlotStates& states, SlotValue value) {
    for (u32 i = 0; i < value.words; i++)
        states[value.slot + i] = Held(u32(first_held(value.words)) + i);
}

void SlotSet::remove_from(u32 slot) {
    if (slot / 64 >= bits_.size()) return;
    bits_[slot / 64] &= (u64{1} << slot % 64) - 1;
    std::fill(bits_.begin() + slot / 64 + 1, bits_.end(), 0);
}

u32 SlotSet::count() const {
    u32 found = 0;
    for (u64 bits : bits_) found += u32(std::popcount(bits));
    return found;
}

bool SlotSet::add_all(const SlotSet& other) {
    bool is_new = false;
    for (usize i = 0; i < bits_.size(); i++) {
        is_new |= (other.bits_[i] & ~bits_[i]) != 0;
        bits_[i] |= other.bits_[i];
    }
    return is_new;
}

Flow::Flow(const translate::CodeEffects& effects, u32 func, u32 begin, u32 end)
    : effects_(effects),
      type_(effects.module().func_type(func)),
      begin_(begin),
      end_(end),
      slots_(c_of(word_at(effects, begin))) {
    CHECK(CodeOp(op_of(word_at(effects, begin))) == CodeOp::enter);
    find_blocks();
    follow_states();
    follow_liveness();
}

u32 Flow::block_at(u32 position) const {
    auto found = std::lower_bound(blocks_.begin(), blocks_.end(), position,
                                  [](const FlowBlock& b, u32 p) { return b.begin < p; });
    CHECK(found != blocks_.end() && found->begin == position);
    return u32(found - blocks_.begin());
}

void Flow::find_blocks() {
    std::vector<bool> starts(end_ - begin_ + 1), handlers(starts), behind_imports(starts);
    std::vector<u32> loops(end_ - begin_ + 1);
    Effects e;
    starts[0] = true;
    for (u32 at = begin_; at < end_; at += e.words) {
        effects_.look(at, e);
        for (u32 target : e.targets) {
            starts[target - begin_] = true;
            if (target <= at)
                loops[target - begin_] = std::max(loops[target - begin_], at - target + 1);
        }
        if (e.handler != Effects::none)
            starts[e.handler - begin_] = handlers[e.handler - begin_] = true;
        const u32 after = at + e.words - begin_;
        if (!e.targets.empty() || !e.falls_through) starts[after] = true;
        if (CodeOp(op_of(word_at(effects_, at))) == CodeOp::call_import)
            starts[after] = behind_imports[after] = true;
    }
    for (u32 at = begin_; at < end_; at += e.words) {
        effects_.look(at, e);
        if (starts[at - begin_]) {
            blocks_.emplace_back();
            blocks_.back().begin = at;
            blocks_.back().loop_words = loops[at - begin_];
            blocks_.back().is_handler = handlers[at - begin_];
            blocks_.back().is_behind_import = behind_imports[at - begin_];
        }
        blocks_.back().end = at + e.words;
    }
    for (FlowBlock& block : blocks_) {
        u32 last = block.begin;
        for (u32 at = block.begin; at < block.end; at += e.words) {
            last = at;
            effects_.look(at, e);
        }
        effects_.look(last, e);
        for (u32 target : e.targets) block.successors.push_back(block_at(target));
        if (e.falls_through && block.end < end_) block.successors.push_back(block_at(block.end));
    }
}

void Flow::apply(const Effects& e, u32 position, SlotStates& states,
                 std::vector<u32>& handlers) const {
    const u64 w = word_at(effects_, position);
    switch (CodeOp(op_of(w))) {
        case CodeOp::enter: std::fill_n(states.begin() + a_of(w), b_of(w), Held::zero); return;
        case CodeOp::copy_words: {
            for (SlotValue value : values_in(states, b_of(w), b_of(w) + c_of(w)))
                hold(states, {value.slot - b_of(w) + a_of(w), value.words});
            return;
        }
        case CodeOp::try_begin: handlers.push_back(e.handler); return;
        case CodeOp::try_end: handlers.resize(handlers.size() - imm_of(w)); return;
        default: break;
    }
    if (e.clobbers != Effects::none)
        std::fill(states.begin() + std::min<u32>(e.clobbers, slots_), states.end(), Held::nothing);
    for (SlotValue value : e.writes) hold(states, value);
}

bool Flow::merge(FlowBlock& block, const SlotStates& states,
                 const std::vector<u32>& handlers) const {
    if (block.states.empty()) {
        block.states = states;
        block.handlers = handlers;
        return true;
    }
    CHECK(block.handlers == handlers);
    bool changed = false;
    for (u32 i = 0; i < slots_; i++) {
        Held met = meet(block.states[i], states[i]);
        changed |= met != block.states[i];
        block.states[i] = met;
    }
    return changed;
}

void Flow::follow_states() {
    SlotStates states(slots_, Held::nothing);
    u32 slot = 0;
    for (wasm::ValType type : type_.params) {
        hold(states, {slot, translate::words_of(type)});
        slot += translate::words_of(type);
    }
    merge(blocks_[0], states, {});
    std::deque<u32> work = {0};
    std::vector<bool> is_waiting(blocks_.size());
    auto flow_to = [&](u32 target, const SlotStates& now, const std::vector<u32>& handlers) {
        if (!merge(blocks_[target], now, handlers) || is_waiting[target]) return;
        is_waiting[target] = true;
        work.push_back(target);
    };
    Effects e;
    while (!work.empty()) {
        const u32 number = work.front();
        work.pop_front();
        is_waiting[number] = false;
        FlowBlock& block = blocks_[number];
        states = block.states;
        std::vector<u32> handlers = block.handlers;
        for (u32 at = block.begin; at < block.end; at += e.words) {
            effects_.look(at, e);
            if (e.may_throw && !handlers.empty()) {
                SlotStates thrown = states;
                if (e.clobbers != Effects::none)
                    std::fill(thrown.begin() + std::min<u32>(e.clobbers, slots_), thrown.end(),
                              Held::nothing);
                std::vector<u32> outer(handlers.begin(), handlers.end() - 1);
                const u32 target = block_at(handlers.back());
                if (std::ranges::find(block.throws_to, target) == block.throws_to.end())
                    block.throws_to.push_back(target);
                flow_to(target, thrown, outer);
            }
            apply(e, at, states, handlers);
        }
        for (u32 next : block.successors) flow_to(next, states, handlers);
    }
}

// `live` afterwards becomes `live` before. What a thrown exception needs is the caller's to add.
void Flow::live_through(const Effects& e, u32 position, SlotSet& live) const {
    const u64 w = word_at(effects_, position);
    switch (CodeOp(op_of(w))) {
        case CodeOp::enter:
            for (u32 i = 0; i < b_of(w); i++) live.remove(a_of(w) + i);
            return;
        case CodeOp::copy_words:
            for (u32 i = 0; i < c_of(w); i++) live.remove(a_of(w) + i);
            break;
        case CodeOp::ret: {
            u32 slot = 0;
            for (wasm::ValType type : type_.results)
                for (u32 i = 0; i < translate::words_of(type); i++) live.add(slot++);
            return;
        }
        default: break;
    }
    if (e.clobbers != Effects::none) live.remove_from(e.clobbers);
    for (SlotValue value : e.writes)
        for (u32 i = 0; i < value.words; i++) live.remove(value.slot + i);
    for (SlotValue value : e.reads)
        for (u32 i = 0; i < value.words; i++) live.add(value.slot + i);
    for (u32 i = 0; i < e.range_words; i++) live.add(e.range + i);
}

SlotSet Flow::live_after(const FlowBlock& block) const {
    SlotSet live(slots_);
    for (u32 next : block.successors)
        if (!blocks_[next].states.empty()) live.add_all(blocks_[next].live);
    return live;
}

std::vector<SlotSet> Flow::live_before(const FlowBlock& block) const {
    std::vector<u32> positions;
    std::vector<std::vector<u32>> open;  // the newest handler at each
    std::vector<u32> handlers = block.handlers;
    Effects e;
    for (u32 at = block.begin; at < block.end; at += e.words) {
        effects_.look(at, e);
        positions.push_back(at);
        open.push_back(handlers.empty() ? std::vector<u32>() : std::vector<u32>{handlers.back()});
        if (e.handler != Effects::none) handlers.push_back(e.handler);
        if (CodeOp(op_of(word_at(effects_, at))) == CodeOp::try_end)
            handlers.resize(handlers.size() - imm_of(word_at(effects_, at)));
    }
    std::vector<SlotSet> lives(positions.size(), SlotSet(0));
    SlotSet live = live_after(block);
    for (usize i = positions.size(); i > 0; i--) {
        effects_.look(positions[i - 1], e);
        live_through(e, positions[i - 1], live);
        if (e.may_throw)
            for (u32 handler : open[i - 1]) live.add_all(blocks_[block_at(handler)].live);
        lives[i - 1] = live;
    }
    return lives;
}

SlotSet Flow::live_during(const Effects& e, const SlotSet& after,
                          const std::vector<u32>& handlers) const {
    SlotSet live = after;
    if (e.clobbers != Effects::none) live.remove_from(e.clobbers);
    for (SlotValue value : e.writes)
        for (u32 i = 0; i < value.words; i++) live.remove(value.slot + i);
    if (e.may_throw && !handlers.empty()) live.add_all(blocks_[block_at(handlers.back())].live);
    return live;
}

void Flow::follow_liveness() {
    std::vector<std::vector<u32>> sources(blocks_.size());
    for (u32 i = 0; i < blocks_.size(); i++) {
        blocks_[i].live = SlotSet(slots_);
        if (blocks_[i].states.empty()) continue;
        for (u32 next : blocks_[i].successors) sources[next].push_back(i);
        for (u32 next : blocks_[i].throws_to) sources[next].push_back(i);
    }
    std::deque<u32> work;
    std::vector<bool> is_waiting(blocks_.size());
    for (u32 i = u32(blocks_.size()); i > 0; i--) {
        if (blocks_[i - 1].states.empty()) continue;
        work.push_back(i - 1);
        is_waiting[i - 1] = true;
    }
    Effects e;
    while (!work.empty()) {
        const u32 number = work.front();
        work.pop_front();
        is_waiting[number] = false;
        FlowBlock& block = blocks_[number];
        std::vector<SlotSet> lives = live_before(block);
        if (!block.live.add_all(lives.front())) continue;
        for (u32 source : sources[number]) {
            if (is_waiting[source]) continue;
            is_waiting[source] = true;
            work.push_back(source);
        }
    }
}

u32 Flow::most_live() const {
    u32 most = 0;
    for (const FlowBlock& block : blocks_)
        if (!block.states.empty())
            for (const SlotSet& live : live_before(block)) most = std::max(most, live.count());
    return most;
}

}  // namespace gpurun::codegen
