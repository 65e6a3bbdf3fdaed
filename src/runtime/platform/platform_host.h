// The host CPU as a platform: one lane, plain memory.
#pragma once

#include <linux/futex.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/ints.h"
#include "runtime/platform/chore.h"

namespace gpurun::rt {

inline constexpr bool stack_is_window = false;
inline constexpr bool may_be_resident = true;
inline constexpr bool lanes_are_processes = false;
inline constexpr bool memories_interleave = false;
inline constexpr u32 lane_stride = 1;

// Stacks lie among the words, so a lane has no memory of its own for them.
using StackWord = u32;
inline constexpr u32 slot_stride = lane_stride;
inline constexpr u32 lane_stack_slots = 0;
// How long a warp without work sleeps at most before it looks for some again: a worker, one of the
// few workers that look often, the mailbox warp and the clock warp.
inline constexpr u32 longest_nap_ns = 500'000, longest_eager_nap_ns = 500'000,
                     longest_mailbox_nap_ns = 500'000, longest_clock_nap_ns = 500'000;

// The native tier uses these: pieces_are_kept is true if it matters which memory was written,
// quantum_to_next is the quantum with which the interpreter runs to the next call or loop, and
// is_above() returns true if the hardware's stack has not come down to `limit`.
inline constexpr bool pieces_are_kept = false;
inline constexpr s64 quantum_to_next = 0;
// Machine code itself copies and fills up to so many bytes: for more, a call is worth it.
inline constexpr u32 short_bytes = 16;
// True if the interpreter itself looks for entries of machine code, and so runs on where there are
// none. load_entry() reads a number of their table, where machine code may appear at any time.
inline constexpr bool interpreter_sees_entries = true;
inline u32 load_entry(const u32* p) { return __atomic_load_n(p, __ATOMIC_ACQUIRE); }
// True if machine code stops by a clock, which lanes of a warp share, and not by the work it has
// done. short_clock() reads that clock, in cycles.
inline constexpr bool has_clock = false;
inline u32 short_clock() { return 0; }
inline bool is_above(const u8* limit) {
    return static_cast<const u8*>(__builtin_stack_address()) > limit;
}

[[noreturn]] inline void check_failed(const char* file, u32 line, u32 process, u32 detail) {
    fprintf(stderr, "%s:%u: check failed (process %u, %u)\n", file, line, process, detail);
    abort();
}

// Marks plain accesses of guests' memories, which the thread sanitizer skips: races of a guest's
// own accesses are no bugs of the runtime.
#define GPURUN_UNSANITIZED __attribute__((no_sanitize("thread")))
template <class T>
GPURUN_UNSANITIZED inline T load_bytes(const u8* p) {
    T value;
    memcpy(&value, p, sizeof value);
    return value;
}
template <class T>
GPURUN_UNSANITIZED inline void store_bytes(u8* p, T value) {
    memcpy(p, &value, sizeof value);
}
// These access a linear memory by its base, which is a pointer to its first byte.
inline u8* guest_base(u8* p) { return p; }
template <class T>
inline T load_guest(const u8* base, u64 address) {
    return load_bytes<T>(base + address);
}
template <class T>
inline void store_guest(u8* base, u64 address, T value) {
    store_bytes<T>(base + address, value);
}
// Platforms may have accesses for machine code and for aligned addresses. Here all are the same.
template <class T>
inline T load_compact(const u8* p) {
    return load_bytes<T>(p);
}
template <class T>
inline void store_compact(u8* p, T value) {
    store_bytes(p, value);
}
template <class T>
inline T load_guest_compact(const u8* base, u64 address) {
    return load_guest<T>(base, address);
}
template <class T>
inline T load_guest_natural(const u8* base, u64 address) {
    return load_guest<T>(base, address);
}
template <class T>
inline void store_guest_compact(u8* base, u64 address, T value) {
    store_guest<T>(base, address, value);
}
template <class T>
inline void store_guest_natural(u8* base, u64 address, T value) {
    store_guest<T>(base, address, value);
}

// Reads a word of code as two halves.
inline void fetch(const u64* code, u32 position, u32& low, u32& high) {
    low = u32(code[position]);
    high = u32(code[position] >> 32);
}

inline void do_part(const Chore& chore) {
    if (chore.count == 0) return;
    if (chore.from != nullptr) {
        memmove(chore.to, chore.from, chore.count);
    } else {
        memset(chore.to, int(chore.value), chore.count);
    }
}
// Does a guest's chore. tests/thread-sanitizer.txt has the name of this function.
inline void do_chore(const Chore& chore) { do_part(chore); }
inline void do_chores(const Chore& chore) { do_chore(chore); }

// These read and write numbers of one word or more.
template <class T>
inline T load_word(const u32* at) {
    T value;
    memcpy(&value, at, sizeof value);
    return value;
}
template <class T>
inline void store_word(u32* at, T value) {
    memcpy(at, &value, sizeof value);
}
template <class T>
inline T load_slot(const StackWord* at) {
    return load_word<T>(at);
}
template <class T>
inline void store_slot(StackWord* at, T value) {
    store_word<T>(at, value);
}

// These access system memory, which all processes share.
template <class T>
inline T load_shared(const T* p) {
    return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}
template <class T>
inline void store_shared(T* p, T value) {
    __atomic_store_n(p, value, __ATOMIC_RELEASE);
}
// Elsewhere release_fence() or atomic_fence() orders what store_released() stores. The thread
// sanitizer does not see fences, so here each of these stores is a release.
inline void release_fence() {}
inline void acquire_fence() { __atomic_thread_fence(__ATOMIC_ACQUIRE); }
template <class T>
inline void store_released(T* p, T value) {
    store_shared(p, value);
}
template <class T>
inline T compare_exchange(T* p, T expected, T value) {
    __atomic_compare_exchange_n(p, &expected, value, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    return expected;
}
template <class T>
inline T compare_exchange_acquire(T* p, T expected, T value) {
    __atomic_compare_exchange_n(p, &expected, value, false, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE);
    return expected;
}
template <class T>
inline T compare_exchange_release(T* p, T expected, T value) {
    __atomic_compare_exchange_n(p, &expected, value, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
    return expected;
}
inline void prefetch(const void*) {}
// Acquires, as the atomic_fence() that follows does elsewhere: the thread sanitizer does not see
// fences.
template <class T>
inline T compare_exchange_relaxed(T* p, T expected, T value) {
    return compare_exchange_acquire(p, expected, value);
}
template <class T>
inline T fetch_add(T* p, T value) {
    return __atomic_fetch_add(p, value, __ATOMIC_ACQ_REL);
}
template <class T>
inline T exchange(T* p, T value) {
    return __atomic_exchange_n(p, value, __ATOMIC_ACQ_REL);
}
template <class T>
inline T load_relaxed(const T* p) {
    return __atomic_load_n(p, __ATOMIC_RELAXED);
}
template <class T>
inline void store_relaxed(T* p, T value) {
    __atomic_store_n(p, value, __ATOMIC_RELAXED);
}
// Reads a word that may belong to somebody else by now, who may be writing it. The caller finds
// out, and then ignores the value.
GPURUN_UNSANITIZED inline u32 load_stale(const u32* p) {
    return *static_cast<const volatile u32*>(p);
}
// These access memory that the host's side of the mailbox sees too.
template <class T>
inline T load_mapped(const T* p) {
    return load_shared(p);
}
template <class T>
inline void store_mapped(T* p, T value) {
    store_shared(p, value);
}
// Lets other threads of this core run, in a loop that waits for one of them.
inline void pause() { sched_yield(); }
inline void back_off(u32) { pause(); }
inline void give_way(u32) {}
inline void sleep_ns(u32 ns) {
    timespec time{0, ns};
    nanosleep(&time, nullptr);
}

// A warp has one lane here.
inline constexpr u32 warp_lanes = 1;
inline u32 lane_id() { return 0; }
inline u32 ballot(bool value) { return value; }
template <class T>
inline T shuffle(T value, u32) {
    return value;
}
inline void sync_warp() {}
inline u32 popcount(u32 mask) { return u32(__builtin_popcount(mask)); }
inline u32 lowest(u32 mask) { return u32(__builtin_ctz(mask)); }
// Calls `f` on one lane after another of those that came here together. Lanes that take a lock
// have to, since one of them cannot wait for another of its warp.
template <class F>
inline void one_by_one(F f) {
    f();
}

inline void copy_system(u8* to, const u8* from, u64 count) { memmove(to, from, count); }
inline u64 clock_ns() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return u64(now.tv_sec) * 1'000'000'000 + u64(now.tv_nsec);
}
inline u32 lane_number() { return 0; }
// Returns which of the heap's free lists to use: each thread has another one.
inline u32 lane_shard() {
    static u32 threads = 0;
    static thread_local const u32 shard = __atomic_fetch_add(&threads, 1, __ATOMIC_RELAXED);
    return shard;
}

// Wakes the host, whose thread sleeps on the bell in this very process.
inline void ring_bell(u32* bell) {
    __atomic_fetch_add(bell, 1, __ATOMIC_RELEASE);  // pairs with CpuMachineRunner::wait
    syscall(SYS_futex, bell, FUTEX_WAKE_PRIVATE, ~0u >> 1, nullptr, nullptr, 0);
}

template <class T>
inline T atomic_load(const u8* p) {
    return __atomic_load_n(reinterpret_cast<const T*>(p), __ATOMIC_SEQ_CST);
}
template <class T>
inline void atomic_store(u8* p, T value) {
    __atomic_store_n(reinterpret_cast<T*>(p), value, __ATOMIC_SEQ_CST);
}
#define GPURUN_RMW(name, builtin)                                         \
    template <class T>                                                    \
    inline T atomic_rmw_##name(u8* p, T value) {                          \
        return builtin(reinterpret_cast<T*>(p), value, __ATOMIC_SEQ_CST); \
    }
GPURUN_RMW(add, __atomic_fetch_add)
GPURUN_RMW(sub, __atomic_fetch_sub)
GPURUN_RMW(and, __atomic_fetch_and)
GPURUN_RMW(or, __atomic_fetch_or)
GPURUN_RMW(xor, __atomic_fetch_xor)
GPURUN_RMW(xchg, __atomic_exchange_n)
#undef GPURUN_RMW
template <class T>
inline T atomic_cmpxchg(u8* p, T expected, T replacement) {
    __atomic_compare_exchange_n(reinterpret_cast<T*>(p), &expected, replacement, false,
                                __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    return expected;
}
inline void atomic_fence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

}  // namespace gpurun::rt

// The interpreter is threaded: every instruction jumps to the label of the next one.
#define INTERPRETER_IS_THREADED 1
#define INTERPRETER_BEGIN DISPATCH
#define INTERPRETER_CASES_END
#define INTERPRETER_STEP_END goto done;
#define INTERPRETER_OUT_OF_LINE \
    out_of_line:
#define INTERPRETER_CHORE(chore) do_chore(chore);
#define INTERPRETER_AFTER(outcome)                                         \
    {                                                                      \
        if (outcome == Outcome::next) NEXT(0)                              \
        if constexpr (!stepping) {                                         \
            if (outcome == Outcome::chunk) quantum -= chunk_cost(r.chore); \
        }                                                                  \
        if (outcome <= Outcome::chunk) GO_COUNTED                          \
        goto done;                                                         \
    }
#define INTERPRETER_END \
    done:
#define CASE(name) label_##name:
#define RARE_CASE(name) label_##name:
#define GO_OUT_OF_LINE goto out_of_line;
#define FIELD_A a_of(w)
#define FIELD_B b_of(w)
#define FIELD_C c_of(w)
#define FIELD_IMM imm_of(w)
#define DISPATCH                            \
    {                                       \
        if constexpr (stepping) {           \
            if (quantum-- <= 0) goto yield; \
        }                                   \
        w = code[pc];                       \
        goto* labels[op_of(w)];             \
    }
#define NEXT(n)    \
    {              \
        pc += (n); \
        DISPATCH   \
    }
// Leaves the interpreter if machine code can go on here.
#define STOP_AT_ENTRY                                        \
    {                                                        \
        if constexpr (sees_entries) {                        \
            if (load_entry(&entry_at[pc]) != 0) [[unlikely]] \
                goto yield;                                  \
        }                                                    \
    }
// Goes on at pc after a call, or with another step of a long operation. Takes a fixed amount off
// the quantum for the callee's code or the step.
#define GO_COUNTED                        \
    {                                     \
        if constexpr (!stepping) {        \
            quantum -= 128;               \
            if (quantum < 0) [[unlikely]] \
                goto yield;               \
        }                                 \
        STOP_AT_ENTRY                     \
        DISPATCH                          \
    }
// Goes to pc + distance. A jump backward or to itself takes the words of the loop off the quantum.
#define GO(distance)                                                  \
    {                                                                 \
        const s32 go_distance = (distance);                           \
        pc += u32(go_distance);                                       \
        if constexpr (!stepping) {                                    \
            quantum += (go_distance - 1) & ((go_distance - 1) >> 31); \
            if (quantum < 0) [[unlikely]]                             \
                goto yield;                                           \
        }                                                             \
        if (go_distance <= 0) STOP_AT_ENTRY                           \
        DISPATCH                                                      \
    }
