// Reads an instruction and its immediates. Inline, because the validator's loop is built on it; all
// others use InstrReader.
#pragma once

#include "wasm/instr.h"
#include "wasm/reader.h"

namespace gpurun::wasm {

// One-byte type codes, sign-extended as in Instr::block_type.
namespace code {
inline constexpr s64 i32 = -0x01, i64 = -0x02, f32 = -0x03, f64 = -0x04, v128 = -0x05;
inline constexpr s64 i8 = -0x08, i16 = -0x09;
inline constexpr s64 noexn = -0x0c, nofunc = -0x0d, noextern = -0x0e, none = -0x0f, func = -0x10,
                     extern_ = -0x11, any = -0x12, eq = -0x13, i31 = -0x14, struct_ = -0x15,
                     array = -0x16, exn = -0x17;
inline constexpr s64 ref = -0x1c, ref_null = -0x1d;

constexpr bool is_abstract_heap(s64 c) { return c <= noexn && c >= exn; }
constexpr bool is_number_or_vector(s64 c) { return c <= i32 && c >= v128; }
}  // namespace code

struct OpLookup {
    Op one_byte[256], fb[32], fc[32], fd[288], fe[80];
    Imm imm[u32(Op::count) + 1];
};
extern const OpLookup op_lookup;

constexpr u32 max_memarg_flags = 0x7f;
constexpr u32 memarg_has_memory = 0x40;

// Reads a type code or, at 0 and above, an index. Codes have one byte, so a longer negative number
// is malformed.
inline s64 read_type_code(BinaryReader& reader, const char* what) {
    u32 start = reader.position();
    s64 value = reader.leb_s33();
    if (value < 0 && reader.position() != start + 1) reader.fail(what, start);
    return value;
}

inline s64 read_heap_type(BinaryReader& reader) {
    u32 start = reader.position();
    s64 value = read_type_code(reader, "malformed heap type");
    if (value < 0 && !code::is_abstract_heap(value)) reader.fail("malformed heap type", start);
    return value;
}

// Reads the rest of a value type or block type that began with `value`, which was read at `start`.
inline s64 finish_val_type(BinaryReader& reader, s64 value, u32 start, const char* what, s64& heap,
                           bool& nullable) {
    if (code::is_number_or_vector(value) || code::is_abstract_heap(value)) return value;
    if (value == code::ref || value == code::ref_null) {
        nullable = value == code::ref_null;
        heap = read_heap_type(reader);
        return block_long_ref;
    }
    reader.fail(what, start);
    return code::i32;
}

inline s64 read_val_type(BinaryReader& reader, s64& heap, bool& nullable) {
    u32 start = reader.position();
    s64 value = s64(s8(reader.byte() << 1)) >> 1;
    if (start != reader.position() && (reader.data()[-1] & 0x80)) value = 0;
    return finish_val_type(reader, value, start, "malformed value type", heap, nullable);
}

inline void read_block_type(BinaryReader& reader, Instr& instr) {
    u32 start = reader.position();
    s64 value = read_type_code(reader, "malformed block type");
    if (value >= 0 || value == block_empty) {
        instr.block_type = value;
        return;
    }
    bool nullable = false;
    instr.block_type =
        finish_val_type(reader, value, start, "malformed block type", instr.heap, nullable);
    instr.b = nullable;
}

// Starts a list whose entries have at least `entry_bytes`. A count that the bytes left cannot hold
// is an error.
inline void read_list_head(BinaryReader& reader, Instr& instr, u32 entry_bytes) {
    u32 start = reader.position();
    instr.count = reader.leb_u32();
    instr.list = reader.position();
    if (instr.count > reader.left() / entry_bytes) {
        reader.fail("unexpected end", start);
        instr.count = 0;
    }
}

inline CatchClause read_catch_clause(BinaryReader& reader) {
    CatchClause clause{};
    u32 start = reader.position();
    u8 kind = reader.byte();
    if (kind > CatchClause::catch_all_ref) reader.fail("malformed catch clause", start);
    clause.kind = CatchClause::Kind(kind & 3);
    if (clause.kind <= CatchClause::catch_ref) clause.tag = reader.leb_u32();
    clause.label = reader.leb_u32();
    return clause;
}

inline void read_memarg(BinaryReader& reader, Instr& instr) {
    u32 start = reader.position();
    u32 flags = reader.leb_u32();
    if (flags > max_memarg_flags) reader.fail("malformed memop flags", start);
    instr.align = flags & ~memarg_has_memory;
    instr.a = flags & memarg_has_memory ? reader.leb_u32() : 0;
    instr.bits = reader.leb_u64();
}

[[gnu::noinline]] Op read_prefixed_op(BinaryReader& reader, u8 prefix);  // instr.cpp

inline void read_lists(BinaryReader& reader, Instr& instr) {
    if (instr.imm == Imm::br_table) {
        read_list_head(reader, instr, 1);
        for (u32 i = 0; i < instr.count && reader.ok(); i++) reader.leb_u32();
        instr.a = reader.leb_u32();
    } else if (instr.imm == Imm::select_t) {
        read_list_head(reader, instr, 1);
        for (u32 i = 0; i < instr.count && reader.ok(); i++) {
            s64 heap;
            bool nullable;
            read_val_type(reader, heap, nullable);
        }
    } else {
        read_block_type(reader, instr);
        read_list_head(reader, instr, 2);
        for (u32 i = 0; i < instr.count && reader.ok(); i++) read_catch_clause(reader);
    }
}

// Reads what follows the opcode. If `imm` is a constant, this is one load or two.
[[gnu::always_inline]] inline void read_immediates(BinaryReader& reader, Instr& instr, Imm imm) {
    instr.imm = imm;
    switch (imm) {
        case Imm::none: return;
        case Imm::zero: {
            if (reader.byte() != 0) reader.fail("zero byte expected", reader.position() - 1);
            return;
        }
        case Imm::block: return read_block_type(reader, instr);
        case Imm::label:
        case Imm::func:
        case Imm::local:
        case Imm::global:
        case Imm::table:
        case Imm::type:
        case Imm::tag:
        case Imm::data:
        case Imm::elem:
        case Imm::memory: instr.a = reader.leb_u32(); return;
        case Imm::memory_memory:
        case Imm::table_table:
        case Imm::type_table:
        case Imm::data_memory:
        case Imm::elem_table:
        case Imm::type_field:
        case Imm::type_count:
        case Imm::type_data:
        case Imm::type_elem:
        case Imm::type_type:
            instr.a = reader.leb_u32();
            instr.b = reader.leb_u32();
            return;
        case Imm::heap_type: instr.heap = read_heap_type(reader); return;
        case Imm::br_cast:
            instr.b = reader.byte();
            if (instr.b > 3) reader.fail("malformed br_on_cast flags", reader.position() - 1);
            instr.a = reader.leb_u32();
            instr.heap = read_heap_type(reader);
            instr.heap2 = read_heap_type(reader);
            return;
        case Imm::br_table:
        case Imm::select_t:
        case Imm::try_table: return read_lists(reader, instr);
        case Imm::i32: instr.bits = u32(reader.leb_s32()); return;
        case Imm::i64: instr.bits = u64(reader.leb_s64()); return;
        case Imm::f32: instr.bits = reader.fixed<u32>(); return;
        case Imm::f64: instr.bits = reader.fixed<u64>(); return;
        case Imm::v128:
        case Imm::shuffle: {
            const u8* bytes = reader.data();
            reader.skip(16);
            if (reader.ok()) __builtin_memcpy(instr.bytes, bytes, 16);
            return;
        }
        case Imm::lane2:
        case Imm::lane4:
        case Imm::lane8:
        case Imm::lane16: instr.lane = reader.byte(); return;
        case Imm::mem0:
        case Imm::mem1:
        case Imm::mem2:
        case Imm::mem3:
        case Imm::mem4:
        case Imm::amem0:
        case Imm::amem1:
        case Imm::amem2:
        case Imm::amem3: return read_memarg(reader, instr);
        case Imm::lmem0:
        case Imm::lmem1:
        case Imm::lmem2:
        case Imm::lmem3:
            read_memarg(reader, instr);
            instr.lane = reader.byte();
            return;
    }
}

// Reads one instruction. On an error the reader has failed and instr means nothing.
inline void read_instr(BinaryReader& reader, Instr& instr) {
    instr.offset = reader.position();
    u8 first = reader.byte();
    Op op = op_lookup.one_byte[first];
    if (op == Op::invalid) [[unlikely]]
        op = read_prefixed_op(reader, first);
    instr.op = op;
    read_immediates(reader, instr, op_lookup.imm[u32(op)]);
}

}  // namespace gpurun::wasm
