// NVIDIA GPUs: context, kernels, memory, launches. Plain allocations only, all freed.
#include <algorithm>
#include <cstring>
#include <map>
#include <thread>

#include "base/format.h"
#include "device/cuda_driver.h"
#include "device/devices.h"
#include "device/runtime_ptx.h"
#include "image/cache.h"

namespace gpurun::device {
namespace {

using cuda::DevicePointer;
using cuda::Driver;
using cuda::Handle;

constexpr unsigned non_blocking_stream = 1;
constexpr u32 block_lanes = 128;
constexpr u32 warp_lanes = 32;
// What a lane of a burst may have. Fewer make room for more warps, but on an H200 the spills cost
// more than those bring.
constexpr u32 gang_registers = 64;
constexpr u32 solo_registers = 255;

Result<DeviceInfo> read_info(const Driver& driver, int device) {
    DeviceInfo info;
    info.id = format("cuda:%d", device);
    char name[256] = {};
    TRY(driver.check(driver.device_name(name, sizeof name - 1, device),
                     "asking for the device's name"));
    info.name = name;
    info.driver = format("%d.%d", driver.version / 1000, driver.version % 1000 / 10);
    auto attribute = [&](cuda::Attribute which) {
        int value = 0;
        driver.device_attribute(&value, which, device);
        return u32(value);
    };
    info.capability = attribute(cuda::attribute_capability_major) * 10 +
                      attribute(cuda::attribute_capability_minor);
    info.multiprocessors = attribute(cuda::attribute_multiprocessors);
    info.lanes = info.multiprocessors * attribute(cuda::attribute_lanes_per_multiprocessor);
    info.has_watchdog = attribute(cuda::attribute_kernel_timeout) != 0;
    usize total = 0;
    TRY(driver.check(driver.device_memory(&total, device), "asking for the device's memory"));
    info.memory_total = info.memory_free = total;
    return info;
}

// ---- what is owned -----------------------------------------------------------------

class Buffer {
public:
    Buffer() = default;
    Buffer(const Driver* driver, DevicePointer at, u64 size)
        : driver_(driver), at_(at), size_(size) {}
    Buffer(Buffer&& other) noexcept
        : driver_(other.driver_),
          at_(std::exchange(other.at_, 0)),
          size_(std::exchange(other.size_, 0)) {}
    Buffer& operator=(Buffer&& other) noexcept {
        std::swap(driver_, other.driver_);
        std::swap(at_, other.at_);
        std::swap(size_, other.size_);
        return *this;
    }
    ~Buffer() {
        if (at_) driver_->memory_free(at_);
    }
    DevicePointer at() const { return at_; }
    u64 size() const { return size_; }

private:
    const Driver* driver_ = nullptr;
    DevicePointer at_ = 0;
    u64 size_ = 0;
};

// The host's request to stop: a word of device memory, which every warp looks at, written by
// way of a stream of its own while kernels run. (Words of host memory that all warps look at
// cost more than the guests do.)
class StopWord {
public:
    StopWord() = default;
    StopWord(const StopWord&) = delete;
    // Before the context goes.
    void release() {
        if (stream_) driver_->stream_destroy(stream_);
        if (at_) driver_->memory_free(at_);
    }
    Result<void> create(const Driver* driver) {
        driver_ = driver;
        TRY(driver->check(driver->stream_create(&stream_, non_blocking_stream),
                          "creating a stream"));
        TRY(driver->check(driver->memory_alloc(&at_, 64), "allocating device memory"));
        return set(false);
    }
    Result<void> set(bool stop) {
        static constexpr u32 values[] = {0, 1};
        TRY(driver_->check(driver_->copy_to_device(at_, &values[stop], 4, stream_),
                           "writing the stop word"));
        return driver_->check(driver_->stream_synchronize(stream_), "writing the stop word");
    }
    DevicePointer at() const { return at_; }

private:
    const Driver* driver_ = nullptr;
    Handle stream_ = nullptr;
    DevicePointer at_ = 0;
};

struct Kernel {
    Handle module = nullptr, function = nullptr;
    u32 registers = 0, local_bytes = 0, blocks_per_multiprocessor = 0;
};

// ---- the device --------------------------------------------------------------------

class CudaDevice final : public Device {
public:
    CudaDevice(const Driver* driver, int device) : driver_(*driver), device_(device) {}
    ~CudaDevice() override {
        if (!context_) return;
        driver_.context_set(context_);
        stop_.release();
        if (stream_) driver_.stream_destroy(stream_);
        for (auto& [name, kernel] : kernels_) driver_.module_unload(kernel.module);
        driver_.context_release(device_);
    }

    Result<void> open() {
        info_ = TRY(read_info(driver_, device_));
        if (info_.capability < 75)
            return Error{format("%s has compute capability %u.%u; 7.5 or later is needed",
                                info_.name.c_str(), info_.capability / 10, info_.capability % 10)};
        TRY(check(driver_.context_retain(&context_, device_), "creating a context"));
        TRY(check(driver_.context_set(context_), "using the context"));
        TRY(check(driver_.stream_create(&stream_, non_blocking_stream), "creating a stream"));
        TRY(stop_.create(&driver_));
        usize free = 0, total = 0;
        TRY(check(driver_.memory_info(&free, &total), "asking for free memory"));
        info_.memory_free = free;
        return {};
    }

    const DeviceInfo& info() const override { return info_; }
    Result<void> prepare(bool for_bursts) override {
        TRY(for_bursts ? gang_kernel(false) : solo_kernel());
        return {};
    }
    Result<std::unique_ptr<Space>> make_space(const Sizes& sizes) override;
    Result<BurstOutcome> run_burst(const Burst& burst, const RunControl& control) override;

    Result<void> check(cuda::Status status, const char* what) const {
        return driver_.check(status, what);
    }

    Result<Buffer> allocate(u64 size, const char* what) {
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
        return Buffer(&driver_, at, size);
    }
    Result<Buffer> allocate_zeroed(u64 size, const char* what) {
        Buffer buffer = TRY(allocate(size, what));
        TRY(check(driver_.fill_bytes(buffer.at(), 0, buffer.size(), stream_),
                  "clearing device memory"));
        return buffer;
    }
    template <class T>
    Result<Buffer> upload(std::span<const T> data, const char* what) {
        Buffer buffer = TRY(allocate(data.size_bytes(), what));
        TRY(copy_in(buffer.at(), data.data(), data.size_bytes()));
        return buffer;
    }
    Result<void> copy_in(DevicePointer to, const void* from, u64 size) {
        if (size == 0) return {};
        return check(driver_.copy_to_device(to, from, size, stream_), "copying to the device");
    }
    Result<void> copy_out(void* to, DevicePointer from, u64 size) {
        if (size == 0) return {};
        TRY(check(driver_.copy_to_host(to, from, size, stream_), "copying from the device"));
        return check(driver_.stream_synchronize(stream_), "copying from the device");
    }

    Result<const Kernel*> kernel(const char* name, std::string_view ptx, u32 max_registers);
    Result<const Kernel*> solo_kernel() {
        return kernel("gpurun_solo", solo_ptx(), solo_registers);
    }
    Result<const Kernel*> gang_kernel(bool is_deep) {
        return kernel("gpurun_burst", is_deep ? deep_ptx() : gang_ptx(info_.capability),
                      gang_registers);
    }
    Result<void> launch(const Kernel& kernel, u32 blocks, u32 lanes, void* params) {
        void* arguments[] = {params};
        return check(driver_.launch(kernel.function, blocks, 1, 1, lanes, 1, 1, 0, stream_,
                                    arguments, nullptr),
                     "launching a kernel");
    }
    // Until the stream is empty; passes a stop request on to the kernel.
    Result<void> wait(const RunControl& control);
    StopWord& stop_word() { return stop_; }

private:
    const Driver& driver_;
    int device_;
    Handle context_ = nullptr, stream_ = nullptr;
    DeviceInfo info_;
    StopWord stop_;
    std::map<std::string, Kernel> kernels_;
};

// Assembled by the driver once for a chip and a driver version, then kept in the cache.
Result<const Kernel*> CudaDevice::kernel(const char* name, std::string_view ptx,
                                         u32 max_registers) {
    std::string id =
        format("%s/%016llx/%u", name, (unsigned long long)image::hash(ptx), max_registers);
    if (auto found = kernels_.find(id); found != kernels_.end()) return &found->second;
    image::Cache cache(image::Cache::default_folder());
    std::string key =
        format("kernel %s driver %d chip %u", id.c_str(), driver_.version, info_.capability);
    std::optional<std::vector<u8>> cubin = cache.get(key);
    if (!cubin) {
        constexpr int jit_max_registers = 0, jit_log = 5, jit_log_size = 6, jit_split_compile = 33;
        char log[4096] = {};
        int options[] = {jit_max_registers, jit_log, jit_log_size, jit_split_compile};
        // The option to compile in parallel pieces came with driver 12.0; 0: as many as there are
        // cores.
        unsigned count = driver_.version >= 12000 ? 4 : 3;
        auto value = [](usize v) { return reinterpret_cast<void*>(v); };
        void* values[] = {value(max_registers), log, value(sizeof log - 1), value(0)};
        Handle link = nullptr;
        TRY(check(driver_.link_create(count, options, values, &link), "starting the assembler"));
        constexpr int input_ptx = 1;
        cuda::Status status = driver_.link_add(link, input_ptx, const_cast<char*>(ptx.data()),
                                               ptx.size() + 1, name, 0, nullptr, nullptr);
        void* image = nullptr;
        usize size = 0;
        if (status == 0) status = driver_.link_complete(link, &image, &size);
        if (status == 0) {
            const u8* bytes = static_cast<const u8*>(image);
            cubin.emplace(bytes, bytes + size);
        }
        driver_.link_destroy(link);
        if (status != 0) {
            Error error = std::move(check(status, "assembling the runtime")).error();
            if (log[0]) error.message += format(": %s", log);
            return error;
        }
        cache.put(key, *cubin);
    }
    Kernel made;
    TRY(check(driver_.module_load(&made.module, cubin->data()), "loading the runtime"));
    Kernel& kernel = kernels_[id] = made;
    TRY(check(driver_.module_function(&kernel.function, kernel.module, name), "finding a kernel"));
    constexpr int attribute_local_bytes = 3, attribute_registers = 4;
    int registers = 0, blocks = 0, local_bytes = 0;
    TRY(check(driver_.function_attribute(&local_bytes, attribute_local_bytes, kernel.function),
              "asking for local memory"));
    TRY(check(driver_.function_attribute(&registers, attribute_registers, kernel.function),
              "asking for registers"));
    TRY(check(driver_.occupancy(&blocks, kernel.function, block_lanes, 0),
              "asking for the occupancy"));
    kernel.registers = u32(registers);
    kernel.local_bytes = u32(local_bytes);
    kernel.blocks_per_multiprocessor = u32(std::max(1, blocks));
    return &kernel;
}

Result<void> CudaDevice::wait(const RunControl& control) {
    using namespace std::chrono;
    auto start = steady_clock::now();
    bool is_stopping = false;
    for (;;) {
        cuda::Status status = driver_.stream_query(stream_);
        if (status != cuda::not_ready) {
            TRY(check(status, "running a kernel"));
            return is_stopping ? stop_.set(false) : Result<void>();
        }
        if (!is_stopping && control.wants_stop()) {
            TRY(stop_.set(true));
            is_stopping = true;
        }
        // Short runs are waited for closely, long ones without taking a core.
        auto waited = steady_clock::now() - start;
        if (waited > milliseconds(2))
            std::this_thread::sleep_for(std::min<nanoseconds>(waited / 20, milliseconds(5)));
    }
}

// ---- a process with a warp to itself -----------------------------------------------

class CudaSpace final : public Space {
public:
    CudaSpace(CudaDevice& device, const Kernel& kernel, Buffer code, Buffer words, Buffer bytes)
        : device_(device),
          kernel_(kernel),
          code_(std::move(code)),
          words_(std::move(words)),
          bytes_(std::move(bytes)) {}

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
        SoloParams params{code_.at(), words_.at(), bytes_.at(), device_.stop_word().at(),
                          thread,     steps};
        TRY(device_.launch(kernel_, 1, warp_lanes, &params));
        TRY(device_.wait(control));
        u32 state = 0;
        TRY(read_words(thread + thread_state, {&state, 1}));
        return ThreadState(state);
    }

    CudaDevice& device_;
    const Kernel& kernel_;
    Buffer code_, words_, bytes_;
};

Result<std::unique_ptr<Space>> CudaDevice::make_space(const Sizes& sizes) {
    const Kernel* solo = TRY(solo_kernel());
    Buffer code = TRY(allocate_zeroed(sizes.code_words * 8, "code"));
    Buffer words = TRY(allocate_zeroed(sizes.words * 4, "stack and heap"));
    Buffer bytes = TRY(allocate_zeroed(sizes.bytes, "memories"));
    return std::unique_ptr<Space>(
        new CudaSpace(*this, *solo, std::move(code), std::move(words), std::move(bytes)));
}

// ---- bursts ------------------------------------------------------------------------

Result<BurstOutcome> CudaDevice::run_burst(const Burst& burst, const RunControl& control) {
    u32 stack_slots = burst.words[burst.thread + thread_stack_end] - burst.stack;
    const Kernel* gang = TRY(gang_kernel(stack_slots > gang_stack_slots));
    BurstOutcome outcome;
    outcome.stride = result_first + burst.result_words;

    Buffer code = TRY(upload(std::span<const u64>(burst.code), "code"));
    Buffer template_words = TRY(upload(std::span<const u32>(burst.words), "the template"));
    std::vector<u8> padded = burst.bytes;
    padded.resize((padded.size() + 7) & ~usize{7});
    Buffer template_bytes = TRY(upload(std::span<const u8>(padded), "the template"));
    Buffer arguments = TRY(upload(std::span<const u32>(burst.arguments), "arguments"));
    Buffer results = TRY(allocate_zeroed(u64(burst.processes) * outcome.stride * 4, "results"));
    Buffer next = TRY(allocate_zeroed(4, "a counter"));

    // As many slots as lanes can be resident, if the memory is there for them.
    usize free = 0, total = 0;
    TRY(check(driver_.memory_info(&free, &total), "asking for free memory"));
    u64 per_warp = (u64(burst.words.size()) * 4 + burst.bytes_per_process) * warp_lanes;
    u64 resident =
        u64(gang->blocks_per_multiprocessor) * info_.multiprocessors * (block_lanes / warp_lanes);
    // The driver takes local memory for all lanes that could ever be resident.
    u64 local = u64(gang->local_bytes) * info_.lanes;
    u64 fitting = u64(double(free - std::min<u64>(free, local)) * 0.95) / per_warp;
    if (fitting == 0)
        return Error{format(
            "not enough device memory: 32 processes of %llu KiB each take %llu MiB, %zu of %zu MiB "
            "are free; a smaller --memory or --stack asks for less",
            (unsigned long long)(per_warp / warp_lanes >> 10), (unsigned long long)(per_warp >> 20),
            free >> 20, total >> 20)};
    u64 warps = std::min({resident, fitting, u64(burst.processes)});
    // Few processes: a warp each, so that none waits for another.
    u32 lanes = u32(std::min<u64>(warp_lanes, (burst.processes + warps - 1) / warps));
    warps = std::min<u64>(warps, (burst.processes + lanes - 1) / lanes);
    Buffer words =
        TRY(allocate_zeroed(warps * warp_lanes * burst.words.size() * 4, "process words"));
    Buffer bytes =
        TRY(allocate_zeroed(warps * warp_lanes * burst.bytes_per_process, "process memories"));
    outcome.slots = u32(warps * lanes);

    BurstParams params{};
    params.code = code.at();
    params.words = words.at();
    params.bytes = bytes.at();
    params.template_words = template_words.at();
    params.template_bytes = template_bytes.at();
    params.arguments = arguments.at();
    params.results = results.at();
    params.next = next.at();
    params.stop = stop_.at();
    params.bytes_per_process = burst.bytes_per_process;
    params.template_size = padded.size();
    params.words_per_process = u32(burst.words.size());
    params.processes = burst.processes;
    params.warps = u32(warps);
    params.lanes = lanes;
    params.thread = burst.thread;
    params.stack = burst.stack;
    params.argument_words = burst.argument_words;
    params.result_words = burst.result_words;
    params.result_stride = outcome.stride;
    while ((u64{32} << params.dirty_shift) < burst.bytes_per_process) params.dirty_shift++;
    std::copy(burst.ranges.begin(), burst.ranges.end(), params.ranges);
    TRY(check(driver_.stream_synchronize(stream_), "preparing the launch"));

    auto start = std::chrono::steady_clock::now();
    u32 blocks = u32((warps * warp_lanes + block_lanes - 1) / block_lanes);
    TRY(launch(*gang, blocks, block_lanes, &params));
    TRY(wait(control));
    outcome.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    outcome.launches = 1;
    outcome.results.resize(usize(burst.processes) * outcome.stride);
    TRY(copy_out(outcome.results.data(), results.at(), outcome.results.size() * 4));
    return outcome;
}

}  // namespace

Result<std::vector<DeviceInfo>> cuda_infos() {
    const Driver* driver = TRY(cuda::open_driver());
    int count = 0;
    TRY(driver->check(driver->device_count(&count), "counting devices"));
    std::vector<DeviceInfo> infos;
    for (int i = 0; i < count; i++) infos.push_back(TRY(read_info(*driver, i)));
    return infos;
}

Result<std::unique_ptr<Device>> make_cuda_device(u32 ordinal) {
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
