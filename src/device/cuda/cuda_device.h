// An NVIDIA GPU as a device: what it owns, and how its parts call the driver. It makes plain
// allocations only, and frees all of them.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "abi/burst.h"
#include "abi/check.h"
#include "base/format.h"
#include "base/threads.h"
#include "device/cuda/cuda_driver.h"
#include "device/cuda/runtime_kernels.h"
#include "device/kernel_device.h"

namespace gpurun::device {

using cuda::DevicePointer;
using cuda::Driver;
using cuda::DriverHandle;

inline constexpr unsigned non_blocking_stream = 1;
inline constexpr u32 block_lanes = 128;
inline constexpr u32 warp_lanes = 32;

// ---- what is owned -----------------------------------------------------------------

// What a device has allocated and done.
struct Account {
    Usage usage;
    // True if a kernel runs that does not end. Freeing anything would wait for it for ever, so
    // nothing is freed until the process ends.
    bool is_lost = false;
};

// The host's request to stop: a word of device memory that every warp looks at. It is written by a
// stream of its own while kernels run. (If all warps looked at a word of host memory, that would
// cost more than the guests do.)
class StopWord {
public:
    StopWord() = default;
    StopWord(const StopWord&) = delete;
    // Frees everything. Called before the context is released.
    void release() {
        if (stream_) driver_->stream_destroy(stream_);
        if (at_) driver_->memory_free(at_);
    }
    Result<void> create(const Driver* driver) {
        driver_ = driver;
        TRY(driver->check(driver->stream_create(&stream_, non_blocking_stream),
                          "creating a stream"));
        TRY(driver->check(driver->memory_alloc(&at_, 64), "allocating device memory"));
        return set(stop_none);
    }
    // Sets it to stop_none, unless it is known to be that.
    Result<void> clear() { return is_clear_ ? Result<void>() : set(stop_none); }
    Result<void> set(u32 stop) {  // stop_*
        is_clear_ = false;
        TRY(driver_->check(driver_->copy_to_device(at_, &stop, 4, stream_),
                           "writing the stop word"));
        TRY(driver_->check(driver_->stream_synchronize(stream_), "writing the stop word"));
        is_clear_ = stop == stop_none;
        return {};
    }
    // Reads device memory while a kernel runs.
    Result<void> peek(DevicePointer from, void* to, usize size) {
        TRY(driver_->check(driver_->copy_to_host(to, from, size, stream_),
                           "reading a kernel's counters"));
        return driver_->check(driver_->stream_synchronize(stream_), "reading a kernel's counters");
    }
    DevicePointer at() const { return at_; }

private:
    const Driver* driver_ = nullptr;
    DriverHandle stream_ = nullptr;
    DevicePointer at_ = 0;
    bool is_clear_ = false;
};

class CudaDevice;

class CudaSystem final : public SystemMemory {
public:
    CudaSystem(CudaDevice& device, Buffer memory) : device_(device), memory_(std::move(memory)) {}
    u64 size() const override { return memory_.size(); }
    Result<void> write(u64 offset, std::span<const u8> bytes) override;
    Result<void> read(u64 offset, std::span<u8> bytes) override;
    // Called while the device is parked, so nothing is written meanwhile.
    Result<std::vector<u64>> load_shared(u64 offset, u64 stride, u64 count) override;
    Result<void> store_shared(u64 offset, u64 value) override;
    Result<TakenMemory> take(u64 size) override;
    DevicePointer at() const { return memory_.at(); }

private:
    CudaDevice& device_;
    Buffer memory_;
};

// Returns the device address of system memory, or 0 if there is none.
inline DevicePointer address_of(const SystemMemory* system) {
    return system ? static_cast<const CudaSystem*>(system)->at() : 0;
}

// Host memory in which device code says which of its checks failed. It can be read after the kernel
// has died.
class CheckMemory {
public:
    CheckMemory() = default;
    CheckMemory(const CheckMemory&) = delete;
    void release() {
        if (record_) driver_->host_free(const_cast<CheckRecord*>(record_));
    }
    Result<void> create(const Driver* driver) {
        driver_ = driver;
        void* memory = nullptr;
        constexpr unsigned device_mapped = 2;
        TRY(driver->check(driver->host_alloc(&memory, sizeof(CheckRecord), device_mapped),
                          "allocating host memory"));
        std::memset(memory, 0, sizeof(CheckRecord));
        record_ = static_cast<CheckRecord*>(memory);
        return driver->check(driver->host_device_pointer(&at_, memory, 0), "mapping host memory");
    }
    DevicePointer at() const { return at_; }
    // Returns the check that failed, if that is why a kernel ended.
    std::optional<Error> failure(const std::string& device) const {
        if (!record_ || !record_->failed) return std::nullopt;
        std::string file;
        for (u32 i = 0; i < sizeof record_->file && record_->file[i]; i++) file += record_->file[i];
        return Error{
            format("%s: internal error at %s:%u (process %u, %u; block %u, lane %u); "
                   "please report it",
                   device.c_str(), file.c_str(), record_->line, record_->process, record_->detail,
                   record_->block, record_->lane)};
    }

private:
    const Driver* driver_ = nullptr;
    volatile CheckRecord* record_ = nullptr;
    DevicePointer at_ = 0;
};

struct Kernel {
    DriverHandle module = nullptr, function = nullptr;
    u32 local_bytes = 0, blocks_per_multiprocessor = 0, registers = 0;
    u32 capability = 0;  // that its machine code is for
};

// Keeps what was assembled while a device is open, for when no cache does: what one thread
// assembles beside a run is there for the thread that loads it. Any thread may use it.
class Assemblies {
public:
    static constexpr u64 most_bytes = u64{256} << 20;  // with their keys; then the oldest go

    // True once the driver has refused machine code that the binary carries.
    std::atomic<bool> refuses_shipped = false;
    std::atomic<u64> assembled = 0;  // times that the driver assembled something

    std::optional<std::vector<u8>> find(std::string_view key);
    void keep(std::string key, std::vector<u8> cubin);

    // While it exists, nobody else makes what `key` names. The bytes of `key` outlive it.
    class KeyLock {
    public:
        KeyLock(Assemblies& all, std::string_view key);
        KeyLock(const KeyLock&) = delete;
        ~KeyLock();

    private:
        Assemblies& all_;
        std::string_view key_;
    };

private:
    struct Entry {
        std::string key;
        std::vector<u8> cubin;
        u64 size() const { return key.size() + cubin.size(); }
    };
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Entry> entries_;  // the oldest first
    u64 bytes_ = 0;              // of them
    std::set<std::string_view> being_made_;
};

// The GPU that code is assembled for.
struct Chip {
    const Driver* driver;
    int device;
    u32 capability;
    std::shared_ptr<Assemblies> assemblies;

    // Calls `f` with the device's context, which is current meanwhile. Any thread may call it.
    // Does nothing if there is no context.
    template <class F>
    void with_context(F f) const {
        DriverHandle context = nullptr;
        if (driver->context_retain(&context, device) != 0) return;
        (void)guarded([&]() -> Result<void> {
            if (driver->context_set(context) == 0) f(context);
            return {};
        });
        driver->context_release(device);
    }
};

std::string kernel_id(const RuntimeKernel& kernel);
// Returns the kernel that runs images for a target.
const RuntimeKernel& native_source(codegen::Target target, u32 capability);
// Returns the machine code of a kernel that the binary carries for a chip, unless the driver is too
// old for it or has refused such code.
std::optional<PackedBytes> shipped(const Chip& chip, const RuntimeKernel& kernel);
// Returns the compute capability that a kernel's machine code will be for.
u32 capability_of(const Chip& chip, const RuntimeKernel& kernel);
struct AssembleOptions {
    bool is_optimised = true;
    bool is_alone = true;  // then it may take all cores
    u32 capability = 0;    // that it is assembled for; 0: the chip's
};
// Assembles and links the texts of `ptx`, each of which ends with a NUL, or finds the result of an
// earlier time. `id` tells them from all others. Any thread that has a context may call it.
Result<std::vector<u8>> assemble(const Chip& chip, const std::string& id,
                                 std::span<const std::string_view> ptx, u32 max_registers,
                                 AssembleOptions options = {});
Result<std::vector<u8>> assemble(const Chip& chip, const RuntimeKernel& kernel);
// Has the driver assemble a kernel that the binary does not carry as machine code for this chip, so
// that loading it does not take long. A failure is reported when the kernel is loaded.
void assemble_beforehand(const Chip& chip, const RuntimeKernel& kernel);

// ---- the device --------------------------------------------------------------------

class CudaDevice final : public Device, public KernelDevice {
public:
    CudaDevice(const Driver* driver, int device) : driver_(*driver), device_(device) {}
    ~CudaDevice() override {
        if (!context_ || account_.is_lost) return;
        driver_.context_set(context_);
        stop_.release();
        checks_.release();
        if (stream_) driver_.stream_destroy(stream_);
        for (auto& [name, kernel] : kernels_) driver_.module_unload(kernel.module);
        driver_.context_release(device_);
    }

    Result<void> open();

    const DeviceInfo& info() const override { return info_; }
    const Usage& usage() const override { return account_.usage; }
    std::map<std::string, u64> driver_calls() const override { return driver_.calls(); }
    KernelCounts kernel_counts() const override {
        KernelCounts counts = kernel_counts_;
        counts.assembled = assemblies_->assembled;
        return counts;
    }
    Result<void> prepare(Mode mode) override {
        TRY(check(driver_.context_set(context_), "using the context"));
        switch (mode) {
            case Mode::space: TRY(solo_kernel(false)); break;
            case Mode::burst: TRY(gang_kernel(false, Layout::linear)); break;
            case Mode::machine: TRY(native_kernel(codegen::Target::cuda_machine)); break;
        }
        return {};
    }
    std::function<void()> kernel_assembler(Mode mode, Layout layout) const override;
    Result<std::unique_ptr<SystemMemory>> make_system(u64 size) override;
    Result<std::unique_ptr<Space>> make_space(const Sizes& sizes) override;
    codegen::Target target(Mode mode, Layout layout) const override {
        if (mode == Mode::space) return codegen::Target::cuda_space;
        if (mode == Mode::machine) return codegen::Target::cuda_machine;
        return layout == Layout::linear ? codegen::Target::cuda_burst
                                        : codegen::Target::cuda_interleaved;
    }
    Result<std::shared_ptr<const NativeCode>> load_native(const codegen::Image& image,
                                                          codegen::Target target,
                                                          const NativeCode* loaded) override;
    bool loads_beside_machine() const override { return false; }
    bool takes_late_native() const override { return true; }
    Assembler assembler(codegen::Target target) const override;
    Result<MachineShape> machine_shape() override;
    Result<std::unique_ptr<MachineRunner>> make_machine(SystemMemory& system,
                                                        SystemMemory& pages) override;
    Result<BurstOutcome> run_burst(std::span<const Burst> parts,
                                   const RunControl& control) override;

    Result<void> check(cuda::Status status, const char* what) const {
        return driver_.check(status, what);
    }

    // ---- memory --------------------------------------------------------------------

    Result<Buffer> allocate(u64 size, const char* what) override {
        if (size == 0) size = 16;
        DevicePointer at = 0;
        cuda::Status status = driver_.memory_alloc(&at, size);
        if (status == cuda::out_of_memory) {
            usize free = 0, total = 0;
            driver_.memory_info(&free, &total);
            return Error{format(
                "not enough device memory for %s: %llu MiB asked, %zu of %zu MiB free; fewer "
                "--instances or a smaller --memory or --stack asks for less",
                what, (unsigned long long)(size >> 20), free >> 20, total >> 20)};
        }
        TRY(check(status, "allocating device memory"));
        account_.usage.bytes += size;
        account_.usage.peak_bytes = std::max(account_.usage.peak_bytes, account_.usage.bytes);
        return Buffer(this, at, size);
    }
    void release(DevicePointer at, u64 size) override {
        if (account_.is_lost) return;
        driver_.memory_free(at);
        account_.usage.bytes -= size;
    }
    Result<void> clear(DevicePointer at, u64 size) override {
        return check(driver_.fill_bytes(at, 0, size, stream_), "clearing device memory");
    }
    Result<void> copy_in(DevicePointer to, const void* from, u64 size) override {
        if (size == 0) return {};
        account_.usage.bytes_in += size;
        return check(driver_.copy_to_device(to, from, size, stream_), "copying to the device");
    }
    Result<void> copy_out(void* to, DevicePointer from, u64 size) override {
        if (size == 0) return {};
        account_.usage.bytes_out += size;
        TRY(check(driver_.copy_to_host(to, from, size, stream_), "copying from the device"));
        return check(driver_.stream_synchronize(stream_), "copying from the device");
    }
    Result<void> synchronize(const char* what) override {
        return check(driver_.stream_synchronize(stream_), what);
    }
    Result<void> peek(void* to, DevicePointer from, u64 size) override {
        return stop_.peek(from, to, size);
    }
    DevicePointer address_of(const SystemMemory* system) const override {
        return device::address_of(system);
    }
    Result<u64> free_memory() override {
        usize free = 0, total = 0;
        TRY(check(driver_.memory_info(&free, &total), "asking for free memory"));
        return u64(free);
    }

    // ---- kernels -------------------------------------------------------------------

    Result<const Kernel*> kernel(const RuntimeKernel& source);
    Result<void> load_kernel(Kernel& kernel, const RuntimeKernel& source);
    // Loads machine code that the binary carries, or else that the driver makes.
    Result<void> load_module(Kernel& kernel, const RuntimeKernel& source);
    Result<u32> registers_of(DriverHandle function) const {
        constexpr int attribute_registers = 4;
        int count = 0;
        TRY(check(driver_.function_attribute(&count, attribute_registers, function),
                  "asking for registers"));
        return u32(count);
    }
    // Returns the kernel that runs images for a target.
    Result<const Kernel*> native_kernel(codegen::Target target);
    // These make parameters of such a kernel: where code can be entered natively, and the rest.
    Result<UploadedEntries> upload_entries(std::span<const NativePart> parts,
                                           u64 code_words) override;
    NativeParams native_params(Tier tier) const override;
    u32 native_stack_bytes(codegen::Target target) const;
    Result<const Kernel*> solo_kernel(bool is_deep);
    Result<const Kernel*> gang_kernel(bool is_deep, Layout layout);
    Result<BurstKernel> burst_kernel(const BurstKernelKind& kind) override;

    // ---- launch and poll -----------------------------------------------------------

    Result<void> launch_burst(const BurstKernel& kernel, u32 warps, BurstParams params,
                              const RunControl& control) override;
    Result<void> launch(const Kernel& kernel, u32 blocks, u32 lanes, u32 shared_bytes,
                        void* params) {
        void* arguments[] = {params};
        account_.usage.launches++;
        return check(driver_.launch(kernel.function, blocks, 1, 1, lanes, 1, 1, shared_bytes,
                                    stream_, arguments, nullptr),
                     "launching a kernel");
    }
    // Waits until the stream is empty. A kernel that has no count of waiting lanes is not parked.
    Result<std::optional<double>> wait(const RunControl& control, DevicePointer waiting = 0,
                                       const std::function<Result<void>()>& look = {}) override;
    // Sets the stop word before a launch, so that a short kernel does not miss a request that was
    // made before, and clears one that was for an earlier launch.
    Result<void> pass_on_stop(const RunControl& control) {
        return control.wants_stop() ? stop_.set(stop_end) : stop_.clear();
    }
    // Returns how long so many cycles of a multiprocessor take, or 0 if the driver does not say.
    double seconds_of(u64 cycles) const override {
        return clock_khz_ == 0 ? 0 : double(cycles) / (clock_khz_ * 1e3);
    }
    StopWord& stop_word() { return stop_; }
    const Driver& driver() const { return driver_; }
    Chip chip() const { return {&driver_, device_, info_.capability, assemblies_}; }
    DriverHandle context() const { return context_; }
    // Returns an Error if a kernel that has ended failed.
    Result<void> check_end(cuda::Status status, const char* what) const {
        if (std::optional<Error> failure = checks_.failure(info_.id)) return *failure;
        return check(status, what);
    }
    void count_launch() { account_.usage.launches++; }
    // Leaves everything to the end of the process (Account::is_lost).
    void give_up() { account_.is_lost = true; }

private:
    Result<std::optional<double>> await_end(const RunControl& control, DevicePointer waiting,
                                            const std::function<Result<void>()>& look,
                                            bool& has_ended);
    void abandon_launch();
    // Parts of load_native().
    Result<std::vector<DevicePointer>> find_enters(DriverHandle kernel, usize pieces);
    Result<void> connect(std::span<const DriverHandle> modules);

    const Driver& driver_;
    int device_;
    DriverHandle context_ = nullptr, stream_ = nullptr;
    DeviceInfo info_;
    u32 clock_khz_ = 0;
    Account account_;
    StopWord stop_;
    CheckMemory checks_;
    std::map<std::string, Kernel> kernels_;
    KernelCounts kernel_counts_;  // without those assembled
    const std::shared_ptr<Assemblies> assemblies_ = std::make_shared<Assemblies>();
};

// An image that has been loaded beside the kernels.
class CudaNativeCode final : public NativeCode {
public:
    // The device's account outlives it.
    CudaNativeCode(const Driver& driver, const Account& account)
        : driver_(driver), account_(account) {}
    ~CudaNativeCode() override {
        if (account_.is_lost) return;
        for (DriverHandle module : modules) driver_.module_unload(module);
    }
    struct Entry {
        u32 position;  // relative to the module's code
        u32 number;
        DevicePointer enter;
    };
    std::vector<DriverHandle> modules;  // one for each group of the image
    std::vector<Entry> entries;

private:
    const Driver& driver_;
    const Account& account_;
};

// Makes the runner of a machine that runs `kernel` in blocks of block_lanes. System memory and page
// memory are given by their addresses.
Result<std::unique_ptr<MachineRunner>> make_cuda_machine(CudaDevice& device, const Kernel& kernel,
                                                         DevicePointer system, DevicePointer pages);

}  // namespace gpurun::device
