#include "scenarios.h"

#include <cstdio>

namespace gpurun::test {

Hunt* hunt = nullptr;

std::vector<ExploringTest>& exploring_tests() {
    static std::vector<ExploringTest> tests;
    return tests;
}

namespace {

ExploreOptions weakly(const ExploreOptions& options, Weak weak) {
    ExploreOptions how = options;
    how.stops_after_writes = false;  // races are found without
    how.preemptions = weak.preemptions;
    how.stale_loads = weak.stale_loads;
    return how;
}

}  // namespace

void check(const char* what, const std::function<Exploration(const ExploreOptions&)>& explore,
           const ExploreOptions& options, Weak weak) {
    if (hunt != nullptr) {
        // Most are found by few interruptions.
        for (u32 times = 0; times <= weak.preemptions && hunt->caught_by.empty(); times++) {
            const Exploration found = explore(weakly(options, {times, weak.stale_loads}));
            if (found.failure) hunt->caught_by = std::string(what) + ": " + found.failure->message;
        }
        return;
    }
    auto expect_right = [&](const char* how, const Exploration& found) {
        std::printf("%s%s: %s\n", what, how, found.to_string().c_str());
        EXPECT_FALSE(found.failure);
        EXPECT_EQ(found.cycles, 0u);
    };
    expect_right("", explore(options));
    expect_right(", weak orders", explore(weakly(options, weak)));
}

}  // namespace gpurun::test
