// Guests' atomic accesses, by pointers into their memories. Their order is wasm's; nothing of the
// runtime relies on it.
#pragma once

#include "runtime/memory/state.h"

namespace gpurun::rt {

// Interleaved memories need plain accesses only: threads never share them.
template <class T>
inline T load_atomic(const u8* at) {
    if constexpr (memories_interleave) return load_bytes<T>(at);
    return atomic_load<T>(at);
}
template <class T>
inline void store_atomic(u8* at, T value) {
    if constexpr (memories_interleave) return store_bytes<T>(at, value);
    atomic_store<T>(at, value);
}
#define GPURUN_RMW(name, expression)                                                \
    template <class T>                                                              \
    inline T rmw_##name(u8* at, T value) {                                          \
        if constexpr (!memories_interleave) return atomic_rmw_##name<T>(at, value); \
        const T old = load_bytes<T>(at);                                            \
        store_bytes<T>(at, T(expression));                                          \
        return old;                                                                 \
    }
GPURUN_RMW(add, old + value)
GPURUN_RMW(sub, old - value)
GPURUN_RMW(and, old& value)
GPURUN_RMW(or, old | value)
GPURUN_RMW(xor, old ^ value)
GPURUN_RMW(xchg, value)
#undef GPURUN_RMW
template <class T>
inline T compare_exchange_atomic(u8* at, T expected, T replacement) {
    if constexpr (!memories_interleave) return atomic_cmpxchg<T>(at, expected, replacement);
    const T old = load_bytes<T>(at);
    if (old == expected) store_bytes<T>(at, replacement);
    return old;
}

}  // namespace gpurun::rt
