// Counts its threads, so that a program that ends can wait for them.
#include "engine/beside.h"

#include <unistd.h>

#include <condition_variable>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>
#include <thread>

#include "base/threads.h"

namespace gpurun::engine {
namespace {

// Never destroyed: the threads may be the last to use it.
struct Workers {
    std::mutex mutex;
    std::condition_variable changed;
    u32 count = 0;
    std::atomic<bool> is_ending = false;
};
Workers& workers() {
    alignas(Workers) static u8 place[sizeof(Workers)];
    static Workers& all = *new (place) Workers;
    return all;
}

// Ends: each thread compiles one piece more at the most.
void await_workers() {
    Workers& all = workers();
    all.is_ending = true;
    std::unique_lock lock(all.mutex);
    all.changed.wait(lock, [&] { return all.count == 0; });
}

// LLVM makes static things whenever it needs them, and they go when the program ends, the newest
// first: before any handler that was there when a thread began to compile. What is local to the
// thread that ends the program goes earlier than all of them; that thread is the first, as a rule.
void await_workers_at_end() {
    struct AtEnd {
        ~AtEnd() { await_workers(); }
    };
    if (gettid() != getpid()) return;
    thread_local AtEnd at_end;
}
[[maybe_unused]] const bool is_awaited_at_end = (await_workers_at_end(), true);

struct WorkState {
    std::mutex mutex;
    std::condition_variable changed;
    bool is_done = false;
    Result<void> outcome;
};

}  // namespace

Result<void> begin_beside(std::function<void()> work) {
    // For programs that another thread ends. Once more each time: so it comes before the end of
    // whatever LLVM has made by then.
    std::atexit(await_workers);
    await_workers_at_end();
    Workers& all = workers();
    auto leave = [] {
        Workers& mine = workers();
        std::lock_guard lock(mine.mutex);
        mine.count--;
        mine.changed.notify_all();
    };
    auto owned = std::make_shared<std::function<void()>>(std::move(work));
    std::function<void()> body = [owned, leave] {
        (*owned)();
        *owned = {};  // before it is counted as gone
        leave();
    };
    {
        std::lock_guard lock(all.mutex);
        all.count++;
    }
    Result<std::thread> started = start_thread("beside the run", std::move(body));
    if (!started) {
        leave();
        return started.error();
    }
    started->detach();
    return {};
}

Result<bool> run_beside(std::function<void()> work, const device::RunControl& control) {
    constexpr std::chrono::milliseconds look(20);  // at the stop request
    auto done = std::make_shared<WorkState>();
    TRY(begin_beside([work = std::move(work), done] {
        Result<void> outcome = guarded([&]() -> Result<void> {
            work();
            return {};
        });
        std::lock_guard lock(done->mutex);
        done->outcome = std::move(outcome);
        done->is_done = true;
        done->changed.notify_all();
    }));
    std::unique_lock lock(done->mutex);
    while (!done->changed.wait_for(lock, look, [&] { return done->is_done; }))
        if (control.wants_stop()) return false;
    TRY(std::move(done->outcome));
    return true;
}

bool is_working_beside() {
    std::lock_guard lock(workers().mutex);
    return workers().count > 0;
}

bool is_program_ending() { return workers().is_ending; }

Result<bool> prepare(device::Device& device, device::Mode mode, const device::RunControl& control) {
    if (std::function<void()> assemble = device.kernel_assembler(mode, Layout::linear))
        if (!TRY(run_beside(std::move(assemble), control))) return false;
    TRY(device.prepare(mode));
    return !control.wants_stop();
}

}  // namespace gpurun::engine
