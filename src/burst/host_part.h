// Does the host's part for processes that stand still: looks at stacks and at processes that
// trapped, and fulfils requests.
#pragma once

#include <chrono>

#include "burst/lane_process.h"

namespace gpurun::burst {

// Calls Burst::look for a process that trapped, and Burst::serve for any other. Returns false if
// enough processes that trapped have been seen.
Result<bool> answer(const Burst& burst, device::WaitingProcess& process, ThreadState state);

// Does the host's part while a kernel is parked.
class HostPart {
public:
    HostPart(KernelDevice& device, std::span<const Burst> bursts) : device_(device) {
        for (const Burst& burst : bursts) is_profiled_ |= bool(burst.sample);
    }

    // Returns true if somebody wants to see stacks; then a launch parks after sample_slice().
    bool is_profiled() const { return is_profiled_; }
    std::chrono::microseconds sample_slice() const;
    // Looks at stacks of lanes that ran when the kernel parked, if it is time for that.
    Result<void> sample(std::span<const Part> parts, const Stage& stage);
    // Does what lanes of a parked kernel wait for; they go on with the next launch.
    Result<void> serve(const Part& part, SlotGroup& slots);

private:
    Result<void> answer_lane(LaneProcess& process, const Burst& burst, const SlotGroup& slots);

    // Parking and going on takes some milliseconds where there are many lanes.
    static constexpr std::chrono::milliseconds sample_every{50};

    KernelDevice& device_;
    bool is_profiled_ = false;
    std::chrono::steady_clock::time_point next_sample_ =
        std::chrono::steady_clock::now() + sample_every;
    u64 samples_taken_ = 0;
};

}  // namespace gpurun::burst
