// Checks UTF-8.
#pragma once

#include <string_view>

#include "base/ints.h"

namespace gpurun {

// Returns the length of the sequence at the start of a text that is not empty; 0 if it is
// malformed.
inline u32 utf8_length(std::string_view text) {
    auto byte = [&](u32 i) { return i < text.size() ? u32(u8(text[i])) : 0; };
    auto follows = [&](u32 i) { return (byte(i) & 0xc0) == 0x80; };
    const u32 first = byte(0), second = byte(1);
    if (first < 0x80) return 1;
    if (first < 0xc2 || first > 0xf4 || !follows(1)) return 0;
    if (first < 0xe0) return 2;
    if (!follows(2)) return 0;
    if (first < 0xf0) {
        const bool is_overlong = first == 0xe0 && second < 0xa0;
        const bool is_surrogate = first == 0xed && second >= 0xa0;
        return is_overlong || is_surrogate ? 0 : 3;
    }
    if (!follows(3)) return 0;
    const bool is_overlong = first == 0xf0 && second < 0x90;
    const bool is_too_large = first == 0xf4 && second >= 0x90;
    return is_overlong || is_too_large ? 0 : 4;
}

inline bool is_utf8(std::string_view text) {
    while (!text.empty()) {
        const u32 length = utf8_length(text);
        if (length == 0) return false;
        text.remove_prefix(length);
    }
    return true;
}

}  // namespace gpurun
