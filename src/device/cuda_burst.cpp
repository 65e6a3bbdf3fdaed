// Bursts on an NVIDIA GPU: plans the memory of all slots, uploads templates, and launches; once
// more for each time that lanes waited for the host. Slots are small at first: processes that
// outgrow them go on in fewer and larger ones, level by level.
#include <algorithm>
#include <cstddef>

#include "base/phases.h"
#include "device/cuda_device.h"
#include "device/slot_layout.h"

namespace gpurun::device {
namespace {

// How a part's processes are spread.
struct Plan {
    u64 words_per_warp = 0, bytes_per_lane = 0;  // both in bytes
    u64 warps = 0;
    u32 lanes = 0;  // of each warp

    double size() const {
        return double(warps) * (double(words_per_warp) + double(bytes_per_lane) * lanes);
    }
    // As many slots as have room; of ways to have as many that with the most warps, since lanes of
    // one warp wait for each other.
    void fit(double room, u64 processes) {
        Plan best = *this;
        u64 most = 0;
        for (u32 count = 1; count <= warp_lanes; count *= 2) {
            Plan plan = *this;
            plan.lanes = count;
            u64 fitting = u64(room / (double(words_per_warp) + double(bytes_per_lane) * count));
            plan.warps = std::min({warps, fitting, (processes + count - 1) / count});
            if (plan.warps * count <= most) continue;
            most = plan.warps * count;
            best = plan;
        }
        *this = best;
        warps = std::max<u64>(warps, 1);
    }
};

// Warps for each part: as many as can be resident and have room, shared by how many processes the
// parts have; one at least.
void spread(std::vector<Plan>& plans, std::span<const u64> processes, u64 resident, double room) {
    u64 all = 0;
    for (u64 count : processes) all += count;
    double needed = 0;
    for (usize i = 0; i < plans.size(); i++) {
        Plan& plan = plans[i];
        u64 share =
            all <= resident ? processes[i] : u64(double(resident) * double(processes[i]) / all);
        plan.warps = std::max<u64>(1, share);
        // Few processes: a warp each, so that none waits for another.
        plan.lanes = u32(std::min<u64>(warp_lanes, (processes[i] + plan.warps - 1) / plan.warps));
        plan.warps = std::min<u64>(plan.warps, (processes[i] + plan.lanes - 1) / plan.lanes);
        needed += plan.size();
    }
    if (needed <= room) return;
    for (usize i = 0; i < plans.size(); i++)
        plans[i].fit(plans[i].size() * room / needed, processes[i]);
}

// What a part has on the device from its first process to its last.
struct PartMemory {
    Buffer code, arguments, results;
};

// Processes of a part, all in slots of one size.
struct Level {
    usize part = 0;  // index
    SlotLayout slot;
    Plan plan;
    u64 processes = 0;
    Buffer template_words, template_bytes, next, words, bytes, lanes;
    // Of processes that come from smaller slots.
    const Level* source = nullptr;
    Buffer moved;

    u64 lane_count() const { return plan.warps * warp_lanes; }
};

class CudaWaiting final : public WaitingProcess {
public:
    CudaWaiting(CudaDevice& device, const Burst& part, const Level& level, u64 slot,
                gpurun::Handle block)
        : device_(device), part_(part), level_(level), slot_(slot), block_(block) {}

    gpurun::Handle block() const override { return block_; }
    Result<void> read_bytes(u64 offset, std::span<u8> bytes) override {
        return device_.copy_out(bytes.data(), at(offset), bytes.size());
    }
    Result<void> write_bytes(u64 offset, std::span<const u8> bytes) override {
        // Whoever has the slot next gets all of it afresh.
        static constexpr u32 all_dirty = ~u32{0};
        u64 warp = slot_ / warp_lanes, lane = slot_ % warp_lanes;
        u64 word = (warp * level_.slot.words.size() + part_.thread + thread_dirty) * warp_lanes;
        TRY(device_.copy_in(level_.words.at() + (word + lane) * 4, &all_dirty, sizeof all_dirty));
        return device_.copy_in(at(offset), bytes.data(), bytes.size());
    }

private:
    DevicePointer at(u64 offset) const {
        u64 index = slot_ / warp_lanes * level_.plan.lanes + slot_ % warp_lanes;
        return level_.bytes.at() + index * level_.slot.bytes_per_process + offset;
    }

    CudaDevice& device_;
    const Burst& part_;
    const Level& level_;
    u64 slot_;
    gpurun::Handle block_;
};

class BurstRun {
public:
    BurstRun(CudaDevice& device, std::span<const Burst> parts, const RunControl& control)
        : device_(device), parts_(parts), control_(control), memory_(parts.size()) {}

    Result<BurstOutcome> run() {
        PhaseTimer timer(Phase::prepare);
        std::vector<Level> levels(parts_.size());
        for (usize i = 0; i < parts_.size(); i++) {
            const Burst& part = parts_[i];
            PartMemory& m = memory_[i];
            u32 stride = outcome_.parts.emplace_back().stride = result_first + part.result_words;
            m.code = TRY(device_.upload(std::span<const u64>(part.code), "code"));
            m.arguments = TRY(device_.upload(std::span<const u32>(part.arguments), "arguments"));
            m.results = TRY(device_.allocate_zeroed(u64(part.processes) * stride * 4, "results"));
            levels[i].part = i;
            levels[i].processes = part.processes;
        }
        bool has_room = TRY(run_levels(levels, 0));
        if (!has_room) return Error{TRY(describe_need(levels))};
        if (lane_cycles_ > 0) outcome_.busy = busy_cycles_ / lane_cycles_;
        for (usize i = 0; i < parts_.size(); i++) {
            std::vector<u32>& words = outcome_.parts[i].words;
            words.resize(usize(parts_[i].processes) * outcome_.parts[i].stride);
            TRY(device_.copy_out(words.data(), memory_[i].results.at(), words.size() * 4));
        }
        return std::move(outcome_);
    }

private:
    // ---- sizes ---------------------------------------------------------------------

    // Each level has eight times the room of the one before.
    static constexpr u32 level_bits = 3, last_level = 6;

    SlotSize size_of(const Burst& part, u32 level, u64 free) const {
        SlotSize size;
        if (level >= last_level) return size;
        size.stack_slots = gang_stack_slots << level_bits * level;
        u64 least = 1 << 20;
        for (const BurstMemory& memory : part.memories) {
            u64 bytes = u64(part.words[memory.record + memory_bytes + 1]) << 32 |
                        part.words[memory.record + memory_bytes];
            // Allocators of programs take a page or more before they give anything out.
            least = std::max(least, bytes + std::max<u64>(bytes, u64{4} << page_bits));
        }
        // Few processes may have more at once.
        u64 count = std::max<u64>(1, part.memories.size()) *
                    std::min<u64>(part.processes, device_.info().lanes);
        u64 share = std::min<u64>(free / 4 / count, 16 << 20);
        size.memory_bytes = std::max(least, share) << level_bits * level;
        return size;
    }

    // False: not even one warp of each fits.
    Result<bool> plan(std::vector<Level>& levels, u32 number, const Kernel& gang) {
        // The driver takes local memory for all lanes that could ever be resident.
        u64 free = TRY(device_.free_memory()), local = u64(gang.local_bytes) * device_.info().lanes;
        bool may_grow = false;
        std::vector<Plan> plans(levels.size());
        std::vector<u64> processes(levels.size());
        double least = 0;
        for (usize i = 0; i < levels.size(); i++) {
            may_grow |= levels[i].slot.clipped != 0;
            plans[i].words_per_warp = u64(levels[i].slot.words.size()) * 4 * warp_lanes;
            plans[i].bytes_per_lane = levels[i].slot.bytes_per_process;
            processes[i] = levels[i].processes;
            least += double(plans[i].words_per_warp + plans[i].bytes_per_lane);
        }
        double room = double(free - std::min(free, local)) * 0.95;
        if (least > room) return false;
        // What is left is for those that outgrow this level.
        if (may_grow) room = std::max(least, room * (number == 0 ? 0.67 : 0.5));
        spread(plans, processes,
               u64(gang.blocks_per_multiprocessor) * device_.info().multiprocessors *
                   (block_lanes / warp_lanes),
               room);
        for (usize i = 0; i < levels.size(); i++) levels[i].plan = plans[i];
        return true;
    }

    Result<std::string> describe_need(const std::vector<Level>& levels) {
        u64 needed = 0;
        for (const Level& level : levels)
            needed += u64(level.slot.words.size()) * 4 * warp_lanes + level.slot.bytes_per_process;
        return format(
            "not enough device memory: a warp of processes takes %llu MiB at the least, %llu of "
            "%llu MiB are free; a smaller --memory or --stack asks for less",
            (unsigned long long)(needed >> 20),
            (unsigned long long)(TRY(device_.free_memory()) >> 20),
            (unsigned long long)(device_.info().memory_total >> 20));
    }

    // ---- a level -------------------------------------------------------------------

    Result<BurstPart> make_part(Level& level, u32 first_warp) {
        const Burst& part = parts_[level.part];
        const PartMemory& m = memory_[level.part];
        const SlotLayout& slot = level.slot;
        const u64 lanes = level.lane_count();
        std::vector<u8> bytes = initial_bytes(part, slot);
        level.template_words =
            TRY(device_.upload(std::span<const u32>(slot.words), "the template"));
        level.template_bytes = TRY(device_.upload(std::span<const u8>(bytes), "the template"));
        level.next = TRY(device_.allocate_zeroed(4, "a counter"));
        level.words = TRY(device_.allocate_zeroed(lanes * slot.words.size() * 4, "process words"));
        level.bytes = TRY(device_.allocate_zeroed(
            level.plan.warps * level.plan.lanes * slot.bytes_per_process, "process memories"));
        level.lanes = TRY(device_.allocate_zeroed(lanes * sizeof(LaneState), "lanes"));
        BurstPart row{};
        row.code = m.code.at();
        row.words = level.words.at();
        row.bytes = level.bytes.at();
        row.template_words = level.template_words.at();
        row.template_bytes = level.template_bytes.at();
        row.arguments = m.arguments.at();
        row.results = m.results.at();
        row.next = level.next.at();
        row.system = address_of(part.system);
        row.lanes_at = level.lanes.at();
        if (const Level* source = level.source) {
            row.source_words = source->words.at();
            row.source_bytes = source->bytes.at();
            row.moved = level.moved.at();
            row.source_bytes_per_process = source->slot.bytes_per_process;
            row.source_words_per_process = u32(source->slot.words.size());
            row.source_lanes = source->plan.lanes;
            row.source_stack_end = source->slot.stack_end;
        }
        row.bytes_per_process = slot.bytes_per_process;
        row.template_size = bytes.size();
        while (row.template_begin < bytes.size() && bytes[row.template_begin] == 0)
            row.template_begin++;
        row.template_begin &= ~u64{7};
        row.words_per_process = u32(slot.words.size());
        row.processes = u32(level.processes);
        row.first_warp = first_warp;
        row.warps = u32(level.plan.warps);
        row.lanes = level.plan.lanes;
        row.thread = part.thread;
        row.stack = slot.stack;
        row.stack_end = slot.stack_end;
        row.argument_words = part.argument_words;
        row.result_words = part.result_words;
        row.result_stride = outcome_.parts[level.part].stride;
        while ((u64{32} << row.dirty_shift) < slot.bytes_per_process) row.dirty_shift++;
        row.is_watched = part.is_watched;
        std::copy(slot.ranges.begin(), slot.ranges.end(), row.ranges);
        // What was uploaded must have left before it is freed.
        TRY(device_.synchronize("preparing the launch"));
        return row;
    }

    // Runs processes until they have ended, or the run is stopped. False: there is no room.
    Result<bool> run_levels(std::vector<Level>& levels, u32 number) {
        PhaseTimer timer(Phase::prepare);
        const u64 free = TRY(device_.free_memory());
        bool is_deep = false;
        for (Level& level : levels) {
            level.slot = lay_out(parts_[level.part], size_of(parts_[level.part], number, free));
            is_deep |= level.slot.stack_end - level.slot.stack > gang_stack_slots;
        }
        const Kernel* gang = TRY(device_.gang_kernel(is_deep));
        if (!TRY(plan(levels, number, *gang))) return false;
        std::vector<BurstPart> table;
        u32 warps = 0;
        for (Level& level : levels) {
            table.push_back(TRY(make_part(level, warps)));
            warps += u32(level.plan.warps);
            if (number == 0) outcome_.slots += u32(level.plan.warps * level.plan.lanes);
        }
        Buffer rows = TRY(device_.upload(std::span<const BurstPart>(table), "the parts"));
        Buffer counters = TRY(device_.allocate_zeroed(sizeof(BurstCounters), "counters"));
        BurstParams params{rows.at(), device_.stop_word().at(), counters.at(), u32(levels.size()),
                           parts_[0].spoilt};
        TRY(device_.synchronize("preparing the launch"));
        for (;;) {
            BurstCounters counted = TRY(launch(*gang, params, warps));
            if (counted.held == 0) break;
            // Once it is stopped, lanes only hand in what they have.
            if (!control_.wants_stop())
                for (Level& level : levels) TRY(serve_lanes(level));
            if (!control_.wants_stop()) TRY(move_outgrown(levels, number));
            counted = {};
            TRY(device_.copy_in(counters.at(), &counted, sizeof counted));
            TRY(device_.synchronize("preparing the launch"));
        }
        return true;
    }

    Result<BurstCounters> launch(const Kernel& gang, BurstParams params, u64 warps) {
        PhaseTimer timer(Phase::run);
        auto start = std::chrono::steady_clock::now();
        TRY(device_.pass_on_stop(control_));
        u32 blocks = u32((warps * warp_lanes + block_lanes - 1) / block_lanes);
        TRY(device_.launch(gang, blocks, block_lanes, 0, &params));
        std::optional<double> stop_seconds =
            TRY(device_.wait(control_, params.counters + offsetof(BurstCounters, waiting)));
        if (stop_seconds) outcome_.stop_seconds = outcome_.stop_seconds.value_or(0) + *stop_seconds;
        outcome_.launches++;
        BurstCounters counted{};
        TRY(device_.copy_out(&counted, params.counters, sizeof counted));
        busy_cycles_ += double(counted.busy_lane_cycles);
        lane_cycles_ += double(counted.longest_warp) * double(warps * warp_lanes);
        outcome_.seconds +=
            std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        return counted;
    }

    // What lanes of a parked kernel wait for.
    Result<void> serve_lanes(Level& level) {
        const Burst& part = parts_[level.part];
        std::vector<LaneState> states = TRY(read_lanes(level));
        for (u64 slot = 0; slot < states.size(); slot++) {
            LaneState& state = states[slot];
            if (!(state.flags & lane_waits_for_host)) continue;
            CudaWaiting process(device_, part, level, slot, state.block);
            if (part.serve) TRY(part.serve(process));
            state.flags &= ~lane_waits_for_host;
        }
        return write_lanes(level, states);
    }

    // Those that have outgrown their slots run to their end in larger ones. Where there are none,
    // they stay, and growing fails.
    Result<void> move_outgrown(std::vector<Level>& levels, u32 number) {
        std::vector<std::vector<LaneState>> states(levels.size());
        std::vector<std::vector<MovedProcess>> moved(levels.size());
        std::vector<Level> larger;
        std::vector<usize> of;  // larger[i] takes from levels[of[i]]
        for (usize i = 0; i < levels.size(); i++) {
            states[i] = TRY(read_lanes(levels[i]));
            for (u32 slot = 0; slot < states[i].size(); slot++)
                if (states[i][slot].flags & lane_has_outgrown)
                    moved[i].push_back({slot, states[i][slot].id});
            if (moved[i].empty()) continue;
            Level& level = larger.emplace_back();
            of.push_back(i);
            level.part = levels[i].part;
            level.processes = moved[i].size();
            level.source = &levels[i];
            level.moved = TRY(device_.upload(std::span<const MovedProcess>(moved[i]), "a list"));
        }
        if (larger.empty()) return {};
        bool has_room = TRY(run_levels(larger, number + 1));
        for (usize k = 0; k < larger.size(); k++) {
            const usize i = of[k];
            u32 taken = 0;
            if (has_room) TRY(device_.copy_out(&taken, larger[k].next.at(), sizeof taken));
            for (usize n = 0; n < moved[i].size(); n++) {
                u32& flags = states[i][moved[i][n].slot].flags;
                flags &= ~lane_has_outgrown;
                if (n < taken) flags &= ~lane_has_process;
                if (!has_room) flags |= lane_stays;
            }
            TRY(write_lanes(levels[i], states[i]));
        }
        return {};
    }

    Result<std::vector<LaneState>> read_lanes(const Level& level) {
        std::vector<LaneState> states(level.lane_count());
        TRY(device_.copy_out(states.data(), level.lanes.at(), states.size() * sizeof(LaneState)));
        return states;
    }
    Result<void> write_lanes(Level& level, const std::vector<LaneState>& states) {
        TRY(device_.copy_in(level.lanes.at(), states.data(), states.size() * sizeof(LaneState)));
        return device_.synchronize("writing lanes");
    }

    CudaDevice& device_;
    std::span<const Burst> parts_;
    const RunControl& control_;
    std::vector<PartMemory> memory_;
    BurstOutcome outcome_;
    double busy_cycles_ = 0, lane_cycles_ = 0;
};

}  // namespace

Result<BurstOutcome> CudaDevice::run_burst(std::span<const Burst> parts,
                                           const RunControl& control) {
    return BurstRun(*this, parts, control).run();
}

}  // namespace gpurun::device
