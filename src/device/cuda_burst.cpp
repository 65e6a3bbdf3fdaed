// Bursts on an NVIDIA GPU: plans the memory of all slots, uploads templates, and launches; once
// more for each time that lanes waited for the host.
#include <algorithm>
#include <cstddef>

#include "base/phases.h"
#include "device/cuda_device.h"

namespace gpurun::device {
namespace {

// How a part's processes are spread.
struct Plan {
    u64 per_warp = 0;  // bytes that the slots of a warp take
    u64 warps = 0;
    u32 lanes = 0;  // of each warp
};

// Warps for each part: as many as can be resident and have room, shared by how many processes the
// parts have; one at least.
void spread(std::vector<Plan>& plans, std::span<const Burst> parts, u64 resident, u64 memory) {
    u64 processes = 0;
    for (const Burst& part : parts) processes += part.processes;
    for (usize i = 0; i < parts.size(); i++) {
        u64 share = processes <= resident ? parts[i].processes
                                          : u64(double(resident) * parts[i].processes / processes);
        plans[i].warps = std::max<u64>(1, share);
    }
    double needed = 0;
    for (const Plan& plan : plans) needed += double(plan.per_warp) * double(plan.warps);
    double scale = std::min(1.0, double(memory) / needed);
    for (usize i = 0; i < parts.size(); i++) {
        Plan& plan = plans[i];
        plan.warps = std::max<u64>(1, u64(double(plan.warps) * scale));
        // Few processes: a warp each, so that none waits for another.
        plan.lanes =
            u32(std::min<u64>(warp_lanes, (parts[i].processes + plan.warps - 1) / plan.warps));
        plan.warps = std::min<u64>(plan.warps, (parts[i].processes + plan.lanes - 1) / plan.lanes);
    }
}

// A part's memory on the device, while it runs.
struct PartMemory {
    Buffer code, template_words, template_bytes, arguments, results, next, words, bytes, lanes;
};

class CudaWaiting final : public WaitingProcess {
public:
    CudaWaiting(CudaDevice& device, const Burst& part, const PartMemory& memory, u64 slot,
                gpurun::Handle block)
        : device_(device), part_(part), memory_(memory), slot_(slot), block_(block) {}

    gpurun::Handle block() const override { return block_; }
    Result<void> read_bytes(u64 offset, std::span<u8> bytes) override {
        return device_.copy_out(bytes.data(), at(offset), bytes.size());
    }
    Result<void> write_bytes(u64 offset, std::span<const u8> bytes) override {
        // Whoever has the slot next gets all of it afresh.
        static constexpr u32 all_dirty = ~u32{0};
        u64 warp = slot_ / warp_lanes, lane = slot_ % warp_lanes;
        u64 word = (warp * part_.words.size() + part_.thread + thread_dirty) * warp_lanes + lane;
        TRY(device_.copy_in(memory_.words.at() + word * 4, &all_dirty, sizeof all_dirty));
        return device_.copy_in(at(offset), bytes.data(), bytes.size());
    }

private:
    DevicePointer at(u64 offset) const {
        return memory_.bytes.at() + slot_ * part_.bytes_per_process + offset;
    }

    CudaDevice& device_;
    const Burst& part_;
    const PartMemory& memory_;
    u64 slot_;
    gpurun::Handle block_;
};

// What lanes of a parked kernel wait for.
Result<void> serve_lanes(CudaDevice& device, const Burst& part, const PartMemory& memory,
                         u64 count) {
    std::vector<LaneState> states(count);
    TRY(device.copy_out(states.data(), memory.lanes.at(), count * sizeof(LaneState)));
    for (u64 slot = 0; slot < count; slot++) {
        LaneState& state = states[slot];
        if (!(state.flags & lane_waits_for_host)) continue;
        CudaWaiting process(device, part, memory, slot, state.block);
        if (part.serve) TRY(part.serve(process));
        state.flags &= ~lane_waits_for_host;
    }
    return device.copy_in(memory.lanes.at(), states.data(), count * sizeof(LaneState));
}

}  // namespace

Result<BurstOutcome> CudaDevice::run_burst(std::span<const Burst> parts,
                                           const RunControl& control) {
    bool is_deep = false;
    for (const Burst& part : parts)
        is_deep |= part.words[part.thread + thread_stack_end] - part.stack > gang_stack_slots;
    const Kernel* gang = TRY(gang_kernel(is_deep));
    PhaseTimer timer(Phase::prepare);
    BurstOutcome outcome;
    std::vector<PartMemory> memory(parts.size());
    for (usize i = 0; i < parts.size(); i++) {
        const Burst& part = parts[i];
        PartMemory& m = memory[i];
        outcome.parts.emplace_back().stride = result_first + part.result_words;
        m.code = TRY(upload(std::span<const u64>(part.code), "code"));
        m.template_words = TRY(upload(std::span<const u32>(part.words), "the template"));
        m.template_bytes = TRY(upload(std::span<const u8>(part.bytes), "the template"));
        m.arguments = TRY(upload(std::span<const u32>(part.arguments), "arguments"));
        m.results =
            TRY(allocate_zeroed(u64(part.processes) * outcome.parts[i].stride * 4, "results"));
        m.next = TRY(allocate_zeroed(4, "a counter"));
    }

    usize free = 0, total = 0;
    TRY(check(driver_.memory_info(&free, &total), "asking for free memory"));
    // The driver takes local memory for all lanes that could ever be resident.
    u64 local = u64(gang->local_bytes) * info_.lanes;
    u64 available = u64(double(free - std::min<u64>(free, local)) * 0.95), least = 0;
    std::vector<Plan> plans(parts.size());
    for (usize i = 0; i < parts.size(); i++) {
        plans[i].per_warp =
            (u64(parts[i].words.size()) * 4 + parts[i].bytes_per_process) * warp_lanes;
        least += plans[i].per_warp;
    }
    if (least > available)
        return Error{format(
            "not enough device memory: 32 processes of %llu KiB each take %llu MiB, %zu of %zu MiB "
            "are free; a smaller --memory or --stack asks for less",
            (unsigned long long)(least / warp_lanes >> 10), (unsigned long long)(least >> 20),
            free >> 20, total >> 20)};
    spread(
        plans, parts,
        u64(gang->blocks_per_multiprocessor) * info_.multiprocessors * (block_lanes / warp_lanes),
        available);

    std::vector<BurstPart> table(parts.size());
    u64 warps = 0;
    for (usize i = 0; i < parts.size(); i++) {
        const Burst& part = parts[i];
        PartMemory& m = memory[i];
        u64 slots = plans[i].warps * warp_lanes;
        m.words = TRY(allocate_zeroed(slots * part.words.size() * 4, "process words"));
        m.bytes = TRY(allocate_zeroed(slots * part.bytes_per_process, "process memories"));
        m.lanes = TRY(allocate_zeroed(slots * sizeof(LaneState), "lanes"));
        outcome.slots += u32(plans[i].warps * plans[i].lanes);
        BurstPart& row = table[i];
        row.code = m.code.at();
        row.words = m.words.at();
        row.bytes = m.bytes.at();
        row.template_words = m.template_words.at();
        row.template_bytes = m.template_bytes.at();
        row.arguments = m.arguments.at();
        row.results = m.results.at();
        row.next = m.next.at();
        row.system = address_of(part.system);
        row.lanes_at = m.lanes.at();
        row.bytes_per_process = part.bytes_per_process;
        row.template_size = part.bytes.size();
        while (row.template_begin < part.bytes.size() && part.bytes[row.template_begin] == 0)
            row.template_begin++;
        row.template_begin &= ~u64{7};
        row.words_per_process = u32(part.words.size());
        row.processes = part.processes;
        row.first_warp = u32(warps);
        row.warps = u32(plans[i].warps);
        row.lanes = plans[i].lanes;
        row.thread = part.thread;
        row.stack = part.stack;
        row.argument_words = part.argument_words;
        row.result_words = part.result_words;
        row.result_stride = outcome.parts[i].stride;
        while ((u64{32} << row.dirty_shift) < part.bytes_per_process) row.dirty_shift++;
        row.is_watched = part.is_watched;
        std::copy(part.ranges.begin(), part.ranges.end(), row.ranges);
        warps += plans[i].warps;
    }
    Buffer rows = TRY(upload(std::span<const BurstPart>(table), "the parts"));
    Buffer counters = TRY(allocate_zeroed(sizeof(BurstCounters), "counters"));
    BurstParams params{rows.at(), stop_.at(), counters.at(), u32(parts.size()), parts[0].spoilt};
    TRY(check(driver_.stream_synchronize(stream_), "preparing the launch"));

    auto start = std::chrono::steady_clock::now();
    double busy_cycles = 0, lane_cycles = 0;
    for (;;) {
        PhaseTimer run_timer(Phase::run);
        u32 blocks = u32((warps * warp_lanes + block_lanes - 1) / block_lanes);
        TRY(launch(*gang, blocks, block_lanes, 0, &params));
        outcome.stop_seconds = TRY(wait(control, counters.at() + offsetof(BurstCounters, waiting)));
        outcome.launches++;
        BurstCounters counted{};
        TRY(copy_out(&counted, counters.at(), sizeof counted));
        busy_cycles += double(counted.busy_lane_cycles);
        lane_cycles += double(counted.longest_warp) * double(warps * warp_lanes);
        if (counted.waiting == 0 || outcome.stop_seconds) break;
        for (usize i = 0; i < parts.size(); i++)
            TRY(serve_lanes(*this, parts[i], memory[i], plans[i].warps * warp_lanes));
        counted = {};
        TRY(copy_in(counters.at(), &counted, sizeof counted));
    }
    outcome.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (lane_cycles > 0) outcome.busy = busy_cycles / lane_cycles;
    for (usize i = 0; i < parts.size(); i++) {
        std::vector<u32>& words = outcome.parts[i].words;
        words.resize(usize(parts[i].processes) * outcome.parts[i].stride);
        TRY(copy_out(words.data(), memory[i].results.at(), words.size() * 4));
    }
    return outcome;
}

}  // namespace gpurun::device
