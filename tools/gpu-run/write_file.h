// Files that options name, written whole. Errors begin with the option.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace gpurun::tool {

// Before the work, so that it is not for nothing. What the file holds stays until it is written.
Result<void> check_writable(const char* option, const std::string& path);
Result<void> write_file(const char* option, const std::string& path, std::string_view text);

}  // namespace gpurun::tool
