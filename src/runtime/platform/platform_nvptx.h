// NVIDIA GPUs as a platform: what does not depend on how lanes share a warp. The kernel file
// includes platform_gang.h (a process a lane) or platform_solo.h (a process a warp) first: they
// say how words lie and how one instruction follows another.
#pragma once

#include "abi/check.h"
#include "base/ints.h"

namespace gpurun::rt {

// The device address of the host's CheckRecord, which the host writes here when it has loaded the
// kernel; and how many checks have failed.
extern "C" {
__attribute__((address_space(1))) u64 gpurun_check_record = 0;
__attribute__((address_space(1))) u32 gpurun_check_count = 0;
}

inline constexpr u32 warp_lanes = 32;

// The native tier uses these; platform_host.h describes them. (No other quantum has the value of
// quantum_to_next: the interpreter of the resident machine knows by it that it is to stop at calls
// and loops.)
inline constexpr bool pieces_are_kept = true;
inline constexpr s64 quantum_to_next = (1 << 12) - 1;
inline constexpr u32 short_bytes = 256;
inline constexpr bool interpreter_sees_entries = false;
inline u32 load_entry(const u32* p) { return *p; }
inline constexpr bool has_clock = true;
inline u32 short_clock() { return u32(__nvvm_read_ptx_sreg_clock()); }
inline bool is_above(const u8* limit) {
    u8 here;
    const u8* at = &here;
    asm("" : "+l"(at));  // the compiler must not assume where it points
    return at > limit;
}

// ---- lanes -------------------------------------------------------------------------

inline u32 lane_id() {
    u32 id;
    asm("mov.u32 %0, %%laneid;" : "=r"(id));
    return id;
}
inline u32 block_thread() {
    u32 id;
    asm("mov.u32 %0, %%tid.x;" : "=r"(id));
    return id;
}
inline u32 block_size() {
    u32 size;
    asm("mov.u32 %0, %%ntid.x;" : "=r"(size));
    return size;
}
inline u32 global_thread() {
    u32 block;
    asm("mov.u32 %0, %%ctaid.x;" : "=r"(block));
    return block * block_size() + block_thread();
}
// Returns the cycle count of this multiprocessor.
inline u64 cycles() {
    u64 count;
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(count));
    return count;
}

// All lanes of the warp call these together.
inline u32 ballot(bool value) {
    u32 mask;
    asm volatile("{.reg .pred p; setp.ne.u32 p, %1, 0; vote.sync.ballot.b32 %0, p, 0xffffffff;}"
                 : "=r"(mask)
                 : "r"(u32(value)));
    return mask;
}
inline u32 shuffle(u32 value, u32 from_lane) {
    u32 result;
    asm volatile("shfl.sync.idx.b32 %0, %1, %2, 31, 0xffffffff;"
                 : "=r"(result)
                 : "r"(value), "r"(from_lane));
    return result;
}
inline u64 shuffle(u64 value, u32 from_lane) {
    return u64(shuffle(u32(value), from_lane)) | u64(shuffle(u32(value >> 32), from_lane)) << 32;
}
inline void sync_warp() { asm volatile("bar.warp.sync 0xffffffff;" ::: "memory"); }

inline u32 warp_min(u32 value) {
#if GPURUN_HAS_REDUX
    u32 result;
    asm volatile("redux.sync.min.u32 %0, %1, 0xffffffff;" : "=r"(result) : "r"(value));
    return result;
#else
    for (u32 distance = 16; distance > 0; distance /= 2) {
        u32 other;
        asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 31, 0xffffffff;"
                     : "=r"(other)
                     : "r"(value), "r"(distance));
        value = other < value ? other : value;
    }
    return value;
#endif
}

inline u32 popcount(u32 mask) { return u32(__builtin_popcount(mask)); }
inline u32 lowest(u32 mask) { return u32(__builtin_ctz(mask)); }
// Returns the first lane of a mask after `lane`, going round, or 0 if the mask is empty.
inline u32 next_lane(u32 mask, u32 lane) {
    u32 above = mask & ~((2u << lane) - 1);
    return above ? lowest(above) : mask ? lowest(mask) : 0;
}

// ---- plain memory ------------------------------------------------------------------

// Returns a pointer whose type says that it points to global memory, where all of a process is:
// this spares the hardware a test with each access.
template <class T>
using Global = T __attribute__((address_space(1)));
template <class T>
inline Global<T>* global(T* p) {
    return (Global<T>*)p;
}

// These tell the compiler that a pointer is to a variable of the thread, or to global memory.
// (Functions that get a generic pointer test with each access where it points.)
template <class T>
inline T* in_stack(T* p) {
    auto* own = (T __attribute__((address_space(5)))*)p;
    asm("" : "+l"(own));
    return (T*)own;
}
template <class T>
inline T* in_device(T* p) {
    auto* there = (Global<T>*)p;
    asm("" : "+l"(there));
    return (T*)there;
}

// Reads a word of code as two halves. Code does not change while a kernel runs, but a resident
// kernel gets more code, where other things may have been before.
#if GPURUN_RESIDENT
#define CODE_LOAD "ld.global.v2.u32"
#else
#define CODE_LOAD "ld.global.nc.v2.u32"
#endif
inline void fetch(const u64* code, u32 position, u32& low, u32& high) {
    asm(CODE_LOAD " {%0, %1}, [%2];" : "=r"(low), "=r"(high) : "l"(code + position));
}

// Reads a word of code that may never be needed. The load is issued here in any case.
inline void fetch_ahead(const u64* code, u32 position, u32& low, u32& high) {
    asm volatile(CODE_LOAD " {%0, %1}, [%2];" : "=r"(low), "=r"(high) : "l"(code + position));
}

inline void prefetch(const void* p) { asm volatile("prefetch.global.L1 [%0];" ::"l"(p)); }

// These go byte by byte where the address is misaligned: the hardware faults on such accesses.
template <class T>
inline T load_linear(const u8* p) {
    if (reinterpret_cast<usize>(p) % sizeof(T) == 0) return *global(reinterpret_cast<const T*>(p));
    T value;
    u8* to = reinterpret_cast<u8*>(&value);
    for (u32 i = 0; i < sizeof(T); i++) to[i] = global(p)[i];
    return value;
}
template <class T>
inline void store_linear(u8* p, T value) {
    if (reinterpret_cast<usize>(p) % sizeof(T) == 0) {
        *global(reinterpret_cast<T*>(p)) = value;
        return;
    }
    const u8* from = reinterpret_cast<const u8*>(&value);
    for (u32 i = 0; i < sizeof(T); i++) global(p)[i] = from[i];
}

template <class T>
inline T load_natural(const u8* p) {
    return *global(reinterpret_cast<const T*>(p));
}
template <class T>
inline void store_natural(u8* p, T value) {
    *global(reinterpret_cast<T*>(p)) = value;
}

// These are for machine code, which has many accesses, and so take little code for misaligned
// addresses: they put the value together from the aligned words around it. Those are memory too,
// since its end is a multiple of 16.
inline usize address_of(const u8* p) { return reinterpret_cast<usize>(global(p)); }
template <class T>
inline T load_linear_compact(const u8* p) {
    const usize at = address_of(p);
    if (sizeof(T) == 1 || at % sizeof(T) == 0) return load_natural<T>(p);
    if constexpr (sizeof(T) <= 2) {
        return T(global(p)[0] | global(p)[1] << 8);
    } else {
        const Global<u32>* words = global(reinterpret_cast<const u32*>(p - at % 4));
        const u32 shift = u32(at % 4) * 8;
        u32 value[sizeof(T) / 4];
        for (u32 i = 0; i < sizeof(T) / 4; i++)
            value[i] = __builtin_elementwise_fshr(words[i + 1], words[i], shift);
        return __builtin_bit_cast(T, value);
    }
}
template <class T>
inline void store_linear_compact(u8* p, T value) {
    if (sizeof(T) == 1 || address_of(p) % sizeof(T) == 0) {
        store_natural(p, value);
    } else if constexpr (sizeof(T) <= 4) {
        const u8* from = reinterpret_cast<const u8*>(&value);
        for (u32 i = 0; i < sizeof(T); i++) global(p)[i] = from[i];
    } else {
        u64 parts[sizeof(T) / 8];
        __builtin_memcpy(parts, &value, sizeof(T));
        for (u64 part : parts) {
#pragma clang loop unroll(disable)
            for (u32 i = 0; i < 8; i++, part >>= 8) *global(p++) = u8(part);
        }
    }
}

// Copying and filling by one lane.
template <class T>
inline void copy_elements(u8* to, const u8* from, u64 count, bool is_backward) {
    for (u64 i = 0; i < count; i += sizeof(T)) {
        u64 at = is_backward ? count - i - sizeof(T) : i;
        *global(reinterpret_cast<T*>(to + at)) = *global(reinterpret_cast<const T*>(from + at));
    }
}
inline void copy_linear(u8* to, const u8* from, u64 count) {
    bool is_backward = to > from && to < from + count;
    usize bits = reinterpret_cast<usize>(to) | reinterpret_cast<usize>(from) | count;
    if ((bits & 7) == 0) {
        copy_elements<u64>(to, from, count, is_backward);
    } else if ((bits & 3) == 0) {
        copy_elements<u32>(to, from, count, is_backward);
    } else {
        copy_elements<u8>(to, from, count, is_backward);
    }
}
inline void fill_linear(u8* to, u8 value, u64 count) {
    if (((reinterpret_cast<usize>(to) | count) & 7) == 0) {
        u64 wide = value * 0x0101010101010101ull;
        for (u64 i = 0; i < count; i += 8) *global(reinterpret_cast<u64*>(to + i)) = wide;
    } else {
        for (u64 i = 0; i < count; i++) global(to)[i] = value;
    }
}

// These join halves to wide numbers and split them. They are in PTX because LLVM 22 writes 32-bit
// stores of 64-bit registers otherwise, which the driver's assembler gets wrong for f64.
inline u64 join(u32 low, u32 high, u64) {
    u64 value;
    asm("mov.b64 %0, {%1, %2};" : "=l"(value) : "r"(low), "r"(high));
    return value;
}
inline f64 join(u32 low, u32 high, f64) {
    f64 value;
    asm("mov.b64 %0, {%1, %2};" : "=d"(value) : "r"(low), "r"(high));
    return value;
}
inline void split(u64 value, u32& low, u32& high) {
    asm("mov.b64 {%0, %1}, %2;" : "=r"(low), "=r"(high) : "l"(value));
}
inline void split(f64 value, u32& low, u32& high) {
    asm("mov.b64 {%0, %1}, %2;" : "=r"(low), "=r"(high) : "d"(value));
}

template <class T>
struct WideOf {
    using Type = u64;
};
template <>
struct WideOf<f64> {
    using Type = f64;
};
template <class T>
using Wide = typename WideOf<T>::Type;

// These read and write numbers of one, two or four words, `stride` apart.
template <class T, class W>
inline T load_wide(const W* at, u32 stride) {
    if constexpr (sizeof(T) == 4) {
        return __builtin_bit_cast(T, u32(*at));
    } else if constexpr (sizeof(T) == 8) {
        return T(join(at[0], at[stride], Wide<T>{}));
    } else {
        return {{at[0], at[stride], at[2 * stride], at[3 * stride]}};
    }
}
template <class T, class W>
inline void store_wide(W* at, u32 stride, T value) {
    if constexpr (sizeof(T) == 4) {
        *at = __builtin_bit_cast(u32, value);
    } else if constexpr (sizeof(T) == 8) {
        u32 low, high;
        split(Wide<T>(value), low, high);
        at[0] = low;
        at[stride] = high;
    } else {
        for (u32 i = 0; i < 4; i++) at[i * stride] = value.word[i];
    }
}

template <class T>
inline T load_word(const u32* at) {
    return load_wide<T>(global(at), lane_stride);
}
template <class T>
inline void store_word(u32* at, T value) {
    store_wide<T>(global(at), lane_stride, value);
}
// These are for stacks, which may be in a memory of their own.
#if !GPURUN_RESIDENT
inline Global<u32>* stack_memory(u32* p) { return global(p); }
inline const Global<u32>* stack_memory(const u32* p) { return global(p); }
#endif
template <class W>
inline W* stack_memory(W* p) {
    return p;
}
template <class T>
inline T load_slot(const StackWord* at) {
    return load_wide<T>(stack_memory(at), slot_stride);
}
template <class T>
inline void store_slot(StackWord* at, T value) {
    store_wide<T>(stack_memory(at), slot_stride, value);
}

// ---- atomics -----------------------------------------------------------------------

// These are sequentially consistent at device scope. They are in PTX because clang drops order and
// scope.
inline void atomic_fence() { asm volatile("fence.sc.gpu;" ::: "memory"); }

inline u32 atom_add(u32* p, u32 v) {
    u32 old;
    asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], %2;"
                 : "=r"(old)
                 : "l"(p), "r"(v)
                 : "memory");
    return old;
}
inline void atom_add(u64* p, u64 v) {
    asm volatile("red.relaxed.gpu.global.add.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
}
inline void atom_max(u64* p, u64 v) {
    asm volatile("red.relaxed.gpu.global.max.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
}
// These return the value that was there. Weaker orders are for callers to whom they are enough:
// who takes something acquires what was written before it was put there, who puts something there
// releases what was written before.
#define GPURUN_COMPARE_EXCHANGE(name, order)                        \
    inline u32 name(u32* p, u32 expected, u32 value) {              \
        u32 old;                                                    \
        asm volatile("atom." order ".gpu.cas.b32 %0, [%1], %2, %3;" \
                     : "=r"(old)                                    \
                     : "l"(p), "r"(expected), "r"(value)            \
                     : "memory");                                   \
        return old;                                                 \
    }                                                               \
    inline u64 name(u64* p, u64 expected, u64 value) {              \
        u64 old;                                                    \
        asm volatile("atom." order ".gpu.cas.b64 %0, [%1], %2, %3;" \
                     : "=l"(old)                                    \
                     : "l"(p), "l"(expected), "l"(value)            \
                     : "memory");                                   \
        return old;                                                 \
    }
GPURUN_COMPARE_EXCHANGE(compare_exchange, "acq_rel")
GPURUN_COMPARE_EXCHANGE(compare_exchange_acquire, "acquire")
GPURUN_COMPARE_EXCHANGE(compare_exchange_release, "release")
GPURUN_COMPARE_EXCHANGE(compare_exchange_relaxed, "relaxed")
#undef GPURUN_COMPARE_EXCHANGE
inline u32 load_relaxed(const u32* p) {
    u32 value;
    asm volatile("ld.relaxed.gpu.u32 %0, [%1];" : "=r"(value) : "l"(p) : "memory");
    return value;
}

// These access system memory, which all processes share.
inline u32 load_shared(const u32* p) {
    u32 value;
    asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(value) : "l"(p) : "memory");
    return value;
}
inline u64 load_shared(const u64* p) {
    u64 value;
    asm volatile("ld.acquire.gpu.u64 %0, [%1];" : "=l"(value) : "l"(p) : "memory");
    return value;
}
inline void store_shared(u32* p, u32 value) {
    asm volatile("st.release.gpu.u32 [%0], %1;" ::"l"(p), "r"(value) : "memory");
}
inline u32 fetch_add(u32* p, u32 value) {
    u32 old;
    asm volatile("atom.relaxed.gpu.add.u32 %0, [%1], %2;"
                 : "=r"(old)
                 : "l"(p), "r"(value)
                 : "memory");
    return old;
}
inline u32 exchange(u32* p, u32 value) {
    u32 old;
    asm volatile("atom.acq_rel.gpu.exch.b32 %0, [%1], %2;"
                 : "=r"(old)
                 : "l"(p), "r"(value)
                 : "memory");
    return old;
}
// Reads a word that may belong to somebody else by now. The caller then ignores the value.
inline u32 load_stale(const u32* p) { return load_relaxed(p); }
inline u64 load_relaxed(const u64* p) {
    u64 value;
    asm volatile("ld.relaxed.gpu.u64 %0, [%1];" : "=l"(value) : "l"(p) : "memory");
    return value;
}
inline void store_relaxed(u32* p, u32 value) {
    asm volatile("st.relaxed.gpu.u32 [%0], %1;" ::"l"(p), "r"(value) : "memory");
}
inline void store_relaxed(u64* p, u64 value) {
    asm volatile("st.relaxed.gpu.u64 [%0], %1;" ::"l"(p), "l"(value) : "memory");
}
inline void store_shared(u64* p, u64 value) {
    asm volatile("st.release.gpu.u64 [%0], %1;" ::"l"(p), "l"(value) : "memory");
}
// Orders all that was written before the stores that follow: one fence for several words that
// others look at, instead of a release with each.
inline void release_fence() { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }
// Orders all that is read from now on behind loads before it: one fence for several words that were
// loaded relaxed.
inline void acquire_fence() { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }
template <class T>
inline void store_released(T* p, T value) {
    store_relaxed(p, value);
}
// These access memory that the host sees too.
inline u32 load_mapped(const u32* p) {
    u32 value;
    asm volatile("ld.acquire.sys.u32 %0, [%1];" : "=r"(value) : "l"(p) : "memory");
    return value;
}
inline u64 load_mapped(const u64* p) {
    u64 value;
    asm volatile("ld.acquire.sys.u64 %0, [%1];" : "=l"(value) : "l"(p) : "memory");
    return value;
}
inline void store_mapped(u32* p, u32 value) {
    asm volatile("st.release.sys.u32 [%0], %1;" ::"l"(p), "r"(value) : "memory");
}
inline void store_mapped(u64* p, u64 value) {
    asm volatile("st.release.sys.u64 [%0], %1;" ::"l"(p), "l"(value) : "memory");
}
// Wakes the host. A load and a store are enough, since only the mailbox warp writes the bell.
inline void ring_bell(u32* bell) { store_mapped(bell, load_mapped(bell) + 1); }
// Waits a moment, in a loop that waits for another warp.
inline void pause() { asm volatile("nanosleep.u32 100;" ::: "memory"); }
// Waits a moment where many may wait: longer with every turn.
inline void back_off(u32 turn) {
    asm volatile("nanosleep.u32 %0;" ::"r"(64u << (turn < 8 ? turn : 8)) : "memory");
}
// Waits after a compare_exchange that failed because others were quicker. Without it, thousands
// that try at once would keep each other from succeeding.
inline void give_way(u32 turn) { back_off(turn); }
// Sleeps; other warps run meanwhile.
inline void sleep_ns(u32 ns) { asm volatile("nanosleep.u32 %0;" ::"r"(ns) : "memory"); }

// Calls `f` on one lane after another of those that came here together. Lanes that take a lock
// have to, since one of them cannot wait for another of its warp.
template <class F>
inline void one_by_one(F f) {
    u32 mask;
    asm volatile("activemask.b32 %0;" : "=r"(mask)::"memory");
    for (u32 left = mask; left != 0; left &= left - 1) {
        if (lane_id() == lowest(left)) f();
        asm volatile("bar.warp.sync %0;" ::"r"(mask) : "memory");
    }
}

inline u64 fetch_add(u64* p, u64 value) {
    u64 old;
    asm volatile("atom.relaxed.gpu.global.add.u64 %0, [%1], %2;"
                 : "=l"(old)
                 : "l"(p), "l"(value)
                 : "memory");
    return old;
}
inline u64 clock_ns() {
    u64 ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    return ns;
}
inline u32 lane_number() { return global_thread(); }
// Returns which of the heap's free lists to use. Warps mostly serve their lanes in the same order,
// so lanes of the same number in different warps get different lists.
inline u32 lane_shard() { return global_thread() / warp_lanes + lane_id() * 16; }

[[noreturn, gnu::noinline]] inline void check_failed(const char* file, u32 line, u32 process,
                                                     u32 detail) {
    // Only the first failed check is reported. The loop of the others ends because the first one
    // ends the kernel.
    while (atom_add((u32*)&gpurun_check_count, 1) != 0) sleep_ns(100'000);
    auto* record = reinterpret_cast<volatile CheckRecord*>(u64(gpurun_check_record));
    if (record != nullptr) {
        record->line = line;
        record->process = process;
        record->detail = detail;
        record->block = global_thread() / block_size();
        record->lane = block_thread();
        for (u32 i = 0; i + 1 < sizeof record->file && file[i] != 0; i++) record->file[i] = file[i];
        asm volatile("fence.sc.sys;" ::: "memory");
        record->failed = 1;
        asm volatile("fence.sc.sys;" ::: "memory");
    }
    asm volatile("trap;");
    __builtin_unreachable();
}

// The word that an atomic access works on: for narrow accesses, the aligned word around them.
template <class T>
struct AtomicCell {
    using Word = u32;
    u32* word;
    u32 shift;
    explicit AtomicCell(u8* p)
        : word(reinterpret_cast<u32*>(reinterpret_cast<usize>(p) & ~usize{3})),
          shift(u32(reinterpret_cast<usize>(p) & 3) * 8) {}
    T extract(u32 w) const { return T(w >> shift); }
    u32 insert(u32 w, T value) const {
        u32 mask = u32(T(~T{0})) << shift;
        return (w & ~mask) | u32(value) << shift;
    }
};
template <>
struct AtomicCell<u32> {
    using Word = u32;
    u32* word;
    explicit AtomicCell(u8* p) : word(reinterpret_cast<u32*>(p)) {}
    u32 extract(u32 w) const { return w; }
    u32 insert(u32, u32 value) const { return value; }
};
template <>
struct AtomicCell<u64> {
    using Word = u64;
    u64* word;
    explicit AtomicCell(u8* p) : word(reinterpret_cast<u64*>(p)) {}
    u64 extract(u64 w) const { return w; }
    u64 insert(u64, u64 value) const { return value; }
};

// Replaces a value by update(value) and returns the old one. The loop ends because a failed
// exchange means that another lane's succeeded.
template <class T, class F>
inline T atomic_update(u8* p, F update) {
    AtomicCell<T> cell(p);
    atomic_fence();
    typename AtomicCell<T>::Word seen =
        *const_cast<volatile typename AtomicCell<T>::Word*>(cell.word);
    for (;;) {
        auto old = compare_exchange(cell.word, seen, cell.insert(seen, update(cell.extract(seen))));
        if (old == seen) {
            atomic_fence();
            return cell.extract(seen);
        }
        seen = old;
    }
}
template <class T>
inline T atomic_load(const u8* p) {
    atomic_fence();
    T value = *reinterpret_cast<const volatile T*>(p);
    atomic_fence();
    return value;
}
template <class T>
inline void atomic_store(u8* p, T value) {
    atomic_fence();
    *reinterpret_cast<volatile T*>(p) = value;
    atomic_fence();
}
#define GPURUN_RMW(name, expression)                                          \
    template <class T>                                                        \
    inline T atomic_rmw_##name(u8* p, T value) {                              \
        return atomic_update<T>(p, [value](T old) { return T(expression); }); \
    }
GPURUN_RMW(add, old + value)
GPURUN_RMW(sub, old - value)
GPURUN_RMW(and, old& value)
GPURUN_RMW(or, old | value)
GPURUN_RMW(xor, old ^ value)
GPURUN_RMW(xchg, ((void)old, value))
#undef GPURUN_RMW
template <class T>
inline T atomic_cmpxchg(u8* p, T expected, T replacement) {
    return atomic_update<T>(p, [=](T old) { return old == expected ? replacement : old; });
}

}  // namespace gpurun::rt
