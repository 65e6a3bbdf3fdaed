// The effects of each instruction: made from its row's family, or written here for those with a
// meaning of their own (abi/code.h).
#include "translate/effects.h"

#include <algorithm>

#include "abi/v128.h"
#include "base/check.h"
#include "translate/function_translator.h"
#include "translate/print.h"

namespace gpurun::translate {
namespace {

template <class T>
constexpr u32 words = sizeof(T) <= 4 ? 1 : sizeof(T) / 4;

u32 width_words(u32 flags, u32 flag) { return flags & flag ? 2 : 1; }

}  // namespace

u32 CodeEffects::function_at(u32 position) const {
    auto first = code_.entries.begin() + module_.imported_funcs;
    auto found = std::lower_bound(first, code_.entries.end(), position);
    CHECK(found != code_.entries.end() && *found == position);
    return u32(found - code_.entries.begin());
}

const wasm::FuncType& CodeEffects::tag_type(u32 instance_word) const {
    return module_.types[module_.tags[instance_word - code_.layout.tags].type].func;
}

void CodeEffects::look(u32 position, Effects& e) const {
    const u64* at = code_.words.data() + position;
    const u64 w = at[0];
    const u32 a = a_of(w), b = b_of(w), c = c_of(w);
    e.reads.clear();
    e.writes.clear();
    e.targets.clear();
    e.range = e.range_words = 0;
    e.clobbers = e.handler = Effects::none;
    e.words = code_size(w);
    e.falls_through = true;
    e.may_throw = false;
    e.callee_type = nullptr;

    auto reads = [&](u32 slot, u32 count) { e.reads.push_back({slot, count}); };
    auto writes = [&](u32 slot, u32 count) { e.writes.push_back({slot, count}); };
    auto values = [](std::vector<SlotValue>& list, u32 slot,
                     const std::vector<wasm::ValType>& types) {
        for (wasm::ValType type : types) {
            list.push_back({slot, words_of(type)});
            slot += words_of(type);
        }
    };
    auto call = [&](const wasm::FuncType& type) {
        values(e.reads, a, type.params);
        values(e.writes, a, type.results);
        e.clobbers = a;
        e.may_throw = true;
        e.callee_type = &type;
    };
    auto tail_call = [&] {
        e.range = a;
        e.range_words = b;
        e.falls_through = false;
    };
    auto goes = [&](s32 distance) { e.targets.push_back(position + u32(distance)); };
    // Reads the address of a general memory operand.
    auto address = [&] { reads(b, c ? 2 : 1); };
    // Reads and writes the three operands of a long operation, which count its progress.
    auto counted = [&](u32 flags, bool has_from) {
        reads(a, width_words(flags, width_to_64));
        reads(b, width_words(flags, width_from_64));
        reads(c, width_words(flags, width_count_64));
        writes(a, width_words(flags, width_to_64));
        if (has_from) writes(b, width_words(flags, width_from_64));
        writes(c, width_words(flags, width_count_64));
    };

    switch (CodeOp(op_of(w))) {
#define OP(name)
#define HOT(name)
#define CONTROL(name)
#define BULK(name)
#define OBJECT(name)
#define ATOMIC_OTHER(name)
#define COMPARE(name, T)    \
    case CodeOp::name:      \
        reads(b, words<T>); \
        reads(c, words<T>); \
        writes(a, 1);       \
        return;             \
    case CodeOp::br_##name: \
        reads(b, words<T>); \
        reads(c, words<T>); \
        goes(s16(a));       \
        return;
#define CMP_FLOAT(name, T) COMPARE(name, T)
#define CMP_INT(name, T)        \
    COMPARE(name, T)            \
    case CodeOp::name##_k:      \
        reads(b, words<T>);     \
        writes(a, 1);           \
        return;                 \
    case CodeOp::br_##name##_k: \
        reads(b, words<T>);     \
        goes(s16(a));           \
        return;
#define UN(name, R, A)       \
    case CodeOp::name:       \
        reads(b, words<A>);  \
        writes(a, words<R>); \
        return;
#define UN_TRAP UN
#define VEC_UN UN
#define BIN(name, R, A, B)   \
    case CodeOp::name:       \
        reads(b, words<A>);  \
        reads(c, words<B>);  \
        writes(a, words<R>); \
        return;
#define BIN_TRAP BIN
#define VEC_BIN BIN
#define BIN_INT(name, T)     \
    BIN(name, T, T, T)       \
    case CodeOp::name##_k:   \
        reads(b, words<T>);  \
        writes(a, words<T>); \
        return;
#define VEC_TERN(name, R, A, B, C)    \
    case CodeOp::name:                \
        reads(b, words<A>);           \
        reads(c, words<B>);           \
        reads(a_of(at[1]), words<C>); \
        writes(a, words<R>);          \
        return;
#define VEC_SHUFFLE(name) \
    case CodeOp::name:    \
        reads(b, 4);      \
        reads(c, 4);      \
        writes(a, 4);     \
        return;
#define LANE_GET(name, R)    \
    case CodeOp::name:       \
        reads(b, 4);         \
        writes(a, words<R>); \
        return;
#define LANE_SET(name, A)   \
    case CodeOp::name:      \
        reads(b, 4);        \
        reads(c, words<A>); \
        writes(a, 4);       \
        return;
#define LOAD(name, R, M)     \
    case CodeOp::name:       \
    case CodeOp::name##_w:   \
        reads(b, 1);         \
        writes(a, words<R>); \
        return;
#define STORE(name, A, M)   \
    case CodeOp::name:      \
    case CodeOp::name##_w:  \
        reads(b, 1);        \
        reads(a, words<A>); \
        return;
#define LOAD_X(name, R, M)   \
    case CodeOp::name##_x:   \
        address();           \
        writes(a, words<R>); \
        return;
#define STORE_X(name, A, M) \
    case CodeOp::name##_x:  \
        address();          \
        reads(a, words<A>); \
        return;
#define VEC_LOAD(name, M) \
    case CodeOp::name:    \
        address();        \
        writes(a, 4);     \
        return;
#define VEC_STORE(name) \
    case CodeOp::name:  \
        address();      \
        reads(a, 4);    \
        return;
#define VEC_LOAD_LANE(name, M)          \
    case CodeOp::name:                  \
        address();                      \
        reads(high_of(at[1]) >> 16, 4); \
        writes(a, 4);                   \
        return;
#define VEC_STORE_LANE(name, M) \
    case CodeOp::name:          \
        address();              \
        reads(a, 4);            \
        return;
#define ATOMIC_LOAD(name, V, M) \
    case CodeOp::name:          \
        address();              \
        writes(a, words<V>);    \
        return;
#define ATOMIC_STORE(name, V, M) \
    case CodeOp::name:           \
        address();               \
        reads(a, words<V>);      \
        return;
#define ATOMIC_RMW(name, V, M, f)                 \
    case CodeOp::name:                            \
        address();                                \
        reads(high_of(at[1]) & 0xffff, words<V>); \
        writes(a, words<V>);                      \
        return;
#define ATOMIC_CMPXCHG(name, V, M)                \
    case CodeOp::name:                            \
        address();                                \
        reads(high_of(at[1]) & 0xffff, words<V>); \
        reads(high_of(at[1]) >> 16, words<V>);    \
        writes(a, words<V>);                      \
        return;
#include "abi/code_ops.def"
#undef OP
#undef COMPARE

        case CodeOp::halt:
        case CodeOp::unreachable:
        case CodeOp::system:  // of no module's functions
        case CodeOp::count: e.falls_through = false; return;
        case CodeOp::ret: {
            // Results are in slots from 0 on; the caller knows the function and adds them.
            e.falls_through = false;
            return;
        }
        case CodeOp::ret_32:
        case CodeOp::ret_64:
            reads(b, CodeOp(op_of(w)) == CodeOp::ret_32 ? 1 : 2);
            e.falls_through = false;
            return;
        case CodeOp::enter:
        case CodeOp::charge:
        case CodeOp::try_end:
        case CodeOp::data_drop:
        case CodeOp::elem_drop:
        case CodeOp::atomic_fence: return;
        case CodeOp::br:
            goes(s32(imm_of(w)));
            e.falls_through = false;
            return;
        case CodeOp::br_z:
        case CodeOp::br_nz:
            reads(a, 1);
            goes(s32(imm_of(w)));
            return;
        case CodeOp::br_table:
            reads(a, 1);
            for (u32 i = 0; i <= imm_of(w); i++)
                goes(s32(i & 1 ? high_of(at[1 + i / 2]) : low_of(at[1 + i / 2])));
            e.falls_through = false;
            return;

        case CodeOp::call: return call(module_.func_type(function_at(position + imm_of(w))));
        case CodeOp::call_import:
            return call(module_.func_type(imm_of(w) - code_.layout.imported_funcs));
        case CodeOp::call_indirect:
            call(module_.types[high_of(at[1])].func);
            reads(b, c ? 2 : 1);
            return;
        case CodeOp::call_ref:
            call(module_.types[high_of(at[1])].func);
            reads(b, 1);
            return;
        case CodeOp::return_call:
        case CodeOp::return_call_import: return tail_call();
        case CodeOp::return_call_indirect: reads(a_of(at[2]), c ? 2 : 1); return tail_call();
        case CodeOp::return_call_ref: reads(c, 1); return tail_call();

        case CodeOp::copy_32: reads(b, 1); return writes(a, 1);
        case CodeOp::copy_64: reads(b, 2); return writes(a, 2);
        case CodeOp::copy_128: reads(b, 4); return writes(a, 4);
        case CodeOp::copy_words:  // writes what it reads
            e.range = b;
            e.range_words = c;
            return;
        case CodeOp::const_32: return writes(a, 1);
        case CodeOp::const_64:
        case CodeOp::const_64_k: return writes(a, 2);
        case CodeOp::const_128: return writes(a, 4);
        case CodeOp::select_32:
        case CodeOp::select_64:
        case CodeOp::select_128: {
            u32 count = CodeOp(op_of(w)) == CodeOp::select_32   ? 1
                        : CodeOp(op_of(w)) == CodeOp::select_64 ? 2
                                                                : 4;
            reads(a_of(at[1]), 1);
            reads(b, count);
            reads(c, count);
            return writes(a, count);
        }
        case CodeOp::global_get_32: return writes(a, 1);
        case CodeOp::global_get_64: return writes(a, 2);
        case CodeOp::global_get_128: return writes(a, 4);
        case CodeOp::global_set_32: return reads(a, 1);
        case CodeOp::global_set_64: return reads(a, 2);
        case CodeOp::global_set_128: return reads(a, 4);
        case CodeOp::global_get_imported: return writes(a, b);
        case CodeOp::global_set_imported: return reads(a, b);

        // Far slots are not part of effects: they stay in the frame.
        case CodeOp::enter_far: return;
        case CodeOp::far_get_32: return writes(a, 1);
        case CodeOp::far_get_64: return writes(a, 2);
        case CodeOp::far_get_128: return writes(a, 4);
        case CodeOp::far_set_32: return reads(a, 1);
        case CodeOp::far_set_64: return reads(a, 2);
        case CodeOp::far_set_128: return reads(a, 4);
        case CodeOp::far_callee: reads(b, c ? 2 : 1); return writes(a, 1);
        case CodeOp::call_far:
            reads(b, 1);
            e.may_throw = true;
            return;

        case CodeOp::memory_size: return writes(a, 1);
        case CodeOp::memory_size_x:
        case CodeOp::table_size: return writes(a, c ? 2 : 1);
        case CodeOp::memory_grow: reads(b, c ? 2 : 1); return writes(a, c ? 2 : 1);
        case CodeOp::memory_fill:
        case CodeOp::table_fill: return counted(high_of(at[1]), false);
        case CodeOp::memory_copy:
        case CodeOp::memory_init:
        case CodeOp::table_copy:
        case CodeOp::table_init: return counted(low_of(at[2]), true);
        case CodeOp::table_get: reads(b, c ? 2 : 1); return writes(a, 1);
        case CodeOp::table_set: reads(b, c ? 2 : 1); return reads(a, 1);
        case CodeOp::table_grow: {
            u32 count = high_of(at[1]) ? 2 : 1;
            reads(b, 1);
            reads(c, count);
            return writes(a, count);
        }
        case CodeOp::elem_set: return reads(a, 1);

        case CodeOp::ref_func: return writes(a, 1);
        case CodeOp::ref_as_non_null:
        case CodeOp::ref_cast: return reads(a, 1);
        case CodeOp::ref_test:
        case CodeOp::ref_i31:
        case CodeOp::i31_get_s:
        case CodeOp::i31_get_u:
        case CodeOp::array_len:
        case CodeOp::array_new_default: reads(b, 1); return writes(a, 1);
        case CodeOp::struct_new:
            e.range = b;
            e.range_words = c;
            return writes(a, 1);
        case CodeOp::struct_new_default: return writes(a, 1);
        case CodeOp::struct_get: reads(b, 1); return writes(a, storage_words(Storage(c)));
        case CodeOp::struct_set: reads(b, 1); return reads(a, storage_words(Storage(c)));
        case CodeOp::array_new_fixed:
            e.range = b;
            e.range_words = high_of(at[1]) * storage_words(Storage(low_of(at[2])));
            return writes(a, 1);
        case CodeOp::array_check_data:
        case CodeOp::array_check_elem: reads(a, 1); return reads(b, 1);
        case CodeOp::array_get:
            reads(b, 1);
            reads(c, 1);
            return writes(a, storage_words(Storage(low_of(at[1]))));
        case CodeOp::array_set:
            reads(b, 1);
            reads(c, 1);
            return reads(a, storage_words(Storage(low_of(at[1]))));
        case CodeOp::array_fill:
            reads(a, 1);
            reads(b, 1);
            reads(c, storage_words(Storage(b_of(at[1]))));
            reads(a_of(at[1]), 1);
            writes(b, 1);
            return writes(a_of(at[1]), 1);
        case CodeOp::array_copy:
            for (u32 slot : {a, b, c, a_of(at[1]), b_of(at[1])}) reads(slot, 1);
            for (u32 slot : {b, a_of(at[1]), b_of(at[1])}) writes(slot, 1);
            return;
        case CodeOp::array_init_data:
        case CodeOp::array_init_elem:
            for (u32 slot : {a, b, c, a_of(at[1])}) reads(slot, 1);
            for (u32 slot : {b, c, a_of(at[1])}) writes(slot, 1);
            return;

        case CodeOp::try_begin: e.handler = position + imm_of(w); return;
        case CodeOp::catch_tag: goes(s32(imm_of(w))); return;
        case CodeOp::catch_values: values(e.writes, a, tag_type(imm_of(w)).params); return;
        case CodeOp::catch_ref: return writes(a, 1);
        case CodeOp::throw_tag:
            e.range = a;
            e.range_words = b;
            e.may_throw = true;
            e.falls_through = false;
            return;
        case CodeOp::throw_ref:
            reads(a, 1);
            e.may_throw = true;
            e.falls_through = false;
            return;
        case CodeOp::throw_again:
            e.may_throw = true;
            e.falls_through = false;
            return;
        case CodeOp::memory_atomic_notify:
            address();
            reads(high_of(at[1]) & 0xffff, 1);
            return writes(a, 1);
        case CodeOp::memory_atomic_wait32:
        case CodeOp::memory_atomic_wait64:
            address();
            reads(high_of(at[1]) & 0xffff,
                  CodeOp(op_of(w)) == CodeOp::memory_atomic_wait32 ? 1 : 2);
            reads(high_of(at[1]) >> 16, 2);
            return writes(a, 1);
    }
}

}  // namespace gpurun::translate
