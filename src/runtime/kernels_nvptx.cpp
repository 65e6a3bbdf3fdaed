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
// The memories of a slot as the template has them: all of it the first time, then the pieces
// that were written. All lanes work on it together.
void prepare_bytes(const BurstParams& params, u64 slot, bool is_fresh, u32 dirty) {
    u8* to = pointer<u8>(params.bytes) + slot * params.bytes_per_process;
    const u8* from = pointer<const u8>(params.template_bytes);
    if (is_fresh) {
        for (u64 i = lane_id() * 8; i < params.template_size; i += warp_lanes * 8)
            *global(reinterpret_cast<u64*>(to + i)) =
                *global(reinterpret_cast<const u64*>(from + i));
        return;
    }
    for (; dirty != 0; dirty &= dirty - 1) {
        u64 begin = u64(lowest(dirty)) << params.dirty_shift;
        u64 end = begin + (u64{1} << params.dirty_shift) + 16;
        if (end > params.bytes_per_process) end = params.bytes_per_process;
        for (u64 i = begin + lane_id() * 8; i < end; i += warp_lanes * 8)
            *global(reinterpret_cast<u64*>(to + i)) =
                i < params.template_size ? *global(reinterpret_cast<const u64*>(from + i)) : 0;
    }
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
    // The stack: the record of whoever called first, and the arguments.
    u32 record = from[params.thread + thread_stack_end] - record_words;
    for (u32 i = 0; i < record_words; i++) word(slots_at(p, record), i) = from[record + i];
    const u32* arguments = pointer<const u32>(params.arguments) + usize(id) * params.argument_words;
    for (u32 i = 0; i < params.argument_words; i++)
        word(slots_at(p, params.stack), i) = arguments[i];
}

void write_result(const BurstParams& params, const Process& p, u32 id, ThreadState state) {
    const u32* thread = word_at(p.words, params.thread);
    u32* to = pointer<u32>(params.results) + usize(id) * params.result_stride;
    to[result_state] = u32(state);
    to[result_trap] = word(thread, thread_trap);
    to[result_pc] = word(thread, thread_pc);
    to[result_fuel] = word(thread, thread_fuel);
    to[result_fuel + 1] = word(thread, thread_fuel + 1);
    for (u32 i = 0; i < params.result_words; i++)
        to[result_first + i] = word(slots_at(p, params.stack), i);
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
    u32 dirty = word(p.words, params.thread + thread_dirty);
    u32 fresh_lanes = ballot(is_fresh);
    for (u32 left = ballot(got); left != 0; left &= left - 1) {
        u32 lane = lowest(left);
        prepare_bytes(params, u64(warp) * warp_lanes + lane, fresh_lanes >> lane & 1,
                      shuffle(dirty, lane));
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
    Process p{pointer<const u64>(params.code),
              pointer<u32>(params.words),
              pointer<u8>(params.bytes),
              pointer<u32>(params.words),
              0,
              63};
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
    Process p{
        pointer<const u64>(params.code),
        pointer<u32>(params.words) + usize(warp) * params.words_per_process * warp_lanes + lane,
        pointer<u8>(params.bytes) + (u64(warp) * warp_lanes + lane) * params.bytes_per_process,
        nullptr,
        0,
        params.dirty_shift};
#if GPURUN_LOCAL_STACK
    u32 stack[gang_stack_slots];
    p.stack = (StackWord*)stack;
    p.stack_begin = params.stack;
#else
    p.stack = p.words;
#endif
    bool has_process = false, is_fresh = true, has_more = true;
    u32 id = 0;
    for (;;) {
        if (has_more) has_more = take_processes(params, p, warp, has_process, is_fresh, id);
        if (ballot(has_process) == 0) return;
        bool is_stopped =
            ballot(lane == 0 && load_relaxed(pointer<const u32>(params.stop)) != 0) != 0;
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
