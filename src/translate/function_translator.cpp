// The frame, the operands and the emission of code; control is in translate_control.cpp, the
// families of instructions in translate_ops.cpp and translate_objects.cpp.
#include "translate/function_translator.h"

#include <algorithm>

#include "wasm/fuel.h"
#include "wasm/read_instr.h"

namespace gpurun::translate {

using wasm::ValType;

FunctionTranslator::FunctionTranslator(const wasm::Module& module, const InstanceLayout& layout,
                                       bool metered)
    : module_(module), layout_(layout), metered_(metered) {}

ValType type_from_code(s64 code) {
    switch (code) {
        case wasm::code::i32: return ValType::i32;
        case wasm::code::i64: return ValType::i64;
        case wasm::code::f32: return ValType::f32;
        case wasm::code::f64: return ValType::f64;
        case wasm::code::v128: return ValType::v128;
        default: return ValType::ref(wasm::Heap::any, true);
    }
}

// ---- the frame ---------------------------------------------------------------------

void FunctionTranslator::begin(std::span<const ValType> params) {
    drop_to(0);  // so that no local is in use
    local_runs_.clear();
    local_count_ = 0;
    controls_.clear();
    fixups_.clear();
    bound_branches_.clear();
    bound_at_ = none;
    top_slot_ = max_slot_ = max_tries_ = stored_ = 0;
    far_locals_ = far_end_ = 0;
    far_imms_.clear();
    far_lows_.clear();
    forget_result();
    charge_at_ = none;
    dead_ = needs_long_branches_ = false;
    dead_depth_ = 0;
    for (ValType type : params) declare_local(type, 1);
}

// Adds locals. In a function with far locals only the first slots of locals are near ones. They are
// few, because codegen looks at all near slots in every block.
void FunctionTranslator::declare_local(ValType type, u32 count) {
    constexpr u32 near_slots = 1024;
    const SlotKind kind = slot_kind(type);
    const u32 room = near_slots > top_slot_ ? (near_slots - top_slot_) / words_of(kind) : 0;
    const u32 near_ones = has_far_ ? std::min(count, room) : count;
    add_locals(kind, near_ones, false);
    add_locals(kind, count - near_ones, true);
}

void FunctionTranslator::add_locals(SlotKind kind, u32 count, bool is_far) {
    if (count == 0) return;
    u32& top = is_far ? far_locals_ : top_slot_;
    if (local_runs_.empty() || local_runs_.back().kind != kind ||
        local_runs_.back().is_far != is_far)
        local_runs_.push_back({local_count_, top, kind, is_far});
    local_count_ += count;
    top += count * words_of(kind);
    far_end_ = far_locals_;
    if (local_uses_.size() < local_count_) local_uses_.resize(local_count_);
    note_slot(top_slot_);
}

const FunctionTranslator::LocalRun& FunctionTranslator::run_of(u32 local) const {
    auto after = std::upper_bound(local_runs_.begin(), local_runs_.end(), local,
                                  [](u32 l, const LocalRun& run) { return l < run.first; });
    return *std::prev(after);
}

void FunctionTranslator::declare_locals(const wasm::Func& func) {
    wasm::BinaryReader in(module_.bytes.data(), func.body, func.code);
    for (u32 groups = in.leb_u32(); groups > 0; groups--) {
        u32 count = in.leb_u32();
        s64 heap = 0;
        bool nullable = false;
        declare_local(type_from_code(wasm::read_val_type(in, heap, nullable)), count);
    }
}

bool FunctionTranslator::translate_function(u32 index) {
    const wasm::Func& func = module_.funcs[index];
    const wasm::FuncType& type = module_.func_type(index);
    u32 entry = here();
    usize first_call = calls.size();
    long_branches_ = has_far_ = false;
    for (;;) {
        code.resize(entry);
        calls.resize(first_call);
        if (map) *map = {};
        begin(type.params);
        u32 first_zero = top_slot_;
        declare_locals(func);
        if (top_slot_ > max_frame_slots) {
            has_far_ = true;
            continue;
        }
        results_ = type.results;
        note_slot(words_of(results_));
        entry_ = entry;
        offset_ = func.code;
        emit(CodeOp::enter, first_zero, top_slot_ - first_zero, 0);
        if (far_locals_ > 0) {
            emit(CodeOp::enter_far);
            far_lows_.push_back(here());
            emit_pair(0, far_locals_);
        }
        translate_body(func.code, func.end);
        if (needs_long_branches_) {
            long_branches_ = true;
            continue;
        }
        if (finish_function(entry)) break;
        if (has_far_) return false;
        has_far_ = true;
    }
    if (map) finish_map();
    return true;
}

// Writes the size of the frame, with a record for a call it makes and its handlers. Returns false
// if that is too large.
bool FunctionTranslator::finish_function(u32 entry) {
    const u32 records = record_words * (1 + max_tries_);
    if (max_slot_ + records > max_frame_slots) return false;
    code[entry] |= u64(max_slot_ + records) << 48;
    // Now it is known where the far slots begin.
    for (u32 at : far_imms_) code[at] += u64(max_slot_) << 32;
    for (u32 at : far_lows_) code[at] += max_slot_;
    if (far_locals_ > 0) code[entry + 1] |= u64(frame_end() + records) << 32;
    return true;
}

void FunctionTranslator::finish_map() {
    for (u32 i = 0; i < local_count_; i++) {
        const LocalRun& run = run_of(i);
        map->local_slots.push_back(slot_in(run, i) + (run.is_far ? max_slot_ : 0));
        map->local_kinds.push_back(run.kind);
    }
    map->frame_slots = frame_end();
}

void FunctionTranslator::translate_body(u32 begin, u32 end) {
    controls_.push_back({});
    Control& body = controls_.back();
    body.op = Op::block;
    body.results = results_;
    body.base_slot = top_slot_;
    wasm::InstrReader reader(module_.bytes, begin, end);
    Instr instr;
    while (!controls_.empty() && reader.next(instr)) {
        offset_ = instr.offset;
        if (dead_) {
            skip_dead(instr);
        } else {
            charge(instr.op);
            translate_instr(instr);
        }
        if (metered_ && wasm::ends_fuel_block(instr.op)) charge_at_ = none;
    }
}

void FunctionTranslator::skip_dead(const Instr& instr) {
    switch (instr.op) {
        case Op::block:
        case Op::loop:
        case Op::if_:
        case Op::try_:
        case Op::try_table: dead_depth_++; return;
        case Op::else_:
        case Op::catch_:
        case Op::catch_all:
            if (dead_depth_ == 0) translate_instr(instr);
            return;
        case Op::delegate:
        case Op::end:
            if (dead_depth_ == 0) {
                translate_instr(instr);
            } else {
                dead_depth_--;
            }
            return;
        default: return;
    }
}

void FunctionTranslator::translate_expression(wasm::ConstExpr expr) {
    wasm::InstrReader reader(module_.bytes, expr.begin, expr.end);
    Instr instr;
    while (reader.next(instr) && instr.op != Op::end) {
        offset_ = instr.offset;
        translate_instr(instr);
    }
}

// ---- emission ----------------------------------------------------------------------

u32 FunctionTranslator::emit(u64 word) {
    if (map && (map->lines.empty() || map->lines.back().wasm_offset != offset_))
        map->lines.push_back({here() - entry_, offset_});
    forget_result();
    code.push_back(word);
    return here() - 1;
}

void FunctionTranslator::emit_copy(u32 to, u32 from, SlotKind kind) {
    if (to == from) return;
    static constexpr CodeOp ops[] = {CodeOp::copy_32, CodeOp::copy_64, CodeOp::copy_128};
    emit(ops[words_of(kind) / 2], to, from);
}

void FunctionTranslator::emit_constant(u32 to, SlotKind kind, u64 bits) {
    if (words_of(kind) == 1) {
        emit_imm(CodeOp::const_32, to, u32(bits));
    } else if (s64(bits) == s32(bits)) {
        emit_imm(CodeOp::const_64_k, to, u32(bits));
    } else {
        emit(CodeOp::const_64, to);
        code.push_back(bits);
    }
}

void FunctionTranslator::charge(Op op) {
    if (!metered_) return;
    u32 cost = wasm::fuel_cost(op);
    if (cost == 0) return;
    if (charge_at_ == none) charge_at_ = emit_imm(CodeOp::charge, 0, 0);
    code[charge_at_] += u64(cost) << 32;
}

// ---- operands ----------------------------------------------------------------------

void FunctionTranslator::push(SlotKind kind) {
    operands_.push_back({Operand::in_slot, kind, top_slot_, 0, 0, 0});
    top_slot_ += words_of(kind);
    note_slot(top_slot_);
}

void FunctionTranslator::push_result(u32 position, SlotKind kind) {
    push(kind);
    result_at_ = position;
}

void FunctionTranslator::push_local(u32 index) {
    const LocalRun& run = run_of(index);
    if (run.is_far) {
        const u32 at = emit_far(CodeOp::far_get_32, run.kind, top_slot_, slot_in(run, index));
        return push_result(at, run.kind);
    }
    push(run.kind);
    operands_.back().place = Operand::in_local;
    operands_.back().local = index;
    operands_.back().local_slot = slot_in(run, index);
    local_uses_[index]++;
}

void FunctionTranslator::push_constant(SlotKind kind, u64 bits) {
    push(kind);
    operands_.back().place = Operand::constant;
    operands_.back().bits = bits;
}

void FunctionTranslator::push_types(std::span<const ValType> types) {
    for (ValType type : types) push(slot_kind(type));
}

FunctionTranslator::Operand FunctionTranslator::pop() {
    Operand operand = operands_.back();
    operands_.pop_back();
    top_slot_ = operand.slot;
    if (operand.place == Operand::in_local) local_uses_[operand.local]--;
    if (stored_ > operands_.size()) stored_ = u32(operands_.size());
    return operand;
}

void FunctionTranslator::drop_to(u32 height) {
    while (operands_.size() > height) pop();
}

u32 FunctionTranslator::slot_of(Operand& operand) {
    if (operand.place == Operand::constant) {
        emit_constant(operand.slot, operand.kind, operand.bits);
        operand.place = Operand::in_slot;
    }
    return place_of(operand);
}

u32 FunctionTranslator::pop_own_slot() {
    Operand operand = pop();
    if (operand.place == Operand::in_local) {
        emit_copy(operand.slot, operand.local_slot, operand.kind);
        return operand.slot;
    }
    return slot_of(operand);
}

void FunctionTranslator::store_operand(Operand& operand) {
    if (operand.place == Operand::in_local) {
        local_uses_[operand.local]--;
        emit_copy(operand.slot, operand.local_slot, operand.kind);
    } else if (operand.place == Operand::constant) {
        emit_constant(operand.slot, operand.kind, operand.bits);
    }
    operand.place = Operand::in_slot;
}

void FunctionTranslator::store_all_operands() {
    for (; stored_ < operands_.size(); stored_++) store_operand(operands_[stored_]);
}

void FunctionTranslator::store_top_operands(u32 count) {
    u32 first = u32(operands_.size()) - count;
    for (usize i = std::max(first, stored_); i < operands_.size(); i++) store_operand(operands_[i]);
    if (first <= stored_) stored_ = u32(operands_.size());
}

void FunctionTranslator::preserve_local(u32 local) {
    if (local_uses_[local] == 0) return;
    // Many operands that are not in their slots would be looked at again and again: store them all.
    if (operands_.size() - stored_ > 64) return store_all_operands();
    for (usize i = stored_; i < operands_.size(); i++) {
        if (operands_[i].place == Operand::in_local && operands_[i].local == local)
            store_operand(operands_[i]);
    }
}

// Emits the instruction for values of `kind`, given the far_get_* or far_set_* for 32 bits. Far
// slots are counted from the first one until finish_function knows where that is.
u32 FunctionTranslator::emit_far(CodeOp op_32, SlotKind kind, u32 slot, u32 far_slot) {
    far_end_ = std::max(far_end_, far_slot + words_of(kind));
    far_imms_.push_back(here());
    return emit_imm(CodeOp(u32(op_32) + words_of(kind) / 2), slot, far_slot);
}

void FunctionTranslator::set_far_local(u32 far_slot, bool tee) {
    Operand value = pop();
    const u32 slot = slot_of(value);
    emit_far(CodeOp::far_set_32, value.kind, slot, far_slot);
    if (!tee) return;
    operands_.push_back(value);  // where it stood
    top_slot_ += words_of(value.kind);
    if (value.place == Operand::in_local) local_uses_[value.local]++;
}

void FunctionTranslator::set_local(u32 index, bool tee) {
    const LocalRun& run = run_of(index);
    const u32 slot = slot_in(run, index);
    if (run.is_far) return set_far_local(slot, tee);
    u32 result_at = result_at_;
    Operand value = pop();
    bool is_itself = value.place == Operand::in_local && value.local == index;
    if (value.place == Operand::in_slot && result_at != none &&
        a_of(code[result_at]) == value.slot && local_uses_[index] == 0) {
        code[result_at] = (code[result_at] & ~(u64{0xffff} << 16)) | u64(slot) << 16;
        forget_result();
    } else if (!is_itself) {
        preserve_local(index);
        if (value.place == Operand::constant) {
            emit_constant(slot, value.kind, value.bits);
        } else {
            emit_copy(slot, slot_of(value), value.kind);
        }
    }
    if (tee) push_local(index);
}

}  // namespace gpurun::translate
