// NVIDIA's GPUs as a target: an image is PTX, which the driver assembles.
#include <algorithm>
#include <mutex>
#include <regex>

#include "codegen/target.h"

#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/TargetParser/Triple.h>

// The bitcode that the build embeds.
extern "C" const gpurun::u8 gpurun_native_burst_bitcode[], gpurun_native_burst_bitcode_end[],
    gpurun_native_interleaved_bitcode[], gpurun_native_interleaved_bitcode_end[],
    gpurun_native_space_bitcode[], gpurun_native_space_bitcode_end[],
    gpurun_native_machine_bitcode[], gpurun_native_machine_bitcode_end[];

namespace gpurun::codegen {
namespace {

// LLVM negates the least number of a type by `neg`, and takes its absolute value by `abs`, for
// which PTX has no answer: the driver's assembler compares with what is no number of 16 bits any
// more. And one (CUDA 13.0) forgets to negate what goes into a maximum of three. Of unsigned
// numbers it knows nothing: their subtraction is done, and wraps.
std::string without_negation(std::string line) {
    // Never destroyed: threads may compile while the program ends.
    static const std::regex &negation = *new std::regex(R"(neg\.s(16|32|64) \t(%\w+), (%\w+);)"),
                            &absolute = *new std::regex(R"(abs\.s(16|32|64) \t(%\w+), (%\w+);)");
    if (line.find("neg.s") != line.npos)
        line = std::regex_replace(line, negation, "sub.u$1 \t$2, 0, $3;");
    if (line.find("abs.s") != line.npos)
        line = std::regex_replace(line, absolute,
                                  "{ .reg .b$1 t; sub.u$1 t, 0, $3; max.s$1 $2, $3, t; }");
    return line;
}

// LLVM turns no condition round to go on with the next block: "if p go to A; go to B; A:" is one
// branch to B.
void spare_branch(std::vector<std::string>& lines) {
    const usize count = lines.size();
    if (count < 3 || !lines[count - 1].starts_with("$L__BB")) return;
    std::string &first = lines[count - 3], &second = lines[count - 2];
    const std::string label = lines[count - 1].substr(0, lines[count - 1].find(':'));
    constexpr std::string_view unconditional = "\tbra.uni \t", if_set = "\t@%", bra = " bra \t";
    if (!second.starts_with(unconditional) || !first.starts_with(if_set) ||
        !first.ends_with(" bra \t" + label + ";"))
        return;
    first = "\t@!" + first.substr(2, first.find(bra) - 2) + std::string(bra) +
            second.substr(unconditional.size());
    lines.erase(lines.end() - 2);
}

class NvptxTarget final : public Implementation {
public:
    NvptxTarget(std::span<const u8> bitcode, bool lanes_meet)
        : bitcode_(bitcode), lanes_meet_(lanes_meet) {}

    std::span<const u8> bitcode() const override { return bitcode_; }

    Result<std::unique_ptr<llvm::TargetMachine>> make_machine() const override {
        static std::once_flag once;
        std::call_once(once, [] {
            LLVMInitializeNVPTXTargetInfo();
            LLVMInitializeNVPTXTarget();
            LLVMInitializeNVPTXTargetMC();
            LLVMInitializeNVPTXAsmPrinter();
        });
        llvm::Triple triple("nvptx64-nvidia-cuda");
        std::string problem;
        const llvm::Target* target = llvm::TargetRegistry::lookupTarget(triple, problem);
        if (!target) return Error{"LLVM knows no GPUs of NVIDIA: " + problem};
        llvm::TargetOptions options;
        options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
        // The floor, as for the runtime's own kernels (cmake/runtime_kernels.cmake).
        return std::unique_ptr<llvm::TargetMachine>(
            target->createTargetMachine(triple, "sm_75", "+ptx70", options, llvm::Reloc::PIC_,
                                        std::nullopt, llvm::CodeGenOptLevel::Default));
    }

    bool is_apart() const override { return true; }
    bool has_clock() const override { return true; }
    bool lanes_meet() const override { return lanes_meet_; }
    bool wants_alignment() const override { return true; }

    std::vector<u8> amended(std::vector<u8> text) const override {
        std::vector<std::string> lines;
        for (auto at = text.begin(); at != text.end();) {
            const auto end = std::find(at, text.end(), '\n');
            lines.push_back(without_negation(std::string(at, end)));
            spare_branch(lines);
            at = end == text.end() ? end : end + 1;
        }
        std::vector<u8> made;
        made.reserve(text.size());
        for (const std::string& line : lines) {
            made.insert(made.end(), line.begin(), line.end());
            made.push_back('\n');
        }
        return made;
    }

private:
    std::span<const u8> bitcode_;
    bool lanes_meet_;
};

}  // namespace

const Implementation& nvptx_target(Target target) {
    // Never destroyed: threads may compile while the program ends.
    static const NvptxTarget
        &burst =
            *new NvptxTarget({gpurun_native_burst_bitcode, gpurun_native_burst_bitcode_end}, true),
        &interleaved = *new NvptxTarget(
            {gpurun_native_interleaved_bitcode, gpurun_native_interleaved_bitcode_end}, true),
        // One lane alone.
            &space = *new NvptxTarget(
                {gpurun_native_space_bitcode, gpurun_native_space_bitcode_end}, false),
        &machine = *new NvptxTarget(
            {gpurun_native_machine_bitcode, gpurun_native_machine_bitcode_end}, true);
    switch (target) {
        case Target::cuda_machine: return machine;
        case Target::cuda_burst: return burst;
        case Target::cuda_interleaved: return interleaved;
        default: return space;
    }
}

}  // namespace gpurun::codegen
