// Value types, and the table that gives equal recursive types equal ids.
#pragma once

#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/ints.h"

namespace gpurun::wasm {

// Abstract heap types. Concrete ones are numbers below `first_abstract`: ids of a TypeTable.
enum class Heap : u32 {
    first_abstract = 0xffff00,
    any = first_abstract,
    eq,
    i31,
    struct_,
    array,
    none,  // the hierarchy of any
    func,
    nofunc,
    extern_,
    noextern,
    exn,
    noexn,
};

// A value type in one comparable word. Packed storage types (i8, i16) exist only in fields.
class ValType {
public:
    enum Kind : u32 { unknown, i32, i64, f32, f64, v128, i8, i16 };

    constexpr ValType() = default;
    constexpr ValType(Kind kind) : bits_(kind) {}
    static constexpr ValType ref(u32 heap, bool nullable) {
        return ValType(ref_bit | (nullable ? null_bit : 0) | heap, 0);
    }
    static constexpr ValType ref(Heap heap, bool nullable) { return ref(u32(heap), nullable); }

    constexpr bool is_ref() const { return bits_ & ref_bit; }
    constexpr bool is_nullable() const { return bits_ & null_bit; }
    constexpr bool is_num_or_vec() const { return !is_ref() && bits_ != unknown; }
    constexpr bool is_packed() const { return bits_ == i8 || bits_ == i16; }
    constexpr Kind kind() const { return Kind(bits_); }  // only where !is_ref()
    constexpr u32 heap() const { return bits_ & heap_mask; }
    constexpr bool is_concrete() const { return is_ref() && heap() < u32(Heap::first_abstract); }
    constexpr bool is_defaultable() const { return !is_ref() || is_nullable(); }
    constexpr ValType with_null(bool nullable) const { return ref(heap(), nullable); }
    constexpr ValType unpacked() const { return is_packed() ? ValType(i32) : *this; }
    constexpr u32 bits() const { return bits_; }

    friend constexpr bool operator==(ValType a, ValType b) = default;

private:
    static constexpr u32 ref_bit = 1u << 31, null_bit = 1u << 30, heap_mask = 0xffffff;
    constexpr ValType(u32 bits, int) : bits_(bits) {}

    u32 bits_ = unknown;
};

struct FieldType {
    ValType type;
    bool is_mutable = false;
    friend bool operator==(const FieldType&, const FieldType&) = default;
};

struct FuncType {
    std::vector<ValType> params, results;
    friend bool operator==(const FuncType&, const FuncType&) = default;
};

enum class TypeKind : u8 { func, struct_, array };

// A defined type. `func` is used by functions; `fields` by structs (any number) and arrays (one).
struct SubType {
    static constexpr u32 no_super = ~u32{0};

    TypeKind kind = TypeKind::func;
    bool is_final = true;
    u32 super = no_super;
    FuncType func;
    std::vector<FieldType> fields;
};

// Interns recursion groups: equal groups get equal ids, so that types compare by number.
// A module has one table (its types under ids of its own); a store has one for all of its
// modules. References inside a group being added are written as `group_ref | index`.
class TypeTable {
public:
    static constexpr u32 group_ref = 0x800000;  // heap value: member of the group being added

    // Returns the id of the group's first member; the rest follow. All other references and
    // `super` (group_ref form allowed) must be ids of this table.
    u32 add_group(std::span<const SubType> group);

    const SubType& operator[](u32 id) const { return types_[id].type; }
    u32 size() const { return u32(types_.size()); }
    u32 depth(u32 id) const { return types_[id].depth; }  // number of proper supertypes
    u32 group_start(u32 id) const { return types_[id].group_start; }
    u32 group_size(u32 id) const { return types_[id].group_size; }

    bool is_subtype(u32 sub, u32 super) const;
    bool heap_matches(u32 sub, u32 super) const;  // heap types, abstract or concrete
    bool matches(ValType sub, ValType super) const;
    bool matches(const FieldType& sub, const FieldType& super) const;
    bool matches(const FuncType& sub, const FuncType& super) const;
    Heap top(u32 heap) const;  // any, func, extern_ or exn

    std::string name(ValType type) const;   // "i32", "(ref null 3)", "funcref"
    std::string heap_name(u32 heap) const;  // "func", "3"

private:
    struct Entry {
        SubType type;
        u32 depth = 0, group_start = 0, group_size = 0;
    };
    std::vector<Entry> types_;
    std::unordered_map<std::string, u32> groups_;  // serialised group -> first id
};

}  // namespace gpurun::wasm
