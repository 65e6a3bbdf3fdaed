// Stencils of quick code: for each instruction the machine code that does what the interpreter
// does, with holes for its operands (abi/quick_holes.def). Compiled for the host to an object
// alone, from which cmake/pack_stencils.cpp takes them; codegen/quick.h puts them one after
// another.
//
// All of a thread's state is in its frames between two instructions, so that quick code can be
// entered and left at any of them.
#include "runtime/native/native.h"
#include "runtime/vm/numeric.h"
#include "runtime/vm/simd.h"

using namespace gpurun;
using namespace gpurun::rt;

// The registers that quick code has, and passes on from instruction to instruction.
#define REGISTERS \
    NativeContext *n, StackWord *fp, StackWord *rp, u8 *memory, u64 memory_size, s64 quantum
#define GO_TO(where) [[clang::musttail]] return where(n, fp, rp, memory, memory_size, quantum)
#define STENCIL(name) extern "C" [[clang::preserve_none]] NativeStatus quick_##name(REGISTERS)

typedef NativeStatus QuickFunction(REGISTERS) __attribute__((preserve_none));

extern "C" {
#define HOLE(name) extern u8 hole_##name[];
#define JUMP(name) [[clang::preserve_none]] NativeStatus jump_##name(REGISTERS);
#include "abi/quick_holes.def"
}

namespace {

// Holes as numbers. Addresses of symbols are taken to be small, and not null: where a number may be
// negative, large or 0 in a comparison, the compiler must not know what it is.
#define BYTES(name) reinterpret_cast<s64>(hole_##name)
#define WORD(name) u32(reinterpret_cast<u64>(hole_##name))
#define OPAQUE(name)                                          \
    ({                                                        \
        u32 opaque_value;                                     \
        asm("movl $hole_" #name ", %0" : "=r"(opaque_value)); \
        opaque_value;                                         \
    })
#define SIGNED(name)                                          \
    ({                                                        \
        s64 signed_value;                                     \
        asm("movq $hole_" #name ", %0" : "=r"(signed_value)); \
        signed_value;                                         \
    })
#define WIDE(name)                                             \
    ({                                                         \
        u64 wide_value;                                        \
        asm("movabsq $hole_" #name ", %0" : "=r"(wide_value)); \
        wide_value;                                            \
    })

// Constants of type T from field c.
template <class T>
inline T constant_k();
template <>
inline u32 constant_k<u32>() {
    return WORD(k);
}
template <>
inline u64 constant_k<u64>() {
    return u64(SIGNED(k));
}

template <class T>
inline T at(const void* base, s64 bytes) {
    T value;
    memcpy(&value, static_cast<const u8*>(base) + bytes, sizeof value);
    return value;
}
template <class T>
inline void put(void* base, s64 bytes, T value) {
    memcpy(static_cast<u8*>(base) + bytes, &value, sizeof value);
}
#define GET(T, field) at<T>(fp, BYTES(slot_##field))
#define SET(T, field, value) put<T>(fp, BYTES(slot_##field), value)

inline u32 index_of_slot(const NativeContext* n, const StackWord* p) {
    return u32(p - n->quick.slot_0);
}
inline QuickFunction* code_at(const u64* table, s64 bytes) {
    return reinterpret_cast<QuickFunction*>(at<u64>(table, bytes));
}

enum NativeCallNumber {
#define NATIVE_CALL(name) number_of_##name,
#include "abi/native_calls.def"
};
#define CALL_RUNTIME(name, ...) \
    reinterpret_cast<decltype(&name)>(const_cast<void*>(n->calls[number_of_##name]))(__VA_ARGS__)
// What the runtime may have changed.
#define RELOAD                    \
    memory = n->memory_base;      \
    memory_size = n->memory_size; \
    quantum = n->time.quantum;
// Goes on if the runtime has done what it was asked for. Else the thread's place is written.
#define GO_ON_OR_RETURN(status)                      \
    RELOAD                                           \
    if (status != NativeStatus::done) return status; \
    GO_TO(jump_next);

inline void push_record(NativeContext* n, const StackWord* fp, StackWord*& rp, u32 pc) {
    rp -= record_words;
    rp[record_pc] = pc;
    rp[record_fp] = index_of_slot(n, fp);
    rp[record_instance] = n->quick.instance;
}

}  // namespace

// ---- leaving, and what else is there once ------------------------------------------

STENCIL(leave) {
    n->thread[thread_pc] = n->code + n->pc;
    n->thread[thread_fp] = index_of_slot(n, fp);
    n->thread[thread_rp] = index_of_slot(n, rp);
    n->thread[thread_instance] = n->quick.instance;
    n->time.quantum = quantum;
    return n->quick.status;
}
STENCIL(leave_interpret) {
    n->pc = WORD(here);
    n->quick.status = NativeStatus::interpret;
    GO_TO(jump_leave);
}
STENCIL(leave_late) {
    n->pc = WORD(to);
    n->quick.status = NativeStatus::yield;
    GO_TO(jump_leave);
}
STENCIL(leave_late_here) {
    n->pc = WORD(here);
    n->quick.status = NativeStatus::yield;
    GO_TO(jump_leave);
}
STENCIL(leave_missed) {
    n->tail_pc = n->code + WORD(to);
    GO_TO(jump_call);
}
// The function at n->tail_pc, whose frame and record stand.
STENCIL(call_tail) {
    n->tail_instance = n->instance;
    n->time.quantum = quantum;
    const NativeStatus status = CALL_RUNTIME(native_call_tail, n, fp, rp);
    RELOAD
    if (status != NativeStatus::done) return status;
    GO_TO(jump_returned);
}
#define RETURN                                                       \
    const u32 pc = rp[record_pc];                                    \
    fp = n->quick.slot_0 + rp[record_fp];                            \
    rp += record_words;                                              \
    QuickFunction* const caller = code_at(n->quick.at, s64(pc) * 8); \
    if (caller == nullptr) {                                         \
        n->pc = pc - n->code;                                        \
        n->quick.status = NativeStatus::yield;                       \
        GO_TO(jump_leave);                                           \
    }                                                                \
    GO_TO(caller);
// Goes on behind the call whose callee the runtime has run.
STENCIL(returned) {
    if (rp == n->quick.floor) {
        n->time.quantum = quantum;
        return NativeStatus::done;
    }
    if (rp[record_instance] != n->quick.instance) {
        n->pc = rp[record_pc] - n->code;
        n->quick.instance = rp[record_instance];
        n->quick.status = NativeStatus::yield;
        fp = n->quick.slot_0 + rp[record_fp];
        rp += record_words;
        GO_TO(jump_leave);
    }
    RETURN
}

// ---- control and moves -------------------------------------------------------------

STENCIL(here) { GO_TO(jump_interpret); }  // any instruction that is left to the interpreter
STENCIL(operate) {                        // any that goes on with the next one
    n->time.quantum = quantum;
    const NativeStatus status = CALL_RUNTIME(native_operate, n, fp, rp, WORD(here));
    RELOAD
    if (status != NativeStatus::done) {
        n->quick.status = status;
        GO_TO(jump_leave);
    }
    GO_TO(jump_next);
}

// Whoever runs a callee from outside, n->quick.floor is its caller's record.
#define RETURN_WITH(...)                                                 \
    if (rp == n->quick.floor) {                                          \
        __VA_ARGS__;                                                     \
        n->time.quantum = quantum;                                       \
        return NativeStatus::done;                                       \
    }                                                                    \
    if (rp[record_instance] != n->quick.instance) GO_TO(jump_interpret); \
    __VA_ARGS__;                                                         \
    RETURN
STENCIL(ret){RETURN_WITH()} STENCIL(ret_32){
    RETURN_WITH(put<u32>(fp, 0, GET(u32, b)))} STENCIL(ret_64){
    RETURN_WITH(put<u64>(fp, 0, GET(u64, b)))}
// Checks room and time; slots are zeroed by what follows, or in a loop if they are many.
#define CHECK_ENTRY                                    \
    if (rp - fp < s64(WORD(c))) GO_TO(jump_interpret); \
    quantum -= BYTES(length);                          \
    if (quantum < 0) GO_TO(jump_late_here);
STENCIL(enter) {
    CHECK_ENTRY
    GO_TO(jump_next);
}
STENCIL(enter_many) {
    CHECK_ENTRY
    StackWord* const first = fp + WORD(a);
    for (u32 i = 0, count = OPAQUE(b); i < count; i++) first[i] = 0;
    GO_TO(jump_next);
}
STENCIL(zero_1) {
    SET(u32, a, 0);
    GO_TO(jump_next);
}
STENCIL(zero_2) {
    SET(u64, a, 0);
    GO_TO(jump_next);
}
STENCIL(zero_4) {
    SET(V128, a, V128{});
    GO_TO(jump_next);
}
STENCIL(charge) {
    const s64 fuel = get<s64>(n->thread, thread_fuel) - s64(u64(OPAQUE(imm)));
    if (fuel < 0) GO_TO(jump_interpret);
    set<s64>(n->thread, thread_fuel, fuel);
    GO_TO(jump_next);
}

// A branch forward, and one backward, which counts the words that the loop may have run.
#define TAKE GO_TO(jump_taken)
#define TAKE_BACK                      \
    quantum -= BYTES(distance);        \
    if (quantum < 0) GO_TO(jump_late); \
    GO_TO(jump_taken)
#define BRANCH(name, condition) \
    STENCIL(name) {             \
        if (condition) TAKE;    \
        GO_TO(jump_next);       \
    }                           \
    STENCIL(back_##name) {      \
        if (condition) {        \
            TAKE_BACK;          \
        }                       \
        GO_TO(jump_next);       \
    }
STENCIL(br) { TAKE; }
STENCIL(back_br) { TAKE_BACK; }
BRANCH(br_z, GET(u32, a) == 0)
BRANCH(br_nz, GET(u32, a) != 0)
STENCIL(br_table) {
    u32 index = GET(u32, a);
    const u32 count = OPAQUE(imm);
    if (index > count) index = count;
    const u64* const code = n->process->code + n->code;
    const s32 distance = reinterpret_cast<const s32*>(code + WORD(here) + 1)[index];
    const u32 to = WORD(here) + u32(distance);
    quantum += (distance - 1) & ((distance - 1) >> 31);
    // The table may not have all of the function yet.
    QuickFunction* const target = code_at(n->quick.own, s64(to) * 8);
    if (quantum < 0 || target == nullptr) {
        n->pc = to;
        n->quick.status = NativeStatus::yield;
        GO_TO(jump_leave);
    }
    GO_TO(target);
}

STENCIL(call) {
    push_record(n, fp, rp, n->code + WORD(after));
    fp = reinterpret_cast<StackWord*>(reinterpret_cast<u8*>(fp) + BYTES(slot_a));
    QuickFunction* const callee = code_at(n->quick.own, BYTES(to_bytes));
    if (callee == nullptr) GO_TO(jump_missed);
    GO_TO(callee);
}
// The other instances' functions, traps and subtypes are the runtime's affair.
#define INDIRECT_BY_RUNTIME                                                                    \
    {                                                                                          \
        n->time.quantum = quantum;                                                             \
        const NativeStatus status = CALL_RUNTIME(native_call_indirect, n, fp, rp, WORD(here)); \
        if (status == NativeStatus::here) GO_TO(jump_interpret);                               \
        GO_ON_OR_RETURN(status)                                                                \
    }
STENCIL(call_indirect) {
    const Process& p = *n->process;
    const u32* const table = p.words + at<u32>(n->instance, BYTES(low_bytes));
    const u64 index = OPAQUE(c) != 0 ? GET(u64, b) : GET(u32, b);
    if (index >= table[table_length]) GO_TO(jump_interpret);
    const u32 ref = p.words[table[table_elements] + u32(index)];
    if (ref_instance(ref) != n->instance[instance_number]) INDIRECT_BY_RUNTIME
    const ModuleHeader& module = module_of(p, n->instance);
    const u32 expected = at<u32>(p.code + module.types, BYTES(high_bytes));
    const FuncInfo callee =
        reinterpret_cast<const FuncInfo*>(p.code + module.funcs)[ref_function(ref)];
    if (callee.type != expected) INDIRECT_BY_RUNTIME
    push_record(n, fp, rp, n->code + WORD(after));
    fp = reinterpret_cast<StackWord*>(reinterpret_cast<u8*>(fp) + BYTES(slot_a));
    n->tail_pc = callee.entry;
    QuickFunction* const to = code_at(n->quick.at, s64(callee.entry) * 8);
    if (to == nullptr) GO_TO(jump_call);
    GO_TO(to);
}
STENCIL(call_import) {
    n->time.quantum = quantum - call_cost;
    const u32 ref = at<u32>(n->instance, BYTES(imm_bytes));
    const NativeStatus status = CALL_RUNTIME(native_call, n, fp, rp, ref, OPAQUE(a), WORD(after));
    GO_ON_OR_RETURN(status)
}
STENCIL(call_ref) {
    const u32 ref = GET(u32, b);
    if (ref == 0) GO_TO(jump_interpret);
    n->time.quantum = quantum - call_cost;
    const NativeStatus status = CALL_RUNTIME(native_call, n, fp, rp, ref, OPAQUE(a), WORD(after));
    GO_ON_OR_RETURN(status)
}
STENCIL(return_call) {
    const StackWord* const from = fp + OPAQUE(a);
    for (u32 i = 0, count = OPAQUE(b); i < count; i++) fp[i] = from[i];
    QuickFunction* const callee = code_at(n->quick.own, BYTES(to_bytes));
    if (callee == nullptr) GO_TO(jump_late);
    GO_TO(callee);
}
STENCIL(try_begin) {
    push_record(n, fp, rp, (n->code + WORD(to)) | handler_bit);
    GO_TO(jump_next);
}
STENCIL(try_end) {
    rp = reinterpret_cast<StackWord*>(reinterpret_cast<u8*>(rp) + BYTES(imm_records));
    GO_TO(jump_next);
}
STENCIL(catch_tag) {
    const u32 exception = object_index(n->thread[thread_exception]);
    const u32 tag = at<u32>(n->instance, BYTES(low_bytes));
    if (n->process->words[exception + object_type] != tag) TAKE;
    GO_TO(jump_next);
}

#define MOVES(bits, T)                                       \
    STENCIL(copy_##bits) {                                   \
        SET(T, a, GET(T, b));                                \
        GO_TO(jump_next);                                    \
    }                                                        \
    STENCIL(select_##bits) {                                 \
        SET(T, a, GET(u32, d) != 0 ? GET(T, b) : GET(T, c)); \
        GO_TO(jump_next);                                    \
    }                                                        \
    STENCIL(global_get_##bits) {                             \
        SET(T, a, at<T>(n->instance, BYTES(imm_bytes)));     \
        GO_TO(jump_next);                                    \
    }                                                        \
    STENCIL(global_set_##bits) {                             \
        put<T>(n->instance, BYTES(imm_bytes), GET(T, a));    \
        GO_TO(jump_next);                                    \
    }                                                        \
    STENCIL(far_get_##bits) {                                \
        SET(T, a, at<T>(fp, BYTES(imm_bytes)));              \
        GO_TO(jump_next);                                    \
    }                                                        \
    STENCIL(far_set_##bits) {                                \
        put<T>(fp, BYTES(imm_bytes), GET(T, a));             \
        GO_TO(jump_next);                                    \
    }
MOVES(32, u32)
MOVES(64, u64)
MOVES(128, V128)
STENCIL(const_32) {
    SET(u32, a, WORD(imm));
    GO_TO(jump_next);
}
STENCIL(const_64) {
    SET(u64, a, WIDE(wide));
    GO_TO(jump_next);
}
STENCIL(const_64_k) {
    SET(u64, a, u64(SIGNED(imm_signed)));
    GO_TO(jump_next);
}
STENCIL(const_128) {
    SET(u64, a, WIDE(wide));
    put<u64>(fp, BYTES(slot_a) + 8, WIDE(wide_3));
    GO_TO(jump_next);
}
STENCIL(memory_size) {
    SET(u32, a, u32(memory_size >> page_bits));
    GO_TO(jump_next);
}

// ---- numbers -----------------------------------------------------------------------

#define OP(name)
#define UN(name, R, T)                   \
    STENCIL(name) {                      \
        SET(R, a, num::name(GET(T, b))); \
        GO_TO(jump_next);                \
    }
#define VEC_UN UN
#define BIN(name, R, S, T)                          \
    STENCIL(name) {                                 \
        SET(R, a, num::name(GET(S, b), GET(T, c))); \
        GO_TO(jump_next);                           \
    }
#define VEC_BIN BIN
#define BIN_INT(name, T)                                  \
    BIN(name, T, T, T)                                    \
    STENCIL(name##_k) {                                   \
        SET(T, a, num::name(GET(T, b), constant_k<T>())); \
        GO_TO(jump_next);                                 \
    }
#define CMP_FLOAT(name, T) \
    BIN(name, u32, T, T)   \
    BRANCH(br_##name, num::name(GET(T, b), GET(T, c)))
#define CMP_INT(name, T)                                    \
    CMP_FLOAT(name, T)                                      \
    STENCIL(name##_k) {                                     \
        SET(u32, a, num::name(GET(T, b), constant_k<T>())); \
        GO_TO(jump_next);                                   \
    }                                                       \
    BRANCH(br_##name##_k, num::name(GET(T, b), constant_k<T>()))
#define UN_TRAP(name, R, T)                           \
    STENCIL(name) {                                   \
        Trap why = Trap::none;                        \
        const R value = num::name(GET(T, b), why);    \
        if (why != Trap::none) GO_TO(jump_interpret); \
        SET(R, a, value);                             \
        GO_TO(jump_next);                             \
    }
#define BIN_TRAP(name, R, S, T)                               \
    STENCIL(name) {                                           \
        Trap why = Trap::none;                                \
        const R value = num::name(GET(S, b), GET(T, c), why); \
        if (why != Trap::none) GO_TO(jump_interpret);         \
        SET(R, a, value);                                     \
        GO_TO(jump_next);                                     \
    }
#define VEC_TERN(name, R, S, T, U)                             \
    STENCIL(name) {                                            \
        SET(R, a, num::name(GET(S, b), GET(T, c), GET(U, d))); \
        GO_TO(jump_next);                                      \
    }
#define LANE_GET(name, R)                              \
    STENCIL(name) {                                    \
        SET(R, a, num::name(GET(V128, b), OPAQUE(c))); \
        GO_TO(jump_next);                              \
    }
#define LANE_SET(name, T)                                            \
    STENCIL(name) {                                                  \
        SET(V128, a, num::name(GET(V128, b), GET(T, c), OPAQUE(d))); \
        GO_TO(jump_next);                                            \
    }
#define VEC_SHUFFLE(name)                                                                     \
    STENCIL(name) {                                                                           \
        const u64 lanes[2] = {WIDE(wide), WIDE(wide_3)};                                      \
        SET(V128, a, num::name(GET(V128, b), GET(V128, c), __builtin_bit_cast(V128, lanes))); \
        GO_TO(jump_next);                                                                     \
    }

// ---- memory ------------------------------------------------------------------------

#define LOAD_AT(R, M, offset)                                         \
    {                                                                 \
        const u64 address = u64(GET(u32, b)) + u64(offset);           \
        if (address + sizeof(M) > memory_size) GO_TO(jump_interpret); \
        SET(R, a, R(load_guest<M>(memory, address)));                 \
        GO_TO(jump_next);                                             \
    }
#define STORE_AT(R, M, offset)                                        \
    {                                                                 \
        const u64 address = u64(GET(u32, b)) + u64(offset);           \
        if (address + sizeof(M) > memory_size) GO_TO(jump_interpret); \
        store_guest<M>(memory, address, M(GET(R, a)));                \
        GO_TO(jump_next);                                             \
    }
#define LOAD(name, R, M) \
    STENCIL(name) LOAD_AT(R, M, BYTES(c)) STENCIL(name##_w) LOAD_AT(R, M, OPAQUE(low))
#define STORE(name, R, M) \
    STENCIL(name) STORE_AT(R, M, BYTES(c)) STENCIL(name##_w) STORE_AT(R, M, OPAQUE(low))
// The general form: any memory, 64-bit addresses and offsets.
#define ACCESS(width)                                                                             \
    u8* const where = access_at(memory_at(*n->process, at<u32>(n->instance, BYTES(low_bytes))),   \
                                OPAQUE(c) != 0 ? GET(u64, b) : GET(u32, b), WIDE(wide_3), width); \
    if (where == nullptr) GO_TO(jump_interpret);
#define LOAD_X(name, R, M)                  \
    STENCIL(name##_x) {                     \
        ACCESS(sizeof(M))                   \
        SET(R, a, R(load_bytes<M>(where))); \
        GO_TO(jump_next);                   \
    }
#define STORE_X(name, R, M)                  \
    STENCIL(name##_x) {                      \
        ACCESS(sizeof(M))                    \
        store_bytes<M>(where, M(GET(R, a))); \
        GO_TO(jump_next);                    \
    }
#define VEC_LOAD(name, M)                              \
    STENCIL(name) {                                    \
        ACCESS(sizeof(M))                              \
        SET(V128, a, num::name(load_bytes<M>(where))); \
        GO_TO(jump_next);                              \
    }
#define VEC_STORE(name)                         \
    STENCIL(name) {                             \
        ACCESS(sizeof(V128))                    \
        store_bytes<V128>(where, GET(V128, a)); \
        GO_TO(jump_next);                       \
    }
#define VEC_LOAD_LANE(name, M)                                                  \
    STENCIL(name) {                                                             \
        ACCESS(sizeof(M))                                                       \
        SET(V128, a, num::name(GET(V128, e), load_bytes<M>(where), OPAQUE(e))); \
        GO_TO(jump_next);                                                       \
    }
#define VEC_STORE_LANE(name, M)                                    \
    STENCIL(name) {                                                \
        ACCESS(sizeof(M))                                          \
        store_bytes<M>(where, num::name(GET(V128, a), OPAQUE(e))); \
        GO_TO(jump_next);                                          \
    }
#include "abi/code_ops.def"
#undef OP
