// Functions and what they share: the runtime's part, the table of functions, the way in.
#include "codegen/piece.h"

#include "codegen/leaving.h"
#include "codegen/merge_checks.h"

#include <algorithm>

#include "abi/native.h"
#include "base/check.h"
#include "codegen/function_builder.h"
#include "codegen/ways.h"
#include "translate/print.h"

#include <llvm/Bitcode/BitcodeReader.h>
#include <llvm/IR/Constants.h>

namespace gpurun::codegen {
namespace {

// Larger functions stay in the interpreter: what LLVM takes for one grows faster than it does.
constexpr u64 max_function_words = 30'000;
static_assert(max_function_words < native_most_words);
constexpr u64 max_function_cells = u64{1} << 24;  // words times slots
constexpr usize max_params = 100, max_results = 20;
// That are live at once on a GPU, where whatever finds no register is on a small stack: assemblers
// want up to 10 bytes for each, and device/cuda/cuda_native.cpp has what they may take.
constexpr u32 max_gpu_live = 160;

// Words of code that a piece has about. Its size, not the number of threads, says what is in it:
// the same module makes the same image everywhere.
constexpr u64 piece_words = 4'000;
// Words of a function that has two copies (function_builder.h), which take twice as long to
// compile. GPUs gain most from that, and where a module is small, nobody waits for long.
constexpr u32 max_split_words = 250, max_split_words_of_small = 1'000, small_words = 20'000;

bool is_tail_call(CodeOp op) {
    return op == CodeOp::return_call || op == CodeOp::return_call_import ||
           op == CodeOp::return_call_indirect || op == CodeOp::return_call_ref;
}

// Removes the attributes of a runtime function that hold for C++ but not for generated code: dead
// slots are passed as poison, which would be undefined behaviour for a `noundef` parameter, and
// a guest's loop may run for ever.
void withdraw_promises(llvm::Function& f) {
    f.removeFnAttr(llvm::Attribute::MustProgress);
    f.removeRetAttr(llvm::Attribute::NoUndef);
    for (llvm::Argument& argument : f.args()) argument.removeAttr(llvm::Attribute::NoUndef);
}

void set_pure(llvm::Function& f) {
    f.setDoesNotAccessMemory();
    f.setDoesNotThrow();
    f.setWillReturn();
}

}  // namespace

Program::Program(const wasm::Module& m, const translate::Code& c, bool for_gpu)
    : module(m), code(c), effects(m, c), is_compiled(m.funcs.size()), group_of(m.funcs.size()) {
    for (u32 func = m.imported_funcs; func < m.funcs.size(); func++) {
        const u64 words = end_of(func) - begin_of(func);
        u32 handlers = 0;
        for (u32 at = begin_of(func); at < end_of(func); at += translate::code_size(c.words[at])) {
            const CodeOp op = CodeOp(op_of(c.words[at]));
            has_tail_calls |= is_tail_call(op);
            handlers += op == CodeOp::try_begin;
        }
        const wasm::FuncType& type = m.func_type(func);
        is_compiled[func] = type.params.size() <= max_params &&
                            type.results.size() <= max_results && words <= max_function_words &&
                            handlers <= native_most_handlers &&
                            words * c_of(c.words[begin_of(func)]) <= max_function_cells;
        if (for_gpu && is_compiled[func] && c_of(c.words[begin_of(func)]) > max_gpu_live)
            is_compiled[func] =
                Flow(effects, func, begin_of(func), end_of(func)).most_live() <= max_gpu_live;
    }
    u32 first = m.imported_funcs;
    u64 words = 0;
    for (u32 func = first; func < m.funcs.size(); func++) {
        words += end_of(func) - begin_of(func);
        if (for_gpu) group_of[func] = u32(pieces.size() / Image::group_pieces);
        if (words < piece_words && func + 1 < m.funcs.size()) continue;
        pieces.push_back({first, func + 1});
        first = func + 1;
        words = 0;
    }
}

u32 Program::end_of(u32 func) const {
    return func + 1 < code.entries.size() ? code.entries[func + 1] : code.instantiate;
}

Piece::Piece(const Program& program, const Implementation& target, u32 group,
             std::span<const u32> functions)
    : program_(program), target_(target), group_(group), own_(functions) {
    const std::span<const u8> bitcode = target.bitcode();
    llvm::MemoryBufferRef buffer(
        llvm::StringRef(reinterpret_cast<const char*>(bitcode.data()), bitcode.size()), "runtime");
    llvm::Expected<std::unique_ptr<llvm::Module>> loaded =
        llvm::getLazyBitcodeModule(buffer, context_);
    CHECK(bool(loaded));
    module_ = std::move(*loaded);
    module_->setSourceFileName("module");
    module_->setModuleIdentifier("module");
    for (llvm::Function& f : *module_)
        if (!f.isIntrinsic()) withdraw_promises(f);
    runtime("native_left")->addFnAttr(leaves_attribute);
    llvm::Function* note = runtime(note_name);
    note->removeFnAttr(llvm::Attribute::AlwaysInline);
    note->addFnAttr(llvm::Attribute::NoInline);
    set_pure(*note);
}

llvm::Function* Piece::runtime(llvm::StringRef name) {
    llvm::Function* found = module_->getFunction(name);
    CHECK(found);
    return found;
}

llvm::Type* Piece::type_of(u32 words) {
    if (words == 1) return llvm::Type::getInt32Ty(context_);
    if (words == 2) return llvm::Type::getInt64Ty(context_);
    return llvm::FixedVectorType::get(llvm::Type::getInt32Ty(context_), 4);
}

llvm::StructType* Piece::results_of(const wasm::FuncType& type) {
    llvm::SmallVector<llvm::Type*, 4> types = {llvm::Type::getInt32Ty(context_)};
    for (wasm::ValType result : type.results) types.push_back(type_of(translate::words_of(result)));
    return llvm::StructType::get(context_, types);
}

llvm::FunctionType* Piece::type_of(const wasm::FuncType& type) {
    llvm::Type* pointer = llvm::PointerType::get(context_, 0);
    llvm::SmallVector<llvm::Type*, 8> types = {pointer, pointer, pointer};
    for (wasm::ValType param : type.params) types.push_back(type_of(translate::words_of(param)));
    return llvm::FunctionType::get(results_of(type), types, false);
}

bool Piece::sees(u32 func) const {
    return target_.is_apart() ? program_.group_of[func] == group_
                              : std::ranges::binary_search(own_, func);
}

llvm::Function* Piece::function(u32 func) {
    const std::string name = "f" + std::to_string(func);
    if (llvm::Function* found = module_->getFunction(name)) return found;
    return new_function(
        type_of(program_.module.func_type(func)),
        target_.is_apart() ? llvm::Function::ExternalLinkage : llvm::Function::InternalLinkage,
        name);
}

llvm::Function* Piece::resumed_function(u32 func) {
    const std::string name = "r" + std::to_string(func);
    if (llvm::Function* found = module_->getFunction(name)) return found;
    return new_function(type_of(program_.module.func_type(func)), llvm::Function::InternalLinkage,
                        name);
}

// External ones are seen by all pieces of a group.
llvm::Function* Piece::new_function(llvm::FunctionType* type,
                                    llvm::GlobalValue::LinkageTypes linkage,
                                    const std::string& name) {
    llvm::Function* made = llvm::Function::Create(type, linkage, name, *module_);
    if (linkage == llvm::Function::ExternalLinkage)
        made->setVisibility(llvm::GlobalValue::HiddenVisibility);
    made->setDSOLocal(true);
    made->setDoesNotThrow();
    // Whoever reaches the context does so by this pointer.
    made->addParamAttr(0, llvm::Attribute::NoAlias);
    functions_.push_back(made);
    return made;
}

llvm::Function* Piece::outside() {
    if (llvm::Function* found = module_->getFunction(outside_name)) return found;
    llvm::Type *size = llvm::Type::getInt64Ty(context_),
               *address = llvm::Type::getInt32Ty(context_);
    llvm::Function* made = llvm::Function::Create(
        llvm::FunctionType::get(llvm::Type::getInt1Ty(context_), {size, address, size}, false),
        llvm::Function::ExternalLinkage, outside_name, *module_);
    set_pure(*made);
    return made;
}

llvm::GlobalVariable* Piece::table() {
    if (llvm::GlobalVariable* found = module_->getNamedGlobal(native_table_name)) return found;
    auto* type =
        llvm::ArrayType::get(llvm::PointerType::get(context_, 0), program_.module.funcs.size());
    const bool is_apart = target_.is_apart();
    // Whoever loads it fills it.
    const bool is_filled_later = !is_apart || program_.group_of.back() > 0;
    auto* made =
        new llvm::GlobalVariable(*module_, type, !is_filled_later,
                                 llvm::GlobalValue::ExternalLinkage, nullptr, native_table_name);
    if (!is_apart) return made;  // the loader's
    made->setExternallyInitialized(is_filled_later);
    made->setVisibility(llvm::GlobalValue::HiddenVisibility);
    made->setDSOLocal(true);
    return made;
}

void Piece::add_table() {
    std::vector<llvm::Constant*> functions;
    auto* pointer = llvm::PointerType::get(context_, 0);
    if (!target_.is_apart()) {
        for (u32 func : own_) functions.push_back(function(func));
        auto* type = llvm::ArrayType::get(pointer, functions.size());
        new llvm::GlobalVariable(*module_, type, true, llvm::GlobalValue::ExternalLinkage,
                                 llvm::ConstantArray::get(type, functions), native_own_table_name);
        return;
    }
    for (u32 func = 0; func < program_.module.funcs.size(); func++)
        functions.push_back(program_.is_compiled[func] && program_.group_of[func] == group_
                                ? static_cast<llvm::Constant*>(function(func))
                                : llvm::ConstantPointerNull::get(pointer));
    llvm::GlobalVariable* made = table();
    made->setInitializer(
        llvm::ConstantArray::get(llvm::cast<llvm::ArrayType>(made->getValueType()), functions));
}

void Piece::add(u32 func) {
    const u32 begin = program_.begin_of(func);
    const Flow flow(program_.effects, func, begin, program_.end_of(func));
    std::vector<u32> resumes;
    for (const FlowBlock& block : flow.blocks())
        if (block.is_entry()) resumes.push_back(block.begin);
    const bool is_small = target_.is_apart() && program_.code.instantiate <= small_words;
    const bool is_split =
        !resumes.empty() &&
        program_.end_of(func) - begin <= (is_small ? max_split_words_of_small : max_split_words);
    using Copy = FunctionBuilder::Copy;
    FunctionBuilder(*this, flow, func, resumes, is_split ? Copy::called : Copy::only).build();
    if (is_split) FunctionBuilder(*this, flow, func, resumes, Copy::resumed).build();
    // The interpreter's calls end behind `enter`. Unless that is a loop's head as well, the frame
    // is there as `enter` makes it, which may be done again.
    for (u32 position : {begin, begin + 1}) {
        if (std::ranges::find(resumes, position) != resumes.end()) continue;
        entries_.push_back({func, false, 0});
        entry_positions_.push_back(position);
    }
    for (u32 i = 0; i < resumes.size(); i++) {
        entries_.push_back({func, is_split, i + 1});
        entry_positions_.push_back(resumes[i]);
    }
}

// enter(context, fp, rp, number): arguments and results in slots.
llvm::Function* Piece::enter(const std::string& name) {
    if (llvm::Function* found = module_->getFunction(name)) return found;
    llvm::Type *pointer = llvm::PointerType::get(context_, 0),
               *word = llvm::Type::getInt32Ty(context_);
    llvm::Function* made = llvm::Function::Create(
        llvm::FunctionType::get(word, {pointer, pointer, pointer, word}, false),
        llvm::Function::ExternalLinkage, name, *module_);
    made->setDoesNotThrow();
    return made;
}

void Piece::add_image_kernel(std::span<const std::string> enters) {
    llvm::IRBuilder<> b(context_);
    llvm::Function* made =
        llvm::Function::Create(llvm::FunctionType::get(b.getVoidTy(), {b.getPtrTy(1)}, false),
                               llvm::Function::ExternalLinkage, native_image_name, *module_);
    made->setCallingConv(llvm::CallingConv::PTX_Kernel);
    llvm::Value* to = made->getArg(0);
    auto block = [&](const char* name) { return llvm::BasicBlock::Create(context_, name, made); };
    llvm::BasicBlock *first = block("first"), *write = block("write"), *call = block("call");
    b.SetInsertPoint(first);
    b.CreateCondBr(b.CreateIsNull(to), call, write);
    b.SetInsertPoint(write);
    for (u32 i = 0; i < enters.size(); i++)
        b.CreateStore(enter(enters[i]), b.CreateConstGEP1_32(b.getPtrTy(), to, i));
    b.CreateRetVoid();
    b.SetInsertPoint(call);
    llvm::Value* nothing = llvm::ConstantPointerNull::get(b.getPtrTy());
    for (const std::string& name : enters)
        b.CreateCall(enter(name), {nothing, nothing, nothing, b.getInt32(0)});
    b.CreateRetVoid();
}

void Piece::finish(const std::string& name) {
    llvm::IRBuilder<> b(context_);
    llvm::Function* made = enter(name);
    functions_.push_back(made);
    auto block = [&](const char* name) { return llvm::BasicBlock::Create(context_, name, made); };
    llvm::BasicBlock *first = block("first"), *nowhere = block("nowhere");
    b.SetInsertPoint(nowhere);
    b.CreateUnreachable();
    b.SetInsertPoint(first);
    llvm::Value *context = made->getArg(0), *fp = made->getArg(1), *rp = made->getArg(2);
    llvm::SwitchInst* which = b.CreateSwitch(made->getArg(3), nowhere, u32(entries_.size()));
    auto slot_name = [](const char* what, u32 words) {
        return std::string("native_") + what + (words == 1 ? "_32" : words == 2 ? "_64" : "_128");
    };
    for (u32 begin = 0, end; begin < entries_.size(); begin = end) {
        const u32 func = entries_[begin].func;
        const bool is_resumed = entries_[begin].is_resumed;
        llvm::BasicBlock* at = block("entry");
        b.SetInsertPoint(at);
        u32 resumes = begin;  // the first that is not the beginning: they have numbers from 1 on
        for (end = begin; end < entries_.size() && entries_[end].func == func &&
                          entries_[end].is_resumed == is_resumed;
             end++) {
            which->addCase(b.getInt32(end), at);
            resumes += entries_[end].number == 0;
        }
        if (resumes < end) {
            llvm::Value* number = made->getArg(3);
            llvm::Value* own =
                b.CreateSelect(b.CreateICmpULT(number, b.getInt32(resumes)), b.getInt32(0),
                               b.CreateSub(number, b.getInt32(resumes - 1)));
            b.CreateCall(runtime("native_set_entry"), {context, own});
        }
        const wasm::FuncType& type = program_.module.func_type(func);
        llvm::SmallVector<llvm::Value*, 8> arguments = {context, fp, rp};
        u32 slot = 0;
        for (wasm::ValType param : type.params) {
            const u32 words = translate::words_of(param);
            arguments.push_back(
                is_resumed ? llvm::PoisonValue::get(type_of(words))
                           : static_cast<llvm::Value*>(b.CreateCall(
                                 runtime(slot_name("get", words)), {fp, b.getInt32(slot)})));
            slot += words;
        }
        llvm::Value* result =
            b.CreateCall(is_resumed ? resumed_function(func) : function(func), arguments);
        llvm::Value* status = b.CreateExtractValue(result, 0);
        llvm::BasicBlock *done = block("done"), *left = block("left");
        b.CreateCondBr(b.CreateICmpEQ(status, b.getInt32(u32(NativeStatus::done))), done, left);
        b.SetInsertPoint(left);
        b.CreateRet(status);
        b.SetInsertPoint(done);
        slot = 0;
        for (usize i = 0; i < type.results.size(); i++) {
            const u32 words = translate::words_of(type.results[i]);
            b.CreateCall(runtime(slot_name("set", words)),
                         {fp, b.getInt32(slot), b.CreateExtractValue(result, u32(i + 1))});
            slot += words;
        }
        b.CreateRet(status);
    }

    if (target_.is_apart()) call_by_address();
    take_runtime();
}

// Where the runtime is another module its functions are found by way of the context, which is the
// first argument of all.
void Piece::call_by_address() {
    u32 number = 0;
    for (const char* name : {
#define NATIVE_CALL(name) #name,
#include "abi/native_calls.def"
         }) {
        llvm::Function* f = runtime(name);
        const u32 index = number++;
        if (f->use_empty()) continue;
        llvm::IRBuilder<> b(llvm::BasicBlock::Create(context_, "", f));
        llvm::Value* target =
            b.CreateCall(runtime("native_call_at"), {f->getArg(0), b.getInt32(index)});
        llvm::SmallVector<llvm::Value*, 8> arguments;
        for (llvm::Argument& argument : f->args()) arguments.push_back(&argument);
        llvm::CallInst* call = b.CreateCall(f->getFunctionType(), target, arguments);
        call->setAttributes(f->getAttributes());
        if (call->getType()->isVoidTy())
            b.CreateRetVoid();
        else
            b.CreateRet(call);
        f->setLinkage(llvm::Function::InternalLinkage);
        f->addFnAttr(llvm::Attribute::AlwaysInline);
    }
}

// Of the runtime's functions, those that nothing uses go; the others become ours.
void Piece::take_runtime() {
    for (const char* name : {"llvm.compiler.used", "llvm.used"})
        if (llvm::GlobalVariable* used = module_->getNamedGlobal(name)) used->eraseFromParent();
    // What declares them; others are functions' that are yet to be read.
    for (llvm::GlobalVariable& global : llvm::make_early_inc_range(module_->globals()))
        if (global.getName().contains("keep_native_")) global.eraseFromParent();
    for (const char* name : slot_writers) {
        llvm::Function* f = runtime(name);
        if (!f->isMaterializable()) continue;
        CHECK(!f->materialize());
        f->setComdat(nullptr);
    }
    for (bool is_done = false; !is_done;) {
        is_done = true;
        for (llvm::Function& f : module_->functions()) {
            if (!f.isMaterializable() || f.use_empty()) continue;
            CHECK(!f.materialize());
            f.setComdat(nullptr);
            f.setLinkage(llvm::GlobalValue::InternalLinkage);
            is_done = false;
        }
    }
    for (llvm::Function& f : llvm::make_early_inc_range(module_->functions()))
        if (f.isMaterializable()) f.eraseFromParent();
    // Long, and seldom where time is spent: once in a piece. The first only where code is dear.
    for (const char* name : {"native_own_callee", "native_short_copy", "native_short_fill"}) {
        llvm::Function* f = module_->getFunction(name);
        if (!f || (name == std::string_view("native_own_callee") && !target_.is_apart())) continue;
        f->removeFnAttr(llvm::Attribute::AlwaysInline);
        f->addFnAttr(llvm::Attribute::NoInline);
    }
    CHECK(!module_->materializeAll());
    // Used later.
    for (const char* name : slot_writers)
        runtime(name)->setLinkage(llvm::GlobalValue::ExternalLinkage);
    for (llvm::GlobalVariable& global : module_->globals())
        if (global.hasInitializer() && global.getName() != native_table_name &&
            global.getName() != native_own_table_name)
            global.setLinkage(llvm::GlobalValue::InternalLinkage);
}

}  // namespace gpurun::codegen
