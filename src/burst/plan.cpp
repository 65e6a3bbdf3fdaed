// Shares lanes and memory out to the parts of a burst.
#include "burst/plan.h"

#include "abi/code.h"

namespace gpurun::burst {
namespace {

// Returns a plan with as many slots as there is room for. Of such plans it is the one with the most
// warps, since lanes of one warp wait for each other.
Plan fit(const Plan& wanted, double room, u64 processes) {
    Plan best = wanted;
    u64 most = 0;
    for (u32 count = 1; count <= wanted.warp_lanes; count *= 2) {
        Plan plan = wanted;
        plan.lanes = count;
        u64 fitting = u64(room / plan.warp_size());
        plan.warps = std::min({wanted.warps, fitting, (processes + count - 1) / count});
        if (plan.warps * count <= most) continue;
        most = plan.warps * count;
        best = plan;
    }
    best.warps = std::max<u64>(best.warps, 1);
    return best;
}

}  // namespace

SlotSize slot_size(const Burst& part, u32 stage, u64 lanes, u64 free) {
    constexpr u32 stage_bits = 2, last_stage = 6;
    SlotSize size;
    if (stage >= last_stage) return size;
    size.stack_slots = gang_stack_slots << stage_bits * stage;
    u64 count = std::max<u64>(1, part.memories.size()) * std::min<u64>(part.planned(), lanes);
    u64 least = 0;
    for (const device::BurstMemory& memory : part.memories) {
        u64 bytes = code_pair(part.words[memory.record + memory_bytes],
                              part.words[memory.record + memory_bytes + 1]);
        // Allocators of programs take a page or more before their first allocation.
        least = std::max(least, bytes + std::max<u64>(bytes / 4, u64{4} << page_bits));
        if (2 * bytes <= free / 2 / count) least = std::max(least, 2 * bytes);
    }
    // Few processes may have more memory from the beginning.
    u64 share = std::min<u64>(free / 4 / count, 4 << 20);
    size.memory_bytes = std::max(least, share) << stage_bits * stage;
    return size;
}

void spread(std::span<Plan> plans, std::span<const u64> processes, u64 resident, double room) {
    u64 all = 0;
    for (u64 count : processes) all += count;
    double needed = 0;
    for (usize i = 0; i < plans.size(); i++) {
        Plan& plan = plans[i];
        u64 share =
            all <= resident ? processes[i] : u64(double(resident) * double(processes[i]) / all);
        plan.warps = std::max<u64>(1, share);
        // Few processes get a warp each, so that none waits for another.
        plan.lanes =
            u32(std::clamp<u64>((processes[i] + plan.warps - 1) / plan.warps, 1, plan.warp_lanes));
        plan.warps = std::min<u64>(plan.warps, (processes[i] + plan.lanes - 1) / plan.lanes);
        needed += plan.size();
    }
    if (needed <= room) return;
    for (usize i = 0; i < plans.size(); i++)
        plans[i] = fit(plans[i], plans[i].size() * room / needed, processes[i]);
}

}  // namespace gpurun::burst
