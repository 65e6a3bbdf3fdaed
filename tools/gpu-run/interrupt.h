// Signals and time limits: what may end a run early.
#pragma once

#include <signal.h>
#include <gpurun/gpurun.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>

namespace gpurun::tool {

// Watches for SIGINT (Ctrl-C), SIGTERM and SIGHUP from now on, those that are not ignored. The
// first one asks the program to stop; what it has changed is written back. A second one ends
// gpu-run. A closed pipe sends no signal any more: finish_output() gives its exit code.
void watch_interrupt();
// Asks what runs to stop, since it runs for nothing. was_interrupted() stays as it is.
void stop_runs();
bool was_interrupted();
// What a shell would show of the signal: 130 for Ctrl-C.
int interrupted_code();
std::string interruption();  // "interrupted", "ended by SIGTERM"
const std::atomic<bool>& interrupt_flag();
// What it requests.
const gpurun_stop* interrupt_stop();
// How long large outputs are still looked at and written once somebody wants to stop: what is left
// then is left out.
class Patience {
public:
    bool is_over() const;

private:
    const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};
// How much of an output goes between two looks at that.
inline constexpr size_t patient_piece = 1 << 20;
// Has another process hold the files without a name that this one has, until this one has ended.
// The system takes long to free gigabytes of them, and nobody should have to wait for that.
void leave_unnamed_files();
// Keeps these signals from threads that are started while it is there.
class BlockedSignals {
public:
    BlockedSignals();
    BlockedSignals(const BlockedSignals&) = delete;
    BlockedSignals& operator=(const BlockedSignals&) = delete;
    ~BlockedSignals();

private:
    sigset_t before_;
};
// The same for a run, and a time limit that begins with it.
void limit(api::Config& config, std::optional<double> timeout_seconds);

}  // namespace gpurun::tool
