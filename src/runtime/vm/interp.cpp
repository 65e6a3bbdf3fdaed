// The interpreter's loop and its common instructions. Everything else is called out of line,
// so that the loop stays small enough for a GPU's instruction cache and registers.
#include "runtime/vm/interp.h"

#include "runtime/vm/numeric.h"
#include "runtime/vm/out_of_line.h"

namespace gpurun::rt {
namespace {

template <bool stepping, bool sees_entries = false>
ThreadState interpret(const Process& p, u32 thread_index, s64 quantum, [[maybe_unused]] u32 enough,
                      [[maybe_unused]] const u32* entry_at = nullptr,
                      [[maybe_unused]] s64* left = nullptr) {
#if INTERPRETER_IS_THREADED
    static const void* const labels[] = {
#define OP(name) &&label_##name,
#include "abi/code_ops.def"
#undef OP
    };
#endif
    u32* const thread = word_at(p.words, thread_index);
    const u64* const code = p.code;
    Registers start = {};
    if (thread_index != 0) {
        start.pc = word(thread, thread_pc);
        start.fp = slots_at(p, word(thread, thread_fp));
        start.rp = slots_at(p, word(thread, thread_rp));
        start.dirty = word(thread, thread_dirty);
        start.instance = word_at(p.words, word(thread, thread_instance));
        load_memory_0(p, start);
    }

    // These are copies, so that nobody takes their addresses and all can stay in registers.
    u32 pc = start.pc;
    Slots fp = start.fp;
    Slots rp = start.rp;
    u32* instance = start.instance;
    u8* memory = start.memory;
    u8* base = guest_base(memory);
    u64 memory_size = start.memory_size;
    u32 dirty = start.dirty;
    Trap why = Trap::none;
    ThreadState state = ThreadState::ready;
    u64 w = 0;

#define TRAP(name)        \
    {                     \
        why = Trap::name; \
        goto trapped;     \
    }
#define SAVE_REGISTERS           \
    Registers r;                 \
    r.pc = pc;                   \
    r.fp = fp;                   \
    r.rp = rp;                   \
    r.instance = instance;       \
    r.memory = memory;           \
    r.memory_size = memory_size; \
    r.dirty = dirty;             \
    r.trap = Trap::none;         \
    r.chore.count = 0;
#define LOAD_REGISTERS           \
    pc = r.pc;                   \
    fp = r.fp;                   \
    rp = r.rp;                   \
    instance = r.instance;       \
    memory = r.memory;           \
    base = guest_base(memory);   \
    memory_size = r.memory_size; \
    dirty = r.dirty;             \
    why = r.trap;
// Executes a call within the instance, which is `length` words long, and the `enter` at its target.
#define CALL(entry, length)                                                                      \
    {                                                                                            \
        const u32 callee_at = (entry);                                                           \
        u32 enter_low, enter_high;                                                               \
        fetch(code, callee_at, enter_low, enter_high);                                           \
        rp = below(rp, record_words);                                                            \
        word(rp, record_pc) = pc + (length);                                                     \
        word(rp, record_fp) = index_of(p, fp);                                                   \
        word(rp, record_instance) = index_of(p.words, instance);                                 \
        fp = word_at(fp, A);                                                                     \
        pc = callee_at;                                                                          \
        if (distance(fp, rp) < s64(enter_high >> 16)) [[unlikely]]                               \
            goto stack_exhausted;                                                                \
        for (u32 slot = enter_low >> 16, end = slot + (enter_high & 0xffff); slot < end; slot++) \
            word(fp, slot) = 0;                                                                  \
        pc++;                                                                                    \
        GO_COUNTED                                                                               \
    }
#define A FIELD_A
#define B FIELD_B
#define C FIELD_C
#define K (s32(FIELD_IMM) >> 16)
#define IMM FIELD_IMM

    INTERPRETER_BEGIN

    CASE(halt) {
        state = ThreadState::finished;
        goto leave;
    }
    CASE(ret_32) {
        set<u32>(fp, 0, get<u32>(fp, B));
        goto back_to_caller;
    }
    CASE(ret_64) {
        set<u64>(fp, 0, get<u64>(fp, B));
        goto back_to_caller;
    }
    CASE(ret) { goto back_to_caller; }
    CASE(enter) {
        // fp and rp point into one stack: what lies between them is free.
        if (distance(fp, rp) < s64(C)) [[unlikely]]
            goto stack_exhausted;
        for (u32 slot = A, end = A + B; slot < end; slot++) word(fp, slot) = 0;
        NEXT(1)
    }
    CASE(charge) {
        s64 fuel = get<s64>(thread, thread_fuel) - s64(IMM);
        if (fuel < 0) {
            state = ThreadState::out_of_fuel;
            goto leave;
        }
        set<s64>(thread, thread_fuel, fuel);
        NEXT(1)
    }
    CASE(br){GO(s32(IMM))} CASE(br_z) {
        if (get<u32>(fp, A) == 0) GO(s32(IMM))
        NEXT(1)
    }
    CASE(br_nz) {
        if (get<u32>(fp, A) != 0) GO(s32(IMM))
        NEXT(1)
    }
    CASE(br_table) {
        u32 index = get<u32>(fp, A), count = IMM;
        if (index > count) index = count;
        u64 pair = code[pc + 1 + index / 2];
        GO(s32(index & 1 ? high_of(pair) : low_of(pair)))
    }
    CASE(call) CALL(pc + IMM, 1) CASE(call_indirect) {
        u64 operands = code[pc + 1];
        const u32* table = word_at(p.words, word(instance, low_of(operands)));
        u64 index = C ? get<u64>(fp, B) : get<u32>(fp, B);
        if (index >= word(table, table_length)) TRAP(undefined_element)
        u32 ref = word(p.words, word(table, table_elements) + u32(index));
        if (ref == 0) TRAP(uninitialized_element)
        const ModuleHeader& module = module_of(p, instance);
        u32 expected = reinterpret_cast<const u32*>(code + module.types)[high_of(operands)];
        if (ref_instance(ref) == word(instance, instance_number)) {
            FuncInfo callee =
                reinterpret_cast<const FuncInfo*>(code + module.funcs)[ref_function(ref)];
            if (callee.type != expected && !is_subtype(p, callee.type, expected))
                TRAP(indirect_call_type_mismatch)
            CALL(callee.entry, 2)
        }
        GO_OUT_OF_LINE  // another instance's
    }
    CASE(copy_32) {
        set<u32>(fp, A, get<u32>(fp, B));
        NEXT(1)
    }
    CASE(copy_64) {
        set<u64>(fp, A, get<u64>(fp, B));
        NEXT(1)
    }
    CASE(const_32) {
        set<u32>(fp, A, IMM);
        NEXT(1)
    }
    CASE(const_64) {
        set<u64>(fp, A, code[pc + 1]);
        NEXT(2)
    }
    CASE(const_64_k) {
        set<u64>(fp, A, u64(s64(s32(IMM))));
        NEXT(1)
    }
    CASE(select_32) {
        u32 condition = get<u32>(fp, a_of(code[pc + 1]));
        set<u32>(fp, A, get<u32>(fp, condition ? B : C));
        NEXT(2)
    }
    CASE(select_64) {
        u32 condition = get<u32>(fp, a_of(code[pc + 1]));
        set<u64>(fp, A, get<u64>(fp, condition ? B : C));
        NEXT(2)
    }
    CASE(global_get_32) {
        set<u32>(fp, A, get<u32>(instance, IMM));
        NEXT(1)
    }
    CASE(global_get_64) {
        set<u64>(fp, A, get<u64>(instance, IMM));
        NEXT(1)
    }
    CASE(global_set_32) {
        set<u32>(instance, IMM, get<u32>(fp, A));
        NEXT(1)
    }
    CASE(global_set_64) {
        set<u64>(instance, IMM, get<u64>(fp, A));
        NEXT(1)
    }
    CASE(memory_size) {
        set<u32>(fp, A, u32(memory_size >> page_bits));
        NEXT(1)
    }

#define OP(name)
#define UN(name, R, T)                           \
    CASE(name) {                                 \
        set<R>(fp, A, num::name(get<T>(fp, B))); \
        NEXT(1)                                  \
    }
#define UN_TRAP(name, R, T)                      \
    CASE(name) {                                 \
        R value = num::name(get<T>(fp, B), why); \
        if (why != Trap::none) goto trapped;     \
        set<R>(fp, A, value);                    \
        NEXT(1)                                  \
    }
#define BIN(name, R, S, T)                                      \
    CASE(name) {                                                \
        set<R>(fp, A, num::name(get<S>(fp, B), get<T>(fp, C))); \
        NEXT(1)                                                 \
    }
#define BIN_TRAP(name, R, S, T)                                 \
    CASE(name) {                                                \
        R value = num::name(get<S>(fp, B), get<T>(fp, C), why); \
        if (why != Trap::none) goto trapped;                    \
        set<R>(fp, A, value);                                   \
        NEXT(1)                                                 \
    }
#define BIN_INT(name, T)                                    \
    BIN(name, T, T, T)                                      \
    CASE(name##_k) {                                        \
        set<T>(fp, A, num::name(get<T>(fp, B), T(s64(K)))); \
        NEXT(1)                                             \
    }
#define BRANCH_DISTANCE s32(s16(A))
#define CMP_FLOAT(name, T)                                               \
    BIN(name, u32, T, T)                                                 \
    CASE(br_##name) {                                                    \
        if (num::name(get<T>(fp, B), get<T>(fp, C))) GO(BRANCH_DISTANCE) \
        NEXT(1)                                                          \
    }
#define CMP_INT(name, T)                                             \
    CMP_FLOAT(name, T)                                               \
    CASE(name##_k) {                                                 \
        set<u32>(fp, A, num::name(get<T>(fp, B), T(s64(K))));        \
        NEXT(1)                                                      \
    }                                                                \
    CASE(br_##name##_k) {                                            \
        if (num::name(get<T>(fp, B), T(s64(K)))) GO(BRANCH_DISTANCE) \
        NEXT(1)                                                      \
    }
#define LOAD_AT(R, M, offset, length)                       \
    {                                                       \
        u64 address = u64(get<u32>(fp, B)) + (offset);      \
        if (address + sizeof(M) > memory_size) [[unlikely]] \
            goto out_of_bounds;                             \
        set<R>(fp, A, R(load_guest<M>(base, address)));     \
        NEXT(length)                                        \
    }
#define STORE_AT(R, M, offset, length)                      \
    {                                                       \
        u64 address = u64(get<u32>(fp, B)) + (offset);      \
        if (address + sizeof(M) > memory_size) [[unlikely]] \
            goto out_of_bounds;                             \
        dirty |= 1u << u32(address >> p.dirty_shift);       \
        store_guest<M>(base, address, M(get<R>(fp, A)));    \
        NEXT(length)                                        \
    }
#define LOAD(name, R, M) \
    CASE(name) LOAD_AT(R, M, C, 1) CASE(name##_w) LOAD_AT(R, M, low_of(code[pc + 1]), 2)
#define STORE(name, R, M) \
    CASE(name) STORE_AT(R, M, C, 1) CASE(name##_w) STORE_AT(R, M, low_of(code[pc + 1]), 2)
#include "abi/code_ops.def"

#define HOT(name)
#define UN(name, R, T)
#define UN_TRAP(name, R, T)
#define BIN(name, R, S, T)
#define BIN_TRAP(name, R, S, T)
#define BIN_INT(name, T)
#define CMP_INT(name, T)
#define CMP_FLOAT(name, T)
#define LOAD(name, R, M)
#define STORE(name, R, M)
#undef OP
#define OP(name) RARE_CASE(name)
#include "abi/code_ops.def"
#undef OP
    GO_OUT_OF_LINE

    INTERPRETER_CASES_END

back_to_caller: {
    pc = word(rp, record_pc);
    fp = slots_at(p, word(rp, record_fp));
    u32* caller = word_at(p.words, word(rp, record_instance));
    rp = word_at(rp, record_words);
    if (caller != instance) [[unlikely]] {
        SAVE_REGISTERS
        r.instance = caller;
        load_memory_0(p, r);
        LOAD_REGISTERS
    }
    NEXT(0)
}
out_of_bounds: {
    // Another thread may have grown a shared memory since its size was read.
    u64 size = memory_size;
    SAVE_REGISTERS
    load_memory_0(p, r);
    LOAD_REGISTERS
    if (memory_size != size) NEXT(0)
    TRAP(memory_out_of_bounds)
}
stack_exhausted:
    // pc is at the callee's `enter`, which needs more stack than there is.
    if (!(word(p.words, process_clipped) & clipped_stack)) TRAP(call_stack_exhausted)
    state = ThreadState::outgrown;
    goto leave;
yield:
    __attribute__((unused));
    state = ThreadState::ready;
    goto leave;
trapped:
    word(thread, thread_trap) = u32(why);
    state = ThreadState::trapped;
leave:
    INTERPRETER_STEP_END
    INTERPRETER_OUT_OF_LINE {
        SAVE_REGISTERS
        Outcome outcome = run_out_of_line(p, thread, r, w);
        LOAD_REGISTERS
        INTERPRETER_CHORE(r.chore)
        if (outcome == Outcome::trap) word(thread, thread_trap) = u32(why);
        if (outcome == Outcome::trap) state = ThreadState::trapped;
        if (outcome == Outcome::leave) state = ThreadState(word(thread, thread_state));
        INTERPRETER_AFTER(outcome)
    }
    INTERPRETER_END
    if (thread_index == 0) return ThreadState::ready;
    word(thread, thread_pc) = pc;
    word(thread, thread_dirty) = dirty;
    word(thread, thread_fp) = index_of(p, fp);
    word(thread, thread_rp) = index_of(p, rp);
    word(thread, thread_instance) = index_of(p.words, instance);
    word(thread, thread_state) = u32(state);
    word(thread, thread_window) = stack_is_window;
    if constexpr (sees_entries) *left = quantum;
    return state;
}

template <bool sees_entries>
ThreadState interpret_to_entry(const Process& p, u32 thread, const u32* entry_at, s64 quantum,
                               [[maybe_unused]] s64* used) {
    if constexpr (!sees_entries) return run(p, thread, quantum_to_next);
    s64 left = quantum;
    const ThreadState state =
        interpret<false, sees_entries>(p, thread, quantum, 0, entry_at, &left);
    if (quantum - left > *used) *used = quantum - left;
    return state;
}

}  // namespace

ThreadState run_to_entry(const Process& process, u32 thread, const u32* entry_at, s64 quantum,
                         s64* used) {
    return interpret_to_entry<interpreter_sees_entries>(process, thread, entry_at, quantum, used);
}

ThreadState run(const Process& process, u32 thread, s64 quantum, u32 enough) {
    return interpret<false>(process, thread, quantum, enough);
}

ThreadState step(const Process& process, u32 thread, s64 quantum) {
    return interpret<true>(process, thread, quantum, 0);
}

}  // namespace gpurun::rt
