// Slots of a burst: how a process comes into one, from the template or from a smaller slot, and
// what it leaves there.
#pragma once

#include "runtime/kernels/runtime_nvptx.h"

namespace gpurun::rt {
namespace {

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

}  // namespace
}  // namespace gpurun::rt
