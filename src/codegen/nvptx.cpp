// NVIDIA's GPUs as a target: an image is PTX, which the driver assembles.
#include <mutex>

#include "codegen/target.h"

#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/TargetParser/Triple.h>

// The bitcode that the build embeds.
extern "C" const gpurun::u8 gpurun_native_burst_bitcode[], gpurun_native_burst_bitcode_end[],
    gpurun_native_space_bitcode[], gpurun_native_space_bitcode_end[],
    gpurun_native_machine_bitcode[], gpurun_native_machine_bitcode_end[];

namespace gpurun::codegen {
namespace {

class NvptxTarget final : public Implementation {
public:
    explicit NvptxTarget(std::span<const u8> bitcode) : bitcode_(bitcode) {}

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
        // The floor, as for the runtime's own kernels (cmake/runtime_ptx.cmake).
        return std::unique_ptr<llvm::TargetMachine>(
            target->createTargetMachine(triple, "sm_75", "+ptx70", options, llvm::Reloc::PIC_,
                                        std::nullopt, llvm::CodeGenOptLevel::Default));
    }

    bool is_apart() const override { return true; }

private:
    std::span<const u8> bitcode_;
};

}  // namespace

const Implementation& nvptx_target(Target target) {
    static const NvptxTarget burst({gpurun_native_burst_bitcode, gpurun_native_burst_bitcode_end}),
        space({gpurun_native_space_bitcode, gpurun_native_space_bitcode_end}),
        machine({gpurun_native_machine_bitcode, gpurun_native_machine_bitcode_end});
    if (target == Target::cuda_machine) return machine;
    return target == Target::cuda_burst ? burst : space;
}

}  // namespace gpurun::codegen
