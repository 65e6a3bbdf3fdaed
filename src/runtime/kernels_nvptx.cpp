// The kernels: how the lanes of an NVIDIA GPU get processes to run. One translation unit with
// the whole runtime in it.
#include "abi/burst.h"

// Nothing but the kernels is visible from outside, so that what is not used is not there.
#pragma clang attribute push(__attribute__((internal_linkage)), apply_to = function)
#include "runtime/access.cpp"
#include "runtime/bulk.cpp"
#include "runtime/control.cpp"
#include "runtime/interp.cpp"
#include "runtime/object.cpp"
#include "runtime/vector.cpp"
#pragma clang attribute pop

namespace gpurun::rt {
namespace {

// Between two looks at the stop word: a few milliseconds at the most.
constexpr s64 quantum = 1 << 14;

template <class T>
T* pointer(u64 address) {
    return reinterpret_cast<T*>(address);
}

#if !GPURUN_SOLO
// The memories of `lane`'s process as the template has them. All lanes work on it together.
void prepare_bytes(const BurstParams& params, u64 slot, bool is_fresh, u64 dirty_bytes) {
    u8* to = pointer<u8>(params.bytes) + slot * params.bytes_per_process;
    const u8* from = pointer<const u8>(params.template_bytes);
    for (u64 i = lane_id() * 8; i < params.template_size; i += warp_lanes * 8)
        *reinterpret_cast<u64*>(to + i) = *reinterpret_cast<const u64*>(from + i);
    if (is_fresh) return;
    for (u64 i = params.template_size + lane_id() * 8; i < dirty_bytes; i += warp_lanes * 8)
        *reinterpret_cast<u64*>(to + i) = 0;
}

// How far this lane's last process may have written.
u64 dirty_extent(const BurstParams& params, const Process& p) {
    u64 extent = 0;
    for (u32 i = 0; i < params.memory_count; i++) {
        const u32* record = word_at(p.words, pointer<const u32>(params.memories)[i]);
        u64 end = get<u64>(record, memory_base) + get<u64>(record, memory_bytes);
        if (end > extent) extent = end;
    }
    return extent;
}

void prepare_words(const BurstParams& params, const Process& p, u32 id, bool is_fresh) {
    const u32* from = pointer<const u32>(params.template_words);
    if (!is_fresh) {
        // Fresh objects are expected to be zero.
        u32 end = word(p.words, process_heap_next);
        for (u32 i = from[process_heap_next]; i < end; i++) word(p.words, i) = 0;
    }
    for (const WordRange& range : params.ranges) {
        for (u32 i = range.begin; i < range.end; i++) word(p.words, i) = from[i];
    }
    const u32* arguments = pointer<const u32>(params.arguments) + usize(id) * params.argument_words;
    for (u32 i = 0; i < params.argument_words; i++) word(p.words, params.stack + i) = arguments[i];
}

void write_result(const BurstParams& params, const Process& p, u32 id, ThreadState state) {
    const u32* thread = word_at(p.words, params.thread);
    u32* to = pointer<u32>(params.results) + usize(id) * params.result_stride;
    to[result_state] = u32(state);
    to[result_trap] = word(thread, thread_trap);
    to[result_pc] = word(thread, thread_pc);
    to[result_fuel] = word(thread, thread_fuel);
    to[result_fuel + 1] = word(thread, thread_fuel + 1);
    for (u32 i = 0; i < params.result_words; i++) to[result_first + i] = word(p.words, params.stack + i);
}

// Hands processes to the lanes that have none. False: there are no more.
bool take_processes(const BurstParams& params, const Process& p, u32 warp, bool& has_process,
                    bool& is_fresh, u32& id) {
    u32 idle = ballot(!has_process && lane_id() < params.lanes);
    if (idle == 0) return true;
    u32 first = 0;
    if (lane_id() == lowest(idle)) first = atom_add(pointer<u32>(params.next), popcount(idle));
    first = shuffle(first, lowest(idle));
    bool is_idle = idle >> lane_id() & 1;
    u32 mine = first + popcount(idle & ((1u << lane_id()) - 1));
    bool got = is_idle && first < params.processes && mine < params.processes;
    u64 dirty = got && !is_fresh ? dirty_extent(params, p) : 0;
    u32 fresh_lanes = ballot(is_fresh);
    for (u32 left = ballot(got); left != 0; left &= left - 1) {
        u32 lane = lowest(left);
        u64 extent = u64(shuffle(u32(dirty >> 32), lane)) << 32 | shuffle(u32(dirty), lane);
        prepare_bytes(params, u64(warp) * warp_lanes + lane, fresh_lanes >> lane & 1, extent);
    }
    if (got) {
        prepare_words(params, p, mine, is_fresh);
        has_process = true;
        is_fresh = false;
        id = mine;
    }
    sync_warp();
    return first < params.processes && first + popcount(idle) < params.processes;
}
#endif

}  // namespace

#if GPURUN_SOLO
extern "C" [[clang::nvptx_kernel]] void gpurun_solo(SoloParams params) {
    if (lane_id() != 0) return;
    Process p{pointer<const u64>(params.code), pointer<u32>(params.words), pointer<u8>(params.bytes)};
    if (params.steps != 0) {
        run(p, params.thread, params.steps, 0);
        return;
    }
    // Ends: the host sets the stop word when it has waited long enough.
    while (run(p, params.thread, quantum, 0) == ThreadState::ready) {
        if (load_relaxed(pointer<const u32>(params.stop)) != 0) return;
    }
}
#else
extern "C" [[clang::nvptx_kernel]] void gpurun_burst(BurstParams params) {
    u32 warp = global_thread() / warp_lanes, lane = lane_id();
    if (warp >= params.warps) return;
    Process p{pointer<const u64>(params.code),
              pointer<u32>(params.words) + usize(warp) * params.words_per_process * warp_lanes + lane,
              pointer<u8>(params.bytes) + (u64(warp) * warp_lanes + lane) * params.bytes_per_process};
    bool has_process = false, is_fresh = true, has_more = true;
    u32 id = 0;
    for (;;) {
        if (has_more) has_more = take_processes(params, p, warp, has_process, is_fresh, id);
        if (ballot(has_process) == 0) return;
        bool is_stopped = ballot(lane == 0 && load_relaxed(pointer<const u32>(params.stop)) != 0) != 0;
        // A warp with lanes to spare takes new processes once a quarter of them is idle.
        u32 enough = has_more ? params.lanes - (params.lanes + 3) / 4 : 0;
        ThreadState state = ThreadState::ready;
        if (!is_stopped) state = run(p, has_process ? params.thread : 0, quantum, enough);
        if (has_process && (state != ThreadState::ready || is_stopped)) {
            write_result(params, p, id, state);
            has_process = false;
        }
        sync_warp();
        if (is_stopped) return;
    }
}
#endif

}  // namespace gpurun::rt
