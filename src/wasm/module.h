// A decoded, validated module. Immutable: everything below only describes it.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ints.h"
#include "base/result.h"
#include "wasm/types.h"

namespace gpurun::wasm {

using Bytes = std::vector<u8>;

// A constant expression: a range of the module's bytes, `end` included.
struct ConstExpr {
    u32 begin = 0, end = 0;
    bool empty() const { return begin == end; }
};

struct Limits {
    u64 min = 0;
    std::optional<u64> max;
    bool is_64 = false;
    bool is_shared = false;
};

struct TableType {
    Limits limits;
    ValType element;
};

struct MemoryType {
    Limits limits;  // in pages of 64 KiB
};

struct GlobalType {
    ValType type;
    bool is_mutable = false;
};

enum class ExternKind : u8 { func, table, memory, global, tag };
const char* to_string(ExternKind kind);

struct Import {
    std::string module, name;
    ExternKind kind;
    u32 index;  // in its index space
};

struct Export {
    std::string name;
    ExternKind kind;
    u32 index;
};

struct Func {
    u32 type;                  // id in Module::types
    u32 body = 0;              // first byte of the local declarations; 0 for imports
    u32 code = 0;              // first instruction
    u32 end = 0;               // one past the final `end`
    bool is_declared = false;  // may be named by ref.func in a body
};

struct Table {
    TableType type;
    ConstExpr init;  // empty: null
};

struct Global {
    GlobalType type;
    ConstExpr init;  // empty for imports
};

struct Tag {
    u32 type;  // id in Module::types
};

enum class SegmentMode : u8 { active, passive, declarative };

struct Elem {
    SegmentMode mode;
    u32 table = 0;
    ConstExpr offset;
    ValType type;
    std::vector<ConstExpr> init;  // empty if `funcs` says it all
    std::vector<u32> funcs;       // function indices, the common case
    u32 size() const { return u32(init.empty() ? funcs.size() : init.size()); }
};

struct Data {
    SegmentMode mode;
    u32 memory = 0;
    ConstExpr offset;
    u32 begin = 0, end = 0;  // range of the module's bytes
};

struct CustomSection {
    std::string name;
    u32 begin = 0, end = 0;  // payload after the name
};

struct BranchHint {
    u32 func;
    u32 offset;  // of the branch, relative to Func::body
    bool likely;
};

// From the name section; every list sorted by index.
struct Names {
    std::string module;
    std::vector<std::pair<u32, std::string>> funcs;
    std::vector<std::pair<u32, std::vector<std::pair<u32, std::string>>>> locals;
};

struct Module {
    Bytes bytes;
    TypeTable types;
    std::vector<u32> type_ids;  // type index -> id in `types`

    std::vector<Import> imports;
    std::vector<Func> funcs;  // imports come first in each index space
    std::vector<Table> tables;
    std::vector<MemoryType> memories;
    std::vector<Global> globals;
    std::vector<Tag> tags;
    u32 imported_funcs = 0, imported_tables = 0, imported_memories = 0, imported_globals = 0,
        imported_tags = 0;

    std::vector<Export> exports;
    std::optional<u32> start;
    std::vector<Elem> elems;
    std::vector<Data> data;
    std::vector<CustomSection> customs;
    u32 code_begin = 0;  // of the code section, from where debug information counts
    std::vector<BranchHint> branch_hints;
    Names names;

    const FuncType& func_type(u32 func) const { return types[funcs[func].type].func; }
    const Export* find_export(std::string_view name) const;
    // Returns a function's name from the name section, an export or an import, or "func[7]".
    std::string func_name(u32 func) const;
};

// Why a module could not be decoded or validated. The Error's offset is that of the offending byte.
// `is_malformed` tells a decoding error from a validation error (scripts ask for that).
struct LoadError {
    Error error;
    bool is_malformed;
};
Result<std::shared_ptr<const Module>> load(Bytes bytes);
std::variant<std::shared_ptr<const Module>, LoadError> load_or_explain(Bytes bytes);

}  // namespace gpurun::wasm
