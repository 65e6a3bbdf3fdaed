// One total a phase; the timers of a thread nest.
#include "base/phases.h"

#include <atomic>
#include <chrono>

namespace gpurun {
namespace {

std::atomic<u64> totals[usize(Phase::count)];  // ns
thread_local PhaseTimer* innermost = nullptr;

u64 now_ns() {
    return u64(std::chrono::duration_cast<std::chrono::nanoseconds>(
                   std::chrono::steady_clock::now().time_since_epoch())
                   .count());
}

}  // namespace

const char* name_of(Phase phase) {
    static constexpr const char* names[] = {"driver",    "context", "kernels", "load",
                                            "translate", "compile", "link",    "instantiate",
                                            "prepare",   "run"};
    static_assert(sizeof names / sizeof *names == usize(Phase::count));
    return names[usize(phase)];
}

double seconds_in(Phase phase) {
    return double(totals[usize(phase)].load(std::memory_order_relaxed)) * 1e-9;
}

PhaseTimer::PhaseTimer(Phase phase) : phase_(phase), outer_(innermost), since_(now_ns()) {
    if (outer_) outer_->charge(since_);
    innermost = this;
}

PhaseTimer::~PhaseTimer() {
    u64 now = now_ns();
    charge(now);
    if (outer_) outer_->since_ = now;
    innermost = outer_;
}

void PhaseTimer::charge(u64 now) {
    totals[usize(phase_)].fetch_add(now - since_, std::memory_order_relaxed);
    since_ = now;
}

}  // namespace gpurun
