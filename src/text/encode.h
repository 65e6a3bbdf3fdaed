// Writes the numbers of the binary format.
#pragma once

#include <string_view>

#include "base/ints.h"
#include "wasm/module.h"

namespace gpurun::text {

inline void put_u64(wasm::Bytes& out, u64 value) {
    for (; value >= 0x80; value >>= 7) out.push_back(u8(value | 0x80));
    out.push_back(u8(value));
}
inline void put_u32(wasm::Bytes& out, u32 value) { put_u64(out, value); }

inline void put_s64(wasm::Bytes& out, s64 value) {
    for (; value < -64 || value > 63; value >>= 7) out.push_back(u8(value | 0x80));
    out.push_back(u8(value & 0x7f));
}

template <class T>
void put_fixed(wasm::Bytes& out, T value) {
    for (u32 i = 0; i < sizeof(T); i++) out.push_back(u8(value >> (8 * i)));
}

inline void put_bytes(wasm::Bytes& out, const wasm::Bytes& bytes) {
    out.insert(out.end(), bytes.begin(), bytes.end());
}

inline void put_string(wasm::Bytes& out, std::string_view text) {
    put_u32(out, u32(text.size()));
    out.insert(out.end(), text.begin(), text.end());
}

}  // namespace gpurun::text
