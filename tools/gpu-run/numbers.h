// Numbers as options have them. Nothing where the text is not such a number.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace gpurun::tool {

std::optional<uint64_t> parse_count(std::string_view text);  // "1000", "0x3e8"
std::optional<uint64_t> parse_size(std::string_view text);   // "65536", "64KiB", "64k"
std::optional<double> parse_seconds(std::string_view text);  // "0.5", "10", "10s", "500ms"

}  // namespace gpurun::tool
