// Quick code: machine code of a function for this CPU, made in microseconds. Each instruction
// becomes a copy of its stencil (codegen/stencils.h) with its operands filled in. Nothing is
// optimised: it is what runs until LLVM has compiled what is hot, and after that where nothing is.
//
// State stays in frames as the interpreter has it, so every instruction can be entered.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/result.h"

namespace gpurun::codegen {

class QuickCode {
public:
    // Returns true if there are stencils for this CPU.
    static bool is_available();
    // Reserves memory for functions of a module with so many words of code.
    static Result<std::shared_ptr<QuickCode>> make(u64 code_words);
    QuickCode(const QuickCode&) = delete;
    QuickCode& operator=(const QuickCode&) = delete;
    ~QuickCode();

    struct Entry {
        u32 position;  // relative to the module's code
        u64 address;
    };
    struct Function {
        std::vector<Entry> entries;  // every instruction; the first is the function's
        u64 promoted;                // code that calls what is at the first position in its place
    };
    // Makes machine code of the function whose code stands at position `begin` of its module. By
    // one thread at a time, while others run what is there. An Error: there is no room for it.
    Result<Function> add(std::span<const u64> words, u32 begin);

private:
    class Writer;

    QuickCode(u8* writable, u8* executable, u64 size);
    void add_common();

    u8* const writable_;    // the same memory twice: nothing is
    u8* const executable_;  // writable and executable at one address
    const u64 size_;
    u64 used_ = 0;
    u64 constants_ = 0;  // where stencil_constants are
    u64 leave_ = 0, call_ = 0, returned_ = 0;
};

}  // namespace gpurun::codegen
