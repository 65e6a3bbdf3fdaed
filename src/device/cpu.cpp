// The CPU as a device: process memory is reserved address space, and the runtime is called.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>

#include "base/format.h"
#include "base/phases.h"
#include "base/threads.h"
#include "device/cpu_machine.h"
#include "device/cpu_native.h"
#include "device/devices.h"
#include "device/slot_layout.h"
#include "runtime/machine/waiting.h"
#include "runtime/memory/watch.h"
#include "runtime/scheduler/scheduler.h"
#include "runtime/vm/interp.h"
#include "runtime/wasi/system.h"

namespace gpurun::device {
namespace {

// Words of code between two looks at the stop request: well under a millisecond, and some 20 ms
// of bulk operations.
constexpr s64 quantum = 1 << 16;
constexpr s64 native_quantum = 1 << 22;
constexpr s64 early_quantum = 64;  // until there is machine code, of Tier::early
constexpr std::chrono::microseconds sample_every(500);  // of a worker's time
constexpr u32 sampled_share = 16;  // of a quantum, so that processes are seen that end soon

ThreadState run_thread(const rt::Process& process, u32 thread, const CpuNativeTable& native,
                       Tier tier, u32 share = 1) {
    if (native.is_empty())
        return rt::run(process, thread, tier == Tier::early ? early_quantum : quantum / share);
    return rt::run_native(process, native.table(), thread, native_quantum / share, 0, stack_limit(),
                          tier == Tier::alternate);
}

// Zero pages that take memory only where touched.
class Reservation {
public:
    static Result<Reservation> make(u64 size, const char* what) {
        if (size == 0) return Reservation(nullptr, 0);
        void* p = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p == MAP_FAILED)
            return Error{
                format("cannot reserve %llu MiB of address space for %s: %s; raise the "
                       "limit (ulimit -v)",
                       (unsigned long long)(size >> 20), what, std::strerror(errno))};
        return Reservation(p, size);
    }
    Reservation(Reservation&& other) noexcept
        : p_(std::exchange(other.p_, nullptr)), size_(std::exchange(other.size_, 0)) {}
    Reservation& operator=(Reservation&&) = delete;
    ~Reservation() {
        if (p_) munmap(p_, size_);
    }
    // Has the system use large pages for all but the beginning, where it has them: gigabytes are
    // then taken and freed in a small part of the time. Most guests touch the beginning alone.
    void prefer_large_pages() const {
        constexpr u64 beginning = u64{32} << 20;
        if (size_ > beginning) madvise(as<u8>() + beginning, size_ - beginning, MADV_HUGEPAGE);
    }
    template <class T>
    T* as() const {
        return static_cast<T*>(p_);
    }

private:
    Reservation(void* p, u64 size) : p_(p), size_(size) {}
    void* p_;
    u64 size_;
};

// A table of machine code with room for an entry at every position of the code.
class NativeRoom {
public:
    static Result<NativeRoom> make(u64 code_words) {
        Reservation entry_at =
            TRY(Reservation::make(code_words * sizeof(u32), "entries of machine code"));
        // The first is none, the second that of all quick code.
        Reservation entries =
            TRY(Reservation::make(code_words ? (code_words + 2) * sizeof(rt::NativeEntry) : 0,
                                  "entries of machine code"));
        Reservation quick_at =
            TRY(Reservation::make(code_words * sizeof(u64), "entries of quick code"));
        return NativeRoom(std::move(entry_at), std::move(entries), std::move(quick_at));
    }
    CpuNativeTable& table() const { return *table_; }

private:
    NativeRoom(Reservation entry_at, Reservation entries, Reservation quick_at)
        : entry_at_(std::move(entry_at)),
          entries_(std::move(entries)),
          quick_at_(std::move(quick_at)),
          table_(std::make_unique<CpuNativeTable>(
              entry_at_.as<u32>(), entries_.as<rt::NativeEntry>(), quick_at_.as<u64>())) {}
    Reservation entry_at_, entries_, quick_at_;
    std::unique_ptr<CpuNativeTable> table_;
};

class CpuSystem final : public SystemMemory {
public:
    CpuSystem(Reservation memory, u64 size) : memory_(std::move(memory)), size_(size) {}
    u64 size() const override { return size_; }
    Result<void> write(u64 offset, std::span<const u8> bytes) override {
        std::ranges::copy(bytes, at() + offset);
        return {};
    }
    Result<void> read(u64 offset, std::span<u8> bytes) override {
        std::copy_n(at() + offset, bytes.size(), bytes.begin());
        return {};
    }
    Result<std::vector<u64>> load_shared(u64 offset, u64 stride, u64 count) override {
        std::vector<u64> numbers(count);
        for (u64 i = 0; i < count; i++) numbers[i] = number(offset + i * stride).load();
        return numbers;
    }
    Result<void> store_shared(u64 offset, u64 value) override {
        number(offset).store(value);
        return {};
    }
    Result<TakenMemory> take(u64 size) override {
        auto keeper = std::make_shared<const Reservation>(std::move(memory_));
        return TakenMemory{{keeper->as<const u8>(), size}, keeper};
    }
    u8* at() const { return memory_.as<u8>(); }

private:
    std::atomic_ref<u64> number(u64 offset) const {
        return std::atomic_ref<u64>(*reinterpret_cast<u64*>(at() + offset));
    }

    Reservation memory_;
    u64 size_;
};

u8* address_of(const SystemMemory* system) {
    return system ? static_cast<const CpuSystem*>(system)->at() : nullptr;
}

// The process's side of system memory, if there is any. False: there was no room for it.
bool begin_in_system(const rt::Process& process, u32 id) {
    if (process.system == nullptr || process.words[process_block] != 0) return true;
    process.words[process_block] = rt::begin_process(process, id);
    return process.words[process_block] != 0;
}

class CpuSpace final : public Space {
public:
    CpuSpace(Reservation code, NativeRoom native, Reservation words, Reservation bytes,
             const Sizes& sizes)
        : code_(std::move(code)),
          native_room_(std::move(native)),
          words_(std::move(words)),
          bytes_(std::move(bytes)),
          process_{
              code_.as<u64>(),         words_.as<u32>(), bytes_.as<u8>(), words_.as<u32>(), 0, 63,
              address_of(sizes.system)},
          native_(native_room_.table()),
          tier_(sizes.tier),
          is_watched_(sizes.is_watched) {}

    Result<void> use_native(const NativePart& part) override {
        native_.add(part);
        return {};
    }
    Activity activity(u32 thread) override {
        Activity seen;
        seen.position = words_.as<u32>()[thread + thread_pc];
        native_.take_misses(seen);
        return seen;
    }
    Result<void> write_code(u32 position, std::span<const u64> words) override {
        std::ranges::copy(words, code_.as<u64>() + position);
        return {};
    }
    Result<void> read_code(u32 position, std::span<u64> words) override {
        std::copy_n(code_.as<u64>() + position, words.size(), words.begin());
        return {};
    }
    Result<void> write_words(u32 index, std::span<const u32> words) override {
        std::ranges::copy(words, words_.as<u32>() + index);
        return {};
    }
    Result<void> read_words(u32 index, std::span<u32> words) override {
        std::copy_n(words_.as<u32>() + index, words.size(), words.begin());
        return {};
    }
    Result<void> write_bytes(u64 offset, std::span<const u8> bytes) override {
        std::ranges::copy(bytes, bytes_.as<u8>() + offset);
        return {};
    }
    Result<void> read_bytes(u64 offset, std::span<u8> bytes) override {
        std::copy_n(bytes_.as<u8>() + offset, bytes.size(), bytes.begin());
        return {};
    }
    Result<ThreadState> run(u32 thread, const RunControl& control) override {
        PhaseTimer timer(Phase::run);
        if (!begin_in_system(process_, 0)) process_.system = nullptr;
        const auto end = std::chrono::steady_clock::now() + control.slice;
        for (;;) {
            if (!rt::may_go_on(process_, process_.words + thread)) return state_of(thread);
            const ThreadState state = run_thread(process_, thread, native_, tier_);
            if (is_watched_) rt::verify_process(process_, 0);
            if (state != ThreadState::ready || control.wants_stop()) return state;
            if (control.slice.count() > 0 && std::chrono::steady_clock::now() >= end) return state;
        }
    }
    Result<ThreadState> step(u32 thread, u64 count) override {
        if (!begin_in_system(process_, 0)) process_.system = nullptr;
        if (!rt::may_go_on(process_, process_.words + thread)) return state_of(thread);
        return rt::step(process_, thread, s64(count));
    }

private:
    ThreadState state_of(u32 thread) const {
        return ThreadState(words_.as<u32>()[thread + thread_state]);
    }

    Reservation code_;
    NativeRoom native_room_;
    Reservation words_, bytes_;
    rt::Process process_;
    CpuNativeTable& native_;
    Tier tier_;
    bool is_watched_;
};

// ---- bursts ------------------------------------------------------------------------

// The machine code of a burst: there from the beginning, or from some moment on.
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
    // By any worker, in turn with the processes. `position` is where one of its own is, or 0.
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
              burst.code.data(),       words_.as<u32>(), bytes_.as<u8>(), words_.as<u32>(), 0, 63,
              address_of(burst.system)} {}

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

    // Runs for a while; `ready` if there is more to do. Calls `between` between two quanta.
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
    // Returns true if it waits for nothing but time.
    bool falls_asleep(ThreadState state) const {
        return rt::waits_for_time(process_.words + burst_.thread, state);
    }
    // How long it waits yet.
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

    // Nothing of an earlier process may be needed by the next.
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

// What the workers of a burst share beside the processes.
struct Together {
    std::mutex host;  // what the host does to system memory is not for several at once
    std::atomic<bool> has_failed = false;  // one of them
    std::atomic<u64> ended = 0;            // processes, of all parts so far
    std::mutex progress;                   // held by the one that tells it
};

// What a core does in a burst. A process that sleeps or takes long gives way to the next one, in a
// slot of its own, so that none keeps the others from their turn.
class Worker {
public:
    Worker(const Burst& burst, const SlotLayout& layout, BurstNative& native,
           std::atomic<u32>& next, BurstResults& results, const RunControl& control,
           Together& together)
        : burst_(burst),
          layout_(layout),
          native_(native),
          next_(next),
          results_(results),
          control_(control),
          together_(together) {}

    Result<void> work() {
        for (;;) {
            bool has_run = false;
            native_.look_for_more(0);
            for (Turn& turn : turns_) has_run |= !control_.wants_stop() && run(turn);
            if (problem_) return *problem_;
            if (control_.wants_stop()) break;
            if (together_.has_failed) return {};  // nobody will have the results
            bool has_new = TRY(take_next());
            if (busy_ == 0 && !has_new) return {};
            if (!has_run && !has_new) nap();
        }
        for (Turn& turn : turns_)
            if (turn.is_busy) finish(turn, ThreadState::ready);
        return {};
    }

private:
    static constexpr usize max_slots = 1024;  // then new processes wait

    struct Turn {
        Slot slot;
        u32 id = 0;
        bool is_busy = false, is_asleep = false;
    };

    // Begins a process that nobody has begun.
    Result<bool> take_next() {
        auto free = std::ranges::find_if(turns_, [](const Turn& turn) { return !turn.is_busy; });
        if (free == turns_.end() && turns_.size() == max_slots) return false;
        u32 id = next_.fetch_add(1, std::memory_order_relaxed);
        if (id >= burst_.end()) {
            next_.fetch_sub(1, std::memory_order_relaxed);
            return false;
        }
        if (free == turns_.end()) {
            Reservation words =
                TRY(Reservation::make(layout_.words.size() * sizeof(u32), "stack and heap"));
            Reservation bytes =
                TRY(Reservation::make(std::max<u64>(layout_.bytes_per_process, 1), "memories"));
            bytes.prefer_large_pages();
            turns_.emplace_back(Slot(burst_, layout_, native_, std::move(words), std::move(bytes)));
            free = std::prev(turns_.end());
        }
        free->id = id;
        free->is_busy = true;
        free->is_asleep = false;
        busy_++;
        free->slot.prepare(id);
        run(*free);
        return true;
    }

    // False: there was nothing to do.
    bool run(Turn& turn) {
        if (!turn.is_busy) return false;
        if (turn.is_asleep) {
            if (!turn.slot.may_go_on()) return false;
            turn.is_asleep = false;
        }
        ThreadState state = turn.slot.run(control_, [&] {
            sample(turn);
            native_.look_for_more(turn.slot.position());
        });
        if (state == ThreadState::host) {
            std::lock_guard lock(together_.host);
            Result<void> served = burst_.serve ? burst_.serve(turn.slot) : Result<void>();
            if (!served && !problem_) problem_ = served.error();
            turn.slot.wake();
        } else if (turn.slot.falls_asleep(state)) {
            turn.is_asleep = true;
        } else if (state != ThreadState::ready) {
            if (state == ThreadState::trapped && burst_.look) look(turn);
            finish(turn, state);
        }
        return true;
    }

    void look(Turn& turn) {
        std::lock_guard lock(together_.host);
        Result<bool> seen = burst_.look(turn.slot, turn.id);
        if (!seen && !problem_) problem_ = seen.error();
    }

    // Looks at the process's stack if it is time for that.
    void sample(Turn& turn) {
        if (!burst_.sample) return;
        const auto now = std::chrono::steady_clock::now();
        if (now < next_sample_) return;
        next_sample_ = now + sample_every;
        std::lock_guard lock(together_.host);
        Result<void> seen = burst_.sample(turn.slot, 1);
        if (!seen && !problem_) problem_ = seen.error();
    }

    void finish(Turn& turn, ThreadState state) {
        turn.slot.verify(turn.id);
        turn.slot.write_result(
            state, results_.words.data() + usize(turn.id - burst_.first) * results_.stride);
        turn.is_busy = false;
        busy_--;
        together_.ended.fetch_add(1, std::memory_order_relaxed);
        if (!control_.progress) return;
        // Whoever finds the lock taken leaves the news to the next one.
        if (std::unique_lock lock(together_.progress, std::try_to_lock); lock)
            control_.progress(together_.ended.load(std::memory_order_relaxed));
    }

    // Until the first of the sleepers wakes up, or a look at the stop request is due.
    void nap() const {
        std::chrono::nanoseconds shortest = std::chrono::milliseconds(10);
        for (const Turn& turn : turns_)
            if (turn.is_busy && turn.is_asleep)
                shortest = std::min(shortest, turn.slot.sleep_left());
        std::this_thread::sleep_for(shortest);
    }

    const Burst& burst_;
    const SlotLayout& layout_;
    BurstNative& native_;
    std::atomic<u32>& next_;
    BurstResults& results_;
    const RunControl& control_;
    Together& together_;
    std::deque<Turn> turns_;
    std::optional<Error> problem_;
    usize busy_ = 0;
    std::chrono::steady_clock::time_point next_sample_ =
        std::chrono::steady_clock::now() + sample_every;
};

class CpuDevice final : public Device {
public:
    const DeviceInfo& info() const override { return info_; }
    const Usage& usage() const override { return usage_; }
    std::map<std::string, u64> driver_calls() const override { return {}; }
    KernelCounts kernel_counts() const override { return {}; }

    Result<void> prepare(Mode) override { return {}; }
    std::function<void()> kernel_assembler(Mode, Layout) const override { return {}; }
    Result<std::unique_ptr<SystemMemory>> make_system(u64 size) override {
        Reservation memory = TRY(Reservation::make(size, "files and streams"));
        memory.prefer_large_pages();
        return std::unique_ptr<SystemMemory>(new CpuSystem(std::move(memory), size));
    }
    Result<std::unique_ptr<Space>> make_space(const Sizes& sizes) override {
        return make_cpu_space(sizes);
    }
    Result<std::shared_ptr<const NativeCode>> load_native(const codegen::Image& image,
                                                          codegen::Target) override {
        return CpuNativeCode::make(image, nullptr);
    }
    Result<std::shared_ptr<const NativeCode>> load_beside(const NativeCode& loaded,
                                                          const codegen::Image& image) override {
        return CpuNativeCode::make(image, &loaded);
    }

    bool takes_late_native() const override { return true; }

    // A worker a core; two at the least, so that processes of a machine do run at once.
    Result<MachineShape> machine_shape() override {
        return MachineShape{first_worker + std::max(2u, info_.lanes), 1};
    }
    Result<std::unique_ptr<Machine>> make_machine(SystemMemory& system,
                                                  SystemMemory& pages) override {
        MachineShape shape = TRY(machine_shape());
        return make_cpu_machine(address_of(&system), address_of(&pages), shape.warps,
                                rt::run_machine);
    }

    // A thread a core; each takes the next process that nobody has taken. One part after another.
    Result<BurstOutcome> run_burst(std::span<const Burst> parts,
                                   const RunControl& control) override {
        PhaseTimer timer(Phase::run);
        BurstOutcome outcome;
        auto start = std::chrono::steady_clock::now();
        Together together;
        for (const Burst& part : parts)
            outcome.parts.push_back(TRY(run_part(part, control, together)));
        for (const Burst& part : parts)
            outcome.slots = std::max(outcome.slots, std::min(part.processes, info_.lanes));
        outcome.seconds =
            std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        outcome.launches = 1;
        return outcome;
    }

private:
    Result<BurstResults> run_part(const Burst& part, const RunControl& control,
                                  Together& together) {
        BurstResults results;
        results.stride = result_first + part.result_words;
        results.words.assign(usize(part.processes) * results.stride, 0);
        const SlotLayout layout = lay_out(part);
        const std::unique_ptr<BurstNative> native = TRY(BurstNative::make(part));
        std::atomic<u32> next = part.first;
        u32 workers = std::min(part.processes, info_.lanes);
        Result<void> outcome;
        std::mutex outcome_mutex;
        share_work(workers, [&](u32) {
            Result<void> worked = guarded([&] {
                return Worker(part, layout, *native, next, results, control, together).work();
            });
            if (worked) return;
            together.has_failed = true;
            std::lock_guard lock(outcome_mutex);
            if (outcome) outcome = std::move(worked);
        });
        TRY(std::move(outcome));
        return results;
    }

    DeviceInfo info_ = cpu_info();
    Usage usage_;
};

std::string cpu_name() {
    std::string name = "CPU";
    if (FILE* file = std::fopen("/proc/cpuinfo", "r")) {
        char line[256];
        while (std::fgets(line, sizeof line, file)) {
            char model[200];
            if (std::sscanf(line, "model name : %199[^\n]", model) == 1) {
                name = model;
                break;
            }
        }
        std::fclose(file);
    }
    return name;
}

}  // namespace

Result<std::unique_ptr<Space>> make_cpu_space(const Sizes& sizes) {
    Reservation code = TRY(Reservation::make(sizes.code_words * sizeof(u64), "code"));
    NativeRoom native = TRY(NativeRoom::make(sizes.tier == Tier::interp ? 0 : sizes.code_words));
    Reservation words = TRY(Reservation::make(sizes.words * sizeof(u32), "stack and heap"));
    // One byte at least, so that memories have an address even where there are none.
    Reservation bytes = TRY(Reservation::make(std::max<u64>(sizes.bytes, 1), "memories"));
    bytes.prefer_large_pages();
    return std::unique_ptr<Space>(new CpuSpace(std::move(code), std::move(native), std::move(words),
                                               std::move(bytes), sizes));
}

DeviceInfo cpu_info() {
    DeviceInfo info;
    info.id = "cpu";
    info.name = cpu_name();
    info.multiprocessors = info.lanes = std::max(1u, std::thread::hardware_concurrency());
    u64 page = u64(sysconf(_SC_PAGESIZE));
    info.memory_total = u64(sysconf(_SC_PHYS_PAGES)) * page;
    info.memory_free = u64(sysconf(_SC_AVPHYS_PAGES)) * page;
    info.reserves_lazily = true;
    return info;
}

std::unique_ptr<Device> make_cpu_device() { return std::make_unique<CpuDevice>(); }

}  // namespace gpurun::device
