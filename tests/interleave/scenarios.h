// Explorations as tests: each under sequential consistency, then with weak orders; and each again
// with mutants (mutants_test.cpp).
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "explorer.h"

namespace gpurun::test {

// How far an exploration goes with weak orders.
struct Weak {
    u32 preemptions = 2;
    u32 stale_loads = 1;
};

// Explores, prints what was found, and expects no failure and no way without an end.
void check(const char* what, const std::function<Exploration(const ExploreOptions&)>& explore,
           const ExploreOptions& options, Weak weak);
template <class State>
void check(const char* what, const Scenario<State>& scenario, const ExploreOptions& options = {},
           Weak weak = {}) {
    check(what, [&](const ExploreOptions& how) { return explore(scenario, how); }, options, weak);
}

// While there is one, check() explores with weak orders alone, and only until something fails.
struct Hunt {
    Weak how;               // explorations that do not go so far by themselves are left out
    std::string caught_by;  // the exploration and what it found, or nothing
    u64 steps = 0;
};
extern Hunt* hunt;

// The tests that explore what the runtime does.
struct ExploringTest {
    const char* name;
    void (*run)();
};
std::vector<ExploringTest>& exploring_tests();

#define EXPLORING_TEST(suite, name)                                                               \
    static void explore_##suite##_##name();                                                       \
    [[maybe_unused]] static const auto& explored_##suite##_##name =                               \
        gpurun::test::exploring_tests().emplace_back(#suite "." #name, explore_##suite##_##name); \
    TEST(suite, name) { explore_##suite##_##name(); }                                             \
    static void explore_##suite##_##name()

}  // namespace gpurun::test
