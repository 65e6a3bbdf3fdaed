// Translates instructions of numbers, variables, memories and tables.
#include "translate/function_translator.h"
#include "translate/operators.h"

namespace gpurun::translate {
namespace {

SlotKind kind_from_letter(char letter) {
    switch (letter) {
        case 'I': return SlotKind::i64;
        case 'f': return SlotKind::f32;
        case 'F': return SlotKind::f64;
        case 'V': return SlotKind::v128;
        default: return SlotKind::i32;
    }
}

// Returns the kind of an operator's result, from its row.
SlotKind result_kind(wasm::Op op) {
    const char* signature = wasm::op_info(op).signature;
    while (*signature != '>') signature++;
    return kind_from_letter(signature[1]);
}

}  // namespace

void FunctionTranslator::translate_instr(const Instr& instr) {
    switch (instr.op) {
        case Op::nop: return;
        case Op::unreachable:
            emit(CodeOp::unreachable);
            dead_ = true;
            return;
        case Op::block: open(instr); return;
        case Op::loop: {
            Control& control = open(instr);
            control.start = here();
            add_point(true);
            return;
        }
        case Op::if_: return translate_if(instr);
        case Op::else_: return translate_else();
        case Op::end: return translate_end();
        case Op::try_:
        case Op::try_table: return translate_try(instr);
        case Op::catch_:
        case Op::catch_all: return translate_catch(instr.op, instr.a);
        case Op::delegate: return translate_delegate(instr.a);
        case Op::throw_: {
            const wasm::FuncType& type = module_.types[module_.tags[instr.a].type].func;
            store_all_operands();
            u32 count = u32(type.params.size());
            u32 base = count ? operands_[operands_.size() - count].slot : top_slot_;
            emit(CodeOp::throw_tag, base, words_of(type.params));
            emit_pair(layout_.tags + instr.a);
            dead_ = true;
            return;
        }
        case Op::rethrow: {
            const Control& target = label(instr.a);
            emit(CodeOp::throw_ref, target.base_slot);
            dead_ = true;
            return;
        }
        case Op::throw_ref:
            emit(CodeOp::throw_ref, pop_slot());
            dead_ = true;
            return;
        case Op::br: return branch(instr.a);
        case Op::br_if: return branch_if(pop(), true, label(instr.a));
        case Op::br_table: return br_table(instr);
        case Op::return_:
            return_values();
            dead_ = true;
            return;
        case Op::call:
        case Op::call_indirect:
        case Op::call_ref:
        case Op::return_call:
        case Op::return_call_indirect:
        case Op::return_call_ref: return translate_call(instr);
        case Op::drop: pop(); return;
        case Op::select:
        case Op::select_t: return translate_select(instr);
        case Op::local_get: return push_local(instr.a);
        case Op::local_set: return set_local(instr.a, false);
        case Op::local_tee: return set_local(instr.a, true);
        case Op::global_get:
        case Op::global_set: return translate_global(instr);
        case Op::i32_const: return push_constant(SlotKind::i32, u32(instr.bits));
        case Op::i64_const: return push_constant(SlotKind::i64, instr.bits);
        case Op::f32_const: return push_constant(SlotKind::f32, u32(instr.bits));
        case Op::f64_const: return push_constant(SlotKind::f64, instr.bits);
        case Op::v128_const: {
            u32 at = emit(CodeOp::const_128, top_slot_);
            u64 words[2];
            __builtin_memcpy(words, instr.bytes, 16);
            code.push_back(words[0]);
            code.push_back(words[1]);
            return push_result(at, SlotKind::v128);
        }
        case Op::i8x16_shuffle: {
            u32 right = pop_slot(), left = pop_slot();
            u32 at = emit(CodeOp::i8x16_shuffle, top_slot_, left, right);
            u64 words[2];
            __builtin_memcpy(words, instr.bytes, 16);
            code.push_back(words[0]);
            code.push_back(words[1]);
            return push_result(at, SlotKind::v128);
        }
        // The same bits, or the low half of them: no instruction at all.
        case Op::i32_reinterpret_f32: retype(SlotKind::i32); return;
        case Op::f32_reinterpret_i32: retype(SlotKind::f32); return;
        case Op::i64_reinterpret_f64: retype(SlotKind::i64); return;
        case Op::f64_reinterpret_i64: retype(SlotKind::f64); return;
        case Op::i32_wrap_i64: {
            retype(SlotKind::i32);
            Operand& value = operands_.back();
            value.bits = u32(value.bits);
            top_slot_ = value.slot + 1;
            forget_result();
            return;
        }
        case Op::memory_size:
        case Op::memory_grow:
        case Op::memory_fill:
        case Op::memory_copy:
        case Op::memory_init:
        case Op::data_drop: return translate_memory(instr);
        case Op::table_get:
        case Op::table_set:
        case Op::table_size:
        case Op::table_grow:
        case Op::table_fill:
        case Op::table_copy:
        case Op::table_init:
        case Op::elem_drop: return translate_table(instr);
        case Op::atomic_fence: emit(CodeOp::atomic_fence); return;
        case Op::memory_atomic_notify:
        case Op::memory_atomic_wait32:
        case Op::memory_atomic_wait64: return translate_access(instr);
        default: break;
    }
    switch (operator_of(instr.op).shape) {
        case Shape::other: return translate_reference(instr);
        case Shape::load:
        case Shape::store:
        case Shape::vec_load:
        case Shape::vec_store:
        case Shape::vec_load_lane:
        case Shape::vec_store_lane:
        case Shape::atomic_load:
        case Shape::atomic_store:
        case Shape::atomic_rmw:
        case Shape::atomic_cmpxchg: return translate_access(instr);
        default: return translate_simple(instr);
    }
}

// ---- numbers -----------------------------------------------------------------------

// Emits the form with a constant operand and returns true, or returns false if there is none.
bool FunctionTranslator::translate_with_constant(CodeOp op, SlotKind kind, Operand left,
                                                 Operand right) {
    bool is_64 = words_of(left.kind) == 2;
    if (left.place == Operand::constant && right.place != Operand::constant &&
        swapped(op) != CodeOp::count) {
        std::swap(left, right);
        op = swapped(op);
    }
    if (right.place != Operand::constant) return false;
    s64 value = is_64 ? s64(right.bits) : s32(right.bits);
    if (op == CodeOp::i32_sub || op == CodeOp::i64_sub) {
        op = is_64 ? CodeOp::i64_add : CodeOp::i32_add;
        value = s64(0 - u64(value));
    }
    if (value != s16(value)) return false;
    u32 slot = slot_of(left);
    u32 at = emit(with_constant(op), top_slot_, slot, u32(value));
    push_result(at, kind);
    return true;
}

void FunctionTranslator::translate_simple(const Instr& instr) {
    auto [op, shape] = operator_of(instr.op);
    SlotKind kind = result_kind(instr.op);
    switch (shape) {
        case Shape::unary: {
            u32 value = pop_slot();
            return push_result(emit(op, top_slot_, value), kind);
        }
        case Shape::ternary: {
            u32 third = pop_slot(), second = pop_slot(), first = pop_slot();
            u32 at = emit(op, top_slot_, first, second);
            code.push_back(code_word(CodeOp(0), third));
            return push_result(at, kind);
        }
        case Shape::lane_get: {
            u32 vector = pop_slot();
            return push_result(emit(op, top_slot_, vector, instr.lane), kind);
        }
        case Shape::lane_set: {
            u32 value = pop_slot(), vector = pop_slot();
            u32 at = emit(op, top_slot_, vector, value);
            code.push_back(code_word(CodeOp(0), instr.lane));
            return push_result(at, kind);
        }
        default: break;
    }
    Operand right = pop(), left = pop();
    bool folds = shape == Shape::binary_int || shape == Shape::compare_int ||
                 op == CodeOp::i32_sub || op == CodeOp::i64_sub;
    if (folds && translate_with_constant(op, kind, left, right)) return;
    u32 left_slot = slot_of(left), right_slot = slot_of(right);
    push_result(emit(op, top_slot_, left_slot, right_slot), kind);
}

// ---- memory ------------------------------------------------------------------------

void FunctionTranslator::translate_access(const Instr& instr) {
    auto [op, shape] = operator_of(instr.op);
    SlotKind kind = result_kind(instr.op);
    u32 is_64 = memory_is_64(instr.a), memory = layout_.memories + instr.a;
    bool is_plain = instr.a == 0 && !is_64 && (shape == Shape::load || shape == Shape::store);
    // Operands above the address.
    u32 value = 0, second = 0, extra = instr.lane;
    switch (shape) {
        case Shape::store:
        case Shape::vec_store:
        case Shape::vec_store_lane:
        case Shape::atomic_store: value = pop_slot(); break;
        case Shape::vec_load_lane: extra |= pop_slot() << 16; break;
        case Shape::atomic_rmw: extra = pop_slot(); break;
        case Shape::atomic_cmpxchg:
            second = pop_slot();
            extra = pop_slot() | second << 16;
            break;
        case Shape::other:  // wait and notify
            if (instr.op == Op::memory_atomic_notify) {
                op = CodeOp::memory_atomic_notify;
                extra = pop_slot();
            } else {
                op = instr.op == Op::memory_atomic_wait32 ? CodeOp::memory_atomic_wait32
                                                          : CodeOp::memory_atomic_wait64;
                second = pop_slot();
                extra = pop_slot() | second << 16;
            }
            break;
        default: break;
    }
    u32 address = pop_slot();
    bool has_result = shape != Shape::store && shape != Shape::vec_store &&
                      shape != Shape::vec_store_lane && shape != Shape::atomic_store;
    u32 a = has_result ? top_slot_ : value, at;
    if (is_plain && instr.bits < 0x10000) {
        at = emit(op, a, address, u32(instr.bits));
    } else if (is_plain) {
        at = emit(with_wide_offset(op), a, address);
        emit_pair(u32(instr.bits));
    } else {
        if (shape == Shape::load || shape == Shape::store) op = general_form(op);
        at = emit(op, a, address, is_64);
        emit_pair(memory, extra);
        code.push_back(instr.bits);
    }
    if (has_result) push_result(at, kind);
}

void FunctionTranslator::translate_memory(const Instr& instr) {
    u32 memory = layout_.memories + instr.a;
    bool is_64 = instr.op != Op::data_drop && instr.op != Op::memory_init && memory_is_64(instr.a);
    SlotKind kind = is_64 ? SlotKind::i64 : SlotKind::i32;
    switch (instr.op) {
        case Op::memory_size: {
            // Another thread may have grown a shared memory since its size was read.
            bool is_shared = module_.memories[instr.a].limits.is_shared;
            if (instr.a == 0 && !is_64 && !is_shared)
                return push_result(emit(CodeOp::memory_size, top_slot_), kind);
            u32 at = emit(CodeOp::memory_size_x, top_slot_, 0, is_64);
            emit_pair(memory);
            return push_result(at, kind);
        }
        case Op::memory_grow: {
            u32 delta = pop_slot();
            u32 at = emit(CodeOp::memory_grow, top_slot_, delta, is_64);
            emit_pair(memory);
            return push_result(at, kind);
        }
        case Op::memory_fill: {
            u32 count = pop_own_slot(), value = pop_slot(), to = pop_own_slot();
            emit(CodeOp::memory_fill, to, value, count);
            emit_pair(memory, is_64 ? width_to_64 | width_count_64 : 0);
            return;
        }
        case Op::memory_copy: {
            bool from_64 = memory_is_64(instr.b);
            u32 count = pop_own_slot(), from = pop_own_slot(), to = pop_own_slot();
            emit(CodeOp::memory_copy, to, from, count);
            emit_pair(memory, layout_.memories + instr.b);
            emit_pair((is_64 ? width_to_64 : 0) | (from_64 ? width_from_64 : 0) |
                      (is_64 && from_64 ? width_count_64 : 0));
            return;
        }
        case Op::memory_init: {
            u32 count = pop_own_slot(), from = pop_own_slot(), to = pop_own_slot();
            emit(CodeOp::memory_init, to, from, count);
            emit_pair(layout_.memories + instr.b, instr.a);
            emit_pair(memory_is_64(instr.b) ? width_to_64 : 0);
            return;
        }
        default: emit_imm(CodeOp::data_drop, 0, instr.a); return;
    }
}

// ---- tables ------------------------------------------------------------------------

void FunctionTranslator::translate_table(const Instr& instr) {
    u32 table = layout_.tables + instr.a;
    bool has_table = instr.op != Op::elem_drop && instr.op != Op::table_init;
    u32 is_64 = has_table && table_is_64(instr.a);
    SlotKind kind = is_64 ? SlotKind::i64 : SlotKind::i32;
    switch (instr.op) {
        case Op::table_get: {
            u32 index = pop_slot();
            u32 at = emit(CodeOp::table_get, top_slot_, index, is_64);
            emit_pair(table);
            return push_result(at, SlotKind::ref);
        }
        case Op::table_set: {
            u32 value = pop_slot(), index = pop_slot();
            emit(CodeOp::table_set, value, index, is_64);
            emit_pair(table);
            return;
        }
        case Op::table_size: {
            u32 at = emit(CodeOp::table_size, top_slot_, 0, is_64);
            emit_pair(table);
            return push_result(at, kind);
        }
        case Op::table_grow: {
            u32 delta = pop_slot(), value = pop_slot();
            u32 at = emit(CodeOp::table_grow, top_slot_, value, delta);
            emit_pair(table, is_64);
            return push_result(at, kind);
        }
        case Op::table_fill: {
            u32 count = pop_own_slot(), value = pop_slot(), to = pop_own_slot();
            emit(CodeOp::table_fill, to, value, count);
            emit_pair(table, is_64 ? width_to_64 | width_count_64 : 0);
            return;
        }
        case Op::table_copy: {
            bool from_64 = table_is_64(instr.b);
            u32 count = pop_own_slot(), from = pop_own_slot(), to = pop_own_slot();
            emit(CodeOp::table_copy, to, from, count);
            emit_pair(table, layout_.tables + instr.b);
            emit_pair((is_64 ? width_to_64 : 0) | (from_64 ? width_from_64 : 0) |
                      (is_64 && from_64 ? width_count_64 : 0));
            return;
        }
        case Op::table_init: {
            u32 count = pop_own_slot(), from = pop_own_slot(), to = pop_own_slot();
            emit(CodeOp::table_init, to, from, count);
            emit_pair(layout_.tables + instr.b, instr.a);
            emit_pair(table_is_64(instr.b) ? width_to_64 : 0);
            return;
        }
        default: emit_imm(CodeOp::elem_drop, 0, instr.a); return;
    }
}

// ---- variables ---------------------------------------------------------------------

void FunctionTranslator::translate_global(const Instr& instr) {
    SlotKind kind = slot_kind(module_.globals[instr.a].type.type);
    u32 words = words_of(kind);
    bool is_get = instr.op == Op::global_get;
    u32 slot = is_get ? top_slot_ : pop_slot(), at;
    if (instr.a < module_.imported_globals) {
        at = emit(is_get ? CodeOp::global_get_imported : CodeOp::global_set_imported, slot, words);
        emit_pair(layout_.imported_globals + instr.a);
    } else {
        static constexpr CodeOp gets[] = {CodeOp::global_get_32, CodeOp::global_get_64,
                                          CodeOp::global_get_128};
        static constexpr CodeOp sets[] = {CodeOp::global_set_32, CodeOp::global_set_64,
                                          CodeOp::global_set_128};
        at = emit_imm((is_get ? gets : sets)[words / 2], slot, layout_.globals[instr.a]);
    }
    if (is_get) push_result(at, kind);
}

void FunctionTranslator::translate_select(const Instr&) {
    u32 condition = pop_slot();
    Operand otherwise = pop(), then = pop();
    u32 else_slot = slot_of(otherwise), then_slot = slot_of(then);
    static constexpr CodeOp ops[] = {CodeOp::select_32, CodeOp::select_64, CodeOp::select_128};
    u32 at = emit(ops[words_of(then.kind) / 2], top_slot_, then_slot, else_slot);
    code.push_back(code_word(CodeOp(0), condition));
    push_result(at, then.kind);
}

}  // namespace gpurun::translate
