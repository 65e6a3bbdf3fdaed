// Translates instructions of references, structs and arrays.
#include "abi/layout.h"
#include "translate/function_translator.h"
#include "wasm/read_instr.h"

namespace gpurun::translate {
namespace {

using wasm::ValType;

Storage storage_of(ValType type, bool is_signed) {
    if (type.is_ref()) return Storage::w32;
    switch (type.kind()) {
        case ValType::i8: return is_signed ? Storage::s8 : Storage::u8;
        case ValType::i16: return is_signed ? Storage::s16 : Storage::u16;
        case ValType::i64:
        case ValType::f64: return Storage::w64;
        case ValType::v128: return Storage::w128;
        default: return Storage::w32;
    }
}

}  // namespace

// Returns the word of an object where a field begins; for the field after the last, the object's
// size.
u32 FunctionTranslator::field_word(u32 type_id, u32 field) {
    std::vector<u32>& words = field_words_[type_id];
    if (words.empty()) {
        words.push_back(struct_first_field);
        for (const wasm::FieldType& f : module_.types[type_id].fields)
            words.push_back(words.back() + words_of(f.type.unpacked()));
    }
    return words[field];
}

u32 FunctionTranslator::code_type(s64 heap) const {
    if (heap >= 0) return module_.type_ids[usize(heap)];
    switch (heap) {
        case wasm::code::any: return u32(AbstractType::any);
        case wasm::code::eq: return u32(AbstractType::eq);
        case wasm::code::i31: return u32(AbstractType::i31);
        case wasm::code::struct_: return u32(AbstractType::struct_);
        case wasm::code::array: return u32(AbstractType::array);
        case wasm::code::func: return u32(AbstractType::func);
        case wasm::code::extern_: return u32(AbstractType::extern_);
        case wasm::code::exn: return u32(AbstractType::exn);
        default: return u32(AbstractType::bottom);
    }
}

void FunctionTranslator::ref_func(u32 func) {
    u32 at = func < module_.imported_funcs
                 ? emit_imm(CodeOp::global_get_32, top_slot_, layout_.imported_funcs + func)
                 : emit_imm(CodeOp::ref_func, top_slot_, func);
    push_result(at, SlotKind::ref);
}

void FunctionTranslator::translate_reference(const Instr& instr) {
    switch (instr.op) {
        case Op::ref_null: return push_constant(SlotKind::ref, 0);
        case Op::ref_func: return ref_func(instr.a);
        case Op::ref_is_null: {
            u32 ref = pop_slot();
            return push_result(emit(CodeOp::i32_eqz, top_slot_, ref), SlotKind::i32);
        }
        case Op::ref_eq: {
            u32 right = pop_slot(), left = pop_slot();
            return push_result(emit(CodeOp::i32_eq, top_slot_, left, right), SlotKind::i32);
        }
        case Op::ref_as_non_null: {
            emit(CodeOp::ref_as_non_null, slot_of(operands_.back()));
            return;
        }
        case Op::br_on_null:
        case Op::br_on_non_null: return br_on_null(instr);
        case Op::br_on_cast:
        case Op::br_on_cast_fail: return br_on_cast(instr);
        // Internal and external references have the same representation.
        case Op::any_convert_extern:
        case Op::extern_convert_any: return;
        case Op::ref_i31: {
            u32 value = pop_slot();
            return push_result(emit(CodeOp::ref_i31, top_slot_, value), SlotKind::ref);
        }
        case Op::i31_get_s:
        case Op::i31_get_u: {
            u32 ref = pop_slot();
            CodeOp op = instr.op == Op::i31_get_s ? CodeOp::i31_get_s : CodeOp::i31_get_u;
            return push_result(emit(op, top_slot_, ref), SlotKind::i32);
        }
        case Op::ref_test:
        case Op::ref_test_null: {
            u32 ref = pop_slot();
            u32 at = emit(CodeOp::ref_test, top_slot_, ref, instr.op == Op::ref_test_null);
            emit_pair(code_type(instr.heap));
            return push_result(at, SlotKind::i32);
        }
        case Op::ref_cast:
        case Op::ref_cast_null: {
            u32 slot = slot_of(operands_.back());
            emit(CodeOp::ref_cast, slot, 0, instr.op == Op::ref_cast_null);
            emit_pair(code_type(instr.heap));
            return;
        }
        default: return translate_object(instr);
    }
}

void FunctionTranslator::translate_object(const Instr& instr) {
    const wasm::SubType& type = instr.op == Op::array_len ? module_.types[0] : type_at(instr.a);
    u32 id = instr.op == Op::array_len ? 0 : module_.type_ids[instr.a];
    bool is_array = type.kind == wasm::TypeKind::array;
    bool is_signed = instr.op == Op::struct_get_s || instr.op == Op::array_get_s;
    Storage element = is_array ? storage_of(type.fields[0].type, is_signed) : Storage::w32;
    switch (instr.op) {
        case Op::struct_new: {
            store_top_operands(u32(type.fields.size()));
            drop_to(u32(operands_.size() - type.fields.size()));
            u32 words = field_word(id, u32(type.fields.size())) - struct_first_field;
            u32 at = emit(CodeOp::struct_new, top_slot_, top_slot_, words);
            emit_pair(id);
            return push_result(at, SlotKind::ref);
        }
        case Op::struct_new_default: {
            u32 words = field_word(id, u32(type.fields.size())) - struct_first_field;
            u32 at = emit(CodeOp::struct_new_default, top_slot_, 0, words);
            emit_pair(id);
            return push_result(at, SlotKind::ref);
        }
        case Op::struct_get:
        case Op::struct_get_s:
        case Op::struct_get_u: {
            ValType field = type.fields[instr.b].type;
            u32 ref = pop_slot();
            u32 at = emit(CodeOp::struct_get, top_slot_, ref, u32(storage_of(field, is_signed)));
            emit_pair(field_word(id, instr.b));
            return push_result(at, slot_kind(field));
        }
        case Op::struct_set: {
            u32 value = pop_slot(), ref = pop_slot();
            emit(CodeOp::struct_set, value, ref, u32(storage_of(type.fields[instr.b].type, false)));
            emit_pair(field_word(id, instr.b));
            return;
        }
        case Op::array_new_default: {
            u32 length = pop_slot();
            u32 at = emit(CodeOp::array_new_default, top_slot_, length);
            emit_pair(id, u32(element));
            return push_result(at, SlotKind::ref);
        }
        case Op::array_new_fixed: {
            store_top_operands(instr.b);
            drop_to(u32(operands_.size() - instr.b));
            u32 at = emit(CodeOp::array_new_fixed, top_slot_, top_slot_);
            emit_pair(id, instr.b);
            emit_pair(u32(element));
            return push_result(at, SlotKind::ref);
        }
        case Op::array_new:
        case Op::array_new_data:
        case Op::array_new_elem: return translate_array_new(instr);
        case Op::array_get:
        case Op::array_get_s:
        case Op::array_get_u: {
            u32 index = pop_slot(), ref = pop_slot();
            u32 at = emit(CodeOp::array_get, top_slot_, ref, index);
            emit_pair(u32(element));
            return push_result(at, slot_kind(type.fields[0].type));
        }
        case Op::array_set: {
            u32 value = pop_slot(), index = pop_slot(), ref = pop_slot();
            emit(CodeOp::array_set, value, ref, index);
            emit_pair(u32(element));
            return;
        }
        case Op::array_len: {
            u32 ref = pop_slot();
            return push_result(emit(CodeOp::array_len, top_slot_, ref), SlotKind::i32);
        }
        case Op::array_fill: {
            u32 count = pop_own_slot(), value = pop_slot(), index = pop_own_slot(),
                ref = pop_slot();
            emit(CodeOp::array_fill, ref, index, value);
            code.push_back(code_word(CodeOp(0), count, u32(element)));
            return;
        }
        case Op::array_copy: {
            u32 count = pop_own_slot(), from_index = pop_own_slot(), from = pop_slot();
            u32 index = pop_own_slot(), ref = pop_slot();
            emit(CodeOp::array_copy, ref, index, from);
            code.push_back(code_word(CodeOp(0), from_index, count, u32(element)));
            return;
        }
        default: {  // array.init_data, array.init_elem
            bool is_data = instr.op == Op::array_init_data;
            u32 count = pop_own_slot(), from = pop_own_slot(), index = pop_own_slot(),
                ref = pop_slot();
            emit(is_data ? CodeOp::array_init_data : CodeOp::array_init_elem, ref, index, from);
            code.push_back(code_word(CodeOp(0), count, u32(element)));
            emit_pair(instr.b);
            return;
        }
    }
}

// Emits the allocation of an array, then the operation that fills it, so that the long part runs in
// chunks.
void FunctionTranslator::translate_array_new(const Instr& instr) {
    Storage element = storage_of(type_at(instr.a).fields[0].type, false);
    u32 id = module_.type_ids[instr.a];
    u32 count = pop_own_slot();
    u32 ref = count + 1, index = count + 2;
    note_slot(index + 1);
    u32 operand = instr.op == Op::array_new ? pop_slot() : pop_own_slot();
    if (instr.op == Op::array_new_data) {
        emit(CodeOp::array_check_data, operand, count);
        emit_pair(instr.b, u32(element));
    } else if (instr.op == Op::array_new_elem) {
        emit(CodeOp::array_check_elem, operand, count);
        emit_pair(instr.b);
    }
    emit(CodeOp::array_new_default, ref, count);
    emit_pair(id, u32(element));
    emit_imm(CodeOp::const_32, index, 0);
    if (instr.op == Op::array_new) {
        emit(CodeOp::array_fill, ref, index, operand);
        code.push_back(code_word(CodeOp(0), count, u32(element)));
    } else {
        bool is_data = instr.op == Op::array_new_data;
        emit(is_data ? CodeOp::array_init_data : CodeOp::array_init_elem, ref, index, operand);
        code.push_back(code_word(CodeOp(0), count, u32(element)));
        emit_pair(instr.b);
    }
    u32 at = emit(CodeOp::copy_32, top_slot_, ref);
    push_result(at, SlotKind::ref);
}

}  // namespace gpurun::translate
