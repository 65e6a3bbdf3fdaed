// Functions of the host that guests import. A process that calls one waits on its device; the host
// carries the call out, with access to the guest's memory, and the process goes on.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/value.h"
#include "wasm/types.h"

namespace gpurun::device {
class Device;
}

namespace gpurun::engine {

// One call, from the host's side.
class HostCall {
public:
    virtual ~HostCall() = default;
    virtual const device::Device& device() const = 0;  // that the guest runs on
    virtual u32 process() const = 0;                   // its number
    virtual std::span<const Value> arguments() const = 0;
    // These access the caller's memory 0. A range that is not in it is an Error.
    virtual u64 memory_size() const = 0;
    virtual Result<void> read_memory(u64 address, std::span<u8> bytes) = 0;
    virtual Result<void> write_memory(u64 address, std::span<const u8> bytes) = 0;
};

struct HostFunction {
    std::string module, name;
    wasm::FuncType type;  // numbers and vectors only
    // Carries out a call and returns its results, which fit `type`. An Error ends the process with
    // a trap. Calls come one at a time, from any thread that serves the device.
    std::function<Result<std::vector<Value>>(HostCall& call)> call;
};

}  // namespace gpurun::engine
