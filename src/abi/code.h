// The interpreter's code: what the translator writes and every device reads.
//
// Code is a sequence of 64-bit words in a code memory; a position is a word's number there.
// An instruction is one word {op, a, b, c} of 16-bit fields, low field first, followed by up
// to two more words (more for br_table). a, b and c name slots of the frame unless said
// otherwise; `imm` is b and c read as one 32-bit number. Distances count words from the
// instruction's own position. A slot is 32 bits: i64 and f64 take two slots, low half first,
// v128 four; references take one.
//
//   halt                      the thread has finished
//   ret                       results stand in slots 0…; back to the caller
//   ret_32, ret_64            slot 0 = b, then ret
//   enter a b c               first of every function: zero b slots from a on; the frame and
//                             its records need c slots
//   charge imm                take imm units of fuel
//   br imm                    go imm words on
//   br_z, br_nz a imm         the same if slot a is (not) zero
//   br_table a imm            imm distances and a default follow, two to a word, as s32
//   call a imm                call the function imm words away; its slot 0 is slot a
//   call_import a imm         call the function reference in instance word imm
//   call_indirect a b c       index in b (64-bit if c); word 2: table, type
//   call_ref a b              call the reference in b; word 2, high: type
//   return_call* a b          the same in place of the caller, with b argument slots from a
//     return_call             word 2, low: distance
//     return_call_import      word 2, low: instance word
//     return_call_indirect c  word 2: table, type; word 3, field a: index slot
//     return_call_ref c       reference in c
//   copy_* a b                a = b
//   copy_words a b c          c words from slot a on = those from slot b on; a is below b
//   const_32 a imm; const_64 a, word 2; const_64_k a imm (signed); const_128 a, words 2, 3
//   select_* a b c            a = word 2, field a ? b : c
//   global_get_* a imm        a = instance word(s) imm; global_set_*: the other way
//   global_*_imported a b     b words; word 2, low: instance word that holds the cell's index
//   memory_size a             pages of memory 0, 32-bit
//
// In a function with more locals than 16-bit fields can name, most locals are far: they lie behind
// all slots that other instructions name. Frames of its callees begin behind the far locals.
//
//   enter_far imm             second of such a function: the frame and its records need imm slots;
//                             word 2: first slot, count: zero them
//   far_get_* a imm           a = slot imm; far_set_*: the other way
//   far_callee a b c          a = the reference that call_indirect would call; word 2: table, type
//   call_far b                call the reference in b; word 2: its slot 0, type
//
// Loads and stores of memory 0 whose constant offset has more than 16 bits: word 2, low.
//
// General memory operands (the _x forms, vectors, atomics): c = 1 for 64-bit addresses;
// word 2: memory (low half); lane and vector slot, or two operand slots (high half);
// word 3: constant offset.
//
//   memory_size_x a c         word 2: memory
//   memory_grow a b c         a = grow by b
//   memory_fill a b c         address, value, count; word 2: memory, width flags
//   memory_copy a b c         to, from, count; word 2: memories; word 3: width flags
//   memory_init a b c         to, from, count; word 2: memory, segment; word 3: width flags
//   data_drop imm, elem_drop imm
//   table_get a b c           a = [b]; table_set: [b] = a; c = 1 for 64-bit; word 2: table
//   table_size a c            word 2: table
//   table_grow a b c          a = grow by c, filled with b; word 2: table, width flags
//   table_fill a b c          index, value, count; word 2: table, width flags
//   table_copy, table_init    like the memory ones
//   elem_set a                segment storage [word 2: segment, item] = a (instantiation)
//
// The operand slots of the operations with a count are their progress: they change as the
// operation goes on, and it may be interrupted and taken up again at any chunk.
//
//   ref_func a imm            reference to own function imm
//   ref_as_non_null a         trap if a is null
//   ref_test a b c            a = b is of type word 2 (c = 1: or null); ref_cast a c: trap if not
//   ref_i31 a b, i31_get_* a b
//   struct_new a b c          c words from slot b on; word 2, low: type
//   struct_new_default a c    word 2, low: type
//   struct_get a b c          a = field of b, storage c; word 2, low: word in the object
//   struct_set a b c          field of b = a
//   array_new_default a b     length b; word 2: type, storage
//   array_new_fixed a b       values from slot b on; word 2: type, count; word 3, low: storage
//   array_check_data a b      segment range [a, a + b elements) exists; word 2: segment, storage
//   array_check_elem a b      the same for elements; word 2: segment
//   array_get a b c           a = b[c]; array_set: b[c] = a; word 2, low: storage
//   array_len a b
//   array_fill a b c          array, index, value; word 2: field a = count, b = storage
//   array_copy a b c          array, index, from array; word 2: a = from index, b = count,
//                             c = storage
//   array_init_data a b c     array, index, from; word 2: a = count, b = storage;
//   array_init_elem           word 3, low: segment
//
//   try_begin imm             open a handler at distance imm; try_end imm: close imm of them
//   catch_tag imm             go imm words on unless the exception has the tag of word 2, low
//   catch_values a imm        its values, which are those of the tag imm, into slots from a on
//   catch_ref a               its reference into slot a
//   throw_tag a b             b words from slot a on; word 2, low: tag
//   throw_ref a; throw_again  the latter goes on unwinding
//
//   system imm                call imm of system_calls.def: arguments in slots from 0 on, result in
//   0
#pragma once

#include "base/ints.h"

namespace gpurun {

enum class CodeOp : u16 {
#define OP(name) name,
#include "abi/code_ops.def"
#undef OP
    count
};

inline constexpr CodeOp first_rare = CodeOp::unreachable;  // the common ones stand before it

constexpr u64 code_word(CodeOp op, u32 a = 0, u32 b = 0, u32 c = 0) {
    return u64(op) | u64(a & 0xffff) << 16 | u64(b & 0xffff) << 32 | u64(c & 0xffff) << 48;
}
constexpr u64 code_word_imm(CodeOp op, u32 a, u32 imm) {
    return u64(op) | u64(a & 0xffff) << 16 | u64(imm) << 32;
}
constexpr u64 code_pair(u32 low, u32 high) { return u64(low) | u64(high) << 32; }
constexpr u32 op_of(u64 w) { return u16(w); }
constexpr u32 a_of(u64 w) { return u16(w >> 16); }
constexpr u32 b_of(u64 w) { return u16(w >> 32); }
constexpr u32 c_of(u64 w) { return u16(w >> 48); }
constexpr u32 imm_of(u64 w) { return u32(w >> 32); }
constexpr u32 low_of(u64 w) { return u32(w); }
constexpr u32 high_of(u64 w) { return u32(w >> 32); }

// Returns how many slots the frame and the records of a function need, given its first two words.
constexpr u32 frame_slots(u64 first, u64 second) {
    return CodeOp(op_of(second)) == CodeOp::enter_far ? imm_of(second) : c_of(first);
}
// Returns true for the instructions that check whether the stack is large enough.
constexpr bool is_enter(u64 w) {
    return CodeOp(op_of(w)) == CodeOp::enter || CodeOp(op_of(w)) == CodeOp::enter_far;
}

// Width flags of operations with several address-like operands.
inline constexpr u32 width_to_64 = 1, width_from_64 = 2, width_count_64 = 4;

// How a field or element is stored. Struct fields take whole words; the elements of packed
// arrays share them.
enum class Storage : u32 { w32, w64, w128, s8, u8, s16, u16 };
constexpr u32 storage_words(Storage s) {
    return s == Storage::w64 ? 2 : s == Storage::w128 ? 4 : 1;
}
constexpr u32 storage_bytes(Storage s) {
    switch (s) {
        case Storage::w64: return 8;
        case Storage::w128: return 16;
        case Storage::s8:
        case Storage::u8: return 1;
        case Storage::s16:
        case Storage::u16: return 2;
        case Storage::w32: break;
    }
    return 4;
}

// Types in code: a local type id (index into the module's type map), or an abstract one.
enum class AbstractType : u32 {
    flag = 0x80000000,
    any = flag,
    eq,
    i31,
    struct_,
    array,
    func,
    extern_,
    exn,
    bottom,
};

}  // namespace gpurun
