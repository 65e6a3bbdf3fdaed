// Checks instructions of memories, tables and segments.
#include "wasm/validate.h"

namespace gpurun::wasm {

const Table* Validator::table(u32 index) {
    if (index < module_.tables.size()) return &module_.tables[index];
    unknown("table", index, module_.tables.size());
    return nullptr;
}

const MemoryType* Validator::memory(u32 index) {
    if (index < module_.memories.size()) return &module_.memories[index];
    unknown("memory", index, module_.memories.size());
    return nullptr;
}

const Elem* Validator::elem(u32 index) {
    if (index < module_.elems.size()) return &module_.elems[index];
    unknown("elem segment", index, module_.elems.size());
    return nullptr;
}

bool Validator::check_data(u32 index) {
    if (index >= module_.data.size())
        unknown("data segment", index, module_.data.size());
    else if (!has_data_count_)
        malformed("data count section required by %s", op_name());
    else
        return true;
    return false;
}

void Validator::memory_op() {
    if (instr_.op == Op::data_drop) {
        check_data(instr_.a);
        return;
    }
    bool is_init = instr_.op == Op::memory_init;
    const MemoryType* type = memory(is_init ? instr_.b : instr_.a);
    if (!type || (is_init && !check_data(instr_.a))) return;
    const ValType address = address_type(type->limits);
    switch (instr_.op) {
        case Op::memory_size: return push(address);
        case Op::memory_grow: pop(address); return push(address);
        case Op::memory_fill:
            pop(address);
            pop(ValType::i32);
            return pop(address);
        case Op::memory_init:
            pop(ValType::i32);
            pop(ValType::i32);
            return pop(address);
        default: {  // memory.copy: the length is as narrow as the narrower of the two
            const MemoryType* source = memory(instr_.b);
            if (!source) return;
            bool both_64 = type->limits.is_64 && source->limits.is_64;
            pop(both_64 ? ValType::i64 : ValType::i32);
            pop(address_type(source->limits));
            return pop(address);
        }
    }
}

void Validator::table_op() {
    if (instr_.op == Op::elem_drop) {
        elem(instr_.a);
        return;
    }
    bool is_init = instr_.op == Op::table_init;
    const Table* target = table(is_init ? instr_.b : instr_.a);
    const Elem* segment = target && is_init ? elem(instr_.a) : nullptr;
    if (!target || (is_init && !segment)) return;
    const ValType address = address_type(target->type.limits), element = target->type.element;
    switch (instr_.op) {
        case Op::table_get: pop(address); return push(element);
        case Op::table_set: pop(element); return pop(address);
        case Op::table_size: return push(address);
        case Op::table_grow:
            pop(address);
            pop(element);
            return push(address);
        case Op::table_fill:
            pop(address);
            pop(element);
            return pop(address);
        case Op::table_init:
            if (!matches(segment->type, element))
                return mismatch("elements of " + module_.types.name(element),
                                module_.types.name(segment->type));
            pop(ValType::i32);
            pop(ValType::i32);
            return pop(address);
        default: {  // table.copy
            const Table* source = table(instr_.b);
            if (!source) return;
            if (!matches(source->type.element, element))
                return mismatch("elements of " + module_.types.name(element),
                                module_.types.name(source->type.element));
            bool both_64 = target->type.limits.is_64 && source->type.limits.is_64;
            pop(both_64 ? ValType::i64 : ValType::i32);
            pop(address_type(source->type.limits));
            return pop(address);
        }
    }
}

}  // namespace gpurun::wasm
