// What a call did, as every engine can tell it: what differential compares.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "abi/trap.h"
#include "abi/v128.h"
#include "engine/store.h"
#include "engine/value.h"

namespace gpurun {

// How much memory modules may have in any of the engines: what grows further fails in all of them.
inline constexpr u64 most_memory_bytes = 2 << 20;
inline constexpr u32 most_table_elements = 10'000;

struct Call {
    const wasm::Export* function;
    std::vector<engine::Value> arguments;
    bool looks_at_memories = false;  // afterwards; globals are always looked at
};

using Bits = std::array<u32, 4>;

struct Outcome {
    engine::Completion::Kind kind = engine::Completion::Kind::returned;
    Trap trap = Trap::none;
    std::vector<Bits> results;  // of references, whether they are null
    u64 seen = 0;               // what the functions that the module imports were given
    u64 state = 0;              // what the module exports: globals that are numbers, memories

    friend bool operator==(const Outcome&, const Outcome&) = default;
};

inline u64 mix(u64 sum, u64 value) {
    sum = (sum ^ value) * 0x9e37'79b9'7f4a'7c15;
    return sum ^ sum >> 29;
}

inline u64 mix(u64 sum, const Bits& bits) {
    return mix(mix(sum, u64(bits[1]) << 32 | bits[0]), u64(bits[3]) << 32 | bits[2]);
}

inline u64 mix(u64 sum, std::span<const u8> bytes) {  // a multiple of eight of them
    sum = mix(sum, bytes.size());
    for (usize at = 0; at < bytes.size(); at += 8) {
        u64 value;
        std::memcpy(&value, bytes.data() + at, 8);
        sum = mix(sum, value);
    }
    return sum;
}

// The words of a value that its type has; the others are zero.
inline Bits comparable(wasm::ValType type, const V128& value) {
    const u32* word = value.word;
    if (type.is_ref()) return {word[0] != 0 || word[1] != 0};
    Bits bits{};
    std::copy_n(word, translate::words_of(type), bits.begin());
    return bits;
}

std::string describe(const Outcome& outcome);

}  // namespace gpurun
