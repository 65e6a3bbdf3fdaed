// Finds what a mistyped word was meant to be.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace gpurun::tool {

// Returns the one of `known` that needs the fewest edits to become `word`, or that `word` begins.
// Empty: none is close to it.
std::string nearest(std::string_view word, std::span<const std::string> known);

// Returns "; did you mean X?", or nothing if no X of `known` is close to `word`.
std::string did_you_mean(std::string_view word, std::span<const std::string> known);

}  // namespace gpurun::tool
