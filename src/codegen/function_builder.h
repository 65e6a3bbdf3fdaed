// The IR of one function. Private to src/codegen.
//
// A slot is a variable for each kind of value that it holds; LLVM makes registers of them. Whatever
// is rare leaves (codegen/leaving.h): the slots that are live there are written into the frame, and
// the function returns (abi/native.h).
//
// A function with loops or handlers has a second copy, which is entered at those, with its slots in
// the frame: the context says at which. What lies within loops is reached by way of their heads,
// outermost first, so that they stay loops to LLVM. The first copy has nothing of that: what LLVM
// knows of its variables where a loop begins is not lost.
#pragma once

#include "abi/native.h"
#include "codegen/checks.h"
#include "codegen/flow.h"
#include "codegen/leaving.h"
#include "codegen/piece.h"

namespace gpurun::codegen {

class FunctionBuilder {
public:
    enum class Copy { only, called, resumed };

    // `entries` are positions where it can be entered, as number 1 and so on: the copy that is.
    FunctionBuilder(Piece& piece, const Flow& flow, u32 func, const std::vector<u32>& entries,
                    Copy copy);
    void build();

private:
    using Value = llvm::Value;
    using BasicBlock = llvm::BasicBlock;
    using SlotValue = translate::SlotValue;

    // A loop of the code: its head's block, and positions.
    struct Loop {
        u32 block, head, end;
    };

    // The end of a block that leaves, and what is known there.
    struct Left {
        BasicBlock* from;
        Value *where, *dirty;  // parts of abi/native.h
    };

    // ---- helpers
    Value* runtime(llvm::StringRef name, llvm::ArrayRef<Value*> arguments);
    Value* number(u32 n) { return b_.getInt32(n); }
    Value* status(NativeStatus s) { return number(u32(s)); }
    BasicBlock* new_block(const char* name);
    void branch_rarely(Value* condition, BasicBlock* rare, BasicBlock* usual);
    Value* rp() { return rp_variable_ ? load(rp_variable_) : rp_; }
    Value* rp_here();  // below the open handlers
    Value* load(llvm::AllocaInst* variable);
    llvm::AllocaInst* new_variable(llvm::Type* type, const llvm::Twine& name);

    // ---- slots
    llvm::AllocaInst* variable(SlotValue place);
    Value* read(u32 slot, u32 words);
    Value* read_word(u32 slot);
    void write(u32 slot, u32 words, Value* value);
    Value* get_slot(Value* fp, u32 slot, u32 words);
    void set_slot(Value* fp, u32 slot, u32 words, Value* value);
    void write_to_frame(u32 slot, u32 words);
    void zero_variables(BasicBlock* block, const SlotStates* states);

    // ---- leaving
    void leave(LeaveKind kind, Value* status, Value* position, const SlotSet& live, u32 limit);
    void leave_here(NativeStatus s);
    void leave_if(Value* condition, NativeStatus s);
    void finish_leaving();
    void find_loops();
    void give_back(Value* status, llvm::ArrayRef<Value*> results);

    // ---- blocks
    void begin_called();
    void begin_resumed();
    void build_resume(u32 entry);
    void resume_word(u32 slot, Held held);
    // An entry, and how many of the heads on its way are passed.
    struct EntryWay {
        u32 entry;
        usize passed;
    };
    void find_ways();
    void go_to_entries(Value* number, std::span<const EntryWay> entries);
    void meet_successors();
    BasicBlock* block(u32 number);
    void build_block(u32 number);
    void build_loop_head(const FlowBlock& block);
    void go_to(u32 position);
    void load_memory();
    void load_quantum();
    void save_quantum();
    Value* is_late(Value* quantum);  // whether there is no time left, or nothing of the quantum

    // ---- instructions
    void build_instr();
    bool build_number(CodeOp op);
    bool build_access(CodeOp op);
    void build_move(CodeOp op);
    void build_branch(Value* condition, u32 target);
    void build_enter();
    void build_return(CodeOp op);
    void build_operate();
    void build_bulk(CodeOp op);
    // The function that the module's table has; one that has been compiled.
    Value* from_table(Value* func);
    Value* callee(u32 func);
    void build_call(CodeOp op);
    void build_own_call(Value* callee, const wasm::FuncType& type);
    void build_other_call(Value* ref, u32 base);
    void build_far_call();
    void build_tail_call(CodeOp op);
    void leave_as_caller(Value* status);
    void read_results();
    void check_address(Value* address, const Checks::Check& check);
    Value* access_at(u32 width, bool is_write, bool is_aligned);
    u64 code_word(u32 index) const { return program_.code.words[position_ + index]; }

    Piece& piece_;
    const Program& program_;
    const Flow& flow_;
    const Checks checks_;
    const wasm::FuncType& type_;
    const std::vector<u32> entries_;  // of this copy
    const Copy copy_;
    llvm::Function* function_;
    llvm::IRBuilder<> b_;

    Value *context_ = nullptr, *fp_ = nullptr, *rp_ = nullptr;
    llvm::AllocaInst* rp_variable_ = nullptr;  // where it differs by entry
    llvm::AllocaInst* entry_ = nullptr;  // number of the entry that we are on the way to, or 0
    std::vector<Loop> loops_;
    std::vector<std::vector<u32>> ways_;  // by entry: the heads on the way, as blocks
    std::vector<BasicBlock*> resumes_;    // by entry: reads its slots from the frame
    Value* dirty_shift_ = nullptr;
    llvm::AllocaInst *memory_ = nullptr, *memory_size_ = nullptr, *dirty_ = nullptr;
    llvm::AllocaInst* quantum_ = nullptr;  // if it `counts_`; else it stays in the context
    bool counts_ = false;                  // in loops, what is left of the quantum
    Value* deadline_ = nullptr;            // if the target has a clock
    BasicBlock* first_ = nullptr;          // of all: variables
    BasicBlock* enter_ = nullptr;          // the one that zeroes locals
    llvm::DenseMap<std::pair<u32, u32>, llvm::AllocaInst*> variables_;
    std::vector<SlotValue> variable_places_;
    std::vector<BasicBlock*> blocks_;  // by number in the flow; null: not needed yet
    std::vector<u32> work_;            // blocks to be built
    BasicBlock* left_ = nullptr;       // the last of leaving: tells the runtime
    std::vector<Left> lefts_;          // who goes there
    llvm::MDNode* rarely_ = nullptr;

    // Where we are.
    u32 position_ = 0;
    translate::Effects e_;
    SlotStates states_;
    std::vector<u32> handlers_;
    std::vector<SlotSet> lives_;  // before each instruction of the block
    usize index_ = 0;             // the instruction's number in the block
    const FlowBlock* current_ = nullptr;
    bool is_open_ = false;  // the block has no end yet
};

}  // namespace gpurun::codegen
