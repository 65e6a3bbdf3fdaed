// The warps of warps.h as a device, for bursts and for a resident machine: what a GPU would do,
// with the kernels of a GPU. Its time is that of the warps.
#pragma once

#include "device/kernel_device.h"
#include "warps.h"

namespace gpurun::test {

// What stands for machine code of a burst: a function of the host, which can be entered at every
// position of the code.
struct LanesNativeCode final : device::NativeCode {
    using Enter = NativeStatus(void* context, u32* fp, u32* rp, u32 number);
    explicit LanesNativeCode(Enter* function) : enter(function) {}
    Enter* enter;
};

class LanesDevice final : public device::Device, public device::KernelDevice {
public:
    // Warps of 4 or of 32 lanes; the seed decides whose turn it is.
    LanesDevice(u32 lanes, u32 warps, u64 seed);

    // Of machines: they park by themselves after that much of their time, as where there is a
    // watchdog.
    void park_every(u64 ns) { park_ns_ = ns; }
    // What bursts find free; more than that cannot be allocated.
    void set_memory(u64 bytes) { info_.memory_total = info_.memory_free = bytes; }
    // What was launched for bursts.
    struct Launch {
        device::BurstKernelKind kind;
        u32 warps = 0;
        std::vector<BurstPart> parts;
    };
    std::vector<Launch> launched;
    u64 allocated() const { return allocated_; }

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
    Result<std::shared_ptr<const device::NativeCode>> load_native(
        const codegen::Image& image, codegen::Target target,
        const device::NativeCode* loaded) override;
    codegen::Target target(device::Mode, Layout) const override { return codegen::Target::host; }
    bool takes_late_native() const override { return false; }
    bool loads_beside_machine() const override { return true; }
    device::Assembler assembler(codegen::Target) const override { return {}; }
    Result<device::MachineShape> machine_shape() override {
        return device::MachineShape{warps_, lanes_};
    }
    Result<std::unique_ptr<device::MachineRunner>> make_machine(
        device::SystemMemory& system, device::SystemMemory& pages) override;
    Result<device::BurstOutcome> run_burst(std::span<const device::Burst> parts,
                                           const device::RunControl& control) override;

    // ---- for src/burst -------------------------------------------------------------

    Result<u64> free_memory() override;
    Result<device::Buffer> allocate(u64 size, const char* what) override;
    void release(u64 at, u64 size) override;
    Result<void> clear(u64 at, u64 size) override;
    Result<void> copy_in(u64 to, const void* from, u64 size) override;
    Result<void> copy_out(void* to, u64 from, u64 size) override;
    Result<void> synchronize(const char*) override { return {}; }
    Result<void> peek(void* to, u64 from, u64 size) override { return copy_out(to, from, size); }
    u64 address_of(const device::SystemMemory* system) const override;
    // Warps of 32 lanes have no kernel that runs machine code.
    Result<device::BurstKernel> burst_kernel(const device::BurstKernelKind& kind) override;
    // Of LanesNativeCode.
    Result<device::UploadedEntries> upload_entries(std::span<const device::NativePart> parts,
                                                   u64 code_words) override;
    NativeParams native_params(device::Tier tier) const override;
    Result<void> launch_burst(const device::BurstKernel& kernel, u32 warps, BurstParams params,
                              const device::RunControl& control) override;
    // Runs the warps: what was launched does so here.
    Result<std::optional<double>> wait(const device::RunControl& control, u64 waiting,
                                       const std::function<Result<void>()>& look) override;
    double seconds_of(u64 cycles) const override { return double(cycles) * 1e-9; }

private:
    struct Kernel;
    static const Kernel all_kernels[];

    u32 lanes_, warps_;
    u64 seed_, park_ns_ = 0;
    u64 now_ns_ = 1'000'000'000;  // when the latest burst stood still
    u64 allocated_ = 0;
    // What was launched and has not run.
    const Kernel* kernel_ = nullptr;
    BurstParams params_{};
    u32 launched_warps_ = 0, stop_ = stop_none;
    device::DeviceInfo info_;
    device::Usage usage_;
};

}  // namespace gpurun::test
