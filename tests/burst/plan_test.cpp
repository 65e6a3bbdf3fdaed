// Slots of a burst: how large they are, and how they are spread over warps.
#include "burst/plan.h"

#include <gtest/gtest.h>

namespace gpurun::burst {
namespace {

constexpr u64 page = u64{1} << page_bits, MiB = 1 << 20;

// A part whose processes begin with so many pages, in one memory.
Burst part_with(u64 pages, u32 processes) {
    Burst part;
    part.words.resize(64);
    part.memories.push_back({8, {}});
    part.words[8 + memory_bytes] = u32(pages * page);
    part.processes = processes;
    return part;
}

TEST(SlotSize, LeavesRoomForAnAllocator) {
    // 1000 lanes share 200 MiB, which is little for each.
    EXPECT_EQ(slot_size(part_with(1, 5000), 0, 1000, 200 * MiB).memory_bytes, 5 * page);
    EXPECT_EQ(slot_size(part_with(40, 5000), 0, 1000, 200 * MiB).memory_bytes, 50 * page);
    EXPECT_EQ(slot_size(part_with(1, 5000), 0, 1000, 200 * MiB).stack_slots, gang_stack_slots);
}
TEST(SlotSize, IsTwiceTheMemoryWhereThatFits) {
    EXPECT_EQ(slot_size(part_with(40, 5000), 0, 1000, u64{10'000} * MiB).memory_bytes, 80 * page);
}
TEST(SlotSize, OfFewProcessesIsLargeAtOnce) {
    EXPECT_EQ(slot_size(part_with(1, 10), 0, 1000, 200 * MiB).memory_bytes, 4 * MiB);
    EXPECT_EQ(slot_size(part_with(1, 50), 0, 1000, 200 * MiB).memory_bytes, 1 * MiB);
}
TEST(SlotSize, OfARangeIsThatOfTheWholeBurst) {
    Burst range = part_with(1, 10);
    range.whole = 5000;
    EXPECT_EQ(slot_size(range, 0, 1000, 200 * MiB).memory_bytes, 5 * page);
}
TEST(SlotSize, IsFourTimesThatOfTheStageBefore) {
    const Burst part = part_with(1, 5000);
    for (u32 stage = 1; stage < 6; stage++) {
        const SlotSize size = slot_size(part, stage, 1000, 200 * MiB),
                       before = slot_size(part, stage - 1, 1000, 200 * MiB);
        EXPECT_EQ(size.memory_bytes, 4 * before.memory_bytes);
        EXPECT_EQ(size.stack_slots, 4 * before.stack_slots);
    }
    // Then it is all that a process may have.
    EXPECT_EQ(slot_size(part, 6, 1000, 200 * MiB).memory_bytes, ~u64{0});
    EXPECT_EQ(slot_size(part, 6, 1000, 200 * MiB).stack_slots, ~u32{0});
}

Plan plan_of(Layout layout = Layout::linear) {
    Plan plan;
    plan.layout = layout;
    plan.warp_lanes = 32;
    plan.lanes = 1;
    plan.words_per_warp = 1000;
    plan.bytes_per_lane = 100;
    return plan;
}
Plan spread_one(u64 processes, u64 resident, double room, Layout layout = Layout::linear) {
    Plan plan = plan_of(layout);
    spread({&plan, 1}, {&processes, 1}, resident, room);
    return plan;
}

TEST(Spread, GivesFewProcessesAWarpEach) {
    const Plan plan = spread_one(5, 8, 1e9);
    EXPECT_EQ(plan.warps, 5u);
    EXPECT_EQ(plan.lanes, 1u);
}
TEST(Spread, FillsWarpsWithMany) {
    const Plan some = spread_one(100, 8, 1e9), many = spread_one(100'000, 8, 1e9);
    EXPECT_EQ(some.warps, 8u);
    EXPECT_EQ(some.lanes, 13u);
    EXPECT_EQ(many.warps, 8u);
    EXPECT_EQ(many.lanes, 32u);
}
TEST(Spread, SharesWarpsByProcesses) {
    std::vector<Plan> plans{plan_of(), plan_of()};
    const u64 processes[] = {3000, 1000};
    spread(plans, processes, 8, 1e9);
    EXPECT_EQ(plans[0].warps, 6u);
    EXPECT_EQ(plans[1].warps, 2u);
}
TEST(Spread, KeepsToTheRoom) {
    // A warp with one lane takes 1100 bytes, one with all of them 4200.
    for (double room : {1'200.0, 5'000.0, 9'000.0, 20'000.0, 33'000.0}) {
        const Plan plan = spread_one(100'000, 8, room);
        EXPECT_LE(plan.size(), room);
        EXPECT_GE(plan.warps, 1u);
    }
    EXPECT_EQ(spread_one(100'000, 8, 9'000).warps, 2u);
    EXPECT_EQ(spread_one(100'000, 8, 9'000).lanes, 32u);
    // As many slots by more warps are better.
    EXPECT_EQ(spread_one(8, 4, 6'000).warps, 4u);
    EXPECT_EQ(spread_one(8, 4, 6'000).lanes, 2u);
}
TEST(Spread, GivesAllLanesRoomWhereMemoriesInterleave) {
    const Plan plan = spread_one(100'000, 8, 9'000, Layout::interleaved);
    EXPECT_EQ(plan.warps, 2u);
    EXPECT_EQ(plan.warp_size(), 4'200);
    EXPECT_EQ(spread_one(1, 8, 1e9, Layout::interleaved).warp_size(), 4'200);
}

}  // namespace
}  // namespace gpurun::burst
