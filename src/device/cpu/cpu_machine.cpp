// A resident launch on the CPU: a thread of the host for each warp, and a bell that is a futex.
#include "device/cpu/cpu_machine.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <deque>
#include <thread>

#include "base/threads.h"
#include "device/cpu/cpu_native.h"
#include "runtime/platform/platform.h"

namespace gpurun::device {
namespace {

using std::chrono::steady_clock;

class CpuMachineRunner final : public MachineRunner {
public:
    CpuMachineRunner(u8* system, u8* pages, u32 warps, RunWarp* run)
        : mailbox_(std::make_unique<PagedMailbox>()),
          params_{reinterpret_cast<u64>(system),
                  reinterpret_cast<u64>(pages),
                  reinterpret_cast<u64>(mailbox_.get()),
                  0,
                  0,
                  0},
          warps_(warps),
          run_(run) {}

    ~CpuMachineRunner() override { __atomic_store_n(&mailbox_->stop, stop_park, __ATOMIC_RELEASE); }

    Mailbox& mailbox() override { return *mailbox_; }

    Result<void> launch() override {
        if (running_.load(std::memory_order_acquire) != 0)
            return Error{"the machine is running already"};
        guard_.join();
        threads_.reserve(warps_);
        running_.store(warps_, std::memory_order_relaxed);
        launch_.store(preparing, std::memory_order_relaxed);
        for (u32 warp = 0; warp < warps_; warp++) {
            Result<std::thread> thread = start_thread("of the machine", [this, warp] {
                launch_.wait(preparing, std::memory_order_acquire);
                if (launch_.load(std::memory_order_acquire) == complete)
                    run_(params_, warp, stack_limit());
                leave(1);
            });
            if (!thread) {
                tell(abandoned);
                leave(warps_ - warp);
                guard_.join();
                return thread.error();
            }
            threads_.push_back(std::move(*thread));
        }
        tell(complete);
        return {};
    }

    Result<void> wait(u32 seen, std::optional<steady_clock::time_point> deadline) override {
        if (spin_.count() > 0) {
            auto end = steady_clock::now() + spin_;
            if (deadline && *deadline < end) end = *deadline;
            while (!is_over(seen) && steady_clock::now() < end) std::this_thread::yield();
        }
        // Everything that ends the wait changes the bell or is followed by a ring, so that nothing
        // is missed.
        while (!is_over(seen) && sleep(seen, deadline)) {
        }
        is_woken_.exchange(false, std::memory_order_acq_rel);
        return {};
    }

    // Ignored: the bell itself wakes who waits, and no thread of this object does.
    void set_answer(std::function<void()>) override {}

    void set_spin(std::chrono::microseconds time) override { spin_ = time; }

    void wake() override {
        is_woken_.store(true, std::memory_order_release);  // pairs with is_over
        rt::ring_bell(&mailbox_->bell);
    }

    Result<NativeEntries> use_native(std::span<const NativePart> parts, u64 code_words) override {
        Native& made = native_.emplace_back(code_words);
        for (const NativePart& part : parts) made.table.add(part);
        const rt::NativeTable table = made.table.table();
        return NativeEntries{reinterpret_cast<u64>(table.entry_at),
                             reinterpret_cast<u64>(table.entries)};
    }

    Result<bool> has_parked() override { return running_.load(std::memory_order_acquire) == 0; }

private:
    struct alignas(4096) PagedMailbox : Mailbox {};
    struct Native {
        explicit Native(u64 code_words)
            : entry_at(code_words),
              entries(code_words + 2),
              quick_at(code_words),
              table(entry_at.data(), entries.data(), quick_at.data()) {}
        std::vector<u32> entry_at;
        std::vector<rt::NativeEntry> entries;
        std::vector<u64> quick_at;
        CpuNativeTable table;
    };

    bool is_over(u32 seen) const {
        return __atomic_load_n(&mailbox_->bell, __ATOMIC_ACQUIRE) != seen ||
               is_woken_.load(std::memory_order_acquire) ||
               running_.load(std::memory_order_acquire) == 0;
    }

    // Sleeps until the bell is no longer `seen`. Returns false if the deadline has come.
    bool sleep(u32 seen, std::optional<steady_clock::time_point> deadline) {
        timespec until{};
        if (deadline) {
            // A futex uses the steady clock.
            auto ns = std::chrono::nanoseconds(deadline->time_since_epoch()).count();
            if (ns < 0) ns = 0;
            until = {time_t(ns / 1'000'000'000), long(ns % 1'000'000'000)};
        }
        syscall(SYS_futex, &mailbox_->bell, FUTEX_WAIT_BITSET_PRIVATE, seen,
                deadline ? &until : nullptr, nullptr, FUTEX_BITSET_MATCH_ANY);
        return !deadline || steady_clock::now() < *deadline;
    }

    void leave(u32 warps) {
        // The last one to leave rings. Pairs with has_parked.
        if (running_.fetch_sub(warps, std::memory_order_acq_rel) == warps)
            rt::ring_bell(&mailbox_->bell);
    }

    // The state of a launch, for threads of its warps. All warps run or none does: those of half a
    // launch would wait for the others, and count as parked in the next one.
    enum Launch : u32 { preparing, complete, abandoned };
    void tell(Launch what) {
        launch_.store(what, std::memory_order_release);
        launch_.notify_all();
    }

    std::unique_ptr<PagedMailbox> mailbox_;
    const MachineParams params_;
    const u32 warps_;
    RunWarp* const run_;
    std::deque<Native> native_;  // of programs: their places stay
    std::vector<std::thread> threads_;
    std::chrono::microseconds spin_{0};
    std::atomic<bool> is_woken_ = false;
    std::atomic<u32> running_ = 0;  // warps
    std::atomic<u32> launch_ = preparing;
    JoinGuard guard_{threads_};
};

}  // namespace

std::unique_ptr<MachineRunner> make_cpu_machine(u8* system, u8* pages, u32 warps, RunWarp* run) {
    return std::make_unique<CpuMachineRunner>(system, pages, warps, run);
}

}  // namespace gpurun::device
