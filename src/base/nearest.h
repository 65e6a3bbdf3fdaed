// Finds what a mistyped name was meant to be.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace gpurun {

// Returns the one of `known` that is the fewest edits away from `name`, or the first that `name`
// begins. Null: none is close to it.
const std::string* nearest(std::string_view name, std::span<const std::string> known);

}  // namespace gpurun
