// The one signal handler.
#include "interrupt.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

#include "output.h"

namespace gpurun::tool {
namespace {

std::atomic<bool> interrupted = false;
std::atomic<long> interrupted_at = 0;  // seconds
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<long>::is_always_lock_free);

// The first asks for an end, with changed files written back. One that comes seconds later will not
// wait for that; but a signal often comes twice at once.
void on_interrupt(int) {
    constexpr long patience = 2;  // seconds
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (interrupted && now.tv_sec - interrupted_at >= patience) _exit(exit_interrupted);
    if (!interrupted) interrupted_at = now.tv_sec;
    interrupted = true;
}

}  // namespace

device::RunControl run_control(std::optional<double> timeout_seconds) {
    using namespace std::chrono;
    struct sigaction action = {}, before = {};
    action.sa_handler = on_interrupt;
    sigaction(SIGINT, &action, &before);
    if (before.sa_handler == SIG_IGN)
        sigaction(SIGINT, &before, nullptr);  // as whoever started us wants
    device::RunControl control;
    control.stop = &interrupted;
    constexpr double longest = 1e9;  // seconds; what a clock can count in nanoseconds
    if (timeout_seconds && *timeout_seconds < longest)
        control.deadline =
            steady_clock::now() + duration_cast<nanoseconds>(duration<double>(*timeout_seconds));
    return control;
}

bool was_interrupted() { return interrupted; }

}  // namespace gpurun::tool
