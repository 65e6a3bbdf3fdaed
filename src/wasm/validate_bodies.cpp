// Spreads the bodies of a module over threads. Bodies do not depend on each other.
#include <atomic>
#include <mutex>

#include "base/threads.h"
#include "wasm/validate.h"

namespace gpurun::wasm {

namespace {

constexpr u32 bytes_worth_a_thread = 1 << 20;
constexpr u32 max_threads = 16;
constexpr u32 funcs_per_turn = 64;

// Shared by the threads of one validation.
struct Work {
    const Module& module;
    const bool has_data_count;
    const u32 end;  // one past the last function

    std::atomic<u32> next;       // first function nobody has taken
    std::atomic<u32> first_bad;  // lowest function known to fail; later ones need no look
    std::mutex lock;             // guards failure
    std::optional<Failure> failure;
};

void validate_some(Work& work) {
    Validator validator(work.module);
    for (;;) {
        u32 begin = work.next.fetch_add(funcs_per_turn, std::memory_order_relaxed);
        u32 end = std::min(begin + funcs_per_turn, work.end);
        if (begin >= work.end) return;
        for (u32 func = begin; func < end; func++) {
            if (func > work.first_bad.load(std::memory_order_relaxed)) return;
            if (validator.body(func, work.has_data_count)) continue;
            std::lock_guard guard(work.lock);
            if (func < work.first_bad.load(std::memory_order_relaxed)) {
                work.first_bad.store(func, std::memory_order_relaxed);
                work.failure = validator.failure();
            }
            return;
        }
    }
}

}  // namespace

std::optional<Failure> validate_bodies(const Module& module, bool has_data_count) {
    const u32 begin = module.imported_funcs, end = u32(module.funcs.size());
    if (begin == end) return std::nullopt;
    Work work{module, has_data_count, end, begin, end, {}, {}};

    u32 bytes = module.funcs.back().end - module.funcs[begin].body;
    u32 threads = std::min(1 + bytes / bytes_worth_a_thread, std::thread::hardware_concurrency());
    threads = std::min(threads, max_threads);
    share_work(threads, [&](u32) { validate_some(work); });
    return std::move(work.failure);
}

}  // namespace gpurun::wasm
