// The warps of warps.h as a device, for bursts and for a resident machine: what a GPU would do,
// with the kernels of a GPU.
#pragma once

#include "device/device.h"
#include "warps.h"

namespace gpurun::test {

class LanesDevice final : public device::Device {
public:
    // Warps of 4 or of 32 lanes; the seed decides whose turn it is.
    LanesDevice(u32 lanes, u32 warps, u64 seed);

    // Of machines: they park by themselves after that much of their time, as where there is a
    // watchdog.
    void park_every(u64 ns) { park_ns_ = ns; }
    // Of bursts: what each tells that its processes took. Empty: nothing.
    std::function<double(const device::Burst& part)> seconds_of;
    // Which bursts ran, as "linear 0+32", one after another.
    std::vector<std::string> ran;

    const device::DeviceInfo& info() const override { return info_; }
    const device::Usage& usage() const override { return usage_; }
    std::map<std::string, u64> driver_calls() const override { return {}; }
    device::KernelCounts kernel_counts() const override { return {}; }
    Result<void> prepare(device::Mode) override { return {}; }
    std::function<void()> kernel_assembler(device::Mode, Layout) const override { return {}; }
    Result<std::unique_ptr<device::SystemMemory>> make_system(u64 size) override;
    Result<std::unique_ptr<device::Space>> make_space(const device::Sizes& sizes) override;
    // Machine code is the host's, for spaces. Machines take it, but have no entries: their threads
    // run as if they might come to some.
    Result<std::shared_ptr<const device::NativeCode>> load_native(const codegen::Image& image,
                                                                  codegen::Target target) override;
    Result<device::MachineShape> machine_shape() override {
        return device::MachineShape{warps_, lanes_};
    }
    Result<std::unique_ptr<device::Machine>> make_machine(device::SystemMemory& system,
                                                          device::SystemMemory& pages) override;
    Result<device::BurstOutcome> run_burst(std::span<const device::Burst> parts,
                                           const device::RunControl& control) override;

private:
    Result<device::BurstResults> run_part(const device::Burst& part,
                                          const device::RunControl& control, u32& launches);

    u32 lanes_, warps_;
    u64 seed_, park_ns_ = 0;
    device::DeviceInfo info_;
    device::Usage usage_;
};

}  // namespace gpurun::test
