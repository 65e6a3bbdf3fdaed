// The CPU as a target, and images in its memory: linked by ORC, with the runtime's functions alone.
#include <codegen_hash.h>
#include <dlfcn.h>

#include <algorithm>
#include <deque>
#include <mutex>
#include <tuple>
#include <utility>

#include "codegen/codegen.h"
#include "codegen/target.h"

#include <llvm/Config/llvm-config.h>
#include <llvm/ExecutionEngine/Orc/AbsoluteSymbols.h>
#include <llvm/ExecutionEngine/Orc/MapperJITLinkMemoryManager.h>
#include <llvm/ExecutionEngine/Orc/MemoryMapper.h>
#include <llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h>
#include <llvm/ExecutionEngine/Orc/SelfExecutorProcessControl.h>
#include <llvm/ExecutionEngine/Orc/TaskDispatch.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/TargetParser/Triple.h>

// The bitcode that the build embeds.
extern "C" const gpurun::u8 gpurun_native_host_bitcode[], gpurun_native_host_bitcode_end[];

namespace gpurun::codegen {
namespace {

// What LLVM lets one choose by its command line alone. An LLVM that does not know the option goes
// without it.
void set_option(const char* name, const char* value) {
    auto& options = llvm::cl::getRegisteredOptions();
    if (auto found = options.find(name); found != options.end())
        found->second->addOccurrence(1, name, value);
}

void begin_llvm() {
    static std::once_flag once;
    std::call_once(once, [] {
        // The ways out of a function have many copies, of few values each: their intervals are
        // better made anew at once than mended copy by copy. The same code, in three quarters of
        // the time.
        set_option("late-remat-update-threshold", "1");
        // Scheduling a second time, after allocation, gains nothing that could be measured.
        set_option("disable-post-ra", "true");
        llvm::InitializeNativeTarget();
        llvm::InitializeNativeTargetAsmPrinter();
    });
}

std::string host_features() {
    // In an order of their own: the map has none.
    std::vector<std::string> names;
    for (const auto& [name, has] : llvm::sys::getHostCPUFeatures())
        names.push_back((has ? "+" : "-") + name.str());
    std::ranges::sort(names);
    std::string features;
    for (const std::string& name : names) features += (features.empty() ? "" : ",") + name;
    return features;
}

// A CPU's name, and the rest.
std::pair<std::string, std::string> split_cpu(const std::string& cpu) {
    const usize comma = cpu.find(',');
    return {cpu.substr(0, comma), comma == cpu.npos ? "" : cpu.substr(comma + 1)};
}

Result<const llvm::Target*> find_target() {
    begin_llvm();
    std::string problem;
    const llvm::Target* target =
        llvm::TargetRegistry::lookupTarget(llvm::Triple(llvm::sys::getProcessTriple()), problem);
    if (!target) return Error{"LLVM does not know this machine: " + problem};
    return target;
}

class HostTarget final : public Implementation {
public:
    explicit HostTarget(const std::string& cpu) { std::tie(cpu_, features_) = split_cpu(cpu); }

    std::span<const u8> bitcode() const override {
        return {gpurun_native_host_bitcode, gpurun_native_host_bitcode_end};
    }

    Result<std::unique_ptr<llvm::TargetMachine>> make_machine() const override {
        const llvm::Target* target = TRY(find_target());
        llvm::TargetOptions options;
        options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
        return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
            llvm::Triple(llvm::sys::getProcessTriple()), cpu_, features_, options,
            llvm::Reloc::PIC_, llvm::CodeModel::Small, llvm::CodeGenOptLevel::Default));
    }

    bool is_apart() const override { return false; }
    bool has_clock() const override { return false; }
    bool wants_alignment() const override { return false; }

private:
    std::string cpu_, features_;
};

Error llvm_error(const char* what, llvm::Error error) {
    return {std::string(what) + ": " + llvm::toString(std::move(error))};
}

// What LLVM's own code may call for an instruction that the CPU lacks.
constexpr const char* library_functions[] = {
    "memcpy", "memmove", "memset", "ceil",      "ceilf",      "floor",     "floorf",    "trunc",
    "truncf", "rint",    "rintf",  "nearbyint", "nearbyintf", "roundeven", "roundevenf"};

// Runs ORC's tasks in the thread that waits for them, one after another. ORC's own dispatcher
// starts a thread for each, which nothing can be done about if there is none; its other one runs a
// task inside the task that wants it, so that many pieces take much stack.
class TaskQueue final : public llvm::orc::TaskDispatcher {
public:
    void dispatch(std::unique_ptr<llvm::orc::Task> task) override {
        tasks_.push_back(std::move(task));
        if (std::exchange(is_running_, true)) return;
        for (; !tasks_.empty(); tasks_.pop_front()) tasks_.front()->run();
        is_running_ = false;
    }
    void shutdown() override {}

private:
    std::deque<std::unique_ptr<llvm::orc::Task>> tasks_;
    bool is_running_ = false;
};

class HostImage final : public LoadedImage {
public:
    static Result<std::shared_ptr<const LoadedImage>> make(const Image& image,
                                                           std::span<const Symbol> symbols) {
        begin_llvm();
        auto made = std::make_shared<HostImage>();
        auto control =
            llvm::orc::SelfExecutorProcessControl::Create(nullptr, std::make_unique<TaskQueue>());
        if (!control) return llvm_error("cannot load machine code", control.takeError());
        made->session_ = std::make_unique<llvm::orc::ExecutionSession>(std::move(*control));
        std::string problems;
        made->session_->setErrorReporter(
            [&](llvm::Error e) { problems += llvm::toString(std::move(e)) + "; "; });
        llvm::orc::ExecutionSession& session = *made->session_;
        // One piece of address space for all: they reach each other by 32-bit distances.
        usize room = 1 << 20;
        for (const Image::Piece& piece : image.pieces) room += 2 * piece.object.size();
        auto memory = llvm::orc::MapperJITLinkMemoryManager::CreateWithMapper<
            llvm::orc::InProcessMemoryMapper>((room + 0xfffff) & ~usize{0xfffff});
        if (!memory) return llvm_error("cannot load machine code", memory.takeError());
        made->layer_ = std::make_unique<llvm::orc::ObjectLinkingLayer>(session, std::move(*memory));
        auto library = session.createJITDylib("image");
        if (!library) return llvm_error("cannot load machine code", library.takeError());

        llvm::orc::SymbolMap known;
        auto add = [&](const char* name, const void* address) {
            known[session.intern(name)] = {llvm::orc::ExecutorAddr::fromPtr(address),
                                           llvm::JITSymbolFlags::Exported};
        };
        for (const Symbol& symbol : symbols) add(symbol.name, symbol.address);
        for (const char* name : library_functions)
            if (const void* address = dlsym(RTLD_DEFAULT, name)) add(name, address);
        if (llvm::Error e = library->define(llvm::orc::absoluteSymbols(std::move(known))))
            return llvm_error("cannot load machine code", std::move(e));
        for (const Image::Piece& piece : image.pieces) {
            llvm::StringRef bytes(reinterpret_cast<const char*>(piece.object.data()),
                                  piece.object.size());
            if (llvm::Error e = made->layer_->add(
                    *library, llvm::MemoryBuffer::getMemBufferCopy(bytes, piece.enter)))
                return llvm_error("cannot load machine code", std::move(e));
        }
        for (const Image::Piece& piece : image.pieces) {
            auto found = session.lookup({&*library}, piece.enter);
            if (!found) {
                llvm::consumeError(found.takeError());
                return Error{"cannot link machine code: " + problems};
            }
            void* enter = found->getAddress().toPtr<void*>();
            for (u32 number = 0; number < piece.entries.size(); number++)
                made->entries_.push_back({piece.entries[number], enter, number});
        }
        made->session_->setErrorReporter([](llvm::Error e) { llvm::consumeError(std::move(e)); });
        return std::shared_ptr<const LoadedImage>(std::move(made));
    }

    ~HostImage() override {
        if (session_)
            if (llvm::Error e = session_->endSession()) llvm::consumeError(std::move(e));
    }

    std::span<const Entry> entries() const override { return entries_; }

private:
    std::unique_ptr<llvm::orc::ExecutionSession> session_;
    std::unique_ptr<llvm::orc::ObjectLinkingLayer> layer_;
    std::vector<Entry> entries_;
};

}  // namespace

std::string target_key(Target target, const std::string& cpu) {
    const std::string version = " " LLVM_VERSION_STRING " " GPURUN_CODEGEN_HASH;
    if (target != Target::host) return name_of(target) + version;
    return llvm::sys::getProcessTriple() + " " + (cpu.empty() ? this_cpu() : cpu) + version;
}

std::string this_cpu() {
    // Never destroyed, as all here that threads use which compile while the program ends.
    static const std::string& cpu =
        *new std::string(llvm::sys::getHostCPUName().str() + "," + host_features());
    return cpu;
}

std::string common_cpu() {
    return llvm::Triple(llvm::sys::getProcessTriple()).isX86() ? "x86-64-v3" : "generic";
}

Result<std::string> missing_features(const std::string& cpu) {
    const auto [name, features] = split_cpu(cpu);
    std::unique_ptr<llvm::MCSubtargetInfo> info(
        TRY(find_target())
            ->createMCSubtargetInfo(llvm::Triple(llvm::sys::getProcessTriple()), "", ""));
    if (!info || !info->isCPUStringValid(name)) return Error{"LLVM knows no CPU " + name};
    info->setDefaultFeatures(name, name, features);
    // Of what this machine is not known to have or not it has what all of its kind have.
    std::string missing;
    const auto here = llvm::sys::getHostCPUFeatures();
    for (const llvm::SubtargetFeatureKV& feature : info->getAllProcessorFeatures()) {
        auto found = here.find(feature.Key);
        if (info->getFeatureBits().test(feature.Value) && found != here.end() && !found->second)
            missing += (missing.empty() ? "" : ", ") + std::string(feature.Key);
    }
    return missing;
}

const Implementation& host_target() {
    static const HostTarget& target = *new HostTarget(this_cpu());
    return target;
}

std::unique_ptr<const Implementation> make_host_target(const std::string& cpu) {
    return std::make_unique<HostTarget>(cpu);
}

Result<std::shared_ptr<const LoadedImage>> load(const Image& image,
                                                std::span<const LoadedImage::Symbol> symbols) {
    return in_llvm([&] { return HostImage::make(image, symbols); });
}

}  // namespace gpurun::codegen
