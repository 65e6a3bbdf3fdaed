// Reads from /proc how long threads waited for a core.
#include "watch.h"

#include <dirent.h>
#include <execinfo.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "faults.h"

namespace gpurun::faults {
namespace {

constexpr const char* own_tasks = "/proc/self/task";

template <class Visit>
void for_each_task(const Visit& visit) {
    DIR* tasks = opendir(own_tasks);
    if (!tasks) return;
    while (const dirent* task = readdir(tasks))
        if (const int number = std::atoi(task->d_name)) visit(number);
    closedir(tasks);
}

// Returns how long the threads that are there now have waited for a core, in seconds.
double waited_for_cores() {
    unsigned long long sum = 0;
    for_each_task([&](int number) {
        char path[64];
        std::snprintf(path, sizeof path, "%s/%d/schedstat", own_tasks, number);
        if (FILE* file = std::fopen(path, "r")) {
            unsigned long long ran = 0, waited = 0;
            if (std::fscanf(file, "%llu %llu", &ran, &waited) == 2) sum += waited;
            std::fclose(file);
        }
    });
    return 1e-9 * double(sum);
}

// Returns the time of the cores that this program has used, in seconds.
double used_of_cores() {
    timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}

std::atomic<bool> is_printed = false;

void print_own_stack(int) {
    void* frames[64];
    const int count = backtrace(frames, 64);
    char head[64];
    const int size = std::snprintf(head, sizeof head, "thread %d:\n", int(gettid()));
    (void)!::write(2, head, usize(size));
    backtrace_symbols_fd(frames, count, 2);
    is_printed = true;
}

// Prints the stack of each thread but this one, one after another.
void print_stacks() {
    ::signal(SIGUSR2, print_own_stack);
    for_each_task([](int number) {
        if (number == gettid()) return;
        is_printed = false;
        syscall(SYS_tgkill, getpid(), number, SIGUSR2);
        for (int i = 0; i < 200 && !is_printed; i++)
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
    });
}

}  // namespace

Watch::Watch(double patience) : patience_(patience), thread_([this] { run(); }) {}

Watch::~Watch() {
    {
        std::lock_guard lock(mutex_);
        is_over_ = true;
        changed_.notify_all();
    }
    thread_.join();
}

void Watch::begin(const char* what) {
    std::lock_guard lock(mutex_);
    what_ = what;
    is_watching_ = true;
    turn_++;
    changed_.notify_all();
}

void Watch::end() {
    std::lock_guard lock(mutex_);
    is_watching_ = false;
}

void Watch::run() {
    using std::chrono::steady_clock;
    const Off off;
    const auto look = std::chrono::duration<double>(std::min(1.0, patience_ / 10));
    std::unique_lock lock(mutex_);
    for (u64 seen = 0;;) {
        changed_.wait(lock, [&] { return is_over_ || (is_watching_ && turn_ != seen); });
        if (is_over_) return;
        seen = turn_;
        double free = 0, waited = waited_for_cores();
        const double used = used_of_cores();
        auto then = steady_clock::now();
        auto is_done = [&] { return is_over_ || !is_watching_ || turn_ != seen; };
        while (!changed_.wait_for(lock, look, is_done)) {
            const auto now = steady_clock::now();
            const double waits = waited_for_cores();
            const double passed = std::chrono::duration<double>(now - then).count();
            // A thread that has ended takes its sum with it; one that waits has it when it runs.
            free = std::max(0.0, free + passed - std::max(0.0, waits - waited));
            then = now;
            waited = waits;
            if (free < patience_ && used_of_cores() - used < patience_) continue;
            std::fprintf(stderr, "\nit hangs: %s\n", what_);
            print_stacks();
            std::abort();
        }
    }
}

}  // namespace gpurun::faults
