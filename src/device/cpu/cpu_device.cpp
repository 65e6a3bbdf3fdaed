// The CPU as a device: process memory is reserved address space, and the runtime is called.
#include <unistd.h>

#include <thread>

#include "device/cpu/cpu_burst.h"
#include "device/cpu/cpu_machine.h"
#include "device/cpu/cpu_process.h"
#include "device/devices.h"
#include "runtime/scheduler/scheduler.h"

namespace gpurun::device {
namespace {

class CpuDevice final : public Device {
public:
    const DeviceInfo& info() const override { return info_; }
    const Usage& usage() const override { return usage_; }
    std::map<std::string, u64> driver_calls() const override { return {}; }
    KernelCounts kernel_counts() const override { return {}; }

    Result<void> prepare(Mode) override { return {}; }
    std::function<void()> kernel_assembler(Mode, Layout) const override { return {}; }
    Result<std::unique_ptr<SystemMemory>> make_system(u64 size) override {
        Reservation memory = TRY(Reservation::make(size, "files and streams"));
        memory.prefer_large_pages();
        return std::unique_ptr<SystemMemory>(new CpuSystem(std::move(memory), size));
    }
    Result<std::unique_ptr<Space>> make_space(const Sizes& sizes) override {
        return make_cpu_space(sizes);
    }
    codegen::Target target(Mode, Layout) const override { return codegen::Target::host; }
    Result<std::shared_ptr<const NativeCode>> load_native(const codegen::Image& image,
                                                          codegen::Target,
                                                          const NativeCode* loaded) override {
        return CpuNativeCode::make(image, loaded);
    }
    bool takes_late_native() const override { return true; }
    bool loads_beside_machine() const override { return true; }
    Assembler assembler(codegen::Target) const override { return {}; }

    // Returns a worker for each core, two at least, so that processes of a machine run at the same
    // time.
    Result<MachineShape> machine_shape() override {
        return MachineShape{first_worker + std::max(2u, info_.lanes), 1};
    }
    Result<std::unique_ptr<MachineRunner>> make_machine(SystemMemory& system,
                                                        SystemMemory& pages) override {
        MachineShape shape = TRY(machine_shape());
        return make_cpu_machine(system_at(&system), system_at(&pages), shape.warps,
                                rt::run_machine);
    }

    Result<BurstOutcome> run_burst(std::span<const Burst> parts,
                                   const RunControl& control) override {
        return run_cpu_burst(parts, control, info_.lanes);
    }

private:
    DeviceInfo info_ = cpu_info();
    Usage usage_;
};

std::string cpu_name() {
    std::string name = "CPU";
    if (FILE* file = std::fopen("/proc/cpuinfo", "r")) {
        char line[256];
        while (std::fgets(line, sizeof line, file)) {
            char model[200];
            if (std::sscanf(line, "model name : %199[^\n]", model) == 1) {
                name = model;
                break;
            }
        }
        std::fclose(file);
    }
    return name;
}

}  // namespace

DeviceInfo cpu_info() {
    DeviceInfo info;
    info.id = "cpu";
    info.name = cpu_name();
    info.multiprocessors = info.lanes = std::max(1u, std::thread::hardware_concurrency());
    u64 page = u64(sysconf(_SC_PAGESIZE));
    info.memory_total = u64(sysconf(_SC_PHYS_PAGES)) * page;
    info.memory_free = u64(sysconf(_SC_AVPHYS_PAGES)) * page;
    info.reserves_lazily = true;
    return info;
}

std::unique_ptr<Device> make_cpu_device() { return std::make_unique<CpuDevice>(); }

}  // namespace gpurun::device
