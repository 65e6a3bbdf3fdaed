#include "lanes_device.h"

#include <algorithm>
#include <cstring>
#include <deque>

#include "burst/run.h"
#include "device/cpu/cpu_machine.h"

extern "C" {
void gpurun_burst_4(gpurun::BurstParams params);
void gpurun_burst_32(gpurun::BurstParams params);
void gpurun_burst_deep_32(gpurun::BurstParams params);
void gpurun_burst_deep_interleaved_32(gpurun::BurstParams params);
void gpurun_burst_native_4(gpurun::BurstParams params);
void gpurun_burst_interleaved_4(gpurun::BurstParams params);
void gpurun_burst_interleaved_32(gpurun::BurstParams params);
void gpurun_resident_4(gpurun::MachineParams params);
void gpurun_resident_32(gpurun::MachineParams params);
}

namespace gpurun::test {
namespace {

using device::Burst;
using device::BurstKernel;
using device::BurstKernelKind;
using device::BurstOutcome;

class LanesSystem final : public device::SystemMemory {
public:
    explicit LanesSystem(u64 size) : bytes_(size) {}
    u64 size() const override { return bytes_.size(); }
    Result<void> write(u64 offset, std::span<const u8> bytes) override {
        std::ranges::copy(bytes, bytes_.begin() + s64(offset));
        return {};
    }
    Result<void> read(u64 offset, std::span<u8> bytes) override {
        std::copy_n(bytes_.begin() + s64(offset), bytes.size(), bytes.begin());
        return {};
    }
    Result<std::vector<u64>> load_shared(u64 offset, u64 stride, u64 count) override {
        std::vector<u64> numbers(count);
        for (u64 i = 0; i < count; i++)
            std::memcpy(&numbers[i], bytes_.data() + offset + i * stride, sizeof(u64));
        return numbers;
    }
    Result<void> store_shared(u64 offset, u64 value) override {
        std::memcpy(bytes_.data() + offset, &value, sizeof value);
        return {};
    }
    Result<device::TakenMemory> take(u64 size) override {
        auto keeper = std::make_shared<const std::vector<u8>>(std::move(bytes_));
        return device::TakenMemory{std::span(*keeper).first(size), keeper};
    }
    u8* at() { return bytes_.data(); }
    const u8* at() const { return bytes_.data(); }

private:
    std::vector<u8> bytes_;
};

u64 address(const void* at) { return reinterpret_cast<u64>(at); }

// A machine whose warps are one thread of the host: all of them take turns there.
class LanesMachineRunner final : public device::MachineRunner {
public:
    LanesMachineRunner(u8* system, u8* pages, const WarpOptions& options, u64 park_ns)
        : warps_(options), is_narrow_(options.lanes == 4), park_ns_(park_ns) {
        current = this;
        inner_ = device::make_cpu_machine(system, pages, 1, run);
    }
    ~LanesMachineRunner() override {
        inner_.reset();
        current = nullptr;
    }

    Mailbox& mailbox() override { return inner_->mailbox(); }
    Result<void> launch() override { return inner_->launch(); }
    Result<void> wait(u32 seen,
                      std::optional<std::chrono::steady_clock::time_point> deadline) override {
        return inner_->wait(seen, deadline);
    }
    void set_answer(std::function<void()> answer) override {
        inner_->set_answer(std::move(answer));
    }
    void set_spin(std::chrono::microseconds time) override { inner_->set_spin(time); }
    void wake() override { inner_->wake(); }
    Result<NativeEntries> use_native(std::span<const device::NativePart>, u64 code_words) override {
        return NativeEntries{address(no_entries_.emplace_back(code_words).data()), 0};
    }
    Result<bool> has_parked() override {
        const bool is_parked = TRY(inner_->has_parked());
        if (is_parked && !problem_.empty()) return Error{problem_};
        return is_parked;
    }

private:
    static void run(const MachineParams& params, u32, u8*) {
        MachineParams copy = params;
        copy.until = current->park_ns_;
        current->problem_ = current->warps_.run(
            current->is_narrow_
                ? [](void* p) { gpurun_resident_4(*static_cast<MachineParams*>(p)); }
                : [](void* p) { gpurun_resident_32(*static_cast<MachineParams*>(p)); },
            &copy);
    }

    static LanesMachineRunner* current;  // one at a time
    Warps warps_;
    const bool is_narrow_;
    const u64 park_ns_;
    std::string problem_;                      // written before the launch ends
    std::deque<std::vector<u32>> no_entries_;  // of programs: their places stay
    std::unique_ptr<device::MachineRunner> inner_;
};
LanesMachineRunner* LanesMachineRunner::current = nullptr;

}  // namespace

LanesDevice::LanesDevice(u32 lanes, u32 warps, u64 seed)
    : lanes_(lanes), warps_(warps), seed_(seed) {
    info_.id = "lanes";
    info_.name = "fibers";
    info_.multiprocessors = warps;
    info_.lanes = lanes * warps;
    info_.memory_total = info_.memory_free = u64{1} << 30;
    info_.warp_lanes = info_.block_lanes = lanes;
    info_.has_layouts = true;
}

Result<std::unique_ptr<device::SystemMemory>> LanesDevice::make_system(u64 size) {
    return std::unique_ptr<device::SystemMemory>(new LanesSystem(size));
}
Result<std::unique_ptr<device::Space>> LanesDevice::make_space(const device::Sizes& sizes) {
    return device::make_cpu_space(sizes);
}

Result<std::shared_ptr<const device::NativeCode>> LanesDevice::load_native(
    const codegen::Image& image, codegen::Target target, const device::NativeCode* loaded) {
    return TRY(device::open_device("cpu"))->load_native(image, target, loaded);
}

Result<std::unique_ptr<device::MachineRunner>> LanesDevice::make_machine(
    device::SystemMemory& system, device::SystemMemory& pages) {
    WarpOptions options;
    options.warps = warps_;
    options.lanes = lanes_;
    options.seed = seed_;
    options.most_turns = 2'000'000'000;
    return std::unique_ptr<device::MachineRunner>(
        new LanesMachineRunner(static_cast<LanesSystem&>(system).at(),
                               static_cast<LanesSystem&>(pages).at(), options, park_ns_));
}

Result<BurstOutcome> LanesDevice::run_burst(std::span<const Burst> parts,
                                            const device::RunControl& control) {
    return burst::run(*this, parts, control);
}

// ---- memory: the host's --------------------------------------------------------------

Result<u64> LanesDevice::free_memory() {
    return info_.memory_free - std::min(info_.memory_free, allocated_);
}
Result<device::Buffer> LanesDevice::allocate(u64 size, const char* what) {
    if (size > TRY(free_memory())) return Error{std::string("no memory for ") + what};
    size = std::max<u64>(size, 1);  // so that it is somewhere
    allocated_ += size;
    return device::Buffer(this, address(std::calloc(1, size)), size);
}
void LanesDevice::release(u64 at, u64 size) {
    allocated_ -= size;
    std::free(reinterpret_cast<void*>(at));
}
Result<void> LanesDevice::clear(u64 at, u64 size) {
    std::memset(reinterpret_cast<void*>(at), 0, size);
    return {};
}
Result<void> LanesDevice::copy_in(u64 to, const void* from, u64 size) {
    if (size != 0) std::memcpy(reinterpret_cast<void*>(to), from, size);
    return {};
}
Result<void> LanesDevice::copy_out(void* to, u64 from, u64 size) {
    if (size != 0) std::memcpy(to, reinterpret_cast<const void*>(from), size);
    return {};
}
u64 LanesDevice::address_of(const device::SystemMemory* system) const {
    return system ? address(static_cast<const LanesSystem*>(system)->at()) : 0;
}

// ---- kernels -------------------------------------------------------------------------

struct LanesDevice::Kernel {
    u32 lanes;
    BurstKernelKind kind;
    Warps::Kernel run;
};

namespace {
template <void (*kernel)(BurstParams)>
void run_kernel(void* params) {
    kernel(*static_cast<BurstParams*>(params));
}
}  // namespace

// Stacks of warps of 4 lanes are never local: their kernels run deep ones too.
const LanesDevice::Kernel LanesDevice::all_kernels[] = {
    {4, {false, false, Layout::linear}, run_kernel<gpurun_burst_4>},
    {4, {false, true, Layout::linear}, run_kernel<gpurun_burst_4>},
    {4, {false, false, Layout::interleaved}, run_kernel<gpurun_burst_interleaved_4>},
    {4, {false, true, Layout::interleaved}, run_kernel<gpurun_burst_interleaved_4>},
    {4, {true, false, Layout::linear}, run_kernel<gpurun_burst_native_4>},
    {4, {true, true, Layout::linear}, run_kernel<gpurun_burst_native_4>},
    {32, {false, false, Layout::linear}, run_kernel<gpurun_burst_32>},
    {32, {false, true, Layout::linear}, run_kernel<gpurun_burst_deep_32>},
    {32, {false, false, Layout::interleaved}, run_kernel<gpurun_burst_interleaved_32>},
    {32, {false, true, Layout::interleaved}, run_kernel<gpurun_burst_deep_interleaved_32>},
};

Result<BurstKernel> LanesDevice::burst_kernel(const BurstKernelKind& kind) {
    for (const Kernel& kernel : all_kernels)
        if (kernel.lanes == lanes_ && kernel.kind == kind) return BurstKernel{&kernel, 0, warps_};
    return Error{"there is no such kernel"};
}

Result<device::UploadedEntries> LanesDevice::upload_entries(
    std::span<const device::NativePart> parts, u64 code_words) {
    struct Entry {
        LanesNativeCode::Enter* enter;
        u32 number;
    };
    std::vector<Entry> entries(1);
    std::vector<u32> entry_at(code_words + code_words % 2);
    for (const device::NativePart& part : parts) {
        std::fill(entry_at.begin() + part.begin, entry_at.end(), u32(entries.size()));
        entries.push_back({static_cast<const LanesNativeCode&>(*part.code).enter, 0});
    }
    const u64 first = entry_at.size() * sizeof(u32), second = entries.size() * sizeof(Entry);
    device::UploadedEntries made;
    made.memory = TRY(allocate(first + second, "entries"));
    made.addresses = {made.memory.at(), made.memory.at() + first};
    TRY(copy_in(made.addresses.entry_at, entry_at.data(), first));
    TRY(copy_in(made.addresses.entries, entries.data(), second));
    return made;
}

NativeParams LanesDevice::native_params(device::Tier tier) const {
    return {64 << 10, tier == device::Tier::alternate};
}

// ---- launch and poll -----------------------------------------------------------------

Result<void> LanesDevice::launch_burst(const BurstKernel& kernel, u32 warps, BurstParams params,
                                       const device::RunControl& control) {
    stop_ = control.wants_stop() ? stop_end : stop_none;
    params.stop = address(&stop_);
    kernel_ = static_cast<const Kernel*>(kernel.handle);
    params_ = params;
    launched_warps_ = warps;
    usage_.launches++;
    const auto* rows = reinterpret_cast<const BurstPart*>(params.parts);
    launched.push_back({kernel_->kind, warps, {rows, rows + params.part_count}});
    return {};
}

Result<std::optional<double>> LanesDevice::wait(const device::RunControl& control, u64 waiting,
                                                const std::function<Result<void>()>& look) {
    const u64 start = now_ns_;
    std::optional<u64> stopped;
    Result<void> looked;
    WarpOptions options;
    options.warps = launched_warps_;
    options.lanes = lanes_;
    options.seed = seed_++;
    options.begin_ns = start;
    options.poll = [&](u64 now) {
        now_ns_ = now;
        const u64 slice = u64(control.slice.count()) * 1000;
        if (control.wants_stop()) {
            stopped = stopped.value_or(now);
            stop_ = stop_end;
        } else if (*reinterpret_cast<const u64*>(waiting) != 0 ||
                   (slice != 0 && now - start >= slice)) {
            stop_ = stop_park;
        }
        if (look && looked) looked = look();
    };
    const std::string problem = Warps(options).run(kernel_->run, &params_);
    if (!problem.empty()) return Error{problem};
    TRY(std::move(looked));
    if (!stopped) return std::optional<double>();
    return std::optional(double(now_ns_ - *stopped) * 1e-9);
}

}  // namespace gpurun::test
