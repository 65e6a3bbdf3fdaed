// The validator's loop, its operand stack, and the instructions that the opcode table describes
// in full. Everything hot is here; control, tables and references have files of their own.
#include "wasm/validate.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>

#include "base/format.h"
#include "wasm/limits.h"

namespace gpurun::wasm {

namespace {

// A signature of the opcode table in a form the loop can use.
struct Shape {
    Imm imm;
    u8 operands = 0;
    ValType::Kind result = ValType::unknown;  // unknown: none
    ValType::Kind operand[3] = {};            // an address is `unknown`
};

constexpr ValType::Kind kind_of(char letter) {
    switch (letter) {
        case 'i': return ValType::i32;
        case 'I': return ValType::i64;
        case 'f': return ValType::f32;
        case 'F': return ValType::f64;
        case 'V': return ValType::v128;
        default: return ValType::unknown;
    }
}

constexpr Shape shape_of(Imm imm, const char* signature) {
    Shape shape{imm};
    if (*signature == '*') return shape;
    for (; *signature != '>'; signature++) shape.operand[shape.operands++] = kind_of(*signature);
    shape.result = kind_of(signature[1]);
    return shape;
}

constexpr Shape shapes[] = {
#define OP(prefix, code, name, text, imm, sig) shape_of(Imm::imm, sig),
#include "wasm/opcodes.def"
#undef OP
};

constexpr u32 max_near_locals = 1000;

constexpr bool is_const_op(Op op) {
    switch (op) {
        case Op::i32_const:
        case Op::i64_const:
        case Op::f32_const:
        case Op::f64_const:
        case Op::v128_const:
        case Op::i32_add:
        case Op::i32_sub:
        case Op::i32_mul:
        case Op::i64_add:
        case Op::i64_sub:
        case Op::i64_mul:
        case Op::global_get:
        case Op::ref_null:
        case Op::ref_func:
        case Op::ref_i31:
        case Op::struct_new:
        case Op::struct_new_default:
        case Op::array_new:
        case Op::array_new_default:
        case Op::array_new_fixed:
        case Op::any_convert_extern:
        case Op::extern_convert_any:
        case Op::end: return true;
        default: return false;
    }
}

}  // namespace

bool Validator::body(u32 func, bool has_data_count) {
    const Func& f = module_.funcs[func];
    start(f.code, f.end);
    is_const_ = false;
    has_data_count_ = has_data_count;
    visible_globals_ = u32(module_.globals.size());
    if (read_locals(f)) {
        Frame frame;
        frame.offset = f.code;
        frame.long_results = module_.types[f.type].func.results;
        frames_.push_back(frame);
        set_base();
        run_body();
    }
    return finish();
}

// Checks a body, with one jump for each instruction: each one-byte opcode has a case of its own, in
// which the opcode table's row is a constant. Opcodes with a prefix share one case.
void Validator::run_body() {
    while (in_.ok()) {
        instr_.offset = in_.position();
        switch (u8 first = in_.byte()) {
#define CASE_0(code, name, imm)                 \
    case code:                                  \
        instr_.op = Op::name;                   \
        read_immediates(in_, instr_, Imm::imm); \
        if (in_.ok()) [[likely]]                \
            check(Op::name);                    \
        break;
#define CASE_0xfb(code, name, imm)
#define CASE_0xfc(code, name, imm)
#define CASE_0xfd(code, name, imm)
#define CASE_0xfe(code, name, imm)
#define OP(prefix, code, name, text, imm, sig) CASE_##prefix(code, name, imm)
#include "wasm/opcodes.def"
#undef OP
#undef CASE_0
#undef CASE_0xfb
#undef CASE_0xfc
#undef CASE_0xfd
#undef CASE_0xfe
            default:
                instr_.op = read_prefixed_op(in_, first);
                read_immediates(in_, instr_, op_lookup.imm[u32(instr_.op)]);
                if (in_.ok()) check_any();
        }
        if (frames_.empty()) [[unlikely]] {
            if (in_.ok() && !in_.at_end())
                malformed("section size mismatch: %u bytes after the end of the function",
                          in_.left());
            return;
        }
    }
}

bool Validator::const_expr(u32 begin, u32 end, ValType type, u32 visible_globals, ConstExpr& expr,
                           std::vector<u32>& declared) {
    start(begin, end);
    is_const_ = true;
    has_data_count_ = false;
    visible_globals_ = visible_globals;
    declared_ = &declared;
    Frame frame;
    frame.offset = begin;
    frame.has_single_result = true;
    frame.single = type;
    frames_.push_back(frame);
    set_base();
    while (in_.ok()) {
        read_instr(in_, instr_);
        if (!in_.ok()) break;
        if (!is_const_op(instr_.op))
            invalid("constant expression required, got %s", op_name());
        else
            check_any();
        if (in_.ok() && frames_.empty()) {
            expr = {begin, in_.position()};
            break;
        }
    }
    return finish();
}

void Validator::start(u32 begin, u32 end) {
    in_ = BinaryReader(module_.bytes.data(), begin, end);
    failure_.reset();
    frames_.clear();
    init_log_.clear();
    if (!stack_) grow(1);
    top_ = base_ = stack_.get();
}

bool Validator::finish() {
    if (!failure_ && !in_.ok()) {
        failure_ = malformed_bytes(module_.bytes, in_);
        if (in_.error_offset() == in_.end() && !frames_.empty())
            failure_->message += ": END opcode expected";
    }
    return !failure_;
}

// Reads the declarations of locals. A few bytes can declare 50,000 locals, in each of a million
// bodies: so only the first ones are laid out, and nothing is cleared.
bool Validator::read_locals(const Func& func) {
    const std::vector<ValType>& params = module_.types[func.type].func.params;
    locals_.assign(params.begin(), params.end());
    local_runs_.clear();
    param_count_ = local_count_ = u32(params.size());
    mark_++;
    bool has_unset = false;
    BinaryReader in(module_.bytes.data(), func.body, func.code);
    u32 groups = in.leb_u32();
    for (u32 i = 0; i < groups; i++) {
        instr_.offset = in.position();
        u32 count = in.leb_u32();
        s64 heap_code = 0;
        bool nullable = false;
        s64 c = read_val_type(in, heap_code, nullable);
        ValType type;
        if (!val_type(c, heap_code, nullable, type)) return false;
        has_unset |= !type.is_defaultable();
        if (locals_.size() < max_near_locals)
            locals_.insert(locals_.end(), std::min<usize>(count, max_near_locals - locals_.size()),
                           type);
        local_count_ += count;
        if (local_count_ > locals_.size()) local_runs_.push_back({local_count_, type});
    }
    if (has_unset && set_marks_.size() < local_count_) set_marks_.resize(local_count_);
    return true;
}

// Checks instr_, whose opcode the caller may know as a constant.
[[gnu::always_inline]] inline void Validator::check(Op op) {
    switch (op) {
        case Op::local_get: return local_get();
        case Op::local_set: return local_set(false);
        case Op::local_tee: return local_set(true);
        case Op::global_get: return global_get();
        case Op::global_set: return global_set();
        case Op::drop: pop_any(); return;
        case Op::select: return select();
        case Op::select_t: return select_t();

        case Op::unreachable: return set_unreachable();
        case Op::block:
        case Op::loop:
        case Op::if_:
        case Op::try_: return block();
        case Op::else_: return else_();
        case Op::end: return end();
        case Op::catch_: return catch_(false);
        case Op::catch_all: return catch_(true);
        case Op::delegate: return delegate();
        case Op::rethrow: return rethrow();
        case Op::try_table: return try_table();
        case Op::throw_: return throw_();
        case Op::throw_ref: pop(ValType::ref(Heap::exn, true)); return set_unreachable();
        case Op::br: return br();
        case Op::br_if: return br_if();
        case Op::br_table: return br_table();
        case Op::return_: pop(frames_[0].results()); return set_unreachable();

        case Op::call:
        case Op::return_call: return call();
        case Op::call_indirect:
        case Op::return_call_indirect: return call_indirect();
        case Op::call_ref:
        case Op::return_call_ref: return call_ref();

        case Op::table_get:
        case Op::table_set:
        case Op::table_size:
        case Op::table_grow:
        case Op::table_fill:
        case Op::table_copy:
        case Op::table_init:
        case Op::elem_drop: return table_op();
        case Op::memory_size:
        case Op::memory_grow:
        case Op::memory_fill:
        case Op::memory_copy:
        case Op::memory_init:
        case Op::data_drop: return memory_op();

        case Op::ref_null:
        case Op::ref_is_null:
        case Op::ref_func:
        case Op::ref_eq:
        case Op::ref_as_non_null:
        case Op::br_on_null:
        case Op::br_on_non_null:
        case Op::br_on_cast:
        case Op::br_on_cast_fail:
        case Op::ref_test:
        case Op::ref_test_null:
        case Op::ref_cast:
        case Op::ref_cast_null:
        case Op::any_convert_extern:
        case Op::extern_convert_any:
        case Op::ref_i31:
        case Op::i31_get_s:
        case Op::i31_get_u: return ref_op();
        case Op::struct_new:
        case Op::struct_new_default:
        case Op::struct_get:
        case Op::struct_get_s:
        case Op::struct_get_u:
        case Op::struct_set: return struct_op();
        case Op::array_new:
        case Op::array_new_default:
        case Op::array_new_fixed:
        case Op::array_get:
        case Op::array_get_s:
        case Op::array_get_u:
        case Op::array_set:
        case Op::array_len:
        case Op::array_fill:
        case Op::array_copy: return array_op();
        case Op::array_new_data:
        case Op::array_new_elem:
        case Op::array_init_data:
        case Op::array_init_elem: return array_segment_op();

        default: return simple(op);
    }
}

// Checks an instruction that the opcode table describes completely, except for immediates that have
// a range.
[[gnu::always_inline]] inline void Validator::simple(Op op) {
    const Shape& shape = shapes[u32(op)];
    ValType address = ValType::i32;
    if (shape.imm >= Imm::v128) {
        if (is_memarg(shape.imm))
            address = check_memarg();
        else
            check_lanes();
        if (!in_.ok()) return;
    }
    for (u32 i = shape.operands; i-- > 0;)
        pop(shape.operand[i] == ValType::unknown ? address : ValType(shape.operand[i]));
    if (shape.result != ValType::unknown) push(shape.result);
}

void Validator::check_any() { check(instr_.op); }

ValType Validator::check_memarg() {
    const MemoryType* type = memory(instr_.a);
    if (!type) return {};
    u32 natural = natural_align(instr_.imm);
    bool is_atomic = instr_.imm >= Imm::amem0 && instr_.imm < Imm::lmem0;
    if (instr_.align > natural)
        invalid("alignment must not be larger than natural: %s takes at most 2^%u, got 2^%u",
                op_name(), natural, instr_.align);
    else if (is_atomic && instr_.align != natural)
        invalid("atomic alignment must be natural: %s takes 2^%u, got 2^%u", op_name(), natural,
                instr_.align);
    if (!type->limits.is_64 && instr_.bits > 0xffffffff)
        invalid("offset out of range: %s has offset %llu in a 32-bit memory", op_name(),
                (unsigned long long)instr_.bits);
    if (instr_.imm >= Imm::lmem0 && instr_.lane >= 16u >> natural)
        invalid("invalid lane index: %s has %u lanes, got %u", op_name(), 16u >> natural,
                instr_.lane);
    return address_type(type->limits);
}

void Validator::check_lanes() {
    if (instr_.imm == Imm::v128) return;
    if (instr_.imm == Imm::shuffle) {
        for (u8 lane : instr_.bytes)
            if (lane >= 32)
                return invalid("invalid lane index: i8x16.shuffle has 32 lanes, got %u", lane);
        return;
    }
    u32 lanes = 2u << (u32(instr_.imm) - u32(Imm::lane2));
    if (instr_.lane >= lanes)
        invalid("invalid lane index: %s has %u lanes, got %u", op_name(), lanes, instr_.lane);
}

inline ValType Validator::local_type(u32 index) {
    return index < locals_.size() ? locals_[index] : far_local_type(index);
}

ValType Validator::far_local_type(u32 index) {
    if (index >= local_count_) {
        unknown("local", index, local_count_);
        return {};
    }
    auto run = std::upper_bound(local_runs_.begin(), local_runs_.end(), index,
                                [](u32 i, const LocalRun& r) { return i < r.end; });
    return run->type;
}

inline bool Validator::is_unset(u32 index, ValType type) const {
    return !type.is_defaultable() && index >= param_count_ && set_marks_[index] != mark_;
}

inline void Validator::local_get() {
    ValType type = local_type(instr_.a);
    if (is_unset(instr_.a, type)) [[unlikely]]
        return invalid("uninitialized local %u of type %s", instr_.a,
                       module_.types.name(type).c_str());
    push(type);
}

inline void Validator::local_set(bool is_tee) {
    ValType type = local_type(instr_.a);
    pop(type);
    if (is_tee) push(type);
    if (is_unset(instr_.a, type)) [[unlikely]] {
        set_marks_[instr_.a] = mark_;
        init_log_.push_back(instr_.a);
    }
}

void Validator::global_get() {
    if (instr_.a >= visible_globals_) return unknown("global", instr_.a, visible_globals_);
    const GlobalType& type = module_.globals[instr_.a].type;
    if (is_const_ && type.is_mutable)
        return invalid("constant expression required, global %u is mutable", instr_.a);
    push(type.type);
}

void Validator::global_set() {
    if (instr_.a >= visible_globals_) return unknown("global", instr_.a, visible_globals_);
    const GlobalType& type = module_.globals[instr_.a].type;
    if (!type.is_mutable) return invalid("immutable global: global.set of global %u", instr_.a);
    pop(type.type);
}

void Validator::select() {
    pop(ValType::i32);
    ValType second = pop_any(), first = pop_any();
    if (first.is_ref() || second.is_ref())
        return mismatch("a number or vector", module_.types.name(first.is_ref() ? first : second));
    if (first != second && first != ValType::unknown && second != ValType::unknown)
        return mismatch(module_.types.name(first), module_.types.name(second));
    push(first == ValType::unknown ? second : first);
}

void Validator::select_t() {
    if (instr_.count != 1)
        return invalid("invalid result arity: select has %u types, expected 1", instr_.count);
    ListReader list(module_.bytes, instr_);
    s64 heap_code = 0;
    bool nullable = false;
    s64 c = list.val_type(heap_code, nullable);
    ValType type;
    if (!val_type(c, heap_code, nullable, type)) return;
    pop(ValType::i32);
    pop(type);
    pop(type);
    push(type);
}

void Validator::push(std::span<const ValType> types) {
    if (usize(limit_ - top_) < types.size()) grow(types.size());
    for (ValType type : types) *top_++ = type;
}

void Validator::pop(std::span<const ValType> types) {
    for (usize i = types.size(); i-- > 0;) pop(types[i]);
}

ValType Validator::pop_any() {
    if (top_ > base_) return *--top_;
    if (!frames_.back().is_unreachable) mismatch("a value", "nothing");
    return ValType::unknown;
}

ValType Validator::pop_ref() {
    ValType type = pop_any();
    if (!type.is_ref() && type != ValType::unknown)
        mismatch("a reference", module_.types.name(type));
    return type.is_ref() ? type : bottom_ref;
}

void Validator::pop_slow(ValType expected) {
    if (top_ == base_) {
        if (!frames_.back().is_unreachable) mismatch(module_.types.name(expected), "nothing");
        return;
    }
    ValType actual = *--top_;
    if (!matches(actual, expected))
        mismatch(module_.types.name(expected), module_.types.name(actual));
}

// Checks the newest operands as if they were popped and pushed again: afterwards the stack holds
// exactly `types` there.
void Validator::check_top(std::span<const ValType> types) {
    usize n = types.size();
    if (usize(top_ - base_) >= n) {
        ValType* values = top_ - n;
        for (usize i = n; i-- > 0;) {
            if (values[i] == types[i]) [[likely]]
                continue;
            if (!matches(values[i], types[i]))
                return mismatch(module_.types.name(types[i]), module_.types.name(values[i]));
            values[i] = types[i];
        }
        return;
    }
    pop(types);
    if (in_.ok()) push(types);
}

bool Validator::matches(ValType actual, ValType expected) const {
    if (actual == expected || actual == ValType::unknown) return true;
    if (actual.is_ref() && actual.heap() == bottom_heap)
        return expected.is_ref() && (expected.is_nullable() || !actual.is_nullable());
    return module_.types.matches(actual, expected);
}

void Validator::grow(usize count) {
    usize used = stack_ ? height() : 0, size = usize(limit_ - stack_.get());
    usize wanted =
        std::max(std::min<usize>(std::max<usize>(size * 2, 1024), max_operands), used + count);
    if (used + count > max_operands)
        invalid("too many operands: %zu, the limit is %u", used + count, max_operands);
    auto bigger = std::make_unique<ValType[]>(wanted);
    for (usize i = 0; i < used; i++) bigger[i] = stack_[i];
    stack_ = std::move(bigger);
    top_ = stack_.get() + used;
    limit_ = stack_.get() + wanted;
    base_ = frames_.empty() ? stack_.get() : stack_.get() + frames_.back().height;
}

void Validator::invalid(const char* pattern, ...) {
    char text[512];
    va_list args;
    va_start(args, pattern);
    std::vsnprintf(text, sizeof text, pattern, args);
    va_end(args);
    fail({text, instr_.offset, false});
}

void Validator::malformed(const char* pattern, ...) {
    char text[512];
    va_list args;
    va_start(args, pattern);
    std::vsnprintf(text, sizeof text, pattern, args);
    va_end(args);
    fail({text, instr_.offset, true});
}

void Validator::mismatch(std::string expected, std::string actual) {
    invalid("type mismatch: %s expects %s, got %s", op_name(), expected.c_str(), actual.c_str());
}

void Validator::unknown(const char* what, usize index, usize size) {
    invalid("unknown %s %zu: there are %zu", what, index, size);
}

void Validator::fail(Failure failure) {
    if (!failure_) failure_ = std::move(failure);
    in_.fail("");
}

}  // namespace gpurun::wasm
