// Chooses and launches the kernels of bursts on an NVIDIA GPU. src/burst does the rest.
#include "burst/run.h"
#include "device/cuda/cuda_device.h"

namespace gpurun::device {

Result<BurstKernel> CudaDevice::burst_kernel(const BurstKernelKind& kind) {
    const Kernel* kernel = kind.is_native ? TRY(native_kernel(target(Mode::burst, kind.layout)))
                                          : TRY(gang_kernel(kind.is_deep, kind.layout));
    const u32 blocks = kernel->blocks_per_multiprocessor * info_.multiprocessors;
    return BurstKernel{kernel, kernel->local_bytes, blocks * (block_lanes / warp_lanes)};
}

Result<void> CudaDevice::launch_burst(const BurstKernel& kernel, u32 warps, BurstParams params,
                                      const RunControl& control) {
    params.stop = stop_.at();
    TRY(pass_on_stop(control));
    const u32 blocks = (warps * warp_lanes + block_lanes - 1) / block_lanes;
    return launch(*static_cast<const Kernel*>(kernel.handle), blocks, block_lanes, 0, &params);
}

Result<BurstOutcome> CudaDevice::run_burst(std::span<const Burst> parts,
                                           const RunControl& control) {
    return burst::run(*this, parts, control);
}

}  // namespace gpurun::device
