// Decodes bytes to a Module, with a method for each section. What a section says about earlier ones
// is checked on the way, constant expressions included; validate_bodies() checks function bodies.
// The first failure ends the work.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "wasm/failure.h"
#include "wasm/module.h"
#include "wasm/reader.h"
#include "wasm/validate.h"

namespace gpurun::wasm {

class Decoder {
public:
    explicit Decoder(Bytes bytes);

    bool decode();  // all but the bodies; false: see failure()
    const Failure& failure() const { return *failure_; }
    const std::shared_ptr<Module>& module() const { return module_; }
    bool has_data_count() const { return data_count_.has_value(); }

private:
    // Sections, in decode_types.cpp and decode_sections.cpp.
    void section(u8 id);
    void type_section();
    void import_section();
    void function_section();
    void table_section();
    void memory_section();
    void tag_section();
    void global_section();
    void export_section();
    void start_section();
    void elem_section();
    void data_count_section();
    void code_section();
    void data_section();
    void custom_section();

    // Types.
    void rec_group();
    SubType sub_type(u32 index);
    void comp_type(SubType& type);
    void check_super(u32 index, u32 offset);
    FieldType field_type();
    ValType storage_type();
    ValType val_type();
    ValType ref_type();
    u32 heap_type(s64 heap, u32 offset);
    ValType type_of_code(s64 code, s64 heap, bool nullable, u32 offset);
    void val_types(std::vector<ValType>& types, u32 limit, const char* what);
    u32 func_type_id(const char* what);
    bool mutability();

    Limits limits(u8 allowed_flags);
    TableType table_type();
    MemoryType memory_type();
    GlobalType global_type();
    u32 tag_type();
    ConstExpr const_expr(ValType type, u32 visible_globals);
    void elem(Elem& segment, u32 flags, u32 start);
    void elem_items(Elem& segment, bool are_exprs);
    std::string name();
    void body(Func& func);
    void check_sizes();

    // count() reads a vector's count and checks it against `limit` and the bytes that are left.
    // room() returns for how many of n entries of so many bytes memory may be reserved.
    u32 count(const char* what, u32 limit);
    u32 room(u32 n, u32 entry_bytes) const { return std::min(n, in_.left() / entry_bytes + 1); }
    u32 index(const char* what, usize size);
    void check_index(const char* what, usize index, usize size, u32 offset);

    // Both record the first failure and stop the reader.
    [[gnu::cold, gnu::format(printf, 3, 4)]] void malformed(u32 offset, const char* pattern, ...);
    [[gnu::cold, gnu::format(printf, 3, 4)]] void invalid(u32 offset, const char* pattern, ...);
    void fail(Failure failure);

    std::shared_ptr<Module> module_;
    Module& m_;
    BinaryReader in_;
    Validator validator_;
    std::optional<Failure> failure_;
    std::optional<u32> data_count_;
    u32 bodies_ = 0;  // that the code section has
    // While a recursion group is read: the type indices it will get.
    u32 group_begin_ = 0, group_end_ = 0;
};

// Reads custom sections. They never make a module fail: what cannot be read is left out.
void read_custom_sections(Module& module);  // decode_custom.cpp

}  // namespace gpurun::wasm
