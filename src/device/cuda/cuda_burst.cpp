// Bursts on an NVIDIA GPU: plans the memory of all slots, uploads templates, and launches; once
// more for each time that lanes waited for the host. Slots are small at first: processes that
// outgrow them go on in larger ones, which take turns with the others.
#include <algorithm>
#include <cstddef>
#include <memory>

#include "base/phases.h"
#include "device/cuda/cuda_device.h"
#include "device/slot_layout.h"

namespace gpurun::device {
namespace {

// How a part's processes are spread.
struct Plan {
    Layout layout = Layout::linear;
    u64 words_per_warp = 0, bytes_per_lane = 0;  // both in bytes
    u64 warps = 0;
    u32 lanes = 0;  // of each warp that have processes

    // Where memories interleave, lanes without a process have room too.
    u32 lanes_with_bytes() const { return layout == Layout::linear ? lanes : warp_lanes; }
    double warp_size() const {
        return double(words_per_warp) + double(bytes_per_lane) * lanes_with_bytes();
    }
    double size() const { return double(warps) * warp_size(); }
    // As many slots as have room; of ways to have as many that with the most warps, since lanes of
    // one warp wait for each other.
    void fit(double room, u64 processes) {
        Plan best = *this;
        u64 most = 0;
        for (u32 count = 1; count <= warp_lanes; count *= 2) {
            Plan plan = *this;
            plan.lanes = count;
            u64 fitting = u64(room / plan.warp_size());
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
        plan.lanes =
            u32(std::clamp<u64>((processes[i] + plan.warps - 1) / plan.warps, 1, warp_lanes));
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
    UploadedEntries entries;
};

// Processes of a part, all in slots of one size.
struct Level {
    usize part = 0;  // index
    SlotLayout slot;
    Plan plan;
    Buffer template_words, template_bytes, next, words, bytes, lanes;
    std::vector<LaneState> states;  // of the lanes, between launches
    bool is_changed = false;        // they were, here
    u64 begun = 0;                  // processes that lanes have taken

    u64 lane_count() const { return plan.warps * warp_lanes; }
    // Where memories begin: `bytes` itself may not be a multiple of interleaved_unit.
    DevicePointer bytes_at() const {
        if (plan.layout == Layout::linear) return bytes.at();
        return (bytes.at() + interleaved_unit - 1) / interleaved_unit * interleaved_unit;
    }
};

// What one launch runs: the processes of all parts at first, in small slots, or those of one part
// that have outgrown the slots of another tier.
struct Tier {
    u32 number = 0;  // its slots have 4 times the room of those of the tier before
    std::vector<Level> levels;
    Level* source = nullptr;  // where its processes come from
    const Kernel* gang = nullptr;
    std::vector<BurstPart> table;
    Buffer rows, counters, moved;
    u32 warps = 0;
    u64 held = 0;  // lanes that have a process
};

class CudaWaiting final : public WaitingProcess {
public:
    CudaWaiting(CudaDevice& device, const Burst& part, const Level& level, u64 slot,
                const LaneState& state)
        : device_(device),
          part_(part),
          level_(level),
          slot_(slot),
          id_(state.id),
          block_(state.block) {}

    u32 id() const override { return id_; }
    gpurun::Handle block() const override { return block_; }
    // Words of the lanes of a warp lie side by side: all of them are read.
    Result<void> read_words(u32 index, std::span<u32> words) override {
        constexpr usize piece = 4096;
        std::vector<u32> all(std::min(piece, words.size()) * warp_lanes);
        for (usize at = 0; at < words.size(); at += piece) {
            usize count = std::min(piece, words.size() - at);
            TRY(device_.copy_out(all.data(), word_at(index + u32(at)) - slot_ % warp_lanes * 4,
                                 count * warp_lanes * 4));
            for (usize i = 0; i < count; i++)
                words[at + i] = all[i * warp_lanes + slot_ % warp_lanes];
        }
        return {};
    }
    Result<void> write_word(u32 index, u32 value) {
        return device_.copy_in(word_at(index), &value, sizeof value);
    }
    Result<void> read_bytes(u64 offset, std::span<u8> bytes) override {
        if (level_.plan.layout == Layout::linear)
            return device_.copy_out(bytes.data(), at(offset), bytes.size());
        return for_rows(offset, bytes.size(), [&](u64 done, std::span<u8> rows, u64 within, u64 n) {
            for (u64 i = 0; i < n; i++) bytes[done + i] = rows[in_rows(within + i)];
            return false;
        });
    }
    Result<void> write_bytes(u64 offset, std::span<const u8> bytes) override {
        // Whoever has the slot next gets all of it afresh.
        TRY(write_word(part_.thread + thread_dirty, ~u32{0}));
        if (level_.plan.layout == Layout::linear)
            return device_.copy_in(at(offset), bytes.data(), bytes.size());
        return for_rows(offset, bytes.size(), [&](u64 done, std::span<u8> rows, u64 within, u64 n) {
            for (u64 i = 0; i < n; i++) rows[in_rows(within + i)] = bytes[done + i];
            return true;
        });
    }

private:
    DevicePointer word_at(u32 index) const {
        u64 first = slot_ / warp_lanes * level_.slot.words.size() + index;
        return level_.words.at() + (first * warp_lanes + slot_ % warp_lanes) * 4;
    }
    DevicePointer at(u64 offset) const {
        u64 index = slot_ / warp_lanes * level_.plan.lanes + slot_ % warp_lanes;
        return level_.bytes.at() + index * level_.slot.bytes_per_process + offset;
    }

    // A row is a granule of each lane of the warp; where its byte `within` of this lane is.
    u64 in_rows(u64 within) const {
        return within / interleaved_granule * interleaved_row +
               slot_ % warp_lanes * interleaved_granule + within % interleaved_granule;
    }
    // Calls `use(done, rows, within, count)` with the rows of bytes [offset + done, + count), of
    // which the first is byte `within` of this lane's; writes the rows back if it returns true. The
    // other lanes stand still.
    template <class Use>
    Result<void> for_rows(u64 offset, u64 size, Use use) {
        constexpr u64 piece = u64{64} << 10;
        const DevicePointer warp =
            level_.bytes_at() + slot_ / warp_lanes * warp_lanes * level_.slot.bytes_per_process;
        for (u64 done = 0; done < size;) {
            const u64 first = (offset + done) / interleaved_granule,
                      within = (offset + done) % interleaved_granule,
                      count = std::min(size - done, piece - within);
            std::vector<u8> rows((within + count + interleaved_granule - 1) / interleaved_granule *
                                 interleaved_row);
            TRY(device_.copy_out(rows.data(), warp + first * interleaved_row, rows.size()));
            if (use(done, std::span<u8>(rows), within, count))
                TRY(device_.copy_in(warp + first * interleaved_row, rows.data(), rows.size()));
            TRY(device_.synchronize("reading interleaved memory"));
            done += count;
        }
        return {};
    }
    static constexpr u64 interleaved_row = u64{interleaved_granule} * warp_lanes;

    CudaDevice& device_;
    const Burst& part_;
    const Level& level_;
    u64 slot_;
    u32 id_;
    gpurun::Handle block_;
};

class BurstRun {
public:
    BurstRun(CudaDevice& device, std::span<const Burst> parts, const RunControl& control)
        : device_(device), parts_(parts), control_(control), memory_(parts.size()) {
        if (!parts.empty()) layout_ = outcome_.layout = parts[0].layout;
        for (const Burst& part : parts) {
            native_.push_back(part.native);
            awaits_.push_back(bool(part.late_native));
            ends_.push_back(part.end());
        }
    }

    Result<BurstOutcome> run() {
        PhaseTimer timer(Phase::prepare);
        auto first = std::make_unique<Tier>();
        first->levels.resize(parts_.size());
        std::vector<u64> processes;
        for (usize i = 0; i < parts_.size(); i++) {
            const Burst& part = parts_[i];
            PartMemory& m = memory_[i];
            u32 stride = outcome_.parts.emplace_back().stride = result_first + part.result_words;
            m.code = TRY(device_.upload(std::span<const u64>(part.code), "code"));
            m.arguments = TRY(
                device_.upload(std::span<const u32>(part.arguments)
                                   .subspan(usize(part.first) * part.argument_words,
                                            usize(part.processes) * part.argument_words),
                               "arguments"));
            m.results = TRY(device_.allocate_zeroed(u64(part.processes) * stride * 4, "results"));
            if (is_native()) m.entries = TRY(device_.upload_entries(part.native, part.code.size()));
            first->levels[i].part = i;
            processes.push_back(part.planned());
        }
        if (!TRY(prepare(*first, processes))) return Error{TRY(describe_need(*first))};
        for (const Level& level : first->levels)
            outcome_.slots += u32(level.plan.warps * level.plan.lanes);
        tiers_.push_back(std::move(first));
        for (bool has_run = true; has_run;) {
            has_run = false;
            for (usize i = 0; i < tiers_.size(); i++) has_run |= TRY(run_tier(*tiers_[i]));
        }
        if (lane_cycles_ > 0) outcome_.busy = busy_cycles_ / lane_cycles_;
        for (usize i = 0; i < parts_.size(); i++) {
            std::vector<u32>& words = outcome_.parts[i].words;
            words.resize(usize(ends_[i] - parts_[i].first) * outcome_.parts[i].stride);
            TRY(device_.copy_out(words.data(), memory_[i].results.at(), words.size() * 4));
        }
        return std::move(outcome_);
    }

private:
    // One kernel runs all parts, those without machine code too.
    bool is_native() const {
        return std::ranges::any_of(native_, [](const auto& parts) { return !parts.empty(); });
    }
    // Somebody may want that no more processes begin.
    bool may_have_enough() const { return control_.is_enough && !has_enough_; }
    // Machine code is being made of some.
    bool awaits_native() const {
        return std::ranges::any_of(awaits_, [](bool awaits) { return awaits; });
    }

    // All tiers have parked: they go on with the machine code that is there by now.
    Result<void> take_late_native() {
        bool is_new = false;
        for (usize i = 0; i < parts_.size(); i++) {
            if (!awaits_[i]) continue;
            const Burst::Late late = parts_[i].late_native({});
            native_[i].insert(native_[i].end(), late.parts.begin(), late.parts.end());
            awaits_[i] = !late.is_last;
            is_new |= !late.parts.empty();
        }
        if (!is_new) return {};
        for (usize i = 0; i < parts_.size(); i++)
            memory_[i].entries = TRY(device_.upload_entries(native_[i], parts_[i].code.size()));
        const Kernel* kernel = TRY(device_.native_kernel(device_.burst_target(layout_)));
        for (const auto& tier : tiers_) {
            tier->gang = kernel;
            for (usize i = 0; i < tier->table.size(); i++)
                tier->table[i].native = memory_[tier->levels[i].part].entries.addresses;
            TRY(device_.copy_in(tier->rows.at(), tier->table.data(),
                                tier->table.size() * sizeof(BurstPart)));
        }
        return device_.synchronize("going on with machine code");
    }

    u64 not_begun() const {
        u64 count = 0;
        for (const Level& level : tiers_[0]->levels)
            count += ends_[level.part] - std::min<u64>(ends_[level.part], level.begun);
        return count;
    }
    // Lanes take no more processes: those that have one go on to their end.
    Result<void> begin_no_more() {
        has_enough_ = true;
        Tier& first = *tiers_[0];
        for (usize i = 0; i < first.levels.size(); i++) {
            u32& end = ends_[first.levels[i].part];
            end = u32(std::min<u64>(end, first.levels[i].begun));
            first.table[i].processes = end;
        }
        TRY(device_.copy_in(first.rows.at(), first.table.data(),
                            first.table.size() * sizeof(BurstPart)));
        return device_.synchronize("ending a range of processes");
    }

    // ---- sizes ---------------------------------------------------------------------

    static constexpr u32 tier_bits = 2, last_tier = 6;

    SlotSize size_of(const Burst& part, u32 tier, u64 free) const {
        SlotSize size;
        if (tier >= last_tier) return size;
        size.stack_slots = gang_stack_slots << tier_bits * tier;
        u64 count = std::max<u64>(1, part.memories.size()) *
                    std::min<u64>(part.planned(), device_.info().lanes);
        u64 least = 0;
        for (const BurstMemory& memory : part.memories) {
            u64 bytes = u64(part.words[memory.record + memory_bytes + 1]) << 32 |
                        part.words[memory.record + memory_bytes];
            // Allocators of programs take a page or more before they give anything out.
            least = std::max(least, bytes + std::max<u64>(bytes / 4, u64{4} << page_bits));
            if (2 * bytes <= free / 2 / count) least = std::max(least, 2 * bytes);
        }
        // Few processes may have more at once.
        u64 share = std::min<u64>(free / 4 / count, 4 << 20);
        size.memory_bytes = std::max(least, share) << tier_bits * tier;
        return size;
    }

    // False: not even one warp of each fits.
    Result<bool> plan(Tier& tier, std::span<const u64> processes) {
        // The driver takes local memory for all lanes that could ever be resident.
        u32 local_bytes = tier.gang->local_bytes;
        if (is_native() || awaits_native())
            local_bytes = std::max(local_bytes, device_.native_params(parts_[0].tier).stack_bytes);
        u64 free = TRY(device_.free_memory()), local = u64(local_bytes) * device_.info().lanes;
        bool may_grow = false;
        std::vector<Plan> plans(tier.levels.size());
        double least = 0;
        for (usize i = 0; i < plans.size(); i++) {
            const SlotLayout& slot = tier.levels[i].slot;
            may_grow |= slot.clipped != 0;
            plans[i].layout = layout_;
            plans[i].lanes = 1;
            plans[i].words_per_warp = u64(slot.words.size()) * 4 * warp_lanes;
            plans[i].bytes_per_lane = slot.bytes_per_process;
            least += plans[i].warp_size();
        }
        double room = double(free - std::min(free, local)) * 0.95;
        if (least > room) return false;
        // What is left is for those that outgrow their slots.
        if (may_grow) room = std::max(least, room * (tier.number == 0 ? 0.67 : 0.5));
        spread(plans, processes,
               u64(tier.gang->blocks_per_multiprocessor) * device_.info().multiprocessors *
                   (block_lanes / warp_lanes),
               room);
        for (usize i = 0; i < plans.size(); i++) {
            Level& level = tier.levels[i];
            level.plan = plans[i];
            // A range has as many lanes in a warp as the whole burst, in fewer warps.
            const u64 needed = (parts_[level.part].processes + plans[i].lanes - 1) / plans[i].lanes;
            level.plan.warps = std::min(plans[i].warps, std::max<u64>(1, needed));
        }
        return true;
    }

    Result<std::string> describe_need(const Tier& tier) {
        u64 needed = 0, free = TRY(device_.free_memory());
        for (const Level& level : tier.levels)
            needed += u64(level.slot.words.size()) * 4 * warp_lanes +
                      level.slot.bytes_per_process * (layout_ == Layout::linear ? 1 : warp_lanes);
        return format(
            "not enough device memory: a warp of processes takes %llu MiB at the least, %llu of "
            "%llu MiB are free; a smaller --memory or --stack asks for less",
            (unsigned long long)(needed >> 20), (unsigned long long)(free >> 20),
            (unsigned long long)(device_.info().memory_total >> 20));
    }

    // ---- a tier --------------------------------------------------------------------

    Result<BurstPart> make_part(Level& level, const Level* source, u32 first_warp) {
        const Burst& part = parts_[level.part];
        const PartMemory& m = memory_[level.part];
        const SlotLayout& slot = level.slot;
        const u64 lanes = level.lane_count(),
                  slots = level.plan.warps * level.plan.lanes_with_bytes();
        std::vector<u8> bytes = initial_bytes(part, slot);
        level.template_words =
            TRY(device_.upload(std::span<const u32>(slot.words), "the template"));
        level.template_bytes = TRY(device_.upload(std::span<const u8>(bytes), "the template"));
        level.begun = source ? 0 : part.first;
        const u32 first = u32(level.begun);
        level.next = TRY(device_.upload(std::span<const u32>(&first, 1), "a counter"));
        level.words = TRY(device_.allocate_zeroed(lanes * slot.words.size() * 4, "process words"));
        level.bytes = TRY(device_.allocate_zeroed(
            slots * slot.bytes_per_process + (layout_ == Layout::linear ? 0 : interleaved_unit),
            "process memories"));
        if (layout_ != Layout::linear &&
            (level.bytes.at() + level.bytes.size()) >> interleaved_address_bits != 0)
            return Error{"the driver's addresses are too large for --layout interleaved"};
        level.lanes = TRY(device_.allocate_zeroed(lanes * sizeof(LaneState), "lanes"));
        level.states.resize(lanes);
        BurstPart row{};
        row.code = m.code.at();
        row.words = level.words.at();
        row.bytes = level.bytes_at();
        row.template_words = level.template_words.at();
        row.template_bytes = level.template_bytes.at();
        // Both have what belongs to its first process at the beginning.
        row.arguments = m.arguments.at() - u64(part.first) * part.argument_words * 4;
        row.results = m.results.at() - u64(part.first) * outcome_.parts[level.part].stride * 4;
        row.next = level.next.at();
        row.system = address_of(part.system);
        row.lanes_at = level.lanes.at();
        row.native = m.entries.addresses;
        if (source) {
            row.source_words = source->words.at();
            row.source_bytes = source->bytes_at();
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
        row.processes = ends_[level.part];
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

    // False: there is no room for it.
    Result<bool> prepare(Tier& tier, std::span<const u64> processes) {
        const u64 free = TRY(device_.free_memory());
        bool is_deep = false;
        for (Level& level : tier.levels) {
            const Burst& part = parts_[level.part];
            level.slot = lay_out(part, size_of(part, tier.number, free));
            is_deep |= level.slot.stack_end - level.slot.stack > gang_stack_slots;
        }
        tier.gang = is_native() ? TRY(device_.native_kernel(device_.burst_target(layout_)))
                                : TRY(device_.gang_kernel(is_deep, layout_));
        if (!TRY(plan(tier, processes))) return false;
        for (Level& level : tier.levels) {
            tier.table.push_back(TRY(make_part(level, tier.source, tier.warps)));
            tier.warps += u32(level.plan.warps);
        }
        tier.rows = TRY(device_.upload(std::span<const BurstPart>(tier.table), "the parts"));
        tier.counters = TRY(device_.allocate_zeroed(sizeof(BurstCounters), "counters"));
        TRY(device_.synchronize("preparing the launch"));
        return true;
    }

    bool has_work(const Tier& tier) const {
        if (tier.held > 0) return true;
        // Once it is stopped, lanes only hand in what they have.
        if (control_.wants_stop()) return false;
        if (tier.source) return has_outgrown(*tier.source);
        for (const Level& level : tier.levels)
            if (level.begun < ends_[level.part]) return true;
        return false;
    }

    static bool has_outgrown(const Level& level) {
        return std::ranges::any_of(level.states, [](const LaneState& state) {
            return (state.flags & lane_has_outgrown) != 0;
        });
    }

    // Runs its processes until there is nothing to do, or others wait for their turn. False: there
    // was nothing.
    Result<bool> run_tier(Tier& tier) {
        constexpr std::chrono::milliseconds turn(50);
        if (!has_work(tier)) return false;
        PhaseTimer timer(Phase::prepare);
        std::vector<MovedProcess> moved;
        if (tier.source) moved = TRY(offer_outgrown(tier));
        for (Level& level : tier.levels) TRY(write_lanes(level));
        RunControl control = control_;
        for (const auto& other : tiers_)
            if (other.get() != &tier && has_work(*other)) control.slice = turn;
        if (awaits_native() || may_have_enough()) {
            const std::chrono::microseconds look(parts_[0].tier == device::Tier::early ? 1
                                                                                       : 200'000);
            control.slice = control.slice.count() > 0 ? std::min(control.slice, look) : look;
        }
        if (is_profiled()) {
            // What is over already is looked at when the launch has parked.
            constexpr std::chrono::microseconds soon(1);
            const auto left = std::chrono::ceil<std::chrono::microseconds>(
                next_sample_ - std::chrono::steady_clock::now());
            const std::chrono::microseconds look = std::max(soon, left);
            control.slice = control.slice.count() > 0 ? std::min(control.slice, look) : look;
        }
        TRY(launch(tier, control));
        for (Level& level : tier.levels) TRY(read_lanes(level));
        for (u64 i = 0; i < std::min<u64>(moved.size(), tier.levels[0].begun); i++)
            tier.source->states[moved[i].slot].flags &= ~(lane_has_outgrown | lane_has_process);
        if (!moved.empty()) tier.source->is_changed = true;
        if (control_.wants_stop()) return true;
        if (is_profiled()) TRY(sample_lanes(tier));
        if (awaits_native()) TRY(take_late_native());
        if (may_have_enough() && control_.is_enough(not_begun())) TRY(begin_no_more());
        for (Level& level : tier.levels) {
            TRY(serve_lanes(level));
            if (has_outgrown(level)) TRY(find_room(tier, level));
        }
        return true;
    }

    // The processes that lanes of a tier may take this time.
    Result<std::vector<MovedProcess>> offer_outgrown(Tier& tier) {
        std::vector<MovedProcess> moved;
        if (!control_.wants_stop())
            for (u32 slot = 0; slot < tier.source->states.size(); slot++)
                if (const LaneState& state = tier.source->states[slot];
                    state.flags & lane_has_outgrown)
                    moved.push_back({slot, state.id});
        tier.moved = TRY(device_.upload(std::span<const MovedProcess>(moved), "a list"));
        BurstPart& row = tier.table[0];
        row.moved = tier.moved.at();
        row.processes = u32(moved.size());
        const u32 first = 0;
        TRY(device_.copy_in(tier.levels[0].next.at(), &first, sizeof first));
        TRY(device_.copy_in(tier.rows.at(), &row, sizeof row));
        TRY(device_.synchronize("preparing the launch"));
        return moved;
    }

    // A tier for what has outgrown `level`. Where there is no room, processes stay, and growing
    // fails.
    Result<void> find_room(const Tier& tier, Level& level) {
        for (const auto& other : tiers_)
            if (other->source == &level) return {};
        outcome_.has_outgrown = true;
        u64 count = 0;
        for (const LaneState& state : level.states) count += (state.flags & lane_has_outgrown) != 0;
        // Others may follow.
        count = std::min<u64>(parts_[level.part].processes, std::max<u64>(256, 8 * count));
        auto larger = std::make_unique<Tier>();
        larger->number = tier.number + 1;
        larger->source = &level;
        larger->levels.resize(1);
        larger->levels[0].part = level.part;
        if (TRY(prepare(*larger, {&count, 1}))) {
            tiers_.push_back(std::move(larger));
            return {};
        }
        for (LaneState& state : level.states) {
            if (!(state.flags & lane_has_outgrown)) continue;
            state.flags = (state.flags & ~lane_has_outgrown) | lane_stays;
            level.is_changed = true;
        }
        return {};
    }

    Result<void> launch(Tier& tier, const RunControl& control) {
        PhaseTimer timer(Phase::run);
        auto start = std::chrono::steady_clock::now();
        BurstCounters counted{};
        TRY(device_.copy_in(tier.counters.at(), &counted, sizeof counted));
        BurstParams params{tier.rows.at(),     device_.stop_word().at(),
                           tier.counters.at(), u32(tier.levels.size()),
                           parts_[0].spoilt,   device_.native_params(parts_[0].tier)};
        TRY(device_.pass_on_stop(control));
        u32 blocks = (tier.warps * warp_lanes + block_lanes - 1) / block_lanes;
        TRY(device_.launch(*tier.gang, blocks, block_lanes, 0, &params));
        std::function<Result<void>()> look;
        if (control_.progress) look = [&] { return tell_progress(tier); };
        std::optional<double> stop_seconds =
            TRY(device_.wait(control, tier.counters.at() + offsetof(BurstCounters, waiting), look));
        if (stop_seconds) outcome_.stop_seconds = outcome_.stop_seconds.value_or(0) + *stop_seconds;
        outcome_.launches++;
        TRY(device_.copy_out(&counted, tier.counters.at(), sizeof counted));
        tier.held = counted.held;
        busy_cycles_ += double(counted.busy_lane_cycles);
        lane_cycles_ += double(counted.longest_warp) * tier.warps * warp_lanes;
        outcome_.kernel_seconds += device_.seconds_of(counted.longest_warp);
        outcome_.seconds +=
            std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        return {};
    }

    // Tells how many processes have ended at the least, while `running` runs: those that lanes have
    // begun, less one for every lane that may still have one.
    Result<void> tell_progress(const Tier& running) {
        u64 begun = 0, lanes = 0;
        for (const auto& tier : tiers_)
            for (const Level& level : tier->levels) {
                lanes += level.lane_count();
                if (tier->source) continue;  // its processes were begun elsewhere
                u32 next = u32(level.begun);
                if (tier.get() == &running)
                    TRY(device_.stop_word().peek(level.next.at(), &next, sizeof next));
                begun += std::min(next, ends_[level.part]) - parts_[level.part].first;
            }
        control_.progress(begun > lanes ? begun - lanes : 0);
        return {};
    }

    bool is_profiled() const {
        return std::ranges::any_of(parts_, [](const Burst& part) { return bool(part.sample); });
    }

    // Looks at stacks of lanes that ran when the kernel parked, if it is time for that.
    Result<void> sample_lanes(const Tier& tier) {
        using std::chrono::steady_clock;
        const auto begin = steady_clock::now();
        if (begin < next_sample_) return {};
        for (const Level& level : tier.levels) {
            const Burst& part = parts_[level.part];
            if (!part.sample) continue;
            std::vector<u64> running;
            for (u64 slot = 0; slot < level.states.size(); slot++)
                if ((level.states[slot].flags & ~lane_is_used) == lane_has_process)
                    running.push_back(slot);
            const Sampled chosen = choose_sampled(running.size(), samples_taken_++);
            for (u64 i = chosen.first; i < running.size(); i += chosen.step) {
                CudaWaiting process(device_, part, level, running[i], level.states[running[i]]);
                TRY(part.sample(process, chosen.step));
            }
        }
        const auto end = steady_clock::now();
        next_sample_ = end + sample_pause(sample_every, end - begin);
        return {};
    }

    // What lanes of a parked kernel wait for.
    Result<void> serve_lanes(Level& level) {
        const Burst& part = parts_[level.part];
        for (u64 slot = 0; slot < level.states.size(); slot++) {
            LaneState& state = level.states[slot];
            if (!(state.flags & lane_waits_for_host)) continue;
            CudaWaiting process(device_, part, level, slot, state);
            if (!TRY(look_at(process, level, state.id)) && part.serve) TRY(part.serve(process));
            state.flags &= ~lane_waits_for_host;
            level.is_changed = true;
        }
        return {};
    }

    // False: it has not trapped. Its instruction traps once more when it goes on.
    Result<bool> look_at(CudaWaiting& process, Level& level, u32 id) {
        const Burst& part = parts_[level.part];
        if (!part.look) return false;
        u32 state = 0;
        TRY(process.read_words(part.thread + thread_state, {&state, 1}));
        if (ThreadState(state) != ThreadState::trapped) return false;
        TRY(process.write_word(part.thread + thread_is_looked_at, 0));
        if (TRY(part.look(process, id))) return true;
        // Enough: processes that begin from now on end by themselves.
        const u32 no = 0;
        TRY(device_.copy_in(level.template_words.at() + u64(part.thread + thread_is_looked_at) * 4,
                            &no, sizeof no));
        TRY(device_.synchronize("writing the template"));
        return true;
    }

    Result<void> read_lanes(Level& level) {
        u32 begun = 0;
        TRY(device_.copy_out(&begun, level.next.at(), sizeof begun));
        level.begun = begun;
        return device_.copy_out(level.states.data(), level.lanes.at(),
                                level.states.size() * sizeof(LaneState));
    }
    Result<void> write_lanes(Level& level) {
        if (!level.is_changed) return {};
        level.is_changed = false;
        TRY(device_.copy_in(level.lanes.at(), level.states.data(),
                            level.states.size() * sizeof(LaneState)));
        return device_.synchronize("writing lanes");
    }

    CudaDevice& device_;
    std::span<const Burst> parts_;
    const RunControl& control_;
    Layout layout_ = Layout::linear;
    std::vector<PartMemory> memory_;
    // Of the parts: what they have of machine code, and whether more will come.
    std::vector<std::vector<NativePart>> native_;
    std::vector<bool> awaits_;
    std::vector<u32> ends_;  // and behind the last process that may begin
    bool has_enough_ = false;
    std::vector<std::unique_ptr<Tier>> tiers_;
    BurstOutcome outcome_;
    double busy_cycles_ = 0, lane_cycles_ = 0;
    // To park, and to go on, takes some milliseconds where there are many lanes.
    static constexpr std::chrono::milliseconds sample_every{50};
    std::chrono::steady_clock::time_point next_sample_ =
        std::chrono::steady_clock::now() + sample_every;
    u64 samples_taken_ = 0;
};

}  // namespace

Result<BurstOutcome> CudaDevice::run_burst(std::span<const Burst> parts,
                                           const RunControl& control) {
    return BurstRun(*this, parts, control).run();
}

}  // namespace gpurun::device
