// Translates one function (or a constant expression) at a time. Private to src/translate.
//
// Each operand of wasm's stack has a slot of its own, above the locals. An operand that is only a
// local or a constant is not stored there until something needs it there: calls, block boundaries
// and loop heads do. An instruction whose result goes straight into a local writes to that local.
#pragma once

#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "abi/code.h"
#include "base/result.h"
#include "translate/instance_layout.h"
#include "translate/translate.h"
#include "wasm/instr.h"
#include "wasm/module.h"

namespace gpurun::translate {

constexpr u32 words_of(SlotKind kind) {
    return kind == SlotKind::v128 ? 4 : kind == SlotKind::i64 || kind == SlotKind::f64 ? 2 : 1;
}

struct CallFixup {
    u32 position;  // of the call instruction
    u32 func;
    bool is_tail;  // the distance goes into word 2 instead of imm
};

class FunctionTranslator {
public:
    FunctionTranslator(const wasm::Module& module, const InstanceLayout& layout, bool metered);

    // Appends the function's code to `code`. Returns false if its frame is too large.
    bool translate_function(u32 func);
    // Appends the function that initialises an instance (instantiate.cpp). Returns false if its
    // frame is too large.
    bool translate_instantiate();
    // Appends a function with the type of `func` that calls the instantiating function, then
    // `initialize` if there is one, and ends by a tail call of `func`. Returns false if its frame
    // is too large. `instantiate_call` becomes the position of the first call, whose distance is
    // open.
    bool translate_beginning(std::optional<u32> initialize, u32 func, u32& instantiate_call);

    u32 frame_slots() const { return max_slot_; }
    FunctionMap* map = nullptr;  // filled if set

    std::vector<u64> code;
    std::vector<CallFixup> calls;

private:
    using Op = wasm::Op;
    using Instr = wasm::Instr;
    static constexpr u32 none = ~u32{0};

    struct Operand {
        enum Place : u8 { in_slot, in_local, constant } place;
        SlotKind kind;
        u32 slot;   // its own slot
        u32 local;  // in_local: which, and its slot
        u32 local_slot;
        u64 bits;           // constant
        u32 in_map = none;  // number in map->operands
    };

    // Locals of one kind, next to each other. (A body can claim 50,000 locals in five bytes: what
    // they cost must not depend on how many there are.)
    struct LocalRun {
        u32 first;  // local
        u32 slot;   // counted from the first far one, if it is far
        SlotKind kind;
        bool is_far;
    };

    struct Control {
        Op op;
        u32 height;                // operands below its parameters
        u32 base_slot;             // slot of its first parameter, and of its first result
        u32 start;                 // loop: position of its head
        u32 fixups = none;         // branches to its end, a list in fixups_
        u32 else_fixup = none;     // if: the branch to else; try: the chain of catches
        u32 handler_fixup = none;  // try, try_table: the try_begin
        u32 outer_tries, tries;    // open handlers outside, and where we are in it
        bool has_catch_all = false;
        std::span<const wasm::ValType> params, results;
        u32 clauses = 0, clause_count = 0;  // try_table: where its list starts
    };

    struct Fixup {
        u32 position;  // the instruction that the distance counts from
        enum Kind : u8 { imm, short_branch, table_low, table_high } kind;
        u32 word;  // word that holds the distance
        u32 next;
    };

    // Function frame
    void begin(std::span<const wasm::ValType> params);
    void declare_local(wasm::ValType type, u32 count);
    void add_locals(SlotKind kind, u32 count, bool is_far);
    void declare_locals(const wasm::Func& func);
    const LocalRun& run_of(u32 local) const;
    static u32 slot_in(const LocalRun& run, u32 local) {
        return run.slot + (local - run.first) * words_of(run.kind);
    }
    u32 frame_end() const { return far_end_ > 0 ? max_slot_ + far_end_ : max_slot_; }
    void finish_map();
    bool finish_function(u32 entry);
    void translate_body(u32 begin, u32 end);
    void skip_dead(const Instr& instr);
    void translate_expression(wasm::ConstExpr expr);
    void translate_instr(const Instr& instr);

    // Emission
    u32 here() const { return u32(code.size()); }
    u32 emit(u64 word);
    u32 emit(CodeOp op, u32 a = 0, u32 b = 0, u32 c = 0) { return emit(code_word(op, a, b, c)); }
    u32 emit_imm(CodeOp op, u32 a, u32 imm) { return emit(code_word_imm(op, a, imm)); }
    void emit_pair(u32 low, u32 high = 0) { code.push_back(code_pair(low, high)); }
    void emit_copy(u32 to, u32 from, SlotKind kind);
    void emit_constant(u32 to, SlotKind kind, u64 bits);
    void forget_result() { result_at_ = none; }
    void charge(Op op);

    // Operands
    void push(SlotKind kind);
    void push_result(u32 position, SlotKind kind);  // of the instruction at `position`
    void push_local(u32 index);
    void push_constant(SlotKind kind, u64 bits);
    void push_types(std::span<const wasm::ValType> types);
    void retype(SlotKind kind) {  // the newest operand, the same bits
        operands_.back().kind = kind;
        operands_.back().in_map = none;
    }
    Operand pop();
    void drop_to(u32 height);
    u32 slot_of(Operand& operand);                 // puts constants into their slots
    static u32 place_of(const Operand& operand) {  // of one that is no constant
        return operand.place == Operand::in_local ? operand.local_slot : operand.slot;
    }
    u32 pop_slot() {
        Operand operand = pop();
        return slot_of(operand);
    }
    u32 pop_own_slot();                    // in its own slot, which may be overwritten
    void store_operand(Operand& operand);  // into its own slot
    void store_all_operands();
    void store_top_operands(u32 count);
    void preserve_local(u32 local);  // before it changes
    u32 emit_far(CodeOp op_32, SlotKind kind, u32 slot, u32 far_slot);
    void set_far_local(u32 far_slot, bool tee);
    void set_local(u32 index, bool tee);
    void note_slot(u32 end) {
        if (end > max_slot_) max_slot_ = end;
    }

    // Control
    void block_types(const Instr& instr, std::span<const wasm::ValType>& params,
                     std::span<const wasm::ValType>& results);
    Control& open(const Instr& instr);
    Control& label(u32 depth) { return controls_[controls_.size() - 1 - depth]; }
    std::span<const wasm::ValType> label_types(const Control& target) const;
    void bind(u32& list);
    void finish_body();
    void set_distance(const Fixup& fixup, u32 target);
    void store_label_values(const Control& target);
    void move_values(u32 count, u32 to);  // the newest operands, down to slots from `to` on
    bool needs_stub(const Control& target) const;
    void jump_to(Control& target);  // moves its values, closes handlers, goes there
    void return_values();
    void branch(u32 depth);
    void branch_if(Operand condition, bool when, Control& target);
    // Emits a branch that is taken if `condition` is (not) zero, and whose distance is set later.
    // If the target is known (a loop's head), it decides if the short form is enough.
    Fixup::Kind emit_condition(Operand condition, bool when, u32 target);
    u32 skip_if(Operand condition, bool when);  // a list for bind()
    u32 new_fixup(u32 position, Fixup::Kind kind, u32 word, u32 next);
    void close_tries(u32 count);
    void br_table(const Instr& instr);
    void translate_if(const Instr& instr);
    void translate_else();
    void translate_end();
    void translate_try(const Instr& instr);
    void finish_try_table(Control& control);
    void translate_catch(Op op, u32 tag);
    void finish_section(Control& control);  // a body or catch that falls through to the end
    void finish_legacy_try(Control& control);
    void translate_delegate(u32 depth);
    void add_point(bool is_loop);

    // Families of instructions
    void translate_call(const Instr& instr);
    u32 far_callee(const Instr& instr, u32 callee);
    void translate_far_call(const Instr& instr, const wasm::FuncType& type, u32 callee);
    void translate_simple(const Instr& instr);
    bool translate_with_constant(CodeOp op, SlotKind kind, Operand left, Operand right);
    void translate_access(const Instr& instr);
    void translate_global(const Instr& instr);
    void translate_select(const Instr& instr);
    void translate_table(const Instr& instr);
    void translate_memory(const Instr& instr);
    void translate_reference(const Instr& instr);
    void translate_object(const Instr& instr);
    void translate_array_new(const Instr& instr);
    void br_on_null(const Instr& instr);
    void br_on_cast(const Instr& instr);
    void ref_func(u32 func);
    u32 code_type(s64 heap) const;
    u32 field_word(u32 type_id, u32 field);
    const wasm::SubType& type_at(u32 type_index) const {
        return module_.types[module_.type_ids[type_index]];
    }
    bool memory_is_64(u32 memory) const { return module_.memories[memory].limits.is_64; }
    bool table_is_64(u32 table) const { return module_.tables[table].type.limits.is_64; }

    const wasm::Module& module_;
    const InstanceLayout& layout_;
    const bool metered_;
    bool long_branches_ = false;  // no short forward ones: the function is too long for them
    bool needs_long_branches_ = false;
    bool has_far_ = false;  // locals: there are too many for 16 bits

    std::vector<LocalRun> local_runs_;
    u32 local_count_ = 0;
    std::vector<u32> local_uses_;  // how many operands are in_local there
    std::vector<Operand> operands_;
    std::vector<Control> controls_;
    std::vector<Fixup> fixups_;
    u32 bound_at_ = none;              // where labels were bound last,
    std::vector<u32> bound_branches_;  // and the plain branches that go there
    std::span<const wasm::ValType> results_;
    u32 top_slot_ = 0, max_slot_ = 0;
    u32 far_locals_ = 0, far_end_ = 0;  // slots of far locals, and with those of calls behind them
    std::vector<u32> far_imms_, far_lows_;  // words with far slots, in imm and low half
    u32 max_tries_ = 0;
    u32 stored_ = 0;  // operands below this one are all in their slots
    std::unordered_map<u32, std::vector<u32>> field_words_;  // by type id: where its fields begin
    std::vector<u32> stubs_;  // br_table, by depth: entries that wait for a stub
    u32 result_at_ = none;    // instruction whose result is the newest operand
    u32 charge_at_ = none;    // open charge instruction
    u32 offset_ = 0;          // of the wasm instruction being translated
    u32 entry_ = 0;
    bool dead_ = false;
    u32 dead_depth_ = 0;  // blocks opened since the code became dead
};

constexpr SlotKind slot_kind(wasm::ValType type) {
    if (type.is_ref()) return SlotKind::ref;
    switch (type.kind()) {
        case wasm::ValType::i64: return SlotKind::i64;
        case wasm::ValType::f32: return SlotKind::f32;
        case wasm::ValType::f64: return SlotKind::f64;
        case wasm::ValType::v128: return SlotKind::v128;
        default: return SlotKind::i32;
    }
}
// Returns the type of a code in the bytes. All references are alike here.
wasm::ValType type_from_code(s64 code);
inline u32 words_of(std::span<const wasm::ValType> types) {
    u32 words = 0;
    for (wasm::ValType type : types) words += words_of(type);
    return words;
}

}  // namespace gpurun::translate
