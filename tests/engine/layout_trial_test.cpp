// What is tried, in which order and with how many processes, and what is concluded from it.
#include "engine/layout_trial.h"

#include <gmock/gmock.h>

#include <string>

#include "base/format.h"

namespace gpurun::engine {
namespace {

constexpr u64 least = 100, most = 1000;

// Runs a burst whose layouts have these rates, and tells what ran: "linear 100*" for a range that
// was measured. `both_after`: how many processes have begun when both layouts can be had.
std::string run(LayoutTrial& trial, u64 all, double linear, double interleaved,
                u64 both_after = 0) {
    std::string text;
    for (u64 left = all; left > 0;) {
        const bool has_both = all - left >= both_after;
        LayoutTrial::Range range = trial.next(left, has_both);
        const u64 whole = range.processes;
        // A device leaves the rest to another range once there is more to choose from.
        if (!has_both && trial.wants_ranges(left)) range.processes = both_after - (all - left);
        const bool is_linear = range.layout == Layout::linear;
        if (!text.empty()) text += ", ";
        text += format("%s %llu", is_linear ? "linear" : "interleaved",
                       (unsigned long long)range.processes);
        if (range.is_measured && range.processes == whole) {
            trial.add(range, double(whole) / (is_linear ? linear : interleaved));
            text += "*";
        }
        left -= range.processes;
    }
    return text;
}

TEST(LayoutTrial, TriesBothAndGoesOnWithTheFaster) {
    LayoutTrial fast(16'000, least, most, {});
    EXPECT_EQ(run(fast, 16'000, 10, 20), "linear 1000*, interleaved 1000*, interleaved 14000");
    EXPECT_EQ(fast.chosen(), Layout::interleaved);
    LayoutTrial slow(16'000, least, most, {});
    EXPECT_EQ(run(slow, 16'000, 20, 10), "linear 1000*, interleaved 1000*, linear 14000");
    EXPECT_EQ(slow.chosen(), Layout::linear);
}

TEST(LayoutTrial, InterleavedHasToWinClearly) {
    LayoutTrial close(16'000, least, most, {});
    run(close, 16'000, 100, 104);
    EXPECT_EQ(close.chosen(), Layout::linear);
    LayoutTrial clear(16'000, least, most, {});
    run(clear, 16'000, 100, 106);
    EXPECT_EQ(clear.chosen(), Layout::interleaved);
}

TEST(LayoutTrial, RangesAreASixteenthWithinLimits) {
    LayoutTrial few(400, least, most, {}), some(8000, least, most, {}),
        many(1'000'000, least, most, {});
    EXPECT_EQ(few.next(400, true).processes, 100u);
    EXPECT_EQ(some.next(8000, true).processes, 500u);
    EXPECT_EQ(many.next(1'000'000, true).processes, 1000u);
}

TEST(LayoutTrial, BurstsTooSmallForRangesAreComparedWithEachOther) {
    LayoutTrial first(399, least, most, {});
    EXPECT_EQ(run(first, 399, 10, 20), "linear 399*");
    EXPECT_FALSE(first.chosen());
    LayoutTrial second(300, least, most, first.rates());
    EXPECT_EQ(run(second, 300, 10, 20), "interleaved 300*");
    EXPECT_EQ(second.chosen(), Layout::interleaved);
    LayoutTrial third(250, least, most, second.rates());
    EXPECT_EQ(run(third, 250, 10, 20), "interleaved 250");
}

TEST(LayoutTrial, BurstsOfOtherSizesDoNotCompare) {
    LayoutTrial first(399, least, most, {});
    run(first, 399, 10, 20);
    LayoutTrial second(150, least, most, first.rates());
    EXPECT_EQ(run(second, 150, 10, 20), "linear 150*");
    LayoutTrial third(150, least, most, second.rates());
    EXPECT_EQ(run(third, 150, 10, 20), "interleaved 150*");
    EXPECT_EQ(third.chosen(), Layout::interleaved);
}

TEST(LayoutTrial, BurstsThatMayNotBeSplitAreComparedWithEachOther) {
    LayoutTrial first(16'000, least, most, {}, false);
    EXPECT_EQ(run(first, 16'000, 10, 20), "linear 16000*");
    EXPECT_FALSE(first.wants_ranges(16'000));
    LayoutTrial second(16'000, least, most, first.rates(), false);
    EXPECT_EQ(run(second, 16'000, 10, 20), "interleaved 16000*");
    EXPECT_EQ(second.chosen(), Layout::interleaved);
}

TEST(LayoutTrial, FewProcessesAreLinearWhateverIsKnown) {
    const LayoutRates known{{1000, 10}, {1000, 20}};
    LayoutTrial trial(99, least, most, known);
    EXPECT_EQ(run(trial, 99, 10, 20), "linear 99");
    EXPECT_FALSE(trial.chosen());
}

TEST(LayoutTrial, WhatIsKnownIsNotTriedAgain) {
    LayoutTrial trial(16'000, least, most, {{1000, 10}, {1200, 20}});
    EXPECT_EQ(trial.chosen(), Layout::interleaved);
    EXPECT_FALSE(trial.is_open());
    EXPECT_EQ(run(trial, 16'000, 10, 20), "interleaved 16000");
    LayoutTrial half(16'000, least, most, {{1000, 10}, {}});
    EXPECT_EQ(run(half, 16'000, 10, 20), "interleaved 1000*, interleaved 15000");
}

TEST(LayoutTrial, WaitsForTheOtherLayout) {
    LayoutTrial soon(16'000, least, most, {});
    EXPECT_EQ(run(soon, 16'000, 10, 20, 5000),
              "linear 5000, linear 1000*, interleaved 1000*, interleaved 9000");
    LayoutTrial late(16'000, least, most, {});
    EXPECT_FALSE(late.wants_ranges(3999));
    EXPECT_TRUE(late.wants_ranges(4000));
    LayoutTrial never(16'000, least, most, {});
    EXPECT_EQ(never.next(16'000, false).processes, 16'000u);
    // A burst that is linear throughout is of use to later ones of its size.
    LayoutTrial small(300, least, most, {});
    EXPECT_FALSE(small.wants_ranges(300));
    EXPECT_EQ(run(small, 300, 10, 20, 301), "linear 300*");
}

TEST(LayoutTrial, RestIsLinearOnceItIsGivenUp) {
    LayoutTrial trial(16'000, least, most, {});
    const LayoutTrial::Range range = trial.next(16'000, true);
    trial.add(range, 1);
    trial.give_up();
    EXPECT_EQ(run(trial, 15'000, 10, 20), "linear 15000");
    EXPECT_FALSE(trial.chosen());
}

TEST(LayoutTrial, EndsIfNothingCanBeMeasured) {
    LayoutTrial trial(16'000, least, most, {});
    u64 ranges = 0;
    for (u64 left = 16'000; left > 0; ranges++) {
        const LayoutTrial::Range range = trial.next(left, true);
        EXPECT_EQ(range.layout, Layout::linear);
        trial.add(range, 0);
        left -= range.processes;
    }
    EXPECT_EQ(ranges, 14u);
    EXPECT_FALSE(trial.chosen());
}

}  // namespace
}  // namespace gpurun::engine
