// Instructions as the opcode table knows them, and the reader that splits a body into them.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/ints.h"

namespace gpurun::wasm {

enum class Op : u16 {
#define OP(prefix, code, name, text, imm, sig) name,
#include "wasm/opcodes.def"
#undef OP
    count,
    invalid = count,
};

// What follows the opcode. The fields of Instr that it fills are named beside it.
enum class Imm : u8 {
    none,
    zero,      // one zero byte (atomic.fence)
    block,     // block_type
    label,     // a = depth
    br_table,  // list of count labels, then a = default
    func,
    local,
    global,
    table,
    type,
    tag,
    data,
    elem,           // a = index
    type_table,     // a = type, b = table
    memory,         // a = memory
    memory_memory,  // a = destination, b = source
    data_memory,    // a = data segment, b = memory
    elem_table,     // a = elem segment, b = table
    table_table,    // a = destination, b = source
    type_field,     // a = type, b = field
    type_count,     // a = type, b = count
    type_data,      // a = type, b = data segment
    type_elem,      // a = type, b = elem segment
    type_type,      // a = destination type, b = source type
    heap_type,      // heap
    br_cast,        // b = flags (1: source nullable, 2: target nullable), a = depth,
                    // heap = source, heap2 = target
    select_t,       // list of count value types
    try_table,      // block_type, then list of count catch clauses
    i32,
    i64,
    f32,
    f64,  // bits
    v128,
    shuffle,  // bytes
    lane2,
    lane4,
    lane8,
    lane16,  // lane
    mem0,
    mem1,
    mem2,
    mem3,
    mem4,  // align, a = memory, bits = offset
    amem0,
    amem1,
    amem2,
    amem3,  // the same, alignment exactly natural
    lmem0,
    lmem1,
    lmem2,
    lmem3,  // the same, then lane
};

struct OpInfo {
    u8 prefix;
    u16 code;
    Imm imm;
    const char* text;
    const char* signature;
};

const OpInfo& op_info(Op op);
Op op_from_code(u8 prefix, u32 code);  // Op::invalid if there is none

constexpr bool is_memarg(Imm imm) { return imm >= Imm::mem0; }
constexpr u32 natural_align(Imm imm) {
    return imm >= Imm::lmem0   ? u32(imm) - u32(Imm::lmem0)
           : imm >= Imm::amem0 ? u32(imm) - u32(Imm::amem0)
                               : u32(imm) - u32(Imm::mem0);
}

// Block types and heap types as the bytes have them: non-negative = type *index* of the
// module; negative = the one-byte code, sign-extended (-0x40 empty, -0x01 i32, -0x10 func, …).
// A block type that is a long-form reference, (ref null? ht), is `block_long_ref`: then
// heap holds its heap type and b is 1 if it is nullable.
inline constexpr s64 block_empty = -0x40;
inline constexpr s64 block_long_ref = -0x1000;

struct Instr {
    Op op = Op::nop;
    Imm imm = Imm::none;
    u32 offset = 0;  // of the opcode, in the module's bytes
    u32 a = 0, b = 0;
    u32 count = 0;  // entries of the list
    u32 list = 0;   // where the list's first entry starts, in the module's bytes
    u32 align = 0;
    u8 lane = 0;
    s64 block_type = 0;
    s64 heap = 0, heap2 = 0;
    u64 bits = 0;
    u8 bytes[16] = {};
};

// Reads instructions one after another from bytes[position, end). Never reads outside; a
// malformed instruction ends the reading with `error` set. Lists are skipped over but checked
// for form; re-read them with the list readers below.
class InstrReader {
public:
    InstrReader(std::span<const u8> module_bytes, u32 begin, u32 end)
        : bytes_(module_bytes.data()), position_(begin), end_(end) {}

    bool next(Instr& instr);  // false at the end or on an error
    u32 position() const { return position_; }
    const char* error() const { return error_; }  // nullptr if none; the suite's wording
    u32 error_offset() const { return error_offset_; }

private:
    friend class ListReader;
    const u8* bytes_;
    u32 position_, end_;
    const char* error_ = nullptr;
    u32 error_offset_ = 0;
};

struct CatchClause {
    enum Kind : u8 { catch_, catch_ref, catch_all, catch_all_ref } kind;
    u32 tag;  // not for catch_all*
    u32 label;
};

// Walks the list of an instruction that InstrReader has checked.
class ListReader {
public:
    ListReader(std::span<const u8> module_bytes, const Instr& instr)
        : bytes_(module_bytes.data()), position_(instr.list) {}
    u32 label();
    CatchClause catch_clause();
    // Reads a value type. Returns its code as in Instr::block_type; long references set heap and
    // nullable.
    s64 val_type(s64& heap, bool& nullable);

private:
    const u8* bytes_;
    u32 position_;
};

}  // namespace gpurun::wasm
