// What the parts of resident-load have in common: times, what was checked, and JSON of both.
#pragma once

#include <chrono>
#include <cstdint>
#include <gpurun/gpurun.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "json.h"

namespace resident_load {

namespace gpu = gpurun::api;
using gpurun::tool::JsonObject;
using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Of this program, in user and system mode.
double cpu_seconds();
std::string text_of(const char* format, ...) __attribute__((format(printf, 1, 2)));

// {"count":…,"median":…,"p99":…,"most":…}, in microseconds.
std::string times_json(std::vector<double> seconds);
// The value at that percentage of them; 0 if there are none.
double percentile(std::vector<double> values, double percent);

// The first number of that name in JSON that a guest wrote; none: nothing.
std::optional<double> number_in(std::string_view text, std::string_view name);

// What must hold. Failures are told at once.
class Checks {
public:
    std::string part;  // of what is checked from now on
    bool check(std::string_view what, bool holds, std::string_view text);
    bool all_hold() const { return failed_ == 0; }
    std::string json() const;

private:
    std::vector<std::string> rows_;
    uint32_t failed_ = 0;
};

// How much memory of a machine is in use.
struct MemoryUse {
    uint64_t memory = 0, system_memory = 0;
};
MemoryUse memory_use(gpu::Machine& machine);
// Waits for the machine to have nothing to do and no more memory in use than `before`, if that is
// known; checks it.
void check_memory(gpu::Machine& machine, const std::optional<MemoryUse>& before, Checks& checks);

// The configuration of a process that has the streams of this program, which it does not use.
gpu::Config silent(const std::vector<std::string>& arguments);
// Spawns it and waits for it; what it wrote. Nothing else is to end meanwhile.
std::string output_of(gpu::Machine& machine, uint32_t program,
                      const std::vector<std::string>& arguments, double patience);

}  // namespace resident_load
