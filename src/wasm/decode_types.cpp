// Decodes the type section, and types in other sections.
#include "wasm/decode.h"
#include "wasm/limits.h"
#include "wasm/read_instr.h"

namespace gpurun::wasm {

namespace {

enum TypeCode : u8 {
    code_rec = 0x4e,
    code_sub_final = 0x4f,
    code_sub = 0x50,
    code_array = 0x5e,
    code_struct = 0x5f,
    code_func = 0x60,
};

}  // namespace

Heap abstract_heap(s64 c) {
    switch (c) {
        case code::noexn: return Heap::noexn;
        case code::nofunc: return Heap::nofunc;
        case code::noextern: return Heap::noextern;
        case code::none: return Heap::none;
        case code::func: return Heap::func;
        case code::extern_: return Heap::extern_;
        case code::any: return Heap::any;
        case code::eq: return Heap::eq;
        case code::i31: return Heap::i31;
        case code::struct_: return Heap::struct_;
        case code::array: return Heap::array;
        default: return Heap::exn;
    }
}

void Decoder::type_section() {
    u32 groups = count("types", max_types);
    for (u32 i = 0; i < groups && in_.ok(); i++) rec_group();
}

void Decoder::rec_group() {
    u32 size = 1;
    u32 offset = in_.position();
    if (in_.peek() == code_rec) {
        in_.byte();
        size = count("types in a recursion group", max_types);
    }
    group_begin_ = u32(m_.type_ids.size());
    group_end_ = group_begin_ + size;
    if (group_end_ > max_types)
        return malformed(offset, "too many types: %u, the limit is %u", group_end_, max_types);

    std::vector<SubType> group;
    std::vector<u32> offsets;
    group.reserve(room(size, 2));
    offsets.reserve(room(size, 2));
    for (u32 i = 0; i < size && in_.ok(); i++) {
        offsets.push_back(in_.position());
        group.push_back(sub_type(group_begin_ + i));
    }
    if (!in_.ok()) return;

    u32 first = m_.types.add_group(group);
    for (u32 i = 0; i < size; i++) m_.type_ids.push_back(first + i);
    for (u32 i = 0; i < size && in_.ok(); i++) check_super(group_begin_ + i, offsets[i]);
    group_begin_ = group_end_ = 0;
}

SubType Decoder::sub_type(u32 index) {
    SubType type;
    u8 form = in_.peek();
    if (form == code_sub || form == code_sub_final) {
        in_.byte();
        type.is_final = form == code_sub_final;
        u32 offset = in_.position();
        u32 supers = count("supertypes", max_types);
        if (supers > 1)
            invalid(offset, "sub type: type %u has %u supertypes, at most 1 is allowed", index,
                    supers);
        if (supers == 1) {
            u32 super = in_.leb_u32();
            if (super >= index)
                invalid(offset + 1, "unknown type %u: a supertype must come before type %u", super,
                        index);
            else if (super >= group_begin_)
                type.super = TypeTable::group_ref | (super - group_begin_);
            else
                type.super = m_.type_ids[super];
        }
    }
    comp_type(type);
    return type;
}

void Decoder::comp_type(SubType& type) {
    u32 offset = in_.position();
    switch (in_.byte()) {
        case code_func:
            type.kind = TypeKind::func;
            val_types(type.func.params, max_params, "parameters");
            val_types(type.func.results, max_results, "results");
            return;
        case code_struct: {
            type.kind = TypeKind::struct_;
            u32 fields = count("fields", max_fields);
            type.fields.reserve(room(fields, 2));
            for (u32 i = 0; i < fields && in_.ok(); i++) type.fields.push_back(field_type());
            return;
        }
        case code_array:
            type.kind = TypeKind::array;
            type.fields.push_back(field_type());
            return;
        default: break;
    }
    if (!in_.ok()) return;
    u8 form = m_.bytes[offset];
    malformed(offset, "%s: malformed type form 0x%02x, expected func, struct or array",
              form & 0x80 ? "integer representation too long" : "unknown type", form);
}

// Checks a supertype: it must be open, of the same kind, and matched by the type that extends it.
void Decoder::check_super(u32 index, u32 offset) {
    const SubType& sub = m_.types[m_.type_ids[index]];
    if (sub.super == SubType::no_super) return;
    const SubType& super = m_.types[sub.super];
    if (m_.types.depth(m_.type_ids[index]) > max_subtype_depth)
        return invalid(offset, "sub type: type %u has more than %u supertypes above it", index,
                       max_subtype_depth);
    if (super.is_final) return invalid(offset, "sub type: type %u extends a final type", index);

    bool does_match = sub.kind == super.kind && sub.fields.size() >= super.fields.size() &&
                      m_.types.matches(sub.func, super.func);
    for (usize i = 0; does_match && i < super.fields.size(); i++)
        does_match = m_.types.matches(sub.fields[i], super.fields[i]);
    if (!does_match) invalid(offset, "sub type: type %u does not match its super type", index);
}

void Decoder::val_types(std::vector<ValType>& types, u32 limit, const char* what) {
    u32 n = count(what, limit);
    types.reserve(n);
    for (u32 i = 0; i < n && in_.ok(); i++) types.push_back(val_type());
}

FieldType Decoder::field_type() {
    ValType type = storage_type();
    return {type, mutability()};
}

bool Decoder::mutability() {
    u32 offset = in_.position();
    u8 flag = in_.byte();
    if (flag > 1) malformed(offset, "malformed mutability: expected 0 or 1, got 0x%02x", flag);
    return flag == 1;
}

ValType Decoder::storage_type() {
    u8 first = in_.peek();
    if (first == (code::i8 & 0x7f) || first == (code::i16 & 0x7f)) {
        in_.byte();
        return first == (code::i8 & 0x7f) ? ValType::i8 : ValType::i16;
    }
    return val_type();
}

ValType Decoder::val_type() {
    u32 offset = in_.position();
    s64 heap = 0;
    bool nullable = false;
    s64 c = read_val_type(in_, heap, nullable);
    return in_.ok() ? type_of_code(c, heap, nullable, offset) : ValType();
}

ValType Decoder::ref_type() {
    u32 offset = in_.position();
    ValType type = val_type();
    if (in_.ok() && !type.is_ref())
        malformed(offset, "malformed reference type: got %s", m_.types.name(type).c_str());
    return type;
}

ValType Decoder::type_of_code(s64 c, s64 heap, bool nullable, u32 offset) {
    switch (c) {
        case code::i32: return ValType::i32;
        case code::i64: return ValType::i64;
        case code::f32: return ValType::f32;
        case code::f64: return ValType::f64;
        case code::v128: return ValType::v128;
        case block_long_ref: return ValType::ref(heap_type(heap, offset), nullable);
        default: return ValType::ref(abstract_heap(c), true);
    }
}

u32 Decoder::heap_type(s64 heap, u32 offset) {
    if (heap < 0) return u32(abstract_heap(heap));
    if (heap >= group_begin_ && heap < group_end_)
        return TypeTable::group_ref | u32(heap - group_begin_);
    check_index("type", usize(heap), m_.type_ids.size(), offset);
    return in_.ok() ? m_.type_ids[usize(heap)] : 0;
}

u32 Decoder::func_type_id(const char* what) {
    u32 offset = in_.position();
    u32 i = index("type", m_.type_ids.size());
    if (!in_.ok()) return 0;
    u32 id = m_.type_ids[i];
    if (m_.types[id].kind != TypeKind::func)
        invalid(offset, "unknown type: %s needs a function type, type %u is none", what, i);
    return id;
}

enum LimitsFlag : u8 { has_max = 1, is_shared = 2, is_64 = 4 };

Limits Decoder::limits(u8 allowed_flags) {
    u32 offset = in_.position();
    u8 flags = in_.byte();
    if (flags & ~allowed_flags) malformed(offset, "malformed limits flags 0x%02x", flags);
    Limits limits;
    limits.is_64 = flags & is_64;
    limits.is_shared = flags & is_shared;
    limits.min = in_.leb_u64();
    if (flags & has_max) limits.max = in_.leb_u64();
    if (limits.max && limits.min > *limits.max)
        invalid(offset, "size minimum must not be greater than maximum: %llu and %llu",
                (unsigned long long)limits.min, (unsigned long long)*limits.max);
    return limits;
}

TableType Decoder::table_type() {
    TableType type;
    type.element = ref_type();
    u32 offset = in_.position();
    type.limits = limits(has_max | is_64);
    u64 largest = type.limits.max.value_or(type.limits.min);
    if (!type.limits.is_64 && largest > 0xffffffff)
        invalid(offset, "table size must be at most 2^32-1, got %llu", (unsigned long long)largest);
    return type;
}

MemoryType Decoder::memory_type() {
    u32 offset = in_.position();
    MemoryType type{limits(has_max | is_shared | is_64)};
    u64 largest = type.limits.max.value_or(type.limits.min);
    u64 pages = type.limits.is_64 ? u64{1} << 48 : u64{1} << 16;
    if (largest > pages)
        invalid(offset, "memory size must be at most %llu pages%s, got %llu",
                (unsigned long long)pages, type.limits.is_64 ? "" : " (4GiB)",
                (unsigned long long)largest);
    if (type.limits.is_shared && !type.limits.max)
        invalid(offset, "shared memory must have maximum");
    return type;
}

GlobalType Decoder::global_type() {
    ValType type = val_type();
    return {type, mutability()};
}

u32 Decoder::tag_type() {
    u32 offset = in_.position();
    u8 attribute = in_.byte();
    if (attribute != 0)
        malformed(offset, "malformed tag attribute: expected 0, got 0x%02x", attribute);
    u32 id = func_type_id("a tag");
    if (in_.ok() && !m_.types[id].func.results.empty())
        invalid(offset, "non-empty tag result type: a tag has no results");
    return id;
}

}  // namespace gpurun::wasm
