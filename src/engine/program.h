// Programs: modules with what the runtime offers them; one process, with streams that are live.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "engine/profile.h"
#include "engine/store.h"
#include "engine/system.h"
#include "host/console.h"
#include "host/image.h"

namespace gpurun::engine {

struct ProgramOptions {
    host::SystemOptions system;  // arena_size 0: what suits the device
    StoreOptions limits;
    std::string function = "_start";
    std::vector<Value> arguments;  // of the function
    std::vector<HostFunction> host_functions;
    // What the process notes (engine/trace.h), while it runs; else it is in the ending.
    std::function<void(const DebugRecord&)> take_record;
    host::Streams streams = host::console();
    std::optional<DumpFolder> dump;  // where its state goes if it traps
    bool is_profiled = false;        // the ending has samples
};

struct ProgramEnding {
    Completion completion;
    bool has_begun = false;          // false: it ended in its initialisation
    bool was_output_closed = false;  // nobody read the output any more, so it was stopped
    std::optional<Error> problem;    // of the host or the device, which ended it
    std::optional<Error> files;      // what kept changed files from being written back
    u32 dumps = 0;                   // 1: its state was written
    std::optional<Error> dump;       // what kept it from that
    std::vector<DebugRecord> debug;
    u64 debug_dropped = 0;
    std::vector<StackSample> samples;  // of its stack, if it was profiled
    Leavings left;
    Handle block = 0;  // the process's, in there; 0: it made no system call
    NativeFacts native;
};

// Runs a process to its end. An Error means that it never began. Once it has begun, changed files
// are written back however it ends.
Result<ProgramEnding> run_program(device::Device& device,
                                  std::shared_ptr<const wasm::Module> module,
                                  ProgramOptions options, const device::RunControl& control);

}  // namespace gpurun::engine
