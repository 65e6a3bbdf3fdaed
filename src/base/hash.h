// A hash of bytes: quick, and a guard against accidents alone.
#pragma once

#include <cstring>
#include <string_view>

#include "base/ints.h"

namespace gpurun {

// FNV-1a over 64-bit words.
inline u64 hash(std::string_view bytes, u64 seed = 0) {
    u64 h = 0xcbf29ce484222325 ^ seed;
    usize i = 0;
    for (; i + 8 <= bytes.size(); i += 8) {
        u64 word;
        std::memcpy(&word, bytes.data() + i, 8);
        h = (h ^ word) * 0x100000001b3;
        h ^= h >> 29;
    }
    for (; i < bytes.size(); i++) h = (h ^ u8(bytes[i])) * 0x100000001b3;
    return h ^ h >> 32;
}

}  // namespace gpurun
