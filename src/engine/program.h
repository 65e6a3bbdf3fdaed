// Programs: modules with what the runtime offers them, one process with this program's own streams.
#pragma once

#include <memory>
#include <string>

#include "engine/store.h"
#include "host/image.h"

namespace gpurun::engine {

struct ProgramOptions {
    host::SystemOptions system;  // arena_size 0: what suits the device
    StoreOptions limits;
    std::string function = "_start";
    std::vector<Value> arguments;  // of the function
};

struct ProgramEnding {
    Completion completion;
    bool was_output_closed = false;  // nobody read the output any more, so it was stopped
    std::optional<Error> files;      // what kept changed files from being written back
    std::vector<DebugRecord> debug;
    u64 debug_dropped = 0;
};

// Bytes of system memory for so many processes, if nobody says.
u64 system_bytes(const device::DeviceInfo& device, u32 processes);

Result<void> write_header(device::SystemMemory& system, const SystemHeader& header);
// All of system memory that is in use.
Result<std::vector<u8>> read_arena(device::SystemMemory& system);

// Runs it to its end. Standard streams are live; changed files are written back however it ends.
Result<ProgramEnding> run_program(device::Device& device,
                                  std::shared_ptr<const wasm::Module> module,
                                  ProgramOptions options, const device::RunControl& control);

// "process 3: debug: 42"
std::string to_string(const DebugRecord& record);

}  // namespace gpurun::engine
