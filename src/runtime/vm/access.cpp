// Executes loads and stores in their general form: any memory, 64-bit addresses and offsets,
// vectors, atomics.
#include "runtime/machine/wait.h"
#include "runtime/machine/waiting.h"
#include "runtime/memory/state.h"
#include "runtime/vm/guest_atomics.h"
#include "runtime/vm/simd.h"

namespace gpurun::rt {
namespace {

u64 address_of(const Registers& r, u64 w) {
    return c_of(w) ? get<u64>(r.fp, b_of(w)) : get<u32>(r.fp, b_of(w));
}

// Returns where an access of `width` bytes goes, or null if it is out of bounds.
u8* access_at(const Process& p, const Registers& r, u64 w, u64 width) {
    return access_at(memory_at(p, word(r.instance, low_of(p.code[r.pc + 1]))), address_of(r, w),
                     p.code[r.pc + 2], width);
}

Outcome advance(Registers& r) {
    r.pc += 3;
    return Outcome::next;
}

// Executes memory.atomic.wait: blocks only if the value is still the expected one.
template <class T>
Outcome atomic_wait(const Process& p, u32* thread, Registers& r, u64 w, u8* at) {
    u32 slots = high_of(p.code[r.pc + 1]);
    const u32* memory = word_at(p.words, word(r.instance, low_of(p.code[r.pc + 1])));
    if (!(word(memory, memory_flags) & memory_is_shared))
        return trap(r, Trap::expected_shared_memory);
    if (load_atomic<T>(at) != get<T>(r.fp, slots & 0xffff)) {
        word(r.fp, a_of(w)) = wait_not_equal;
        return advance(r);
    }
    word(thread, thread_wait_result) = index_of(p, r.fp) + a_of(w);
    set<u64>(thread, thread_wait_address, u64(at - p.bytes));
    word(thread, thread_wait_width) = sizeof(T);
    set<u64>(thread, thread_wait_value, u64(get<T>(r.fp, slots & 0xffff)));
    begin_wait(thread, ThreadState::waiting, wait_end(p, get<s64>(r.fp, slots >> 16)));
    r.pc += 3;
    return Outcome::leave;
}

// Wakes threads of this process that wait at `at`, at most `limit`.
u32 atomic_notify(const Process& p, u8* at, u32 limit) {
    u32 woken = 0;
    if (has_machine(p)) {
        const Machine& m = machine_of(p);
        const u32 process = m.task(word(p.words, process_task)).process;
        const u64 key = wait_key(WaitFor::memory, process, u64(at - p.bytes));
        one_by_one([&] { woken = wake(m, key, limit); });
        return woken;
    }
    for (u32 index = word(p.words, process_threads); index != 0 && woken < limit;
         index = word(p.words, index + thread_next)) {
        u32* thread = word_at(p.words, index);
        if (ThreadState(word(thread, thread_state)) != ThreadState::waiting) continue;
        if (get<u64>(thread, thread_wait_address) != u64(at - p.bytes)) continue;
        finish_wait(p, thread, wait_woken);
        woken++;
    }
    return woken;
}

}  // namespace

#define AT(width)                       \
    u8* at = access_at(p, r, w, width); \
    if (at == nullptr) return trap(r, Trap::memory_out_of_bounds);
#define AT_TO_WRITE(width) \
    AT(width)              \
    mark_dirty(p, r, at, width);
// Traps on unaligned accesses before it looks at bounds: the reference interpreter calls an access
// that is both unaligned.
#define AT_ALIGNED(width)                                     \
    if ((address_of(r, w) + p.code[r.pc + 2]) % (width) != 0) \
        return trap(r, Trap::unaligned_atomic);               \
    AT(width)
#define AT_ALIGNED_TO_WRITE(width) \
    AT_ALIGNED(width)              \
    mark_dirty(p, r, at, width);

Outcome run_access(const Process& p, u32* thread, Registers& r, u64 w) {
    u32 a = a_of(w), extra = high_of(p.code[r.pc + 1]);
    switch (CodeOp(op_of(w))) {
#define OP(name)
#define LOAD_X(name, R, M)                     \
    case CodeOp::name##_x: {                   \
        AT(sizeof(M))                          \
        set<R>(r.fp, a, R(load_bytes<M>(at))); \
        return advance(r);                     \
    }
#define STORE_X(name, A, M)                     \
    case CodeOp::name##_x: {                    \
        AT_TO_WRITE(sizeof(M))                  \
        store_bytes<M>(at, M(get<A>(r.fp, a))); \
        return advance(r);                      \
    }
#define VEC_LOAD(name, M)                                 \
    case CodeOp::name: {                                  \
        AT(sizeof(M))                                     \
        set<V128>(r.fp, a, num::name(load_bytes<M>(at))); \
        return advance(r);                                \
    }
#define VEC_STORE(name)                            \
    case CodeOp::name: {                           \
        AT_TO_WRITE(sizeof(V128))                  \
        store_bytes<V128>(at, get<V128>(r.fp, a)); \
        return advance(r);                         \
    }
// The extra word has the lane in its low half and the slot of the vector in its high half.
#define VEC_LOAD_LANE(name, M)                                               \
    case CodeOp::name: {                                                     \
        AT(sizeof(M))                                                        \
        V128 v = get<V128>(r.fp, extra >> 16);                               \
        set<V128>(r.fp, a, num::name(v, load_bytes<M>(at), extra & 0xffff)); \
        return advance(r);                                                   \
    }
#define VEC_STORE_LANE(name, M)                                            \
    case CodeOp::name: {                                                   \
        AT_TO_WRITE(sizeof(M))                                             \
        store_bytes<M>(at, num::name(get<V128>(r.fp, a), extra & 0xffff)); \
        return advance(r);                                                 \
    }
#define ATOMIC_LOAD(name, V, M)                 \
    case CodeOp::name: {                        \
        AT_ALIGNED(sizeof(M))                   \
        set<V>(r.fp, a, V(load_atomic<M>(at))); \
        return advance(r);                      \
    }
#define ATOMIC_STORE(name, V, M)                 \
    case CodeOp::name: {                         \
        AT_ALIGNED_TO_WRITE(sizeof(M))           \
        store_atomic<M>(at, M(get<V>(r.fp, a))); \
        return advance(r);                       \
    }
#define ATOMIC_RMW(name, V, M, f)                  \
    case CodeOp::name: {                           \
        AT_ALIGNED_TO_WRITE(sizeof(M))             \
        M value = M(get<V>(r.fp, extra & 0xffff)); \
        set<V>(r.fp, a, V(rmw_##f<M>(at, value))); \
        return advance(r);                         \
    }
// Compares as many bytes of the expected value as the access has, like the value that is stored.
#define ATOMIC_CMPXCHG(name, V, M)                                                 \
    case CodeOp::name: {                                                           \
        AT_ALIGNED_TO_WRITE(sizeof(M))                                             \
        M expected = M(get<V>(r.fp, extra & 0xffff));                              \
        M replacement = M(get<V>(r.fp, extra >> 16));                              \
        set<V>(r.fp, a, V(compare_exchange_atomic<M>(at, expected, replacement))); \
        return advance(r);                                                         \
    }
#include "abi/code_ops.def"
#undef OP
        case CodeOp::memory_atomic_notify: {
            AT_ALIGNED(4)
            word(r.fp, a) = atomic_notify(p, at, word(r.fp, extra & 0xffff));
            return advance(r);
        }
        case CodeOp::memory_atomic_wait32: {
            AT_ALIGNED(4)
            return atomic_wait<u32>(p, thread, r, w, at);
        }
        case CodeOp::memory_atomic_wait64: {
            AT_ALIGNED(8)
            return atomic_wait<u64>(p, thread, r, w, at);
        }
        default: {  // atomic_fence
            atomic_fence();
            r.pc += 1;
            return Outcome::next;
        }
    }
}

}  // namespace gpurun::rt
