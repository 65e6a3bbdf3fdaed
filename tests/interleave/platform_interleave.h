// The host as a platform for the explorer: as platform_host.h, but whatever is done to shared
// memory or to a guest's by atomic instructions is a point where another actor may go on.
#pragma once

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
#include "runtime/platform_host.h"
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

namespace gpurun::rt {

using test::Site;

[[noreturn]] inline void check_failed(const char* file, u32 line, u32 process, u32 detail) {
    // Not on the heap: whoever fails is not unwound.
    char message[80];
    snprintf(message, sizeof message, "check failed (process %u, %u)", process, detail);
    test::fail(message, {file, line});
    abort();  // outside of explorations
}

// `update(old)` is what is there afterwards.
template <class T, class F>
inline T operate(const char* name, T* p, bool reads, Site site, F update) {
    test::before(name, p, site);
    const T old = *p, now = update(old);
    if (old != now) *p = now;
    test::after(p, sizeof(T), u64(old), u64(now), reads);
    return old;
}

}  // namespace gpurun::rt

#include "../fiber/operations.h"

namespace gpurun::rt {

template <class T>
inline T load_mapped(const T* p, Site site = Site::here()) {
    return load_shared(p, site);
}
template <class T>
inline void store_mapped(T* p, Same<T> value, Site site = Site::here()) {
    store_shared(p, value, site);
}
inline void fence() {}
inline void ring_bell(u32* bell, Site site = Site::here()) { fetch_add(bell, 1, site); }
inline void pause(Site site = Site::here()) { test::pause_actor(site); }
inline void back_off(u32, Site site = Site::here()) { pause(site); }
inline void sleep_ns(u32, Site site = Site::here()) { test::pause_actor(site); }

inline u32 lane_number() { return test::actor_number(); }
inline u32 lane_shard() { return test::actor_number(); }
inline u64 clock_ns() { return test::explored_clock(); }

}  // namespace gpurun::rt
