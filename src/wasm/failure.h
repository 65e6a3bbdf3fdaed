// What is wrong with a module, as decoder and validator pass it to each other.
#pragma once

#include <string>

#include "wasm/module.h"
#include "wasm/reader.h"

namespace gpurun::wasm {

struct Failure {
    std::string message;
    u32 offset = 0;
    bool is_malformed = false;  // the bytes are no module at all; else: they are, but not valid
};

// Returns the failure of a reader that met bytes it cannot read.
Failure malformed_bytes(const Bytes& bytes, const BinaryReader& reader);

}  // namespace gpurun::wasm
