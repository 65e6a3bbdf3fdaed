// The explorer itself: it goes every way, and finds what is wrong with locks, wake-ups and queues
// that are known to be wrong.
#include "explorer.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdio>

#include "runtime/platform/platform.h"

namespace gpurun::test {
namespace {

using namespace rt;

void show(const char* what, const Exploration& found) {
    std::printf("%s: %s\n", what, found.to_string().c_str());
}

// ---- it goes every way -------------------------------------------------------------

struct Steps {
    u32 word[3];
};
template <int actor, int count>
void steps(Steps& s) {
    for (int i = 0; i < count; i++) fetch_add(&s.word[actor], 1u);
}

TEST(Explorer, GoesEveryWay) {
    Scenario<Steps> scenario{.begin = {}, .actors = {steps<0, 4>, steps<1, 3>, steps<2, 2>}};
    // 9! / (4! 3! 2!) orders; a state for each triple of progresses, but the last.
    for (bool merges : {false, true}) {
        ExploreOptions options;
        options.merges_states = merges;
        Exploration found = explore(scenario, options);
        show("4, 3 and 2 operations", found);
        EXPECT_FALSE(found.failure);
        EXPECT_EQ(found.interleavings, 1260);
        EXPECT_EQ(found.longest, 9u);
        if (merges) EXPECT_EQ(found.states, 5u * 4 * 3 - 1);
        if (!merges) EXPECT_EQ(found.ends, 1260u);
    }
}

TEST(Explorer, BoundsPreemptions) {
    Scenario<Steps> scenario{.begin = {}, .actors = {steps<0, 3>, steps<1, 3>}};
    const double expected[] = {2, 6, 14};
    for (u32 bound = 0; bound < 3; bound++) {
        ExploreOptions options;
        options.merges_states = false;
        options.preemptions = bound;
        Exploration found = explore(scenario, options);
        EXPECT_EQ(found.interleavings, expected[bound]) << bound;
    }
}

// ---- locks -------------------------------------------------------------------------

struct Locked {
    u32 lock;
    u32 inside;
    u32 count;
};
void work(Locked& s) {
    REQUIRE(fetch_add(&s.inside, 1u) == 0);
    s.count++;
    fetch_add(&s.inside, ~0u);
}
void with_lock(Locked& s) {
    while (exchange(&s.lock, 1u) != 0) pause();
    work(s);
    store_shared(&s.lock, 0u);
}
void with_broken_lock(Locked& s) {
    while (load_shared(&s.lock) != 0) pause();
    store_shared(&s.lock, 1u);
    work(s);
    store_shared(&s.lock, 0u);
}
void with_lock_kept(Locked& s) {
    while (exchange(&s.lock, 1u) != 0) pause();
    work(s);
}
void all_counted(Locked& s) { REQUIRE(s.count == 3); }

TEST(Explorer, ALockExcludes) {
    Exploration found = explore(Scenario<Locked>{
        .begin = {}, .actors = {with_lock, with_lock, with_lock}, .at_end = all_counted});
    show("a lock, three actors", found);
    EXPECT_FALSE(found.failure);
    EXPECT_EQ(found.cycles, 0u);
}

TEST(Explorer, FindsABrokenLock) {
    Scenario<Locked> scenario{.begin = {}, .actors = {with_broken_lock, with_broken_lock}};
    Exploration found = explore(scenario);
    show("a broken lock", found);
    ASSERT_TRUE(found.failure);
    EXPECT_NE(found.failure->message.find("== 0"), std::string::npos) << found.failure->message;

    ExploreOptions again;
    again.schedule = found.failure->schedule;
    Exploration replayed = explore(scenario, again);
    ASSERT_TRUE(replayed.failure);
    EXPECT_EQ(replayed.failure->message, found.failure->message);
    EXPECT_EQ(replayed.failure->schedule, found.failure->schedule);
    EXPECT_EQ(replayed.failure->trace, found.failure->trace);
}

TEST(Explorer, FindsALockThatIsKept) {
    Exploration found =
        explore(Scenario<Locked>{.begin = {}, .actors = {with_lock, with_lock_kept}});
    ASSERT_TRUE(found.failure);
    EXPECT_EQ(found.failure->message.find("stuck: actor 0 pauses"), 0u) << found.failure->message;
}

// A loop that gives up by itself is not stuck.
void with_patience(Locked& s) {
    for (int i = 0; i < 2; i++) {
        if (exchange(&s.lock, 1u) == 0) return;
        pause();
    }
    s.count++;
}
TEST(Explorer, LetsLoopsGiveUp) {
    Exploration found = explore(Scenario<Locked>{
        .begin = {}, .actors = {with_patience, with_patience}, .at_end = [](Locked& s) {
            REQUIRE(s.count == 1);
        }});
    EXPECT_FALSE(found.failure) << found.to_string();
}

// ---- wake-ups ----------------------------------------------------------------------

struct Sleeper {
    u32 has_work, sleeps, is_woken;
};
void wake_up(Sleeper& s) {
    store_shared(&s.has_work, 1u);
    if (load_shared(&s.sleeps) != 0) store_shared(&s.is_woken, 1u);
}
template <bool looks_again>
void go_to_sleep(Sleeper& s) {
    if (load_shared(&s.has_work) != 0) return;
    store_shared(&s.sleeps, 1u);
    if (looks_again && load_shared(&s.has_work) != 0) return;
    while (load_shared(&s.is_woken) == 0) pause();
}

TEST(Explorer, FindsALostWakeUp) {
    Exploration right =
        explore(Scenario<Sleeper>{.begin = {}, .actors = {wake_up, go_to_sleep<true>}});
    EXPECT_FALSE(right.failure) << right.to_string();
    Exploration wrong =
        explore(Scenario<Sleeper>{.begin = {}, .actors = {wake_up, go_to_sleep<false>}});
    show("a lost wake-up", wrong);
    ASSERT_TRUE(wrong.failure);
    EXPECT_EQ(wrong.failure->message.find("stuck: actor 1 pauses"), 0u) << wrong.failure->message;
}

// ---- queues ------------------------------------------------------------------------

// Slots are handed out before they are filled.
struct BrokenQueue {
    u32 head, tail, slots[4];
    u32 taken[2];
};
template <u32 value>
void push_broken(BrokenQueue& q) {
    u32 ticket = fetch_add(&q.tail, 1u);
    store_shared(&q.slots[ticket], value);
}
template <int actor>
void pop_broken(BrokenQueue& q) {
    for (;;) {
        u32 head = load_shared(&q.head);
        if (head != load_shared(&q.tail) && compare_exchange(&q.head, head, head + 1) == head) {
            q.taken[actor] = load_shared(&q.slots[head]);
            return;
        }
        pause();
    }
}

TEST(Explorer, FindsABrokenQueue) {
    Exploration found = explore(Scenario<BrokenQueue>{
        .begin = {},
        .actors = {push_broken<1>, push_broken<2>, pop_broken<0>, pop_broken<1>},
        .at_end = [](BrokenQueue& q) { REQUIRE(q.taken[0] + q.taken[1] == 3); }});
    show("a broken queue", found);
    ASSERT_TRUE(found.failure);
}

// A loop that never ends though it never pauses for long.
void take_back(Locked& s) {
    while (fetch_add(&s.lock, 1u) != 0) {
        fetch_add(&s.lock, ~0u);
        pause();
    }
    fetch_add(&s.lock, ~0u);
}
TEST(Explorer, NoticesWaysWithoutAnEnd) {
    Exploration found =
        explore(Scenario<Locked>{.begin = {}, .actors = {take_back, take_back, take_back}});
    show("who takes back what it added", found);
    EXPECT_FALSE(found.failure);
    EXPECT_GT(found.cycles, 0u);
}

// ---- weak orders -------------------------------------------------------------------

// Two words and what actors read of them.
struct Litmus {
    u32 x, y, data;
    u32 read[4];  // the test's own
};
using Acts = std::vector<Scenario<Litmus>::Act>;

// Whether some execution fails: by a race, or since `must_not_be` finds what it does not want.
bool can_be(Acts actors, void (*must_not_be)(Litmus&), u32 stale_loads = 2, u32 host = 0) {
    ExploreOptions options;
    options.stale_loads = stale_loads;
    const Exploration found = explore(Scenario<Litmus>{.begin = {},
                                                       .actors = std::move(actors),
                                                       .at_end = must_not_be,
                                                       .watched = offsetof(Litmus, read),
                                                       .host = host},
                                      options);
    if (found.failure) std::printf("%s\n", found.to_string().c_str());
    return found.failure.has_value();
}

enum class Between { nothing, acq_rel, seq_cst };
template <u32 Litmus::* mine, u32 Litmus::* other, u32 result, Between between>
void store_and_load(Litmus& s) {
    store_shared(&(s.*mine), 1u);
    if (between == Between::acq_rel) release_fence();
    if (between == Between::seq_cst) atomic_fence();
    s.read[result] = load_shared(&(s.*other));
}
void one_sees_the_other(Litmus& s) { REQUIRE(s.read[0] + s.read[1] != 0); }

TEST(WeakOrders, StoresMayBeLate) {
    constexpr auto x = &Litmus::x, y = &Litmus::y;
    EXPECT_TRUE(can_be(
        {store_and_load<x, y, 0, Between::nothing>, store_and_load<y, x, 1, Between::nothing>},
        one_sees_the_other));
    EXPECT_TRUE(can_be(
        {store_and_load<x, y, 0, Between::seq_cst>, store_and_load<y, x, 1, Between::acq_rel>},
        one_sees_the_other));
    EXPECT_FALSE(can_be(
        {store_and_load<x, y, 0, Between::seq_cst>, store_and_load<y, x, 1, Between::seq_cst>},
        one_sees_the_other));
    // Without old values there are none to be late.
    EXPECT_FALSE(can_be(
        {store_and_load<x, y, 0, Between::nothing>, store_and_load<y, x, 1, Between::nothing>},
        one_sees_the_other, 0));
}

// A message: y says that x, or data, is there.
template <bool releases>
void send(Litmus& s) {
    store_relaxed(&s.x, 1u);
    s.data = 7;
    releases ? store_shared(&s.y, 1u) : store_relaxed(&s.y, 1u);
}
void send_by_fence(Litmus& s) {
    store_relaxed(&s.x, 1u);
    s.data = 7;
    release_fence();
    store_released(&s.y, 1u);
}
void pass_on(Litmus& s) { fetch_add(&s.y, 2u); }
template <bool acquires, bool is_plain>
void receive(Litmus& s) {
    s.read[0] = acquires ? load_shared(&s.y) : load_relaxed(&s.y);
    if ((s.read[0] & 1) == 0) return;
    s.read[1] = is_plain ? s.data : load_relaxed(&s.x);
    if (is_plain) REQUIRE(s.read[1] == 7);
}
void receive_by_fence(Litmus& s) {
    if ((load_relaxed(&s.y) & 1) == 0) return;
    acquire_fence();
    REQUIRE(s.data == 7 && load_relaxed(&s.x) == 1);
}
void message_is_there(Litmus& s) { REQUIRE((s.read[0] & 1) == 0 || s.read[1] != 0); }

TEST(WeakOrders, MessagesNeedBothEnds) {
    EXPECT_FALSE(can_be({send<true>, receive<true, false>}, message_is_there));
    EXPECT_TRUE(can_be({send<false>, receive<true, false>}, message_is_there));
    EXPECT_TRUE(can_be({send<true>, receive<false, false>}, message_is_there));
    EXPECT_FALSE(can_be({send_by_fence, receive<true, false>}, message_is_there));
    EXPECT_FALSE(can_be({send_by_fence, receive_by_fence}, message_is_there));
    EXPECT_FALSE(can_be({send<true>, receive_by_fence}, message_is_there));
    // A read-modify-write in between passes it on.
    EXPECT_FALSE(can_be({send<true>, pass_on, receive<true, false>}, message_is_there));
}
TEST(WeakOrders, PlainAccessesThatRaceAreSeen) {
    EXPECT_FALSE(can_be({send<true>, receive<true, true>}, message_is_there));
    EXPECT_TRUE(can_be({send<false>, receive<true, true>}, message_is_there, 0));
    EXPECT_TRUE(can_be({send<true>, receive<false, true>}, message_is_there, 0));
    // Atomic accesses do with plain ones, but not with each other.
    EXPECT_TRUE(can_be({[](Litmus& s) { s.x = 1; }, [](Litmus& s) { load_relaxed(&s.x); }},
                       message_is_there, 0));
    EXPECT_FALSE(can_be({[](Litmus& s) { s.x = 1; }, [](Litmus& s) { load_stale(&s.x); }},
                        message_is_there, 0));
    EXPECT_FALSE(
        can_be({[](Litmus& s) { store_relaxed(&s.x, 1u); }, [](Litmus& s) { load_relaxed(&s.x); }},
               message_is_there, 0));
}
// Nobody reads backward, and a read-modify-write reads the latest.
TEST(WeakOrders, AWordHasOneOrder) {
    const Scenario<Litmus>::Act writer = [](Litmus& s) {
        store_relaxed(&s.x, 1u);
        store_relaxed(&s.x, 2u);
    };
    EXPECT_FALSE(can_be({writer,
                         [](Litmus& s) {
                             s.read[0] = load_relaxed(&s.x);
                             s.read[1] = load_relaxed(&s.x);
                         }},
                        [](Litmus& s) { REQUIRE(s.read[1] >= s.read[0]); }));
    EXPECT_FALSE(can_be({pass_on, pass_on, pass_on}, [](Litmus& s) { REQUIRE(s.y == 6); }));
}
// Two that read what two others write may disagree on the order, unless they fence.
template <bool fences>
bool may_disagree() {
    return can_be(
        {[](Litmus& s) { store_shared(&s.x, 1u); }, [](Litmus& s) { store_shared(&s.y, 1u); },
         [](Litmus& s) {
             s.read[0] = load_shared(&s.x);
             if (fences) atomic_fence();
             s.read[1] = load_shared(&s.y);
         },
         [](Litmus& s) {
             s.read[2] = load_shared(&s.y);
             if (fences) atomic_fence();
             s.read[3] = load_shared(&s.x);
         }},
        [](Litmus& s) {
            REQUIRE(!(s.read[0] == 1 && s.read[1] == 0 && s.read[2] == 1 && s.read[3] == 0));
        });
}
TEST(WeakOrders, ReadersMayDisagree) {
    EXPECT_TRUE(may_disagree<false>());
    EXPECT_FALSE(may_disagree<true>());
}
TEST(WeakOrders, ScopesReachTheHost) {
    auto tell = [](Litmus& s) { store_shared(&s.x, 1u); };
    auto tell_host = [](Litmus& s) { store_mapped(&s.x, 1u); };
    auto hear = [](Litmus& s) { load_mapped(&s.x); };
    EXPECT_TRUE(can_be({tell, hear}, message_is_there, 0, 1 << 1));
    EXPECT_FALSE(can_be({tell_host, hear}, message_is_there, 0, 1 << 1));
    EXPECT_FALSE(can_be({tell, hear}, message_is_there, 0));
}

// A schedule with old values is run again as it was.
TEST(WeakOrders, SchedulesAreRunAgain) {
    const Scenario<Litmus> scenario{.begin = {},
                                    .actors = {send<false>, receive<true, false>},
                                    .at_end = message_is_there,
                                    .watched = offsetof(Litmus, read)};
    ExploreOptions options;
    options.stale_loads = 1;
    const Exploration found = explore(scenario, options);
    ASSERT_TRUE(found.failure);
    EXPECT_NE(found.failure->schedule.find("1-1"), std::string::npos) << found.failure->schedule;
    options.schedule = found.failure->schedule;
    const Exploration again = explore(scenario, options);
    ASSERT_TRUE(again.failure);
    EXPECT_EQ(again.failure->trace, found.failure->trace);
}

}  // namespace
}  // namespace gpurun::test
