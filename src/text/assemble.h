// From WebAssembly text to the bytes of a binary module. Text that is not well-formed is
// refused here; a module that is merely invalid is assembled, for the validator to refuse.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ints.h"
#include "base/result.h"
#include "wasm/module.h"

namespace gpurun::text {

inline constexpr usize max_source_bytes = usize{256} << 20;  // then "source too large"

struct Position {
    u32 line = 1, column = 1;  // from 1; columns count bytes
    friend bool operator==(Position, Position) = default;
};

struct Assembled {
    wasm::Bytes bytes;
    // Byte offset of each instruction and where it stands in the text; sorted by offset.
    std::vector<std::pair<u32, Position>> lines;
};

// `source` holds one module: "(module …)", or its fields alone. Errors read
// "file.wat:3:7: unknown operator i32.foo"; `name` is the "file.wat" of it.
Result<Assembled> assemble(std::string_view source, std::string_view name);

}  // namespace gpurun::text
