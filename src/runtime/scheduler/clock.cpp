// What the clock warp does: it wakes those whose time has come, and adds up what the warps do.
#include "runtime/machine/tasks.h"
#include "runtime/mailbox/mailbox.h"
#include "runtime/process/processes.h"
#include "runtime/scheduler/warps.h"

namespace gpurun::rt {
namespace {

// Wakes those whose time has come, and adds up what the warps do.
class Clock {
public:
    Clock(const Machine& m, u32 warp, u64 until) : m_(m), pulse_(m, warp, until) {}

    [[gnu::noinline]] void run() {
        while (pulse_.beat()) {
            const bool has_sleepers =
                shuffle(lane_id() == 0 ? load_relaxed(&m_.header->sleeping) : 0, 0) != 0;
            if (has_sleepers) wake_sleepers();
            if (pulse_.now() >= next_stats_) add_up();
            sleep_ns(has_sleepers ? 10'000 : longest_clock_nap_ns);
        }
    }

private:
    [[gnu::noinline]] void wake_sleepers() {
        constexpr u32 batch = 8;  // of each lane, on their way at the same time
        const u64 now = monotonic_ns(m_.nobody());
        const u32 end = shuffle(load_relaxed(&m_.header->tasks_used), 0) + 1;
        for (u32 first = 1; first < end; first += batch * warp_lanes) {
            u64 deadlines[batch];
            u32 due = 0;
#pragma clang loop unroll(full)
            for (u32 i = 0; i < batch; i++) {
                const u32 task = first + i * warp_lanes + lane_id();
                deadlines[i] = task < end ? load_relaxed(&m_.deadline(task)) : no_deadline;
            }
#pragma clang loop unroll(full)
            for (u32 i = 0; i < batch; i++) due |= u32(deadlines[i] <= now) << i;
            if (ballot(due != 0) == 0) continue;
            if (due != 0) one_by_one([&] { wake_due(first + lane_id(), due, now); });
            sync_warp();
            pulse_.get_on();
        }
    }
    // Tasks from `first` on, each a warp's lanes further than the one before.
    [[gnu::noinline]] void wake_due(u32 first, u32 due, u64 now) {
        for (; due != 0; due &= due - 1) {
            const u32 task = first + lowest(due) * warp_lanes;
            unblock(m_, task, Wake::timed_out,
                    [&] { return load_relaxed(&m_.deadline(task)) <= now; });
        }
    }

    static u64 sum(u64 mine) {
        u64 all = 0;
        for (u32 i = 0; i < warp_lanes; i++) all += shuffle(mine, i);
        return all;
    }
    static u64 most(u64 mine) {
        u64 all = 0;
        for (u32 i = 0; i < warp_lanes; i++) {
            const u64 other = shuffle(mine, i);
            if (other > all) all = other;
        }
        return all;
    }

    [[gnu::noinline]] void add_up() {
        next_stats_ = pulse_.now() + stats_every_ns;
        u64 busy = 0, lane_ns = 0, busy_ns = 0, age = 0, latest = 0, slowest = 0;
        for (u32 i = lane_id(); i < m_.header->warp_count; i += warp_lanes) {
            WarpEntry& warp = m_.warp(i);
            busy += load_relaxed(&warp.lanes_busy);
            lane_ns += load_relaxed(&warp.lane_ns);
            busy_ns += load_relaxed(&warp.busy_lane_ns);
            const u64 beat = load_relaxed(&warp.heartbeat), now = clock_ns();
            const u64 since = beat != 0 && now > beat ? now - beat : 0;
            if (since > age) age = since;
            auto note = [&](u64 late, const u32* phase) {
                if (late <= latest) return;
                latest = late;
                slowest = i | u64(load_relaxed(phase)) << 32;
            };
            note(load_relaxed(&warp.latest), &warp.latest_phase);
            note(since, &warp.phase);
        }
        u64 ready = 0;
        const u32 programs = load_relaxed(&m_.header->programs_used);
        for (u32 i = lane_id(); i < programs; i += warp_lanes)
            for (const RunQueue& queue : m_.program(i).queues) ready += queue_length(queue);
        busy = sum(busy), lane_ns = sum(lane_ns), busy_ns = sum(busy_ns), ready = sum(ready);
        const u64 mine = latest;
        age = most(age), latest = most(latest);
        slowest = most(mine == latest ? slowest : 0);
        if (lane_id() != 0) return;
        const MachineHeader& header = *m_.header;
        const SystemHeader& system = *reinterpret_cast<SystemHeader*>(m_.system);
        PageHeader& pages = *reinterpret_cast<PageHeader*>(m_.pages);
        MachineStats& stats = m_.header->stats;
        const u64 now = clock_ns();
        const u64 values[] = {now,
                              load_relaxed(&header.alive),
                              ready + busy + load_relaxed(&header.blocked_tasks),
                              ready,
                              load_relaxed(&header.blocked_tasks),
                              load_relaxed(&header.spawned),
                              load_relaxed(&header.ended),
                              u64(header.warp_count - first_worker) * header.lanes,
                              busy,
                              busy_ns,
                              lane_ns,
                              (pages.pages - pages.first_page) << page_shift,
                              (load_relaxed(&pages.used_pages) - load_relaxed(&header.spare_pages))
                                  << page_shift,
                              system.size - system.base_end,
                              load_relaxed(&system.in_use),
                              age,
                              latest,
                              slowest};
        // The mailbox warp reads them one by one: figures for people.
        u64* to = &stats.now;
        for (u64 value : values) store_relaxed(to++, value);
    }

    const Machine& m_;
    Pulse pulse_;
    u64 next_stats_ = 0;
};

}  // namespace

[[gnu::always_inline]] void run_clock(const Machine& m, u32 warp, u64 until) {
    Clock(m, warp, until).run();
}

}  // namespace gpurun::rt
