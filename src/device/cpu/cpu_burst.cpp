// Runs bursts on the CPU. There is a thread for each core, with slots of its own, that takes one
// process after another.
#include "device/cpu/cpu_burst.h"

#include <algorithm>
#include <deque>
#include <mutex>
#include <thread>

#include "base/phases.h"
#include "base/threads.h"
#include "burst/host_part.h"
#include "device/cpu/cpu_process.h"
#include "runtime/machine/waiting.h"
#include "runtime/memory/watch.h"

namespace gpurun::device {
namespace {

using burst::SlotLayout;

constexpr std::chrono::microseconds sample_every(500);  // of a thread's time
constexpr u32 sampled_share = 16;  // of a quantum, so that processes are seen that end soon

// The machine code of a burst, which is there from the beginning or comes later.
class BurstNative {
public:
    static Result<std::unique_ptr<BurstNative>> make(const Burst& burst) {
        const bool is_interpreted = burst.native.empty() && !burst.late_native;
        NativeRoom room = TRY(NativeRoom::make(is_interpreted ? 0 : burst.code.size()));
        return std::make_unique<BurstNative>(burst, std::move(room));
    }
    BurstNative(const Burst& burst, NativeRoom room)
        : burst_(burst), room_(std::move(room)), is_late_(bool(burst.late_native)) {
        for (const NativePart& part : burst.native) room_.table().add(part);
    }
    const CpuNativeTable& now() const { return room_.table(); }
    // Takes machine code that has come. Any thread calls it between quanta of its processes.
    // `position` is where one of them is, or 0.
    void look_for_more(u32 position) {
        if (!is_late_.load(std::memory_order_relaxed)) return;
        std::unique_lock lock(mutex_, std::try_to_lock);
        const auto now = std::chrono::steady_clock::now();
        if (!lock.owns_lock() || !is_late_ || now < next_look_) return;
        next_look_ = now + (burst_.tier == Tier::early ? std::chrono::milliseconds(0) : patience);
        Activity activity;
        activity.position = position;
        room_.table().take_misses(activity);
        const Burst::Late late = burst_.late_native(activity);
        for (const NativePart& part : late.parts) room_.table().add(part);
        is_late_ = !late.is_last;
    }
    bool is_early() const {
        return burst_.tier == Tier::early && is_late_ && room_.table().is_empty();
    }

private:
    static constexpr std::chrono::milliseconds patience{2};

    const Burst& burst_;
    NativeRoom room_;
    std::atomic<bool> is_late_;
    std::mutex mutex_;
    std::chrono::steady_clock::time_point next_look_;
};

// One thread's slot: the memory that its processes use one after another.
class Slot final : public WaitingProcess {
public:
    Slot(const Burst& burst, const SlotLayout& layout, const BurstNative& native, Reservation words,
         Reservation bytes)
        : burst_(burst),
          layout_(layout),
          native_(native),
          words_(std::move(words)),
          bytes_(std::move(bytes)),
          process_{
              burst.code.data(),      words_.as<u32>(), bytes_.as<u8>(), words_.as<u32>(), 0, 63,
              system_at(burst.system)} {}

    void prepare(u32 id) {
        id_ = id;
        u32* words = process_.words;
        if (used_) {
            // Fresh objects and memories are expected to be zero.
            u32 heap = layout_.words[process_heap_next];
            std::fill(words + heap, words + words[process_heap_next], 0);
            for (const BurstMemory& memory : burst_.memories) {
                rt::Memory m = rt::memory_at(process_, memory.record);
                std::memset(m.base, 0, m.size);
            }
        }
        if (burst_.is_watched) poison();
        used_ = true;
        for (const WordRange& range : layout_.ranges)
            std::copy(layout_.words.begin() + range.begin, layout_.words.begin() + range.end,
                      words + range.begin);
        for (const BurstMemory& memory : burst_.memories) {
            u8* base = rt::memory_at(process_, memory.record).base;
            std::ranges::copy(memory.data, base);
            u64 capacity = rt::get<u64>(words + memory.record, memory_capacity);
            if (burst_.is_watched) std::memset(base + capacity, u8(canary_pattern), canary_bytes);
        }
        auto arguments = burst_.arguments.begin() + isize(id) * burst_.argument_words;
        std::copy(arguments, arguments + burst_.argument_words, words + layout_.stack);
        begin_in_system(process_, id);
    }

    // Runs the process for a while, and calls `between` between two quanta. Returns `ready` if
    // there is more to do.
    template <class Between>
    ThreadState run(const RunControl& control, Between between) {
        using namespace std::chrono;
        constexpr milliseconds slice(20);
        const auto end = steady_clock::now() + slice;
        if (process_.system != nullptr && process_.words[process_block] == 0) {
            process_.words[burst_.thread + thread_trap] = u32(Trap::system_memory_exhausted);
            return ThreadState::trapped;
        }
        for (;;) {
            ThreadState state = run_thread(process_, burst_.thread, native_.now(), burst_.tier,
                                           burst_.sample ? sampled_share : 1);
            if (state != ThreadState::ready || control.wants_stop()) return state;
            between();
            if (native_.is_early()) return state;
            if (steady_clock::now() >= end) return state;
        }
    }

    bool may_go_on() { return rt::may_go_on(process_, process_.words + burst_.thread); }
    // Returns true if the process waits for nothing but time.
    bool falls_asleep(ThreadState state) const {
        return rt::waits_for_time(process_.words + burst_.thread, state);
    }
    // Returns how much longer it waits.
    std::chrono::nanoseconds sleep_left() const {
        u64 now = rt::wait_clock(process_);
        u64 deadline = rt::get<u64>(process_.words, burst_.thread + thread_wait_until);
        u64 most = u64{3600} * 1'000'000'000;
        return std::chrono::nanoseconds(deadline > now ? std::min(deadline - now, most) : 0);
    }
    u32 position() const { return process_.words[burst_.thread + thread_pc]; }
    u32 id() const override { return id_; }
    Handle block() const override { return process_.words[process_block]; }
    Result<void> read_words(u32 index, std::span<u32> words) override {
        std::copy_n(process_.words + index, words.size(), words.begin());
        return {};
    }
    Result<void> read_bytes(u64 offset, std::span<u8> bytes) override {
        std::copy_n(process_.bytes + offset, bytes.size(), bytes.begin());
        return {};
    }
    Result<void> write_bytes(u64 offset, std::span<const u8> bytes) override {
        std::ranges::copy(bytes, process_.bytes + offset);
        return {};
    }
    void wake() { process_.words[burst_.thread + thread_state] = u32(ThreadState::ready); }

    void verify(u32 id) const {
        if (!burst_.is_watched) return;
        if (id == burst_.spoilt) rt::spoil_canary(process_);
        rt::verify_process(process_, id);
    }

    void write_result(ThreadState state, u32* to) const {
        const u32* words = process_.words;
        const u32* thread = words + burst_.thread;
        to[result_state] = u32(state);
        to[result_trap] = thread[thread_trap];
        to[result_pc] = thread[thread_pc];
        if (Handle block = words[process_block]) {
            to[result_block] = block;
            to[result_exit] = rt::at_handle<ProcessBlock>(process_, block)->exit_code;
            rt::end_process(process_, block, true);
        }
        to[result_fuel] = thread[thread_fuel];
        to[result_fuel + 1] = thread[thread_fuel + 1];
        std::copy_n(words + layout_.stack, burst_.result_words, to + result_first);
    }

private:
    using isize = std::ptrdiff_t;

    // Overwrites what a process left, to show that the next one needs nothing of it.
    void poison() {
        u32* words = process_.words;
        const u32 end = std::min(layout_.stack_end, layout_.stack + poisoned_slots);
        std::fill(words + layout_.stack, words + end, poison_word);
        for (const WordRange& range : layout_.ranges)
            std::fill(words + range.begin, words + range.end, poison_word);
    }

    static constexpr u32 poisoned_slots = gang_stack_slots;  // of a stack that may be much larger

    const Burst& burst_;
    const SlotLayout& layout_;
    const BurstNative& native_;
    Reservation words_, bytes_;
    rt::Process process_;
    u32 id_ = 0;
    bool used_ = false;
};

// What the threads of a burst share in addition to the processes.
struct BurstShared {
    std::mutex host;                       // held while the host reads or changes system memory
    std::atomic<bool> has_failed = false;  // one of them
    std::atomic<u64> ended = 0;            // processes, of all parts so far
    std::mutex progress;                   // held by the thread that reports it
};

// Runs processes of a burst on a thread. A process that sleeps or takes long gives way to the next
// one, which gets another slot, so that none keeps the others waiting.
class BurstThread {
public:
    BurstThread(const Burst& burst, const SlotLayout& layout, BurstNative& native,
                std::atomic<u32>& next, BurstResults& results, const RunControl& control,
                BurstShared& shared)
        : burst_(burst),
          layout_(layout),
          native_(native),
          next_(next),
          results_(results),
          control_(control),
          shared_(shared) {}

    Result<void> work() {
        for (;;) {
            bool has_run = false;
            native_.look_for_more(0);
            for (ProcessSlot& process : slots_) has_run |= !control_.wants_stop() && run(process);
            if (problem_) return *problem_;
            if (control_.wants_stop()) break;
            if (shared_.has_failed) return {};  // the burst fails, so nobody gets the results
            bool has_new = TRY(take_next());
            if (busy_ == 0 && !has_new) return {};
            if (!has_run && !has_new) nap();
        }
        for (ProcessSlot& process : slots_)
            if (process.is_busy) finish(process, ThreadState::ready);
        return {};
    }

private:
    static constexpr usize max_slots = 1024;  // then new processes wait

    struct ProcessSlot {
        Slot slot;
        u32 id = 0;
        bool is_busy = false, is_asleep = false;
    };

    // Begins the next process that no thread has begun. Returns false if there is none, or no slot.
    Result<bool> take_next() {
        auto free = std::ranges::find_if(
            slots_, [](const ProcessSlot& process) { return !process.is_busy; });
        if (free == slots_.end() && slots_.size() == max_slots) return false;
        u32 id = next_.fetch_add(1, std::memory_order_relaxed);
        if (id >= burst_.end()) {
            next_.fetch_sub(1, std::memory_order_relaxed);
            return false;
        }
        if (free == slots_.end()) {
            Reservation words =
                TRY(Reservation::make(layout_.words.size() * sizeof(u32), "stack and heap"));
            Reservation bytes =
                TRY(Reservation::make(std::max<u64>(layout_.bytes_per_process, 1), "memories"));
            bytes.prefer_large_pages();
            slots_.emplace_back(Slot(burst_, layout_, native_, std::move(words), std::move(bytes)));
            free = std::prev(slots_.end());
        }
        free->id = id;
        free->is_busy = true;
        free->is_asleep = false;
        busy_++;
        free->slot.prepare(id);
        run(*free);
        return true;
    }

    // Runs a process. Returns false if there was nothing to do.
    bool run(ProcessSlot& process) {
        if (!process.is_busy) return false;
        if (process.is_asleep) {
            if (!process.slot.may_go_on()) return false;
            process.is_asleep = false;
        }
        ThreadState state = process.slot.run(control_, [&] {
            sample(process);
            native_.look_for_more(process.slot.position());
        });
        if (state == ThreadState::host) {
            answer(process, state);
            process.slot.wake();
        } else if (process.slot.falls_asleep(state)) {
            process.is_asleep = true;
        } else if (state != ThreadState::ready) {
            if (state == ThreadState::trapped && burst_.look) answer(process, state);
            finish(process, state);
        }
        return true;
    }

    // Lets the host do its part for a process that trapped or waits for it.
    void answer(ProcessSlot& process, ThreadState state) {
        std::lock_guard lock(shared_.host);
        Result<bool> answered = burst::answer(burst_, process.slot, state);
        if (!answered && !problem_) problem_ = answered.error();
    }

    // Looks at the process's stack if it is time for that.
    void sample(ProcessSlot& process) {
        if (!burst_.sample) return;
        const auto now = std::chrono::steady_clock::now();
        if (now < next_sample_) return;
        next_sample_ = now + sample_every;
        std::lock_guard lock(shared_.host);
        Result<void> seen = burst_.sample(process.slot, 1);
        if (!seen && !problem_) problem_ = seen.error();
    }

    void finish(ProcessSlot& process, ThreadState state) {
        process.slot.verify(process.id);
        process.slot.write_result(
            state, results_.words.data() + usize(process.id - burst_.first) * results_.stride);
        process.is_busy = false;
        busy_--;
        shared_.ended.fetch_add(1, std::memory_order_relaxed);
        if (!control_.progress) return;
        // A thread that does not get the lock leaves the report to the next one.
        if (std::unique_lock lock(shared_.progress, std::try_to_lock); lock)
            control_.progress(shared_.ended.load(std::memory_order_relaxed));
    }

    // Sleeps until the first sleeping process wakes up, or it is time to look at the stop request.
    void nap() const {
        std::chrono::nanoseconds shortest = std::chrono::milliseconds(10);
        for (const ProcessSlot& process : slots_)
            if (process.is_busy && process.is_asleep)
                shortest = std::min(shortest, process.slot.sleep_left());
        std::this_thread::sleep_for(shortest);
    }

    const Burst& burst_;
    const SlotLayout& layout_;
    BurstNative& native_;
    std::atomic<u32>& next_;
    BurstResults& results_;
    const RunControl& control_;
    BurstShared& shared_;
    std::deque<ProcessSlot> slots_;
    std::optional<Error> problem_;
    usize busy_ = 0;
    std::chrono::steady_clock::time_point next_sample_ =
        std::chrono::steady_clock::now() + sample_every;
};

Result<BurstResults> run_part(const Burst& part, const RunControl& control, u32 cores,
                              BurstShared& shared) {
    BurstResults results;
    results.stride = part.result_stride();
    results.words.assign(usize(part.processes) * results.stride, 0);
    const SlotLayout layout = burst::lay_out(part);
    const std::unique_ptr<BurstNative> native = TRY(BurstNative::make(part));
    std::atomic<u32> next = part.first;
    u32 threads = std::min(part.processes, cores);
    Result<void> outcome;
    std::mutex outcome_mutex;
    share_work(threads, [&](u32) {
        Result<void> worked = guarded([&] {
            return BurstThread(part, layout, *native, next, results, control, shared).work();
        });
        if (worked) return;
        shared.has_failed = true;
        std::lock_guard lock(outcome_mutex);
        if (outcome) outcome = std::move(worked);
    });
    TRY(std::move(outcome));
    return results;
}

}  // namespace

Result<BurstOutcome> run_cpu_burst(std::span<const Burst> parts, const RunControl& control,
                                   u32 cores) {
    PhaseTimer timer(Phase::run);
    BurstOutcome outcome;
    auto start = std::chrono::steady_clock::now();
    BurstShared shared;
    for (const Burst& part : parts)
        outcome.parts.push_back(TRY(run_part(part, control, cores, shared)));
    for (const Burst& part : parts)
        outcome.slots = std::max(outcome.slots, std::min(part.processes, cores));
    outcome.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    outcome.launches = 1;
    return outcome;
}

}  // namespace gpurun::device
