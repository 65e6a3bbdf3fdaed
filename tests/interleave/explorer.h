// Runs actors in every order: each of their operations on shared memory is a point where another
// may go on instead, and all ways to choose are tried, depth first.
//
// By itself that is sequential consistency: a load returns what was stored last. With
// `ExploreOptions::stale_loads` it is the memory model of C++ and PTX, as far as both allow the
// same, by the orders that the GPU's accessors have (platform_nvptx.h), which are never stronger
// than the host's:
//
// - A store, or the store of a read-modify-write, adds a message to the history of its word. An
//   actor's view says for each word which message is the oldest that it may still read. A load may
//   return any message from there on, of the last few; it raises the view to what it read, so
//   nobody reads backward. Read-modify-writes read the latest message, also where a compare fails.
// - A release store's message carries its actor's view; an acquire load joins the view of the
//   message that it reads into its actor's. A relaxed store carries the view of its actor's last
//   fence; what relaxed loads have read is joined at the next fence. Read-modify-writes pass on
//   what the message before theirs carried.
// - Sequentially consistent fences join a view that they have in common, in both directions. That
//   orders what loads may return; it makes no plain access happen before another (in PTX it does,
//   in C++ it does not). Guests' atomics are relaxed accesses between two such fences.
// - Plain accesses have no histories: one that races is an error. Whether it does is said by vector
//   clocks, which travel as views do, except through the view that the fences have in common. An
//   atomic access races with a plain write of its word too; `load_stale` alone does not, nor does
//   overwriting a word whose last store the actor has seen. The compiler calls plain() wherever the
//   runtime reads or writes memory plainly (plain_accesses.cpp). It does not for memcpy and memset
//   of sizes that only the program knows; those of the platform call it themselves.
// - Actors are on the device or on the host. A store of one side that meets an access of the other
//   is an error unless both have the system's scope.
//
// What the model leaves out: loads that return what is stored only later in the order of the
// exploration (load buffering), messages older than the last few of a word, and more stale loads in
// an execution than `stale_loads`. A store becomes visible at last: whoever pauses with an old
// value looks again.
//
// A way is cut short where it comes to a state that has been seen: the memory, what every actor
// has on its stack, registers included, and the histories, views and clocks as far as they can
// still matter. So all that actors touch lies in the scenario's state or in their own frames, never
// on the heap. Between two operations an actor is not interrupted: plain memory is to be handed
// over by operations, as anywhere else.
//
// An actor that pauses in a loop goes on when something that it has read since is no longer what it
// was. If all that are left pause, each may look again a few times; then they are stuck.
#pragma once

#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include "../fiber/site.h"
#include "base/ints.h"
#include "memory.h"

namespace gpurun::test {

// ---- what the platform calls -------------------------------------------------------

struct Operation {
    const char* name;  // of the accessor
    Order order = Order::relaxed;
    Scope scope = Scope::device;
    bool is_stale = false;  // it may race
    u8 padding[5] = {};     // it lies on stacks, which are hashed
};

// The actor that runs is about to do something to shared memory. Returns when it is its turn, at
// once outside of explorations. `load_size`: it is a load of so many bytes, or 0.
void wait_turn(const Operation& what, const void* address, u32 load_size, Site site);
// What it does then. (Apart from wait_turn, so that little is on its stack while it waits: what is
// there tells states apart.)
u64 load(const Operation& what, const void* address, u32 size, Site site);
void store(const Operation& what, void* address, u32 size, u64 value, Site site);
// What is there, and, as one operation with that, what becomes of it.
u64 begin_update(const Operation& what, void* address, u32 size, Site site);
void end_update(const Operation& what, void* address, u32 size, u64 old, u64 now, bool writes,
                Site site);
// After a store or an update: others may go on first.
void after_write(Site site);
void fence(const char* name, Fence kind, Site site);
// A plain access, by the code at that address.
void plain(const void* address, usize size, bool is_write, const void* code);
void pause_actor(Site site);
u32 actor_number();
u64 explored_clock();
// Ends the exploration with a schedule that leads here.
void fail(const char* message, Site site = Site::here());

#define REQUIRE(condition)                                       \
    do {                                                         \
        if (!(condition)) gpurun::test::fail("not " #condition); \
    } while (false)

// ---- mutants -----------------------------------------------------------------------

// What an operation or a fence loses.
enum class Change : u8 { no_acquire, no_release, device_scope, no_fence, fence_acq_rel };
struct Mutant {
    std::string operation, file;  // the name of the accessor; the file without its folder
    u32 line, last_line;          // where the call is
    Change change;
};
// All explorations from now on have that mutant; null: none.
void mutate(const Mutant* one);

// Where explorations have come to, if somebody wants to know.
struct SeenSite {
    std::string operation, file;
    u32 line;
    auto operator<=>(const SeenSite&) const = default;
};
extern std::set<SeenSite>* seen_sites;

// ---- explorations ------------------------------------------------------------------

struct ExploreOptions {
    bool merges_states = true;       // false: every way is gone to its end
    std::optional<u32> preemptions;  // how often an actor that could go on may be interrupted
    std::string schedule;            // this one alone: as in Failure
    u64 most_states = 20'000'000;    // then it fails
    // Others may go on after a write too: what an actor does to plain memory then, though it has
    // given it away, is seen.
    bool stops_after_writes = false;
    // Orders are as weak as they are named, and so many loads of an execution may return something
    // old; none: sequential consistency. 0 looks for races alone.
    std::optional<u32> stale_loads;
    bool explains = true;  // a failure is told by the schedule with the fewest interruptions
    u32 patience = 3;      // rounds of those that all pause
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
    usize watched = ~usize{0};  // plain accesses are checked in so many bytes of the state
    u32 host = 0;               // a bit for each actor that runs on the host
};

Exploration explore(const Scene& scene, const ExploreOptions& options);

template <class State>
struct Scenario {
    using Act = void (*)(State&);

    std::function<void(State&)> begin;  // makes a state of zeros the first one
    std::vector<Act> actors;
    Act at_end = [](State&) {};
    u64 State::* clock = nullptr;
    // What comes from there on is the test's own: plain accesses to it are not checked.
    usize watched = ~usize{0};
    u32 host = 0;
};

template <class State>
Exploration explore(const Scenario<State>& scenario, const ExploreOptions& options = {}) {
    static_assert(std::is_trivially_copyable_v<State>);
    const auto state = std::make_unique<State>();
    Scene scene{state.get(), sizeof(State), {}, {}, {}, nullptr, scenario.watched, scenario.host};
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
