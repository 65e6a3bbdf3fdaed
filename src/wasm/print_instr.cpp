// Prints instructions with their immediates, and the declarations of a function.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "wasm/print.h"
#include "wasm/read_instr.h"

namespace gpurun::wasm {
namespace {

constexpr u32 max_indent = 40;  // levels: nesting of 100,000 would make the listing quadratic

const char* abstract_heap_name(s64 code) {
    switch (code) {
        case code::any: return "any";
        case code::eq: return "eq";
        case code::i31: return "i31";
        case code::struct_: return "struct";
        case code::array: return "array";
        case code::none: return "none";
        case code::func: return "func";
        case code::nofunc: return "nofunc";
        case code::extern_: return "extern";
        case code::noextern: return "noextern";
        case code::exn: return "exn";
        default: return "noexn";
    }
}

// Returns the short name of a nullable reference to an abstract heap type.
const char* short_ref_name(s64 code) {
    switch (code) {
        case code::any: return "anyref";
        case code::eq: return "eqref";
        case code::i31: return "i31ref";
        case code::struct_: return "structref";
        case code::array: return "arrayref";
        case code::none: return "nullref";
        case code::func: return "funcref";
        case code::nofunc: return "nullfuncref";
        case code::extern_: return "externref";
        case code::noextern: return "nullexternref";
        case code::exn: return "exnref";
        default: return "nullexnref";
    }
}

// Appends the shortest decimal that reads back as the same bits. NaNs have their payload.
template <class Float, class Bits, u32 fraction>
void append_float(std::string& out, u64 bits) {
    Float value = __builtin_bit_cast(Float, Bits(bits));
    if (std::isnan(value)) {
        out += std::signbit(value) ? "-nan" : "nan";
        u64 payload = bits & ((u64{1} << fraction) - 1);
        if (payload == u64{1} << (fraction - 1)) return;
        out += ':';
        append_hex(out, payload);
        return;
    }
    char digits[64];
    out.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}

char label_letter(Op op) {
    switch (op) {
        case Op::loop: return 'L';
        case Op::if_: return 'I';
        case Op::try_:
        case Op::try_table: return 'T';
        default: return 'B';
    }
}

bool opens_block(Op op) {
    return op == Op::block || op == Op::loop || op == Op::if_ || op == Op::try_ ||
           op == Op::try_table;
}
bool closes_block(Op op) { return op == Op::end || op == Op::delegate; }
bool divides_block(Op op) { return op == Op::else_ || op == Op::catch_ || op == Op::catch_all; }

void space_and_number(std::string& out, u32 number) {
    out += ' ';
    append_number(out, number);
}
void unless_zero(std::string& out, u32 number) {
    if (number != 0) space_and_number(out, number);
}

}  // namespace

BodyPrinter::BodyPrinter(const Printer& printer, u32 func) : printer_(printer), func_(func) {
    const auto& all = printer.module().names.locals;
    auto found = std::lower_bound(all.begin(), all.end(), func,
                                  [](const auto& entry, u32 f) { return entry.first < f; });
    if (found != all.end() && found->first == func) local_names_ = &found->second;
}

const std::string* BodyPrinter::local_name(u32 index) const {
    if (!local_names_) return nullptr;
    auto found = std::lower_bound(local_names_->begin(), local_names_->end(), index,
                                  [](const auto& entry, u32 i) { return entry.first < i; });
    bool is_named = found != local_names_->end() && found->first == index && !found->second.empty();
    return is_named ? &found->second : nullptr;
}

// ---- declarations ------------------------------------------------------------------

// Prints `count` locals of one type, from `first` on. Long runs without names are cut short.
void BodyPrinter::declare(std::string& out, const char* word, u32 first, u32 count,
                          std::string_view type) const {
    constexpr u32 max_run = 16;
    for (u32 i = 0; i < count;) {
        u32 run = 0;
        while (i + run < count && !local_name(first + i + run)) run++;
        out += " (";
        out += word;
        if (run == 0) {
            out += ' ';
            append_identifier(out, *local_name(first + i));
            out += ' ';
            out += type;
            i++;
        } else {
            for (u32 k = 0; k < std::min(run, max_run); k++) (out += ' ') += type;
            if (run > max_run) {
                out += " (; ";
                append_number(out, run - max_run);
                out += " more ;)";
            }
            i += run;
        }
        out += ')';
    }
}

void BodyPrinter::declarations(std::string& out) const {
    const Module& module = printer_.module();
    const Func& func = module.funcs[func_];
    const FuncType& type = module.func_type(func_);
    u32 next = 0;
    std::string text;
    for (u32 i = 0; i < type.params.size(); i++) {
        text.clear();
        printer_.type(text, type.params[i]);
        declare(out, "param", next++, 1, text);
    }
    printer_.signature(out, {{}, type.results});
    if (func_ < module.imported_funcs) return;
    BinaryReader in(module.bytes.data(), func.body, func.code);
    for (u32 groups = in.leb_u32(); groups > 0; groups--) {
        u32 count = in.leb_u32();
        s64 heap = 0;
        bool nullable = false;
        s64 code = read_val_type(in, heap, nullable);
        text.clear();
        val_type(text, code, heap, nullable);
        declare(out, "local", next, count, text);
        next += count;
    }
}

// ---- immediates --------------------------------------------------------------------

void BodyPrinter::heap_code(std::string& out, s64 code) const {
    if (code >= 0) {
        append_number(out, code);
    } else {
        out += abstract_heap_name(code);
    }
}

void BodyPrinter::val_type(std::string& out, s64 code, s64 heap, bool nullable) const {
    switch (code) {
        case code::i32: out += "i32"; return;
        case code::i64: out += "i64"; return;
        case code::f32: out += "f32"; return;
        case code::f64: out += "f64"; return;
        case code::v128: out += "v128"; return;
        case block_long_ref:
            out += nullable ? "(ref null " : "(ref ";
            heap_code(out, heap);
            out += ')';
            return;
        default: out += short_ref_name(code);
    }
}

void BodyPrinter::block_type(std::string& out, const Instr& instr) const {
    if (instr.block_type == block_empty) return;
    const Module& module = printer_.module();
    if (instr.block_type >= 0) {
        printer_.signature(out, module.types[module.type_ids[usize(instr.block_type)]].func);
        return;
    }
    out += " (result ";
    val_type(out, instr.block_type, instr.heap, instr.b);
    out += ')';
}

void BodyPrinter::label(std::string& out, u32 depth) const {
    out += ' ';
    if (depth >= labels_.size()) {  // the function itself has no name
        append_number(out, depth);
        return;
    }
    const Label& target = labels_[labels_.size() - 1 - depth];
    out += '$';
    out += target.letter;
    append_number(out, target.number);
}

void BodyPrinter::memarg(std::string& out, const Instr& instr) const {
    unless_zero(out, instr.a);
    if (instr.bits != 0) {
        out += " offset=";
        char digits[24];
        out.append(digits, std::to_chars(digits, digits + sizeof digits, instr.bits).ptr);
    }
    if (instr.align != natural_align(instr.imm)) {
        out += " align=";
        append_number(out, s64{1} << instr.align);
    }
}

void BodyPrinter::lists(std::string& out, const Instr& instr) const {
    ListReader list(printer_.module().bytes, instr);
    if (instr.imm == Imm::br_table) {
        for (u32 i = 0; i < instr.count; i++) label(out, list.label());
        return label(out, instr.a);
    }
    if (instr.imm == Imm::select_t) {
        out += " (result";
        for (u32 i = 0; i < instr.count; i++) {
            s64 heap = 0;
            bool nullable = false;
            s64 code = list.val_type(heap, nullable);
            out += ' ';
            val_type(out, code, heap, nullable);
        }
        out += ')';
        return;
    }
    block_type(out, instr);
    static constexpr const char* names[] = {" (catch", " (catch_ref", " (catch_all",
                                            " (catch_all_ref"};
    for (u32 i = 0; i < instr.count; i++) {
        CatchClause clause = list.catch_clause();
        out += names[clause.kind];
        if (clause.kind <= CatchClause::catch_ref) space_and_number(out, clause.tag);
        label(out, clause.label);
        out += ')';
    }
}

void BodyPrinter::immediates(std::string& out, const Instr& instr) const {
    switch (instr.imm) {
        case Imm::none:
        case Imm::zero: return;
        case Imm::block: return block_type(out, instr);
        case Imm::label: return label(out, instr.a);
        case Imm::func: out += ' '; return printer_.func(out, instr.a);
        case Imm::local:
            out += ' ';
            if (const std::string* name = local_name(instr.a)) return append_identifier(out, *name);
            return append_number(out, instr.a);
        case Imm::global:
        case Imm::table:
        case Imm::type:
        case Imm::tag:
        case Imm::data:
        case Imm::elem: return space_and_number(out, instr.a);
        case Imm::memory: return unless_zero(out, instr.a);
        case Imm::memory_memory:
            if (instr.a == 0 && instr.b == 0) return;
            [[fallthrough]];
        case Imm::table_table:
        case Imm::type_field:
        case Imm::type_count:
        case Imm::type_data:
        case Imm::type_elem:
        case Imm::type_type: space_and_number(out, instr.a); return space_and_number(out, instr.b);
        case Imm::type_table:
            unless_zero(out, instr.b);
            out += " (type ";
            append_number(out, instr.a);
            out += ')';
            return;
        case Imm::data_memory:
        case Imm::elem_table:  // the text has them the other way round
            unless_zero(out, instr.b);
            return space_and_number(out, instr.a);
        case Imm::heap_type:
            out += ' ';
            if (instr.op == Op::ref_null) return heap_code(out, instr.heap);
            return val_type(out, block_long_ref, instr.heap,
                            instr.op == Op::ref_test_null || instr.op == Op::ref_cast_null);
        case Imm::br_cast:
            label(out, instr.a);
            out += ' ';
            val_type(out, block_long_ref, instr.heap, instr.b & 1);
            out += ' ';
            return val_type(out, block_long_ref, instr.heap2, instr.b & 2);
        case Imm::br_table:
        case Imm::select_t:
        case Imm::try_table: return lists(out, instr);
        case Imm::i32: out += ' '; return append_number(out, s32(u32(instr.bits)));
        case Imm::i64: out += ' '; return append_number(out, s64(instr.bits));
        case Imm::f32: out += ' '; return append_float<f32, u32, 23>(out, instr.bits);
        case Imm::f64: out += ' '; return append_float<f64, u64, 52>(out, instr.bits);
        case Imm::v128: {
            u32 lanes[4];
            __builtin_memcpy(lanes, instr.bytes, 16);
            out += " i32x4";
            for (u32 lane : lanes) append_hex(out += ' ', lane, 8);
            return;
        }
        case Imm::shuffle:
            for (u8 lane : instr.bytes) space_and_number(out, lane);
            return;
        case Imm::lane2:
        case Imm::lane4:
        case Imm::lane8:
        case Imm::lane16: return space_and_number(out, instr.lane);
        default:
            memarg(out, instr);
            if (instr.imm >= Imm::lmem0) space_and_number(out, instr.lane);
    }
}

void BodyPrinter::instr(std::string& out, const Instr& instr) {
    if (closes_block(instr.op) && !labels_.empty()) labels_.pop_back();
    usize depth = labels_.size() - (divides_block(instr.op) && !labels_.empty());
    out.append(2 * std::min<usize>(depth, max_indent), ' ');
    out += op_info(instr.op).text;
    if (!opens_block(instr.op)) return immediates(out, instr);

    Label opened{label_letter(instr.op), ++blocks_};
    out += " $";
    out += opened.letter;
    append_number(out, opened.number);
    immediates(out, instr);  // labels of catch clauses count from outside
    labels_.push_back(opened);
}

}  // namespace gpurun::wasm
