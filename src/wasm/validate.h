// The type checker for function bodies and constant expressions. One Validator serves any number
// of bodies, one after another; several may work on one module at the same time.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "wasm/failure.h"
#include "wasm/module.h"
#include "wasm/read_instr.h"

namespace gpurun::wasm {

// The heap type of a reference that unreachable code never pushed: a subtype of all others.
inline constexpr u32 bottom_heap = 0xfffffe;
inline constexpr ValType bottom_ref = ValType::ref(bottom_heap, false);

class Validator {
public:
    explicit Validator(const Module& module) : module_(module) {}

    bool body(u32 func, bool has_data_count);

    // Checks the constant expression that begins at `begin` and must end before `end`; on success
    // `expr` is its range. Functions it names are added to `declared`.
    bool const_expr(u32 begin, u32 end, ValType type, u32 visible_globals, ConstExpr& expr,
                    std::vector<u32>& declared);

    const Failure& failure() const { return *failure_; }

private:
    // An open block. Types are a range of the type table's, or the one in `single`.
    struct Frame {
        Op op = Op::block;
        bool is_unreachable = false;
        bool has_single_result = false;
        ValType single;
        u32 height = 0;       // operands below the block's own
        u32 init_height = 0;  // of init_log_
        u32 offset = 0;       // of the opcode
        std::span<const ValType> params, long_results;

        std::span<const ValType> results() const {
            return has_single_result ? std::span(&single, 1) : long_results;
        }
        std::span<const ValType> label() const { return op == Op::loop ? params : results(); }
    };

    void start(u32 begin, u32 end);
    bool finish();
    bool read_locals(const Func& func);
    void run_body();
    void check(Op op);
    void check_any();

    // The operand stack.
    void push(ValType type) {
        if (top_ == limit_) [[unlikely]]
            grow(1);
        *top_++ = type;
    }
    void push(std::span<const ValType> types);
    void pop(ValType expected) {
        if (top_ > base_ && top_[-1] == expected) [[likely]]
            top_--;
        else
            pop_slow(expected);
    }
    ValType pop_any();
    ValType pop_ref();  // any reference, or `unknown` where nothing can be known
    void pop(std::span<const ValType> types);
    void pop_slow(ValType expected);
    void check_top(std::span<const ValType> types);  // pops and pushes the same
    void grow(usize count);
    bool matches(ValType actual, ValType expected) const;
    u32 height() const { return u32(top_ - stack_.get()); }
    void set_base() { base_ = stack_.get() + frames_.back().height; }
    void set_unreachable();

    // Control (validate_control.cpp).
    void check_results();  // of the innermost block: they are there, and nothing else
    void reopen(Op op, std::span<const ValType> operands);
    void close();
    bool read_block_type(Frame& frame);
    const Frame* label(u32 depth);
    void reset_inits(const Frame& frame);
    void block();
    void else_();
    void end();
    void catch_(bool is_all);
    void delegate();
    void rethrow();
    void try_table();
    void check_clause(const CatchClause& clause);
    void throw_();
    void br();
    void br_if();
    void br_table();
    void call();
    void call_indirect();
    void call_ref();
    void call(const FuncType& type, bool is_return);

    // Variables, and instructions that the opcode table describes completely.
    void simple(Op op);
    ValType check_memarg();
    void check_lanes();
    ValType local_type(u32 index);
    ValType far_local_type(u32 index);
    bool is_unset(u32 index, ValType type) const;
    void local_get();
    void local_set(bool is_tee);
    void global_get();
    void global_set();
    void select();
    void select_t();

    // Tables and memories (validate_memory.cpp).
    void memory_op();
    void table_op();
    static ValType address_type(const Limits& limits) {
        return limits.is_64 ? ValType::i64 : ValType::i32;
    }
    const Table* table(u32 index);
    const MemoryType* memory(u32 index);
    const Elem* elem(u32 index);
    bool check_data(u32 index);

    // References, structs and arrays (validate_refs.cpp).
    void ref_op();
    void ref_func();
    void br_on_null();
    void br_on_non_null();
    void br_on_cast(bool is_fail);
    void cast(bool nullable, bool is_test);
    void convert(Heap from, Heap to);
    void struct_op();
    void array_op();
    void array_copy();
    void array_segment_op();
    const SubType* defined(u32 index, TypeKind kind);
    const FieldType* array_field(u32 type);
    bool check_packing(ValType type, bool is_plain, const char* what);
    bool heap(s64 code, u32& out);
    bool val_type(s64 code, s64 heap_code, bool nullable, ValType& out);
    ValType ref_to(u32 type_index, bool nullable) const {
        return ValType::ref(module_.type_ids[type_index], nullable);
    }

    [[gnu::cold, gnu::format(printf, 2, 3)]] void invalid(const char* pattern, ...);
    [[gnu::cold, gnu::format(printf, 2, 3)]] void malformed(const char* pattern, ...);
    [[gnu::cold]] void mismatch(std::string expected, std::string actual);
    [[gnu::cold]] void unknown(const char* what, usize index, usize size);
    void fail(Failure failure);
    std::string names(std::span<const ValType> types) const;
    const char* op_name() const { return op_info(instr_.op).text; }

    const Module& module_;
    BinaryReader in_{nullptr, 0, 0};
    Instr instr_;
    std::optional<Failure> failure_;

    std::unique_ptr<ValType[]> stack_;
    ValType *top_ = nullptr, *base_ = nullptr, *limit_ = nullptr;
    std::vector<Frame> frames_;

    // Locals: parameters first; those past the first thousand only as runs of one type.
    struct LocalRun {
        u32 end;  // one past the last local of the run
        ValType type;
    };
    std::vector<ValType> locals_;
    std::vector<LocalRun> local_runs_;
    u32 param_count_ = 0, local_count_ = 0;

    // Locals without a default value are set in this body if their mark is `mark_`. init_log_ has
    // them in the order in which they were set.
    std::vector<u32> set_marks_;
    u32 mark_ = 0;
    std::vector<u32> init_log_;

    bool is_const_ = false;
    bool has_data_count_ = false;
    u32 visible_globals_ = 0;
    std::vector<u32>* declared_ = nullptr;
};

// Checks every function body; on several threads if there is much to do. The failure is the one
// with the lowest offset.
std::optional<Failure> validate_bodies(const Module& module, bool has_data_count);

// Returns the heap type of a one-byte code, which is sign-extended.
Heap abstract_heap(s64 code);

}  // namespace gpurun::wasm
