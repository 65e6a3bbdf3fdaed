// What a worker does, which is all warps but two: it picks a gang of ready tasks of one program,
// runs them for a slice, and puts them back.
#include "runtime/native/native.h"
#include "runtime/process/growth.h"
#include "runtime/scheduler/lane.h"
#include "runtime/scheduler/pick.h"
#include "runtime/scheduler/warps.h"
#include "runtime/vm/interp.h"

namespace gpurun::rt {
namespace {

// Words of code between two looks at the stop word: some milliseconds on a busy GPU.
constexpr s64 turn_quantum = 1 << 12;
// What machine code does between two looks: a unit is about a nanosecond there, and lanes that went
// different ways take their turns one after another.
constexpr s64 native_turn_quantum = 1 << 16;
constexpr u32 line_words = 32;  // of a line of the cache
// So many of the workers nap only briefly, so that something new does not wait long: on a GPU one
// of a block, so that each has the caches of a multiprocessor to itself.
constexpr u32 eager_warps = 16, warps_to_next_eager = 4;

class Worker {
public:
    Worker(const Machine& m, u32 warp, u64 until, u8* stack_limit)
        : m_(m),
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
            const u32 succeeded = ballot(successor_.task != 0);
            bool is_new;
            if (succeeded != 0) {
                is_new = take_successor(lowest(succeeded));
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
            if (running != 0 || succeeded != 0)
                take_turn(goes_on && running != 0, succeeded == 0);
            else if (!took_some && goes_on)
                rest();  // else they ended when they came
        }
        if (lane_id() == 0) store_relaxed(&pulse_.entry().lanes_busy, u32{0});
    }

private:
    // Adds up how long lanes had tasks.
    void count(u64 elapsed) {
        if (lane_id() != 0) return;
        WarpEntry& entry = pulse_.entry();
        store_relaxed(&entry.busy_lane_ns, busy_lane_ns_ += was_busy_ * elapsed);
        store_relaxed(&entry.lane_ns, lane_ns_ += warp_lanes * elapsed);
        store_relaxed(&entry.lanes_busy, was_busy_);
    }

    // Runs the lanes' tasks for a quantum. `may_hand_over`: whoever waited for the only one, if
    // that ends, goes on in its place.
    void take_turn(bool goes_on, bool may_hand_over) {
        // All lanes fetch what the gang stands at.
        if (!lane_.has_task)
            lane_.p.code = reinterpret_cast<const u64*>(m_.pages + m_.program(program_).code_at);
        pulse_.in(WarpPhase::run);
        const ThreadState state = goes_on ? run_lanes() : ThreadState::ready;
        if (lane_.has_task && !goes_on) m_.task(lane_.task).was_on_lane = 1;
        if (lane_.has_task && is_end(state)) fetch_ahead_of_end();
        pulse_.in(WarpPhase::leave);
        if (m_.leftovers->task != 0) give_back_leftovers(m_);
        leave_lanes(lane_.has_task && (!goes_on || state != ThreadState::ready || gives_way()),
                    state, goes_on && may_hand_over && was_busy_ == 1);
    }

    // Runs the lanes' threads for a quantum, or until one has something to wait for: that is off
    // its lane at once.
    ThreadState run_lanes() {
        const u32 thread = lane_.has_task ? lane_.thread : 0, enough = was_busy_ - 1;
        const ProgramInfo& info = m_.program(program_).info;
        const NativeTable native(info.native);
        if (native.entry_at == nullptr) return run(lane_.p, thread, turn_quantum, enough);
        return run_native(lane_.p, native, thread, native_turn_quantum, enough, stack_limit_,
                          info.alternates != 0);
    }

    // Naps, longer and longer: there is nothing to do.
    void rest() {
        pulse_.in(WarpPhase::rest);
        if (naps_ < 11) naps_++;
        const u32 nap = 250u << naps_, longest = is_eager_ ? longest_eager_nap_ns : longest_nap_ns;
        sleep_ns(nap < longest ? nap : longest);
    }

    // Sleeps for the part of the time that is not this machine's.
    void keep_share(u64 begin) {
        const u32 share = shuffle(lane_id() == 0 ? load_relaxed(&m_.header->share) : 0, 0);
        if (share == 0 || share >= 100) return;
        const u64 until = begin + (shuffle(clock_ns(), 0) - begin) * 100 / share;
        while (pulse_.now() < until) {
            if (!pulse_.beat()) return;
            sleep_ns(100'000);
        }
    }

    // Returns true if the lane's task is to make way for others: its slice is over and they wait.
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
        // About as many of all lanes as there are tasks that wait, whichever it hits: if all made
        // way for a few, these would be so many that wait, and nobody would do anything else.
        const u64 dice = (now ^ (u64(lane_.task) << 32)) * 0x9e3779b97f4a7c15;
        return u32(dice >> 32) % (m_.header->warp_count * m_.header->lanes) < waiting;
    }

    // Finds where lanes without a task can get one: of the gang's program, if there is a gang.
    ReadyQueue look_for_tasks() {
        const u32 idle = ballot(!lane_.has_task);
        if (idle == 0) return {};
        picks_++;
        // Now and then the worst comes first, so that all get on.
        const bool is_fair = picks_ % 8 == 0;
        if (popcount(idle) != warp_lanes) return find_ready(m_, program_, is_fair);
        // Tasks that came just now are looked at the next time.
        const u32 count = load_relaxed(&m_.header->programs_used);
        if (++start_ >= programs_) start_ = 0;
        const ReadyQueue ready = find_ready(m_, programs_, start_, is_fair);
        programs_ = shuffle(count, 0);
        program_ = ready.program;
        return ready;
    }

    // Gives lanes without a task ready ones from there. Returns true on those that got one.
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

    // Puts the successor of a task that ended on its lane. Returns true on that lane.
    bool take_successor(u32 lane) {
        const bool is_new = lane_id() == lane;
        if (is_new) {
            lane_.task = successor_.task - 1;
            lane_.has_task = true;
            successor_.task = 0;
        }
        program_ = shuffle(successor_.program, lane);
        return is_new;
    }

    // Calls `f` on the lanes whose turn it is, one after another; the warp gets on meanwhile. Tasks
    // that end in it are given back by the last one.
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

    // Makes tasks that have just come to their lanes ready to run.
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
            if (is_ending_now || !enter_lane(m_, lane_.task)) lane_.has_task = is_new = false;
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
            // The task may have been moved before it could enter.
            if (lane_.has_threads) lane_.p = place_of(m_, program, lane_.task);
            lane_.thread = info.thread;
            lane_.since = clock_ns();
            answer_wait(m_, lane_);
            load_stack(m_, lane_, info, own_);
        }
        sync_warp();
    }

    // Fetches what is looked at when a process ends.
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

    // Fetches what a task needs first, while it is being made ready: a line of its words by each
    // lane, of what comes before its stack, of its first frames, or of its newest records.
    static void fetch_ahead_of_turn(const u32* words, const ProgramInfo& info) {
        constexpr u32 frames = warp_lanes / 2, records = warp_lanes - warp_lanes / 8;
        const u32 lane = lane_id();
        const u32 mine = lane < frames    ? lane * line_words
                         : lane < records ? info.stack + (lane - frames) * line_words
                                          : info.stack_end - (warp_lanes - lane) * line_words;
        if (mine < info.stack_end) prefetch(words + mine);
    }

    // Takes the tasks of the lanes that say so off them.
    void leave_lanes(bool leaves, ThreadState state, bool may_hand_over) {
        if (ballot(leaves) == 0) return;
        u32 grower = 0;  // task + 1
        if (leaves) {
            if (!is_end(state) || is_fault(state)) save_stack(m_, lane_, m_.program(program_).info);
            fetch_add(&process_of(m_, lane_).time_used, clock_ns() - lane_.since);
        }
        one_after_another(leaves, [&](EndedTasks& ended) {
            grower = leave_lane(m_, lane_);
            const bool grows = state == ThreadState::outgrown && !is_ending(process_of(m_, lane_));
            if (!grows)
                successor_ = end_park_or_requeue(m_, lane_, state, may_hand_over, ended);
            else if (ask_for_quiet(m_, lane_.task))
                grower = lane_.task + 1;
            lane_.has_task = false;
        });
        if (ballot(grower != 0) != 0) pulse_.in(WarpPhase::grow);
        for (u32 left = ballot(grower != 0); left != 0; left &= left - 1)
            grow_task(m_, pulse_, shuffle(grower, lowest(left)) - 1);
    }

    const Machine& m_;
    Pulse pulse_;
    Lane lane_;
    Successor successor_;  // of the task that was on the lane
    StackWord* own_ = nullptr;
    u8* stack_limit_;
    bool is_eager_;
    u32 program_ = max_programs;  // of the gang
    u32 picks_, start_, naps_ = 0, was_busy_ = 0;
    u32 programs_ = 0, programs_there_ = 0;  // as many as there were a turn ago, and are known
    u64 busy_lane_ns_, lane_ns_;             // what the entry says, at hand
};

}  // namespace

[[gnu::always_inline]] void run_worker(const Machine& m, u32 warp, u64 until, u8* stack_limit) {
    alignas(StackStep) StackWord own[lane_stack_slots == 0 ? 1 : lane_stack_slots];
    Worker(m, warp, until, stack_limit).work(own);
}

}  // namespace gpurun::rt
