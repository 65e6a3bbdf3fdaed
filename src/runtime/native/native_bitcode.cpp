// What generated code is made of: one inline function for each thing that it does, with the
// meaning that the interpreter gives it. Compiled to bitcode alone, which codegen takes them from.
//
// Slots, positions and instance words are numbers; positions count from the module's first
// instruction. Floats are passed as such, vectors as four words.
#include "runtime/native/native.h"
#include "runtime/vm/guest_atomics.h"
#include "runtime/vm/simd.h"

using namespace gpurun;
using namespace gpurun::rt;

#define NATIVE extern "C" [[gnu::always_inline, gnu::used]] inline

namespace {

using Words = u32 __attribute__((vector_size(16)));

// A vector as generated code has it, and as the runtime has it.
template <class T>
struct Passed {
    using Type = T;
};
template <>
struct Passed<V128> {
    using Type = Words;
};
template <class T>
using PassedAs = typename Passed<T>::Type;

template <class T>
[[gnu::always_inline]] inline T take(PassedAs<T> value) {
    return __builtin_bit_cast(T, value);
}
template <class T>
[[gnu::always_inline]] inline PassedAs<T> pass(T value) {
    return __builtin_bit_cast(PassedAs<T>, value);
}

}  // namespace

// Declared, so that generated code can call them.
#define NATIVE_CALL(name) [[gnu::used]] const auto keep_##name = &name;
namespace {
#include "abi/native_calls.def"
}

// ---- frames ------------------------------------------------------------------------

NATIVE u32 native_get_32(StackWord* fp, u32 slot) { return get<u32>(Slots{fp}, slot); }
NATIVE u64 native_get_64(StackWord* fp, u32 slot) { return get<u64>(Slots{fp}, slot); }
NATIVE Words native_get_128(StackWord* fp, u32 slot) { return pass(get<V128>(Slots{fp}, slot)); }
NATIVE void native_set_32(StackWord* fp, u32 slot, u32 value) { set(Slots{fp}, slot, value); }
NATIVE void native_set_64(StackWord* fp, u32 slot, u64 value) { set(Slots{fp}, slot, value); }
NATIVE void native_set_128(StackWord* fp, u32 slot, Words value) {
    set(Slots{fp}, slot, take<V128>(value));
}
NATIVE StackWord* native_slot(StackWord* fp, u32 slot) { return word_at(Slots{fp}, slot).first; }
NATIVE StackWord* native_below(StackWord* rp, u32 words) { return below(Slots{rp}, words).first; }

// What `enter` checks, and whether there is time and room on the hardware's stack for a call.
NATIVE bool native_has_room(StackWord* fp, StackWord* rp, u32 needed) {
    return distance(Slots{fp}, Slots{rp}) >= s64(needed);
}
NATIVE bool native_has_stack(const NativeContext* n) { return is_above(n->stack_limit); }

// The record of a handler at rp.
NATIVE void native_handler(NativeContext* n, StackWord* fp, StackWord* rp, u32 position) {
    word(Slots{rp}, record_pc) = (n->code + position) | handler_bit;
    word(Slots{rp}, record_fp) = index_of(*n->process, Slots{fp});
    word(Slots{rp}, record_instance) = index_of(n->process->words, n->instance);
}
// Of a function that goes on in the middle, with handlers open: where its caller's record is.
NATIVE void native_set_rp(NativeContext* n, StackWord* rp) {
    word(n->thread, thread_rp) = index_of(*n->process, Slots{rp});
}

// ---- the context -------------------------------------------------------------------

NATIVE const void* native_call_at(const NativeContext* n, u32 number) { return n->calls[number]; }
// By what is done, or by the clock.
NATIVE s64 native_quantum(const NativeContext* n) { return n->time.quantum; }
NATIVE void native_set_quantum(NativeContext* n, s64 quantum) { n->time.quantum = quantum; }
NATIVE u32 native_deadline(const NativeContext* n) { return n->time.deadline; }
NATIVE bool native_is_late(u32 deadline) { return s32(short_clock() - deadline) >= 0; }
NATIVE s64 native_after_call(s64 quantum) { return quantum - call_cost; }
NATIVE u8* native_memory(const NativeContext* n) { return n->memory_base; }
NATIVE u64 native_memory_size(const NativeContext* n) { return n->memory_size; }
NATIVE u32 native_pages(u64 size) { return u32(size >> page_bits); }
NATIVE u32 native_entry(const NativeContext* n) { return n->entry; }
NATIVE void native_set_entry(NativeContext* n, u32 entry) { n->entry = entry; }
NATIVE u32 native_pc(const NativeContext* n) { return n->pc; }
NATIVE void native_add_dirty(NativeContext* n, u32 dirty) { n->dirty |= dirty; }

// False: there is not enough, and none was taken.
NATIVE bool native_charge(NativeContext* n, u32 units) {
    s64 fuel = get<s64>(n->thread, thread_fuel) - s64(units);
    if (fuel < 0) return false;
    set<s64>(n->thread, thread_fuel, fuel);
    return true;
}

// ---- calls -------------------------------------------------------------------------

// The index of the function that a table has, if it is this instance's and of the right type.
NATIVE u32 native_own_callee(const NativeContext* n, u32 table_word, u32 type, u64 index) {
    const Process& p = *n->process;
    const u32* table = word_at(p.words, word(n->instance, table_word));
    if (index >= word(table, table_length)) return ~u32{0};
    const u32 ref = word(p.words, word(table, table_elements) + u32(index));
    if (ref_instance(ref) != word(n->instance, instance_number)) return ~u32{0};
    const ModuleHeader& module = module_of(p, n->instance);
    const u32 expected = reinterpret_cast<const u32*>(p.code + module.types)[type];
    const FuncInfo callee =
        reinterpret_cast<const FuncInfo*>(p.code + module.funcs)[ref_function(ref)];
    if (callee.type != expected && !is_subtype(p, callee.type, expected)) return ~u32{0};
    return ref_function(ref);
}
NATIVE u32 native_import(const NativeContext* n, u32 at) { return word(n->instance, at); }
NATIVE u32 native_own_function(const NativeContext* n, u32 func) {
    return function_ref(word(n->instance, instance_number), func);
}
NATIVE void native_tail_own(NativeContext* n, u32 position) {
    n->tail_pc = n->code + position;
    n->tail_instance = n->instance;
}
NATIVE bool native_is_tag(const NativeContext* n, u32 tag_word) {
    const u32 exception = object_index(word(n->thread, thread_exception));
    return word(n->process->words, exception + object_type) == word(n->instance, tag_word);
}
NATIVE u32 native_exception(const NativeContext* n) { return word(n->thread, thread_exception); }

// ---- variables ---------------------------------------------------------------------

NATIVE u32 native_global_get_32(const NativeContext* n, u32 at) {
    return get<u32>(n->instance, at);
}
NATIVE u64 native_global_get_64(const NativeContext* n, u32 at) {
    return get<u64>(n->instance, at);
}
NATIVE Words native_global_get_128(const NativeContext* n, u32 at) {
    return pass(get<V128>(n->instance, at));
}
NATIVE void native_global_set_32(NativeContext* n, u32 at, u32 value) {
    set(n->instance, at, value);
}
NATIVE void native_global_set_64(NativeContext* n, u32 at, u64 value) {
    set(n->instance, at, value);
}
NATIVE void native_global_set_128(NativeContext* n, u32 at, Words value) {
    set(n->instance, at, take<V128>(value));
}
NATIVE u32 native_imported_get_32(const NativeContext* n, u32 at) {
    return get<u32>(n->process->words, word(n->instance, at));
}
NATIVE u64 native_imported_get_64(const NativeContext* n, u32 at) {
    return get<u64>(n->process->words, word(n->instance, at));
}
NATIVE Words native_imported_get_128(const NativeContext* n, u32 at) {
    return pass(get<V128>(n->process->words, word(n->instance, at)));
}
NATIVE void native_imported_set_32(NativeContext* n, u32 at, u32 value) {
    set(n->process->words, word(n->instance, at), value);
}
NATIVE void native_imported_set_64(NativeContext* n, u32 at, u64 value) {
    set(n->process->words, word(n->instance, at), value);
}
NATIVE void native_imported_set_128(NativeContext* n, u32 at, Words value) {
    set(n->process->words, word(n->instance, at), take<V128>(value));
}

// ---- memory ------------------------------------------------------------------------

// The general form: null if it is out of bounds.
NATIVE u8* native_access(const NativeContext* n, u32 memory_word, u64 address, u64 offset,
                         u32 width) {
    return access_at(memory_at(*n->process, word(n->instance, memory_word)), address, offset,
                     width);
}
NATIVE bool native_is_unaligned(const NativeContext* n, const u8* at, u32 width) {
    return u64(at - n->process->bytes) % width != 0;
}
// The piece that a store begins in; of the next it reaches the first bytes at the most. Pieces
// begin with memory 0. The shift is done in 64 bits, because dirty_shift is 63 for a memory of one
// piece.
NATIVE u32 native_dirty_shift(const NativeContext* n) { return n->dirty_shift; }
NATIVE u32 native_dirty(u32 shift, u32 address, s64 offset) {
    return pieces_are_kept ? 1u << (u64(address + offset) >> shift) : 0;
}
NATIVE u32 native_dirty_at(const NativeContext* n, const u8* at) {
    return pieces_are_kept ? 1u << u32(u64(at - n->process->bytes) >> n->dirty_shift) : 0;
}

// ---- short copies and fills of memory 0 --------------------------------------------

namespace {

inline bool is_short(u64 size, u32 address, u32 count) {
    return count <= short_bytes && u64(address) + count <= size;
}
inline void note_short(NativeContext* n, u32 address, u32 count) {
    if (!pieces_are_kept || count == 0) return;
    n->dirty |= 1u << (u64(address) >> n->dirty_shift) |
                1u << ((u64(address) + count - 1) >> n->dirty_shift);
}

}  // namespace

// Both return false, and have done nothing, if the operation is long or traps.
NATIVE bool native_short_fill(NativeContext* n, u8* memory, u64 size, u32 to, u32 value,
                              u32 count) {
    if (!is_short(size, to, count)) return false;
    note_short(n, to, count);
    const u32 word = (value & 0xff) * 0x01010101u;
    const u64 end = u64(to) + count;
#pragma clang loop unroll(disable)
    for (u64 at = to; at < end;) {
        if (at % 4 == 0 && end - at >= 4) {
            store_guest_natural<u32>(memory, at, word);
            at += 4;
        } else {
            store_guest_natural<u8>(memory, at++, u8(word));
        }
    }
    return true;
}
NATIVE bool native_short_copy(NativeContext* n, u8* memory, u64 size, u32 to, u32 from, u32 count) {
    if (!is_short(size, to, count) || !is_short(size, from, count)) return false;
    note_short(n, to, count);
    const bool has_words = (to ^ from) % 4 == 0;
    if (to <= from) {
#pragma clang loop unroll(disable)
        for (u64 done = 0; done < count;) {
            if (has_words && (to + done) % 4 == 0 && count - done >= 4) {
                store_guest_natural<u32>(memory, to + done,
                                         load_guest_natural<u32>(memory, from + done));
                done += 4;
            } else {
                store_guest_natural<u8>(memory, to + done,
                                        load_guest_natural<u8>(memory, from + done));
                done++;
            }
        }
        return true;
    }
    // From the end, since it may overlap what is read.
#pragma clang loop unroll(disable)
    for (u64 left = count; left > 0;) {
        if (has_words && (to + left) % 4 == 0 && left >= 4) {
            left -= 4;
            store_guest_natural<u32>(memory, to + left,
                                     load_guest_natural<u32>(memory, from + left));
        } else {
            left--;
            store_guest_natural<u8>(memory, to + left, load_guest_natural<u8>(memory, from + left));
        }
    }
    return true;
}

// LOAD and STORE: memory 0, by its base; name_x and the others: where native_access says.
#define OP(name)
#define LOAD(name, R, M)                                                          \
    NATIVE R native_##name(const u8* memory, u32 address, u32 offset) {           \
        return R(load_guest_compact<M>(memory, u64(address) + offset));           \
    }                                                                             \
    NATIVE R native_##name##_aligned(const u8* memory, u32 address, u32 offset) { \
        return R(load_guest_natural<M>(memory, u64(address) + offset));           \
    }
#define STORE(name, A, M)                                                               \
    NATIVE void native_##name(u8* memory, u32 address, u32 offset, A value) {           \
        store_guest_compact<M>(memory, u64(address) + offset, M(value));                \
    }                                                                                   \
    NATIVE void native_##name##_aligned(u8* memory, u32 address, u32 offset, A value) { \
        store_guest_natural<M>(memory, u64(address) + offset, M(value));                \
    }
#define LOAD_X(name, R, M) \
    NATIVE R native_##name##_x(const u8* at) { return R(load_compact<M>(at)); }
#define STORE_X(name, A, M) \
    NATIVE void native_##name##_x(u8* at, A value) { store_compact<M>(at, M(value)); }
#define VEC_LOAD(name, M) \
    NATIVE Words native_##name(const u8* at) { return pass(num::name(load_compact<M>(at))); }
#define VEC_STORE(name) \
    NATIVE void native_##name(u8* at, Words value) { store_compact<V128>(at, take<V128>(value)); }
#define VEC_LOAD_LANE(name, M)                                                \
    NATIVE Words native_##name(const u8* at, Words value, u32 lane) {         \
        return pass(num::name(take<V128>(value), load_compact<M>(at), lane)); \
    }
#define VEC_STORE_LANE(name, M)                                   \
    NATIVE void native_##name(u8* at, Words value, u32 lane) {    \
        store_compact<M>(at, num::name(take<V128>(value), lane)); \
    }
#define ATOMIC_LOAD(name, V, M) \
    NATIVE V native_##name(const u8* at) { return V(load_atomic<M>(at)); }
#define ATOMIC_STORE(name, V, M) \
    NATIVE void native_##name(u8* at, V value) { store_atomic<M>(at, M(value)); }
#define ATOMIC_RMW(name, V, M, f) \
    NATIVE V native_##name(u8* at, V value) { return V(rmw_##f<M>(at, M(value))); }
#define ATOMIC_CMPXCHG(name, V, M)                                             \
    NATIVE V native_##name(u8* at, V expected, V replacement) {                \
        return V(compare_exchange_atomic<M>(at, M(expected), M(replacement))); \
    }
#include "abi/code_ops.def"

// ---- numbers -----------------------------------------------------------------------

#define UN(name, R, A) \
    NATIVE PassedAs<R> native_##name(PassedAs<A> a) { return pass<R>(num::name(take<A>(a))); }
#define VEC_UN UN
#define BIN(name, R, A, B)                                           \
    NATIVE PassedAs<R> native_##name(PassedAs<A> a, PassedAs<B> b) { \
        return pass<R>(num::name(take<A>(a), take<B>(b)));           \
    }
#define VEC_BIN BIN
#define BIN_INT(name, T) BIN(name, T, T, T)
#define CMP_INT(name, T) BIN(name, u32, T, T)
#define CMP_FLOAT CMP_INT
#define VEC_TERN(name, R, A, B, C)                                                  \
    NATIVE PassedAs<R> native_##name(PassedAs<A> a, PassedAs<B> b, PassedAs<C> c) { \
        return pass<R>(num::name(take<A>(a), take<B>(b), take<C>(c)));              \
    }
#define VEC_SHUFFLE(name)                                                        \
    NATIVE Words native_##name(Words a, Words b, Words lanes) {                  \
        return pass(num::name(take<V128>(a), take<V128>(b), take<V128>(lanes))); \
    }
#define LANE_GET(name, R) \
    NATIVE R native_##name(Words a, u32 lane) { return num::name(take<V128>(a), lane); }
#define LANE_SET(name, A)                                    \
    NATIVE Words native_##name(Words a, A value, u32 lane) { \
        return pass(num::name(take<V128>(a), value, lane));  \
    }
// Those that may trap, in two parts: whether, and what otherwise.
#define UN_TRAP(name, R, A)                   \
    NATIVE bool native_##name##_traps(A a) {  \
        Trap trap = Trap::none;               \
        num::name(a, trap);                   \
        return trap != Trap::none;            \
    }                                         \
    NATIVE R native_##name(A a) {             \
        Trap trap = Trap::none;               \
        R value = num::name(a, trap);         \
        __builtin_assume(trap == Trap::none); \
        return value;                         \
    }
#define BIN_TRAP(name, R, A, B)                   \
    NATIVE bool native_##name##_traps(A a, B b) { \
        Trap trap = Trap::none;                   \
        num::name(a, b, trap);                    \
        return trap != Trap::none;                \
    }                                             \
    NATIVE R native_##name(A a, B b) {            \
        Trap trap = Trap::none;                   \
        R value = num::name(a, b, trap);          \
        __builtin_assume(trap == Trap::none);     \
        return value;                             \
    }
#include "abi/code_ops.def"
#undef OP
