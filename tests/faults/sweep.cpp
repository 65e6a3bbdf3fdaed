// One point after another. A crash says at which one; the watch sees to hangs.
#include "sweep.h"

#include <dirent.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <thread>
#include <vector>

#include "watch.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#include <sanitizer/lsan_interface.h>
#define HAS_LEAK_CHECK 1
#endif
#endif

namespace gpurun::faults {
namespace {

constexpr double patience = 60;  // seconds for a run
char here[256];                  // where a signal finds us

void say_where(int signal) {
    static const char text[] = "\na fault of the host ended the run: ";
    (void)!::write(2, text, sizeof text - 1);
    (void)!::write(2, here, std::strlen(here));
    (void)!::write(2, "\n", 1);
    ::signal(signal, SIG_DFL);
    raise(signal);
}

usize entries(const char* folder) {
    usize count = 0;
    DIR* at = opendir(folder);
    while (readdir(at)) count++;
    closedir(at);
    return count;
}

// Threads that were joined may still be listed for a moment.
usize threads(usize expected) {
    usize count = entries("/proc/self/task");
    for (int i = 0; count > expected && i < 200; i++) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        count = entries("/proc/self/task");
    }
    return count;
}

std::vector<FailureMode> ways(Kind kind) {
    switch (kind) {
        case Kind::read:
        case Kind::write:
            return {FailureMode::once, FailureMode::lasting, FailureMode::interrupted,
                    FailureMode::partial};
        default: return {FailureMode::once, FailureMode::lasting};
    }
}

struct Tally {
    u64 points = 0, errors = 0, reported = 0, unnoticed = 0, wrong = 0;
};

class Sweep {
public:
    Sweep(const Mode& mode, Kind kind, u64 most) : mode_(mode), kind_(kind), most_(most) {
        for (int number : {SIGSEGV, SIGABRT, SIGBUS, SIGFPE}) ::signal(number, say_where);
    }

    void run() {
        // Twice: what is made once is there then.
        for (int i = 0; i < 2; i++)
            if (!try_well()) return;
        tasks_ = threads(2);  // this one and the watch
        for (FailureMode failure : ways(kind_)) {
            Seen seen = try_point({kind_, 0, failure});
            const u64 calls = seen.calls, step = calls / most_ + (calls % most_ != 0);
            // One point alone, to look into what went wrong there.
            if (const char* only = std::getenv("GPURUN_FAULT_NUMBER")) {
                try_point({kind_, u64(std::atoll(only)), failure});
                continue;
            }
            for (u64 number = 1; number <= calls && tally_.wrong < 5; number += step)
                try_point({kind_, number, failure});
            calls_ = std::max(calls_, calls);
        }
        std::printf(
            "%-15s %-10s %6llu calls: %6llu points; %6llu errors, %4llu told by the guest, "
            "%5llu made no difference\n",
            mode_.name, name_of(kind_), (unsigned long long)calls_,
            (unsigned long long)tally_.points, (unsigned long long)tally_.errors,
            (unsigned long long)tally_.reported, (unsigned long long)tally_.unnoticed);
        std::fflush(stdout);
        EXPECT_EQ(tally_.wrong, 0u);
#ifdef HAS_LEAK_CHECK
        EXPECT_EQ(__lsan_do_recoverable_leak_check(), 0);
#endif
    }

private:
    // Without a fault: right.
    bool try_well() {
        folder_.reset();
        Seen seen;
        const Outcome outcome = watched({kind_, 0}, seen);
        const std::string problem = outcome.error + outcome.reported + outcome.wrong;
        EXPECT_EQ(problem, "") << here;
        tally_.wrong += !problem.empty();
        return problem.empty();
    }

    Outcome watched(const Plan& plan, Seen& seen) {
        std::snprintf(here, sizeof here, "%s, %s %llu, %s", mode_.name, name_of(plan.kind),
                      (unsigned long long)plan.number, name_of(plan.failure));
        watch_.begin(here);
        Outcome outcome = mode_.run(folder_, plan, seen);
        watch_.end();
        return outcome;
    }

    Seen try_point(const Plan& plan) {
        folder_.reset();
        const usize files = entries("/proc/self/fd");
        s64 blocks = live_blocks();
        Seen seen;
        std::vector<std::string> found;
        {
            const Outcome outcome = watched(plan, seen);
            if (plan.number > 0) tally_.points++;
            if (!outcome.wrong.empty()) found.push_back(outcome.wrong);
            if (plan.number == 0) {
                if (!(outcome.error + outcome.reported).empty())
                    found.push_back(outcome.error + outcome.reported);
            } else if (!outcome.error.empty()) {
                tally_.errors++;
            } else if (!outcome.reported.empty()) {
                tally_.reported++;
            } else {
                tally_.unnoticed++;
            }
            const bool is_harmless =
                plan.failure == FailureMode::partial || plan.failure == FailureMode::interrupted;
            if (is_harmless && !(outcome.error + outcome.reported).empty())
                found.push_back("it was not tried again: " + outcome.error + outcome.reported);
        }
        if (const usize now = threads(tasks_); now > tasks_)
            found.push_back(std::to_string(now) + " threads, " + std::to_string(tasks_) +
                            " before");
        if (const usize now = entries("/proc/self/fd"); now != files)
            found.push_back(std::to_string(now) + " open files, " + std::to_string(files) +
                            " before");
        if (const s64 now = live_blocks(); mode_.is_counted && now != blocks && found.empty())
            found.push_back(std::to_string(now - blocks) + " blocks of memory are left");
        for (const std::string& what : found) bad(what);
        // The next run works.
        if (plan.number > 0) try_well();
        return seen;
    }

    void bad(const std::string& what) {
        ADD_FAILURE() << here << ": " << what;
        tally_.wrong++;
    }

    const Mode& mode_;
    Kind kind_;
    u64 most_, calls_ = 0;
    usize tasks_ = 0;
    Folder folder_;
    Tally tally_;
    Watch watch_{patience};
};

}  // namespace

void sweep(const Mode& mode, Kind kind, u64 most) { Sweep(mode, kind, most).run(); }

std::vector<Case> cases() {
    std::vector<Case> all;
    for (const Mode* mode : {&alone, &alone_streams, &alone_native, &many, &many_native, &chunks,
                             &machine, &machine_native, &machine_dump, &script})
        for (u32 kind = 0; kind < u32(Kind::driver); kind++) all.push_back({mode, Kind(kind)});
    for (const Mode* mode : {&cuda_alone, &cuda_many, &cuda_machine})
        for (Kind kind : {Kind::driver, Kind::allocation, Kind::thread})
            all.push_back({mode, kind});
    return all;
}

std::string name_of_case(const testing::TestParamInfo<Case>& info) {
    return std::string(info.param.mode->name) + "_" + name_of(info.param.kind);
}

}  // namespace gpurun::faults
