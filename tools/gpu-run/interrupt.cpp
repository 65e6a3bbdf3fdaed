// The one signal handler.
#include "interrupt.h"

#include <signal.h>

#include <atomic>

namespace gpurun::tool {
namespace {

std::atomic<bool> interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free);

}  // namespace

device::RunControl run_control(std::optional<double> timeout_seconds) {
    using namespace std::chrono;
    struct sigaction action = {}, before = {};
    action.sa_handler = [](int) { interrupted = true; };
    action.sa_flags = int(SA_RESETHAND);
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
