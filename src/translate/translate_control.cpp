// Translates blocks, branches, calls and exceptions.
#include "translate/function_translator.h"
#include "translate/operators.h"

namespace gpurun::translate {

using wasm::ValType;

// ---- labels ------------------------------------------------------------------------

void FunctionTranslator::block_types(const Instr& instr, std::span<const ValType>& params,
                                     std::span<const ValType>& results) {
    if (instr.block_type >= 0) {
        const wasm::FuncType& type = type_at(u32(instr.block_type)).func;
        params = type.params;
        results = type.results;
    } else if (instr.block_type != wasm::block_empty) {
        static constexpr ValType i32 = ValType::i32, i64 = ValType::i64, f32 = ValType::f32,
                                 f64 = ValType::f64, v128 = ValType::v128,
                                 ref = ValType::ref(wasm::Heap::any, true);
        static constexpr const ValType* by_kind[] = {&i32, &i64, &f32, &f64, &v128, &ref};
        results = {by_kind[u32(slot_kind(type_from_code(instr.block_type)))], 1};
    }
}

FunctionTranslator::Control& FunctionTranslator::open(const Instr& instr) {
    store_all_operands();
    forget_result();
    Control control{};
    control.op = instr.op;
    block_types(instr, control.params, control.results);
    control.height = u32(operands_.size() - control.params.size());
    control.base_slot = control.params.empty() ? top_slot_ : operands_[control.height].slot;
    control.outer_tries = control.tries = controls_.back().tries;
    controls_.push_back(control);
    return controls_.back();
}

std::span<const ValType> FunctionTranslator::label_types(const Control& target) const {
    return target.op == Op::loop ? target.params : target.results;
}

u32 FunctionTranslator::new_fixup(u32 position, Fixup::Kind kind, u32 word, u32 next) {
    fixups_.push_back({position, kind, word, next});
    return u32(fixups_.size() - 1);
}

void FunctionTranslator::set_distance(const Fixup& fixup, u32 target) {
    s64 distance = s64(target) - s64(fixup.position);
    u64& word = code[fixup.word];
    switch (fixup.kind) {
        case Fixup::imm:
        case Fixup::table_high: word = (word & 0xffffffff) | u64(u32(distance)) << 32; return;
        case Fixup::table_low: word = (word & ~u64{0xffffffff}) | u32(distance); return;
        case Fixup::short_branch:
            if (distance != s16(distance)) needs_long_branches_ = true;
            word = (word & ~(u64{0xffff} << 16)) | u64(u16(distance)) << 16;
            return;
    }
}

void FunctionTranslator::bind(u32& list) {
    if (bound_at_ != here()) bound_branches_.clear();
    bound_at_ = here();
    for (; list != none; list = fixups_[list].next) {
        set_distance(fixups_[list], here());
        u32 at = fixups_[list].position;
        if (op_of(code[at]) == u32(CodeOp::br)) bound_branches_.push_back(at);
    }
    forget_result();
}

// Ends the function. Branches that lead to nothing but a return become one.
void FunctionTranslator::finish_body() {
    u32 last = here();
    return_values();
    if (here() != last + 1 || bound_at_ != last) return;
    for (u32 branch : bound_branches_) code[branch] = code[last];
}

void FunctionTranslator::close_tries(u32 count) {
    if (count > 0) emit_imm(CodeOp::try_end, 0, count);
}

// ---- branches ----------------------------------------------------------------------

void FunctionTranslator::store_label_values(const Control& target) {
    store_top_operands(u32(label_types(target).size()));
}

// Returns true if going to a target takes more than a branch.
bool FunctionTranslator::needs_stub(const Control& target) const {
    if (&target == &controls_.front()) return true;
    if (controls_.back().tries > target.outer_tries) return true;
    usize count = label_types(target).size();
    return count > 0 && operands_[operands_.size() - count].slot != target.base_slot;
}

// Copies in ascending order: a value's destination is never above its source.
void FunctionTranslator::move_values(u32 count, u32 to) {
    constexpr u32 few = 3;
    if (count > few) {
        store_top_operands(count);
        u32 from = operands_[operands_.size() - count].slot;
        if (from != to) emit(CodeOp::copy_words, to, from, top_slot_ - from);
        return;
    }
    for (usize i = operands_.size() - count; i < operands_.size(); i++) {
        const Operand& value = operands_[i];
        if (value.place == Operand::constant) {
            emit_constant(to, value.kind, value.bits);
        } else {
            emit_copy(to, place_of(value), value.kind);
        }
        to += words_of(value.kind);
    }
}

void FunctionTranslator::jump_to(Control& target) {
    if (&target == &controls_.front()) return return_values();
    move_values(u32(label_types(target).size()), target.base_slot);
    close_tries(controls_.back().tries - target.outer_tries);
    u32 at = emit_imm(CodeOp::br, 0, 0);
    if (target.op == Op::loop) {
        set_distance({at, Fixup::imm, at, none}, target.start);
    } else {
        target.fixups = new_fixup(at, Fixup::imm, at, target.fixups);
    }
}

void FunctionTranslator::return_values() {
    close_tries(controls_.back().tries);
    usize count = results_.size();
    if (count == 1) {
        const Operand& value = operands_.back();
        u32 slot = place_of(value);
        if (value.place == Operand::constant) {
            emit_constant(0, value.kind, value.bits);
            emit(CodeOp::ret);
        } else if (value.kind == SlotKind::v128) {
            emit_copy(0, slot, value.kind);
            emit(CodeOp::ret);
        } else {
            emit(words_of(value.kind) == 1 ? CodeOp::ret_32 : CodeOp::ret_64, 0, slot);
        }
        return;
    }
    // Stores operands first: locals may be both source and destination.
    store_top_operands(u32(count));
    move_values(u32(count), 0);
    emit(CodeOp::ret);
}

void FunctionTranslator::branch(u32 depth) {
    jump_to(label(depth));
    dead_ = true;
}

void FunctionTranslator::branch_if(Operand condition, bool when, Control& target) {
    u32 before = here(), result_at = result_at_;
    store_label_values(target);
    if (here() == before) result_at_ = result_at;
    if (needs_stub(target)) {
        u32 skip = skip_if(condition, !when);
        jump_to(target);
        bind(skip);
        return;
    }
    Fixup::Kind kind = emit_condition(condition, when, target.op == Op::loop ? target.start : none);
    u32 at = here() - 1;
    if (target.op == Op::loop) {
        set_distance({at, kind, at, none}, target.start);
    } else {
        target.fixups = new_fixup(at, kind, at, target.fixups);
    }
    forget_result();
}

u32 FunctionTranslator::skip_if(Operand condition, bool when) {
    Fixup::Kind kind = emit_condition(condition, when, none);
    u32 at = here() - 1;
    forget_result();
    return new_fixup(at, kind, at, none);
}

FunctionTranslator::Fixup::Kind FunctionTranslator::emit_condition(Operand condition, bool when,
                                                                   u32 target) {
    bool is_fresh = condition.place == Operand::in_slot && result_at_ != none &&
                    result_at_ == here() - 1 && a_of(code.back()) == condition.slot;
    if (is_fresh) {
        u64 compare = code.back();
        CodeOp op = CodeOp(op_of(compare));
        if (op == CodeOp::i32_eqz) {
            code.pop_back();
            emit_imm(when ? CodeOp::br_z : CodeOp::br_nz, b_of(compare), 0);
            return Fixup::imm;
        }
        CodeOp fused = fused_branch(op, when);
        s64 distance = target == none ? 0 : s64(target) - s64(here() - 1);
        bool reaches = target == none ? !long_branches_ : distance == s16(distance);
        if (fused != CodeOp::count && reaches) {
            code.pop_back();
            emit(fused, 0, b_of(compare), c_of(compare));
            return Fixup::short_branch;
        }
    }
    u32 slot = slot_of(condition);
    emit_imm(when ? CodeOp::br_nz : CodeOp::br_z, slot, 0);
    return Fixup::imm;
}

void FunctionTranslator::br_table(const Instr& instr) {
    u32 index = pop_slot();
    wasm::ListReader list(module_.bytes, instr);
    std::vector<u32> depths(instr.count + 1);
    for (u32 i = 0; i < instr.count; i++) depths[i] = list.label();
    depths.back() = instr.a;
    store_label_values(label(instr.a));  // all targets take as many values

    u32 at = emit_imm(CodeOp::br_table, index, instr.count);
    u32 first_word = here();
    code.resize(code.size() + (depths.size() + 1) / 2);
    if (stubs_.size() < controls_.size()) stubs_.resize(controls_.size(), none);
    std::vector<u32> stub_depths;
    for (u32 i = 0; i < depths.size(); i++) {
        Control& target = label(depths[i]);
        Fixup::Kind kind = i % 2 ? Fixup::table_high : Fixup::table_low;
        u32 word = first_word + i / 2;
        if (needs_stub(target)) {
            if (stubs_[depths[i]] == none) stub_depths.push_back(depths[i]);
            stubs_[depths[i]] = new_fixup(at, kind, word, stubs_[depths[i]]);
        } else if (target.op == Op::loop) {
            set_distance({at, kind, word, none}, target.start);
        } else {
            target.fixups = new_fixup(at, kind, word, target.fixups);
        }
    }
    for (u32 depth : stub_depths) {
        bind(stubs_[depth]);  // and is none again
        jump_to(label(depth));
    }
    dead_ = true;
}

void FunctionTranslator::br_on_null(const Instr& instr) {
    Operand ref = pop();
    if (instr.op == Op::br_on_null) {
        u32 slot = slot_of(ref);
        branch_if({Operand::in_slot, SlotKind::ref, slot, 0, 0, 0}, false, label(instr.a));
        operands_.push_back(ref);  // known not to be null; where it stood
        top_slot_ += 1;
        if (ref.place == Operand::in_local) local_uses_[ref.local]++;
        return;
    }
    // br_on_non_null: the reference is the last of the label's values.
    operands_.push_back(ref);
    top_slot_ += 1;
    if (ref.place == Operand::in_local) local_uses_[ref.local]++;
    store_top_operands(1);
    branch_if({Operand::in_slot, SlotKind::ref, operands_.back().slot, 0, 0, 0}, true,
              label(instr.a));
    pop();
}

void FunctionTranslator::br_on_cast(const Instr& instr) {
    store_top_operands(1);
    u32 ref = operands_.back().slot, test = top_slot_;
    note_slot(test + 1);
    emit(CodeOp::ref_test, test, ref, instr.b >> 1 & 1);
    emit_pair(code_type(instr.heap2));
    branch_if({Operand::in_slot, SlotKind::i32, test, 0, 0, 0}, instr.op == Op::br_on_cast,
              label(instr.a));
}

// ---- blocks ------------------------------------------------------------------------

void FunctionTranslator::add_point(bool is_loop) {
    if (!map) return;
    usize known = operands_.size();
    while (known > 0 && operands_[known - 1].in_map == none) known--;
    u32 top = known > 0 ? operands_[known - 1].in_map : none;
    for (; known < operands_.size(); known++) {
        Operand& operand = operands_[known];
        map->operands.push_back({operand.kind, operand.slot, top});
        top = operand.in_map = u32(map->operands.size() - 1);
    }
    map->points.push_back({here() - entry_, offset_, is_loop, top});
}

void FunctionTranslator::translate_if(const Instr& instr) {
    Operand condition = pop();
    u32 before = here(), result_at = result_at_;
    store_all_operands();
    if (here() == before) result_at_ = result_at;
    u32 skip = skip_if(condition, false);
    open(instr).else_fixup = skip;
}

// Ends a section that falls through: moves its results to the slots of the block's results.
void FunctionTranslator::finish_section(Control& control) {
    if (dead_) return;
    store_label_values(control);
    if (controls_.back().tries > control.outer_tries || needs_stub(control)) {
        jump_to(control);
    } else {
        u32 at = emit_imm(CodeOp::br, 0, 0);
        control.fixups = new_fixup(at, Fixup::imm, at, control.fixups);
    }
}

void FunctionTranslator::translate_else() {
    Control& control = controls_.back();
    finish_section(control);
    bind(control.else_fixup);
    control.op = Op::else_;
    drop_to(control.height);
    push_types(control.params);
    dead_ = false;
}

void FunctionTranslator::translate_end() {
    Control& control = controls_.back();
    if (controls_.size() == 1) {
        if (!dead_) finish_body();
        controls_.pop_back();
        return;
    }
    bool is_try = control.op == Op::try_ || control.op == Op::catch_ || control.op == Op::try_table;
    if (is_try) {
        finish_section(control);
        if (control.op == Op::try_table) {
            finish_try_table(control);
        } else {
            finish_legacy_try(control);
        }
        dead_ = true;  // what falls through went by the branch
    } else if (!dead_) {
        store_all_operands();
    }
    // An if without else: its parameters are its results.
    bool reached = !dead_ || control.fixups != none || control.else_fixup != none;
    bind(control.else_fixup);
    bind(control.fixups);
    drop_to(control.height);
    push_types(control.results);
    controls_.pop_back();
    dead_ = !reached;
    stored_ = u32(operands_.size());
}

// ---- exceptions --------------------------------------------------------------------

void FunctionTranslator::translate_try(const Instr& instr) {
    Control& control = open(instr);
    control.clauses = instr.list;
    control.clause_count = instr.count;
    control.tries++;
    if (control.tries > max_tries_) max_tries_ = control.tries;
    u32 at = emit_imm(CodeOp::try_begin, 0, 0);
    control.handler_fixup = new_fixup(at, Fixup::imm, at, none);
}

// Emits the handler of a try_table: its clauses in order, each of which goes to its label.
void FunctionTranslator::finish_try_table(Control& control) {
    bind(control.handler_fixup);
    Instr list;
    list.list = control.clauses;
    wasm::ListReader clauses(module_.bytes, list);
    for (u32 i = 0; i < control.clause_count; i++) {
        wasm::CatchClause clause = clauses.catch_clause();
        bool has_tag = clause.kind <= wasm::CatchClause::catch_ref;
        bool has_ref = clause.kind == wasm::CatchClause::catch_ref ||
                       clause.kind == wasm::CatchClause::catch_all_ref;
        u32 skip = none;
        if (has_tag) {
            u32 at = emit_imm(CodeOp::catch_tag, 0, 0);
            emit_pair(layout_.tags + clause.tag);
            skip = new_fixup(at, Fixup::imm, at, none);
        }
        Control& target = label(clause.label + 1);  // labels count from outside
        bool returns = &target == &controls_.front();
        u32 to = returns ? 0 : target.base_slot, words = 0;
        if (has_tag) {
            words = words_of(module_.types[module_.tags[clause.tag].type].func.params);
            if (words > 0) emit_imm(CodeOp::catch_values, to, layout_.tags + clause.tag);
        }
        if (has_ref) emit(CodeOp::catch_ref, to + words);
        note_slot(to + words + 1);
        close_tries(control.outer_tries - (returns ? 0 : target.outer_tries));
        if (returns) {
            emit(CodeOp::ret);
        } else {
            u32 at = emit_imm(CodeOp::br, 0, 0);
            if (target.op == Op::loop) {
                set_distance({at, Fixup::imm, at, none}, target.start);
            } else {
                target.fixups = new_fixup(at, Fixup::imm, at, target.fixups);
            }
        }
        bind(skip);
    }
    emit(CodeOp::throw_again);
}

// Begins the next catch of a legacy try. The exception stays in the first slot of its section, for
// rethrow.
void FunctionTranslator::translate_catch(Op op, u32 tag) {
    Control& control = controls_.back();
    finish_section(control);
    if (control.op == Op::try_) bind(control.handler_fixup);
    bind(control.else_fixup);
    control.op = Op::catch_;
    control.tries = control.outer_tries;
    drop_to(control.height);
    push(SlotKind::ref);
    dead_ = false;
    u32 exception = operands_.back().slot;
    if (op == Op::catch_all) {
        control.has_catch_all = true;
        emit(CodeOp::catch_ref, exception);
        return;
    }
    u32 at = emit_imm(CodeOp::catch_tag, 0, 0);
    emit_pair(layout_.tags + tag);
    control.else_fixup = new_fixup(at, Fixup::imm, at, none);
    emit(CodeOp::catch_ref, exception);
    const wasm::FuncType& type = module_.types[module_.tags[tag].type].func;
    push_types(type.params);
    if (!type.params.empty()) emit_imm(CodeOp::catch_values, exception + 1, layout_.tags + tag);
}

void FunctionTranslator::finish_legacy_try(Control& control) {
    if (control.op == Op::try_) bind(control.handler_fixup);
    bind(control.else_fixup);
    if (!control.has_catch_all) emit(CodeOp::throw_again);
}

// Lets an exception go on as if it were thrown inside the block that the label names.
void FunctionTranslator::translate_delegate(u32 depth) {
    Control& control = controls_.back();
    finish_section(control);
    bind(control.handler_fixup);
    close_tries(control.outer_tries - label(depth + 1).tries);
    emit(CodeOp::throw_again);
    bool reached = control.fixups != none;
    bind(control.fixups);
    drop_to(control.height);
    push_types(control.results);
    controls_.pop_back();
    dead_ = !reached;
    stored_ = u32(operands_.size());
}

// ---- calls -------------------------------------------------------------------------

void FunctionTranslator::translate_call(const Instr& instr) {
    bool is_tail = instr.op == Op::return_call || instr.op == Op::return_call_indirect ||
                   instr.op == Op::return_call_ref;
    bool is_direct = instr.op == Op::call || instr.op == Op::return_call;
    bool is_ref = instr.op == Op::call_ref || instr.op == Op::return_call_ref;
    const wasm::FuncType& type = is_direct ? module_.func_type(instr.a) : type_at(instr.a).func;
    u32 callee = is_direct ? 0 : pop_slot();  // index or reference
    store_all_operands();
    if (far_locals_ > 0 && !is_tail) return translate_far_call(instr, type, callee);
    u32 base =
        type.params.empty() ? top_slot_ : operands_[operands_.size() - type.params.size()].slot;
    u32 words = words_of(type.params);
    if (is_tail) close_tries(controls_.back().tries);
    add_point(false);

    if (is_direct && instr.a < module_.imported_funcs) {
        u32 at = layout_.imported_funcs + instr.a;
        if (is_tail) {
            emit(CodeOp::return_call_import, base, words);
            emit_pair(at);
        } else {
            emit_imm(CodeOp::call_import, base, at);
        }
    } else if (is_direct) {
        u32 at = is_tail ? emit(CodeOp::return_call, base, words) : emit_imm(CodeOp::call, base, 0);
        if (is_tail) emit_pair(0);
        calls.push_back({at, instr.a, is_tail});
    } else if (is_ref) {
        if (is_tail) {
            emit(CodeOp::return_call_ref, base, words, callee);
        } else {
            emit(CodeOp::call_ref, base, callee);
            emit_pair(0, module_.type_ids[instr.a]);
        }
    } else {
        u32 is_64 = table_is_64(instr.b);
        if (is_tail) {
            emit(CodeOp::return_call_indirect, base, words, is_64);
        } else {
            emit(CodeOp::call_indirect, base, callee, is_64);
        }
        emit_pair(layout_.tables + instr.b, module_.type_ids[instr.a]);
        if (is_tail) code.push_back(code_word(CodeOp(0), callee));
    }
    drop_to(u32(operands_.size() - type.params.size()));
    if (is_tail) {
        note_slot(words);  // the arguments move to the frame's start
        dead_ = true;
    } else {
        push_types(type.results);
        stored_ = u32(operands_.size());
    }
    forget_result();
}

// Puts the reference that call_far calls into a slot and returns that slot. `callee` is the slot of
// the index of call_indirect or the reference of call_ref.
u32 FunctionTranslator::far_callee(const Instr& instr, u32 callee) {
    if (instr.op == Op::call_ref) return callee;
    const u32 slot = top_slot_;
    note_slot(slot + 1);
    if (instr.op == Op::call_indirect) {
        emit(CodeOp::far_callee, slot, callee, table_is_64(instr.b));
        emit_pair(layout_.tables + instr.b, module_.type_ids[instr.a]);
    } else if (instr.a < module_.imported_funcs) {
        emit_imm(CodeOp::global_get_32, slot, layout_.imported_funcs + instr.a);
    } else {
        emit_imm(CodeOp::ref_func, slot, instr.a);
    }
    return slot;
}

// The callee's frame begins behind the far locals, so arguments are copied there before the call,
// and results are copied back after it.
void FunctionTranslator::translate_far_call(const Instr& instr, const wasm::FuncType& type,
                                            u32 callee) {
    const u32 ref = far_callee(instr, callee);
    const bool is_direct = instr.op == Op::call;
    u32 far_slot = far_locals_;
    for (usize i = operands_.size() - type.params.size(); i < operands_.size(); i++) {
        emit_far(CodeOp::far_set_32, operands_[i].kind, operands_[i].slot, far_slot);
        far_slot += words_of(operands_[i].kind);
    }
    add_point(false);
    emit(CodeOp::call_far, 0, ref);
    far_lows_.push_back(here());
    emit_pair(far_locals_, is_direct ? module_.funcs[instr.a].type : module_.type_ids[instr.a]);
    drop_to(u32(operands_.size() - type.params.size()));
    far_slot = far_locals_;
    for (ValType result : type.results) {
        const SlotKind kind = slot_kind(result);
        emit_far(CodeOp::far_get_32, kind, top_slot_, far_slot);
        push(kind);
        far_slot += words_of(kind);
    }
    stored_ = u32(operands_.size());
    forget_result();
}

}  // namespace gpurun::translate
