// What the warps of the resident machine do: workers pick gangs of ready tasks of one program, run
// them for a slice, and put them back; one warp watches the clock. (The mailbox warp: mailbox.cpp.)
#include "runtime/scheduler.h"

#include "runtime/growth.h"
#include "runtime/host_requests.h"
#include "runtime/interp.h"
#include "runtime/mailbox.h"
#include "runtime/native.h"
#include "runtime/processes.h"

namespace gpurun::rt {
namespace {

// Words of code between two looks at the stop word: some milliseconds on a busy GPU.
constexpr s64 turn_quantum = 1 << 12;
// Of machine code, in which a unit is about a nanosecond, and lanes that went different ways take
// their turns one after another.
constexpr s64 native_turn_quantum = 1 << 16;
constexpr u32 line_words = 32;  // of a line of the cache
// So many of the workers nap only briefly, so that something new does not wait long: on a GPU one
// of a block, so that each has the caches of a multiprocessor to itself.
constexpr u32 eager_warps = 16, warps_to_next_eager = 4;

// ---- tasks on lanes ----------------------------------------------------------------

// What a lane has. Without a task, nothing.
struct Lane {
    bool has_task = false;
    bool has_threads = false;  // its process may have others
    u32 task = 0;
    u32 thread = 0;  // word index
    u64 since = 0;   // when it came
    Process p = {};
};

ProcessEntry& process_of(const Machine& m, const Lane& lane) { return m.process(lane.p.entry); }

struct alignas(4 * stack_step) StackStep {
    StackWord slots[stack_step];
};
u32 whole_steps(u32 slots) { return (slots + stack_step - 1) / stack_step * stack_step; }

// Several steps are on their way at the same time.
void copy_slots(StackWord* to, const StackWord* from, u32 count) {
    constexpr u32 batch = 4;
    auto* step_to = reinterpret_cast<StackStep*>(to);
    auto* step_from = reinterpret_cast<const StackStep*>(from);
    const u32 steps = count / stack_step;
    u32 done = 0;
#pragma clang loop unroll(disable)
    for (; done + batch <= steps; done += batch) {
        StackStep values[batch];
#pragma clang loop unroll(full)
        for (u32 i = 0; i < batch; i++) values[i] = step_from[done + i];
#pragma clang loop unroll(full)
        for (u32 i = 0; i < batch; i++) step_to[done + i] = values[i];
    }
#pragma clang loop unroll(disable)
    for (; done < steps; done++) step_to[done] = step_from[done];
}

// How far the newest frame reaches at the most. In a system call it is that of the function that
// stands for the call, whose `enter` says so.
u32 frame_slots(const Lane& lane, const ProgramInfo& info) {
    const u64* at = lane.p.code + lane.p.words[lane.thread + thread_pc];
    if (op_of(at[0]) == u32(CodeOp::system) && op_of(at[-1]) == u32(CodeOp::enter))
        return c_of(at[-1]);
    return info.most_frame_slots;
}

// A stack that fits is in the lane's own memory while it runs. What is in use of it: so many slots
// of frames from its start on, and records; whole steps of both. Gives `copy` the first word of a
// piece, the slot that it is, and how many.
template <class Copy>
void for_used_slots(const Lane& lane, const ProgramInfo& info, u32 frames, Copy copy) {
    const u32 records = lane.p.words[lane.thread + thread_rp] / stack_step * stack_step;
    u32* words = in_device(lane.p.words);
    copy(words + info.stack, 0, frames);
    copy(words + records, records - info.stack, info.stack_end - records);
}
void load_stack(const Machine& m, Lane& lane, const ProgramInfo& info, StackWord* own) {
    const TaskEntry& task = m.task(lane.task);
    if (lane_stack_slots == 0 || task.stack_slots > lane_stack_slots) return;
    for_used_slots(lane, info, task.frames,
                   [&](u32* words, u32 slot, u32 count) { copy_slots(own + slot, words, count); });
    lane.p.stack = own;
    lane.p.stack_begin = info.stack;
}
// Frames are in use up to where the newest may end.
void save_stack(const Machine& m, Lane& lane, const ProgramInfo& info) {
    if (lane.p.stack == lane.p.words) return;
    const StackWord* own = lane.p.stack;
    const u32* thread = lane.p.words + lane.thread;
    const u32 top = thread[thread_fp] + frame_slots(lane, info), records = thread[thread_rp],
              frames = whole_steps((top < records ? top : records) - info.stack);
    m.task(lane.task).frames = frames;
    for_used_slots(lane, info, frames,
                   [&](u32* words, u32 slot, u32 count) { copy_slots(words, own + slot, count); });
    lane.p.stack = lane.p.words;
    lane.p.stack_begin = 0;
}

// ---- fresh processes ---------------------------------------------------------------

// All lanes together, of what does not overlap; several values of each lane are on their way at the
// same time.
template <class T>
void copy_together(T* to, const T* from, u64 count) {
    constexpr u32 batch = 8;
    for (u64 done = lane_id(); done < count; done += batch * warp_lanes) {
        T values[batch] = {};
#pragma clang loop unroll(full)
        for (u32 i = 0; i < batch; i++)
            if (done + i * warp_lanes < count) values[i] = from[done + i * warp_lanes];
#pragma clang loop unroll(full)
        for (u32 i = 0; i < batch; i++)
            if (done + i * warp_lanes < count) to[done + i * warp_lanes] = values[i];
    }
}
template <class T>
void clear_together(T* to, u64 count) {
#pragma clang loop unroll(disable)
    for (u64 i = lane_id(); i < count; i += warp_lanes) to[i] = 0;
}

// Of a large memory, between two beats of a warp's pulse.
constexpr u64 bytes_at_once = u64{16} << 20;

// A part of a slot's memories as the program has it. Everything is a multiple of what is copied at
// once.
void prepare_bytes(const ProgramEntry& program, u64* to, const u64* from, u64 begin, u64 end) {
    const u64 copied = program.info.template_bytes;
    const u64 copy_end = smaller(end, copied > begin ? copied : begin);
    copy_together(to + begin / 8, from + begin / 8, (copy_end - begin) / 8);
    clear_together(to + copy_end / 8, (end - copy_end) / 8);
}

// All lanes work on it together.
void prepare_task(const Machine& m, const ProgramEntry& program, Pulse& pulse, u32 index) {
    TaskEntry& task = m.task(index);
    ProcessEntry& process = m.process(task.process);
    const ProgramInfo& info = program.info;
    u32* words = reinterpret_cast<u32*>(m.pages + task.words_at);
    const u32* from = reinterpret_cast<const u32*>(m.pages + program.words_at);
    auto* bytes = reinterpret_cast<u64*>(m.pages + process.bytes_at);
    const auto* bytes_from = reinterpret_cast<const u64*>(m.pages + program.bytes_at);
    const bool is_new = task.is_fresh == slot_is_new;
    // Fresh objects are expected to be zero.
    const u32 heap = from[process_heap_next], heap_end = is_new ? heap : words[process_heap_next];
    u32 dirty = ~u32{0};
    if (!is_new && info.thread_entry == 0) dirty = words[info.thread + thread_dirty];
    sync_warp();
    if (is_new)
        clear_together(words, program.words_size / sizeof(u32));
    else if (heap_end > heap)
        clear_together(words + heap, heap_end - heap);
    sync_warp();
    for (const WordRange& range : info.ranges)
        copy_together(words + range.begin, from + range.begin, range.end - range.begin);
    // All of the memories, or the pieces that were written.
    const u64 size = info.memory_bytes;
    if (dirty == ~u32{0}) {
        for (u64 begin = 0; begin < size; begin += bytes_at_once) {
            if (begin != 0) pulse.get_on();
            prepare_bytes(program, bytes, bytes_from, begin, smaller(begin + bytes_at_once, size));
        }
        dirty = 0;
    }
    for (; dirty != 0; dirty &= dirty - 1) {
        const u64 begin = u64(lowest(dirty)) << program.dirty_shift;
        if (begin >= size) break;
        prepare_bytes(program, bytes, bytes_from, begin,
                      smaller(begin + (u64{1} << program.dirty_shift) + dirty_reach, size));
    }
    sync_warp();
    if (lane_id() == 0) {
        words[process_block] = process.block;
        words[process_task] = index;
        words[process_call] = 0;
        if (process.fuel != ~u64{0}) set<u64>(words, info.thread + thread_fuel, process.fuel);
        task.is_fresh = 0;
        process.is_raw = 0;
    }
    sync_warp();
}

// ---- coming and going --------------------------------------------------------------

// Of one whose process may have others. False: that is being moved, and it waits for it.
bool enter(const Machine& m, u32 index) {
    TaskEntry& task = m.task(index);
    ProcessEntry& process = m.process(task.process);
    Lock lock(&process.lock);
    if (process.quiet) {
        task.next_waiting = process.held;
        process.held = index + 1;
        return false;
    }
    process.on_lanes++;
    return true;
}

// The task whose memory is to grow now that no other of its process runs, or 0.
u32 go(const Machine& m, const Lane& lane) {
    if (!lane.has_threads) return 0;
    ProcessEntry& process = process_of(m, lane);
    Lock lock(&process.lock);
    process.on_lanes--;
    return process.on_lanes == 0 ? process.quiet : 0;
}

// What a memory.atomic.wait or a blocked call left is answered when the task comes back.
void answer_wait(const Machine& m, const Lane& lane) {
    u32* thread = lane.p.words + lane.thread;
    const ThreadState state = ThreadState(thread[thread_state]);
    if (state == ThreadState::waiting)
        lane.p.words[thread[thread_wait_result]] =
            m.task(lane.task).wake == Wake::timed_out ? wait_timed_out : wait_woken;
    thread[thread_state] = u32(ThreadState::ready);
}

// ---- blocking ----------------------------------------------------------------------

// Parks a task in memory.atomic.wait. Returns false if the value has changed since: it goes on.
[[gnu::noinline]] bool park_at_memory(const Machine& m, const Lane& lane) {
    u32* thread = lane.p.words + lane.thread;
    const u32 index = lane.p.entry;
    const ProcessEntry& process = m.process(index);
    const u64 address = get<u64>(thread, thread_wait_address),
              value = get<u64>(thread, thread_wait_value);
    const u64 deadline = get<u64>(thread, thread_wait_until);
    const bool is_wide = thread[thread_wait_width] == 8;
    // Off its lane: the memory may have moved since, for another of its threads. Ends: it moves
    // only when it grows.
    auto value_now = [&] {
        for (const u64* base = &process.bytes_at;;) {
            const u64 before = load_shared(base);
            const u8* at = m.pages + before + address;
            const u64 now_there = is_wide ? atomic_load<u64>(at) : atomic_load<u32>(at);
            if (load_relaxed(base) == before) return now_there;
        }
    };
    bool is_same = true;
    const bool is_parked =
        park(m, lane.task, wait_key(WaitFor::memory, index, address), deadline, [&] {
            is_same = value_now() == (is_wide ? value : u32(value));
            return is_same && !is_ending(process);
        });
    if (is_parked) return true;
    lane.p.words[thread[thread_wait_result]] = wait_not_equal;
    thread[thread_state] = u32(ThreadState::ready);
    return false;
}

bool is_alive(const Machine& m, u32 pid) {
    const ProcessEntry& process = m.process(pid_index(m, pid));
    return load_relaxed(&process.pid) == pid &&
           load_shared(reinterpret_cast<const u32*>(&process.state)) == u32(ProcessState::alive);
}

// Whether another thread has closed a pipe since: its own may be no more.
bool may_be_closed(const Process& p, const CallState& call, const ProcessEntry& process) {
    return call.seen_closes != load_relaxed(&at_handle<ProcessBlock>(p, process.block)->closes);
}

// Whether a call that blocked has still to.
bool still_waits(const Machine& m, const Process& p, const CallState& call, u64 deadline,
                 u32 process_index) {
    const ProcessEntry& process = m.process(process_index);
    if (is_ending(process)) return false;
    if (deadline != no_deadline && wait_clock(p) >= deadline) return false;
    switch (call.request) {
        case Request::pipe_data: {
            if (may_be_closed(p, call, process)) return false;
            const PipeBlock* pipe = pipe_of(p, node_at(p, call.request_node));
            return load_relaxed(&pipe->written) == load_relaxed(&pipe->read) &&
                   has_writers(load_relaxed(&pipe->ends));
        }
        case Request::pipe_room: {
            if (may_be_closed(p, call, process)) return false;
            const PipeBlock* pipe = pipe_of(p, node_at(p, call.request_node));
            return pipe_bytes - (load_relaxed(&pipe->written) - load_relaxed(&pipe->read)) <
                       call.request_at &&
                   has_readers(load_relaxed(&pipe->ends));
        }
        case Request::pipes:
            return call.request_at == poll_turn_of(m, p.words[process_task]) &&
                   !may_be_closed(p, call, process);
        case Request::child:
            if (call.request_at == 0)
                return load_relaxed(&process.first_zombie) == 0 &&
                       load_relaxed(&process.first_child) != 0;
            return is_alive(m, u32(call.request_at));
        default: return true;
    }
}

u64 key_of(const CallState& call, u32 task, u32 process) {
    switch (call.request) {
        case Request::pipe_data: return wait_key(WaitFor::pipe_data, call.request_node);
        case Request::pipe_room: return wait_key(WaitFor::pipe_room, call.request_node);
        case Request::pipes: return pipes_key();
        case Request::child: return wait_key(WaitFor::child, process, call.request_at);
        default: return wait_key(WaitFor::time, task);
    }
}

bool park_in_call(const Machine& m, const Lane& lane) {
    CallState* call = call_state(lane.p);
    const u32 process = lane.p.entry;
    const u64 key = key_of(*call, lane.task, process);
    const u64 deadline = get<u64>(lane.p.words, lane.thread + thread_wait_until);
    if (park(m, lane.task, key, deadline,
             [&] { return still_waits(m, lane.p, *call, deadline, process); }))
        return true;
    lane.p.words[lane.thread + thread_state] = u32(ThreadState::ready);
    return false;
}

// ---- ends --------------------------------------------------------------------------

// Keeps where a process of the caller's task was when a fault ended it. The host learns by a record
// which frames led there, and that a child ended so: otherwise only its parent is told. The stack
// has been saved.
[[gnu::noinline]] void note_fault(const Machine& m, const Lane& lane, Ending ending, u32 code) {
    constexpr u32 max_records = 4 * max_fault_frames;  // handlers have some of them
    ProcessEntry& process = process_of(m, lane);
    const u32* words = lane.p.words;
    process.trap_pc = words[lane.thread + thread_pc];
    if (system_of(lane.p).debug_capacity == 0) return;
    const bool is_child = load_relaxed(&process.parent) != host_parent;
    FaultEnding fault{u32(ending), code, process.program, is_child, 1, {process.trap_pc}};
    const u32 first = words[lane.thread + thread_rp], end = words[lane.thread + thread_stack_end];
    for (u32 i = 0, at = first; i < max_records && at < end && fault.frame_count < max_fault_frames;
         i++, at += record_words) {
        const u32 position = words[at + record_pc];
        if (!(position & handler_bit) && position > ret_position)
            fault.positions[fault.frame_count++] = position - 1;
    }
    note_ending(lane.p, process.pid, fault);
}

// Returns true for the states of a thread whose own fault ended it.
bool is_fault(ThreadState state) {
    switch (state) {
        case ThreadState::trapped:
        case ThreadState::uncaught:
        case ThreadState::out_of_fuel: return true;
        default: return false;
    }
}

// What is left to do for a task whose end was found.
struct TaskEnd {
    bool is_alone = false;  // as end_task wants to know it
    bool is_fault = false;  // its own fault ended the process
};

// Whether the task has ended, with its process or alone.
bool has_ended(const Machine& m, const Lane& lane, ThreadState state, TaskEnd& found) {
    const u32* thread = lane.p.words + lane.thread;
    ProcessEntry& process = process_of(m, lane);
    auto end = [&](Ending ending, u32 code) {
        if (lane.has_threads) return end_all_tasks(m, process.pid, ending, code);
        return found.is_alone = claim_end(process, process.pid, ending, code);
    };
    auto fail = [&](Ending ending, u32 code) {
        found.is_fault = end(ending, code);
        if (found.is_fault) note_fault(m, lane, ending, code);
    };
    switch (state) {
        case ThreadState::finished:
            if (m.task(lane.task).tid == 0) end(Ending::exited, 0);
            return true;
        case ThreadState::exited:
            end(Ending::exited, at_handle<ProcessBlock>(lane.p, lane.p.block)->exit_code);
            return true;
        case ThreadState::trapped: fail(Ending::trapped, thread[thread_trap]); return true;
        case ThreadState::uncaught: fail(Ending::trapped, 0); return true;
        case ThreadState::out_of_fuel: fail(Ending::out_of_fuel, 0); return true;
        default: return is_ending(process);
    }
}
// Returns true for the states of a thread that does not run again. Its stack is looked at only if a
// fault ended it.
bool is_end(ThreadState state) {
    switch (state) {
        case ThreadState::finished:
        case ThreadState::exited:
        case ThreadState::trapped:
        case ThreadState::uncaught:
        case ThreadState::out_of_fuel: return true;
        default: return false;
    }
}

// What becomes of a task that is off its lane, by the state that it left. Outgrown ones are seen to
// by grow_task.
void settle(const Machine& m, const Lane& lane, ThreadState state, EndedTasks& ended) {
    TaskEnd found;
    if (has_ended(m, lane, state, found)) {
        if (!found.is_fault || m.header->shows_faults == 0)
            return end_task(m, lane.task, found.is_alone, ended);
        // It ends when it comes back, like all whose process has ended meanwhile.
        call_state(lane.p)->request = Request::show;
        return ask_host(m, lane.task);
    }
    bool is_parked = false;
    switch (state) {
        case ThreadState::waiting: is_parked = park_at_memory(m, lane); break;
        case ThreadState::sleeping: call_state(lane.p)->request = Request::time; [[fallthrough]];
        case ThreadState::blocked: is_parked = park_in_call(m, lane); break;
        case ThreadState::host: return ask_host(m, lane.task);
        default: break;
    }
    if (!is_parked) make_ready(m, lane.task, state == ThreadState::ready);
}

// Of one whose process ended before its turn came. Of many that wait for the same thing a few are
// woken, and wake others when they have looked at it: those that never will leave that to others.
[[gnu::noinline]] void end_before_turn(const Machine& m, u32 index, EndedTasks& ended) {
    const TaskEntry& task = m.task(index);
    if (task.wake == Wake::woken) wake(m, task.wait_key, woken_at_once);
    end_task(m, index, false, ended);
}

// ---- workers -----------------------------------------------------------------------

// A queue with ready tasks. max_programs: there is none.
struct ReadyQueue {
    u32 program = max_programs, level = 0;
    QueueLook seen = {};
};

QueueLook shuffled(QueueLook mine, u32 from) {
    return {shuffle(mine.head, from), s32(shuffle(u32(mine.there), from))};
}

// Finds ready tasks of the best level that there is among the first `count` programs, or of the
// worst, from `start` on. To look costs no order; who takes something from it gets that with it.
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

// Finds ready tasks of that program: the best there are or, to be fair, the worst.
ReadyQueue find_ready(const Machine& m, u32 program, bool is_fair) {
    static_assert(warp_lanes == 1 || warp_lanes >= queue_levels);  // one alone has no gang
    QueueLook seen;
    if (lane_id() < queue_levels) seen = look_at(m.program(program).queues[lane_id()]);
    const u32 found = ballot(seen.there > 0);
    if (found == 0) return {};
    const u32 level = is_fair ? 31 - u32(__builtin_clz(found)) : lowest(found);
    return {program, level, shuffled(seen, level)};
}

class Worker {
public:
    Worker(const Machine& m, u32 warp, u64 until, u8* stack_limit)
        : m_(m),
          kept_(*m.kept),
          pulse_(m, warp, until),
          stack_limit_(stack_limit),
          is_eager_(warp % warps_to_next_eager == first_worker &&
                    warp / warps_to_next_eager < eager_warps),
          picks_(warp),
          start_(warp),
          busy_lane_ns_(pulse_.entry().busy_lane_ns),
          lane_ns_(pulse_.entry().lane_ns) {}

    // A part of the kernel, with most of what it calls: in functions that are called, which some
    // lanes may be in without the others, each access of memory takes more instructions.
    [[gnu::always_inline]] void work(StackWord* own) {
        own_ = own;
        u64 last = clock_ns();
        for (bool goes_on = true; goes_on;) {
            // Whoever goes on in another's place does so before the warp looks for anything else.
            const u32 handed = ballot(kept_.handed != 0);
            bool is_new;
            if (handed != 0) {
                is_new = take_handed(lowest(handed));
            } else {
                if (was_busy_ != 0) keep_share(last);
                pulse_.begin_beat();
                count(pulse_.now() - last);
                last = pulse_.now();
                pulse_.in(WarpPhase::take);
                const ReadyQueue ready = look_for_tasks();
                goes_on = pulse_.goes_on();
                is_new = goes_on && ready.program != max_programs && take_tasks(ready);
            }
            const bool took_some = ballot(is_new) != 0;
            if (took_some) begin_turns(is_new);
            const u32 running = ballot(lane_.has_task);
            if (took_some || running != 0) naps_ = 0;
            was_busy_ = popcount(running);
            if (running != 0 || handed != 0)
                take_turn(goes_on && running != 0, handed == 0);
            else if (!took_some && goes_on)
                rest();  // else they ended when they came
        }
        if (lane_id() == 0) store_relaxed(&pulse_.entry().lanes_busy, u32{0});
    }

private:
    void count(u64 elapsed) {
        if (lane_id() != 0) return;
        WarpEntry& entry = pulse_.entry();
        store_relaxed(&entry.busy_lane_ns, busy_lane_ns_ += was_busy_ * elapsed);
        store_relaxed(&entry.lane_ns, lane_ns_ += warp_lanes * elapsed);
        store_relaxed(&entry.lanes_busy, was_busy_);
    }

    // `may_hand`: whoever waited for the only one, if that ends, goes on in its place.
    void take_turn(bool goes_on, bool may_hand) {
        // All lanes fetch what the gang stands at.
        if (!lane_.has_task)
            lane_.p.code = reinterpret_cast<const u64*>(m_.pages + m_.program(program_).code_at);
        pulse_.in(WarpPhase::run);
        const ThreadState state = goes_on ? run_lanes() : ThreadState::ready;
        if (lane_.has_task && !goes_on) m_.task(lane_.task).was_on_lane = 1;
        if (lane_.has_task && is_end(state)) fetch_ahead_of_end();
        pulse_.in(WarpPhase::leave);
        if (kept_.task != 0) give_back_kept(m_);
        kept_.may_hand = goes_on && may_hand && was_busy_ == 1;
        leave_lanes(lane_.has_task && (!goes_on || state != ThreadState::ready || gives_way()),
                    state);
        kept_.may_hand = false;
    }

    // As soon as one has something to wait for it is off its lane.
    ThreadState run_lanes() {
        const u32 thread = lane_.has_task ? lane_.thread : 0, enough = was_busy_ - 1;
        const ProgramInfo& info = m_.program(program_).info;
        const NativeTable native(info.native);
        if (native.entry_at == nullptr) return run(lane_.p, thread, turn_quantum, enough);
        return run_native(lane_.p, native, thread, native_turn_quantum, enough, stack_limit_,
                          info.alternates != 0);
    }

    // Nothing to do: longer and longer naps.
    void rest() {
        pulse_.in(WarpPhase::rest);
        if (naps_ < 11) naps_++;
        const u32 nap = 250u << naps_, longest = is_eager_ ? longest_eager_nap_ns : longest_nap_ns;
        sleep_ns(nap < longest ? nap : longest);
    }

    // Asleep for the part of the time that is not this machine's.
    void keep_share(u64 begin) {
        const u32 share = shuffle(lane_id() == 0 ? load_relaxed(&m_.header->share) : 0, 0);
        if (share == 0 || share >= 100) return;
        const u64 until = begin + (shuffle(clock_ns(), 0) - begin) * 100 / share;
        while (pulse_.now() < until) {
            if (!pulse_.beat()) return;
            sleep_ns(100'000);
        }
    }

    // Its slice is over and others wait.
    bool gives_way() const {
        if (!lane_.has_task) return false;
        const ProcessEntry& process = process_of(m_, lane_);
        if (is_ending(process)) return true;
        // Another of its threads wants the memory to grow, and waits for this one to be off its
        // lane.
        if (load_relaxed(&process.quiet) != 0) return true;
        const u64 now = clock_ns();
        if (now - lane_.since < m_.header->slice_ns) return false;
        u32 waiting = 0;
        const u32 count = load_relaxed(&m_.header->programs_used);
        for (u32 i = 0; i < count; i++)
            for (const RunQueue& queue : m_.program(i).queues) waiting += queue_length(queue);
        // Of all lanes about as many as there are tasks that wait, whichever it hits: if all made
        // way for a few, these would be so many that wait, and nobody would do anything else.
        const u64 dice = (now ^ (u64(lane_.task) << 32)) * 0x9e3779b97f4a7c15;
        return u32(dice >> 32) % (m_.header->warp_count * m_.header->lanes) < waiting;
    }

    // Where lanes without a task can get one: of the gang's program, if there is a gang.
    ReadyQueue look_for_tasks() {
        const u32 idle = ballot(!lane_.has_task);
        if (idle == 0) return {};
        picks_++;
        // Now and then the worst comes first, so that all get on.
        const bool is_fair = picks_ % 8 == 0;
        if (popcount(idle) != warp_lanes) return find_ready(m_, program_, is_fair);
        // Those that came just now are looked at the next time.
        const u32 count = load_relaxed(&m_.header->programs_used);
        if (++start_ >= programs_) start_ = 0;
        const ReadyQueue ready = find_ready(m_, programs_, start_, is_fair);
        programs_ = shuffle(count, 0);
        program_ = ready.program;
        return ready;
    }

    // Lanes without a task get ready ones from there. Whether this one did.
    bool take_tasks(const ReadyQueue& ready) {
        const u32 idle = ballot(!lane_.has_task);
        if (program_ >= programs_there_)  // acquired: the program is there
            programs_there_ = shuffle(load_shared(&m_.header->programs_used), 0);
        RunQueue& queue = m_.program(program_).queues[ready.level];
        u32 first = 0, count = 0;
        if (lane_id() == lowest(idle))
            count = take_tickets(queue, popcount(idle), first, ready.seen);
        count = shuffle(count, lowest(idle));
        first = shuffle(first, lowest(idle));
        const u32 rank = popcount(idle & ((u32{1} << lane_id()) - 1));
        const bool is_new = !lane_.has_task && rank < count;
        if (is_new) {
            lane_.task = fetch_task(queue, m_.queue_slots(queue), first + rank);
            lane_.has_task = true;
        }
        sync_warp();
        return is_new;
    }

    // The lane that has it goes on with the task that waited for another's end.
    bool take_handed(u32 lane) {
        const bool is_new = lane_id() == lane;
        if (is_new) {
            lane_.task = kept_.handed - 1;
            lane_.has_task = true;
            kept_.handed = 0;
        }
        program_ = shuffle(kept_.program, lane);
        return is_new;
    }

    // Lanes whose turn it is, one after another; the warp gets on meanwhile. Tasks that end in it
    // are given back by the last one.
    template <class F>
    void one_after_another(bool has_turn, F f) {
        EndedTasks ended;
        for (u32 left = ballot(has_turn); left != 0;) {
            const u32 lane = lowest(left);
            left &= left - 1;
            if (lane_id() == lane) {
                f(ended);
                if (left == 0) give_back(m_, ended);
            }
            sync_warp();
            if (left == 0) return;
            ended = {shuffle(ended.first, lane), shuffle(ended.last, lane),
                     shuffle(ended.leaving, lane)};
            pulse_.get_on();
        }
    }

    void begin_turns(bool is_new) {
        const ProgramEntry& program = m_.program(program_);
        const ProgramInfo& info = program.info;
        prefetch(&info.native);  // what run_lanes looks at
        bool is_ending_now = false;
        u32 fresh = 0;
        if (is_new) {
            TaskEntry& task = m_.task(lane_.task);
            store_task_state(task, TaskState::running);
            task.was_on_lane = 0;
            fresh = task.is_fresh;
            lane_.p = place_of(m_, program, lane_.task);
            is_ending_now = is_ending(process_of(m_, lane_));
            lane_.has_threads = info.thread_entry != 0;
        }
        for (u32 left = ballot(is_new && fresh == 0); left != 0; left &= left - 1)
            fetch_ahead_of_turn(shuffle(lane_.p.words, lowest(left)), info);
        one_after_another(is_ending_now || (is_new && lane_.has_threads), [&](EndedTasks& ended) {
            if (is_ending_now) end_before_turn(m_, lane_.task, ended);
            if (is_ending_now || !enter(m_, lane_.task)) lane_.has_task = is_new = false;
        });
        const bool is_fresh = is_new && fresh != 0;
        if (ballot(is_fresh) != 0) {
            pulse_.in(WarpPhase::prepare);
            for (u32 left = ballot(is_fresh); left != 0;) {
                const u32 lane = lowest(left);
                prepare_task(m_, program, pulse_, shuffle(lane_.task, lane));
                fetch_ahead_of_turn(shuffle(lane_.p.words, lane), info);
                left &= left - 1;
                if (left != 0) pulse_.get_on();
            }
        }
        if (is_new) {
            // It may have been moved before it could enter.
            if (lane_.has_threads) lane_.p = place_of(m_, program, lane_.task);
            lane_.thread = info.thread;
            lane_.since = clock_ns();
            answer_wait(m_, lane_);
            load_stack(m_, lane_, info, own_);
        }
        sync_warp();
    }

    // What is looked at when a process ends.
    void fetch_ahead_of_end() const {
        prefetch_all(process_of(m_, lane_));
        prefetch_all(m_.task(lane_.task));
        prefetch(at_handle<u8>(lane_.p, lane_.p.block));
    }
    template <class T>
    static void prefetch_all(const T& what) {
        constexpr u32 line = line_words * sizeof(u32);
        const auto* bytes = reinterpret_cast<const u8*>(&what);
        for (u32 at = 0; at < sizeof(T); at += line) prefetch(bytes + at);
        prefetch(bytes + sizeof(T) - 1);
    }

    // What a task needs first, while it is being made ready: a line of its words by each lane, of
    // what comes before its stack, of its first frames, or of its newest records.
    static void fetch_ahead_of_turn(const u32* words, const ProgramInfo& info) {
        constexpr u32 frames = warp_lanes / 2, records = warp_lanes - warp_lanes / 8;
        const u32 lane = lane_id();
        const u32 mine = lane < frames    ? lane * line_words
                         : lane < records ? info.stack + (lane - frames) * line_words
                                          : info.stack_end - (warp_lanes - lane) * line_words;
        if (mine < info.stack_end) prefetch(words + mine);
    }

    // All lanes; those that leave say so.
    void leave_lanes(bool leaves, ThreadState state) {
        if (ballot(leaves) == 0) return;
        u32 grower = 0;  // task + 1
        if (leaves) {
            if (!is_end(state) || is_fault(state)) save_stack(m_, lane_, m_.program(program_).info);
            fetch_add(&process_of(m_, lane_).time_used, clock_ns() - lane_.since);
        }
        one_after_another(leaves, [&](EndedTasks& ended) {
            grower = go(m_, lane_);
            const bool grows = state == ThreadState::outgrown && !is_ending(process_of(m_, lane_));
            if (!grows)
                settle(m_, lane_, state, ended);
            else if (ask_for_quiet(m_, lane_.task))
                grower = lane_.task + 1;
            lane_.has_task = false;
        });
        if (ballot(grower != 0) != 0) pulse_.in(WarpPhase::grow);
        for (u32 left = ballot(grower != 0); left != 0; left &= left - 1)
            grow_task(m_, pulse_, shuffle(grower, lowest(left)) - 1);
    }

    const Machine& m_;
    Kept& kept_;
    Pulse pulse_;
    Lane lane_;
    StackWord* own_ = nullptr;
    u8* stack_limit_;
    bool is_eager_;
    u32 program_ = max_programs;  // of the gang
    u32 picks_, start_, naps_ = 0, was_busy_ = 0;
    u32 programs_ = 0, programs_there_ = 0;  // as many as there were a turn ago, and are known
    u64 busy_lane_ns_, lane_ns_;             // what the entry says, at hand
};

// ---- the clock ---------------------------------------------------------------------

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

[[gnu::always_inline]] void run_machine(const MachineParams& params, u32 warp, u8* stack_limit) {
    u8* system = reinterpret_cast<u8*>(params.system);
    auto* header =
        reinterpret_cast<MachineHeader*>(system + reinterpret_cast<SystemHeader*>(system)->machine);
    Kept kept;
    const Machine m(system, reinterpret_cast<u8*>(params.pages), header, &kept);
    if (warp == mailbox_warp) {
        serve_mailbox(m, *reinterpret_cast<Mailbox*>(params.mailbox), params.until);
    } else if (warp == clock_warp) {
        Clock(m, warp, params.until).run();
    } else {
        alignas(StackStep) StackWord own[lane_stack_slots == 0 ? 1 : lane_stack_slots];
        Worker(m, warp, params.until, stack_limit).work(own);
    }
    sync_warp();
    // The last one leaves everything as the next launch wants it.
    if (lane_id() == 0 && fetch_add(&header->parked_warps, u32{1}) + 1 == header->warp_count) {
        store_relaxed(&header->parked_warps, u32{0});
        store_shared(&header->stop, u32{stop_none});
    }
}

}  // namespace gpurun::rt
