// Runs the scripts of the official suite's language (.wast).
#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "device/device.h"

namespace gpurun::engine {

struct ScriptReport {
    u32 passed = 0, failed = 0;  // assertions; a module that fails to load or link counts as failed
};

struct ScriptOptions {
    std::function<void(const std::string&)> say;  // each failure: "file.wast:12: …"
    device::RunControl control;
    device::Device* device = nullptr;  // the CPU if there is none
    bool is_watched = false;           // as in StoreOptions
    device::Tier tier = device::Tier::interp;
};

// Runs a script. Returns an Error only if the script could not be read.
Result<ScriptReport> run_script(std::string_view source, std::string_view name,
                                const ScriptOptions& options);

}  // namespace gpurun::engine
