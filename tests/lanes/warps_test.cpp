// The warps of fibers themselves: lanes that meet hear of each other, and those that do not come
// where the others are, are found out.
#include "warps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace gpurun::test {
namespace {

using testing::HasSubstr;

Warps& here() { return Warps::current(); }
u32 ballot(bool value, Site site = Site::here()) {
    return here().meet(Collective::ballot, value, 0, site);
}
u32 shuffle(u32 value, u32 from, Site site = Site::here()) {
    return here().meet(Collective::shuffle, value, from, site);
}
u32 warp_min(u32 value, Site site = Site::here()) {
    return here().meet(Collective::minimum, value, 0, site);
}
void sync_warp(Site site = Site::here()) { here().meet(Collective::sync, 0, 0, site); }

WarpOptions warps_of(u32 warps, u32 lanes, u64 seed = 1) {
    WarpOptions options;
    options.warps = warps;
    options.lanes = lanes;
    options.seed = seed;
    options.most_turns = 1'000'000;
    return options;
}

TEST(Warps, Meet) {
    u32 bad = 0;
    auto kernel = [](void* at) {
        u32& wrong = *static_cast<u32*>(at);
        const u32 lane = here().lane(), warp = here().thread() / 8;
        for (u32 i = 0; i < 100; i++) {
            wrong += ballot(lane % 3 == 0) != 0b01001001;
            wrong +=
                shuffle(warp * 100 + lane + i, (lane + 1) % 8) != warp * 100 + (lane + 1) % 8 + i;
            wrong += warp_min(lane + warp + i) != warp + i;
            sync_warp();
        }
    };
    EXPECT_EQ(Warps(warps_of(3, 8)).run(kernel, &bad), "");
    EXPECT_EQ(bad, 0u);
}

TEST(Warps, TakeTurnsAsTheSeedSays) {
    auto order_of = [](u64 seed) {
        std::vector<u32> order;
        auto kernel = [](void* at) {
            for (int i = 0; i < 4; i++) {
                static_cast<std::vector<u32>*>(at)->push_back(here().thread());
                sync_warp();
            }
        };
        EXPECT_EQ(Warps(warps_of(2, 4, seed)).run(kernel, &order), "");
        return order;
    };
    EXPECT_EQ(order_of(1), order_of(1));
    EXPECT_NE(order_of(1), order_of(2));
    EXPECT_EQ(order_of(3).size(), 32u);
}

TEST(Warps, NameBothPlaces) {
    auto kernel = [](void*) {
        if (here().lane() == 2) {
            shuffle(1, 0, {"a.cpp", 10});
        } else {
            ballot(true, {"b.cpp", 20});
        }
    };
    std::string problem = Warps(warps_of(1, 4)).run(kernel, nullptr);
    EXPECT_THAT(problem, HasSubstr("lane 2 is at shuffle (a.cpp:10)"));
    EXPECT_THAT(problem, HasSubstr("lane 0 is at ballot (b.cpp:20)"));
}

TEST(Warps, TellPlacesOfOneKindApart) {
    auto kernel = [](void*) { ballot(true, {"a.cpp", here().lane() == 1 ? 1u : 2u}); };
    EXPECT_THAT(Warps(warps_of(1, 2)).run(kernel, nullptr), HasSubstr("different places"));
}

TEST(Warps, MissLanesThatHaveLeft) {
    auto kernel = [](void*) {
        if (here().lane() != 3) sync_warp({"a.cpp", 5});
    };
    std::string problem = Warps(warps_of(1, 4)).run(kernel, nullptr);
    EXPECT_THAT(problem, HasSubstr("lane 3 has left"));
    EXPECT_THAT(problem, HasSubstr("lane 0 is at sync_warp (a.cpp:5)"));
}

TEST(Warps, LetLanesWaitForEachOther) {
    // A lane that holds a lock, and others of its warp that want it.
    u32 lock = 0;
    auto kernel = [](void* at) {
        u32& word = *static_cast<u32*>(at);
        for (int i = 0; i < 10; i++) {
            while (word != 0) here().give_way(Site::here());
            word = 1;
            here().give_way(Site::here());
            word = 0;
        }
        sync_warp();
    };
    EXPECT_EQ(Warps(warps_of(2, 4)).run(kernel, &lock), "");
    auto spin = [](void*) {
        for (;;) here().give_way({"spin.cpp", 7});
    };
    EXPECT_THAT(Warps(warps_of(1, 2)).run(spin, nullptr),
                HasSubstr("no end in sight: warp 0 lane 0 was last at spin.cpp:7"));
}

TEST(Warps, Sleep) {
    u64 times[4] = {};
    auto kernel = [](void* at) {
        const u64 begin = here().now();
        here().sleep(1'000'000 * (here().lane() + 1), Site::here());
        static_cast<u64*>(at)[here().lane()] = here().now() - begin;
    };
    EXPECT_EQ(Warps(warps_of(1, 4)).run(kernel, times), "");
    for (u32 i = 0; i < 4; i++) {
        EXPECT_GE(times[i], 1'000'000u * (i + 1));
        EXPECT_LT(times[i], 1'000'000u * (i + 1) + 10'000);
    }
}

}  // namespace
}  // namespace gpurun::test
