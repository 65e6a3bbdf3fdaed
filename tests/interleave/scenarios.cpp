#include "scenarios.h"

#include <algorithm>
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
        if (!hunt->caught_by.empty() || hunt->how.preemptions > weak.preemptions) return;
        ExploreOptions how = weakly(
            options, {hunt->how.preemptions, std::min(hunt->how.stale_loads, weak.stale_loads)});
        how.explains = false;
        const Exploration found = explore(how);
        hunt->steps += found.steps;
        if (found.failure) hunt->caught_by = std::string(what) + ": " + found.failure->message;
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
