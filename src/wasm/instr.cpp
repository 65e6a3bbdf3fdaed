// Makes the opcode table for run time, and wraps read_instr.h for other folders.
#include "wasm/instr.h"

#include "wasm/read_instr.h"

namespace gpurun::wasm {

namespace {

constexpr OpInfo op_infos[] = {
#define OP(prefix, code, name, text, imm, sig) {prefix, code, Imm::imm, text, sig},
#include "wasm/opcodes.def"
#undef OP
    {0, 0, Imm::none, "(invalid)", ">"},
};

constexpr OpLookup make_lookup() {
    OpLookup lookup{};
    for (Op& op : lookup.one_byte) op = Op::invalid;
    for (Op& op : lookup.fb) op = Op::invalid;
    for (Op& op : lookup.fc) op = Op::invalid;
    for (Op& op : lookup.fd) op = Op::invalid;
    for (Op& op : lookup.fe) op = Op::invalid;
    for (u32 i = 0; i < u32(Op::count); i++) {
        const OpInfo& info = op_infos[i];
        Op* row = info.prefix == 0xfb   ? lookup.fb
                  : info.prefix == 0xfc ? lookup.fc
                  : info.prefix == 0xfd ? lookup.fd
                  : info.prefix == 0xfe ? lookup.fe
                                        : lookup.one_byte;
        row[info.code] = Op(i);
        lookup.imm[i] = info.imm;
    }
    return lookup;
}

template <usize size>
Op pick(const Op (&row)[size], u32 code) {
    return code < size ? row[code] : Op::invalid;
}

}  // namespace

constexpr OpLookup op_lookup = make_lookup();

const OpInfo& op_info(Op op) { return op_infos[u32(op)]; }

Op op_from_code(u8 prefix, u32 code) {
    switch (prefix) {
        case 0: return pick(op_lookup.one_byte, code);
        case 0xfb: return pick(op_lookup.fb, code);
        case 0xfc: return pick(op_lookup.fc, code);
        case 0xfd: return pick(op_lookup.fd, code);
        case 0xfe: return pick(op_lookup.fe, code);
        default: return Op::invalid;
    }
}

Op read_prefixed_op(BinaryReader& reader, u8 prefix) {
    if (!reader.ok()) return Op::invalid;
    u32 start = reader.position() - 1;
    Op op = prefix >= 0xfb && prefix <= 0xfe ? op_from_code(prefix, reader.leb_u32()) : Op::invalid;
    if (op == Op::invalid) reader.fail("illegal opcode", start);
    return op;
}

bool InstrReader::next(Instr& instr) {
    if (error_ || position_ >= end_) return false;
    BinaryReader reader(bytes_, position_, end_);
    read_instr(reader, instr);
    position_ = reader.position();
    error_ = reader.error();
    error_offset_ = reader.error_offset();
    return reader.ok();
}

namespace {
// An end behind all bytes: InstrReader has checked them already.
constexpr u32 anywhere = 0x7fffffff;
}  // namespace

u32 ListReader::label() {
    BinaryReader reader(bytes_, position_, anywhere);
    u32 depth = reader.leb_u32();
    position_ = reader.position();
    return depth;
}

CatchClause ListReader::catch_clause() {
    BinaryReader reader(bytes_, position_, anywhere);
    CatchClause clause = read_catch_clause(reader);
    position_ = reader.position();
    return clause;
}

s64 ListReader::val_type(s64& heap, bool& nullable) {
    BinaryReader reader(bytes_, position_, anywhere);
    s64 type = read_val_type(reader, heap, nullable);
    position_ = reader.position();
    return type;
}

}  // namespace gpurun::wasm
