// Ctrl-C and time limits: what may end a run early.
#pragma once

#include <gpurun/gpurun.hpp>

#include <atomic>
#include <optional>

namespace gpurun::tool {

// Watches for Ctrl-C from now on: the first one asks the program to stop, a second one ends
// gpu-run itself.
void watch_interrupt();
bool was_interrupted();
const std::atomic<bool>& interrupt_flag();
// What it requests.
const gpurun_stop* interrupt_stop();
// The same for a run, and a time limit that begins with it.
void limit(api::Config& config, std::optional<double> timeout_seconds);

}  // namespace gpurun::tool
