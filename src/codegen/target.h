// What differs between targets. Private to src/codegen: host.cpp has the CPU's.
#pragma once

#include <memory>
#include <span>

#include "base/result.h"
#include "codegen/llvm.h"

namespace gpurun::codegen {

// What a piece is compiled for.
class Target {
public:
    virtual ~Target() = default;
    // The runtime's inline functions (runtime/native_bitcode.cpp).
    virtual std::span<const u8> bitcode() const = 0;
    // One for each thread that compiles.
    virtual Result<std::unique_ptr<llvm::TargetMachine>> make_machine() const = 0;
};

const Target& host_target();

}  // namespace gpurun::codegen
