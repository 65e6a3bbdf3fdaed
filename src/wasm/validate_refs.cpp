// Checks instructions of references, casts, structs and arrays.
#include "wasm/limits.h"
#include "wasm/validate.h"

namespace gpurun::wasm {

bool Validator::heap(s64 c, u32& out) {
    if (c < 0) {
        out = u32(abstract_heap(c));
        return true;
    }
    if (u64(c) >= module_.type_ids.size()) {
        unknown("type", usize(c), module_.type_ids.size());
        return false;
    }
    out = module_.type_ids[usize(c)];
    return true;
}

bool Validator::val_type(s64 c, s64 heap_code, bool nullable, ValType& out) {
    switch (c) {
        case code::i32: out = ValType::i32; return true;
        case code::i64: out = ValType::i64; return true;
        case code::f32: out = ValType::f32; return true;
        case code::f64: out = ValType::f64; return true;
        case code::v128: out = ValType::v128; return true;
        case block_long_ref: {
            u32 h = 0;
            if (!heap(heap_code, h)) return false;
            out = ValType::ref(h, nullable);
            return true;
        }
        default: out = ValType::ref(abstract_heap(c), true); return true;
    }
}

const SubType* Validator::defined(u32 index, TypeKind kind) {
    if (index >= module_.type_ids.size()) {
        unknown("type", index, module_.type_ids.size());
        return nullptr;
    }
    const SubType& type = module_.types[module_.type_ids[index]];
    if (type.kind == kind) return &type;
    const char* kinds[] = {"a function", "a struct", "an array"};
    invalid("type mismatch: unknown type: %s expects %s type, type %u is %s type", op_name(),
            kinds[u32(kind)], index, kinds[u32(type.kind)]);
    return nullptr;
}

void Validator::ref_op() {
    const ValType eqref = ValType::ref(Heap::eq, true);
    switch (instr_.op) {
        case Op::ref_null: {
            u32 h = 0;
            if (heap(instr_.heap, h)) push(ValType::ref(h, true));
            return;
        }
        case Op::ref_is_null: pop_ref(); return push(ValType::i32);
        case Op::ref_func: return ref_func();
        case Op::ref_eq:
            pop(eqref);
            pop(eqref);
            return push(ValType::i32);
        case Op::ref_as_non_null: return push(pop_ref().with_null(false));
        case Op::br_on_null: return br_on_null();
        case Op::br_on_non_null: return br_on_non_null();
        case Op::br_on_cast: return br_on_cast(false);
        case Op::br_on_cast_fail: return br_on_cast(true);
        case Op::ref_test: return cast(false, true);
        case Op::ref_test_null: return cast(true, true);
        case Op::ref_cast: return cast(false, false);
        case Op::ref_cast_null: return cast(true, false);
        case Op::any_convert_extern: return convert(Heap::extern_, Heap::any);
        case Op::extern_convert_any: return convert(Heap::any, Heap::extern_);
        case Op::ref_i31: pop(ValType::i32); return push(ValType::ref(Heap::i31, false));
        default:  // i31.get_s, i31.get_u
            pop(ValType::ref(Heap::i31, true));
            return push(ValType::i32);
    }
}

void Validator::ref_func() {
    if (instr_.a >= module_.funcs.size())
        return unknown("function", instr_.a, module_.funcs.size());
    const Func& func = module_.funcs[instr_.a];
    if (is_const_)
        declared_->push_back(instr_.a);
    else if (!func.is_declared)
        return invalid("undeclared function reference: function %u", instr_.a);
    push(ValType::ref(func.type, false));
}

void Validator::br_on_null() {
    ValType type = pop_ref();
    const Frame* target = label(instr_.a);
    if (!target) return;
    check_top(target->label());
    push(type.with_null(false));
}

void Validator::br_on_non_null() {
    ValType type = pop_ref();
    const Frame* target = label(instr_.a);
    if (!target) return;
    std::span<const ValType> types = target->label();
    if (types.empty() || !matches(type.with_null(false), types.back()))
        return mismatch("a label that ends in " + module_.types.name(type.with_null(false)),
                        names(types));
    check_top(types.first(types.size() - 1));
}

// Checks a branch on a cast: one side gets the target type, the other the rest of the source type.
void Validator::br_on_cast(bool is_fail) {
    u32 source_heap = 0, target_heap = 0;
    if (!heap(instr_.heap, source_heap) || !heap(instr_.heap2, target_heap)) return;
    ValType source = ValType::ref(source_heap, instr_.b & 1);
    ValType target = ValType::ref(target_heap, instr_.b & 2);
    if (!matches(target, source))
        return mismatch("a subtype of " + module_.types.name(source), module_.types.name(target));
    ValType rest = source.with_null(source.is_nullable() && !target.is_nullable());

    const Frame* to = label(instr_.a);
    if (!to) return;
    std::span<const ValType> types = to->label();
    ValType sent = is_fail ? rest : target;
    if (types.empty() || !matches(sent, types.back()))
        return mismatch("a label that ends in " + module_.types.name(sent), names(types));
    pop(source);
    check_top(types.first(types.size() - 1));
    push(is_fail ? target : rest);
}

void Validator::cast(bool nullable, bool is_test) {
    u32 h = 0;
    if (!heap(instr_.heap, h)) return;
    pop(ValType::ref(module_.types.top(h), true));
    push(is_test ? ValType(ValType::i32) : ValType::ref(h, nullable));
}

void Validator::convert(Heap from, Heap to) {
    ValType type = pop_ref();
    if (!matches(type, ValType::ref(from, true)))
        return mismatch(module_.types.name(ValType::ref(from, true)), module_.types.name(type));
    push(ValType::ref(to, type.is_nullable()));
}

bool Validator::check_packing(ValType type, bool is_plain, const char* what) {
    if (type.is_packed() != is_plain) return true;
    invalid("type mismatch: %s: %s is %s, it has type %s", op_name(), what,
            is_plain ? "packed" : "unpacked", module_.types.name(type).c_str());
    return false;
}

void Validator::struct_op() {
    const SubType* type = defined(instr_.a, TypeKind::struct_);
    if (!type) return;
    if (instr_.op == Op::struct_new) {
        for (usize i = type->fields.size(); i-- > 0;) pop(type->fields[i].type.unpacked());
        return push(ref_to(instr_.a, false));
    }
    if (instr_.op == Op::struct_new_default) {
        for (const FieldType& field : type->fields)
            if (!field.type.is_defaultable())
                return mismatch("fields with a default", module_.types.name(field.type));
        return push(ref_to(instr_.a, false));
    }
    if (instr_.b >= type->fields.size()) return unknown("field", instr_.b, type->fields.size());
    const FieldType& field = type->fields[instr_.b];
    if (instr_.op == Op::struct_set) {
        if (!field.is_mutable) return invalid("immutable field: struct.set of field %u", instr_.b);
        pop(field.type.unpacked());
        return pop(ref_to(instr_.a, true));
    }
    if (!check_packing(field.type, instr_.op == Op::struct_get, "the field")) return;
    pop(ref_to(instr_.a, true));
    push(field.type.unpacked());
}

const FieldType* Validator::array_field(u32 index) {
    const SubType* type = defined(index, TypeKind::array);
    return type ? &type->fields[0] : nullptr;
}

void Validator::array_op() {
    if (instr_.op == Op::array_len) {
        pop(ValType::ref(Heap::array, true));
        return push(ValType::i32);
    }
    const FieldType* field = array_field(instr_.a);
    if (!field) return;
    const ValType type = field->type.unpacked();
    switch (instr_.op) {
        case Op::array_new:
            pop(ValType::i32);
            pop(type);
            return push(ref_to(instr_.a, false));
        case Op::array_new_default:
            if (!type.is_defaultable())
                return mismatch("an element with a default", module_.types.name(type));
            pop(ValType::i32);
            return push(ref_to(instr_.a, false));
        case Op::array_new_fixed:
            if (instr_.b > max_array_new_fixed)
                return invalid("too many elements for array.new_fixed: %u, the limit is %u",
                               instr_.b, max_array_new_fixed);
            for (u32 i = 0; i < instr_.b && in_.ok(); i++) pop(type);
            return push(ref_to(instr_.a, false));
        case Op::array_get:
        case Op::array_get_s:
        case Op::array_get_u:
            if (!check_packing(field->type, instr_.op == Op::array_get, "the array")) return;
            pop(ValType::i32);
            pop(ref_to(instr_.a, true));
            return push(type);
        case Op::array_copy: return array_copy();
        default: break;  // array.set, array.fill
    }
    if (!field->is_mutable) return invalid("immutable array: %s of type %u", op_name(), instr_.a);
    if (instr_.op == Op::array_fill) pop(ValType::i32);
    pop(type);
    pop(ValType::i32);
    pop(ref_to(instr_.a, true));
}

void Validator::array_copy() {
    const FieldType* to = array_field(instr_.a);
    const FieldType* from = to ? array_field(instr_.b) : nullptr;
    if (!from) return;
    if (!to->is_mutable) return invalid("immutable array: array.copy to type %u", instr_.a);
    if (!matches(from->type, to->type))
        return invalid("array types do not match: array.copy expects %s, got %s",
                       module_.types.name(to->type).c_str(),
                       module_.types.name(from->type).c_str());
    pop(ValType::i32);
    pop(ValType::i32);
    pop(ref_to(instr_.b, true));
    pop(ValType::i32);
    pop(ref_to(instr_.a, true));
}

void Validator::array_segment_op() {
    const FieldType* field = array_field(instr_.a);
    if (!field) return;
    const bool is_init = instr_.op == Op::array_init_data || instr_.op == Op::array_init_elem;
    if (is_init && !field->is_mutable)
        return invalid("immutable array: %s of type %u", op_name(), instr_.a);
    if (instr_.op == Op::array_new_data || instr_.op == Op::array_init_data) {
        if (!field->type.is_num_or_vec())
            return invalid("array type is not numeric or vector: %s got an array of %s", op_name(),
                           module_.types.name(field->type).c_str());
        if (!check_data(instr_.b)) return;
    } else {
        const Elem* segment = elem(instr_.b);
        if (!segment) return;
        if (!matches(segment->type, field->type))
            return mismatch("elements of " + module_.types.name(field->type),
                            module_.types.name(segment->type));
    }
    pop(ValType::i32);
    pop(ValType::i32);
    if (is_init) {
        pop(ValType::i32);
        return pop(ref_to(instr_.a, true));
    }
    push(ref_to(instr_.a, false));
}

}  // namespace gpurun::wasm
