// A wasm value outside of any process.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "abi/v128.h"
#include "base/result.h"
#include "wasm/types.h"

namespace gpurun::engine {

// A value. If `type` is a reference to a defined type, it has the store's number of that type.
struct Value {
    wasm::ValType type;
    V128 bits{};  // as it lies in slots

    static Value i32(u32 v) { return {wasm::ValType::i32, {{v, 0, 0, 0}}}; }
    static Value i64(u64 v) { return {wasm::ValType::i64, {{u32(v), u32(v >> 32), 0, 0}}}; }
    static Value f32_bits(u32 v) { return {wasm::ValType::f32, {{v, 0, 0, 0}}}; }
    static Value f64_bits(u64 v) { return {wasm::ValType::f64, {{u32(v), u32(v >> 32), 0, 0}}}; }
    static Value v128(V128 v) { return {wasm::ValType::v128, v}; }
    static Value ref(wasm::ValType type, u32 ref) { return {type, {{ref, 0, 0, 0}}}; }

    u32 low() const { return bits.word[0]; }
    u64 wide() const { return u64(bits.word[0]) | u64(bits.word[1]) << 32; }

    // Returns the value as text: "42", "-1.5", "nan", "0x0f…" for vectors, "null", "ref". Numbers
    // read back as the same bits.
    std::string to_string() const;
};

// Reads a value of this type from text, as the text format writes numbers: "-5", "0xff", "1.5e3",
// "inf", "nan:0x200000". Vectors are 0x and 32 digits, references are "null".
Result<Value> parse_value(wasm::ValType type, std::string_view text);

// Reads all arguments of a function, which messages call `name`.
Result<std::vector<Value>> parse_arguments(const wasm::FuncType& type, const std::string& name,
                                           std::span<const std::string> texts);

}  // namespace gpurun::engine
