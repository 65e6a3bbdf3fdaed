// Checks blocks, branches, calls and exceptions: everything that uses the control stack.
#include "wasm/limits.h"
#include "wasm/validate.h"

namespace gpurun::wasm {

void Validator::set_unreachable() {
    top_ = base_;
    frames_.back().is_unreachable = true;
}

bool Validator::read_block_type(Frame& frame) {
    s64 c = instr_.block_type;
    if (c == block_empty) return true;
    if (c < 0) {
        frame.has_single_result = true;
        return val_type(c, instr_.heap, instr_.b, frame.single);
    }
    const SubType* type = defined(u32(c), TypeKind::func);
    if (!type) return false;
    frame.params = type->func.params;
    frame.long_results = type->func.results;
    return true;
}

void Validator::block() {
    Frame frame;
    frame.op = instr_.op;
    frame.offset = instr_.offset;
    if (!read_block_type(frame)) return;
    if (frame.op == Op::if_) pop(ValType::i32);
    pop(frame.params);
    if (frames_.size() > max_nesting)
        return invalid("too many open blocks: the limit is %u", max_nesting);
    frame.height = height();
    frame.init_height = u32(init_log_.size());
    frames_.push_back(frame);
    set_base();
    push(frame.params);
}

void Validator::check_results() {
    const Frame& frame = frames_.back();
    pop(frame.results());
    if (in_.ok() && top_ != base_)
        invalid(
            "type mismatch: %s expects %s at the end of the block, got %u values more (%s first)",
            op_name(), names(frame.results()).c_str(), u32(top_ - base_),
            module_.types.name(top_[-1]).c_str());
}

// Begins another arm of the innermost block.
void Validator::reopen(Op op, std::span<const ValType> operands) {
    Frame& frame = frames_.back();
    reset_inits(frame);
    frame.op = op;
    frame.is_unreachable = false;
    top_ = base_;
    push(operands);
}

// Leaves the innermost block, whose results have been popped.
void Validator::close() {
    Frame frame = frames_.back();
    reset_inits(frame);
    frames_.pop_back();
    if (frames_.empty()) return;
    set_base();
    push(frame.results());
}

// Marks locals that were set inside a block as unset after it.
void Validator::reset_inits(const Frame& frame) {
    while (init_log_.size() > frame.init_height) {
        set_marks_[init_log_.back()] = 0;
        init_log_.pop_back();
    }
}

void Validator::else_() {
    if (frames_.back().op != Op::if_) return malformed("END opcode expected: else without if");
    check_results();
    reopen(Op::else_, frames_.back().params);
}

void Validator::end() {
    check_results();
    const Frame& frame = frames_.back();
    if (frame.op == Op::if_) {
        // An if without else passes its parameters on.
        std::span<const ValType> results = frame.results();
        bool does_match = frame.params.size() == results.size();
        for (usize i = 0; does_match && i < results.size(); i++)
            does_match = matches(frame.params[i], results[i]);
        if (!does_match)
            return invalid("type mismatch: if without else expects results %s, got %s",
                           names(results).c_str(), names(frame.params).c_str());
    }
    if (in_.ok()) close();
}

void Validator::catch_(bool is_all) {
    Op open = frames_.back().op;
    if (open != Op::try_ && open != Op::catch_)
        return malformed("END opcode expected: %s without try", op_name());
    check_results();
    if (!in_.ok()) return;
    if (is_all) return reopen(Op::catch_all, {});
    if (instr_.a >= module_.tags.size()) return unknown("tag", instr_.a, module_.tags.size());
    reopen(Op::catch_, module_.types[module_.tags[instr_.a].type].func.params);
}

void Validator::delegate() {
    if (frames_.back().op != Op::try_)
        return malformed("END opcode expected: delegate without try");
    check_results();
    // The label counts from outside of the try.
    if (instr_.a >= frames_.size() - 1) return unknown("label", instr_.a, frames_.size() - 1);
    if (in_.ok()) close();
}

void Validator::rethrow() {
    const Frame* target = label(instr_.a);
    if (!target) return;
    if (target->op != Op::catch_ && target->op != Op::catch_all)
        return invalid("invalid rethrow label: label %u is not of a catch", instr_.a);
    set_unreachable();
}

void Validator::throw_() {
    if (instr_.a >= module_.tags.size()) return unknown("tag", instr_.a, module_.tags.size());
    pop(module_.types[module_.tags[instr_.a].type].func.params);
    set_unreachable();
}

void Validator::try_table() {
    ListReader list(module_.bytes, instr_);
    for (u32 i = 0; i < instr_.count && in_.ok(); i++) check_clause(list.catch_clause());
    if (in_.ok()) block();
}

void Validator::check_clause(const CatchClause& clause) {
    const Frame* target = label(clause.label);
    if (!target) return;
    std::span<const ValType> wanted = target->label(), params;
    if (clause.kind <= CatchClause::catch_ref) {
        if (clause.tag >= module_.tags.size())
            return unknown("tag", clause.tag, module_.tags.size());
        params = module_.types[module_.tags[clause.tag].type].func.params;
    }
    bool has_ref =
        clause.kind == CatchClause::catch_ref || clause.kind == CatchClause::catch_all_ref;
    bool does_match = wanted.size() == params.size() + has_ref;
    for (usize i = 0; does_match && i < params.size(); i++)
        does_match = matches(params[i], wanted[i]);
    if (does_match && has_ref) does_match = matches(ValType::ref(Heap::exn, false), wanted.back());
    if (!does_match)
        invalid("type mismatch: label %u expects %s, the catch clause brings %s%s", clause.label,
                names(wanted).c_str(), names(params).c_str(), has_ref ? " and (ref exn)" : "");
}

const Validator::Frame* Validator::label(u32 depth) {
    if (depth < frames_.size()) return &frames_[frames_.size() - 1 - depth];
    unknown("label", depth, frames_.size());
    return nullptr;
}

void Validator::br() {
    const Frame* target = label(instr_.a);
    if (!target) return;
    pop(target->label());
    set_unreachable();
}

void Validator::br_if() {
    pop(ValType::i32);
    if (const Frame* target = label(instr_.a)) check_top(target->label());
}

void Validator::br_table() {
    pop(ValType::i32);
    const Frame* fallback = label(instr_.a);
    if (!fallback) return;
    const usize arity = fallback->label().size();
    ListReader list(module_.bytes, instr_);
    std::span<const ValType> checked;
    for (u32 i = 0; i < instr_.count && in_.ok(); i++) {
        const Frame* target = label(list.label());
        if (!target) return;
        std::span<const ValType> types = target->label();
        if (types.size() != arity)
            return invalid("type mismatch: br_table has labels of %zu and of %zu values",
                           types.size(), arity);
        if (arity == 0 || types.data() == checked.data()) continue;
        // The values stay on the stack, since each label takes the same ones.
        checked = types;
        for (usize k = 0; k < arity && k < usize(top_ - base_); k++) {
            ValType wanted = types[arity - 1 - k], actual = top_[-1 - s64(k)];
            if (!matches(actual, wanted))
                return mismatch(module_.types.name(wanted), module_.types.name(actual));
        }
    }
    pop(fallback->label());
    set_unreachable();
}

void Validator::call() {
    if (instr_.a >= module_.funcs.size())
        return unknown("function", instr_.a, module_.funcs.size());
    call(module_.func_type(instr_.a), instr_.op == Op::return_call);
}

void Validator::call_indirect() {
    const Table* from = table(instr_.b);
    const SubType* type = from ? defined(instr_.a, TypeKind::func) : nullptr;
    if (!type) return;
    if (!matches(from->type.element, ValType::ref(Heap::func, true)))
        return mismatch("a table of funcref", "one of " + module_.types.name(from->type.element));
    pop(address_type(from->type.limits));
    call(type->func, instr_.op == Op::return_call_indirect);
}

void Validator::call_ref() {
    const SubType* type = defined(instr_.a, TypeKind::func);
    if (!type) return;
    pop(ref_to(instr_.a, true));
    call(type->func, instr_.op == Op::return_call_ref);
}

void Validator::call(const FuncType& type, bool is_return) {
    pop(type.params);
    if (!is_return) return push(type.results);

    std::span<const ValType> wanted = frames_[0].results();
    bool does_match = type.results.size() == wanted.size();
    for (usize i = 0; does_match && i < wanted.size(); i++)
        does_match = matches(type.results[i], wanted[i]);
    if (!does_match)
        return invalid("type mismatch: %s expects results %s, got %s", op_name(),
                       names(wanted).c_str(), names(type.results).c_str());
    set_unreachable();
}

std::string Validator::names(std::span<const ValType> types) const {
    std::string text = "[";
    for (usize i = 0; i < types.size() && i < 8; i++)
        text += (i ? " " : "") + module_.types.name(types[i]);
    return text + (types.size() > 8 ? " ...]" : "]");
}

}  // namespace gpurun::wasm
