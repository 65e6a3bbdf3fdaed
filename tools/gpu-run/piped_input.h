// Standard input of gpu-run for many processes: all of them get all of it.
#pragma once

#include <optional>
#include <vector>

#include "engine/program.h"

namespace gpurun::tool {

// Whether a module can read it at all. If not, nobody need wait for its end.
bool reads_input(const wasm::Module& module);

// To its end; nothing of a terminal, where one person would have to type for all. Nothing at all:
// the time was over or somebody wanted to stop before it came.
Result<std::optional<std::vector<u8>>> piped_input(const device::RunControl& control);

}  // namespace gpurun::tool
