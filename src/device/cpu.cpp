// The CPU as a device: process memory is reserved address space, and the runtime is called.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include "base/format.h"
#include "base/phases.h"
#include "device/devices.h"
#include "runtime/interp.h"
#include "runtime/watch.h"

namespace gpurun::device {
namespace {

// Words of code between two looks at the stop request: well under a millisecond, and some 20 ms
// of bulk operations.
constexpr s64 quantum = 1 << 16;

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
    template <class T>
    T* as() const {
        return static_cast<T*>(p_);
    }

private:
    Reservation(void* p, u64 size) : p_(p), size_(size) {}
    void* p_;
    u64 size_;
};

class CpuSpace final : public Space {
public:
    CpuSpace(Reservation code, Reservation words, Reservation bytes, bool is_watched)
        : code_(std::move(code)),
          words_(std::move(words)),
          bytes_(std::move(bytes)),
          process_{code_.as<u64>(), words_.as<u32>(), bytes_.as<u8>(), words_.as<u32>(), 0, 63},
          is_watched_(is_watched) {}

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
        for (;;) {
            ThreadState state = state_of(thread);
            if (can_go_on(state)) state = rt::run(process_, thread, quantum);
            if (is_watched_) rt::verify_process(process_, 0);
            if (state == ThreadState::waiting) state = wait_out(thread, control);
            if (state != ThreadState::ready || control.wants_stop()) return state;
        }
    }
    Result<ThreadState> step(u32 thread, u64 count) override {
        ThreadState state = state_of(thread);
        return can_go_on(state) ? rt::step(process_, thread, s64(count)) : state;
    }

private:
    ThreadState state_of(u32 thread) const {
        return ThreadState(words_.as<u32>()[thread + thread_state]);
    }
    static bool can_go_on(ThreadState state) {
        return state == ThreadState::ready || state == ThreadState::deep ||
               state == ThreadState::out_of_fuel;
    }

    // No other thread runs meanwhile: a memory.atomic.wait ends by its timeout or not at all.
    ThreadState wait_out(u32 thread, const RunControl& control) {
        using namespace std::chrono;
        constexpr auto nap = milliseconds(10);
        u32* words = words_.as<u32>();
        s64 timeout = rt::get<s64>(words, thread + thread_wait_timeout);
        if (timeout < 0) return ThreadState::waiting;
        const auto begin = steady_clock::now();
        for (nanoseconds left(timeout); left.count() > 0;
             left = nanoseconds(timeout) - (steady_clock::now() - begin)) {
            if (control.wants_stop()) return ThreadState::ready;
            std::this_thread::sleep_for(std::min<nanoseconds>(left, nap));
        }
        words[words[thread + thread_wait_result]] = 2;  // "timed-out"
        words[thread + thread_state] = u32(ThreadState::ready);
        return ThreadState::ready;
    }

    Reservation code_, words_, bytes_;
    rt::Process process_;
    bool is_watched_;
};

// ---- bursts ------------------------------------------------------------------------

// One thread's slot: the memory that its processes use one after another.
class Slot {
public:
    Slot(const Burst& burst, const u64* code, Reservation words, Reservation bytes)
        : burst_(burst),
          words_(std::move(words)),
          bytes_(std::move(bytes)),
          process_{code, words_.as<u32>(), bytes_.as<u8>(), words_.as<u32>(), 0, 63} {}

    void prepare(u32 id) {
        u32* words = process_.words;
        if (used_ && burst_.is_watched) poison();
        if (used_) {
            // Fresh objects and memories are expected to be zero.
            u32 heap = burst_.words[process_heap_next];
            std::fill(words + heap, words + words[process_heap_next], 0);
            for (u32 record : burst_.memories) {
                u64 base = rt::get<u64>(words + record, memory_base),
                    size = rt::get<u64>(words + record, memory_bytes);
                std::memset(process_.bytes + base, 0, size);
            }
        }
        used_ = true;
        for (const WordRange& range : burst_.ranges)
            std::copy(burst_.words.begin() + range.begin, burst_.words.begin() + range.end,
                      words + range.begin);
        std::copy(burst_.bytes.begin(), burst_.bytes.end(), process_.bytes);
        auto arguments = burst_.arguments.begin() + isize(id) * burst_.argument_words;
        std::copy(arguments, arguments + burst_.argument_words, words + burst_.stack);
    }

    ThreadState run(const RunControl& control) {
        for (;;) {
            ThreadState state = rt::run(process_, burst_.thread, quantum);
            if (state != ThreadState::ready || control.wants_stop()) return state;
        }
    }

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
        to[result_fuel] = thread[thread_fuel];
        to[result_fuel + 1] = thread[thread_fuel + 1];
        std::copy(words + burst_.stack, words + burst_.stack + burst_.result_words,
                  to + result_first);
    }

private:
    using isize = std::ptrdiff_t;

    // Nothing of an earlier process may be needed by the next.
    void poison() {
        u32* words = process_.words;
        std::fill(words + burst_.stack, words + burst_.words[burst_.thread + thread_stack_end],
                  poison_word);
    }

    const Burst& burst_;
    Reservation words_, bytes_;
    rt::Process process_;
    bool used_ = false;
};

class CpuDevice final : public Device {
public:
    const DeviceInfo& info() const override { return info_; }

    Result<void> prepare(bool) override { return {}; }
    Result<std::unique_ptr<Space>> make_space(const Sizes& sizes) override {
        return make_cpu_space(sizes);
    }

    // A thread a core; each takes the next process that nobody has taken. One part after another.
    Result<BurstOutcome> run_burst(std::span<const Burst> parts,
                                   const RunControl& control) override {
        PhaseTimer timer(Phase::run);
        BurstOutcome outcome;
        auto start = std::chrono::steady_clock::now();
        for (const Burst& part : parts) outcome.parts.push_back(TRY(run_part(part, control)));
        for (const Burst& part : parts)
            outcome.slots = std::max(outcome.slots, std::min(part.processes, info_.lanes));
        outcome.seconds =
            std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        outcome.launches = 1;
        return outcome;
    }

private:
    Result<BurstResults> run_part(const Burst& part, const RunControl& control) {
        BurstResults results;
        results.stride = result_first + part.result_words;
        results.words.assign(usize(part.processes) * results.stride, 0);
        std::vector<Slot> slots;
        for (u32 i = 0; i < std::min(part.processes, info_.lanes); i++) {
            Reservation words =
                TRY(Reservation::make(part.words.size() * sizeof(u32), "stack and heap"));
            Reservation bytes =
                TRY(Reservation::make(std::max<u64>(part.bytes_per_process, 1), "memories"));
            slots.emplace_back(part, part.code.data(), std::move(words), std::move(bytes));
        }
        std::atomic<u32> next = 0;
        auto work = [&](Slot& slot) {
            for (u32 id; (id = next.fetch_add(1, std::memory_order_relaxed)) < part.processes;) {
                if (control.wants_stop()) return;
                slot.prepare(id);
                ThreadState state = slot.run(control);
                slot.verify(id);
                slot.write_result(state, results.words.data() + usize(id) * results.stride);
            }
        };
        std::vector<std::thread> threads;
        for (usize i = 1; i < slots.size(); i++)
            threads.emplace_back([&work, &slots, i] { work(slots[i]); });
        work(slots[0]);
        for (std::thread& thread : threads) thread.join();
        return results;
    }

    DeviceInfo info_ = cpu_info();
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
    Reservation words = TRY(Reservation::make(sizes.words * sizeof(u32), "stack and heap"));
    // One byte at least, so that memories have an address even where there are none.
    Reservation bytes = TRY(Reservation::make(std::max<u64>(sizes.bytes, 1), "memories"));
    return std::unique_ptr<Space>(
        new CpuSpace(std::move(code), std::move(words), std::move(bytes), sizes.is_watched));
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
