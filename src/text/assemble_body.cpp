// Instructions, folded or not. Nesting lives in an explicit stack of frames: no depth of the
// input can exhaust the machine's stack.
#include "text/encode.h"
#include "text/module_assembler.h"

namespace gpurun::text {

using wasm::Imm;
using wasm::Op;
using wasm::op_info;

namespace {

void put_op(wasm::Bytes& out, Op op) {
    const wasm::OpInfo& info = op_info(op);
    if (info.prefix) {
        out.push_back(info.prefix);
        put_u32(out, info.code);
    } else {
        out.push_back(u8(info.code));
    }
}

// Of rows that share their text, the first.
Op op_from_text(std::string_view text) {
    static const std::unordered_map<std::string_view, Op> ops = [] {
        std::unordered_map<std::string_view, Op> map;
        for (u32 op = 0; op < u32(Op::count); op++) map.emplace(op_info(Op(op)).text, Op(op));
        return map;
    }();
    auto found = ops.find(text);
    return found == ops.end() ? Op::invalid : found->second;
}

}  // namespace

void ModuleAssembler::start_body() {
    labels_.clear();
    label_ids_.clear();
    label_total_ = 0;
    body_label_names_.clear();
    body_hints_.clear();
}

void ModuleAssembler::function_body(Section& out) {
    start_body();
    in_function_ = true;
    instructions(out, false);
    in_function_ = false;
    emit_op(in_.peek().position, Op::end);
    if (!body_label_names_.empty())
        label_names_.emplace_back(current_func_, std::move(body_label_names_));
    if (!body_hints_.empty()) hints_.emplace_back(current_func_, std::move(body_hints_));
}

void ModuleAssembler::expression(Section& out) {
    start_body();
    instructions(out, false);
    emit_op(in_.peek().position, Op::end);
}

void ModuleAssembler::folded_expression(Section& out) {
    start_body();
    instructions(out, true);
    emit_op(in_.peek().position, Op::end);
}

void ModuleAssembler::instructions(Section& out, bool only_one) {
    out_ = &out;
    pending_.clear();
    frames_.clear();
    frames_.push_back({Frame::Kind::body, {}});
    while (!in_.failed()) {
        bool in_body = frames_.back().kind == Frame::Kind::body;
        if (in_.is(Kind::left)) {
            open_parenthesis();
        } else if (in_.is(Kind::right)) {
            if (in_body && !only_one) return;
            close_parenthesis();
        } else if (in_.is(Kind::keyword) && !(in_body && only_one)) {
            flat_instruction();
        } else {
            in_.unexpected();
        }
        if (only_one && frames_.size() == 1) return;
    }
}

void ModuleAssembler::open_parenthesis() {
    Frame::Kind kind = frames_.back().kind;
    bool needs_clause = (kind == Frame::Kind::condition && in_.is_left("then")) ||
                        kind == Frame::Kind::after_then || kind == Frame::Kind::before_do ||
                        kind == Frame::Kind::clauses || kind == Frame::Kind::closing ||
                        kind == Frame::Kind::delegated;
    if (needs_clause) return open_clause();

    std::string hint = take_hint();
    in_.take();
    const Token& word = in_.peek();
    Op op = find_op();
    if (in_.failed()) return;
    open_folded(op, word);
    if (in_.failed() || hint.empty()) return;
    // A folded block is emitted at once, all others with their frame.
    if (op != Op::if_ && op != Op::br_if) {
        return in_.fail(word, "@metadata.code.branch_hint annotation: invalid target");
    }
    frames_.back().hint = std::move(hint);
}

void ModuleAssembler::open_folded(Op op, const Token& word) {
    Frame frame{Frame::Kind::plain, word.position};
    frame.pending = u32(pending_.size());
    switch (op) {
        case Op::block:
        case Op::loop:
        case Op::try_table:
        case Op::try_:
            flat_block(op, word);
            if (in_.failed()) return;
            frames_.back().kind =
                op == Op::try_ ? Frame::Kind::before_do : Frame::Kind::folded_block;
            return;
        case Op::if_:
            frame.kind = Frame::Kind::condition;
            put_op(pending_, op);
            frame.id = label_id();
            block_type(pending_);
            break;
        case Op::else_:
        case Op::end:
        case Op::catch_:
        case Op::catch_all:
        case Op::delegate: return in_.unexpected(word);
        default: plain_instruction(pending_, op);
    }
    frames_.push_back(std::move(frame));
}

// The "(then", "(else", "(do", "(catch" … that is due now.
void ModuleAssembler::open_clause() {
    Frame& frame = frames_.back();
    in_.take();
    const Token& word = in_.peek();
    auto is_due = [&](Frame::Kind kind, std::string_view keyword) {
        return frame.kind == kind && in_.accept_keyword(keyword);
    };
    if (is_due(Frame::Kind::condition, "then")) {
        emit(frame.position, pending_, frame.pending, frame.hint);
        pending_.resize(frame.pending);
        push_label(frame.id);
        frame.kind = Frame::Kind::then;
    } else if (is_due(Frame::Kind::after_then, "else")) {
        emit_op(word.position, Op::else_);
        frame.kind = Frame::Kind::folded_else;
    } else if (is_due(Frame::Kind::before_do, "do")) {
        frame.kind = Frame::Kind::do_;
    } else if (is_due(Frame::Kind::clauses, "catch")) {
        emit_op(word.position, Op::catch_, index(tag_space_));
        frame.kind = Frame::Kind::folded_catch;
    } else if (is_due(Frame::Kind::clauses, "catch_all")) {
        emit_op(word.position, Op::catch_all);
        frame.kind = Frame::Kind::folded_catch_all;
    } else if (!frame.has_catch && is_due(Frame::Kind::clauses, "delegate")) {
        pop_label();
        emit_op(word.position, Op::delegate, label());
        in_.expect_right();
        frame.kind = Frame::Kind::delegated;
    } else {
        in_.unexpected(word);
    }
}

void ModuleAssembler::close_parenthesis() {
    Frame& frame = frames_.back();
    Position here = in_.peek().position;
    switch (frame.kind) {
        case Frame::Kind::plain:
            in_.take();
            emit(frame.position, pending_, frame.pending, frame.hint);
            pending_.resize(frame.pending);
            frames_.pop_back();
            return;
        case Frame::Kind::folded_block:
        case Frame::Kind::after_then:
        case Frame::Kind::clauses:
        case Frame::Kind::closing: in_.take(); return close_block(here);
        case Frame::Kind::delegated:
            in_.take();
            frames_.pop_back();
            return;
        case Frame::Kind::then: frame.kind = Frame::Kind::after_then; break;
        case Frame::Kind::do_: frame.kind = Frame::Kind::clauses; break;
        case Frame::Kind::folded_catch:
            frame.kind = Frame::Kind::clauses;
            frame.has_catch = true;
            break;
        case Frame::Kind::folded_else:
        case Frame::Kind::folded_catch_all: frame.kind = Frame::Kind::closing; break;
        default: return in_.unexpected();
    }
    in_.take();
}

void ModuleAssembler::close_block(Position position) {
    emit_op(position, Op::end);
    pop_label();
    frames_.pop_back();
}

void ModuleAssembler::flat_instruction() {
    switch (frames_.back().kind) {
        case Frame::Kind::plain:
        case Frame::Kind::condition:
        case Frame::Kind::after_then:
        case Frame::Kind::before_do:
        case Frame::Kind::clauses:
        case Frame::Kind::closing:
        case Frame::Kind::delegated: return in_.unexpected();
        default: break;
    }
    std::string hint = take_hint();
    const Token& word = in_.peek();
    Op op = find_op();
    if (in_.failed()) return;
    if (!hint.empty() && op != Op::if_ && op != Op::br_if) {
        return in_.fail(word, "@metadata.code.branch_hint annotation: invalid target");
    }
    switch (op) {
        case Op::block:
        case Op::loop:
        case Op::try_table:
        case Op::try_: return flat_block(op, word);
        case Op::if_: {
            scratch_.clear();
            put_op(scratch_, op);
            std::string_view id = label_id();
            block_type(scratch_);
            emit(word.position, scratch_, 0, hint);
            push_label(id);
            frames_.push_back({Frame::Kind::if_, word.position});
            return;
        }
        case Op::else_: return flat_else(word);
        case Op::catch_:
        case Op::catch_all: return flat_catch(op, word);
        case Op::delegate: return flat_delegate(word);
        case Op::end: return flat_end(word);
        default:
            scratch_.clear();
            plain_instruction(scratch_, op);
            emit(word.position, scratch_, 0, hint);
    }
}

void ModuleAssembler::flat_block(Op op, const Token& word) {
    scratch_.clear();
    put_op(scratch_, op);
    std::string_view id = label_id();
    block_type(scratch_);
    if (op == Op::try_table) catch_clauses(scratch_);
    emit(word.position, scratch_, 0, {});
    push_label(id);
    frames_.push_back({op == Op::try_ ? Frame::Kind::try_ : Frame::Kind::block, word.position});
}

void ModuleAssembler::flat_else(const Token& word) {
    if (frames_.back().kind != Frame::Kind::if_) return in_.unexpected(word);
    check_label_repeats();
    emit_op(word.position, Op::else_);
    frames_.back().kind = Frame::Kind::else_;
}

void ModuleAssembler::flat_catch(Op op, const Token& word) {
    Frame& frame = frames_.back();
    if (frame.kind != Frame::Kind::try_ && frame.kind != Frame::Kind::catch_)
        return in_.unexpected(word);
    if (op == Op::catch_) {
        emit_op(word.position, op, index(tag_space_));
        frame.kind = Frame::Kind::catch_;
    } else {
        emit_op(word.position, op);
        frame.kind = Frame::Kind::catch_all;
    }
}

void ModuleAssembler::flat_delegate(const Token& word) {
    if (frames_.back().kind != Frame::Kind::try_) return in_.unexpected(word);
    pop_label();
    frames_.pop_back();
    emit_op(word.position, Op::delegate, label());
}

void ModuleAssembler::flat_end(const Token& word) {
    switch (frames_.back().kind) {
        case Frame::Kind::block:
        case Frame::Kind::if_:
        case Frame::Kind::else_:
        case Frame::Kind::try_:
        case Frame::Kind::catch_:
        case Frame::Kind::catch_all: break;
        default: return in_.unexpected(word);
    }
    check_label_repeats();
    close_block(word.position);
}

// `else` and `end` may repeat the label of their block.
void ModuleAssembler::check_label_repeats() {
    if (!in_.is(Kind::id)) return;
    const Token& token = in_.take();
    if (tokens_.id(token) == labels_.back().id) return;
    in_.fail(token, "mismatching label " + std::string(tokens_.text(token)));
}

std::string ModuleAssembler::take_hint() {
    const Annotation* annotation = take_annotation(Annotation::Kind::branch_hint);
    if (!annotation) return {};
    std::string prefix = "@metadata.code.branch_hint annotation: ";
    if (!in_function_) in_.fail_at(annotation->position, prefix + "not in a function");
    if (take_annotation(Annotation::Kind::branch_hint)) {
        in_.fail_at(annotation->position, prefix + "duplicate annotation");
    }
    if (annotation->contents.size() == 1 && annotation->contents[0].kind == Kind::string) {
        std::string payload = tokens_.string(annotation->contents[0]);
        if (payload.size() == 1 && u8(payload[0]) <= 1) return payload;
    }
    in_.fail_at(annotation->position, prefix + R"(expects "\00" or "\01")");
    return {};
}

void ModuleAssembler::emit(Position position, const Bytes& bytes, u32 from,
                           const std::string& hint) {
    if (in_.failed()) return;
    u32 offset = u32(out_->bytes.size());
    if (!hint.empty()) body_hints_.emplace_back(offset, hint);
    out_->lines.emplace_back(offset, position);
    out_->bytes.insert(out_->bytes.end(), bytes.begin() + from, bytes.end());
}

void ModuleAssembler::emit_op(Position position, Op op) {
    scratch_.clear();
    put_op(scratch_, op);
    emit(position, scratch_, 0, {});
}

void ModuleAssembler::emit_op(Position position, Op op, u32 operand) {
    scratch_.clear();
    put_op(scratch_, op);
    put_u32(scratch_, operand);
    emit(position, scratch_, 0, {});
}

std::string_view ModuleAssembler::label_id() {
    return in_.is(Kind::id) ? tokens_.id(in_.take()) : std::string_view();
}

void ModuleAssembler::push_label(std::string_view id) {
    u32 place = u32(labels_.size()), shadowed = 0;
    if (!id.empty()) {
        shadowed = std::exchange(label_ids_[id], place + 1);
        if (in_function_) body_label_names_.emplace_back(label_total_, id);
    }
    labels_.push_back({id, shadowed});
    label_total_++;
}

void ModuleAssembler::pop_label() {
    if (in_.failed()) return;
    const Label& label = labels_.back();
    if (!label.id.empty()) label_ids_[label.id] = label.shadowed;
    labels_.pop_back();
}

u32 ModuleAssembler::label() {
    if (!in_.is(Kind::id)) return in_.expect_u32();
    const Token& token = in_.take();
    auto found = label_ids_.find(tokens_.id(token));
    if (found == label_ids_.end() || found->second == 0) {
        in_.fail(token, "unknown label " + std::string(tokens_.text(token)));
        return 0;
    }
    return u32(labels_.size()) - found->second;
}

void ModuleAssembler::block_type(Bytes& out) {
    TypeUse use = type_use();
    if (use.is_explicit || use.given.param_count || use.given.result_count > 1) {
        put_s64(out, type_index(use));
    } else if (use.given.result_count) {
        put_bytes(out, use.given.results);
    } else {
        put_s64(out, wasm::block_empty);
    }
}

void ModuleAssembler::catch_clauses(Bytes& out) {
    constexpr std::string_view kinds[] = {"catch", "catch_ref", "catch_all", "catch_all_ref"};
    Bytes clauses;
    u32 count = 0;
    while (in_.is(Kind::left) && !in_.failed()) {
        u32 kind = 0;
        while (kind < 4 && !in_.is_keyword(kinds[kind], 1)) kind++;
        if (kind == 4) break;
        in_.take();
        in_.take();
        clauses.push_back(u8(kind));
        if (kind < 2) put_u32(clauses, index(tag_space_));
        put_u32(clauses, label());
        in_.expect_right();
        count++;
    }
    put_u32(out, count);
    put_bytes(out, clauses);
}

Op ModuleAssembler::find_op() {
    Op op = in_.is(Kind::keyword) ? op_from_text(in_.text()) : Op::invalid;
    if (op == Op::invalid) {
        in_.unexpected();
    } else {
        in_.take();
    }
    return op;
}

void ModuleAssembler::plain_instruction(Bytes& out, Op op) {
    switch (op) {
        case Op::select:
            if (!in_.is_left("result")) break;
            put_op(out, Op::select_t);
            return select(out);
        case Op::ref_test:
        case Op::ref_cast: {
            bool nullable = false;
            s64 heap = ref_type(nullable);
            if (nullable) op = op == Op::ref_test ? Op::ref_test_null : Op::ref_cast_null;
            put_op(out, op);
            put_s64(out, heap);
            return;
        }
        default: break;
    }
    put_op(out, op);
    operands(out, op);
}

}  // namespace gpurun::text
