// Finds ready tasks for the lanes of a warp: looks at queues, takes nothing from them.
#include "runtime/scheduler/pick.h"

namespace gpurun::rt {
namespace {

QueueLook shuffled(QueueLook mine, u32 from) {
    return {shuffle(mine.head, from), s32(shuffle(u32(mine.there), from))};
}

}  // namespace

ReadyQueue find_ready(const Machine& m, u32 count, u32 start, bool is_fair) {
    ReadyQueue best;
    u32 best_rank = queue_levels;
    for (u32 k = 0; k < count && best_rank > 0; k += warp_lanes) {
        const u32 mine = k + lane_id();
        u32 program = start + mine;
        if (program >= count) program -= count;
        // All are on their way at the same time.
        QueueLook seen[queue_levels];
#pragma clang loop unroll(full)
        for (u32 rank = 0; rank < queue_levels; rank++)
            if (mine < count)
                seen[rank] =
                    look_at(m.program(program).queues[is_fair ? queue_levels - 1 - rank : rank]);
#pragma clang loop unroll(full)
        for (u32 rank = 0; rank < queue_levels; rank++) {
            const u32 found = ballot(seen[rank].there > 0);
            if (found == 0 || rank >= best_rank) continue;
            const u32 from = lowest(found);
            best = {shuffle(program, from), is_fair ? queue_levels - 1 - rank : rank,
                    shuffled(seen[rank], from)};
            best_rank = rank;
        }
    }
    return best;
}

ReadyQueue find_ready(const Machine& m, u32 program, bool is_fair) {
    static_assert(warp_lanes == 1 || warp_lanes >= queue_levels);  // one alone has no gang
    QueueLook seen;
    if (lane_id() < queue_levels) seen = look_at(m.program(program).queues[lane_id()]);
    const u32 found = ballot(seen.there > 0);
    if (found == 0) return {};
    const u32 level = is_fair ? 31 - u32(__builtin_clz(found)) : lowest(found);
    return {program, level, shuffled(seen, level)};
}

}  // namespace gpurun::rt
