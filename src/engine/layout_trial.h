// Chooses the layout of memories of a burst by trying both on ranges of its processes. It counts
// and compares, and uses no device, clock or file.
#pragma once

#include <algorithm>
#include <optional>

#include "abi/burst.h"

namespace gpurun::engine {

// How many processes ran with a layout, and how many of them ended in a second.
struct LayoutRate {
    u64 processes = 0;  // 0: not measured
    double per_second = 0;

    // Returns how long they ran.
    double seconds() const { return processes == 0 ? 0 : double(processes) / per_second; }
    // Returns true if the rate of `other` processes can be compared with this one.
    bool is_comparable(u64 other) const {
        return processes != 0 && other <= 2 * processes && processes <= 2 * other;
    }
};

// The rates of processes of a module on a device, as far as they are known.
struct LayoutRates {
    LayoutRate linear, interleaved;

    LayoutRate& of(Layout layout) { return layout == Layout::linear ? linear : interleaved; }
    // Returns the faster layout once both were measured: the linear one, which takes less memory
    // and suits processes that diverge, unless the other is clearly faster.
    std::optional<Layout> faster() const {
        constexpr double least_gain = 1.05;
        if (!linear.is_comparable(interleaved.processes)) return std::nullopt;
        return interleaved.per_second > least_gain * linear.per_second ? Layout::interleaved
                                                                       : Layout::linear;
    }
};

class LayoutTrial {
public:
    // Begins with a burst of `all` processes and what is known of them, on a device where `least`
    // processes use each multiprocessor and `most` are resident at once. Whole bursts are compared
    // unless it `may_split`.
    LayoutTrial(u64 all, u64 least, u64 most, const LayoutRates& known, bool may_split = true)
        : all_(all), least_(least), rates_(known) {
        constexpr u64 share = 16;
        range_ = std::clamp(all / share, least, std::max(least, most));
        splits_ = may_split && all >= worth_it * range_;
    }

    // Processes that run together with one layout.
    struct Range {
        Layout layout = Layout::linear;
        u64 processes = 0;
        bool is_measured = false;  // its rate is to be told
    };
    // Returns what runs next if `left` processes have not begun. `has_both` says that they could
    // run with either layout now.
    Range next(u64 left, bool has_both) const {
        if (const auto faster = chosen()) return {*faster, left};
        const u64 size = has_both ? trial_size(left) : 0;
        if (is_open() && size != 0) {
            const bool has_linear = rates_.linear.is_comparable(size);
            return {has_linear ? Layout::interleaved : Layout::linear, size, true};
        }
        // A whole burst that has to be linear can be compared with a later interleaved one.
        const bool is_new = left == all_ && !rates_.linear.is_comparable(left);
        return {Layout::linear, left, is_open() && is_new};
    }
    // Adds the time that a range took which was to be measured.
    void add(const Range& range, double seconds) {
        if (seconds <= 0) return;
        rates_.of(range.layout) = {range.processes, double(range.processes) / seconds};
    }
    // Ends the trial: processes that have not begun use the linear layout.
    void give_up() { is_over_ = true; }

    // Returns the layout for all processes that have not begun, once it is known. Few processes
    // have warps almost to themselves, and so gain nothing by interleaving.
    std::optional<Layout> chosen() const {
        return is_over_ || all_ < least_ ? std::nullopt : rates_.faster();
    }
    // Returns true if, with so many processes left, ranges of a running burst would try layouts.
    bool wants_ranges(u64 left) const { return is_open() && splits_ && trial_size(left) != 0; }
    // Returns true if both layouts are worth trying, for this burst or a later one.
    bool is_open() const { return !is_over_ && all_ >= least_ && !rates_.faster(); }
    const LayoutRates& rates() const { return rates_; }

private:
    static constexpr u64 worth_it = 4;  // ranges: two for the trial, and a rest that gains by it

    // Returns how many processes try a layout: a range of them, all if there are no ranges, or 0.
    u64 trial_size(u64 left) const {
        const u64 needed = rates_.linear.is_comparable(range_) ? worth_it - 1 : worth_it;
        if (splits_) return left >= needed * range_ ? range_ : 0;
        return left == all_ ? all_ : 0;
    }

    u64 all_, least_, range_;
    LayoutRates rates_;
    bool splits_ = false, is_over_ = false;
};

}  // namespace gpurun::engine
