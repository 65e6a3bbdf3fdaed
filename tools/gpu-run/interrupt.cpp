// The one signal handler.
#include "interrupt.h"

#include <signal.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "progress.h"

namespace gpurun::tool {
namespace {

constexpr int watched[] = {SIGINT, SIGTERM, SIGHUP};

std::atomic<bool> interrupted = false;
std::atomic<int> first_signal = 0;
std::atomic<long long> interrupted_at = 0;  // ns
gpurun_stop* stop = nullptr;                // of all runs; made before there is a handler
static_assert(std::atomic<bool>::is_always_lock_free &&
              std::atomic<long long>::is_always_lock_free);

// The first signal asks for an end, with changed files written back. The second one does not wait
// for that; but one that comes at the same time is the same: a terminal or a script may send it to
// the process and to its group.
void on_signal(int number) {
    constexpr long long at_once = 100'000'000;  // ns
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    const long long now = time.tv_sec * 1'000'000'000ll + time.tv_nsec;
    if (interrupted && now - interrupted_at >= at_once) {
        clear_progress_in_handler();
        _exit(interrupted_code());
    }
    if (interrupted) return;
    first_signal = number;
    interrupted_at = now;
    interrupted = true;
    gpurun_stop_request(stop);
}

bool is_unnamed_file(int number) {
    struct stat info;
    return fstat(number, &info) == 0 && S_ISREG(info.st_mode) && info.st_nlink == 0;
}

// What the other process does. Locks and pipes that it has too are let go of at once. It was forked
// from a process with threads: it calls nothing that takes a lock.
[[noreturn]] void hold_unnamed_files(pid_t parent, int most) {
    for (int number = 0; number < most; number++)
        if (!is_unnamed_file(number)) close(number);
    // Ends: the parent is about to.
    while (getppid() == parent) usleep(10'000);
    _exit(0);
}

}  // namespace

void watch_interrupt() {
    if (!stop) stop = gpurun_stop_new();  // and never deleted: a signal may come at the very end
    for (int number : watched) {
        struct sigaction action = {}, before = {};
        action.sa_handler = on_signal;
        sigaction(number, &action, &before);
        if (before.sa_handler == SIG_IGN)
            sigaction(number, &before, nullptr);  // as whoever started us wants
    }
    signal(SIGPIPE, SIG_IGN);
}

void stop_runs() { gpurun_stop_request(stop); }

bool was_interrupted() { return interrupted; }
int interrupted_code() {
    const int number = first_signal;
    return 128 + (number != 0 ? number : SIGINT);
}
std::string interruption() {
    if (first_signal == SIGTERM) return "ended by SIGTERM";
    if (first_signal == SIGHUP) return "ended by SIGHUP";
    return "interrupted";
}

bool Patience::is_over() const {
    constexpr std::chrono::milliseconds enough(50);
    return was_interrupted() && std::chrono::steady_clock::now() - begin_ > enough;
}

void leave_unnamed_files() {
    constexpr int most_looked_at = 1 << 16;
    const int most = std::min(getdtablesize(), most_looked_at);
    bool has_some = false;
    for (int number = 0; number < most && !has_some; number++) has_some = is_unnamed_file(number);
    const pid_t parent = getpid();
    // Without another process it is as if nobody had asked for one.
    if (has_some && fork() == 0) hold_unnamed_files(parent, most);
}

BlockedSignals::BlockedSignals() {
    sigset_t blocked;
    sigemptyset(&blocked);
    for (int number : watched) sigaddset(&blocked, number);
    pthread_sigmask(SIG_BLOCK, &blocked, &before_);
}
BlockedSignals::~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

const std::atomic<bool>& interrupt_flag() { return interrupted; }
const gpurun_stop* interrupt_stop() { return stop; }

void limit(api::Config& config, std::optional<double> timeout_seconds) {
    watch_interrupt();
    gpurun_config_set_stop(config.get(), stop);
    if (timeout_seconds) config.timeout(*timeout_seconds);
}

}  // namespace gpurun::tool
