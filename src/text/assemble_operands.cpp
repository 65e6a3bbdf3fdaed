// What follows an opcode, by its kind of immediates.
#include <bit>

#include "base/format.h"
#include "text/encode.h"
#include "text/literal.h"
#include "text/module_assembler.h"
#include "text/number.h"

namespace gpurun::text {

using wasm::Imm;

void ModuleAssembler::operands(Bytes& out, Op op) {
    Imm imm = wasm::op_info(op).imm;
    switch (imm) {
        case Imm::none: return;
        case Imm::zero: return out.push_back(0);
        case Imm::label: return put_u32(out, label());
        case Imm::br_table: return br_table(out);
        case Imm::func: return put_u32(out, index(func_space_));
        case Imm::local: return put_u32(out, index(locals_));
        case Imm::global: return put_u32(out, index(global_space_));
        case Imm::type: return put_u32(out, index(type_space_));
        case Imm::tag: return put_u32(out, index(tag_space_));
        case Imm::data: return put_u32(out, data_index());
        case Imm::elem: return put_u32(out, index(elem_space_));
        case Imm::table: return put_u32(out, optional_index(table_space_));
        case Imm::memory: return put_u32(out, optional_index(memory_space_));
        case Imm::type_table: {
            u32 table_index = optional_index(table_space_);
            put_u32(out, type_index(type_use()));
            return put_u32(out, table_index);
        }
        case Imm::memory_memory: return two_or_none(out, memory_space_);
        case Imm::table_table: return two_or_none(out, table_space_);
        case Imm::data_memory: {
            u32 memory_index = has_two_indices() ? index(memory_space_) : 0;
            put_u32(out, data_index());
            return put_u32(out, memory_index);
        }
        case Imm::elem_table: {
            u32 table_index = has_two_indices() ? index(table_space_) : 0;
            put_u32(out, index(elem_space_));
            return put_u32(out, table_index);
        }
        case Imm::type_field: return field_operands(out);
        case Imm::type_count:
            put_u32(out, index(type_space_));
            return put_u32(out, in_.expect_u32());
        case Imm::type_data: put_u32(out, index(type_space_)); return put_u32(out, data_index());
        case Imm::type_elem:
            put_u32(out, index(type_space_));
            return put_u32(out, index(elem_space_));
        case Imm::type_type:
            put_u32(out, index(type_space_));
            return put_u32(out, index(type_space_));
        case Imm::heap_type: return put_s64(out, heap_type());
        case Imm::br_cast: return cast_branch(out);
        case Imm::i32: return put_s64(out, s32(u32(expect_integer(in_, 32))));
        case Imm::i64: return put_s64(out, s64(expect_integer(in_, 64)));
        case Imm::f32: return put_fixed(out, u32(expect_float(in_, 32)));
        case Imm::f64: return put_fixed(out, expect_float(in_, 64));
        case Imm::v128: {
            Vector vector = expect_vector(in_);
            put_fixed(out, vector.bits[0]);
            return put_fixed(out, vector.bits[1]);
        }
        case Imm::shuffle: return shuffle_lanes(out);
        case Imm::lane2:
        case Imm::lane4:
        case Imm::lane8:
        case Imm::lane16: return out.push_back(u8(in_.expect_u32("i8")));
        case Imm::block:
        case Imm::select_t:
        case Imm::try_table: return;  // read with their opcode
        default: return memory_argument(out, imm);
    }
}

void ModuleAssembler::br_table(Bytes& out) {
    Bytes labels;
    u32 count = 0;
    do {
        put_u32(labels, label());
        count++;
    } while (in_.is_index());
    put_u32(out, count - 1);
    put_bytes(out, labels);
}

u32 ModuleAssembler::data_index() {
    uses_data_ = true;
    return index(data_space_);
}

u32 ModuleAssembler::optional_index(const IndexSpace& space) {
    return in_.is_index() ? index(space) : 0;
}

bool ModuleAssembler::has_two_indices() const {
    return in_.is_index() && (in_.is(Kind::natural, 1) || in_.is(Kind::id, 1));
}

void ModuleAssembler::two_or_none(Bytes& out, const IndexSpace& space) {
    bool has_indices = in_.is_index();
    for (u32 i = 0; i < 2; i++) put_u32(out, has_indices ? index(space) : 0);
}

void ModuleAssembler::memory_argument(Bytes& out, Imm imm) {
    bool has_lane = imm >= Imm::lmem0;
    // A lone number before a lane is the lane.
    auto more_follows = [&] {
        return in_.is(Kind::natural, 1) ||
               (in_.is(Kind::keyword, 1) &&
                (in_.text(1).starts_with("offset=") || in_.text(1).starts_with("align=")));
    };
    u32 memory_index = 0;
    if (in_.is(Kind::id) || (in_.is(Kind::natural) && (!has_lane || more_follows()))) {
        memory_index = index(memory_space_);
    }
    u64 offset = keyed_number("offset=", 0);
    const Token& align_token = in_.peek();
    u64 align = keyed_number("align=", u64{1} << wasm::natural_align(imm));
    if (!std::has_single_bit(align)) {
        in_.fail(align_token,
                 format("alignment must be a power of two, got %llu", (unsigned long long)align));
        return;
    }
    put_u32(out, u32(std::countr_zero(align)) | (memory_index ? 0x40 : 0));
    if (memory_index) put_u32(out, memory_index);
    put_u64(out, offset);
    if (has_lane) out.push_back(u8(in_.expect_u32("i8")));
}

// "offset=8" and the like.
u64 ModuleAssembler::keyed_number(std::string_view key, u64 otherwise) {
    if (!in_.is(Kind::keyword) || !in_.text().starts_with(key)) return otherwise;
    std::string_view digits = in_.text().substr(key.size());
    if (classify_number(digits) != Numeral::natural) {
        in_.unexpected();
        return otherwise;
    }
    const Token& token = in_.take();
    std::optional<u64> value = parse_natural(digits);
    if (!value) in_.fail(token, "i64 constant out of range: " + std::string(digits.substr(0, 40)));
    return value.value_or(otherwise);
}

void ModuleAssembler::shuffle_lanes(Bytes& out) {
    constexpr u32 needed = 16;
    u32 given = count_numbers(in_);
    if (given != needed) {
        return in_.fail(in_.peek(), format("invalid lane length: i8x16.shuffle needs %u, got %u",
                                           needed, given));
    }
    for (u32 i = 0; i < needed && !in_.failed(); i++) {
        if (in_.is(Kind::natural))
            out.push_back(u8(in_.expect_u32("i8")));
        else
            in_.fail(in_.peek(), "i8 constant out of range: " + std::string(in_.text()));
    }
}

void ModuleAssembler::field_operands(Bytes& out) {
    const Token& type_token = in_.peek();
    u32 type_number = index(type_space_);
    put_u32(out, type_number);
    if (in_.is(Kind::id) && type_number >= types_.size()) {
        return in_.fail(type_token, "unknown type " + std::string(tokens_.text(type_token)));
    }
    put_u32(out, in_.is(Kind::id) ? index(types_[type_number].fields) : in_.expect_u32());
}

void ModuleAssembler::select(Bytes& out) {
    Bytes types;
    u32 count = 0;
    while (in_.accept_left("result")) {
        for (; is_val_type(); count++) val_type(types);
        in_.expect_right();
    }
    put_u32(out, count);
    put_bytes(out, types);
}

void ModuleAssembler::cast_branch(Bytes& out) {
    u32 depth = label();
    bool from_null = false, to_null = false;
    s64 from = ref_type(from_null), to = ref_type(to_null);
    out.push_back(u8(from_null) | u8(to_null) << 1);
    put_u32(out, depth);
    put_s64(out, from);
    put_s64(out, to);
}

}  // namespace gpurun::text
