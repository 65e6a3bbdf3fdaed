// System memory of one launch, and the host's part of it: fulfils requests of processes while they
// run, and takes the memory in the end.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "device/device.h"
#include "engine/host_function.h"
#include "host/system_base.h"

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

// What processes left in system memory, taken from the device.
struct SystemSnapshot {
    device::TakenMemory arena;
    std::unique_ptr<host::SystemBase> base;
    std::optional<Error> files;  // what kept changed files from being written back
};

// Writes a file of a process through to the host (host/write_through.h). Nothing runs meanwhile.
Result<void> sync_file(device::SystemMemory& memory, Handle process, Handle node,
                       const host::SystemBase& system_base);

// Takes output of a process, by its number in the launch: standard output (1) or standard error
// (2). Returns false if nobody reads it any more.
using TakeOutput = std::function<Result<bool>(u32 process, int stream, std::string_view bytes)>;

// Takes a record that a process noted (engine/trace.h).
using TakeRecord = std::function<void(const DebugRecord& record)>;

// Returns the default size of system memory for so many processes, in bytes.
u64 system_bytes(const device::DeviceInfo& device, u32 processes);

class System {
public:
    // Makes system memory. Part of it is set aside for files that are too large to be loaded at the
    // start. place() may set aside more behind the base, by changing the header.
    using Place = std::function<Result<void>(SystemHeader& header)>;
    static Result<System> make(device::Device& device, const host::SystemOptions& options,
                               u32 terminals = 0, const Place& place = {});

    device::SystemMemory& memory() { return *memory_; }
    const host::SystemBase& base() const { return *base_; }
    // Fulfils a process's request, unless that is for input: writes a piece of a file or an error,
    // calls a host function, or makes room for output and notes.
    Result<void> fulfil(device::WaitingProcess& process, std::span<const HostFunction> functions,
                        const TakeOutput& take, const TakeRecord& note);
    // Takes what a process has written, standard output first. If `take` fails or returns false the
    // stream ends, and later writes of the process fail.
    Result<void> drain(u32 process, Handle block, const TakeOutput& take);
    // Takes the records that processes have noted, in order. Machines send theirs as messages.
    Result<void> take_records(const TakeRecord& take);
    // Returns how many notes found no room.
    Result<u64> lost_records();
    // Takes the used part of the memory after a launch, however that ended, and writes back what
    // the process of that block changed in writable directories, unless the block is 0.
    Result<SystemSnapshot> finish(Handle block);
    // Returns where the part begins that is set aside for blocks of large files. It ends with the
    // memory.
    u64 cold_blocks_begin() const { return cold_blocks_begin_; }

private:
    Result<void> load_block(const ProcessBlock& me, u64 at);
    Result<void> call_host(device::WaitingProcess& process, const ProcessBlock& me,
                           std::span<const HostFunction> functions);

    explicit System(device::Device& device) : device_(&device) {}

    device::Device* device_;
    std::unique_ptr<device::SystemMemory> memory_;
    std::unique_ptr<host::SystemBase> base_;
    u64 cold_blocks_begin_ = 0, next_cold_block_ = 0;  // byte offsets
    u64 records_at_ = 0;                               // byte offset of the ring of records
    u64 record_places_ = 0, taken_records_ = 0;
};

}  // namespace gpurun::engine
