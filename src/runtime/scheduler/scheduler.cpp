// Gives each warp of a launch its part, and parks the machine when all have left.
#include "runtime/scheduler/scheduler.h"

#include "runtime/mailbox/mailbox.h"
#include "runtime/process/processes.h"
#include "runtime/scheduler/warps.h"

namespace gpurun::rt {

[[gnu::always_inline]] void run_machine(const MachineParams& params, u32 warp, u8* stack_limit) {
    u8* system = reinterpret_cast<u8*>(params.system);
    auto* header =
        reinterpret_cast<MachineHeader*>(system + reinterpret_cast<SystemHeader*>(system)->machine);
    Leftovers leftovers;
    const Machine m(system, reinterpret_cast<u8*>(params.pages), header, &leftovers);
    if (warp == mailbox_warp) {
        serve_mailbox(m, *reinterpret_cast<Mailbox*>(params.mailbox), params.until);
    } else if (warp == clock_warp) {
        run_clock(m, warp, params.until);
    } else {
        run_worker(m, warp, params.until, stack_limit);
    }
    sync_warp();
    // The last one leaves everything as the next launch wants it.
    if (lane_id() == 0 && fetch_add(&header->parked_warps, u32{1}) + 1 == header->warp_count) {
        store_relaxed(&header->parked_warps, u32{0});
        store_shared(&header->stop, u32{stop_none});
    }
}

}  // namespace gpurun::rt
