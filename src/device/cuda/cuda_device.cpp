// Opens NVIDIA GPUs, loads and launches kernels, and runs processes with a warp to themselves.
#include <algorithm>
#include <thread>

#include "base/check.h"
#include "base/phases.h"
#include "base/threads.h"
#include "device/cuda/cuda_device.h"
#include "device/devices.h"

namespace gpurun::device {
namespace {

Result<DeviceInfo> read_info(const Driver& driver, int device) {
    DeviceInfo info;
    info.id = format("cuda:%d", device);
    char name[256] = {};
    TRY(driver.check(driver.device_name(name, sizeof name - 1, device),
                     "asking for the device's name"));
    info.name = name;
    info.driver = format("%d.%d", driver.version / 1000, driver.version % 1000 / 10);
    auto attribute = [&](cuda::Attribute which) -> Result<u32> {
        int value = 0;
        TRY(driver.check(driver.device_attribute(&value, which, device),
                         "asking for the device's attributes"));
        return u32(value);
    };
    info.capability = TRY(attribute(cuda::attribute_capability_major)) * 10 +
                      TRY(attribute(cuda::attribute_capability_minor));
    info.multiprocessors = TRY(attribute(cuda::attribute_multiprocessors));
    info.lanes = info.multiprocessors * TRY(attribute(cuda::attribute_lanes_per_multiprocessor));
    info.has_watchdog = TRY(attribute(cuda::attribute_kernel_timeout)) != 0;
    usize total = 0;
    TRY(driver.check(driver.device_memory(&total, device), "asking for the device's memory"));
    info.memory_total = info.memory_free = total;
    info.warp_lanes = warp_lanes;
    info.block_lanes = block_lanes;
    info.has_layouts = true;
    return info;
}

}  // namespace

// ---- the device --------------------------------------------------------------------

Result<void> CudaDevice::open() {
    PhaseTimer timer(Phase::context);
    info_ = TRY(read_info(driver_, device_));
    if (info_.capability < 75)
        return Error{format("%s has compute capability %u.%u; 7.5 or later is needed",
                            info_.name.c_str(), info_.capability / 10, info_.capability % 10)};
    TRY(check(driver_.context_retain(&context_, device_), "creating a context"));
    TRY(check(driver_.context_set(context_), "using the context"));
    TRY(check(driver_.stream_create(&stream_, non_blocking_stream), "creating a stream"));
    TRY(stop_.create(&driver_));
    TRY(checks_.create(&driver_));
    usize free = 0, total = 0;
    TRY(check(driver_.memory_info(&free, &total), "asking for free memory"));
    info_.memory_free = free;
    int clock = 0;  // not every driver knows it
    if (driver_.device_attribute(&clock, cuda::attribute_clock_khz, device_) == 0)
        clock_khz_ = u32(std::max(0, clock));
    return {};
}

Result<const Kernel*> CudaDevice::kernel(const RuntimeKernel& source) {
    const std::string id = kernel_id(source);
    if (auto found = kernels_.find(id); found != kernels_.end()) return &found->second;
    PhaseTimer timer(Phase::kernels);
    // The kernel is removed again unless everything about it becomes known.
    Kernel& kernel = kernels_[id];
    Result<void> loaded = guarded([&] { return load_kernel(kernel, source); });
    kernel_counts_.loaded += bool(loaded);
    if (loaded) return &kernel;
    if (kernel.module) driver_.module_unload(kernel.module);
    kernels_.erase(id);
    return std::move(loaded).error();
}

Result<void> CudaDevice::load_module(Kernel& kernel, const RuntimeKernel& source) {
    if (std::optional<PackedBytes> packed = shipped(chip(), source)) {
        kernel.capability = header_of(*packed).chip;
        const cuda::Status status = driver_.module_load(&kernel.module, unpack(*packed).data());
        kernel_counts_.shipped += status == 0;
        if (status == 0 || status == cuda::out_of_memory)
            return check(status, "loading the runtime");
        kernel_counts_.refused++;
        assemblies_->refuses_shipped = true;
    }
    kernel.capability = info_.capability;
    const std::vector<u8> cubin = TRY(assemble(chip(), source));
    return check(driver_.module_load(&kernel.module, cubin.data()), "loading the runtime");
}

Result<void> CudaDevice::load_kernel(Kernel& kernel, const RuntimeKernel& source) {
    TRY(load_module(kernel, source));
    TRY(check(driver_.module_function(&kernel.function, kernel.module, source.name),
              "finding a kernel"));
    DevicePointer record = 0, record_at = checks_.at();
    usize size = 0;
    TRY(check(driver_.module_global(&record, &size, kernel.module, "gpurun_check_record"),
              "finding a kernel's variable"));
    TRY(copy_in(record, &record_at, sizeof record_at));
    TRY(check(driver_.stream_synchronize(stream_), "writing a kernel's variable"));
    constexpr int attribute_local_bytes = 3;
    int blocks = 0, local_bytes = 0;
    kernel.registers = TRY(registers_of(kernel.function));
    TRY(check(driver_.function_attribute(&local_bytes, attribute_local_bytes, kernel.function),
              "asking for local memory"));
    TRY(check(driver_.occupancy(&blocks, kernel.function, block_lanes, 0),
              "asking for the occupancy"));
    kernel.local_bytes = u32(local_bytes);
    kernel.blocks_per_multiprocessor = u32(std::max(1, blocks));
    return {};
}

Result<const Kernel*> CudaDevice::solo_kernel(bool is_deep) {
    return kernel(kernels::solo(is_deep));
}
Result<const Kernel*> CudaDevice::gang_kernel(bool is_deep, Layout layout) {
    return kernel(kernels::gang(info_.capability, is_deep, layout));
}

std::function<void()> CudaDevice::kernel_assembler(Mode mode, Layout layout) const {
    const RuntimeKernel* source = &kernels::resident(info_.capability);
    if (mode == Mode::space) source = &kernels::solo(false);
    if (mode == Mode::burst) source = &kernels::gang(info_.capability, false, layout);
    if (kernels_.contains(kernel_id(*source)) || shipped(chip(), *source)) return {};
    return [chip = chip(), source] {
        chip.with_context([&](DriverHandle) { assemble_beforehand(chip, *source); });
    };
}

Result<std::optional<double>> CudaDevice::wait(const RunControl& control, DevicePointer waiting,
                                               const std::function<Result<void>()>& look) {
    bool has_ended = false;
    auto waited = guarded([&] { return await_end(control, waiting, look, has_ended); });
    if (!has_ended) abandon_launch();
    return waited;
}

// Ends a kernel whose results nobody wants. Its memory is freed next, which would wait for it for
// ever.
void CudaDevice::abandon_launch() {
    using namespace std::chrono;
    constexpr seconds patience(5);
    (void)guarded([&] { return stop_.set(stop_end); });
    const auto end = steady_clock::now() + patience;
    while (driver_.stream_query(stream_) == cuda::not_ready) {
        if (steady_clock::now() >= end) return give_up();
        std::this_thread::sleep_for(milliseconds(1));
    }
}

Result<std::optional<double>> CudaDevice::await_end(const RunControl& control,
                                                    DevicePointer waiting,
                                                    const std::function<Result<void>()>& look,
                                                    bool& has_ended) {
    using namespace std::chrono;
    constexpr milliseconds patience(20);  // with lanes that wait while others run
    auto start = steady_clock::now();
    std::optional<steady_clock::time_point> stopped;
    bool is_parking = false;
    for (auto next_peek = start + patience;;) {
        cuda::Status status = driver_.stream_query(stream_);
        auto now = steady_clock::now();
        if (status != cuda::not_ready) {
            has_ended = true;
            TRY(check_end(status, "running a kernel"));
            if (stopped || is_parking || control.wants_stop()) TRY(stop_.set(stop_none));
            if (!stopped) return std::optional<double>();
            return std::optional(duration<double>(now - *stopped).count());
        }
        if (!stopped && control.wants_stop()) {
            stopped = now;
            TRY(stop_.set(stop_end));
        }
        if (waiting != 0 && !stopped && !is_parking && now >= next_peek) {
            u64 count = 0;
            TRY(stop_.peek(waiting, &count, sizeof count));
            is_parking = count != 0 || (control.slice.count() > 0 && now - start >= control.slice);
            if (is_parking) TRY(stop_.set(stop_park));
            if (look) TRY(look());
            next_peek = now + patience;
        }
        // Spins at first, for short runs; sleeps later, so that long ones take no core.
        auto waited = now - start;
        if (waited > milliseconds(2))
            std::this_thread::sleep_for(std::min<nanoseconds>(waited / 20, milliseconds(5)));
    }
}

// ---- a process with a warp to itself -----------------------------------------------

namespace {

class CudaSpace final : public Space {
public:
    CudaSpace(CudaDevice& device, const Kernel& kernel, Buffer code, Buffer words, Buffer bytes,
              const Sizes& sizes)
        : device_(device),
          kernel_(kernel),
          code_(std::move(code)),
          words_(std::move(words)),
          bytes_(std::move(bytes)),
          system_(address_of(sizes.system)),
          code_words_(sizes.code_words),
          tier_(sizes.tier),
          is_watched_(sizes.is_watched) {}

    Result<void> use_native(const NativePart& part) override {
        native_ = TRY(device_.native_kernel(codegen::Target::cuda_space));
        native_parts_.push_back(part);
        entries_ = TRY(device_.upload_entries(native_parts_, code_words_));
        return {};
    }
    Activity activity(u32) override { return {}; }
    Result<void> write_code(u32 position, std::span<const u64> words) override {
        return device_.copy_in(code_.at() + u64(position) * 8, words.data(), words.size_bytes());
    }
    Result<void> read_code(u32 position, std::span<u64> words) override {
        return device_.copy_out(words.data(), code_.at() + u64(position) * 8, words.size_bytes());
    }
    Result<void> write_words(u32 index, std::span<const u32> words) override {
        return device_.copy_in(words_.at() + u64(index) * 4, words.data(), words.size_bytes());
    }
    Result<void> read_words(u32 index, std::span<u32> words) override {
        return device_.copy_out(words.data(), words_.at() + u64(index) * 4, words.size_bytes());
    }
    Result<void> write_bytes(u64 offset, std::span<const u8> bytes) override {
        return device_.copy_in(bytes_.at() + offset, bytes.data(), bytes.size_bytes());
    }
    Result<void> read_bytes(u64 offset, std::span<u8> bytes) override {
        return device_.copy_out(bytes.data(), bytes_.at() + offset, bytes.size_bytes());
    }
    Result<ThreadState> run(u32 thread, const RunControl& control) override {
        return launch(thread, 0, control);
    }
    Result<ThreadState> step(u32 thread, u64 count) override {
        return launch(thread, u32(std::min<u64>(count, ~u32{0})), {});
    }

private:
    Result<ThreadState> launch(u32 thread, u32 steps, const RunControl& control) {
        PhaseTimer timer(Phase::run);
        if (native_ && steps == 0)
            return launch(*native_, task_board_bytes, thread, steps, control);
        ThreadState state =
            TRY(launch(kernel_, task_board_bytes + stack_window * 4, thread, steps, control));
        if (state != ThreadState::outgrown) return state;
        const Kernel* deep = TRY(device_.solo_kernel(true));
        return launch(*deep, task_board_bytes, thread, steps, control);
    }
    Result<ThreadState> launch(const Kernel& kernel, u32 shared_bytes, u32 thread, u32 steps,
                               const RunControl& control) {
        SoloParams params{code_.at(),
                          words_.at(),
                          bytes_.at(),
                          system_,
                          device_.stop_word().at(),
                          thread,
                          steps,
                          is_watched_,
                          u32(control.slice.count()),
                          entries_.addresses,
                          device_.native_params(tier_)};
        TRY(device_.pass_on_stop(control));
        TRY(device_.launch(kernel, 1, warp_lanes, shared_bytes, &params));
        TRY(device_.wait(control));
        u32 state = 0;
        TRY(read_words(thread + thread_state, {&state, 1}));
        return ThreadState(state);
    }

    CudaDevice& device_;
    const Kernel& kernel_;
    Buffer code_, words_, bytes_;
    UploadedEntries entries_;
    DevicePointer system_;
    u64 code_words_;
    device::Tier tier_;
    const Kernel* native_ = nullptr;
    std::vector<NativePart> native_parts_;
    bool is_watched_;
};

}  // namespace

Result<void> CudaSystem::write(u64 offset, std::span<const u8> bytes) {
    return device_.copy_in(memory_.at() + offset, bytes.data(), bytes.size());
}
Result<void> CudaSystem::read(u64 offset, std::span<u8> bytes) {
    return device_.copy_out(bytes.data(), memory_.at() + offset, bytes.size());
}

Result<std::vector<u64>> CudaSystem::load_shared(u64 offset, u64 stride, u64 count) {
    std::vector<u64> numbers(count);
    if (count == 0) return numbers;
    std::vector<u8> bytes((count - 1) * stride + sizeof(u64));
    TRY(read(offset, bytes));
    for (u64 i = 0; i < count; i++)
        std::memcpy(&numbers[i], bytes.data() + i * stride, sizeof(u64));
    return numbers;
}
Result<void> CudaSystem::store_shared(u64 offset, u64 value) {
    return write(offset, {reinterpret_cast<const u8*>(&value), sizeof value});
}

Result<TakenMemory> CudaSystem::take(u64 size) {
    // The memory is not zeroed, since all of it is written.
    std::shared_ptr<u8[]> copy(new (std::nothrow) u8[size]);
    if (!copy)
        return Error{format("there is no memory for the %llu MiB that processes left",
                            (unsigned long long)(size >> 20))};
    TRY(read(0, {copy.get(), size}));
    memory_ = {};
    return TakenMemory{{copy.get(), size}, copy};
}

Result<std::unique_ptr<SystemMemory>> CudaDevice::make_system(u64 size) {
    PhaseTimer timer(Phase::prepare);
    Buffer memory = TRY(allocate_zeroed(size, "files and streams"));
    return std::unique_ptr<SystemMemory>(new CudaSystem(*this, std::move(memory)));
}

Result<std::unique_ptr<Space>> CudaDevice::make_space(const Sizes& sizes) {
    const Kernel* solo = TRY(solo_kernel(false));
    PhaseTimer timer(Phase::prepare);
    Buffer code = TRY(allocate_zeroed(sizes.code_words * 8, "code"));
    Buffer words = TRY(allocate_zeroed(sizes.words * 4, "stack and heap"));
    Buffer bytes = TRY(allocate_zeroed(sizes.bytes, "memories"));
    return std::unique_ptr<Space>(
        new CudaSpace(*this, *solo, std::move(code), std::move(words), std::move(bytes), sizes));
}

Result<std::vector<DeviceInfo>> cuda_infos() {
    const Driver* driver = TRY(cuda::open_driver());
    int count = 0;
    TRY(driver->check(driver->device_count(&count), "counting devices"));
    std::vector<DeviceInfo> infos;
    for (int i = 0; i < count; i++) infos.push_back(TRY(read_info(*driver, i)));
    return infos;
}

Result<std::unique_ptr<Device>> make_cuda_device(u32 ordinal) {
    if (!kernels::are_built()) return Error{"this build has no kernels for GPUs; use --device cpu"};
    const Driver* driver = TRY(cuda::open_driver());
    int count = 0, device = 0;
    TRY(driver->check(driver->device_count(&count), "counting devices"));
    if (ordinal >= u32(count))
        return Error{format("there is no cuda:%u; the driver sees %d device%s", ordinal, count,
                            count == 1 ? "" : "s")};
    TRY(driver->check(driver->device_get(&device, int(ordinal)), "choosing a device"));
    auto made = std::make_unique<CudaDevice>(driver, device);
    TRY(made->open());
    return std::unique_ptr<Device>(std::move(made));
}

}  // namespace gpurun::device
