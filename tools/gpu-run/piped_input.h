// Standard input of gpu-run for many processes: all of them get all of it.
#pragma once

#include <gpurun/gpurun.hpp>

#include <optional>
#include <vector>

#include "base/result.h"

namespace gpurun::tool {

// Whether a module can read it at all. If not, nobody need wait for its end.
bool reads_input(const api::Module& module);

// To its end; nothing of a terminal, where one person would have to type for all. Nothing at all:
// the time was over or somebody wanted to stop before it came.
Result<std::optional<std::string>> piped_input(std::optional<double> timeout_seconds);

}  // namespace gpurun::tool
