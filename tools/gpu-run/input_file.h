// The files that commands read. "-" is standard input.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

namespace gpurun::wasm {
struct Module;
}

namespace gpurun::tool {

inline bool is_standard_input(const std::string& path) { return path == "-"; }

Result<std::vector<u8>> read_input(const std::string& path);
Result<std::shared_ptr<const wasm::Module>> load_input(const std::string& path);

}  // namespace gpurun::tool
