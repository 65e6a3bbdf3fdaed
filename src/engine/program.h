// Runs a process alone, with live streams.
#pragma once

#include <string>

#include "engine/profile.h"
#include "engine/run.h"

namespace gpurun::engine {

struct ProgramEnding {
    Completion completion;
    double seconds = 0;              // that it ran
    std::string output[2];           // standard output and error, where nobody took them
    bool was_output_closed = false;  // nobody read the output any more, so it was stopped
    std::optional<Error> problem;    // of the host or the device, which ended it
    u32 dumps = 0;                   // 1: its state was written
    std::optional<Error> dump;       // what kept it from that
    std::vector<DebugRecord> debug;
    u64 debug_dropped = 0;
    std::vector<StackSample> samples;  // of its stack, if it was profiled
    SystemSnapshot snapshot;
    Handle block = 0;  // the process's, in there; 0: it made no system call
    NativeFacts native;
};

// Runs a process to its end. An Error means that it never began. Once it has begun, changed files
// are written back however it ends.
Result<ProgramEnding> run_program(device::Device& device, const Job& job);

}  // namespace gpurun::engine
