// How long the parts of a run took. Times are exclusive: a phase that begins inside another stops
// the other's clock until it ends.
#pragma once

#include "base/ints.h"

namespace gpurun {

enum class Phase : u8 {
    driver,       // opening it
    context,      // making one
    kernels,      // loading them, or assembling them first
    load,         // reading, decoding and validating modules
    translate,    // into code
    compile,      // code into machine code
    link,         // loading that
    instantiate,  // linking and initialising
    prepare,      // device memory: reserving, clearing, copying
    run,          // from launch to end
    count
};

const char* name_of(Phase phase);
double seconds_in(Phase phase);  // of all threads together, so far

class PhaseTimer {
public:
    explicit PhaseTimer(Phase phase);
    PhaseTimer(const PhaseTimer&) = delete;
    PhaseTimer& operator=(const PhaseTimer&) = delete;
    ~PhaseTimer();

private:
    void charge(u64 now);

    Phase phase_;
    PhaseTimer* outer_;
    u64 since_;
};

}  // namespace gpurun
