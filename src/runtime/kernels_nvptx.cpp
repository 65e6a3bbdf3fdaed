// The kernels: how the lanes of an NVIDIA GPU get processes to run. One translation unit with
// the whole runtime in it.
#include "abi/burst.h"

// Nothing but the kernels is visible from outside, so that what is not used is not there.
#pragma clang attribute push(__attribute__((internal_linkage)), apply_to = function)
#include "runtime/access.cpp"
#include "runtime/bulk.cpp"
#include "runtime/control.cpp"
#include "runtime/interp.cpp"
#include "runtime/move.h"
#include "runtime/object.cpp"
#include "runtime/state.h"
#include "runtime/vector.cpp"
#include "runtime/wait.h"
#include "runtime/waiting.h"
#include "runtime/watch.h"
#if GPURUN_RESIDENT
// What processes come and go by.
#include "runtime/pipes.cpp"
#include "runtime/process_calls.cpp"
#include "runtime/processes.cpp"
#include "runtime/scheduler.cpp"
#include "runtime/system.cpp"
#endif
// The rest of the system calls, and what they need: small rather than fast, for the time it takes
// to assemble them.
#pragma clang attribute push(__attribute__((minsize)), apply_to = function)
#include "runtime/contents.cpp"
#include "runtime/descriptors.cpp"
#include "runtime/directories.cpp"
#include "runtime/files.cpp"
#include "runtime/gpu_calls.cpp"
#include "runtime/path_calls.cpp"
#include "runtime/paths.cpp"
#include "runtime/poll.cpp"
#include "runtime/random.cpp"
#include "runtime/trace.cpp"
#include "runtime/transfer.cpp"
#include "runtime/wasix_calls.cpp"
#if GPURUN_RESIDENT
#include "runtime/growth.cpp"
#include "runtime/mailbox.cpp"
#include "runtime/programs.cpp"
#else
#include "runtime/pipes.cpp"
#include "runtime/process_calls.cpp"
#include "runtime/processes.cpp"
#include "runtime/system.cpp"
#endif
#pragma clang attribute pop
#if GPURUN_NATIVE || GPURUN_RESIDENT
#include "runtime/native.cpp"
#endif
#pragma clang attribute pop

namespace gpurun::rt {
namespace {

#if GPURUN_NATIVE || GPURUN_RESIDENT
// How far down machine code may use the hardware's stack. (Asked by a kernel itself.)
inline u8* stack_limit(u32 stack_bytes) {
    // What the runtime's own functions take, below the frame of one that is machine code.
    constexpr u32 reserve = 6 << 10;
    volatile u8 here = 0;
    return reinterpret_cast<u8*>(reinterpret_cast<u64>(&here) - (stack_bytes - reserve));
}
#endif

}  // namespace
}  // namespace gpurun::rt

#if GPURUN_RESIDENT

extern "C" [[clang::nvptx_kernel]] void gpurun_resident(gpurun::MachineParams params) {
    using namespace gpurun::rt;
    run_machine(params, global_thread() / warp_lanes, stack_limit(params.native_stack_bytes));
}

#else

namespace gpurun::rt {
namespace {

// Between two looks at the stop word: a few milliseconds at the most.
[[maybe_unused]] constexpr s64 quantum = 1 << 14;

template <class T>
T* pointer(u64 address) {
    return reinterpret_cast<T*>(address);
}

#if GPURUN_NATIVE
// Machine code leaves after a millisecond if a lane of its warp had to wait for others before, and
// else after 35: lanes that leave at different places do not meet again when they go on.
constexpr s64 native_quantum = 1 << 20;
[[maybe_unused]] constexpr s64 long_native_quantum = 1 << 25;
#endif

#if !GPURUN_SOLO
// Offsets among a process's bytes.
struct ByteRange {
    u64 begin, end;
};
// A piece whose writes are noted by one bit.
ByteRange dirty_piece(const BurstPart& part, u32 number) {
    const u64 begin = u64(number) << part.dirty_shift;
    const u64 end = begin + (u64{1} << part.dirty_shift) + dirty_reach;
    return {smaller(begin, part.bytes_per_process), smaller(end, part.bytes_per_process)};
}
// What of a range is from the template; all else is zero.
ByteRange template_part(const BurstPart& part, ByteRange range) {
    const u64 begin = range.begin < part.template_begin ? part.template_begin : range.begin;
    const u64 end = smaller(range.end, part.template_size);
    return begin < end ? ByteRange{begin, end} : ByteRange{range.end, range.end};
}

// Makes the memories of a slot as the template has them: all of it the first time, then the pieces
// that were written. All lanes work on it together.
void prepare_bytes(const BurstPart& part, u64 slot, bool is_fresh, u32 dirty) {
    u8* to = pointer<u8>(part.bytes) + slot * part.bytes_per_process;
    const u8* from = pointer<const u8>(part.template_bytes);
    auto prepare = [&](ByteRange range) {
        const ByteRange copied = template_part(part, range);
        if (!is_fresh) do_part({to + range.begin, nullptr, copied.begin - range.begin, 0});
        do_part({to + copied.begin, from + copied.begin, copied.end - copied.begin, 0});
        if (!is_fresh) do_part({to + copied.end, nullptr, range.end - copied.end, 0});
    };
    if (is_fresh) return prepare({0, part.bytes_per_process});
    for (; dirty != 0; dirty &= dirty - 1) prepare(dirty_piece(part, lowest(dirty)));
}

// Where the memories of a lane begin that interleave with those of its warp, as a base.
u8* interleaved_base(u64 bytes, u64 bytes_per_process, u64 warp, u32 lane) {
    return pointer<u8>(bytes) + warp * warp_lanes * bytes_per_process + lane * granule;
}

// Does what prepare_bytes does where memories interleave: each lane that `is_wanted` does it for
// its own, so that all that do it touch neighbouring words.
void prepare_interleaved(const BurstPart& part, u8* base, bool is_wanted, bool is_fresh,
                         u32 dirty) {
    const u8* from = pointer<const u8>(part.template_bytes);
    auto prepare = [&](ByteRange range) {
        const ByteRange copied = template_part(part, range);
        auto clear = [&](u64 begin, u64 end) {
            for (u64 i = begin; i < end; i += granule) store_aligned_at<u32>(base, i, 0);
        };
        if (!is_fresh) clear(range.begin, copied.begin);
        for (u64 i = copied.begin; i < copied.end; i += granule)
            store_aligned_at<u32>(base, i, load_linear<u32>(from + i));
        if (!is_fresh) clear(copied.end, range.end);
    };
    if (is_wanted && is_fresh) prepare({part.template_begin, part.template_size});
    for (u32 number = 0; number < 32; number++) {
        const bool is_dirty = is_wanted && !is_fresh && (dirty >> number & 1);
        if (ballot(is_dirty) != 0 && is_dirty) prepare(dirty_piece(part, number));
    }
}

// Nothing of an earlier process may be needed by the next.
void poison_words(const BurstPart& part, const Process& p) {
    for (u32 i = part.stack; i < part.stack_end; i++) word(slots_at(p, i), 0) = poison_word;
    for (const WordRange& range : part.ranges)
        for (u32 i = range.begin; i < range.end; i++)
            if (i != process_heap_next) word(p.words, i) = poison_word;
}

// Checks that all of a memory is as in the template: nothing that was written went unnoticed.
void verify_interleaved(const BurstPart& part, const u8* base, u32 id) {
    const u8* from = pointer<const u8>(part.template_bytes);
    for (u64 i = 0; i < part.bytes_per_process; i += granule) {
        const u32 wanted = i < part.template_size ? load_linear<u32>(from + i) : 0;
        RUNTIME_CHECK(load_aligned_at<u32>(base, i) == wanted, id, u32(i));
    }
}
void verify_bytes(const BurstPart& part, u64 slot, u32 id) {
    const u8* bytes = pointer<const u8>(part.bytes) + slot * part.bytes_per_process;
    const u8* from = pointer<const u8>(part.template_bytes);
    for (u64 i = lane_id() * 8; i < part.bytes_per_process; i += warp_lanes * 8) {
        u64 wanted = i < part.template_size ? load_bytes<u64>(from + i) : 0;
        RUNTIME_CHECK(load_bytes<u64>(bytes + i) == wanted, id, u32(i));
    }
}

void prepare_words(const BurstPart& part, const Process& p, u32 id, bool is_fresh) {
    const u32* from = pointer<const u32>(part.template_words);
    if (part.is_watched) poison_words(part, p);
    if (!is_fresh) {
        // Fresh objects are expected to be zero.
        u32 end = word(p.words, process_heap_next);
        for (u32 i = from[process_heap_next]; i < end; i++) word(p.words, i) = 0;
    }
    for (const WordRange& range : part.ranges) {
        for (u32 i = range.begin; i < range.end; i++) word(p.words, i) = from[i];
    }
    // The stack: the record of whoever called first, and the arguments.
    u32 record = part.stack_end - record_words;
    for (u32 i = 0; i < record_words; i++) word(slots_at(p, record), i) = from[record + i];
    const u32* arguments = pointer<const u32>(part.arguments) + usize(id) * part.argument_words;
    for (u32 i = 0; i < part.argument_words; i++) word(slots_at(p, part.stack), i) = arguments[i];
}

void write_result(const BurstPart& part, const Process& p, u32 id, ThreadState state) {
    const u32* thread = word_at(p.words, part.thread);
    u32* to = pointer<u32>(part.results) + usize(id) * part.result_stride;
    to[result_state] = u32(state);
    to[result_trap] = word(thread, thread_trap);
    to[result_pc] = word(thread, thread_pc);
    Handle block = word(p.words, process_block);
    to[result_block] = block;
    if (block != 0) {
        to[result_exit] = at_handle<ProcessBlock>(p, block)->exit_code;
        end_process(p, block, true);
    }
    to[result_fuel] = word(thread, thread_fuel);
    to[result_fuel + 1] = word(thread, thread_fuel + 1);
    for (u32 i = 0; i < part.result_words; i++)
        to[result_first + i] = word(slots_at(p, part.stack), i);
}

// The host wants to see what a process left that trapped, before its slot goes to another. A call
// of a host function is not made twice for that.
bool is_looked_at(const BurstPart& part, const Process& p, ThreadState state) {
    const u32* thread = word_at(p.words, part.thread);
    return state == ThreadState::trapped && word(thread, thread_is_looked_at) != 0 &&
           word(thread, thread_trap) != u32(Trap::host_function_failed);
}
bool has_trapped(const BurstPart& part, const Process& p) {
    return word(p.words, part.thread + thread_state) == u32(ThreadState::trapped);
}

// There was no system memory left for a process when it was to begin.
bool lacks_memory(const BurstPart& part, const Process& p) {
    return part.system != 0 && word(p.words, process_block) == 0;
}
ThreadState no_memory(const Process& p, u32 thread) {
    word(p.words, thread + thread_trap) = u32(Trap::system_memory_exhausted);
    return ThreadState::trapped;
}

// Between launches a stack that was in local memory is with the other words.
void save_stack([[maybe_unused]] const BurstPart& part, [[maybe_unused]] const Process& p) {
#if GPURUN_LOCAL_STACK
    for (u32 i = part.stack; i < part.stack_end; i++) word(p.words, i) = word(slots_at(p, i), 0);
#endif
}
void load_stack([[maybe_unused]] const BurstPart& part, [[maybe_unused]] const Process& p) {
#if GPURUN_LOCAL_STACK
    for (u32 i = part.stack; i < part.stack_end; i++) word(slots_at(p, i), 0) = word(p.words, i);
#endif
}

// The words of a process that comes from a smaller slot.
u32* source_words(const BurstPart& part, u32 slot) {
    return pointer<u32>(part.source_words) +
           usize(slot / warp_lanes) * part.source_words_per_process * warp_lanes +
           slot % warp_lanes;
}

// What its memories have. All lanes work on it together.
void move_bytes(const BurstPart& part, u8* to, u32 slot) {
    const u8* from = pointer<const u8>(part.source_bytes) +
                     (u64(slot / warp_lanes) * part.source_lanes + slot % warp_lanes) *
                         part.source_bytes_per_process;
    move_memories(source_words(part, slot), pointer<const u32>(part.template_words),
                  [&](u64 to_at, u64 from_at, u64 count) {
                      do_part({to + to_at, from + from_at, count, 0});
                  });
}

// Moves the memories of a lane that interleave with others, as they did where it comes from.
void move_interleaved(const BurstPart& part, u8* to, u32 slot) {
    const u8* from = interleaved_base(part.source_bytes, part.source_bytes_per_process,
                                      slot / warp_lanes, slot % warp_lanes);
    move_memories(source_words(part, slot), pointer<const u32>(part.template_words),
                  [&](u64 to_at, u64 from_at, u64 count) {
                      for (u64 i = 0; i < count; i += granule)
                          store_aligned_at<u32>(to, to_at + i,
                                                load_aligned_at<u32>(from, from_at + i));
                  });
}

// Gives the lanes that `got` a process their memories.
void give_bytes(const BurstPart& part, u32 warp, bool got, bool is_fresh, u32 dirty,
                const MovedProcess& moved) {
    const bool is_move = part.moved != 0;
    if (memories_interleave) {
        u8* base = interleaved_base(part.bytes, part.bytes_per_process, warp, lane_id());
        prepare_interleaved(part, base, got, is_fresh, dirty);
        if (got && part.is_watched) verify_interleaved(part, base, moved.id);
        if (got && is_move) move_interleaved(part, base, moved.slot);
        return sync_warp();
    }
    const u32 fresh_lanes = ballot(is_fresh);
    for (u32 left = ballot(got); left != 0; left &= left - 1) {
        u32 lane = lowest(left);
        u64 slot = u64(warp) * part.lanes + lane;
        prepare_bytes(part, slot, fresh_lanes >> lane & 1, shuffle(dirty, lane));
        sync_warp();
        if (part.is_watched) verify_bytes(part, slot, shuffle(moved.id, lane));
        if (!is_move) continue;
        sync_warp();
        move_bytes(part, pointer<u8>(part.bytes) + slot * part.bytes_per_process,
                   shuffle(moved.slot, lane));
    }
}

// Hands processes to the lanes that have none. False: there are no more.
bool take_processes(const BurstPart& part, const Process& p, u32 warp, bool& has_process,
                    bool& is_fresh, u32& id) {
    u32 idle = ballot(!has_process && lane_id() < part.lanes);
    if (idle == 0) return true;
    u32 first = 0;
    if (lane_id() == lowest(idle)) first = atom_add(pointer<u32>(part.next), popcount(idle));
    first = shuffle(first, lowest(idle));
    bool is_idle = idle >> lane_id() & 1;
    u32 mine = first + popcount(idle & ((1u << lane_id()) - 1));
    bool got = is_idle && first < part.processes && mine < part.processes;
    const bool is_move = part.moved != 0;
    MovedProcess moved{0, mine};
    if (is_move && got) moved = pointer<const MovedProcess>(part.moved)[mine];
    give_bytes(part, warp, got, is_fresh, word(p.words, part.thread + thread_dirty), moved);
    if (got && is_move) {
        move_words({source_words(part, moved.slot), part.stack, part.source_stack_end},
                   {p.words, part.stack, part.stack_end}, pointer<const u32>(part.template_words),
                   part.thread);
        load_stack(part, p);
    } else if (got) {
        prepare_words(part, p, mine, is_fresh);
        if (part.system != 0) word(p.words, process_block) = begin_process(p, mine);
    }
    if (got) {
        has_process = true;
        is_fresh = false;
        id = moved.id;
    }
    sync_warp();
    return first < part.processes && first + popcount(idle) < part.processes;
}
#endif

}  // namespace

#if GPURUN_SOLO
#if GPURUN_WINDOW
// Both ends of a stack, as if that were all of it: frames from its start up, records from its end
// down. The thread's words say so while it runs.
struct Clipped {
    u32 begin, end;  // word indices
    u32 slots;       // in the window

    explicit Clipped(const u32* thread)
        : begin(thread[thread_stack]), end(thread[thread_stack_end]), slots(end - begin) {
        if (slots > stack_window) slots = stack_window;
    }
    // Does what is in use fit? A call that has just begun does: `enter` asks for its frame.
    bool fits(const Process& p, const u32* thread) const {
        if (end - begin == slots || thread[thread_window] != 0) return true;
        return op_of(p.code[thread[thread_pc]]) == u32(CodeOp::enter) &&
               thread[thread_fp] == begin && end - thread[thread_rp] <= slots / 2;
    }
    // All lanes: the records count from the end, everything else from the start.
    void load(const u32* words, u32 records) const {
        for (u32 i = lane_id(); i < slots; i += warp_lanes)
            window()[i] = words[i < slots - records ? begin + i : end - (slots - i)];
    }
    void store(u32* words, u32 records) const {
        for (u32 i = lane_id(); i < slots; i += warp_lanes)
            words[i < slots - records ? begin + i : end - (slots - i)] = window()[i];
    }
};
#endif

extern "C" [[clang::nvptx_kernel]] void gpurun_solo(SoloParams params) {
    Process p{pointer<const u64>(params.code),
              pointer<u32>(params.words),
              pointer<u8>(params.bytes),
              (StackWord*)pointer<u32>(params.words),
              0,
              63,
              pointer<u8>(params.system)};
#if GPURUN_WINDOW
    u32* thread = p.words + params.thread;
    Clipped clipped(thread);
    if (!clipped.fits(p, thread)) {
        sync_warp();
        if (lane_id() == 0) thread[thread_state] = u32(ThreadState::outgrown);
        return;
    }
    clipped.load(p.words, clipped.end - thread[thread_rp]);
    p.stack = window();
    p.stack_begin = clipped.begin;
    sync_warp();
#endif
    if (lane_id() == 0) {
#if GPURUN_WINDOW
        const u32 shift = clipped.end - clipped.begin - clipped.slots;
        thread[thread_rp] -= shift;
        thread[thread_stack_end] -= shift;
        p.words[process_clipped] = shift != 0 ? clipped_stack : 0;
#endif
        if (p.system != nullptr && p.words[process_block] == 0)
            p.words[process_block] = begin_process(p, 0);
        if (p.system != nullptr && p.words[process_block] == 0) p.system = nullptr;
        s64 left = params.steps != 0 ? params.steps : quantum;
        const u64 until = params.slice_us == 0 ? ~u64{0} : clock_ns() + params.slice_us * u64{1000};
        // Ends: the host sets the stop word when it has waited long enough.
        auto go = [&] {
#if GPURUN_NATIVE
            if (params.steps == 0)
                return run_native(p, NativeTable(params.native), params.thread, native_quantum, 0,
                                  stack_limit(params.tier.stack_bytes), params.tier.alternates);
#endif
            return run(p, params.thread, left, 0);
        };
        const bool can_run = may_go_on(p, p.words + params.thread);
        while (can_run && go() == ThreadState::ready && params.steps == 0) {
            if (load_relaxed(pointer<const u32>(params.stop)) != 0 || clock_ns() >= until) break;
        }
#if GPURUN_WINDOW
        thread[thread_rp] += shift;
        thread[thread_stack_end] += shift;
        p.words[process_clipped] = 0;
#endif
        if (params.is_watched) verify_process(p, 0);
        leave_others();
    } else {
        serve();
    }
#if GPURUN_WINDOW
    clipped.store(p.words, clipped.end - thread[thread_rp]);
#endif
}
#else
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
    const u32 held = popcount(ballot(has_process));
    if (lane == 0) {
        BurstCounters* counters = pointer<BurstCounters>(params.counters);
        atom_add(&counters->busy_lane_cycles, busy);
        if (held != 0) atom_add(&counters->held, u64(held));
        atom_max(&counters->longest_warp, cycles() - start);
    }
}
#endif

}  // namespace gpurun::rt

#endif
