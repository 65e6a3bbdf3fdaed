// Prints parts of a module as the text format writes them, for people to read. The caller adds what
// stands around them in a listing. Everything is appended, so that long listings cost no copies.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "wasm/instr.h"
#include "wasm/module.h"

namespace gpurun::wasm {

void append_number(std::string& out, s64 value);
void append_hex(std::string& out, u64 value, u32 digits = 1);  // "0x1f"; at least that many digits
// Appends a string in quotes as the text format writes it: "a \"string\"\0a". Control characters
// and stray bytes become escapes.
void append_quoted(std::string& out, std::string_view bytes);

// Appends "$name", or "$\"any name\"" if it has characters that an identifier cannot have.
void append_identifier(std::string& out, std::string_view name);

// Looks names and types of one module up. Does not outlive it.
class Printer {
public:
    explicit Printer(const Module& module);

    const Module& module() const { return module_; }
    void func(std::string& out, u32 func) const { out += func_names_[func]; }  // "$fac", or "7"
    bool has_name(u32 func) const { return func_names_[func][0] == '$'; }
    void type(std::string& out, ValType type) const;               // "(ref null 3)"
    void heap(std::string& out, u32 heap) const;                   // "func", "3"
    void signature(std::string& out, const FuncType& type) const;  // " (param i32) (result i64)"
    void limits(std::string& out, const Limits& limits) const;     // "i64 1 2 shared"
    void global_type(std::string& out, const GlobalType& type) const;  // "(mut i32)"
    void defined_type(std::string& out, u32 type_index) const;  // "(sub 3 (struct (field i32)))"
    void const_expr(std::string& out, ConstExpr expr) const;    // "i32.const 1 i32.const 2 i32.add"
    u32 type_index(u32 type_id) const { return type_indices_[type_id]; }  // the first that has it

private:
    const Module& module_;
    std::vector<std::string> func_names_;
    std::vector<u32> type_indices_;
};

// Prints the instructions of a body in their order, each indented as deep as it is nested. Labels
// get names: $B1 for a block, $L2 for a loop, $I3 for an if, $T4 for a try.
class BodyPrinter {
public:
    BodyPrinter(const Printer& printer, u32 func);
    explicit BodyPrinter(const Printer& printer) : printer_(printer) {}  // a constant expression

    // Appends parameters, results and locals: " (param $n i64) (result i64) (local i32 i32)".
    void declarations(std::string& out) const;
    void instr(std::string& out, const Instr& instr);

private:
    struct Label {
        char letter;
        u32 number;
    };
    const std::string* local_name(u32 index) const;
    void declare(std::string& out, const char* word, u32 first, u32 count,
                 std::string_view type) const;
    void label(std::string& out, u32 depth) const;
    void immediates(std::string& out, const Instr& instr) const;
    void block_type(std::string& out, const Instr& instr) const;
    void val_type(std::string& out, s64 code, s64 heap, bool nullable) const;
    void heap_code(std::string& out, s64 code) const;
    void memarg(std::string& out, const Instr& instr) const;
    void lists(std::string& out, const Instr& instr) const;

    const Printer& printer_;
    u32 func_ = 0;
    const std::vector<std::pair<u32, std::string>>* local_names_ = nullptr;
    std::vector<Label> labels_;  // of the open blocks
    u32 blocks_ = 0;             // so far
};

}  // namespace gpurun::wasm
