// The host as a platform for the explorer: as platform_host.h, but whatever is done to shared
// memory or to a guest's by atomic instructions is a point where another actor may go on, and has
// the order and the scope that it has on a GPU.
#pragma once

#include <type_traits>

#include "explorer.h"

// Names that are defined below instead.
#define load_shared host_load_shared
#define store_shared host_store_shared
#define store_released host_store_released
#define compare_exchange host_compare_exchange
#define back_off host_back_off
#define compare_exchange_acquire host_compare_exchange_acquire
#define compare_exchange_release host_compare_exchange_release
#define compare_exchange_relaxed host_compare_exchange_relaxed
#define fetch_add host_fetch_add
#define exchange host_exchange
#define load_relaxed host_load_relaxed
#define load_stale host_load_stale
#define store_relaxed host_store_relaxed
#define load_mapped host_load_mapped
#define store_mapped host_store_mapped
#define ring_bell host_ring_bell
#define pause host_pause
#define sleep_ns host_sleep_ns
#define lane_number host_lane_number
#define lane_shard host_lane_shard
#define clock_ns host_clock_ns
#define check_failed host_check_failed
#define atomic_load host_atomic_load
#define atomic_store host_atomic_store
#define atomic_rmw_add host_atomic_rmw_add
#define atomic_rmw_sub host_atomic_rmw_sub
#define atomic_rmw_and host_atomic_rmw_and
#define atomic_rmw_or host_atomic_rmw_or
#define atomic_rmw_xor host_atomic_rmw_xor
#define atomic_rmw_xchg host_atomic_rmw_xchg
#define atomic_cmpxchg host_atomic_cmpxchg
#define atomic_fence host_atomic_fence
#define release_fence host_release_fence
#define acquire_fence host_acquire_fence
#define load_bytes host_load_bytes
#define store_bytes host_store_bytes
#define do_part host_do_part
#define copy_system host_copy_system
#include "runtime/platform/platform_host.h"
#undef load_shared
#undef store_shared
#undef store_released
#undef compare_exchange
#undef back_off
#undef compare_exchange_acquire
#undef compare_exchange_release
#undef compare_exchange_relaxed
#undef fetch_add
#undef exchange
#undef load_relaxed
#undef load_stale
#undef store_relaxed
#undef load_mapped
#undef store_mapped
#undef ring_bell
#undef pause
#undef sleep_ns
#undef lane_number
#undef lane_shard
#undef clock_ns
#undef check_failed
#undef atomic_load
#undef atomic_store
#undef atomic_rmw_add
#undef atomic_rmw_sub
#undef atomic_rmw_and
#undef atomic_rmw_or
#undef atomic_rmw_xor
#undef atomic_rmw_xchg
#undef atomic_cmpxchg
#undef atomic_fence
#undef release_fence
#undef acquire_fence
#undef load_bytes
#undef store_bytes
#undef do_part
#undef copy_system

namespace gpurun::rt {

using test::Fence;
using test::Order;
using test::Scope;
using test::Site;

[[noreturn]] inline void check_failed(const char* file, u32 line, u32 process, u32 detail) {
    // Not on the heap: whoever fails is not unwound.
    char message[80];
    snprintf(message, sizeof message, "check failed (process %u, %u)", process, detail);
    test::fail(message, {file, line});
    abort();  // outside of explorations
}

template <class T>
using Same = std::type_identity_t<T>;  // what is pointed to says which type it is

template <class T>
inline T load_by(const test::Operation& what, const T* p, Site site) {
    test::wait_turn(what, p, sizeof(T), site);
    return T(test::load(what, p, sizeof(T), site));
}
template <class T>
inline void store_by(const test::Operation& what, T* p, Same<T> value, Site site) {
    test::wait_turn(what, p, 0, site);
    test::store(what, p, sizeof(T), u64(value), site);
    test::after_write(site);
}
// `update(old)` is what is there afterwards, if `writes(old)`.
template <class T, class Writes, class Update>
inline T update_by(const test::Operation& what, T* p, Site site, Writes writes, Update update) {
    test::wait_turn(what, p, 0, site);
    const T old = T(test::begin_update(what, p, sizeof(T), site));
    const bool does = writes(old);
    test::end_update(what, p, sizeof(T), u64(old), u64(does ? T(update(old)) : old), does, site);
    test::after_write(site);
    return old;
}

// ---- system memory -----------------------------------------------------------------

template <class T>
inline T load_shared(const T* p, Site site = Site::here()) {
    static constexpr test::Operation what{"load_shared", Order::acquire};
    return load_by(what, p, site);
}
template <class T>
inline T load_relaxed(const T* p, Site site = Site::here()) {
    static constexpr test::Operation what{"load_relaxed"};
    return load_by(what, p, site);
}
inline u32 load_stale(const u32* p, Site site = Site::here()) {
    static constexpr test::Operation what{"load_stale", Order::relaxed, Scope::device, true};
    return load_by(what, p, site);
}
template <class T>
inline T load_mapped(const T* p, Site site = Site::here()) {
    static constexpr test::Operation what{"load_mapped", Order::acquire, Scope::system};
    return load_by(what, p, site);
}
template <class T>
inline void store_shared(T* p, Same<T> value, Site site = Site::here()) {
    static constexpr test::Operation what{"store_shared", Order::release};
    store_by(what, p, value, site);
}
template <class T>
inline void store_relaxed(T* p, Same<T> value, Site site = Site::here()) {
    static constexpr test::Operation what{"store_relaxed"};
    store_by(what, p, value, site);
}
template <class T>
inline void store_released(T* p, Same<T> value, Site site = Site::here()) {
    static constexpr test::Operation what{"store_released"};
    store_by(what, p, value, site);
}
template <class T>
inline void store_mapped(T* p, Same<T> value, Site site = Site::here()) {
    static constexpr test::Operation what{"store_mapped", Order::release, Scope::system};
    store_by(what, p, value, site);
}
#define GPURUN_COMPARE_EXCHANGE(name, order)                                                  \
    template <class T>                                                                        \
    inline T name(T* p, Same<T> expected, Same<T> value, Site site = Site::here()) {          \
        static constexpr test::Operation what{#name, order};                                  \
        return update_by(                                                                     \
            what, p, site, [=](T old) { return old == expected; }, [=](T) { return value; }); \
    }
GPURUN_COMPARE_EXCHANGE(compare_exchange, Order::acq_rel)
GPURUN_COMPARE_EXCHANGE(compare_exchange_acquire, Order::acquire)
GPURUN_COMPARE_EXCHANGE(compare_exchange_release, Order::release)
GPURUN_COMPARE_EXCHANGE(compare_exchange_relaxed, Order::relaxed)
#undef GPURUN_COMPARE_EXCHANGE
inline bool always(u64) { return true; }
template <class T>
inline T exchange(T* p, Same<T> value, Site site = Site::here()) {
    static constexpr test::Operation what{"exchange", Order::acq_rel};
    return update_by(what, p, site, always, [=](T) { return value; });
}
template <class T>
inline T fetch_add(T* p, Same<T> value, Site site = Site::here()) {
    static constexpr test::Operation what{"fetch_add"};
    return update_by(what, p, site, always, [=](T old) { return T(old + value); });
}
inline void atomic_fence(Site site = Site::here()) {
    test::fence("atomic_fence", Fence::seq_cst, site);
}
inline void release_fence(Site site = Site::here()) {
    test::fence("release_fence", Fence::acq_rel, site);
}
inline void acquire_fence(Site site = Site::here()) {
    test::fence("acquire_fence", Fence::acq_rel, site);
}
inline void ring_bell(u32* bell, Site site = Site::here()) {
    static constexpr test::Operation rings{"ring_bell", Order::release, Scope::system};
    store_by(rings, bell, load_mapped(bell, site) + 1, site);
}

// ---- guests' memory ----------------------------------------------------------------

// Sequentially consistent, by a fence before and a fence behind it.
template <class F>
inline auto between_fences(const char* name, Site site, F f) {
    test::fence(name, Fence::seq_cst, site);
    const auto value = f();
    test::fence(name, Fence::seq_cst, site);
    return value;
}
template <class T>
inline T atomic_load(const u8* p, Site site = Site::here()) {
    return between_fences("atomic_load", site, [&] {
        static constexpr test::Operation what{"atomic_load"};
        return load_by(what, reinterpret_cast<const T*>(p), site);
    });
}
template <class T>
inline void atomic_store(u8* p, Same<T> value, Site site = Site::here()) {
    between_fences("atomic_store", site, [&] {
        static constexpr test::Operation what{"atomic_store"};
        store_by(what, reinterpret_cast<T*>(p), value, site);
        return 0;
    });
}
#define GPURUN_RMW(name, expression)                                                    \
    template <class T>                                                                  \
    inline T atomic_rmw_##name(u8* p, T value, Site site = Site::here()) {              \
        return between_fences("atomic_rmw_" #name, site, [&] {                          \
            static constexpr test::Operation what{"atomic_rmw_" #name, Order::acq_rel}; \
            return update_by(what, reinterpret_cast<T*>(p), site, always,               \
                             [=]([[maybe_unused]] T old) { return T(expression); });    \
        });                                                                             \
    }
GPURUN_RMW(add, old + value)
GPURUN_RMW(sub, old - value)
GPURUN_RMW(and, old& value)
GPURUN_RMW(or, old | value)
GPURUN_RMW(xor, old ^ value)
GPURUN_RMW(xchg, value)
#undef GPURUN_RMW
template <class T>
inline T atomic_cmpxchg(u8* p, T expected, T replacement, Site site = Site::here()) {
    return between_fences("atomic_cmpxchg", site, [&] {
        static constexpr test::Operation what{"atomic_cmpxchg", Order::acq_rel};
        return update_by(
            what, reinterpret_cast<T*>(p), site, [=](T old) { return old == expected; },
            [=](T) { return replacement; });
    });
}

// ---- plain memory ------------------------------------------------------------------

// Copies of sizes that only the program knows are not seen by the compiler's instrumentation.
inline void note(const void* p, usize size, bool is_write) {
    if (size != 0) test::plain(p, size, is_write, __builtin_return_address(0));
}
template <class T>
inline T load_bytes(const u8* p) {
    note(p, sizeof(T), false);
    return host_load_bytes<T>(p);
}
template <class T>
inline void store_bytes(u8* p, T value) {
    note(p, sizeof(T), true);
    host_store_bytes<T>(p, value);
}
inline void do_part(const Chore& chore) {
    note(chore.to, chore.count, true);
    if (chore.from != nullptr) note(chore.from, chore.count, false);
    host_do_part(chore);
}
inline void copy_system(u8* to, const u8* from, u64 count) {
    note(to, count, true);
    note(from, count, false);
    host_copy_system(to, from, count);
}

inline void pause(Site site = Site::here()) { test::pause_actor(site); }
inline void back_off(u32, Site site = Site::here()) { pause(site); }
inline void sleep_ns(u32, Site site = Site::here()) { test::pause_actor(site); }

inline u32 lane_number() { return test::actor_number(); }
inline u32 lane_shard() { return test::actor_number(); }
inline u64 clock_ns() { return test::explored_clock(); }

}  // namespace gpurun::rt
