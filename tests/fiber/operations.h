// Operations on shared memory, and guests' atomic instructions, for platforms where actors are
// fibers of one thread. What is included before has
//
//   operate(name, T* p, reads, Site, update) -> T    what was there; update(old) is there
//   afterwards
//
// in gpurun::rt. Everything is in order.
#pragma once

#include <type_traits>

#include "site.h"

namespace gpurun::rt {

using test::Site;
template <class T>
using Same = std::type_identity_t<T>;  // what is pointed to says which type it is

template <class T>
inline T load_shared(const T* p, Site site = Site::here()) {
    return operate("load", const_cast<T*>(p), true, site, [](T old) { return old; });
}
template <class T>
inline void store_shared(T* p, Same<T> value, Site site = Site::here()) {
    operate("store", p, false, site, [=](T) { return value; });
}
template <class T>
inline void store_released(T* p, Same<T> value, Site site = Site::here()) {
    store_shared(p, value, site);
}
template <class T>
inline T load_relaxed(const T* p, Site site = Site::here()) {
    return load_shared(p, site);
}
inline u32 load_stale(const u32* p, Site site = Site::here()) { return load_shared(p, site); }
template <class T>
inline void store_relaxed(T* p, Same<T> value, Site site = Site::here()) {
    store_shared(p, value, site);
}
template <class T>
inline T compare_exchange(T* p, Same<T> expected, Same<T> value, Site site = Site::here()) {
    return operate("compare_exchange", p, true, site,
                   [=](T old) { return old == expected ? value : old; });
}
template <class T>
inline T compare_exchange_acquire(T* p, Same<T> expected, Same<T> value, Site site = Site::here()) {
    return compare_exchange(p, expected, value, site);
}
template <class T>
inline T compare_exchange_release(T* p, Same<T> expected, Same<T> value, Site site = Site::here()) {
    return compare_exchange(p, expected, value, site);
}
template <class T>
inline T compare_exchange_relaxed(T* p, Same<T> expected, Same<T> value, Site site = Site::here()) {
    return compare_exchange(p, expected, value, site);
}
template <class T>
inline T exchange(T* p, Same<T> value, Site site = Site::here()) {
    return operate("exchange", p, true, site, [=](T) { return value; });
}
template <class T>
inline T fetch_add(T* p, Same<T> value, Site site = Site::here()) {
    return operate("fetch_add", p, true, site, [=](T old) { return T(old + value); });
}
inline void atomic_fence() {}
inline void release_fence() {}
inline void acquire_fence() {}

// Guests' memory.
template <class T>
inline T atomic_load(const u8* p, Site site = Site::here()) {
    return operate("atomic_load", reinterpret_cast<T*>(const_cast<u8*>(p)), true, site,
                   [](T old) { return old; });
}
template <class T>
inline void atomic_store(u8* p, T value, Site site = Site::here()) {
    operate("atomic_store", reinterpret_cast<T*>(p), false, site, [=](T) { return value; });
}
#define GPURUN_RMW(name, expression)                                             \
    template <class T>                                                           \
    inline T atomic_rmw_##name(u8* p, T value, Site site = Site::here()) {       \
        return operate("atomic_rmw_" #name, reinterpret_cast<T*>(p), true, site, \
                       [=]([[maybe_unused]] T old) { return T(expression); });   \
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
    return operate("atomic_cmpxchg", reinterpret_cast<T*>(p), true, site,
                   [=](T old) { return old == expected ? replacement : old; });
}

}  // namespace gpurun::rt
