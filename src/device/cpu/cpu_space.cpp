// Runs a process alone on the CPU.
#include "base/phases.h"
#include "device/cpu/cpu_process.h"
#include "runtime/machine/waiting.h"
#include "runtime/memory/watch.h"

namespace gpurun::device {
namespace {

class CpuSpace final : public Space {
public:
    CpuSpace(Reservation code, NativeRoom native, Reservation words, Reservation bytes,
             const Sizes& sizes)
        : code_(std::move(code)),
          native_room_(std::move(native)),
          words_(std::move(words)),
          bytes_(std::move(bytes)),
          process_{
              code_.as<u64>(),        words_.as<u32>(), bytes_.as<u8>(), words_.as<u32>(), 0, 63,
              system_at(sizes.system)},
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

}  // namespace gpurun::device
