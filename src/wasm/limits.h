// How large a module may be. Each limit is checked where its number is read, before anything
// is allocated for it; the message names the limit, the number and the offset.
#pragma once

#include "base/ints.h"

namespace gpurun::wasm {

inline constexpr u32 max_module_bytes = 1u << 30;
inline constexpr u32 max_types = 1'000'000;
inline constexpr u32 max_functions = 1'000'000;  // a function reference has 20 bits for it
inline constexpr u32 max_imports = 1'000'000;
inline constexpr u32 max_exports = 1'000'000;
inline constexpr u32 max_globals = 1'000'000;
inline constexpr u32 max_tags = 1'000'000;
inline constexpr u32 max_tables = 100'000;
inline constexpr u32 max_memories = 100'000;
inline constexpr u32 max_segments = 100'000;  // data, and as many elem
inline constexpr u32 max_segment_elements = 10'000'000;
inline constexpr u32 max_function_bytes = 8 << 20;  // Go makes bodies of several MB
inline constexpr u32 max_locals = 50'000;
inline constexpr u32 max_nesting = 100'000;     // open blocks in one function
inline constexpr u32 max_operands = 1'000'000;  // on the operand stack of one function
inline constexpr u32 max_array_new_fixed = 10'000;
inline constexpr u32 max_params = 1'000;
inline constexpr u32 max_results = 1'000;
inline constexpr u32 max_fields = 10'000;
inline constexpr u32 max_subtype_depth = 63;
inline constexpr u32 max_name_bytes = 100'000;

}  // namespace gpurun::wasm
