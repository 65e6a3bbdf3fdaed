// Runs actors in every order: each of their operations on shared memory is a point where another
// may go on instead, and all ways to choose are tried, depth first. It decides what the runtime's
// protocols do under sequential consistency; which orders the hardware may show besides is said
// where the code names its acquires and releases, and checked on the PTX (tests/ptx).
//
// A way is cut short where it comes to a state that has been seen: the memory, and what every actor
// has on its stack, registers included. So all that actors touch lies in the scenario's state or in
// their own frames, never on the heap. Between two operations an actor is not interrupted: plain
// memory is to be handed over by operations, as anywhere else.
//
// An actor that pauses in a loop goes on when something that it has read since is no longer what it
// was. If all that are left pause, each may look again a few times; then they are stuck.
#pragma once

#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "../fiber/site.h"
#include "base/ints.h"

namespace gpurun::test {

// ---- what the platform calls -------------------------------------------------------

// The actor that runs is about to do something to shared memory. Returns when it may. Outside of
// explorations it may at once.
void before(const char* operation, const void* address, Site site);
// What was there, and what is there now. `has_read`: the actor knows what was there.
void after(const void* address, u32 size, u64 old, u64 now, bool has_read);
void pause_actor(Site site);
u32 actor_number();
u64 explored_clock();
// Ends the exploration with a schedule that leads here.
void fail(const char* message, Site site = Site::here());

#define REQUIRE(condition)                                       \
    do {                                                         \
        if (!(condition)) gpurun::test::fail("not " #condition); \
    } while (false)

// ---- explorations ------------------------------------------------------------------

struct ExploreOptions {
    bool merges_states = true;       // false: every way is gone to its end
    std::optional<u32> preemptions;  // how often an actor that could go on may be interrupted
    std::string schedule;            // this one alone: as in Failure
    u64 most_states = 20'000'000;    // then it fails
    // Others may go on after a write too: what an actor does to plain memory then, though it has
    // given it away, is seen.
    bool stops_after_writes = false;
    u32 patience = 3;                // rounds of those that all pause
    std::vector<std::string> names;  // of the actors
};
inline ExploreOptions interrupted(u32 times) {
    ExploreOptions options;
    options.preemptions = times;
    return options;
}

struct Failure {
    std::string message;
    std::string schedule;  // the actors' numbers, in their order; 0*3 stands for 0 0 0
    std::string trace;     // the operations, a line each
};

struct Exploration {
    std::optional<Failure> failure;
    u64 states = 0, steps = 0;
    double interleavings = 0;  // of the operations, those that were cut short included
    u64 ends = 0;              // ways that were gone to their end
    u64 cycles = 0;            // ways that come back to a state of their own: they may never end
    u32 longest = 0;           // operations

    std::string to_string() const;
};

// `reset` makes the state, which is `size` bytes at `state`, what it is at first; `at_end` looks at
// it when all actors have ended. `clock`: in the state, what clock_ns() reads; or null.
struct Scene {
    void* state;
    usize size;
    std::function<void()> reset;
    std::vector<std::function<void()>> actors;
    std::function<void()> at_end;
    const u64* clock = nullptr;
};

Exploration explore(const Scene& scene, const ExploreOptions& options);

template <class State>
struct Scenario {
    using Act = void (*)(State&);

    std::function<void(State&)> begin;  // makes a state of zeros the first one
    std::vector<Act> actors;
    Act at_end = [](State&) {};
    u64 State::* clock = nullptr;
};

template <class State>
Exploration explore(const Scenario<State>& scenario, const ExploreOptions& options = {}) {
    static_assert(std::is_trivially_copyable_v<State>);
    const auto state = std::make_unique<State>();
    Scene scene{state.get(), sizeof(State), {}, {}, {}};
    scene.reset = [&] {
        std::memset(static_cast<void*>(state.get()), 0, sizeof(State));
        if (scenario.begin) scenario.begin(*state);
    };
    for (auto act : scenario.actors) scene.actors.push_back([&state, act] { act(*state); });
    scene.at_end = [&] { scenario.at_end(*state); };
    if (scenario.clock != nullptr) scene.clock = &((*state).*scenario.clock);
    return explore(scene, options);
}

}  // namespace gpurun::test
