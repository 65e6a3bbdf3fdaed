// The host as a platform whose machine code accesses guest memory through typed pointers. Compiled
// with strict aliasing the code is wrong; mutant_test.py checks that the random modules find that.
#pragma once

#define load_compact untyped_load_compact
#define store_compact untyped_store_compact
#define load_guest_compact untyped_load_guest_compact
#define store_guest_compact untyped_store_guest_compact
#define load_guest_natural untyped_load_guest_natural
#define store_guest_natural untyped_store_guest_natural
#include "runtime/platform/platform_host.h"
#undef load_compact
#undef store_compact
#undef load_guest_compact
#undef store_guest_compact
#undef load_guest_natural
#undef store_guest_natural

namespace gpurun::rt {

template <class T>
struct __attribute__((packed)) Unaligned {
    T value;
};

template <class T>
inline T load_compact(const u8* p) {
    return reinterpret_cast<const Unaligned<T>*>(p)->value;
}
template <class T>
inline void store_compact(u8* p, T value) {
    reinterpret_cast<Unaligned<T>*>(p)->value = value;
}
template <class T>
inline T load_guest_compact(const u8* base, u64 address) {
    return load_compact<T>(base + address);
}
template <class T>
inline void store_guest_compact(u8* base, u64 address, T value) {
    store_compact(base + address, value);
}
template <class T>
inline T load_guest_natural(const u8* base, u64 address) {
    return load_compact<T>(base + address);
}
template <class T>
inline void store_guest_natural(u8* base, u64 address, T value) {
    store_compact(base + address, value);
}

}  // namespace gpurun::rt
