// The IR of calls: by value within the instance, by way of the frame to everything else.
#include "abi/layout.h"
#include "codegen/function_builder.h"

namespace gpurun::codegen {

// Our callee has left: so do we, with the record of the call. Ends the block.
void FunctionBuilder::leave_as_caller(Value* why) {
    const SlotSet after =
        index_ + 1 < lives_.size() ? lives_[index_ + 1] : flow_.live_after(*current_);
    leave(LeaveKind::caller, why, number(position_ + e_.words),
          flow_.live_during(e_, after, handlers_), e_.clobbers);
}

// Results of the callee from its slots.
void FunctionBuilder::read_results() {
    for (SlotValue place : e_.writes)
        write(place.slot, place.words, get_slot(fp_, place.slot, place.words));
}

llvm::Value* FunctionBuilder::from_table(Value* func) {
    llvm::GlobalVariable* table = piece_.table();
    return b_.CreateLoad(b_.getPtrTy(),
                         b_.CreateInBoundsGEP(table->getValueType(), table,
                                              {number(0), b_.CreateZExt(func, b_.getInt64Ty())}));
}

llvm::Value* FunctionBuilder::callee(u32 func) {
    if (piece_.sees(func)) return piece_.function(func);
    Value* found = from_table(number(func));
    // One that is not there yet is for the interpreter.
    if (!piece_.target().is_apart()) leave_if(b_.CreateIsNull(found), NativeStatus::interpret);
    return found;
}

void FunctionBuilder::build_call(CodeOp op) {
    const u64 w = code_word(0);
    const u32 a = a_of(w), b = b_of(w), c = c_of(w);
    const wasm::FuncType& type = *e_.callee_type;
    switch (op) {
        case CodeOp::call: {
            const u32 func = program_.effects.function_at(position_ + imm_of(w));
            if (program_.is_compiled[func]) return build_own_call(callee(func), type);
            return build_other_call(runtime("native_own_function", {context_, number(func)}), a);
        }
        case CodeOp::call_import:
            return build_other_call(runtime("native_import", {context_, number(imm_of(w))}), a);
        case CodeOp::call_ref: {
            Value* ref = read(b, 1);
            leave_if(b_.CreateICmpEQ(ref, number(0)), NativeStatus::interpret);
            return build_other_call(ref, a);
        }
        default: break;
    }
    // call_indirect: a function of this instance that has been compiled, or else whatever it is.
    Value* index = c ? read(b, 2) : b_.CreateZExt(read(b, 1), b_.getInt64Ty());
    Value* own = runtime("native_own_callee", {context_, number(low_of(code_word(1))),
                                               number(high_of(code_word(1))), index});
    BasicBlock *mine = new_block("own"), *look = new_block("look"), *other = new_block("other"),
               *after = new_block("after");
    b_.CreateCondBr(b_.CreateICmpEQ(own, number(~u32{0})), other, look, rarely_);
    b_.SetInsertPoint(look);
    Value* found = from_table(own);
    b_.CreateCondBr(b_.CreateIsNull(found), other, mine, rarely_);
    const SlotStates before = states_;
    b_.SetInsertPoint(mine);
    build_own_call(found, type);
    b_.CreateBr(after);
    states_ = before;
    b_.SetInsertPoint(other);
    for (SlotValue place : e_.reads) write_to_frame(place.slot, place.words);
    save_quantum();
    Value* why = runtime("native_call_indirect", {context_, fp_, rp_here(), number(position_)});
    load_quantum();
    BasicBlock *on = new_block("on"), *not_done = new_block("not_done"), *trap = new_block("trap"),
               *left = new_block("left");
    branch_rarely(b_.CreateICmpNE(why, status(NativeStatus::done)), not_done, on);
    b_.SetInsertPoint(not_done);
    b_.CreateCondBr(b_.CreateICmpEQ(why, status(NativeStatus::here)), trap, left);
    b_.SetInsertPoint(trap);
    leave_here(NativeStatus::interpret);
    b_.SetInsertPoint(left);
    leave_as_caller(why);
    b_.SetInsertPoint(on);
    load_memory();
    flow_.apply(e_, position_, states_, handlers_);
    read_results();
    b_.CreateBr(after);
    b_.SetInsertPoint(after);
}

// A call of this instance's machine code.
void FunctionBuilder::build_own_call(Value* callee, const wasm::FuncType& type) {
    const u32 a = a_of(code_word(0));
    Value* callee_fp = runtime("native_slot", {fp_, number(a)});
    Value* callee_rp =
        runtime("native_below", {rp(), number((u32(handlers_.size()) + 1) * record_words)});
    llvm::SmallVector<Value*, 8> arguments = {context_, callee_fp, callee_rp};
    u32 slot = a;
    for (wasm::ValType param : type.params) {
        arguments.push_back(read(slot, translate::words_of(param)));
        slot += translate::words_of(param);
    }
    save_quantum();
    Value* result = b_.CreateCall(piece_.type_of(type), callee, arguments);
    load_quantum();
    Value* why = b_.CreateExtractValue(result, 0);
    BasicBlock *not_done = new_block("not_done"), *on = new_block("on");
    branch_rarely(b_.CreateICmpNE(why, status(NativeStatus::done)), not_done, on);

    b_.SetInsertPoint(on);
    const SlotStates before = states_;
    load_memory();
    flow_.apply(e_, position_, states_, handlers_);
    for (usize i = 0; i < e_.writes.size(); i++)
        write(e_.writes[i].slot, e_.writes[i].words, b_.CreateExtractValue(result, u32(i + 1)));
    const SlotStates behind = states_;
    BasicBlock* after = on;
    if (program_.has_tail_calls) {
        after = new_block("after");
        b_.CreateBr(after);
    }

    states_ = before;
    b_.SetInsertPoint(not_done);
    if (program_.has_tail_calls) {
        BasicBlock *tail = new_block("tail"), *left = new_block("left"),
                   *returned = new_block("returned");
        b_.CreateCondBr(b_.CreateICmpEQ(why, status(NativeStatus::tail)), tail, left);
        b_.SetInsertPoint(tail);
        Value* later = runtime("native_call_tail", {context_, callee_fp, callee_rp});
        load_quantum();
        BasicBlock* tail_end = b_.GetInsertBlock();
        b_.CreateCondBr(b_.CreateICmpEQ(later, status(NativeStatus::done)), returned, left);
        b_.SetInsertPoint(left);
        llvm::PHINode* last = b_.CreatePHI(b_.getInt32Ty(), 2);
        last->addIncoming(why, not_done);
        last->addIncoming(later, tail_end);
        leave_as_caller(last);
        b_.SetInsertPoint(returned);
        load_memory();
        flow_.apply(e_, position_, states_, handlers_);
        read_results();
        b_.CreateBr(after);
    } else {
        leave_as_caller(why);
    }
    states_ = behind;
    b_.SetInsertPoint(after);
}

// A call of any function reference, by way of the frame; its slot 0 is slot `base`.
void FunctionBuilder::build_other_call(Value* ref, u32 base) {
    for (SlotValue place : e_.reads)
        if (place.slot >= e_.clobbers) write_to_frame(place.slot, place.words);
    save_quantum();
    Value* why = runtime(
        "native_call", {context_, fp_, rp_here(), ref, number(base), number(position_ + e_.words)});
    load_quantum();
    BasicBlock *left = new_block("left"), *on = new_block("on");
    branch_rarely(b_.CreateICmpNE(why, status(NativeStatus::done)), left, on);
    b_.SetInsertPoint(left);
    leave_as_caller(why);
    b_.SetInsertPoint(on);
    load_memory();
    flow_.apply(e_, position_, states_, handlers_);
    read_results();
}

// The code has copied the arguments into the frame, and copies the results from there.
void FunctionBuilder::build_far_call() {
    Value* ref = read(b_of(code_word(0)), 1);
    leave_if(b_.CreateICmpEQ(ref, number(0)), NativeStatus::interpret);
    build_other_call(ref, low_of(code_word(1)));
}

// A tail call of this function itself is a loop; another is whoever's who called this one.
void FunctionBuilder::build_tail_call(CodeOp op) {
    const u64 w = code_word(0);
    const u32 a = a_of(w), count = b_of(w);
    const u32 target = op == CodeOp::return_call ? position_ + low_of(code_word(1)) : 0;
    std::vector<std::pair<SlotValue, Value*>> arguments;
    if (op == CodeOp::return_call && target == flow_.begin()) {
        u32 slot = a;
        for (wasm::ValType type : type_.params) {
            const u32 words = translate::words_of(type);
            arguments.push_back({{slot - a, words}, read(slot, words)});
            slot += words;
        }
        for (auto& [place, value] : arguments) write(place.slot, place.words, value);
        b_.CreateBr(block(0));
        is_open_ = false;
        return;
    }
    for (SlotValue place : values_in(states_, a, a + count))
        arguments.push_back({{place.slot - a, place.words}, read(place.slot, place.words)});
    switch (op) {
        case CodeOp::return_call: runtime("native_tail_own", {context_, number(target)}); break;
        case CodeOp::return_call_import:
            runtime("native_tail",
                    {context_, runtime("native_import", {context_, number(low_of(code_word(1)))})});
            break;
        case CodeOp::return_call_ref: {
            Value* ref = read(c_of(w), 1);
            leave_if(b_.CreateICmpEQ(ref, number(0)), NativeStatus::interpret);
            runtime("native_tail", {context_, ref});
            break;
        }
        default: {
            const u32 slot = a_of(code_word(2));
            Value* index = c_of(w) ? read(slot, 2) : b_.CreateZExt(read(slot, 1), b_.getInt64Ty());
            Value* is_there = runtime(
                "native_tail_indirect",
                {context_, number(low_of(code_word(1))), number(high_of(code_word(1))), index});
            leave_if(b_.CreateNot(is_there), NativeStatus::interpret);
            break;
        }
    }
    for (auto& [place, value] : arguments) set_slot(fp_, place.slot, place.words, value);
    if (rp_variable_) {
        // Who was entered below its handlers was entered by the thread's own loop.
        BasicBlock *moved = new_block("moved"), *on = new_block("on");
        b_.CreateCondBr(b_.CreateICmpNE(rp(), rp_), moved, on, rarely_);
        b_.SetInsertPoint(moved);
        runtime("native_set_rp", {context_, rp()});
        b_.CreateBr(on);
        b_.SetInsertPoint(on);
    }
    give_back(status(NativeStatus::tail), {});
}

}  // namespace gpurun::codegen
