// Linear memories as the lanes of a warp have them: each in one piece, or interleaved, so that word
// i of all lanes lies together and lanes in lockstep touch neighbouring words (abi/burst.h).
//
// A pointer into interleaved memory is no address. It has its top bit set, the place of the warp's
// memories below that, and in its low half the offset among the bytes of the process that the lane
// runs. So arithmetic and comparison are as usual, and only what is in this file knows how memory
// lies. A *base* is an address: of the lane's first word of a memory.
#pragma once

#include "abi/burst.h"
#include "base/ints.h"

namespace gpurun::rt {

inline constexpr u64 interleaved_bit = u64{1} << 63;
inline constexpr u32 granule = interleaved_granule;

inline bool is_interleaved(const u8* p) {
    return memories_interleave && (reinterpret_cast<u64>(p) & interleaved_bit) != 0;
}
inline u64 guest_offset(const u8* p) { return u32(reinterpret_cast<u64>(p)); }

// Returns a pointer to the first byte of the process that this lane runs. The warp's memories begin
// at `at`, a multiple of interleaved_unit below 1 << interleaved_address_bits.
inline u8* interleaved_pointer(u64 at) {
    return reinterpret_cast<u8*>(interleaved_bit | at / interleaved_unit << 32);
}
// Returns the base of the process that a pointer belongs to: the address of the lane's first word.
inline u8* base_of_process(const u8* p) {
    const u64 unit = (reinterpret_cast<u64>(p) & ~interleaved_bit) >> 32;
    return reinterpret_cast<u8*>(unit * interleaved_unit + lane_id() * granule);
}
// Returns the base of a memory that begins at `p`, a multiple of the granule.
inline u8* guest_base(u8* p) {
    return memories_interleave ? base_of_process(p) + guest_offset(p) * warp_lanes : p;
}

// ---- accesses of interleaved memory, by a base -------------------------------------

inline u8* byte_at(const u8* base, u64 address) {
    return const_cast<u8*>(base) + (address & ~u64{granule - 1}) * warp_lanes +
           (address & (granule - 1));
}

// These access addresses that are multiples of the width; load_at and store_at take any address.
template <class T>
inline T load_aligned_at(const u8* base, u64 address) {
    if constexpr (sizeof(T) < granule) {
        return *global(reinterpret_cast<const T*>(byte_at(base, address)));
    } else {
        const auto* words = reinterpret_cast<const u32*>(base + address * warp_lanes);
        return load_wide<T>(global(words), warp_lanes);
    }
}
template <class T>
inline void store_aligned_at(u8* base, u64 address, T value) {
    if constexpr (sizeof(T) < granule) {
        *global(reinterpret_cast<T*>(byte_at(base, address))) = value;
    } else {
        auto* words = reinterpret_cast<u32*>(base + address * warp_lanes);
        store_wide<T>(global(words), warp_lanes, value);
    }
}
template <class T>
inline T load_at(const u8* base, u64 address) {
    constexpr u64 alignment = sizeof(T) < granule ? sizeof(T) : granule;
    if (alignment == 1 || address % alignment == 0) return load_aligned_at<T>(base, address);
    if constexpr (sizeof(T) < granule) {
        return T(*global(byte_at(base, address)) | *global(byte_at(base, address + 1)) << 8);
    } else {
        const u32 shift = u32(address % granule) * 8;
        u32 value[sizeof(T) / granule];
        u32 low = load_aligned_at<u32>(base, address - address % granule);
        for (u32 i = 0; i < sizeof(T) / granule; i++) {
            address += granule;
            const u32 high = load_aligned_at<u32>(base, address - address % granule);
            value[i] = low >> shift | high << (32 - shift);
            low = high;
        }
        return load_wide<T>(value, 1);
    }
}
template <class T>
inline void store_at(u8* base, u64 address, T value) {
    constexpr u64 alignment = sizeof(T) < granule ? sizeof(T) : granule;
    if (alignment == 1 || address % alignment == 0)
        return store_aligned_at<T>(base, address, value);
    if constexpr (sizeof(T) < granule) {
        *global(byte_at(base, address)) = u8(value);
        *global(byte_at(base, address + 1)) = u8(value >> 8);
    } else {
        u32 words[sizeof(T) / granule];
        store_wide<T>(words, 1, value);
        for (u32 word : words) {
#pragma clang loop unroll(disable)
            for (u32 i = 0; i < granule; i++, word >>= 8)
                *global(byte_at(base, address++)) = u8(word);
        }
    }
}

// ---- accesses of either ------------------------------------------------------------

// These access a linear memory by its base, which guest_base() returns.
template <class T>
inline T load_guest(const u8* base, u64 address) {
    if constexpr (memories_interleave) return load_at<T>(base, address);
    return load_linear<T>(base + address);
}
template <class T>
inline void store_guest(u8* base, u64 address, T value) {
    if constexpr (memories_interleave) return store_at<T>(base, address, value);
    store_linear<T>(base + address, value);
}

// These are for machine code: the compact ones take little code, the natural ones take addresses
// that are multiples of the width.
template <class T>
inline T load_guest_compact(const u8* base, u64 address) {
    if constexpr (memories_interleave) return load_at<T>(base, address);
    return load_linear_compact<T>(base + address);
}
template <class T>
inline T load_guest_natural(const u8* base, u64 address) {
    if constexpr (memories_interleave) return load_aligned_at<T>(base, address);
    return load_natural<T>(base + address);
}
template <class T>
inline void store_guest_compact(u8* base, u64 address, T value) {
    if constexpr (memories_interleave) return store_at<T>(base, address, value);
    store_linear_compact<T>(base + address, value);
}
template <class T>
inline void store_guest_natural(u8* base, u64 address, T value) {
    if constexpr (memories_interleave) return store_aligned_at<T>(base, address, value);
    store_natural<T>(base + address, value);
}
// These access guest memory by a pointer.
template <class T>
inline T load_compact(const u8* p) {
    if constexpr (memories_interleave) return load_at<T>(base_of_process(p), guest_offset(p));
    return load_linear_compact<T>(p);
}
template <class T>
inline void store_compact(u8* p, T value) {
    if constexpr (memories_interleave)
        return store_at<T>(base_of_process(p), guest_offset(p), value);
    store_linear_compact<T>(p, value);
}

// These access any memory by a pointer, a guest's or other.
template <class T>
inline T load_bytes(const u8* p) {
    if (is_interleaved(p)) return load_at<T>(base_of_process(p), guest_offset(p));
    return load_linear<T>(p);
}
template <class T>
inline void store_bytes(u8* p, T value) {
    if (is_interleaved(p)) return store_at<T>(base_of_process(p), guest_offset(p), value);
    store_linear<T>(p, value);
}

// Copying and filling by one lane: by whole words of `to` where possible, else by bytes.
inline void copy_bytes(u8* to, const u8* from, u64 begin, u64 end, bool is_backward) {
    for (u64 i = begin; i < end; i++) {
        const u64 at = is_backward ? begin + end - 1 - i : i;
        store_bytes<u8>(to + at, load_bytes<u8>(from + at));
    }
}
[[gnu::noinline]] inline void copy_interleaved(u8* to, const u8* from, u64 count) {
    const bool is_backward = to > from && to < from + count;
    u64 head = -reinterpret_cast<u64>(to) & (granule - 1);
    if (head > count) head = count;
    const u64 body = (count - head) & ~u64{granule - 1}, tail = head + body;
    copy_bytes(to, from, is_backward ? tail : 0, is_backward ? count : head, is_backward);
    for (u64 i = 0; i < body; i += granule) {
        const u64 at = head + (is_backward ? body - granule - i : i);
        store_bytes<u32>(to + at, load_bytes<u32>(from + at));
    }
    copy_bytes(to, from, is_backward ? 0 : tail, is_backward ? head : count, is_backward);
}
inline void copy_alone(u8* to, const u8* from, u64 count) {
    if (is_interleaved(to) || is_interleaved(from)) return copy_interleaved(to, from, count);
    copy_linear(to, from, count);
}
inline void copy_system(u8* to, const u8* from, u64 count) { copy_alone(to, from, count); }
[[gnu::noinline]] inline void fill_interleaved(u8* to, u8 value, u64 count) {
    u64 i = 0;
    for (; i < count && (reinterpret_cast<u64>(to) + i) % granule != 0; i++)
        store_bytes<u8>(to + i, value);
    for (; i + granule <= count; i += granule) store_bytes<u32>(to + i, value * 0x01010101u);
    for (; i < count; i++) store_bytes<u8>(to + i, value);
}
inline void fill_alone(u8* to, u8 value, u64 count) {
    if (is_interleaved(to)) return fill_interleaved(to, value, count);
    fill_linear(to, value, count);
}

}  // namespace gpurun::rt
