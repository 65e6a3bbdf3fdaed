// A machine under load from both sides: processes that the host asks for, of every kind of ending,
// and guests that start others.
#pragma once

#include "resident/figures.h"

namespace resident_load {

struct MixedOptions {
    double seconds = 60;
    uint32_t arrivals = 1000;         // that the host asks for in a second
    uint32_t spawns = 10000;          // that guests start in a second, all of them together
    uint32_t spawners = 10;           // these guests
    uint64_t output_bytes = 1 << 20;  // in a second
    double stop_host = 0;  // seconds for which this program is stopped in the midst of it
    double patience = 60;  // for the last endings
};

// JSON of what happened. Every ending is checked, and memory if it is known what was in use before.
std::string run_mixed(gpu::Machine& machine, uint32_t load_program, const MixedOptions& options,
                      const std::optional<MemoryUse>& before, bool is_strict, Checks& checks);

// So many spawns by guests, as fast as they can.
std::string run_many_spawns(gpu::Machine& machine, uint32_t load_program, uint64_t count,
                            uint32_t spawners, double patience, const MemoryUse& before,
                            Checks& checks);

// A process that computes for each lane.
std::string run_full_gang(gpu::Machine& machine, uint32_t load_program, double seconds,
                          bool is_strict, Checks& checks);

}  // namespace resident_load
