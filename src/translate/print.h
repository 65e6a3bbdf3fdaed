// Prints the interpreter's code as text, one instruction at a time:
//
//     i32_add_k      s3 = s0, 4
//     br_i32_lt_s    s0, s1 -> 12
//     call           $fac, s4
#pragma once

#include <string>

#include "translate/translate.h"
#include "wasm/print.h"

namespace gpurun::translate {

// Returns how many words the instruction takes that starts with `word`.
u32 code_size(u64 word);
const char* code_op_name(CodeOp op);

class CodePrinter {
public:
    CodePrinter(const wasm::Printer& printer, const InstanceLayout& layout)
        : printer_(printer), layout_(layout) {}

    // Appends the instruction at `position`.
    void instr(std::string& out, const FunctionCode& code, u32 position) const;

private:
    void operand(std::string& out, const FunctionCode& code, u32 position,
                 const char*& token) const;
    void callee(std::string& out, const FunctionCode& code, u32 position) const;
    void instance_word(std::string& out, u32 word) const;
    void type(std::string& out, u32 type) const;
    void br_table(std::string& out, const FunctionCode& code, u32 position) const;

    const wasm::Printer& printer_;
    const InstanceLayout& layout_;
};

}  // namespace gpurun::translate
