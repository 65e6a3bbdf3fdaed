// Warps of GPURUN_LANES lanes on the host, for tests: the interpreter's loop, the chores and the
// kernels are those of a GPU, the lanes are fibers (warps.h).
#pragma once

#include <linux/futex.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <type_traits>

#include "base/ints.h"
#include "runtime/platform/platform_gang.h"
#include "warps.h"

namespace gpurun::rt {

using test::Collective;
using test::Site;
using test::Warps;

inline constexpr u32 warp_lanes = GPURUN_LANES;

// The native tier's, as in platform_nvptx.h.
inline constexpr bool pieces_are_kept = true;
inline constexpr s64 quantum_to_next = (1 << 12) - 1;
inline constexpr bool interpreter_sees_entries = false;
inline u32 load_entry(const u32* p) { return *p; }
inline constexpr bool has_clock = false;
inline u32 short_clock() { return 0; }
inline bool is_above(const u8* limit) {
    return static_cast<const u8*>(__builtin_stack_address()) > limit;
}

// ---- lanes -------------------------------------------------------------------------

inline u32 lane_id() { return Warps::current().lane(); }
inline u32 global_thread() { return Warps::current().thread(); }
inline u32 block_thread() { return lane_id(); }
inline u32 block_size() { return warp_lanes; }
inline u64 cycles() { return Warps::current().now(); }

inline u32 ballot(bool value, Site site = Site::here()) {
    return u32(Warps::current().meet(Collective::ballot, value, 0, site));
}
inline void prefetch(const void*) {}
inline u32 shuffle(u32 value, u32 from_lane, Site site = Site::here()) {
    return u32(Warps::current().meet(Collective::shuffle, value, from_lane, site));
}
inline u64 shuffle(u64 value, u32 from_lane, Site site = Site::here()) {
    return Warps::current().meet(Collective::shuffle, value, from_lane, site);
}
inline void sync_warp(Site site = Site::here()) {
    Warps::current().meet(Collective::sync, 0, 0, site);
}
inline u32 warp_min(u32 value, Site site = Site::here()) {
    return u32(Warps::current().meet(Collective::minimum, value, 0, site));
}

inline u32 popcount(u32 mask) { return u32(__builtin_popcount(mask)); }
inline u32 lowest(u32 mask) { return u32(__builtin_ctz(mask)); }
inline u32 next_lane(u32 mask, u32 lane) {
    u32 above = mask & ~((2u << lane) - 1);
    return above ? lowest(above) : mask ? lowest(mask) : 0;
}

// ---- plain memory ------------------------------------------------------------------

template <class T>
inline T* global(T* p) {
    return p;
}
inline void fetch(const u64* code, u32 position, u32& low, u32& high) {
    low = u32(code[position]);
    high = u32(code[position] >> 32);
}
template <class T>
inline T load_linear(const u8* p) {
    T value;
    memcpy(&value, p, sizeof value);
    return value;
}
template <class T>
inline void store_linear(u8* p, T value) {
    memcpy(p, &value, sizeof value);
}
inline void copy_linear(u8* to, const u8* from, u64 count) { memmove(to, from, count); }
inline void fill_linear(u8* to, u8 value, u64 count) { memset(to, value, count); }

// Numbers of one, two or four words, `stride` apart.
template <class T, class W>
inline T load_wide(const W* at, u32 stride) {
    u32 words[sizeof(T) / 4];
    for (u32 i = 0; i < sizeof(T) / 4; i++) words[i] = at[i * stride];
    T value;
    memcpy(&value, words, sizeof value);
    return value;
}
template <class T, class W>
inline void store_wide(W* at, u32 stride, T value) {
    u32 words[sizeof(T) / 4];
    memcpy(words, &value, sizeof value);
    for (u32 i = 0; i < sizeof(T) / 4; i++) at[i * stride] = words[i];
}
template <class T>
inline T load_word(const u32* at) {
    return load_wide<T>(at, lane_stride);
}
template <class T>
inline void store_word(u32* at, T value) {
    store_wide<T>(at, lane_stride, value);
}
template <class T>
inline T load_slot(const StackWord* at) {
    return load_wide<T>(at, slot_stride);
}
template <class T>
inline void store_slot(StackWord* at, T value) {
    store_wide<T>(at, slot_stride, value);
}

// ---- shared memory -----------------------------------------------------------------

// All lanes are one thread's: what is left of an atomic operation is where others may go on.
template <class T, class F>
inline T operate(const char*, T* p, bool, Site site, F update) {
    Warps::current().touch_shared(site);
    const T old = *p, now = update(old);
    if (old != now) *p = now;
    return old;
}

}  // namespace gpurun::rt

#include "../fiber/operations.h"

namespace gpurun::rt {

// What the host's thread sees too.
template <class T>
inline T load_mapped(const T* p, Site site = Site::here()) {
    Warps::current().touch_shared(site);
    return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}
template <class T>
inline void store_mapped(T* p, Same<T> value, Site site = Site::here()) {
    Warps::current().touch_shared(site);
    __atomic_store_n(p, value, __ATOMIC_RELEASE);
}
inline void ring_bell(u32* bell) {
    __atomic_fetch_add(bell, 1, __ATOMIC_RELEASE);
    syscall(SYS_futex, bell, FUTEX_WAKE_PRIVATE, ~0u >> 1, nullptr, nullptr, 0);
}
template <class T>
inline T atom_add(T* p, Same<T> value, Site site = Site::here()) {
    return fetch_add(p, value, site);
}
inline void atom_max(u64* p, u64 value, Site site = Site::here()) {
    operate("atom_max", p, true, site, [=](u64 old) { return old > value ? old : value; });
}
// Whose turn it is is nobody's to say: each lane does it when it is its own.
template <class F>
inline void one_by_one(F f) {
    f();
}
inline void pause(Site site = Site::here()) { Warps::current().give_way(site); }
inline void back_off(u32, Site site = Site::here()) { pause(site); }
inline void give_way(u32) {}
inline void sleep_ns(u32 ns, Site site = Site::here()) { Warps::current().sleep(ns, site); }

inline u64 clock_ns() { return Warps::current().now(); }
inline u32 lane_number() { return global_thread(); }
inline u32 lane_shard() { return global_thread(); }

[[noreturn]] inline void check_failed(const char* file, u32 line, u32 process, u32 detail) {
    char message[160];
    snprintf(message, sizeof message, "%s:%u: check failed (process %u, %u)", file, line, process,
             detail);
    Warps::current().fail(message);
}

}  // namespace gpurun::rt

#include "runtime/platform/interleaved.h"
#include "runtime/platform/together.h"
