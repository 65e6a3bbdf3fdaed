// The kernel of a burst: lanes take processes, run them to their end, and take the next.
#include "runtime/kernels/burst_slots.h"

namespace gpurun::rt {
namespace {

#if GPURUN_NATIVE
// Machine code leaves after a millisecond if a lane of its warp had to wait for others before, and
// else after 35: lanes that leave at different places do not meet again when they go on.
constexpr s64 native_quantum = 1 << 20;
[[maybe_unused]] constexpr s64 long_native_quantum = 1 << 25;
#endif

// Where the memories of a lane's process begin.
u8* bytes_of(const BurstPart& part, u32 warp, u32 lane) {
    if (memories_interleave)
        return interleaved_pointer(part.bytes + u64(warp) * warp_lanes * part.bytes_per_process);
    return pointer<u8>(part.bytes) + (u64(warp) * part.lanes + lane) * part.bytes_per_process;
}

// The part of a burst that a warp works on.
const BurstPart& part_of(const BurstParams& params, u32 warp) {
    const BurstPart* part = pointer<const BurstPart>(params.parts);
    for (u32 i = 1; i < params.part_count && warp >= part->first_warp + part->warps; i++) part++;
    return *part;
}

}  // namespace

extern "C" [[clang::nvptx_kernel]] void gpurun_burst(BurstParams params) {
    const BurstPart& part = part_of(params, global_thread() / warp_lanes);
    u32 warp = global_thread() / warp_lanes - part.first_warp, lane = lane_id();
    if (warp >= part.warps) return;
    Process p{pointer<const u64>(part.code),
              pointer<u32>(part.words) + usize(warp) * part.words_per_process * warp_lanes + lane,
              bytes_of(part, warp, lane),
              nullptr,
              0,
              part.dirty_shift,
              pointer<u8>(part.system)};
#if GPURUN_LOCAL_STACK
    u32 stack[gang_stack_slots];
    p.stack = (StackWord*)stack;
    p.stack_begin = part.stack;
#else
    p.stack = p.words;
#endif
    const u64 start = cycles();
    u64 busy = 0;  // lane-cycles
#if GPURUN_NATIVE
    u8* const limit = stack_limit(params.tier.stack_bytes);
    bool others_waited = false;
#endif
    LaneState& saved = pointer<LaneState>(part.lanes_at)[warp * warp_lanes + lane];
    bool has_process = saved.flags & lane_has_process, is_asleep = saved.flags & lane_is_asleep,
         is_fresh = !(saved.flags & lane_is_used), has_more = true;
    // Both until the host has done its part.
    bool waits = false, has_outgrown = saved.flags & lane_has_outgrown;
    u32 id = saved.id;
    if (saved.flags & lane_stays) word(p.words, process_clipped) = 0;
    if (has_process) load_stack(part, p);
    for (;;) {
        u32 stop = shuffle(lane == 0 ? load_relaxed(pointer<const u32>(params.stop)) : 0, 0);
        const bool is_stopped = stop == stop_end;
        if (has_more && !is_stopped)
            has_more = take_processes(part, p, warp, has_process, is_fresh, id);
        if (stop == stop_park) break;
        // Done, or nothing to do before the host has done its part.
        if (ballot(has_process && (is_stopped || !(waits || has_outgrown))) == 0) break;
        if (is_asleep) is_asleep = !may_go_on(p, word_at(p.words, part.thread));
        bool can_run =
            has_process && !is_asleep && !waits && !has_outgrown && !lacks_memory(part, p);
        u32 running = ballot(can_run);
        // A warp with lanes to spare takes new processes once a quarter of them is idle.
        u32 enough = has_more ? part.lanes - (part.lanes + 3) / 4 : 0;
        if (popcount(running) <= enough) enough = 0;
        ThreadState state = ThreadState::ready;
        u64 begin = cycles();
        if (!is_stopped && running != 0)
#if GPURUN_NATIVE
            state = run_native(p, NativeTable(part.native), can_run ? part.thread : 0,
                               others_waited ? native_quantum : long_native_quantum, enough, limit,
                               params.tier.alternates, &others_waited);
#else
            state = run(p, can_run ? part.thread : 0, quantum, enough);
#endif
        else if (!is_stopped)
            sleep_ns(20'000);
        if (is_looked_at(part, p, state)) state = ThreadState::host;
        const bool falls_asleep = waits_for_time(word_at(p.words, part.thread), state);
        if (falls_asleep || state == ThreadState::host || state == ThreadState::outgrown) {
            is_asleep = falls_asleep;
            waits = state == ThreadState::host;
            has_outgrown = state == ThreadState::outgrown;
            if (!is_asleep) atom_add(&pointer<BurstCounters>(params.counters)->waiting, 1);
            state = ThreadState::ready;
        }
#if GPURUN_NATIVE
        others_waited |= ballot(is_asleep || waits) != 0;
#endif
        if (has_process && lacks_memory(part, p)) state = no_memory(p, part.thread);
        if (is_stopped && waits && has_trapped(part, p)) state = ThreadState::trapped;
        bool is_over = has_process && (state != ThreadState::ready || is_stopped);
        // Lanes that ended meanwhile count for half of it.
        u32 over = popcount(ballot(is_over));
        busy += (2 * popcount(running) - over) * (cycles() - begin) / 2;
        if (is_over) {
            if (part.is_watched && params.spoilt == id) spoil_canary(p);
            if (part.is_watched) verify_process(p, id);
            write_result(part, p, id, state);
            has_process = is_asleep = waits = has_outgrown = false;
        }
        sync_warp();
        if (is_stopped) break;
    }
    saved.flags = u32(has_process) * lane_has_process | u32(is_asleep) * lane_is_asleep |
                  u32(waits) * lane_waits_for_host | u32(has_outgrown) * lane_has_outgrown |
                  u32(!is_fresh) * lane_is_used;
    saved.id = id;
    if (has_process) saved.block = word(p.words, process_block);
    if (has_process) save_stack(part, p);
    const u32 busy_lanes = popcount(ballot(has_process));
    if (lane == 0) {
        BurstCounters* counters = pointer<BurstCounters>(params.counters);
        atom_add(&counters->busy_lane_cycles, busy);
        if (busy_lanes != 0) atom_add(&counters->busy_lanes, u64(busy_lanes));
        atom_max(&counters->longest_warp, cycles() - start);
    }
}

}  // namespace gpurun::rt
