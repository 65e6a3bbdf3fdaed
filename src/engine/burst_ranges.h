// Runs a burst in ranges of its processes if the better layout of memories is not known yet: each
// range has one layout. The cache keeps what was measured for later bursts.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "engine/layout_trial.h"
#include "engine/run.h"

namespace gpurun::engine {

// The layout that memories of a burst had, and why.
struct LayoutChoice {
    enum class Reason : u8 {
        asked,       // the user said so
        untried,     // there is no other layout, or it could not be tried
        remembered,  // an earlier burst has measured
        measured,    // this one has, or has completed what an earlier one began
    };
    Layout layout = Layout::linear;
    Reason reason = Reason::untried;
    LayoutRates rates;  // as far as they are known
};

class BurstRanges {
public:
    // All jobs of a launch have one layout; they outlive this object. If `is_linear`, that is the
    // linear one.
    BurstRanges(device::Device& device, std::span<const Job> jobs, bool is_linear);

    // Returns the layout that templates are made for, and true if ranges may have the other one.
    Layout layout() const { return choice_.layout; }
    bool may_interleave() const { return trial_ && trial_->is_open(); }
    // Returns true if memories interleave though nobody asked for it.
    bool interleaves_unasked() const {
        return layout() == Layout::interleaved && choice_.reason != LayoutChoice::Reason::asked;
    }
    // Runs bursts that these stores made to their end, as if they were one launch.
    Result<device::BurstOutcome> run(std::span<device::Burst> bursts,
                                     std::span<Store* const> stores,
                                     const device::RunControl& control);
    const LayoutChoice& choice() const { return choice_; }

private:
    using Stores = std::span<Store* const>;

    void add_run_time(std::chrono::duration<double> ran) const;
    bool has_both(Stores stores);
    bool has_kernel();
    bool is_measurable(Stores stores) const;
    // Runs one range. Returns nothing if it could not begin with a layout that nobody asked for.
    Result<std::optional<device::BurstOutcome>> run_range(std::span<device::Burst> bursts,
                                                          const LayoutTrial::Range& range,
                                                          Stores stores,
                                                          const device::RunControl& control);
    LayoutRates recall() const;
    void remember() const;

    device::Device& device_;
    std::span<const Job> jobs_;
    std::string key_;         // of what is remembered
    bool is_native_ = false;  // machine code is compared, not the interpreter
    std::optional<LayoutTrial> trial_;
    LayoutChoice choice_;
    std::chrono::steady_clock::time_point looked_;     // for what the other layout needs
    std::chrono::nanoseconds ran_{0};                  // until then
    std::shared_ptr<std::atomic<bool>> is_assembled_;  // of the other layout's kernel
};

}  // namespace gpurun::engine
