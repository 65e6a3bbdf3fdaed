// The frame of a function in IR: its slots as variables, its blocks, and how it leaves.
#include "codegen/function_builder.h"

#include <algorithm>
#include <map>

#include "abi/layout.h"
#include "base/check.h"
#include "codegen/reconverge.h"
#include "codegen/short_loops.h"

namespace gpurun::codegen {

using llvm::ArrayRef;
using llvm::PHINode;
using llvm::StringRef;
using llvm::Type;
using translate::Effects;

namespace {

constexpr u32 no_limit = ~u32{0};
// Words of code of a function in which lanes meet again. With the blocks where they do, LLVM's time
// grows faster than the function.
constexpr u32 max_meeting_words = 2'000;

}  // namespace

FunctionBuilder::FunctionBuilder(Piece& piece, const Flow& flow, u32 func,
                                 const std::vector<u32>& entries, Copy copy)
    : piece_(piece),
      program_(piece.program()),
      flow_(flow),
      checks_(flow, program_.effects, func, piece.target().wants_alignment()),
      type_(program_.module.func_type(func)),
      entries_(copy == Copy::called ? std::vector<u32>() : entries),
      copy_(copy),
      function_(copy == Copy::resumed ? piece.resumed_function(func) : piece.function(func)),
      b_(piece.context()),
      blocks_(flow.blocks().size()),
      rarely_(llvm::MDBuilder(piece.context()).createBranchWeights(1, 1 << 20)) {}

void FunctionBuilder::build() {
    context_ = function_->getArg(0);
    fp_ = function_->getArg(1);
    rp_ = function_->getArg(2);
    context_->setName("context");
    fp_->setName("fp");
    rp_->setName("rp");
    first_ = new_block("first");
    b_.SetInsertPoint(first_);
    memory_ = new_variable(b_.getPtrTy(), "memory");
    memory_size_ = new_variable(b_.getInt64Ty(), "memory_size");
    quantum_ = new_variable(b_.getInt64Ty(), "quantum");
    dirty_ = new_variable(b_.getInt32Ty(), "dirty");
    const bool has_clock = piece_.target().has_clock();
    for (const FlowBlock& block : flow_.blocks()) counts_ |= block.loop_words > 0 && !has_clock;
    left_ = new_block("");
    find_loops();
    BasicBlock* begin = new_block("begin");
    b_.SetInsertPoint(begin);
    load_memory();
    load_quantum();
    if (has_clock) deadline_ = runtime("native_deadline", {context_});
    b_.CreateStore(number(0), dirty_);
    dirty_shift_ = runtime("native_dirty_shift", {context_});
    if (!entries_.empty()) begin_resumed();
    if (copy_ == Copy::resumed)
        b_.CreateUnreachable();
    else
        begin_called();
    while (!work_.empty()) {
        u32 next = work_.back();
        work_.pop_back();
        build_block(next);
    }
    finish_leaving();
    zero_variables(enter_, nullptr);
    for (usize i = 0; i < entries_.size(); i++)
        zero_variables(resumes_[i], &flow_.blocks()[flow_.block_at(entries_[i])].states);
    b_.SetInsertPoint(first_);
    b_.CreateBr(begin);
}

// ---- helpers -----------------------------------------------------------------------

FunctionBuilder::BasicBlock* FunctionBuilder::new_block(const char* name) {
    return BasicBlock::Create(piece_.context(), name, function_);
}

llvm::AllocaInst* FunctionBuilder::new_variable(Type* type, const llvm::Twine& name) {
    llvm::IRBuilder<> at(first_);
    return at.CreateAlloca(type, nullptr, name);
}

FunctionBuilder::Value* FunctionBuilder::load(llvm::AllocaInst* variable) {
    return b_.CreateLoad(variable->getAllocatedType(), variable);
}

// Values are words; where the runtime's function has floats, they are the same bits.
FunctionBuilder::Value* FunctionBuilder::runtime(StringRef name, ArrayRef<Value*> arguments) {
    llvm::Function* callee = piece_.runtime(name);
    llvm::FunctionType* type = callee->getFunctionType();
    CHECK(type->getNumParams() == arguments.size());
    llvm::SmallVector<Value*, 6> given;
    for (usize i = 0; i < arguments.size(); i++) {
        Type* wanted = type->getParamType(u32(i));
        given.push_back(arguments[i]->getType() == wanted ? arguments[i]
                                                          : b_.CreateBitCast(arguments[i], wanted));
    }
    Value* result = b_.CreateCall(callee, given);
    if (result->getType()->isFloatTy()) return b_.CreateBitCast(result, b_.getInt32Ty());
    if (result->getType()->isDoubleTy()) return b_.CreateBitCast(result, b_.getInt64Ty());
    return result;
}

void FunctionBuilder::branch_rarely(Value* condition, BasicBlock* rare, BasicBlock* usual) {
    b_.CreateCondBr(condition, rare, usual, rarely_);
}

FunctionBuilder::Value* FunctionBuilder::rp_here() {
    if (handlers_.empty()) return rp();
    return runtime("native_below", {rp(), number(u32(handlers_.size()) * record_words)});
}

void FunctionBuilder::load_memory() {
    b_.CreateStore(runtime("native_memory", {context_}), memory_);
    b_.CreateStore(runtime("native_memory_size", {context_}), memory_size_);
}
void FunctionBuilder::load_quantum() {
    if (counts_) b_.CreateStore(runtime("native_quantum", {context_}), quantum_);
}
FunctionBuilder::Value* FunctionBuilder::is_late(Value* quantum) {
    return deadline_ ? runtime("native_is_late", {deadline_})
                     : b_.CreateICmpSLT(quantum, b_.getInt64(0));
}
void FunctionBuilder::save_quantum() {
    if (counts_) runtime("native_set_quantum", {context_, load(quantum_)});
}

// ---- slots -------------------------------------------------------------------------

llvm::AllocaInst* FunctionBuilder::variable(SlotValue place) {
    llvm::AllocaInst*& found = variables_[{place.slot, place.words}];
    if (!found) {
        found = new_variable(piece_.type_of(place.words), "slot" + llvm::Twine(place.slot) + "_" +
                                                              llvm::Twine(32 * place.words));
        variable_places_.push_back(place);
    }
    return found;
}

FunctionBuilder::Value* FunctionBuilder::read_word(u32 slot) {
    switch (states_[slot]) {
        case Held::nothing: CHECK(false); return nullptr;
        case Held::zero: return number(0);
        case Held::word: return load(variable({slot, 1}));
        case Held::low: return b_.CreateTrunc(load(variable({slot, 2})), b_.getInt32Ty());
        case Held::high:
            return b_.CreateTrunc(b_.CreateLShr(load(variable({slot - 1, 2})), 32),
                                  b_.getInt32Ty());
        default: break;
    }
    const u32 lane = u32(states_[slot]) - u32(Held::v0);
    return b_.CreateExtractElement(load(variable({slot - lane, 4})), u64(lane));
}

FunctionBuilder::Value* FunctionBuilder::read(u32 slot, u32 words) {
    if (words == 1) return read_word(slot);
    SlotValue place = value_around(states_, slot);
    if (place.slot == slot && place.words == words) return load(variable(place));
    // In pieces, as whoever wrote it did.
    if (words == 2) {
        Value* low = b_.CreateZExt(read_word(slot), b_.getInt64Ty());
        Value* high = b_.CreateZExt(read_word(slot + 1), b_.getInt64Ty());
        return b_.CreateOr(low, b_.CreateShl(high, 32));
    }
    Value* vector = llvm::PoisonValue::get(piece_.type_of(4));
    for (u32 i = 0; i < 4; i++)
        vector = b_.CreateInsertElement(vector, read_word(slot + i), u64(i));
    return vector;
}

void FunctionBuilder::write(u32 slot, u32 words, Value* value) {
    b_.CreateStore(value, variable({slot, words}));
    hold(states_, {slot, words});
}

FunctionBuilder::Value* FunctionBuilder::get_slot(Value* fp, u32 slot, u32 words) {
    StringRef name = words == 1 ? "native_get_32" : words == 2 ? "native_get_64" : "native_get_128";
    return runtime(name, {fp, number(slot)});
}

void FunctionBuilder::set_slot(Value* fp, u32 slot, u32 words, Value* value) {
    StringRef name = words == 1 ? "native_set_32" : words == 2 ? "native_set_64" : "native_set_128";
    runtime(name, {fp, number(slot), value});
}

void FunctionBuilder::write_to_frame(u32 slot, u32 words) {
    set_slot(fp_, slot, words, read(slot, words));
}

// Locals may be read as zero, whatever kind of value they turn out to be: all of them, or those
// that are by `states`.
void FunctionBuilder::zero_variables(BasicBlock* block, const SlotStates* states) {
    if (!block) return;
    auto is_zero = [&](SlotValue place) {
        for (u32 i = 0; states && i < place.words; i++)
            if ((*states)[place.slot + i] == Held::zero) return true;
        return !states;
    };
    const u64 enter = program_.code.words[flow_.begin()];
    const u32 begin = a_of(enter), end = begin + b_of(enter);
    llvm::IRBuilder<> at(block, block->getFirstInsertionPt());
    for (SlotValue place : variable_places_)
        if (place.slot >= begin && place.slot + place.words <= end && is_zero(place))
            at.CreateStore(llvm::Constant::getNullValue(piece_.type_of(place.words)),
                           variable(place));
}

// ---- leaving -----------------------------------------------------------------------

// Ends the block: takes what is live along.
void FunctionBuilder::leave(LeaveKind kind, Value* why, Value* position, const SlotSet& live,
                            u32 limit) {
    Value* where = b_.CreateSub(position, number(flow_.begin()));
    where = b_.CreateOr(where, b_.CreateShl(why, native_status_shift));
    const u32 caller_bit = kind == LeaveKind::caller ? native_caller_bit : 0;
    where = b_.CreateOr(where, number(u32(handlers_.size()) << native_handlers_shift | caller_bit));
    std::vector<LeftSlot> values;
    for (u32 slot = 0; slot < std::min(flow_.slots(), limit);) {
        if (!live.has(slot) || states_[slot] == Held::nothing) {
            slot++;
            continue;
        }
        const SlotValue place = value_around(states_, slot);
        values.push_back({place, read(place.slot, place.words)});
        slot = place.slot + place.words;
    }
    if (kind != LeaveKind::caller) save_quantum();
    Value* dirty = load(dirty_);
    create_leave(b_, kind, fp_, limit, values);
    b_.CreateBr(left_);
    lefts_.push_back({b_.GetInsertBlock(), where, dirty});
}

void FunctionBuilder::leave_here(NativeStatus s) {
    leave(LeaveKind::innermost, status(s), number(position_), lives_[index_], no_limit);
}

void FunctionBuilder::leave_if(Value* condition, NativeStatus s) {
    BasicBlock *rare = new_block("leave"), *usual = new_block("on");
    branch_rarely(condition, rare, usual);
    b_.SetInsertPoint(rare);
    leave_here(s);
    b_.SetInsertPoint(usual);
}

// All that leave go to the last block, which tells the runtime.
void FunctionBuilder::finish_leaving() {
    left_->moveAfter(&function_->back());
    left_->setName("left");
    b_.SetInsertPoint(left_);
    if (lefts_.empty()) {
        b_.CreateUnreachable();
        return;
    }
    PHINode *where = b_.CreatePHI(b_.getInt32Ty(), u32(lefts_.size())),
            *dirty = b_.CreatePHI(b_.getInt32Ty(), u32(lefts_.size()));
    for (const Left& left : lefts_) {
        where->addIncoming(left.where, left.from);
        dirty->addIncoming(left.dirty, left.from);
    }
    Value* why = runtime("native_left", {context_, fp_, rp(), number(flow_.begin()), where, dirty});
    Value* result = llvm::PoisonValue::get(function_->getReturnType());
    b_.CreateRet(b_.CreateInsertValue(result, why, 0u));
}

// Returns to whoever entered this function.
void FunctionBuilder::give_back(Value* why, ArrayRef<Value*> results) {
    save_quantum();
    runtime("native_add_dirty", {context_, load(dirty_)});
    is_open_ = false;
    Value* all = llvm::PoisonValue::get(function_->getReturnType());
    all = b_.CreateInsertValue(all, why, 0u);
    for (usize i = 0; i < results.size(); i++)
        all = b_.CreateInsertValue(all, results[i], u32(i + 1));
    b_.CreateRet(all);
}

// ---- blocks ------------------------------------------------------------------------

void FunctionBuilder::begin_called() {
    states_.assign(flow_.slots(), Held::nothing);
    u32 slot = 0, number = 3;
    for (wasm::ValType type : type_.params) {
        const u32 words = translate::words_of(type);
        write(slot, words, function_->getArg(number++));
        slot += words;
    }
    b_.CreateBr(block(0));
}

// A loop is one piece of code, up to its last way back; one that begins within another may end
// behind it.
void FunctionBuilder::find_loops() {
    for (u32 i = 0; i < flow_.blocks().size(); i++)
        if (const FlowBlock& at = flow_.blocks()[i]; at.loop_words > 0 && !at.states.empty())
            loops_.push_back({i, at.begin, at.begin + at.loop_words});
    if (piece_.target().lanes_meet() && !loops_.empty() &&
        flow_.blocks().back().end - flow_.begin() <= max_meeting_words)
        function_->addFnAttr(meets_attribute);
}

// The heads of the loops around each entry.
void FunctionBuilder::find_ways() {
    ways_.resize(entries_.size());
    for (usize i = 0; i < entries_.size(); i++)
        for (const Loop& loop : loops_)
            if (loop.head < entries_[i] && entries_[i] < loop.end) ways_[i].push_back(loop.block);
}

// If the context says so, goes to an entry: to the block that reads its slots, or to the first head
// on the way there.
void FunctionBuilder::begin_resumed() {
    find_ways();
    bool has_handlers = false, has_ways = false;
    std::vector<EntryWay> all;
    for (u32 i = 0; i < entries_.size(); i++) {
        has_handlers |= !flow_.blocks()[flow_.block_at(entries_[i])].handlers.empty();
        has_ways |= !ways_[i].empty();
        resumes_.push_back(new_block("resume"));
        all.push_back({i, 0});
    }
    if (has_handlers) {
        rp_variable_ = new_variable(b_.getPtrTy(), "rp_now");
        b_.CreateStore(rp_, rp_variable_);
    }
    Value* number = runtime("native_entry", {context_});
    if (has_ways) {
        entry_ = new_variable(b_.getInt32Ty(), "entry");
        b_.CreateStore(number, entry_);
    }
    BasicBlock *resumed = new_block("resumed"), *called = new_block("called");
    branch_rarely(b_.CreateICmpNE(number, this->number(0)), resumed, called);
    b_.SetInsertPoint(resumed);
    runtime("native_set_entry", {context_, this->number(0)});
    go_to_entries(number, all);
    for (u32 i = 0; i < entries_.size(); i++) build_resume(i);
    b_.SetInsertPoint(called);
    if (entry_) b_.CreateStore(this->number(0), entry_);
}

// By `number` to one of these, whose ways have gone so far. Ends the block.
void FunctionBuilder::go_to_entries(Value* number, std::span<const EntryWay> entries) {
    BasicBlock* nowhere = new_block("nowhere");
    llvm::SwitchInst* which = b_.CreateSwitch(number, nowhere, u32(entries.size()));
    for (auto [entry, passed] : entries) {
        const std::vector<u32>& way = ways_[entry];
        which->addCase(b_.getInt32(entry + 1),
                       passed < way.size() ? block(way[passed]) : resumes_[entry]);
    }
    b_.SetInsertPoint(nowhere);
    b_.CreateUnreachable();
}

void FunctionBuilder::build_resume(u32 entry) {
    const u32 target = flow_.block_at(entries_[entry]);
    const FlowBlock& at = flow_.blocks()[target];
    b_.SetInsertPoint(resumes_[entry]);
    for (u32 slot = 0; slot < flow_.slots();) {
        const Held held = at.states[slot];
        if (!at.live.has(slot) || held == Held::nothing || held == Held::zero) {
            slot++;
            continue;
        }
        SlotValue place = value_around(at.states, slot);
        if (place.words == 1)
            resume_word(slot, held);
        else
            b_.CreateStore(get_slot(fp_, place.slot, place.words), variable(place));
        slot = place.slot + place.words;
    }
    if (!at.handlers.empty()) {
        Value* above =
            runtime("native_slot", {rp_, number(u32(at.handlers.size()) * record_words)});
        b_.CreateStore(above, rp_variable_);
        runtime("native_set_rp", {context_, above});
    }
    if (entry_) b_.CreateStore(number(0), entry_);
    b_.CreateBr(block(target));
}

// A word of which the rest of the value is gone.
void FunctionBuilder::resume_word(u32 slot, Held held) {
    Value* word = get_slot(fp_, slot, 1);
    if (held == Held::word) {
        b_.CreateStore(word, variable({slot, 1}));
    } else if (held == Held::low || held == Held::high) {
        const u32 part = u32(held) - u32(Held::low);
        Value* wide = b_.CreateShl(b_.CreateZExt(word, b_.getInt64Ty()), part * 32);
        b_.CreateStore(wide, variable({slot - part, 2}));
    } else {
        const u32 lane = u32(held) - u32(Held::v0);
        llvm::AllocaInst* vector = variable({slot - lane, 4});
        b_.CreateStore(b_.CreateInsertElement(load(vector), word, u64(lane)), vector);
    }
}

// Before the block ends: slots that hold something else where it goes on.
void FunctionBuilder::meet_successors() {
    for (u32 next : current_->successors) {
        const FlowBlock& target = flow_.blocks()[next];
        for (u32 slot = 0; slot < flow_.slots(); slot++)
            if (target.states[slot] == Held::word && states_[slot] != Held::word &&
                states_[slot] != Held::zero && target.live.has(slot))
                b_.CreateStore(read_word(slot), variable({slot, 1}));
    }
}

FunctionBuilder::BasicBlock* FunctionBuilder::block(u32 number) {
    if (!blocks_[number]) {
        blocks_[number] = new_block("block");
        work_.push_back(number);
    }
    return blocks_[number];
}

void FunctionBuilder::build_block(u32 number) {
    current_ = &flow_.blocks()[number];
    states_ = current_->states;
    handlers_ = current_->handlers;
    CHECK(!states_.empty());
    lives_ = flow_.live_before(*current_);
    index_ = 0;
    position_ = current_->begin;
    is_open_ = true;
    b_.SetInsertPoint(block(number));
    if (current_->loop_words > 0) build_loop_head(*current_);
    for (; is_open_ && position_ < current_->end; index_++) {
        program_.effects.look(position_, e_);
        if (!e_.targets.empty()) meet_successors();
        build_instr();
        position_ += e_.words;
    }
    if (!is_open_) return;
    meet_successors();
    go_to(current_->end);
}

// Every turn takes from the quantum what the interpreter would.
void FunctionBuilder::build_loop_head(const FlowBlock& head) {
    // Entries within the loop: one may be farther on its way than another.
    std::vector<EntryWay> within;
    for (u32 i = 0; i < ways_.size(); i++) {
        auto found = std::ranges::find(ways_[i], flow_.block_at(head.begin));
        if (found == ways_[i].end()) continue;
        within.push_back({i, usize(found - ways_[i].begin()) + 1});
    }
    if (!within.empty()) {
        Value* number = load(entry_);
        BasicBlock *on_way = new_block("on_way"), *here = new_block("here");
        branch_rarely(b_.CreateICmpNE(number, this->number(0)), on_way, here);
        b_.SetInsertPoint(on_way);
        go_to_entries(number, within);
        b_.SetInsertPoint(here);
        b_.CreateStore(this->number(0), entry_);
    }
    Value* left = counts_ ? load(quantum_) : nullptr;
    BasicBlock *rare = new_block("leave"), *usual = new_block("on");
    branch_rarely(is_late(left), rare, usual);
    b_.GetInsertBlock()->getTerminator()->setMetadata(late_kind,
                                                      llvm::MDNode::get(piece_.context(), {}));
    b_.SetInsertPoint(rare);
    leave_here(NativeStatus::yield);
    b_.SetInsertPoint(usual);
    if (counts_) b_.CreateStore(b_.CreateSub(left, b_.getInt64(head.loop_words)), quantum_);
}

void FunctionBuilder::go_to(u32 position) {
    b_.CreateBr(block(flow_.block_at(position)));
    is_open_ = false;
}

}  // namespace gpurun::codegen
