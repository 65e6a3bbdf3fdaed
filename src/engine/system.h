// System memory of one launch, with the host's side of it: what a process asks the host for while
// it runs, and what is left in the end.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "device/device.h"
#include "engine/host_function.h"
#include "host/image.h"

namespace gpurun::engine {

inline u64 offset_of(Handle handle) { return u64{handle} << handle_shift; }

template <class T>
Result<T> read_value(device::SystemMemory& system, u64 offset) {
    T value;
    TRY(system.read(offset, {reinterpret_cast<u8*>(&value), sizeof value}));
    return value;
}
template <class T>
Result<void> write_value(device::SystemMemory& system, u64 offset, const T& value) {
    return system.write(offset, {reinterpret_cast<const u8*>(&value), sizeof value});
}

// What processes left in system memory, once the device has it no more.
struct Leavings {
    device::TakenMemory arena;
    std::unique_ptr<host::SystemImage> image;
};

// Ends a launch's system memory, however the launch ended: takes what is in use of it.
Result<Leavings> harvest(std::unique_ptr<device::SystemMemory> memory,
                         std::unique_ptr<host::SystemImage> image);
// Writes back what a process, by its block, changed in writable directories. Returns what kept
// changed files from being written; nothing is to be done for a process without a block.
std::optional<Error> write_back(const Leavings& left, Handle block);

// Writes a file of a process through to the host (host/write_through.h). Nothing runs meanwhile.
Result<void> sync_file(device::SystemMemory& memory, Handle process, Handle node,
                       const host::SystemImage& image);

// Takes output of a process, by its number in the launch: standard output (1) or standard error
// (2). Returns false if nobody reads it any more.
using TakeOutput = std::function<Result<bool>(u32 process, int stream, std::string_view bytes)>;

// Bytes of system memory for so many processes, if nobody says.
u64 system_bytes(const device::DeviceInfo& device, u32 processes);

class System {
public:
    // Part of the memory is set aside for the files that are too large to be loaded at the start.
    static Result<System> make(device::Device& device, const host::SystemOptions& options,
                               u32 terminals = 0);

    device::SystemMemory& memory() { return *memory_; }
    const host::SystemImage& image() const { return *image_; }
    // Fulfils what a process asks for, input excepted: a piece of a file, which it gets or an
    // error; a call of a host function; room for output.
    Result<void> fulfil(device::WaitingProcess& process, std::span<const HostFunction> functions,
                        const TakeOutput& take);
    // Takes away what a process has written, standard output first. What fails, or is not wanted,
    // ends the stream: later writes of the process fail.
    Result<void> drain(u32 process, Handle block, const TakeOutput& take);
    Result<Leavings> harvest() { return engine::harvest(std::move(memory_), std::move(image_)); }

private:
    Result<void> bring_block(const ProcessBlock& me, u64 at);
    Result<void> call_host(device::WaitingProcess& process, const ProcessBlock& me,
                           std::span<const HostFunction> functions);

    std::unique_ptr<device::SystemMemory> memory_;
    std::unique_ptr<host::SystemImage> image_;
    u64 next_brought_ = 0;  // byte offset
};

}  // namespace gpurun::engine
