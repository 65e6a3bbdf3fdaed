// Follows what is known of addresses through a function, once: only heads of loops are reached from
// behind, and nothing is known there.
#include "codegen/checks.h"

#include <algorithm>

#include "abi/layout.h"
#include "wasm/instr.h"

namespace gpurun::codegen {

using translate::Effects;

namespace {

// An access to memory 0 by a 32-bit address.
std::optional<Checks::Access> access_of(const u64* at) {
    switch (CodeOp(op_of(at[0]))) {
#define OP(name)
#define LOAD(name, R, M)                                                                  \
    case CodeOp::name: return Checks::Access{b_of(at[0]), c_of(at[0]), sizeof(M), false}; \
    case CodeOp::name##_w: return Checks::Access{b_of(at[0]), low_of(at[1]), sizeof(M), false};
#define STORE(name, A, M)                                                                \
    case CodeOp::name: return Checks::Access{b_of(at[0]), c_of(at[0]), sizeof(M), true}; \
    case CodeOp::name##_w: return Checks::Access{b_of(at[0]), low_of(at[1]), sizeof(M), true};
#include "abi/code_ops.def"
#undef OP
        default: return {};
    }
}

// Whether the instruction of the module's says that it is aligned.
bool says_aligned(const wasm::Module& module, u32 wasm_offset, u32 width) {
    wasm::InstrReader reader(module.bytes, wasm_offset, u32(module.bytes.size()));
    wasm::Instr instr;
    return reader.next(instr) && wasm::is_memarg(instr.imm) && u64{1} << instr.align == width;
}

}  // namespace

Checks::Checks(const Flow& flow, const translate::CodeEffects& effects, u32 func,
               bool wants_alignment)
    : flow_(flow),
      effects_(effects),
      predecessors_(flow.blocks().size()),
      after_(flow.blocks().size()) {
    find_accesses(func, wants_alignment);
    if (accesses_.empty()) return;
    for (u32 i = 0; i < flow.blocks().size(); i++)
        if (!flow.blocks()[i].states.empty())
            for (u32 next : flow.blocks()[i].successors) predecessors_[next].push_back(i);
    for (u32 i = 0; i < flow.blocks().size(); i++)
        if (!flow.blocks()[i].states.empty()) follow(i, meet(i));
}

void Checks::find_accesses(u32 func, bool wants_alignment) {
    bool is_metered = false;
    Effects e;
    for (const FlowBlock& block : flow_.blocks())
        for (u32 at = block.begin; at < block.end; at += e.words) {
            effects_.look(at, e);
            const u64* words = &effects_.code().words[at];
            is_metered |= CodeOp(op_of(words[0])) == CodeOp::charge;
            if (std::optional<Access> found = access_of(words)) accesses_[at] = *found;
        }
    if (!wants_alignment || accesses_.empty()) return;
    const translate::FunctionMap map =
        translate::map_function(effects_.module(), func, {.metered = is_metered});
    for (auto& [at, access] : accesses_)
        access.is_aligned =
            access.offset % access.width == 0 &&
            says_aligned(effects_.module(), map.wasm_offset_at(at - flow_.begin()), access.width);
}

// What is known at the beginning of a block.
Checks::State Checks::meet(u32 number) const {
    const FlowBlock& block = flow_.blocks()[number];
    const std::vector<u32>& from = predecessors_[number];
    if (number == 0 || block.is_entry() || from.empty()) return {};
    State state;
    for (usize i = 0; i < from.size(); i++) {
        const std::optional<State>& other = after_[from[i]];
        if (!other) return {};
        if (i == 0) {
            state = *other;
            continue;
        }
        for (auto mine = state.begin(); mine != state.end();) {
            auto found = other->find(mine->first);
            if (found == other->end()) {
                mine = state.erase(mine);
                continue;
            }
            Check& checked = mine->second.checked;
            checked.end = std::min(checked.end, found->second.checked.end);
            checked.mask &= found->second.checked.mask;
            if (mine->second.noted_at != found->second.noted_at) mine->second.noted_at.reset();
            ++mine;
        }
    }
    for (auto& [slot, known] : state) known.by = nobody;
    return state;
}

void Checks::follow(u32 number, const State& before) {
    const FlowBlock& block = flow_.blocks()[number];
    State state = before;
    Effects e;
    for (u32 at = block.begin; at < block.end; at += e.words) {
        effects_.look(at, e);
        if (auto found = accesses_.find(at); found != accesses_.end()) {
            Access& access = found->second;
            const u64 end = u64(access.offset) + access.width;
            const u32 mask = access.is_aligned ? access.width - 1 : 0;
            Known& known = state[access.slot];
            if (end > known.checked.end || (mask & ~known.checked.mask) != 0) {
                if (known.by == nobody) known.by = at;
                Check& check = checks_[known.by];
                if (end > known.checked.end) check.end = known.checked.end = end;
                check.mask |= mask & ~known.checked.mask;
                known.checked.mask |= mask;
            }
            if (access.is_store) {
                access.is_noted = known.noted_at && access.offset >= *known.noted_at &&
                                  end <= u64{*known.noted_at} + dirty_reach;
                if (!access.is_noted) known.noted_at = access.offset;
            }
        }
        for (translate::SlotValue place : e.writes)
            for (u32 i = 0; i < place.words; i++) state.erase(place.slot + i);
        if (e.range_words > 0) state.clear();  // copy_words
    }
    after_[number] = std::move(state);
}

}  // namespace gpurun::codegen
