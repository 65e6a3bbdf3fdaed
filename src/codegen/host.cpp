// The CPU as a target, and images in its memory: linked by JITLink, piece by piece, with the
// runtime's functions alone.
#include <codegen_hash.h>
#include <dlfcn.h>

#include <algorithm>
#include <mutex>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "abi/native.h"
#include "codegen/codegen.h"
#include "codegen/target.h"

#include <llvm/Config/llvm-config.h>
#include <llvm/ExecutionEngine/JITLink/JITLink.h>
#include <llvm/ExecutionEngine/JITLink/JITLinkMemoryManager.h>
#include <llvm/ExecutionEngine/Orc/SymbolStringPool.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/Process.h>
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
    HostTarget(const std::string& cpu, bool lanes_meet) : lanes_meet_(lanes_meet) {
        std::tie(cpu_, features_) = split_cpu(cpu);
    }

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
    bool lanes_meet() const override { return lanes_meet_; }
    bool wants_alignment() const override { return false; }

private:
    std::string cpu_, features_;
    const bool lanes_meet_;
};

Error llvm_error(const char* what, llvm::Error error) {
    return {std::string(what) + ": " + llvm::toString(std::move(error))};
}

// What LLVM's own code may call for an instruction that the CPU lacks.
constexpr const char* library_functions[] = {
    "memcpy", "memmove", "memset", "ceil",      "ceilf",      "floor",     "floorf",    "trunc",
    "truncf", "rint",    "rintf",  "nearbyint", "nearbyintf", "roundeven", "roundevenf"};

namespace jit = llvm::jitlink;

// What comes of linking one object. JITLink owns the context that it reports to, and is done with
// it when link() returns.
struct Linked {
    const void *enter = nullptr, *own_functions = nullptr;
    jit::JITLinkMemoryManager::FinalizedAlloc memory;
    std::string problem;
};

using Addresses = std::unordered_map<std::string, llvm::orc::ExecutorAddr>;

class LinkContext final : public jit::JITLinkContext {
public:
    LinkContext(jit::JITLinkMemoryManager& memory, const Addresses& known, const std::string& enter,
                Linked& linked)
        : JITLinkContext(nullptr), memory_(memory), known_(known), enter_(enter), linked_(linked) {}

    jit::JITLinkMemoryManager& getMemoryManager() override { return memory_; }
    void notifyFailed(llvm::Error e) override { linked_.problem = llvm::toString(std::move(e)); }
    void lookup(const LookupMap& symbols,
                std::unique_ptr<jit::JITLinkAsyncLookupContinuation> go_on) override {
        jit::AsyncLookupResult found;
        for (const auto& [name, flags] : symbols) {
            auto at = known_.find((*name).str());
            if (at == known_.end()) {
                go_on->run(llvm::createStringError("it wants " + *name + ", which is not there"));
                return;
            }
            found[name] = {at->second, llvm::JITSymbolFlags::Exported};
        }
        go_on->run(std::move(found));
    }
    llvm::Error notifyResolved(jit::LinkGraph& graph) override {
        for (const jit::Symbol* symbol : graph.defined_symbols()) {
            if (!symbol->hasName()) continue;
            const llvm::StringRef name = *symbol->getName();
            if (name == enter_) linked_.enter = symbol->getAddress().toPtr<void*>();
            if (name == native_own_table_name)
                linked_.own_functions = symbol->getAddress().toPtr<void*>();
        }
        return llvm::Error::success();
    }
    void notifyFinalized(jit::JITLinkMemoryManager::FinalizedAlloc memory) override {
        linked_.memory = std::move(memory);
    }

private:
    jit::JITLinkMemoryManager& memory_;
    const Addresses& known_;
    const std::string& enter_;
    Linked& linked_;
};

class HostImage final : public LoadedImage {
public:
    HostImage(u32 functions, std::span<const Symbol> symbols)
        : memory_(llvm::sys::Process::getPageSizeEstimate()), functions_(functions) {
        for (const Symbol& symbol : symbols)
            known_[symbol.name] = llvm::orc::ExecutorAddr::fromPtr(symbol.address);
        for (const char* name : library_functions)
            if (const void* address = dlsym(RTLD_DEFAULT, name))
                known_[name] = llvm::orc::ExecutorAddr::fromPtr(address);
        known_[native_table_name] = llvm::orc::ExecutorAddr::fromPtr(functions_.data());
    }

    // (The form of deallocate() that returns an error allocates in code of ours, which may throw.)
    ~HostImage() override {
        in_llvm([&] {
            memory_.deallocate(std::move(linked_),
                               [](llvm::Error e) { llvm::consumeError(std::move(e)); });
        });
    }

    Result<std::vector<Entry>> add(const Image::Piece& piece) override {
        std::lock_guard lock(mutex_);
        return in_llvm([&] { return link(piece); });
    }

private:
    Result<std::vector<Entry>> link(const Image::Piece& piece) {
        if (!piece.functions.empty() && piece.functions.back() >= functions_.size())
            return Error{"the machine code is damaged"};
        llvm::MemoryBufferRef object(
            llvm::StringRef(reinterpret_cast<const char*>(piece.object.data()),
                            piece.object.size()),
            piece.enter);
        auto graph = jit::createLinkGraphFromObject(object, names_);
        if (!graph) return llvm_error("cannot load machine code", graph.takeError());
        Linked linked;
        jit::link(std::move(*graph),
                  std::make_unique<LinkContext>(memory_, known_, piece.enter, linked));
        if (linked.memory) linked_.push_back(std::move(linked.memory));
        if (linked.problem.empty() && (!linked.enter || !linked.own_functions))
            linked.problem = "it has no way in";
        if (!linked.problem.empty()) return Error{"cannot link machine code: " + linked.problem};
        std::vector<Entry> entries;
        for (u32 number = 0; number < piece.entries.size(); number++)
            entries.push_back({piece.entries[number], const_cast<void*>(linked.enter), number});
        // From here on the others call it.
        const auto* own = static_cast<const void* const*>(linked.own_functions);
        for (usize i = 0; i < piece.functions.size(); i++)
            __atomic_store_n(&functions_[piece.functions[i]], own[i], __ATOMIC_RELEASE);
        return entries;
    }

    std::mutex mutex_;
    std::shared_ptr<llvm::orc::SymbolStringPool> names_ =
        std::make_shared<llvm::orc::SymbolStringPool>();
    jit::InProcessMemoryManager memory_;
    Addresses known_;
    std::vector<const void*> functions_;  // by number; machine code reads it
    std::vector<jit::JITLinkMemoryManager::FinalizedAlloc> linked_;
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
    static const HostTarget& target = *new HostTarget(this_cpu(), false);
    return target;
}

std::unique_ptr<const Implementation> make_host_target(const std::string& cpu, bool lanes_meet) {
    return std::make_unique<HostTarget>(cpu, lanes_meet);
}

std::shared_ptr<LoadedImage> make_loaded_image(u32 functions,
                                               std::span<const LoadedImage::Symbol> symbols) {
    return std::make_shared<HostImage>(functions, symbols);
}

}  // namespace gpurun::codegen
