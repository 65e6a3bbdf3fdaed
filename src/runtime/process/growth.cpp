// How stacks and memories of a machine's processes grow: to other pages, a piece between two
// heartbeats.
#include "runtime/process/growth.h"

#include "runtime/machine/pages.h"

namespace gpurun::rt {
namespace {

// How much of a memory that moves is copied between two heartbeats.
constexpr u64 move_piece = u64{2} << 20;

u64 read_wide(const u32* words, u32 at) { return u64(words[at + 1]) << 32 | words[at]; }
void write_wide(u32* words, u32 at, u64 value) {
    words[at] = u32(value);
    words[at + 1] = u32(value >> 32);
}

// Gives a task a larger stack, in words of its own; the stack lies last. All lanes call it. Returns
// false if there is no memory.
[[gnu::noinline]] bool grow_stack(const Machine& m, u32 index) {
    TaskEntry& task = m.task(index);
    const ProgramEntry& program = m.program(m.process(task.process).program);
    const ProgramInfo& info = program.info;
    u32* from = reinterpret_cast<u32*>(m.pages + task.words_at);
    u32* thread = from + info.thread;
    const u32 stack = thread[thread_stack], old_end = thread[thread_stack_end];
    u32 slots = 2 * task.stack_slots;
    if (slots < 4 * lane_stack_slots) slots = 4 * lane_stack_slots;
    if (slots > info.most_stack_slots) slots = info.most_stack_slots;
    const u32 end = stack + slots, tail = u32(info.template_words) - info.stack_end;
    const u64 pages = page_count(u64(end + tail) * 4);
    u64 page = 0;
    if (lane_id() == 0 && slots > task.stack_slots) page = PageAllocator(m).take(pages);
    page = shuffle(page, 0);
    if (page == 0) return false;
    u8* to = m.pages + (page << page_shift);
    const u32 rp = thread[thread_rp], shift = end - old_end;
    const u8* bytes = reinterpret_cast<const u8*>(from);
    do_part({to, bytes, u64(rp) * 4, 0});
    do_part({to + u64(rp + shift) * 4, bytes + u64(rp) * 4, u64(old_end - rp) * 4, 0});
    sync_warp();
    if (lane_id() != 0) return true;
    u32* words = reinterpret_cast<u32*>(to);
    words[info.thread + thread_rp] = rp + shift;
    words[info.thread + thread_stack_end] = end;
    if (slots == info.most_stack_slots) words[process_clipped] &= ~clipped_stack;
    if (tail == canary_words) {
        words[end] = canary_word ^ end;
        words[end + 1] = from[old_end + 1];
        words[process_canaries] = end;
    }
    // The slot's words are not what they were: all that hangs on them counts as written.
    thread[thread_dirty] = ~u32{0};
    words[info.thread + thread_dirty] = ~u32{0};
    const u64 old_page = task.words_at >> page_shift;
    const u32 old_pages = task.words_pages;
    task.words_at = page << page_shift;
    task.words_pages = u32(pages);
    task.stack_slots = slots;
    PageAllocator(m).give(old_page, old_pages);
    return true;
}

// What a memory.grow that stopped wants.
struct Growth {
    u32 record;      // word index
    u64 size, most;  // bytes: what it would have then, and what it may have
    u32 result;      // word index of the slot for the answer
    bool is_64;

    Growth(const Process& p, const u32* thread) {
        const u32 pc = thread[thread_pc], fp = thread[thread_fp];
        const u64 w = p.code[pc];
        record = p.words[thread[thread_instance] + low_of(p.code[pc + 1])];
        is_64 = c_of(w);
        const u64 delta = is_64 ? read_wide(p.words, fp + b_of(w)) : u64{p.words[fp + b_of(w)]};
        size = read_wide(p.words, record + memory_bytes) + (delta << page_bits);
        most = read_wide(p.words, record + memory_max_pages) << page_bits;
        result = fp + a_of(w);
    }
};

// Copies or clears in pieces, between heartbeats. All lanes call it. Returns false if the machine
// is to stop.
bool do_long(Pulse& pulse, Chore chore) {
    while (chore.count > 0) {
        Chore piece = chore;
        piece.count = smaller(chore.count, move_piece);
        do_part(piece);
        sync_warp();
        chore.to += piece.count;
        if (chore.from != nullptr) chore.from += piece.count;
        chore.count -= piece.count;
        if (!pulse.beat()) return false;
    }
    return true;
}

enum class Moved : u32 { done, no_room, stopped };

// Moves the memories to an extent in which memory `growth.record` has room, and the others what
// they had. All lanes call it.
[[gnu::noinline]] Moved move_memories(const Machine& m, Pulse& pulse, u32 index,
                                      const Growth& growth) {
    ProcessEntry& process = m.process(m.task(index).process);
    const ProgramInfo& info = m.program(process.program).info;
    const u32* words = place_of(m, index).words;
    const u64 canary = info.is_watched ? canary_bytes : 0;
    // Twice as much as it has, so that it does not move often; or else just enough.
    u64 capacity = smaller(growth.most, growth.size * 2), total = 0, page = 0;
    for (u32 tries = 0; tries < 2 && page == 0; tries++) {
        total = 0;
        for (u32 at = words[process_memories]; at != 0; at = words[at + memory_next])
            total +=
                (at == growth.record ? capacity : read_wide(words, at + memory_capacity)) + canary;
        if (lane_id() == 0) page = PageAllocator(m).take(page_count(total));
        page = shuffle(page, 0);
        if (page == 0) capacity = growth.size;
    }
    if (page == 0) return Moved::no_room;
    u8* const to = m.pages + (page << page_shift);
    const u8* const from = m.pages + process.bytes_at;
    u64 next = 0;
    bool goes_on = true;
    for (u32 at = words[process_memories]; at != 0 && goes_on; at = words[at + memory_next]) {
        const u64 base = read_wide(words, at + memory_base),
                  size = read_wide(words, at + memory_bytes),
                  room = at == growth.record ? capacity : read_wide(words, at + memory_capacity);
        goes_on = do_long(pulse, {to + next, from + base, size, 0}) &&
                  do_long(pulse, {to + next + size, nullptr, room - size, 0});
        if (goes_on && canary != 0)
            do_part({to + next + room, nullptr, canary, u8(canary_pattern)});
        next += room + canary;
    }
    sync_warp();
    if (!goes_on) {
        if (lane_id() == 0) PageAllocator(m).give(page, page_count(total));
        return Moved::stopped;
    }
    if (lane_id() == 0) {
        // Every thread has a record of its own of each memory.
        Lock lock(&process.lock);
        for (u32 other = process.first_task; other != 0;
             other = m.task(other - 1).next_of_process) {
            u32* theirs = reinterpret_cast<u32*>(m.pages + m.task(other - 1).words_at);
            u64 base = 0;
            for (u32 at = theirs[process_memories]; at != 0; at = theirs[at + memory_next]) {
                if (at == growth.record) write_wide(theirs, at + memory_capacity, capacity);
                write_wide(theirs, at + memory_base, base);
                base += read_wide(theirs, at + memory_capacity) + canary;
            }
            theirs[info.thread + thread_dirty] = ~u32{0};
        }
        if (process.bytes_size != 0)
            PageAllocator(m).give(process.bytes_at >> page_shift, page_count(process.bytes_size));
        store_shared(&process.bytes_at, page << page_shift);  // pairs with park_at_memory
        process.bytes_size = total;
    }
    sync_warp();
    return Moved::done;
}

// The answer of the memory.grow itself, for all threads of the process.
void finish_growth(const Machine& m, u32 index, const Growth& growth, bool has_grown) {
    const Process p = place_of(m, index);
    ProcessEntry& process = m.process(m.task(index).process);
    const u32 thread = m.program(process.program).info.thread;
    const u64 old_pages = read_wide(p.words, growth.record + memory_bytes) >> page_bits;
    const u64 answer = has_grown ? old_pages : ~u64{0};
    p.words[growth.result] = u32(answer);
    if (growth.is_64) p.words[growth.result + 1] = u32(answer >> 32);
    p.words[thread + thread_pc] += 2;
    Lock lock(&process.lock);
    for (u32 at = process.first_task; has_grown && at != 0; at = m.task(at - 1).next_of_process)
        write_wide(reinterpret_cast<u32*>(m.pages + m.task(at - 1).words_at),
                   growth.record + memory_bytes, growth.size);
}

// Gives a process a larger memory, while no other thread of it runs. All lanes call it. Returns
// false if the machine is to stop before that is done.
bool grow_memory(const Machine& m, Pulse& pulse, u32 index) {
    const Process p = place_of(m, index);
    const u32 thread = m.program(m.process(m.task(index).process).program).info.thread;
    const Growth growth(p, p.words + thread);
    bool has_grown = growth.size <= growth.most;
    if (has_grown && growth.size > read_wide(p.words, growth.record + memory_capacity)) {
        const Moved moved = move_memories(m, pulse, index, growth);
        if (moved == Moved::stopped) return false;
        has_grown = moved == Moved::done;
    }
    sync_warp();
    if (lane_id() == 0) finish_growth(m, index, growth, has_grown);
    sync_warp();
    return true;
}

// Lets tasks go on that were kept off the lanes while the memory moved.
void end_quiet(const Machine& m, ProcessEntry& process) {
    u32 waiting;
    {
        Lock lock(&process.lock);
        waiting = process.waits_for_move;
        process.waits_for_move = 0;
        store_relaxed(&process.quiet, u32{0});
    }
    while (waiting != 0) {
        const u32 next = m.task(waiting - 1).next_waiting;
        make_ready(m, waiting - 1);
        waiting = next;
    }
}

}  // namespace

void grow_task(const Machine& m, Pulse& pulse, u32 index) {
    const Process p = place_of(m, index);
    const u32 thread = m.program(m.process(m.task(index).process).program).info.thread;
    const bool is_stack = is_enter(p.code[p.words[thread + thread_pc]]);
    if (!is_stack) {
        grow_memory(m, pulse, index);
    } else if (!grow_stack(m, index)) {
        // It goes on with what it has, and traps.
        if (lane_id() == 0) p.words[process_clipped] &= ~clipped_stack;
    }
    sync_warp();
    if (lane_id() == 0) {
        u32* words = place_of(m, index).words;
        words[thread + thread_state] = u32(ThreadState::ready);
        ProcessEntry& process = m.process(m.task(index).process);
        const bool is_quiet = process.quiet == index + 1;
        make_ready(m, index);
        if (is_quiet) end_quiet(m, process);
    }
    sync_warp();
}

bool ask_for_quiet(const Machine& m, u32 index) {
    TaskEntry& task = m.task(index);
    if (!has_threads(m, task)) return true;
    ProcessEntry& process = m.process(task.process);
    Lock lock(&process.lock);
    if (process.quiet == 0) {
        store_relaxed(&process.quiet, index + 1);
        return process.on_lanes == 0;
    }
    // Another's turn first; this one asks again.
    task.next_waiting = process.waits_for_move;
    process.waits_for_move = index + 1;
    return false;
}

}  // namespace gpurun::rt
