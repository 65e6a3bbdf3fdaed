#include "burst/host_part.h"

namespace gpurun::burst {

using std::chrono::steady_clock;

std::chrono::microseconds HostPart::sample_slice() const {
    // What is over already is looked at when the launch has parked.
    constexpr std::chrono::microseconds soon(1);
    return std::max(
        soon, std::chrono::ceil<std::chrono::microseconds>(next_sample_ - steady_clock::now()));
}

Result<void> HostPart::sample(std::span<const Part> parts, const Stage& stage) {
    const auto begin = steady_clock::now();
    if (begin < next_sample_) return {};
    for (const Slots& slots : stage.slots) {
        const Burst& burst = *parts[slots.part].burst;
        if (!burst.sample) continue;
        std::vector<u64> running;
        for (u64 lane = 0; lane < slots.states.size(); lane++)
            if ((slots.states[lane].flags & ~lane_is_used) == lane_has_process)
                running.push_back(lane);
        const device::Sampled chosen = device::choose_sampled(running.size(), samples_taken_++);
        for (u64 i = chosen.first; i < running.size(); i += chosen.step) {
            LaneProcess process(device_, burst, slots, running[i]);
            TRY(burst.sample(process, chosen.step));
        }
    }
    const auto end = steady_clock::now();
    next_sample_ = end + device::sample_pause(sample_every, end - begin);
    return {};
}

Result<void> HostPart::serve(const Part& part, Slots& slots) {
    const Burst& burst = *part.burst;
    for (u64 lane = 0; lane < slots.states.size(); lane++) {
        LaneState& state = slots.states[lane];
        if (!(state.flags & lane_waits_for_host)) continue;
        LaneProcess process(device_, burst, slots, lane);
        if (!TRY(look_at(process, burst, slots)) && burst.serve) TRY(burst.serve(process));
        state.flags &= ~lane_waits_for_host;
        slots.is_changed = true;
    }
    return {};
}

// Shows a process that trapped to whoever wants to see it. Its instruction traps once more when it
// goes on. Returns false if it has not trapped.
Result<bool> HostPart::look_at(LaneProcess& process, const Burst& burst, const Slots& slots) {
    if (!burst.look) return false;
    u32 state = 0;
    TRY(process.read_words(burst.thread + thread_state, {&state, 1}));
    if (ThreadState(state) != ThreadState::trapped) return false;
    TRY(process.write_word(burst.thread + thread_is_looked_at, 0));
    if (TRY(burst.look(process, process.id()))) return true;
    // Enough: processes that begin from now on end by themselves.
    const u32 no = 0;
    TRY(device_.copy_in(slots.template_words.at() + u64(burst.thread + thread_is_looked_at) * 4,
                        &no, sizeof no));
    TRY(device_.synchronize("writing the template"));
    return true;
}

}  // namespace gpurun::burst
