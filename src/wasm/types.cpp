// The type table: interning of recursion groups, and the subtype relation. Checks nothing about
// the types it is given; that is the validator's work (decode_types.cpp).
#include "wasm/types.h"

#include "base/check.h"
#include "base/format.h"

namespace gpurun::wasm {

namespace {

constexpr bool is_concrete(u32 heap) { return heap < u32(Heap::first_abstract); }

void append(std::string& key, u32 word) {
    const char bytes[4] = {char(word), char(word >> 8), char(word >> 16), char(word >> 24)};
    key.append(bytes, 4);
}

// Returns a key that is equal for equal groups. References within the group are in group_ref form,
// so the key does not depend on the group's ids.
std::string serialise(std::span<const SubType> group) {
    std::string key;
    for (const SubType& type : group) {
        append(key, u32(type.kind) << 1 | u32(type.is_final));
        append(key, type.super);
        if (type.kind == TypeKind::func) {
            append(key, u32(type.func.params.size()));
            for (ValType param : type.func.params) append(key, param.bits());
            append(key, u32(type.func.results.size()));
            for (ValType result : type.func.results) append(key, result.bits());
        } else {
            append(key, u32(type.fields.size()));
            for (const FieldType& field : type.fields) {
                append(key, field.type.bits());
                append(key, field.is_mutable);
            }
        }
    }
    return key;
}

u32 resolve(u32 heap, u32 first) {
    bool is_member = is_concrete(heap) && (heap & TypeTable::group_ref);
    return is_member ? first + (heap & ~TypeTable::group_ref) : heap;
}

ValType resolve(ValType type, u32 first) {
    return type.is_ref() ? ValType::ref(resolve(type.heap(), first), type.is_nullable()) : type;
}

}  // namespace

u32 TypeTable::add_group(std::span<const SubType> group) {
    u32 first = size();
    auto [found, is_new] = groups_.try_emplace(serialise(group), first);
    if (!is_new) return found->second;
    CHECK(group.size() < group_ref - first);

    for (const SubType& member : group) {
        Entry entry{member, 0, first, u32(group.size())};
        SubType& type = entry.type;
        if (type.super != SubType::no_super) {
            type.super = resolve(type.super, first);
            CHECK(type.super < size());
            entry.depth = depth(type.super) + 1;
        }
        for (ValType& param : type.func.params) param = resolve(param, first);
        for (ValType& result : type.func.results) result = resolve(result, first);
        for (FieldType& field : type.fields) field.type = resolve(field.type, first);
        types_.push_back(std::move(entry));
    }
    return first;
}

bool TypeTable::is_subtype(u32 sub, u32 super) const {
    while (depth(sub) > depth(super)) sub = types_[sub].type.super;
    return sub == super;
}

bool TypeTable::heap_matches(u32 sub, u32 super) const {
    if (sub == super) return true;
    if (is_concrete(super)) {
        if (is_concrete(sub)) return is_subtype(sub, super);
        return Heap(sub) == (types_[super].type.kind == TypeKind::func ? Heap::nofunc : Heap::none);
    }
    if (is_concrete(sub)) {
        switch (types_[sub].type.kind) {
            case TypeKind::func: return Heap(super) == Heap::func;
            case TypeKind::struct_: sub = u32(Heap::struct_); break;
            case TypeKind::array: sub = u32(Heap::array); break;
        }
        if (sub == super) return true;
    }
    switch (Heap(super)) {
        case Heap::any: return Heap(sub) == Heap::eq || heap_matches(sub, u32(Heap::eq));
        case Heap::eq:
            return Heap(sub) == Heap::i31 || Heap(sub) == Heap::struct_ ||
                   Heap(sub) == Heap::array || Heap(sub) == Heap::none;
        case Heap::i31:
        case Heap::struct_:
        case Heap::array: return Heap(sub) == Heap::none;
        case Heap::func: return Heap(sub) == Heap::nofunc;
        case Heap::extern_: return Heap(sub) == Heap::noextern;
        case Heap::exn: return Heap(sub) == Heap::noexn;
        default: return false;
    }
}

bool TypeTable::matches(ValType sub, ValType super) const {
    if (sub == super) return true;
    if (!sub.is_ref() || !super.is_ref()) return false;
    if (sub.is_nullable() && !super.is_nullable()) return false;
    return heap_matches(sub.heap(), super.heap());
}

bool TypeTable::matches(const FieldType& sub, const FieldType& super) const {
    if (sub.is_mutable != super.is_mutable) return false;
    return sub.is_mutable ? sub.type == super.type : matches(sub.type, super.type);
}

bool TypeTable::matches(const FuncType& sub, const FuncType& super) const {
    if (sub.params.size() != super.params.size()) return false;
    if (sub.results.size() != super.results.size()) return false;
    for (usize i = 0; i < sub.params.size(); i++)
        if (!matches(super.params[i], sub.params[i])) return false;
    for (usize i = 0; i < sub.results.size(); i++)
        if (!matches(sub.results[i], super.results[i])) return false;
    return true;
}

Heap TypeTable::top(u32 heap) const {
    if (is_concrete(heap)) return types_[heap].type.kind == TypeKind::func ? Heap::func : Heap::any;
    switch (Heap(heap)) {
        case Heap::func:
        case Heap::nofunc: return Heap::func;
        case Heap::extern_:
        case Heap::noextern: return Heap::extern_;
        case Heap::exn:
        case Heap::noexn: return Heap::exn;
        default: return Heap::any;
    }
}

std::string TypeTable::name(ValType type) const {
    if (!type.is_ref()) {
        switch (type.kind()) {
            case ValType::i32: return "i32";
            case ValType::i64: return "i64";
            case ValType::f32: return "f32";
            case ValType::f64: return "f64";
            case ValType::v128: return "v128";
            case ValType::i8: return "i8";
            case ValType::i16: return "i16";
            case ValType::unknown: return "unknown";
        }
    }
    if (type.is_nullable() && !type.is_concrete()) {
        switch (Heap(type.heap())) {
            case Heap::none: return "nullref";
            case Heap::nofunc: return "nullfuncref";
            case Heap::noextern: return "nullexternref";
            case Heap::noexn: return "nullexnref";
            default: return heap_name(type.heap()) + "ref";
        }
    }
    return (type.is_nullable() ? "(ref null " : "(ref ") + heap_name(type.heap()) + ")";
}

std::string TypeTable::heap_name(u32 heap) const {
    if (is_concrete(heap)) return format("%u", heap);
    switch (Heap(heap)) {
        case Heap::any: return "any";
        case Heap::eq: return "eq";
        case Heap::i31: return "i31";
        case Heap::struct_: return "struct";
        case Heap::array: return "array";
        case Heap::none: return "none";
        case Heap::func: return "func";
        case Heap::nofunc: return "nofunc";
        case Heap::extern_: return "extern";
        case Heap::noextern: return "noextern";
        case Heap::exn: return "exn";
        case Heap::noexn: return "noexn";
    }
    return "bot";  // the validator's own: the heap type of a reference nobody pushed
}

}  // namespace gpurun::wasm
