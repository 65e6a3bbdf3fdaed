// Programs: modules with what the runtime offers them; one process, with streams that are live.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "engine/profile.h"
#include "engine/store.h"
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

// What processes left in system memory, when the device has it no more.
struct Leavings {
    std::vector<u8> arena;
    std::unique_ptr<host::SystemImage> image;
};

struct ProgramEnding {
    Completion completion;
    bool has_begun = false;          // false: it ended in its initialisation
    bool was_output_closed = false;  // nobody read the output any more, so it was stopped
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

// Bytes of system memory for so many processes, if nobody says.
u64 system_bytes(const device::DeviceInfo& device, u32 processes);

// A launch's system memory, with the host's side of it.
class System {
public:
    // Part of the memory is set aside for the files that are too large to be loaded at the start.
    static Result<System> make(device::Device& device, const host::SystemOptions& options,
                               u32 terminals = 0);

    device::SystemMemory& memory() { return *memory_; }
    const host::SystemImage& image() const { return *image_; }
    // What a process asks for, but input and output: a piece of a file, which it gets or an error;
    // a call of a host function.
    Result<void> fulfil(device::WaitingProcess& process, std::span<const HostFunction> functions);
    // All that is in use, but for what was brought.
    Result<std::vector<u8>> read_all();
    // The same, and the end of this.
    Result<Leavings> take();

private:
    Result<void> bring_block(const ProcessBlock& me, u64 at);
    Result<void> call_host(device::WaitingProcess& process, const ProcessBlock& me,
                           std::span<const HostFunction> functions);

    std::unique_ptr<device::SystemMemory> memory_;
    std::unique_ptr<host::SystemImage> image_;
    u64 next_brought_ = 0;  // byte offset
};

// Runs it to its end. Changed files are written back however it ends.
Result<ProgramEnding> run_program(device::Device& device,
                                  std::shared_ptr<const wasm::Module> module,
                                  ProgramOptions options, const device::RunControl& control);

}  // namespace gpurun::engine
