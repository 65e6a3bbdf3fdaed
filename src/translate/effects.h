// Says what an instruction of code does to the slots of its frame, and where control goes from it.
// All who follow the flow of a function's code use this one table.
#pragma once

#include <vector>

#include "translate/translate.h"
#include "wasm/module.h"

namespace gpurun::translate {

// A value of 1, 2 or 4 words in slots from `slot` on.
struct SlotValue {
    u32 slot;
    u32 words;
};

struct Effects {
    static constexpr u32 none = ~u32{0};

    std::vector<SlotValue> reads, writes;
    // Words that are read as they are, whatever kinds of values they hold.
    u32 range = 0, range_words = 0;
    u32 clobbers = none;        // calls: slots from here on hold nothing afterwards but `writes`
    std::vector<u32> targets;   // positions of branches
    u32 handler = none;         // try_begin: position of the handler
    u32 words = 1;              // of the instruction
    bool falls_through = true;  // into the next instruction
    bool may_throw = false;     // into the newest handler
    const wasm::FuncType* callee_type = nullptr;  // calls that return here
};

class CodeEffects {
public:
    // Module and code outlive this object.
    CodeEffects(const wasm::Module& module, const Code& code) : module_(module), code_(code) {}

    // Writes the effects of the instruction at `position` of code.words to `effects`.
    void look(u32 position, Effects& effects) const;
    // Returns the function that begins at `position`.
    u32 function_at(u32 position) const;

    const wasm::Module& module() const { return module_; }
    const Code& code() const { return code_; }

private:
    const wasm::FuncType& tag_type(u32 instance_word) const;

    const wasm::Module& module_;
    const Code& code_;
};

}  // namespace gpurun::translate
