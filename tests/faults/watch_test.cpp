// The watch ends what hangs, asleep or busy, and not what has to wait for a core.
#include "watch.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <ctime>
#include <vector>

namespace gpurun::faults {
namespace {

// Has this thread, and those that it starts, run on the core that it is on.
void stay_on_one_core() {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
}

double used_by_thread() {
    timespec used{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return double(used.tv_sec) + 1e-9 * double(used.tv_nsec);
}

[[noreturn]] void spin() {
    for (volatile u64 turns = 0;;) turns = turns + 1;
}

TEST(WatchDeathTest, EndsWhatSleepsForEver) {
    EXPECT_DEATH(
        {
            Watch watch(0.5);
            watch.begin("a wait for nothing");
            for (;;) pause();
        },
        "it hangs: a wait for nothing(.|\n)*thread [0-9]+:");
}

// They wait for each other's core all the time.
TEST(WatchDeathTest, EndsWhatSpinsForEver) {
    EXPECT_DEATH(
        {
            stay_on_one_core();
            Watch watch(0.5);
            watch.begin("a loop without an end");
            std::vector<std::thread> others;
            for (int i = 0; i < 3; i++) others.emplace_back(spin);
            spin();
        },
        "it hangs: a loop without an end");
}

TEST(Watch, WaitsForWhatOthersKeepFromRunning) {
    constexpr double patience = 1, work = 0.4;
    constexpr int others = 8;
    cpu_set_t all;
    ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
    stay_on_one_core();
    std::vector<pid_t> busy;
    for (int i = 0; i < others; i++)
        if (const pid_t child = fork(); child != 0)
            busy.push_back(child);
        else
            spin();
    const auto begin = std::chrono::steady_clock::now();
    {
        Watch watch(patience);
        watch.begin("work that is kept waiting");
        const double first = used_by_thread();
        while (used_by_thread() - first < work) {
        }
        watch.end();
    }
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
    for (pid_t child : busy) {
        kill(child, SIGKILL);
        waitpid(child, nullptr, 0);
    }
    sched_setaffinity(0, sizeof all, &all);
    EXPECT_GT(passed.count(), patience);  // else it was no test
}

}  // namespace
}  // namespace gpurun::faults
