// What differs between targets. Private to src/codegen: host.cpp has the CPU's, nvptx.cpp those of
// NVIDIA's GPUs.
#pragma once

#include <memory>
#include <span>

#include "base/result.h"
#include "codegen/codegen.h"
#include "codegen/llvm.h"

namespace gpurun::codegen {

// Calls `body`, which calls LLVM. That is built without exceptions: its functions cannot be
// unwound, and what they were at is not fit to be destroyed. So memory that runs out there ends the
// program, as LLVM's own handler of that does (report_bad_alloc_error prints and aborts).
template <class Body>
auto in_llvm(Body body) noexcept {
    struct Within {
        Within() { llvm_calls++; }
        ~Within() { llvm_calls--; }
    };
    const Within within;
    return body();
}

// What a piece is compiled for.
class Implementation {
public:
    virtual ~Implementation() = default;
    // The runtime's inline functions (runtime/native/native_bitcode.cpp).
    virtual std::span<const u8> bitcode() const = 0;
    // One for each thread that compiles.
    virtual Result<std::unique_ptr<llvm::TargetMachine>> make_machine() const = 0;
    // Whether an image is loaded apart from the runtime, as assembly, and reaches that by addresses
    // in its context; else it is objects that are linked with the runtime.
    virtual bool is_apart() const = 0;
    // Returns true if code stops by a clock, false if by what it has done (native/native.h).
    virtual bool has_clock() const = 0;
    // Returns true if lanes of a warp run the code and should meet again where they took different
    // ways (codegen/reconverge.h).
    virtual bool lanes_meet() const = 0;
    // Whether it matters to accesses that they are aligned.
    virtual bool wants_alignment() const = 0;
    // What is wrong with assembly, mended.
    virtual std::vector<u8> amended(std::vector<u8> text) const { return text; }
};

const Implementation& host_target();
// Returns a target for another CPU than this machine's, or one whose code is made as for lanes.
std::unique_ptr<const Implementation> make_host_target(const std::string& cpu,
                                                       bool lanes_meet = false);
const Implementation& nvptx_target(Target target);

}  // namespace gpurun::codegen
