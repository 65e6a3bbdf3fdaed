// Prints instructions of abi/code_ops.def by a pattern for each row, which is made from the row's
// family or written here for those with a meaning of their own.
#include "translate/print.h"

#include <algorithm>
#include <array>

#include "base/check.h"

namespace gpurun::translate {
namespace {

using wasm::append_hex;
using wasm::append_number;

struct Form {
    const char* pattern = nullptr;
    u32 words = 1;
};

// In a pattern, % and a letter stand for a part of the instruction's first word; with a 2 or 3
// in between, of that word:
//   a b c  slot      A B C  number in the field     k  c as a signed constant
//   i  imm, signed   t  target of imm   s  target of the short distance in a
//   w  slot in imm or low
//   l h    low and high half            X V  slots in the halves of the high half; L  number there
//   q  64 bits       v  128 bits from this word on, high half first
//   m n  memory in the low, high half   T U  table   y Y  type   e  tag
//   S  storage in c  z  storage in the low half
//   g  instance word in imm or low      f  callee   F  imported function in imm or low
//   r  own function in imm
constexpr const char* general_load = "%a = memory %2m [%b + %3q]";
constexpr const char* general_store = "memory %2m [%b + %3q] = %a";

constexpr auto forms = [] {
    std::array<Form, usize(CodeOp::count)> table{};
    auto set = [&](CodeOp op, const char* pattern, u32 words = 1) {
        table[usize(op)] = {pattern, words};
    };
#define OP(name)
#define HOT(name)
#define CONTROL(name)
#define BULK(name)
#define OBJECT(name)
#define ATOMIC_OTHER(name)
#define VEC_SHUFFLE(name) set(CodeOp::name, "%a = %b, %c, lanes %2v", 3);
#define CMP_INT(name, T)                    \
    set(CodeOp::name, "%a = %b, %c");       \
    set(CodeOp::name##_k, "%a = %b, %k");   \
    set(CodeOp::br_##name, "%b, %c -> %s"); \
    set(CodeOp::br_##name##_k, "%b, %k -> %s");
#define CMP_FLOAT(name, T)            \
    set(CodeOp::name, "%a = %b, %c"); \
    set(CodeOp::br_##name, "%b, %c -> %s");
#define BIN_INT(name, T)              \
    set(CodeOp::name, "%a = %b, %c"); \
    set(CodeOp::name##_k, "%a = %b, %k");
#define UN(name, R, A) set(CodeOp::name, "%a = %b");
#define UN_TRAP UN
#define VEC_UN UN
#define BIN(name, R, A, B) set(CodeOp::name, "%a = %b, %c");
#define BIN_TRAP BIN
#define VEC_BIN BIN
#define VEC_TERN(name, R, A, B, C) set(CodeOp::name, "%a = %b, %c, %2a", 2);
#define LANE_GET(name, R) set(CodeOp::name, "%a = lane %C of %b");
#define LANE_SET(name, A) set(CodeOp::name, "%a = %b with lane %2A = %c", 2);
#define LOAD(name, R, M)                 \
    set(CodeOp::name, "%a = [%b + %C]"); \
    set(CodeOp::name##_w, "%a = [%b + %2q]", 2);
#define STORE(name, A, M)                \
    set(CodeOp::name, "[%b + %C] = %a"); \
    set(CodeOp::name##_w, "[%b + %2q] = %a", 2);
#define LOAD_X(name, R, M) set(CodeOp::name##_x, general_load, 3);
#define STORE_X(name, A, M) set(CodeOp::name##_x, general_store, 3);
#define VEC_LOAD(name, M) set(CodeOp::name, general_load, 3);
#define VEC_STORE(name) set(CodeOp::name, general_store, 3);
#define VEC_LOAD_LANE(name, M) \
    set(CodeOp::name, "%a = %2V with lane %2L = memory %2m [%b + %3q]", 3);
#define VEC_STORE_LANE(name, M) set(CodeOp::name, "memory %2m [%b + %3q] = lane %2L of %a", 3);
#define ATOMIC_LOAD(name, V, M) set(CodeOp::name, general_load, 3);
#define ATOMIC_STORE(name, V, M) set(CodeOp::name, general_store, 3);
#define ATOMIC_RMW(name, V, M, f) set(CodeOp::name, "%a = memory %2m [%b + %3q], %2X", 3);
#define ATOMIC_CMPXCHG(name, V, M) \
    set(CodeOp::name, "%a = memory %2m [%b + %3q], expected %2X, new %2V", 3);
#include "abi/code_ops.def"
#undef OP
#undef VEC_SHUFFLE
#undef ATOMIC_OTHER

    using enum CodeOp;
    set(halt, "");
    set(ret, "");
    set(ret_32, "%b");
    set(ret_64, "%b");
    set(enter, "frame %C, zero %B from %a");
    set(charge, "%i");
    set(br, "-> %t");
    set(br_z, "%a -> %t");
    set(br_nz, "%a -> %t");
    set(br_table, "%a ->", 2);  // and more, as imm says
    set(call, "%f, %a");
    set(call_import, "%F, %a");
    set(call_indirect, "table %2T [%b], %2Y, %a", 2);
    set(call_ref, "%b, %2Y, %a", 2);
    set(return_call, "%f, %a, %B words", 2);
    set(return_call_import, "%2F, %a, %B words", 2);
    set(return_call_indirect, "table %2T [%3a], %2Y, %a, %B words", 3);
    set(return_call_ref, "%c, %a, %B words");
    set(copy_32, "%a = %b");
    set(copy_64, "%a = %b");
    set(copy_128, "%a = %b");
    set(copy_words, "%a = %b, %C words");
    set(const_32, "%a = %i");
    set(const_64, "%a = %2q", 2);
    set(const_64_k, "%a = %i");
    set(const_128, "%a = %2v", 3);
    set(select_32, "%a = %2a ? %b : %c", 2);
    set(select_64, "%a = %2a ? %b : %c", 2);
    set(select_128, "%a = %2a ? %b : %c", 2);
    set(global_get_32, "%a = %g");
    set(global_get_64, "%a = %g");
    set(global_get_128, "%a = %g");
    set(global_set_32, "%g = %a");
    set(global_set_64, "%g = %a");
    set(global_set_128, "%g = %a");
    set(global_get_imported, "%a = %2g", 2);
    set(global_set_imported, "%2g = %a", 2);
    set(unreachable, "");
    set(enter_far, "frame %i, zero %2h from %2w", 2);
    set(far_get_32, "%a = %w");
    set(far_get_64, "%a = %w");
    set(far_get_128, "%a = %w");
    set(far_set_32, "%w = %a");
    set(far_set_64, "%w = %a");
    set(far_set_128, "%w = %a");
    set(far_callee, "%a = table %2T [%b], %2Y", 2);
    set(call_far, "%b, %2Y, %2w", 2);

    set(memory_size, "%a = memory 0");
    set(memory_size_x, "%a = memory %2m", 2);
    set(memory_grow, "%a = memory %2m, by %b", 2);
    set(memory_fill, "memory %2m [%a], value %b, count %c", 2);
    set(memory_copy, "memory %2m [%a], memory %2n [%b], count %c", 3);
    set(memory_init, "memory %2m [%a], data %2h [%b], count %c", 3);
    set(data_drop, "data %i");
    set(table_get, "%a = table %2T [%b]", 2);
    set(table_set, "table %2T [%b] = %a", 2);
    set(table_size, "%a = table %2T", 2);
    set(table_grow, "%a = table %2T, by %c, value %b", 2);
    set(table_fill, "table %2T [%a], value %b, count %c", 2);
    set(table_copy, "table %2T [%a], table %2U [%b], count %c", 3);
    set(table_init, "table %2T [%a], elem %2h [%b], count %c", 3);
    set(elem_drop, "elem %i");
    set(elem_set, "elem %2l [%2h] = %a", 2);

    set(ref_func, "%a = %r");
    set(ref_as_non_null, "%a");
    set(ref_test, "%a = %b, %2y, null %C", 2);
    set(ref_cast, "%a, %2y, null %C", 2);
    set(ref_i31, "%a = %b");
    set(i31_get_s, "%a = %b");
    set(i31_get_u, "%a = %b");
    set(struct_new, "%a = %2y, %C words from %b", 2);
    set(struct_new_default, "%a = %2y, %C words", 2);
    set(struct_get, "%a = %b word %2l, %S", 2);
    set(struct_set, "%b word %2l = %a, %S", 2);
    set(array_new_default, "%a = %2y, count %b", 2);
    set(array_new_fixed, "%a = %2y, count %2h, from %b", 3);
    set(array_check_data, "data %2l [%a], count %b", 2);
    set(array_check_elem, "elem %2l [%a], count %b", 2);
    set(array_get, "%a = %b [%c], %2z", 2);
    set(array_set, "%b [%c] = %a, %2z", 2);
    set(array_len, "%a = %b");
    set(array_fill, "%a [%b], value %c, count %2a", 2);
    set(array_copy, "%a [%b], %c [%2a], count %2b", 2);
    set(array_init_data, "%a [%b], data %3l [%c], count %2a", 3);
    set(array_init_elem, "%a [%b], elem %3l [%c], count %2a", 3);

    set(try_begin, "handler %t");
    set(try_end, "%i");
    set(catch_tag, "tag %2e, else -> %t", 2);
    set(catch_values, "%a");
    set(catch_ref, "%a");
    set(throw_tag, "tag %2e, %B words from %a", 2);
    set(throw_ref, "%a");
    set(throw_again, "");
    set(system, "%i");

    set(memory_atomic_notify, "%a = memory %2m [%b + %3q], count %2X", 3);
    set(memory_atomic_wait32, "%a = memory %2m [%b + %3q], expected %2X, timeout %2V", 3);
    set(memory_atomic_wait64, "%a = memory %2m [%b + %3q], expected %2X, timeout %2V", 3);
    set(atomic_fence, "");
    return table;
}();

static_assert(std::all_of(forms.begin(), forms.end(), [](const Form& f) { return f.pattern; }));

constexpr const char* names[] = {
#define OP(name) #name,
#include "abi/code_ops.def"
#undef OP
};

const char* storage_name(u32 storage) {
    static constexpr const char* storages[] = {"w32", "w64", "w128", "s8", "u8", "s16", "u16"};
    return storages[storage];
}

void append_slot(std::string& out, u32 slot) {
    out += 's';
    append_number(out, slot);
}

}  // namespace

const char* code_op_name(CodeOp op) { return names[usize(op)]; }

u32 code_size(u64 word) {
    CHECK(op_of(word) < u32(CodeOp::count));
    if (CodeOp(op_of(word)) == CodeOp::br_table) return 1 + (imm_of(word) + 2) / 2;
    return forms[op_of(word)].words;
}

void CodePrinter::callee(std::string& out, const FunctionCode& code, u32 position) const {
    auto found = std::lower_bound(code.callees.begin(), code.callees.end(), position,
                                  [](const auto& callee, u32 p) { return callee.position < p; });
    CHECK(found != code.callees.end() && found->position == position);
    printer_.func(out, found->func);
}

// Appends what the instance has there: a global of its own, an imported one or an imported
// function.
void CodePrinter::instance_word(std::string& out, u32 word) const {
    const wasm::Module& module = printer_.module();
    if (word - layout_.imported_funcs < module.imported_funcs)
        return printer_.func(out, word - layout_.imported_funcs);
    out += "global ";
    if (word - layout_.imported_globals < module.imported_globals)
        return append_number(out, word - layout_.imported_globals);
    auto first = layout_.globals.begin() + module.imported_globals;
    append_number(out,
                  std::lower_bound(first, layout_.globals.end(), word) - layout_.globals.begin());
}

void CodePrinter::type(std::string& out, u32 type) const {
    if (type & u32(AbstractType::flag)) {
        static constexpr const char* abstract[] = {"any",  "eq",     "i31", "struct", "array",
                                                   "func", "extern", "exn", "bottom"};
        out += abstract[type - u32(AbstractType::flag)];
        return;
    }
    out += "type ";
    append_number(out, printer_.type_index(type));
}

void CodePrinter::br_table(std::string& out, const FunctionCode& code, u32 position) const {
    u32 count = imm_of(code.words[position]);
    for (u32 i = 0; i <= count; i++) {
        u64 pair = code.words[position + 1 + i / 2];
        out += i == count ? ", else " : i == 0 ? " " : ", ";
        append_number(out, position + (i % 2 ? high_of(pair) : low_of(pair)));
    }
}

// Appends the operand that a token of a pattern stands for, given what follows its percent sign.
void CodePrinter::operand(std::string& out, const FunctionCode& code, u32 position,
                          const char*& token) const {
    u64 word = code.words[position];
    bool is_later = *token == '2' || *token == '3';
    u32 at = position + (is_later ? u32(*token++ - '1') : 0);
    u64 here = code.words[at];
    u32 number = is_later ? low_of(here) : imm_of(here);
    switch (*token++) {
        case 'a': return append_slot(out, a_of(here));
        case 'b': return append_slot(out, b_of(here));
        case 'c': return append_slot(out, c_of(here));
        case 'A': return append_number(out, a_of(here));
        case 'B': return append_number(out, b_of(here));
        case 'C': return append_number(out, c_of(here));
        case 'k': return append_number(out, s16(c_of(here)));
        case 'i': return append_number(out, s32(number));
        case 'w': return append_slot(out, number);
        case 't': return append_number(out, position + number);
        case 's': return append_number(out, s64(position) + s16(a_of(word)));
        case 'l': return append_number(out, low_of(here));
        case 'h': return append_number(out, high_of(here));
        case 'X': return append_slot(out, high_of(here) & 0xffff);
        case 'V': return append_slot(out, high_of(here) >> 16);
        case 'L': return append_number(out, high_of(here) & 0xffff);
        case 'q': return append_number(out, s64(here));
        case 'v':
            append_hex(out, code.words[at + 1], 16);
            out += ' ';
            return append_hex(out, here, 16);
        case 'm': return append_number(out, low_of(here) - layout_.memories);
        case 'n': return append_number(out, high_of(here) - layout_.memories);
        case 'T': return append_number(out, low_of(here) - layout_.tables);
        case 'U': return append_number(out, high_of(here) - layout_.tables);
        case 'e': return append_number(out, low_of(here) - layout_.tags);
        case 'y': return type(out, low_of(here));
        case 'Y': return type(out, high_of(here));
        case 'S': out += storage_name(c_of(here)); return;
        case 'z': out += storage_name(low_of(here)); return;
        case 'g': return instance_word(out, number);
        case 'f': return callee(out, code, position);
        case 'F': return printer_.func(out, number - layout_.imported_funcs);
        case 'r': return printer_.func(out, number);
    }
}

void CodePrinter::instr(std::string& out, const FunctionCode& code, u32 position) const {
    CodeOp op = CodeOp(op_of(code.words[position]));
    constexpr usize name_width = 16;
    usize start = out.size();
    out += code_op_name(op);
    const char* pattern = forms[usize(op)].pattern;
    if (op == CodeOp::enter && b_of(code.words[position]) == 0) pattern = "frame %C";
    if (*pattern == '\0') return;
    out.append(std::max<usize>(name_width, out.size() - start + 1) - (out.size() - start), ' ');
    while (*pattern) {
        if (*pattern == '%') {
            operand(out, code, position, ++pattern);
        } else {
            out += *pattern++;
        }
    }
    if (op == CodeOp::br_table) br_table(out, code, position);
}

}  // namespace gpurun::translate
