// Launches the stages of a burst in turns, and does what the host has to do between launches.
#include "burst/run.h"

#include <cstddef>

#include "base/phases.h"
#include "burst/host_part.h"

namespace gpurun::burst {
namespace {

using device::BurstOutcome;
using device::RunControl;
using std::chrono::steady_clock;

class BurstRun {
public:
    BurstRun(KernelDevice& device, std::span<const Burst> bursts, const RunControl& control)
        : device_(device), bursts_(bursts), control_(control), host_(device, bursts) {}

    Result<BurstOutcome> run() {
        PhaseTimer timer(Phase::prepare);
        TRY(begin());
        for (bool has_run = true; has_run;) {
            has_run = false;
            for (usize i = 0; i < stages_.size(); i++) has_run |= TRY(run_stage(*stages_[i]));
        }
        if (lane_cycles_ > 0) outcome_.busy = busy_cycles_ / lane_cycles_;
        for (const Part& part : parts_) {
            device::BurstResults& results = outcome_.parts.emplace_back();
            results.stride = part.burst->result_stride();
            results.words.resize(usize(part.end - part.burst->first) * results.stride);
            TRY(device_.copy_out(results.words.data(), part.results.at(),
                                 results.words.size() * 4));
        }
        return std::move(outcome_);
    }

private:
    // Makes the first stage, which has processes of all parts.
    Result<void> begin() {
        parts_ = TRY(upload_parts(device_, bursts_));
        auto first = std::make_unique<Stage>();
        first->slots.resize(parts_.size());
        std::vector<u64> processes;
        for (usize i = 0; i < parts_.size(); i++) {
            first->slots[i].part = i;
            processes.push_back(bursts_[i].planned());
        }
        const Layout layout = outcome_.layout = bursts_[0].layout;
        if (!TRY(prepare(device_, parts_, *first, processes)))
            return Error{TRY(describe_need(device_, *first, layout))};
        for (const SlotGroup& slots : first->slots)
            outcome_.slots += u32(slots.plan.warps * slots.plan.lanes);
        stages_.push_back(std::move(first));
        return {};
    }

    bool has_work(const Stage& stage) const {
        if (stage.busy_lanes > 0) return true;
        // After a stop, lanes only write the results of their processes.
        if (control_.wants_stop()) return false;
        if (stage.source) return stage.source->has_outgrown();
        return std::ranges::any_of(stage.slots, [&](const SlotGroup& slots) {
            return slots.begun < parts_[slots.part].end;
        });
    }

    // Runs the processes of a stage until there is nothing to do, or other stages wait for their
    // turn. Returns false if there was nothing to do.
    Result<bool> run_stage(Stage& stage) {
        if (!has_work(stage)) return false;
        PhaseTimer timer(Phase::prepare);
        std::vector<MovedProcess> moved;
        if (stage.source) moved = TRY(offer_outgrown(stage));
        for (SlotGroup& slots : stage.slots) TRY(write_lanes(device_, slots));
        RunControl control = control_;
        control.slice = slice_of(stage);
        TRY(launch(stage, control));
        for (SlotGroup& slots : stage.slots) TRY(read_lanes(device_, slots));
        if (stage.source) take_away(*stage.source, moved, stage.slots[0].begun);
        if (control_.wants_stop()) return true;
        if (host_.is_profiled()) TRY(host_.sample(parts_, stage));
        if (awaits_native(parts_)) TRY(take_late_native());
        if (may_have_enough() && control_.is_enough(not_begun())) TRY(begin_no_more());
        for (SlotGroup& slots : stage.slots) {
            TRY(host_.serve(parts_[slots.part], slots));
            if (slots.has_outgrown()) TRY(find_room(stage, slots));
        }
        return true;
    }

    // Returns how long a launch runs until it parks, or 0 if it runs until all lanes wait or have
    // ended.
    std::chrono::microseconds slice_of(const Stage& stage) const {
        using std::chrono::microseconds;
        constexpr std::chrono::milliseconds turn(50);
        microseconds slice = control_.slice;
        auto shorten = [&](microseconds to) {
            slice = slice.count() > 0 ? std::min(slice, to) : to;
        };
        for (const auto& other : stages_)
            if (other.get() != &stage && has_work(*other)) slice = turn;
        if (awaits_native(parts_) || may_have_enough())
            shorten(microseconds(bursts_[0].tier == device::Tier::early ? 1 : 200'000));
        if (host_.is_profiled()) shorten(host_.sample_slice());
        return slice;
    }

    Result<void> launch(Stage& stage, const RunControl& control) {
        PhaseTimer timer(Phase::run);
        const auto start = steady_clock::now();
        BurstCounters counted{};
        TRY(device_.copy_in(stage.counters.at(), &counted, sizeof counted));
        const BurstParams params{stage.rows.at(),     0,
                                 stage.counters.at(), u32(stage.slots.size()),
                                 bursts_[0].spoilt,   device_.native_params(bursts_[0].tier)};
        TRY(device_.launch_burst(stage.kernel, stage.warps, params, control));
        std::function<Result<void>()> look;
        if (control_.progress) look = [&] { return tell_progress(stage); };
        const std::optional<double> stop_seconds = TRY(
            device_.wait(control, stage.counters.at() + offsetof(BurstCounters, waiting), look));
        if (stop_seconds) outcome_.stop_seconds = outcome_.stop_seconds.value_or(0) + *stop_seconds;
        outcome_.launches++;
        TRY(device_.copy_out(&counted, stage.counters.at(), sizeof counted));
        stage.busy_lanes = counted.busy_lanes;
        busy_cycles_ += double(counted.busy_lane_cycles);
        lane_cycles_ += double(counted.longest_warp) * stage.warps * device_.info().warp_lanes;
        outcome_.kernel_seconds += device_.seconds_of(counted.longest_warp);
        outcome_.seconds += std::chrono::duration<double>(steady_clock::now() - start).count();
        return {};
    }

    // Reports how many processes have ended at least, while `running` runs: those that lanes have
    // begun, less one for every lane that may still have one.
    Result<void> tell_progress(const Stage& running) {
        u64 begun = 0, lanes = 0;
        for (const auto& stage : stages_)
            for (const SlotGroup& slots : stage->slots) {
                lanes += slots.lane_count();
                if (stage->source) continue;  // its processes were begun elsewhere
                u32 next = u32(slots.begun);
                if (stage.get() == &running) TRY(device_.peek(&next, slots.next.at(), sizeof next));
                const Part& part = parts_[slots.part];
                begun += std::min(next, part.end) - part.burst->first;
            }
        control_.progress(begun > lanes ? begun - lanes : 0);
        return {};
    }

    // ---- larger slots --------------------------------------------------------------

    // Offers the processes that have outgrown a stage's source to the lanes of the stage. Returns
    // them.
    Result<std::vector<MovedProcess>> offer_outgrown(Stage& stage) {
        std::vector<MovedProcess> moved;
        if (!control_.wants_stop())
            for (u32 lane = 0; lane < stage.source->states.size(); lane++)
                if (const LaneState& state = stage.source->states[lane];
                    state.flags & lane_has_outgrown)
                    moved.push_back({lane, state.id});
        stage.moved = TRY(device_.upload(std::span<const MovedProcess>(moved), "a list"));
        stage.table[0].moved = stage.moved.at();
        stage.table[0].processes = u32(moved.size());
        const u32 first = 0;
        TRY(device_.copy_in(stage.slots[0].next.at(), &first, sizeof first));
        TRY(write_table(device_, stage, "preparing the launch"));
        return moved;
    }

    // Frees the slots of the first `taken` processes, which lanes of a larger stage have taken.
    static void take_away(SlotGroup& source, std::span<const MovedProcess> moved, u64 taken) {
        for (u64 i = 0; i < std::min<u64>(moved.size(), taken); i++)
            source.states[moved[i].slot].flags &= ~(lane_has_outgrown | lane_has_process);
        if (!moved.empty()) source.is_changed = true;
    }

    // Makes a stage for processes that have outgrown `slots`. If there is no room for it, they stay
    // where they are, and what they asked for fails.
    Result<void> find_room(const Stage& stage, SlotGroup& slots) {
        for (const auto& other : stages_)
            if (other->source == &slots) return {};
        outcome_.has_outgrown = true;
        u64 count = 0;
        for (const LaneState& state : slots.states) count += (state.flags & lane_has_outgrown) != 0;
        // More processes may outgrow their slots later.
        count = std::min<u64>(bursts_[slots.part].processes, std::max<u64>(256, 8 * count));
        auto larger = std::make_unique<Stage>();
        larger->number = stage.number + 1;
        larger->source = &slots;
        larger->slots.resize(1);
        larger->slots[0].part = slots.part;
        if (TRY(prepare(device_, parts_, *larger, {&count, 1}))) {
            stages_.push_back(std::move(larger));
            return {};
        }
        for (LaneState& state : slots.states) {
            if (!(state.flags & lane_has_outgrown)) continue;
            state.flags = (state.flags & ~lane_has_outgrown) | lane_stays;
            slots.is_changed = true;
        }
        return {};
    }

    // ---- what comes while it runs --------------------------------------------------

    // Lets all stages, which have parked, go on with the machine code that is there by now.
    Result<void> take_late_native() {
        bool is_new = false;
        for (Part& part : parts_) {
            if (!part.awaits_native) continue;
            const Burst::Late late = part.burst->late_native({});
            part.native.insert(part.native.end(), late.parts.begin(), late.parts.end());
            part.awaits_native = !late.is_last;
            is_new |= !late.parts.empty();
        }
        if (!is_new) return {};
        for (Part& part : parts_)
            part.entries = TRY(device_.upload_entries(part.native, part.burst->code.size()));
        const device::BurstKernel kernel =
            TRY(device_.burst_kernel({true, false, outcome_.layout}));
        for (const auto& stage : stages_) {
            stage->kernel = kernel;
            for (usize i = 0; i < stage->table.size(); i++)
                stage->table[i].native = parts_[stage->slots[i].part].entries.addresses;
            TRY(device_.copy_in(stage->rows.at(), stage->table.data(),
                                stage->table.size() * sizeof(BurstPart)));
        }
        return device_.synchronize("going on with machine code");
    }

    // Returns true if RunControl::is_enough may still keep processes from beginning.
    bool may_have_enough() const { return control_.is_enough && !has_enough_; }
    u64 not_begun() const {
        u64 count = 0;
        for (const SlotGroup& slots : stages_[0]->slots) {
            const u64 end = parts_[slots.part].end;
            count += end - std::min(end, slots.begun);
        }
        return count;
    }
    // Keeps lanes from taking more processes. Those that have one go on to its end.
    Result<void> begin_no_more() {
        has_enough_ = true;
        Stage& first = *stages_[0];
        for (usize i = 0; i < first.slots.size(); i++) {
            u32& end = parts_[first.slots[i].part].end;
            end = u32(std::min<u64>(end, first.slots[i].begun));
            first.table[i].processes = end;
        }
        return write_table(device_, first, "ending a range of processes");
    }

    KernelDevice& device_;
    const std::span<const Burst> bursts_;
    const RunControl& control_;
    HostPart host_;
    std::vector<Part> parts_;
    std::vector<std::unique_ptr<Stage>> stages_;
    bool has_enough_ = false;
    BurstOutcome outcome_;
    double busy_cycles_ = 0, lane_cycles_ = 0;
};

}  // namespace

Result<BurstOutcome> run(KernelDevice& device, std::span<const Burst> parts,
                         const RunControl& control) {
    if (parts.empty()) return BurstOutcome{};
    return BurstRun(device, parts, control).run();
}

}  // namespace gpurun::burst
