// Dumps: the state of a process that trapped, as files that outlive it. A folder has
//
//   module.wasm            what its processes ran
//   module.<n>.wasm        the same for program n of a machine that has several
//   <number>/state         text, a line each: how it ended, frames with their slots, globals
//   <number>/memory.<n>    the bytes of a memory, with holes where they are zero
//
// Store::capture makes them, inspect.h shows them. Processes that others started have their pid as
// their number.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/device.h"
#include "wasm/module.h"

namespace gpurun::engine {

inline constexpr usize max_dumped_frames = 1000;  // the innermost ones

struct ProcessSnapshot {
    struct Frame {
        std::optional<u32> func;  // of the module; none: a function of the runtime
        std::string runtime;      // then its name
        u32 wasm_offset = 0;
        std::vector<u32> slots;
    };
    struct Memory {
        u64 base = 0;  // in the process's bytes
        u64 size = 0;
    };
    std::string ending;         // "trap: unreachable"
    std::vector<Frame> frames;  // innermost first
    u64 more_frames = 0;        // that were left out
    std::vector<std::vector<u32>> globals;
    std::vector<Memory> memories;
};

class DumpFolder {
public:
    // Makes the folder, with the module in it. `file` is where the module came from.
    static Result<DumpFolder> make(const std::string& folder, const std::string& file,
                                   const wasm::Module& module);
    // Makes the folder without a module.
    static Result<DumpFolder> make(const std::string& folder);
    // Puts a module into it, if it has none of that number.
    Result<void> add_module(u32 number, const std::string& file, const wasm::Module& module);
    // Writes the state of a process that ran the module of that number.
    Result<void> write(u32 process, const ProcessSnapshot& state, device::ProcessMemory& memory,
                       u32 module = 0) const;

private:
    std::string folder_;
    std::map<u32, std::string> files_;  // where modules came from, by their numbers
};

struct Dump {
    std::shared_ptr<const wasm::Module> module;
    std::string folder, file;
    u32 process = 0;
    ProcessSnapshot state;
};
// Reads a dump, and trusts nothing in it: what does not fit the module is an Error.
Result<Dump> read_dump(const std::string& folder);
// Returns bytes of a memory of a dump, as far as it goes.
Result<std::vector<u8>> read_dumped_memory(const Dump& dump, u32 memory, u64 address, u64 size);

}  // namespace gpurun::engine
