// From a module's code to an image: pieces, in parallel, each optimised and made an object.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "abi/native.h"
#include "base/check.h"
#include "base/format.h"
#include "base/threads.h"
#include "codegen/address_spaces.h"
#include "codegen/codegen.h"
#include "codegen/lazy_nan.h"
#include "codegen/leaving.h"
#include "codegen/merge_checks.h"
#include "codegen/piece.h"
#include "codegen/reconverge.h"
#include "codegen/short_loops.h"
#include "codegen/switches.h"
#include "codegen/target.h"

#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Transforms/IPO/AlwaysInliner.h>
#include <llvm/Transforms/IPO/GlobalDCE.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/ADCE.h>
#include <llvm/Transforms/Scalar/DeadStoreElimination.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/GVN.h>
#include <llvm/Transforms/Scalar/IndVarSimplify.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopDeletion.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/LoopRotation.h>
#include <llvm/Transforms/Scalar/LoopUnrollPass.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>

namespace gpurun::codegen {
namespace {

// Of threads beside others that have something better to do. Linux has a priority for each.
constexpr int niceness = 5;

std::string enter_name(usize piece) { return format("%s_%zu", native_enter_name, piece); }

// The functions of each piece; those that stay in the interpreter and those that `done` says are
// left out.
std::vector<std::vector<u32>> pieces_of(const Program& program, const Implementation& target,
                                        const std::vector<bool>& done) {
    std::vector<std::vector<u32>> pieces;
    for (const Program::Range& range : program.pieces) {
        std::vector<u32> functions;
        for (u32 func = range.first; func < range.end; func++)
            if (program.is_compiled[func] && !done[func]) functions.push_back(func);
        // On GPUs the number of a piece says which group it is of.
        if (!functions.empty() || target.is_apart()) pieces.push_back(std::move(functions));
    }
    return pieces;
}

u32 group_of_piece(const Program& program, usize piece) {
    return program.group_of[program.pieces[piece].first];
}

// What is known of a piece beside its functions.
struct Place {
    usize number = 0;  // among the pieces of the image
    u32 group = 0;
    std::vector<std::string> image_kernel;  // enters, if it has the group's kernel
    bool has_table = true;

    Place(const Program& program, const Implementation& target, usize piece) : number(piece) {
        if (!target.is_apart()) return;
        group = group_of_piece(program, piece);
        has_table = piece == 0 || group_of_piece(program, piece - 1) != group;
        if (!has_table) return;
        for (usize i = piece; i < program.pieces.size() && group_of_piece(program, i) == group; i++)
            image_kernel.push_back(enter_name(i));
    }
};

void fill(Piece& piece, std::span<const u32> functions, const Place& place) {
    for (u32 func : functions) piece.add(func);
    if (place.has_table) piece.add_table();
    piece.finish(enter_name(place.number));
    if (!place.image_kernel.empty()) piece.add_image_kernel(place.image_kernel);
}

// The runtime's functions are as good as they get.
void optimise(Piece& piece, llvm::TargetMachine& machine) {
    llvm::PassBuilder builder(&machine);
    llvm::LoopAnalysisManager loops;
    llvm::FunctionAnalysisManager functions;
    llvm::CGSCCAnalysisManager groups;
    llvm::ModuleAnalysisManager modules;
    builder.registerModuleAnalyses(modules);
    builder.registerCGSCCAnalyses(groups);
    builder.registerFunctionAnalyses(functions);
    builder.registerLoopAnalyses(loops);
    builder.crossRegisterProxies(loops, functions, groups, modules);

    llvm::FunctionPassManager passes;
    passes.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
    passes.addPass(AddressSpacesPass());
    passes.addPass(llvm::EarlyCSEPass(true));
    passes.addPass(llvm::SimplifyCFGPass());
    passes.addPass(llvm::InstCombinePass());
    passes.addPass(LazyNanPass());
    llvm::LoopPassManager loop_passes;
    loop_passes.addPass(llvm::LoopRotatePass());
    loop_passes.addPass(llvm::LICMPass(llvm::LICMOptions()));
    passes.addPass(llvm::createFunctionToLoopPassAdaptor(std::move(loop_passes), true));
    // Unrolled loops show the passes that follow more. The passes before made the loops small.
    passes.addPass(ShortLoopsPass());
    llvm::LoopPassManager short_loops;
    short_loops.addPass(llvm::IndVarSimplifyPass());
    short_loops.addPass(llvm::LoopDeletionPass());
    short_loops.addPass(llvm::LoopFullUnrollPass());
    passes.addPass(llvm::createFunctionToLoopPassAdaptor(std::move(short_loops)));
    passes.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
    passes.addPass(llvm::EarlyCSEPass(true));
    passes.addPass(llvm::InstCombinePass());
    passes.addPass(llvm::SimplifyCFGPass());
    const std::vector<wasm::MemoryType>& memories = piece.program().module.memories;
    passes.addPass(MergeChecksPass(
        memories.empty() ? 0 : std::min<u64>(memories[0].limits.min << 16, u64{1} << 32)));
    passes.addPass(llvm::GVNPass());
    passes.addPass(llvm::InstCombinePass());
    passes.addPass(llvm::DSEPass());
    llvm::LoopPassManager invariants;
    invariants.addPass(llvm::LICMPass(llvm::LICMOptions()));
    passes.addPass(llvm::createFunctionToLoopPassAdaptor(std::move(invariants), true));
    passes.addPass(llvm::SimplifyCFGPass());
    passes.addPass(llvm::InstCombinePass());
    passes.addPass(llvm::ADCEPass());

    llvm::ModulePassManager first;
    first.addPass(llvm::AlwaysInlinerPass(false));
    first.run(piece.module(), modules);
    for (llvm::Function* f : piece.functions())
        if (!f->isDeclaration()) functions.invalidate(*f, passes.run(*f, functions));
    llvm::FunctionPassManager after;
    after.addPass(AddressSpacesPass());
    after.addPass(llvm::EarlyCSEPass());
    for (llvm::Function* f : piece.functions()) {
        if (f->isDeclaration()) continue;
        expand_leaves(*f);
        functions.invalidate(*f, llvm::PreservedAnalyses::none());
        functions.invalidate(*f, after.run(*f, functions));
        if (piece.target().is_apart()) lower_switches(*f);
        reconverge(*f);
    }
    for (const char* name : slot_writers)
        piece.module().getFunction(name)->setLinkage(llvm::GlobalValue::InternalLinkage);
    llvm::ModulePassManager last;
    last.addPass(llvm::GlobalDCEPass());
    last.run(piece.module(), modules);
}

// The bitcode's functions were made for any machine of the kind; ours are for this one.
void set_machine(llvm::Module& module, const llvm::TargetMachine& machine) {
    module.setTargetTriple(machine.getTargetTriple());
    module.setDataLayout(machine.createDataLayout());
    for (llvm::Function& f : module) {
        for (const char* name : {"target-cpu", "target-features", "tune-cpu", "frame-pointer",
                                 "stack-protector-buffer-size", "no-trapping-math"})
            f.removeFnAttr(name);
        f.removeFnAttr(llvm::Attribute::UWTable);
        if (f.isDeclaration()) continue;
        f.addFnAttr("target-cpu", machine.getTargetCPU());
        f.addFnAttr("target-features", machine.getTargetFeatureString());
    }
}

Result<std::vector<u8>> emit(llvm::Module& module, llvm::TargetMachine& machine, bool is_text) {
    llvm::SmallVector<char, 0> bytes;
    llvm::raw_svector_ostream out(bytes);
    llvm::legacy::PassManager passes;
    if (machine.addPassesToEmitFile(
            passes, out, nullptr,
            is_text ? llvm::CodeGenFileType::AssemblyFile : llvm::CodeGenFileType::ObjectFile))
        return Error{"LLVM cannot make machine code for this target"};
    passes.run(module);
    return std::vector<u8>(bytes.begin(), bytes.end());
}

const Implementation& target_of(Target target) {
    return target == Target::host ? host_target() : nvptx_target(target);
}

// Seconds since `since`, which is now afterwards.
double lap(std::chrono::steady_clock::time_point& since) {
    const auto begin = std::exchange(since, std::chrono::steady_clock::now());
    return std::chrono::duration<double>(since - begin).count();
}

// LLVM makes something of wrong IR too, and says nothing. Looking takes 2 to 4 % of its time.
void verify(Piece& piece, usize number) {
    if (!llvm::verifyModule(piece.module(), &llvm::errs())) return;
    const std::string what = format("the IR of piece %zu is not valid", number);
    check_failed(__FILE__, __LINE__, what.c_str());
}

Result<Image::Piece> compile_piece(const Program& program, const Implementation& target,
                                   std::span<const u32> functions, const Place& place, bool is_text,
                                   Image::Times& seconds) {
    auto since = std::chrono::steady_clock::now();
    std::unique_ptr<llvm::TargetMachine> machine = TRY(target.make_machine());
    Piece piece(program, target, place.group, functions);
    fill(piece, functions, place);
    llvm::Module& module = piece.module();
    set_machine(module, *machine);
    verify(piece, place.number);
    seconds.build += lap(since);
    optimise(piece, *machine);
#ifndef NDEBUG
    verify(piece, place.number);  // some of the passes are ours
#endif
    seconds.optimise += lap(since);
    Image::Piece made;
    made.object = target.amended(TRY(emit(module, *machine, is_text || target.is_apart())));
    seconds.emit += lap(since);
    made.enter = enter_name(place.number);
    made.entries = piece.entries();
    made.functions.assign(functions.begin(), functions.end());
    return made;
}

// Threads that compile are beside others that have something better to do.
void be_nice() { setpriority(PRIO_PROCESS, id_t(gettid()), niceness); }

class HostCompiler final : public Compiler {
public:
    HostCompiler(const wasm::Module& module, const translate::Code& code, bool lanes_meet)
        : program_(module, code, false), target_(make_host_target(this_cpu(), lanes_meet)) {}
    bool can_compile(u32 func) const override { return program_.is_compiled[func]; }
    Result<Image::Piece> compile(std::span<const u32> functions,
                                 Image::Times& seconds) const override {
        be_nice();
        return in_llvm([&] {
            return compile_piece(program_, *target_, functions, Place(program_, *target_, 0), false,
                                 seconds);
        });
    }

private:
    const Program program_;
    const std::unique_ptr<const Implementation> target_;
};

}  // namespace

thread_local u32 llvm_calls = 0;

std::unique_ptr<const Compiler> Compiler::make(const wasm::Module& module,
                                               const translate::Code& code, bool lanes_meet) {
    return std::make_unique<HostCompiler>(module, code, lanes_meet);
}

Result<Image> compile(const wasm::Module& module, const translate::Code& code,
                      const Options& options, Image begun) {
    const Program program(module, code, options.target != Target::host);
    std::unique_ptr<const Implementation> other_cpu;
    if (options.target == Target::host && !options.cpu.empty()) {
        TRY(missing_features(options.cpu));
        other_cpu = make_host_target(options.cpu);
    }
    const Implementation& target = other_cpu ? *other_cpu : target_of(options.target);
    std::vector<bool> done(module.funcs.size());
    for (const Image::Piece& piece : begun.pieces)
        for (u32 func : piece.functions) done[func] = true;
    const std::vector<std::vector<u32>> pieces = pieces_of(program, target, done);
    const usize count = pieces.size();
    std::vector<std::optional<Result<Image::Piece>>> made(count);
    std::vector<Image::Times> times(count);
    std::atomic<usize> next = 0, ready = 0;
    auto work = [&](u32) {
        if (options.is_nice) be_nice();
        for (usize i; (i = next.fetch_add(1)) < count;) {
            if (options.is_cancelled && options.is_cancelled()) return;
            made[i] = in_llvm([&] {
                return compile_piece(program, target, pieces[i], Place(program, target, i),
                                     options.is_text, times[i]);
            });
            if (options.has_progress) options.has_progress(++ready, count);
        }
    };
    const usize most =
        options.threads ? options.threads : std::max(1u, std::thread::hardware_concurrency());
    if (options.has_progress && count > 0) options.has_progress(0, count);
    share_work(u32(std::min(most, count)), work);
    // Also if it was cancelled.
    if (options.has_progress && count > 0) options.has_progress(count, count);

    Image image = std::move(begun);
    for (std::optional<Result<Image::Piece>>& piece : made) {
        if (!piece) return Error{"nobody wants the machine code any more"};
        image.pieces.push_back(TRY(std::move(*piece)));
    }
    for (const Image::Times& piece : times) {
        image.seconds.build += piece.build;
        image.seconds.optimise += piece.optimise;
        image.seconds.emit += piece.emit;
    }
    image.functions = image.interpreted = image.missing = 0;
    for (u32 func = module.imported_funcs; func < module.funcs.size(); func++)
        (program.is_compiled[func] ? image.functions : image.interpreted)++;
    image.all_functions = u32(module.funcs.size());
    return image;
}

Result<std::string> emit_ir(const wasm::Module& module, const translate::Code& code,
                            Target wanted) {
    const Program program(module, code, wanted != Target::host);
    const Implementation& target = target_of(wanted);
    std::string text;
    const auto pieces = pieces_of(program, target, std::vector<bool>(module.funcs.size()));
    for (usize i = 0; i < pieces.size(); i++) {
        const Place place(program, target, i);
        Piece piece(program, target, place.group, pieces[i]);
        fill(piece, pieces[i], place);
        llvm::raw_string_ostream out(text);
        piece.module().print(out, nullptr);
    }
    return text;
}

}  // namespace gpurun::codegen
