// The warps of warps.h as a device for bursts: what a GPU's would do, with the kernels of a GPU.
#pragma once

#include "device/device.h"
#include "warps.h"

namespace gpurun::test {

class LanesDevice final : public device::Device {
public:
    // Warps of 4 or of 32 lanes; the seed decides whose turn it is.
    LanesDevice(u32 lanes, u32 warps, u64 seed);

    const device::DeviceInfo& info() const override { return info_; }
    const device::Usage& usage() const override { return usage_; }
    Result<void> prepare(bool) override { return {}; }
    Result<std::unique_ptr<device::SystemMemory>> make_system(u64 size) override;
    Result<std::unique_ptr<device::Space>> make_space(const device::Sizes& sizes) override;
    Result<device::BurstOutcome> run_burst(std::span<const device::Burst> parts,
                                           const device::RunControl& control) override;

private:
    Result<device::BurstResults> run_part(const device::Burst& part, u32& launches);

    u32 lanes_, warps_;
    u64 seed_;
    device::DeviceInfo info_;
    device::Usage usage_;
};

}  // namespace gpurun::test
