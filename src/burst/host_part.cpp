// Serves requests of waiting processes, looks at those that trapped, and samples stacks.
#include "burst/host_part.h"

namespace gpurun::burst {

using std::chrono::steady_clock;

Result<bool> answer(const Burst& burst, device::WaitingProcess& process, ThreadState state) {
    if (state == ThreadState::trapped)
        return burst.look ? burst.look(process, process.id()) : Result<bool>(true);
    if (burst.serve) TRY(burst.serve(process));
    return true;
}

std::chrono::microseconds HostPart::sample_slice() const {
    // A launch has to run for some time; if the time for a look has come, it parks at once.
    constexpr std::chrono::microseconds soon(1);
    return std::max(
        soon, std::chrono::ceil<std::chrono::microseconds>(next_sample_ - steady_clock::now()));
}

Result<void> HostPart::sample(std::span<const Part> parts, const Stage& stage) {
    const auto begin = steady_clock::now();
    if (begin < next_sample_) return {};
    for (const SlotGroup& slots : stage.slots) {
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

Result<void> HostPart::serve(const Part& part, SlotGroup& slots) {
    const Burst& burst = *part.burst;
    for (u64 lane = 0; lane < slots.states.size(); lane++) {
        LaneState& state = slots.states[lane];
        if (!(state.flags & lane_waits_for_host)) continue;
        LaneProcess process(device_, burst, slots, lane);
        TRY(answer_lane(process, burst, slots));
        state.flags &= ~lane_waits_for_host;
        slots.is_changed = true;
    }
    return {};
}

// Answers a process that has trapped or waits for the host. One that trapped does so again when it
// goes on, and then ends.
Result<void> HostPart::answer_lane(LaneProcess& process, const Burst& burst,
                                   const SlotGroup& slots) {
    u32 state = u32(ThreadState::host);
    if (burst.look) TRY(process.read_words(burst.thread + thread_state, {&state, 1}));
    if (ThreadState(state) == ThreadState::trapped)
        TRY(process.write_word(burst.thread + thread_is_looked_at, 0));
    if (TRY(answer(burst, process, ThreadState(state)))) return {};
    // Enough have been seen: processes that begin from now on do not wait when they trap.
    const u32 no = 0;
    TRY(device_.copy_in(slots.template_words.at() + u64(burst.thread + thread_is_looked_at) * 4,
                        &no, sizeof no));
    return device_.synchronize("writing the template");
}

}  // namespace gpurun::burst
