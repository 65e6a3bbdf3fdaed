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
gpurun_stop* stop = nullptr;           // of all runs; made before there is a handler
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
    gpurun_stop_request(stop);
}

}  // namespace

void watch_interrupt() {
    if (!stop) stop = gpurun_stop_new();  // and never deleted: a signal may come at the very end
    struct sigaction action = {}, before = {};
    action.sa_handler = on_interrupt;
    sigaction(SIGINT, &action, &before);
    if (before.sa_handler == SIG_IGN)
        sigaction(SIGINT, &before, nullptr);  // as whoever started us wants
}

bool was_interrupted() { return interrupted; }
const std::atomic<bool>& interrupt_flag() { return interrupted; }
const gpurun_stop* interrupt_stop() { return stop; }

void limit(api::Config& config, std::optional<double> timeout_seconds) {
    watch_interrupt();
    gpurun_config_set_stop(config.get(), stop);
    if (timeout_seconds) config.timeout(*timeout_seconds);
}

}  // namespace gpurun::tool
