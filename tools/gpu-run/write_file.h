// Files that options name, written whole. Errors begin with the option.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "interrupt.h"

namespace gpurun::tool {

// Before the work, so that it is not for nothing. What the file holds stays until it is written.
Result<void> check_writable(const char* option, const std::string& path);
Result<void> write_file(const char* option, const std::string& path, std::string_view text);
// Writes an output, or what of it there is the patience for. Returns false if that was not all.
Result<bool> write_output(const char* option, const std::string& path, std::string_view text,
                          const Patience& patience);

}  // namespace gpurun::tool
