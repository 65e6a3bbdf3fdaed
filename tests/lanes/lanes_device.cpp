// Plans a launch as src/burst does, with slots of full size: nothing outgrows them.
#include "lanes_device.h"

#include <algorithm>
#include <cstring>
#include <deque>

#include "base/format.h"
#include "burst/slot_layout.h"
#include "device/cpu/cpu_machine.h"

extern "C" {
void gpurun_burst_4(gpurun::BurstParams params);
void gpurun_burst_32(gpurun::BurstParams params);
void gpurun_burst_interleaved_4(gpurun::BurstParams params);
void gpurun_burst_interleaved_32(gpurun::BurstParams params);
void gpurun_resident_4(gpurun::MachineParams params);
void gpurun_resident_32(gpurun::MachineParams params);
}

namespace gpurun::test {
namespace {

using device::Burst;
using device::BurstOutcome;
using device::BurstResults;

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

private:
    std::vector<u8> bytes_;
};

u64 address(const void* at) { return reinterpret_cast<u64>(at); }

// A process that waits for the host, in the slot of its lane.
class LanesWaiting final : public device::WaitingProcess {
public:
    LanesWaiting(const BurstPart& part, Layout layout, u32 lanes, u32 slot, const LaneState& state)
        : layout_(layout),
          lanes_(lanes),
          words_(reinterpret_cast<u32*>(part.words) +
                 u64(slot / lanes) * part.words_per_process * lanes + slot % lanes),
          bytes_(reinterpret_cast<u8*>(part.bytes) +
                 (layout == Layout::linear ? u64(slot) * part.bytes_per_process
                                           : u64(slot / lanes) * lanes * part.bytes_per_process +
                                                 slot % lanes * interleaved_granule)),
          id_(state.id),
          block_(state.block) {}

    u32 id() const override { return id_; }
    Handle block() const override { return block_; }
    Result<void> read_words(u32 index, std::span<u32> words) override {
        for (usize i = 0; i < words.size(); i++) words[i] = words_[(index + i) * lanes_];
        return {};
    }
    Result<void> read_bytes(u64 offset, std::span<u8> bytes) override {
        for (usize i = 0; i < bytes.size(); i++) bytes[i] = bytes_[at(offset + i)];
        return {};
    }
    Result<void> write_bytes(u64 offset, std::span<const u8> bytes) override {
        for (usize i = 0; i < bytes.size(); i++) bytes_[at(offset + i)] = bytes[i];
        return {};
    }

private:
    u64 at(u64 offset) const {
        if (layout_ == Layout::linear) return offset;
        const u64 within = offset % interleaved_granule;
        return (offset - within) * lanes_ + within;
    }

    Layout layout_;
    u32 lanes_;
    u32* words_;
    u8* bytes_;
    u32 id_;
    Handle block_;
};

// A machine whose warps are one thread of the host: all of them take turns there.
class LanesMachine final : public device::Machine {
public:
    LanesMachine(u8* system, u8* pages, const WarpOptions& options, u64 park_ns)
        : warps_(options), is_narrow_(options.lanes == 4), park_ns_(park_ns) {
        current = this;
        inner_ = device::make_cpu_machine(system, pages, 1, run);
    }
    ~LanesMachine() override {
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

    static LanesMachine* current;  // one at a time
    Warps warps_;
    const bool is_narrow_;
    const u64 park_ns_;
    std::string problem_;                      // written before the launch ends
    std::deque<std::vector<u32>> no_entries_;  // of programs: their places stay
    std::unique_ptr<device::Machine> inner_;
};
LanesMachine* LanesMachine::current = nullptr;

}  // namespace

LanesDevice::LanesDevice(u32 lanes, u32 warps, u64 seed)
    : lanes_(lanes), warps_(warps), seed_(seed) {
    info_.id = "lanes";
    info_.name = "fibers";
    info_.multiprocessors = warps;
    info_.lanes = lanes * warps;
    info_.memory_total = info_.memory_free = u64{1} << 30;
    info_.block_lanes = lanes;
    info_.has_layouts = true;
}

Result<std::unique_ptr<device::SystemMemory>> LanesDevice::make_system(u64 size) {
    return std::unique_ptr<device::SystemMemory>(new LanesSystem(size));
}
Result<std::unique_ptr<device::Space>> LanesDevice::make_space(const device::Sizes& sizes) {
    return device::make_cpu_space(sizes);
}

Result<std::shared_ptr<const device::NativeCode>> LanesDevice::load_native(
    const codegen::Image& image, codegen::Target target) {
    return TRY(device::open_device("cpu"))->load_native(image, target);
}

Result<std::unique_ptr<device::Machine>> LanesDevice::make_machine(device::SystemMemory& system,
                                                                   device::SystemMemory& pages) {
    WarpOptions options;
    options.warps = warps_;
    options.lanes = lanes_;
    options.seed = seed_;
    options.most_turns = 2'000'000'000;
    return std::unique_ptr<device::Machine>(new LanesMachine(static_cast<LanesSystem&>(system).at(),
                                                             static_cast<LanesSystem&>(pages).at(),
                                                             options, park_ns_));
}

Result<BurstOutcome> LanesDevice::run_burst(std::span<const Burst> parts,
                                            const device::RunControl& control) {
    BurstOutcome outcome;
    outcome.slots = info_.lanes;
    outcome.layout = parts[0].layout;
    for (const Burst& part : parts) {
        ran.push_back(format("%s %u+%u", part.layout == Layout::linear ? "linear" : "interleaved",
                             part.first, part.processes));
        outcome.parts.push_back(TRY(run_part(part, control, outcome.launches)));
        if (seconds_of) outcome.seconds += seconds_of(part);
    }
    return outcome;
}

Result<BurstResults> LanesDevice::run_part(const Burst& part, const device::RunControl& control,
                                           u32& launches) {
    BurstResults results;
    results.stride = result_first + part.result_words;
    results.words.assign(usize(part.processes) * results.stride, 0);
    const burst::SlotLayout slot = burst::lay_out(part);
    std::vector<u8> template_bytes = burst::initial_bytes(part, slot);
    const u64 template_size = template_bytes.size();
    template_bytes.push_back(0);  // so that it is somewhere even if it is empty
    const u32 lanes = lanes_ * warps_;
    std::vector<u32> words(usize(lanes) * slot.words.size());
    std::vector<u8> bytes(lanes * slot.bytes_per_process + interleaved_unit);
    std::vector<LaneState> states(lanes);
    BurstCounters counters{};
    u32 next = part.first, stop = stop_none;

    BurstPart row{};
    row.code = address(part.code.data());
    row.words = address(words.data());
    row.bytes =
        (address(bytes.data()) + interleaved_unit - 1) / interleaved_unit * interleaved_unit;
    row.template_words = address(slot.words.data());
    row.template_bytes = address(template_bytes.data());
    row.arguments = address(part.arguments.data());
    row.results = address(results.words.data()) - u64(part.first) * results.stride * 4;
    row.next = address(&next);
    if (part.system != nullptr) row.system = address(static_cast<LanesSystem*>(part.system)->at());
    row.lanes_at = address(states.data());
    row.bytes_per_process = slot.bytes_per_process;
    row.template_size = template_size;
    row.words_per_process = u32(slot.words.size());
    row.processes = part.end();
    row.warps = warps_;
    row.lanes = lanes_;
    row.thread = part.thread;
    row.stack = slot.stack;
    row.stack_end = slot.stack_end;
    row.argument_words = part.argument_words;
    row.result_words = part.result_words;
    row.result_stride = results.stride;
    while ((u64{32} << row.dirty_shift) < slot.bytes_per_process) row.dirty_shift++;
    row.is_watched = part.is_watched;
    std::copy(slot.ranges.begin(), slot.ranges.end(), row.ranges);
    BurstParams params{address(&row), address(&stop), address(&counters), 1, part.spoilt, {}};

    WarpOptions options;
    options.warps = warps_;
    options.lanes = lanes_;
    options.seed = seed_;
    Warps warps(options);
    auto kernel = lanes_ == 4 ? [](void* p) { gpurun_burst_4(*static_cast<BurstParams*>(p)); }
                              : [](void* p) { gpurun_burst_32(*static_cast<BurstParams*>(p)); };
    if (part.layout == Layout::interleaved)
        kernel = lanes_ == 4
                     ? [](void* p) { gpurun_burst_interleaved_4(*static_cast<BurstParams*>(p)); }
                     : [](void* p) { gpurun_burst_interleaved_32(*static_cast<BurstParams*>(p)); };
    do {
        if (control.wants_stop()) stop = stop_end;
        counters = {};
        launches++;
        if (std::string problem = warps.run(kernel, &params); !problem.empty())
            return Error{problem};
        for (u32 i = 0; i < lanes; i++) {
            if (!(states[i].flags & lane_waits_for_host)) continue;
            LanesWaiting process(row, part.layout, lanes_, i, states[i]);
            if (part.serve) TRY(part.serve(process));
            states[i].flags &= ~lane_waits_for_host;
        }
    } while (counters.held != 0);
    return results;
}

}  // namespace gpurun::test
