// Starts threads and counts them, so that a program that ends can wait for them.
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

// The threads that run. Never destroyed, since they may be the last to use it.
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

// Waits for all threads. Ends: each compiles one more piece at most.
void await_workers() {
    Workers& all = workers();
    all.is_ending = true;
    std::unique_lock lock(all.mutex);
    all.changed.wait(lock, [&] { return all.count == 0; });
}

// Lets the main thread wait for all threads when the program ends. LLVM makes static objects as it
// needs them, and they are destroyed in reverse order, before handlers that were registered earlier
// run. Thread-local objects of the thread that ends the program, usually the main one, are
// destroyed before all of them, so one of these waits.
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
    // This is for programs that another thread ends. It is registered each time, so that it runs
    // before anything is destroyed that LLVM has made by then.
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
