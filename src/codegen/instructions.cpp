// The IR of each instruction but calls: by its row's family, or by what abi/code.h says of it.
#include <array>

#include "abi/layout.h"
#include "abi/v128.h"
#include "base/check.h"
#include "codegen/function_builder.h"
#include "codegen/merge_checks.h"

namespace gpurun::codegen {
namespace {

template <class T>
constexpr u32 words = sizeof(T) <= 4 ? 1 : sizeof(T) / 4;

}  // namespace

void FunctionBuilder::build_instr() {
    const CodeOp op = CodeOp(op_of(code_word(0)));
    const u64 w = code_word(0);
    const u32 a = a_of(w);
    if (build_number(op) || build_access(op)) return;
    switch (op) {
        case CodeOp::enter: return build_enter();
        case CodeOp::ret:
        case CodeOp::ret_32:
        case CodeOp::ret_64: return build_return(op);
        case CodeOp::charge:
            return leave_if(b_.CreateNot(runtime("native_charge", {context_, number(imm_of(w))})),
                            NativeStatus::interpret);
        case CodeOp::br: return go_to(position_ + imm_of(w));
        case CodeOp::br_z:
            return build_branch(b_.CreateICmpEQ(read(a, 1), number(0)), position_ + imm_of(w));
        case CodeOp::br_nz:
            return build_branch(b_.CreateICmpNE(read(a, 1), number(0)), position_ + imm_of(w));
        case CodeOp::br_table: {
            Value* index = read(a, 1);
            const u32 count = imm_of(w);
            llvm::SwitchInst* table =
                b_.CreateSwitch(index, block(flow_.block_at(e_.targets[count])), count);
            for (u32 i = 0; i < count; i++)
                table->addCase(b_.getInt32(i), block(flow_.block_at(e_.targets[i])));
            is_open_ = false;
            return;
        }
        case CodeOp::call:
        case CodeOp::call_import:
        case CodeOp::call_indirect:
        case CodeOp::call_ref: return build_call(op);
        case CodeOp::call_far: return build_far_call();
        case CodeOp::return_call:
        case CodeOp::return_call_import:
        case CodeOp::return_call_indirect:
        case CodeOp::return_call_ref: return build_tail_call(op);

        // The interpreter raises traps and exceptions.
        case CodeOp::unreachable:
        case CodeOp::throw_tag:
        case CodeOp::throw_ref:
        case CodeOp::throw_again:
            leave_here(NativeStatus::interpret);
            is_open_ = false;
            return;
        case CodeOp::try_begin: {
            handlers_.push_back(e_.handler);
            runtime("native_handler", {context_, fp_, rp_here(), number(e_.handler)});
            return;
        }
        case CodeOp::try_end: handlers_.resize(handlers_.size() - imm_of(w)); return;
        case CodeOp::catch_tag: {
            Value* is_it = runtime("native_is_tag", {context_, number(low_of(code_word(1)))});
            return build_branch(b_.CreateNot(is_it), position_ + imm_of(w));
        }
        case CodeOp::catch_ref: return write(a, 1, runtime("native_exception", {context_}));
        case CodeOp::memory_size: return write(a, 1, runtime("native_pages", {load(memory_size_)}));
        case CodeOp::ref_func:
            return write(a, 1, runtime("native_own_function", {context_, number(imm_of(w))}));
        case CodeOp::copy_32:
        case CodeOp::copy_64:
        case CodeOp::copy_128:
        case CodeOp::copy_words:
        case CodeOp::const_32:
        case CodeOp::const_64:
        case CodeOp::const_64_k:
        case CodeOp::const_128:
        case CodeOp::select_32:
        case CodeOp::select_64:
        case CodeOp::select_128:
        case CodeOp::far_get_32:
        case CodeOp::far_get_64:
        case CodeOp::far_get_128:
        case CodeOp::far_set_32:
        case CodeOp::far_set_64:
        case CodeOp::far_set_128:
        case CodeOp::global_get_32:
        case CodeOp::global_get_64:
        case CodeOp::global_get_128:
        case CodeOp::global_set_32:
        case CodeOp::global_set_64:
        case CodeOp::global_set_128:
        case CodeOp::global_get_imported:
        case CodeOp::global_set_imported: return build_move(op);
        case CodeOp::memory_fill:
        case CodeOp::memory_copy: return build_bulk(op);
        default: return build_operate();
    }
}

void FunctionBuilder::build_branch(Value* condition, u32 target) {
    b_.CreateCondBr(condition, block(flow_.block_at(target)),
                    block(flow_.block_at(position_ + e_.words)));
    is_open_ = false;
}

void FunctionBuilder::build_enter() {
    const u64 w = code_word(0);
    enter_ = b_.GetInsertBlock();
    // Out of stack is the interpreter's to say; out of time, or of the hardware's stack, is not.
    Value* left = counts_     ? load(quantum_)
                  : deadline_ ? nullptr
                              : runtime("native_quantum", {context_});
    Value* has_room = runtime("native_has_room", {fp_, rp(), number(c_of(w))});
    Value* may_enter =
        b_.CreateAnd(b_.CreateNot(is_late(left)), runtime("native_has_stack", {context_}));
    BasicBlock *rare = new_block("leave"), *usual = new_block("on");
    branch_rarely(b_.CreateNot(b_.CreateAnd(has_room, may_enter)), rare, usual);
    b_.SetInsertPoint(rare);
    Value* why =
        b_.CreateSelect(has_room, status(NativeStatus::yield), status(NativeStatus::interpret));
    leave(LeaveKind::entering, why, number(position_), lives_[index_], ~u32{0});
    b_.SetInsertPoint(usual);
    if (!deadline_) {
        left = runtime("native_after_call", {left});
        if (counts_)
            b_.CreateStore(left, quantum_);
        else
            runtime("native_set_quantum", {context_, left});
    }
    flow_.apply(e_, position_, states_, handlers_);
}

void FunctionBuilder::build_return(CodeOp op) {
    llvm::SmallVector<Value*, 4> results;
    if (op == CodeOp::ret) {
        u32 slot = 0;
        for (wasm::ValType type : type_.results) {
            results.push_back(read(slot, translate::words_of(type)));
            slot += translate::words_of(type);
        }
    } else {
        results.push_back(read(b_of(code_word(0)), op == CodeOp::ret_32 ? 1 : 2));
    }
    give_back(status(NativeStatus::done), results);
}

// ---- numbers -----------------------------------------------------------------------

bool FunctionBuilder::build_number(CodeOp op) {
    const u64 w = code_word(0);
    const u32 a = a_of(w), b = b_of(w), c = c_of(w);
    const s64 k = s16(c);
    auto constant = [&](u32 count) -> Value* {
        return count == 1 ? b_.getInt32(u32(k)) : b_.getInt64(u64(k));
    };
    auto is_set = [&](Value* value) { return b_.CreateICmpNE(value, number(0)); };
    auto branch_target = [&] { return position_ + u32(s32(s16(a))); };
    switch (op) {
#define OP(name)
#define UN(name, R, A) \
    case CodeOp::name: write(a, words<R>, runtime("native_" #name, {read(b, words<A>)})); break;
#define VEC_UN UN
#define BIN(name, R, A, B)                                                                    \
    case CodeOp::name:                                                                        \
        write(a, words<R>, runtime("native_" #name, {read(b, words<A>), read(c, words<B>)})); \
        break;
#define VEC_BIN BIN
#define BIN_INT(name, T)                                                                       \
    BIN(name, T, T, T)                                                                         \
    case CodeOp::name##_k:                                                                     \
        write(a, words<T>, runtime("native_" #name, {read(b, words<T>), constant(words<T>)})); \
        break;
#define CMP_FLOAT(name, T)                                                                     \
    BIN(name, u32, T, T)                                                                       \
    case CodeOp::br_##name:                                                                    \
        build_branch(is_set(runtime("native_" #name, {read(b, words<T>), read(c, words<T>)})), \
                     branch_target());                                                         \
        break;
#define CMP_INT(name, T)                                                                        \
    CMP_FLOAT(name, T)                                                                          \
    case CodeOp::name##_k:                                                                      \
        write(a, 1, runtime("native_" #name, {read(b, words<T>), constant(words<T>)}));         \
        break;                                                                                  \
    case CodeOp::br_##name##_k:                                                                 \
        build_branch(is_set(runtime("native_" #name, {read(b, words<T>), constant(words<T>)})), \
                     branch_target());                                                          \
        break;
#define UN_TRAP(name, R, A)                                                        \
    case CodeOp::name: {                                                           \
        Value* x = read(b, words<A>);                                              \
        leave_if(runtime("native_" #name "_traps", {x}), NativeStatus::interpret); \
        write(a, words<R>, runtime("native_" #name, {x}));                         \
        break;                                                                     \
    }
#define BIN_TRAP(name, R, A, B)                                                       \
    case CodeOp::name: {                                                              \
        Value *x = read(b, words<A>), *y = read(c, words<B>);                         \
        leave_if(runtime("native_" #name "_traps", {x, y}), NativeStatus::interpret); \
        write(a, words<R>, runtime("native_" #name, {x, y}));                         \
        break;                                                                        \
    }
#define VEC_TERN(name, R, A, B, C)                                             \
    case CodeOp::name:                                                         \
        write(a, words<R>,                                                     \
              runtime("native_" #name, {read(b, words<A>), read(c, words<B>),  \
                                        read(a_of(code_word(1)), words<C>)})); \
        break;
#define VEC_SHUFFLE(name)                                                                          \
    case CodeOp::name: {                                                                           \
        const u32 lanes[] = {low_of(code_word(1)), high_of(code_word(1)), low_of(code_word(2)),    \
                             high_of(code_word(2))};                                               \
        write(a, 4,                                                                                \
              runtime("native_" #name, {read(b, 4), read(c, 4),                                    \
                                        llvm::ConstantDataVector::get(piece_.context(), lanes)})); \
        break;                                                                                     \
    }
#define LANE_GET(name, R) \
    case CodeOp::name: write(a, words<R>, runtime("native_" #name, {read(b, 4), number(c)})); break;
#define LANE_SET(name, A)                                                            \
    case CodeOp::name:                                                               \
        write(a, 4,                                                                  \
              runtime("native_" #name,                                               \
                      {read(b, 4), read(c, words<A>), number(a_of(code_word(1)))})); \
        break;
#include "abi/code_ops.def"
#undef OP
        default: return false;
    }
    return true;
}

// ---- memory ------------------------------------------------------------------------

// Where an access in general form goes; leaves if it may not be.
FunctionBuilder::Value* FunctionBuilder::access_at(u32 width, bool is_write, bool is_aligned) {
    const u64 w = code_word(0);
    Value* address = c_of(w) ? read(b_of(w), 2) : b_.CreateZExt(read(b_of(w), 1), b_.getInt64Ty());
    Value* at = runtime("native_access", {context_, number(low_of(code_word(1))), address,
                                          b_.getInt64(code_word(2)), number(width)});
    Value* is_bad = b_.CreateIsNull(at);
    if (is_aligned && width > 1)
        is_bad = b_.CreateOr(is_bad, runtime("native_is_unaligned", {context_, at, number(width)}));
    leave_if(is_bad, NativeStatus::interpret);
    if (is_write) {
        Value* pieces = runtime("native_dirty_at", {context_, at});
        b_.CreateStore(b_.CreateOr(load(dirty_), pieces), dirty_);
    }
    return at;
}

// Leaves unless all that is to be checked of the address is so.
void FunctionBuilder::check_address(Value* address, const Checks::Check& check) {
    Value* is_bad = nullptr;
    if (check.end > 0)
        is_bad =
            b_.CreateCall(piece_.outside(), {load(memory_size_), address, b_.getInt64(check.end)});
    if (check.mask != 0) {
        Value* is_unaligned = b_.CreateICmpNE(b_.CreateAnd(address, number(check.mask)), number(0));
        is_bad = is_bad ? b_.CreateOr(is_bad, is_unaligned) : is_unaligned;
    }
    if (is_bad) leave_if(is_bad, NativeStatus::interpret);
}

bool FunctionBuilder::build_access(CodeOp op) {
    const u64 w = code_word(0);
    const u32 a = a_of(w), b = b_of(w);
    const u32 extra = e_.words > 1 ? high_of(code_word(1)) : 0;
    // Of memory 0, by a 32-bit address.
    auto plain = [&] {
        Value* address = read(b, 1);
        const Checks::Access& access = *checks_.access(position_);
        const u32 offset = access.offset;
        check_address(address, checks_.check(position_));
        if (access.is_store && !access.is_noted) {
            Value* pieces = runtime(note_name, {dirty_shift_, address, b_.getInt64(offset)});
            b_.CreateStore(b_.CreateOr(load(dirty_), pieces), dirty_);
        }
        return std::array{load(memory_), address, static_cast<Value*>(number(offset))};
    };
    auto named = [&](const char* name, const char* aligned) {
        return checks_.access(position_)->is_aligned ? aligned : name;
    };
    switch (op) {
#define OP(name)
#define LOAD(name, R, M)                                                                          \
    case CodeOp::name:                                                                            \
    case CodeOp::name##_w:                                                                        \
        write(a, words<R>, runtime(named("native_" #name, "native_" #name "_aligned"), plain())); \
        break;
#define STORE(name, A, M)                                           \
    case CodeOp::name:                                              \
    case CodeOp::name##_w: {                                        \
        auto [base, address, offset] = plain();                     \
        runtime(named("native_" #name, "native_" #name "_aligned"), \
                {base, address, offset, read(a, words<A>)});        \
        break;                                                      \
    }
#define LOAD_X(name, R, M)                                                                       \
    case CodeOp::name##_x:                                                                       \
        write(a, words<R>, runtime("native_" #name "_x", {access_at(sizeof(M), false, false)})); \
        break;
#define STORE_X(name, A, M)                                     \
    case CodeOp::name##_x: {                                    \
        Value* at = access_at(sizeof(M), true, false);          \
        runtime("native_" #name "_x", {at, read(a, words<A>)}); \
        break;                                                  \
    }
#define VEC_LOAD(name, M)                                                            \
    case CodeOp::name:                                                               \
        write(a, 4, runtime("native_" #name, {access_at(sizeof(M), false, false)})); \
        break;
#define VEC_STORE(name)                                   \
    case CodeOp::name: {                                  \
        Value* at = access_at(sizeof(V128), true, false); \
        runtime("native_" #name, {at, read(a, 4)});       \
        break;                                            \
    }
#define VEC_LOAD_LANE(name, M)                                                                     \
    case CodeOp::name: {                                                                           \
        Value* at = access_at(sizeof(M), false, false);                                            \
        write(a, 4, runtime("native_" #name, {at, read(extra >> 16, 4), number(extra & 0xffff)})); \
        break;                                                                                     \
    }
#define VEC_STORE_LANE(name, M)                                             \
    case CodeOp::name: {                                                    \
        Value* at = access_at(sizeof(M), true, false);                      \
        runtime("native_" #name, {at, read(a, 4), number(extra & 0xffff)}); \
        break;                                                              \
    }
#define ATOMIC_LOAD(name, V, M)                                                            \
    case CodeOp::name:                                                                     \
        write(a, words<V>, runtime("native_" #name, {access_at(sizeof(M), false, true)})); \
        break;
#define ATOMIC_STORE(name, V, M)                           \
    case CodeOp::name: {                                   \
        Value* at = access_at(sizeof(M), true, true);      \
        runtime("native_" #name, {at, read(a, words<V>)}); \
        break;                                             \
    }
#define ATOMIC_RMW(name, V, M, f)                                                           \
    case CodeOp::name: {                                                                    \
        Value* at = access_at(sizeof(M), true, true);                                       \
        write(a, words<V>, runtime("native_" #name, {at, read(extra & 0xffff, words<V>)})); \
        break;                                                                              \
    }
// What is expected is compared as what is stored: as many bytes as the access has.
#define ATOMIC_CMPXCHG(name, V, M)                                                                 \
    case CodeOp::name: {                                                                           \
        Value* at = access_at(sizeof(M), true, true);                                              \
        Value* expected = read(extra & 0xffff, words<V>);                                          \
        expected = b_.CreateAnd(expected, llvm::ConstantInt::get(expected->getType(), M(~M{0})));  \
        write(a, words<V>, runtime("native_" #name, {at, expected, read(extra >> 16, words<V>)})); \
        break;                                                                                     \
    }
#include "abi/code_ops.def"
#undef OP
        default: return false;
    }
    return true;
}

// ---- moves -------------------------------------------------------------------------

void FunctionBuilder::build_move(CodeOp op) {
    const u64 w = code_word(0);
    const u32 a = a_of(w), b = b_of(w), c = c_of(w);
    auto select = [&](u32 count) {
        Value* condition = b_.CreateICmpNE(read(a_of(code_word(1)), 1), number(0));
        write(a, count, b_.CreateSelect(condition, read(b, count), read(c, count)));
    };
    auto sized = [](const char* name, u32 count) {
        return std::string(name) + (count == 1 ? "_32" : count == 2 ? "_64" : "_128");
    };
    switch (op) {
        case CodeOp::copy_32: return write(a, 1, read(b, 1));
        case CodeOp::copy_64: return write(a, 2, read(b, 2));
        case CodeOp::copy_128: return write(a, 4, read(b, 4));
        case CodeOp::copy_words: {
            // Whatever values they are.
            std::vector<std::pair<SlotValue, Value*>> values;
            for (SlotValue place : values_in(states_, b, b + c))
                values.push_back(
                    {{a + place.slot - b, place.words}, read(place.slot, place.words)});
            for (auto& [place, value] : values) write(place.slot, place.words, value);
            return;
        }
        case CodeOp::const_32: return write(a, 1, number(imm_of(w)));
        case CodeOp::const_64: return write(a, 2, b_.getInt64(code_word(1)));
        case CodeOp::const_64_k: return write(a, 2, b_.getInt64(u64(s64(s32(imm_of(w))))));
        case CodeOp::const_128: {
            const u32 lanes[] = {low_of(code_word(1)), high_of(code_word(1)), low_of(code_word(2)),
                                 high_of(code_word(2))};
            return write(a, 4, llvm::ConstantDataVector::get(piece_.context(), lanes));
        }
        case CodeOp::select_32: return select(1);
        case CodeOp::select_64: return select(2);
        case CodeOp::select_128: return select(4);
        // Far slots stay in the frame.
        case CodeOp::far_get_32:
        case CodeOp::far_get_64:
        case CodeOp::far_get_128: {
            const u32 count = e_.writes[0].words;
            return write(a, count, get_slot(fp_, imm_of(w), count));
        }
        case CodeOp::far_set_32:
        case CodeOp::far_set_64:
        case CodeOp::far_set_128: {
            const u32 count = e_.reads[0].words;
            return set_slot(fp_, imm_of(w), count, read(a, count));
        }
        case CodeOp::global_get_32:
        case CodeOp::global_get_64:
        case CodeOp::global_get_128: {
            const u32 count = e_.writes[0].words;
            return write(a, count,
                         runtime(sized("native_global_get", count), {context_, number(imm_of(w))}));
        }
        case CodeOp::global_set_32:
        case CodeOp::global_set_64:
        case CodeOp::global_set_128: {
            const u32 count = e_.reads[0].words;
            runtime(sized("native_global_set", count),
                    {context_, number(imm_of(w)), read(a, count)});
            return;
        }
        case CodeOp::global_get_imported:
            return write(
                a, b,
                runtime(sized("native_imported_get", b), {context_, number(low_of(code_word(1)))}));
        default:  // global_set_imported
            runtime(sized("native_imported_set", b),
                    {context_, number(low_of(code_word(1))), read(a, b)});
            return;
    }
}

// ---- everything else: by the interpreter's own function, in the frame --------------

void FunctionBuilder::build_operate() {
    for (SlotValue place : e_.reads) write_to_frame(place.slot, place.words);
    for (u32 slot = e_.range; slot < e_.range + e_.range_words; slot++) write_to_frame(slot, 1);
    save_quantum();
    Value* why = runtime("native_operate", {context_, fp_, rp_here(), number(position_)});
    load_quantum();
    load_memory();
    // Operands may have changed too: they are the progress of long operations.
    for (SlotValue place : e_.writes)
        write(place.slot, place.words, get_slot(fp_, place.slot, place.words));
    BasicBlock *rare = new_block("leave"), *usual = new_block("on");
    branch_rarely(b_.CreateICmpNE(why, status(NativeStatus::done)), rare, usual);
    b_.SetInsertPoint(rare);
    SlotSet live = lives_[index_];
    live.add_all(index_ + 1 < lives_.size() ? lives_[index_ + 1] : flow_.live_after(*current_));
    leave(LeaveKind::innermost, why, runtime("native_pc", {context_}), live, ~u32{0});
    b_.SetInsertPoint(usual);
}

// A short copy or fill of memory 0 is done where it stands.
void FunctionBuilder::build_bulk(CodeOp op) {
    const bool is_copy = op == CodeOp::memory_copy;
    const u64 w = code_word(0), operands = code_word(1);
    const u32 widths = is_copy ? low_of(code_word(2)) : high_of(operands);
    const u32 memory_0 = program_.code.layout.memories;
    if (widths != 0 || low_of(operands) != memory_0 || (is_copy && high_of(operands) != memory_0))
        return build_operate();
    for (SlotValue place : e_.writes) write(place.slot, place.words, read(place.slot, place.words));
    Value* is_done = runtime(is_copy ? "native_short_copy" : "native_short_fill",
                             {context_, load(memory_), load(memory_size_), read(a_of(w), 1),
                              read(b_of(w), 1), read(c_of(w), 1)});
    BasicBlock *other = new_block("long"), *after = new_block("after");
    b_.CreateCondBr(is_done, after, other);
    b_.SetInsertPoint(other);
    build_operate();
    b_.CreateBr(after);
    b_.SetInsertPoint(after);
}

}  // namespace gpurun::codegen
