// Functions of the host that guests import. A process that calls one waits on its device; the
// host carries the call out, with the guest's memory at hand, and the process goes on.
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
    // The caller's memory 0. An Error: the range is not in it.
    virtual u64 memory_size() const = 0;
    virtual Result<void> read_memory(u64 address, std::span<u8> bytes) = 0;
    virtual Result<void> write_memory(u64 address, std::span<const u8> bytes) = 0;
};

struct HostFunction {
    std::string module, name;
    wasm::FuncType type;  // numbers and vectors only
    // The results, as `type` has them. An Error ends the process with a trap. Calls come one at a
    // time, from whatever thread serves the device.
    std::function<Result<std::vector<Value>>(HostCall& call)> call;
};

}  // namespace gpurun::engine
