// A part of a module as LLVM sees it: some of its functions, with the runtime's inline functions
// that they are made of.
#pragma once

#include <memory>

#include "base/result.h"
#include "codegen/llvm.h"
#include "codegen/target.h"
#include "translate/effects.h"

namespace gpurun::codegen {

// What all pieces of a module know of it.
struct Program {
    struct Range {
        u32 first, end;  // functions
    };
    const wasm::Module& module;
    const translate::Code& code;
    translate::CodeEffects effects;
    std::vector<bool> is_compiled;  // by function
    std::vector<Range> pieces;      // those of a whole module
    std::vector<u32> group_of;  // by function, for GPUs: those of one group see each other's names
    bool has_tail_calls = false;  // any callee may ask for one

    Program(const wasm::Module& m, const translate::Code& c, bool for_gpu);
    u32 begin_of(u32 func) const { return code.entries[func]; }
    u32 end_of(u32 func) const;
};

class Piece {
public:
    // `functions` are those that will be added, in ascending order.
    Piece(const Program& program, const Implementation& target, u32 group,
          std::span<const u32> functions);

    // Adds a function: what calls in the module use, and what goes on in the middle of it.
    void add(u32 func);
    // Adds the function `enter`, when all others are there.
    void finish(const std::string& enter);
    // Adds addresses of functions. Where images are loaded apart that is the table by which
    // call_indirect finds functions, and calls those of other groups, in one of a group's pieces.
    // Elsewhere each piece has one of its own functions, from which the loader fills that table.
    void add_table();
    // The kernel native_image_name, where images are loaded apart; in one of a group's pieces.
    void add_image_kernel(std::span<const std::string> enters);

    llvm::LLVMContext& context() { return context_; }
    llvm::Module& module() { return *module_; }
    const Program& program() const { return program_; }
    const Implementation& target() const { return target_; }
    u32 group() const { return group_; }
    // Returns true if code of this piece can call a function by its name: else it is called by the
    // table, which may not have it yet where images are not loaded apart.
    bool sees(u32 func) const;
    const std::vector<u32>& entries() const { return entry_positions_; }
    // Those that were made here; the others are the runtime's.
    const std::vector<llvm::Function*>& functions() const { return functions_; }

    // An inline function of runtime/native/native_bitcode.cpp, or one of abi/native_calls.def.
    llvm::Function* runtime(llvm::StringRef name);
    llvm::Function* function(u32 func);
    // The copy of it that is entered in the middle.
    llvm::Function* resumed_function(u32 func);
    // bool(u64 size, u32 address, u64 end): what MergeChecksPass makes comparisons of.
    llvm::Function* outside();
    llvm::GlobalVariable* table();
    llvm::Type* type_of(u32 words);
    llvm::StructType* results_of(const wasm::FuncType& type);
    llvm::FunctionType* type_of(const wasm::FuncType& type);

private:
    struct Entry {
        u32 func;
        bool is_resumed;  // by the second copy
        u32 number;       // of the function's own; 0: its beginning
    };

    llvm::Function* new_function(llvm::FunctionType* type, llvm::GlobalValue::LinkageTypes linkage,
                                 const std::string& name);
    llvm::Function* enter(const std::string& name);
    void call_by_address();
    void take_runtime();

    const Program& program_;
    const Implementation& target_;
    const u32 group_;
    const std::span<const u32> own_;
    llvm::LLVMContext context_;
    std::unique_ptr<llvm::Module> module_;
    std::vector<llvm::Function*> functions_;
    std::vector<Entry> entries_;
    std::vector<u32> entry_positions_;
};

}  // namespace gpurun::codegen
