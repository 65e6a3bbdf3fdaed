// --out DIR, what many processes left: DIR/<number>/ has the files that a process changed,
// DIR/<number>.stdout and DIR/<number>.stderr what it wrote, and DIR/results.jsonl a line for each,
// in the order of their numbers: how it ended.
#pragma once

#include <gpurun/gpurun.hpp>

#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace gpurun::tool {

// Makes the folder, before the work, so that that is not for nothing. It must be empty: what an
// earlier run left there would be taken for results of this one.
Result<void> prepare_out(const std::string& folder);

// Processes that ended alike.
struct OutGroup {
    api::Process first;
    std::span<const u32> processes;
};
Result<void> store_out(const std::string& folder, const api::Result& result,
                       const std::vector<OutGroup>& groups);

}  // namespace gpurun::tool
