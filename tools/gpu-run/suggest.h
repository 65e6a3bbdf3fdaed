// What a mistyped command or option was meant to be.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/nearest.h"

namespace gpurun::tool {

// Returns "; did you mean X?", or nothing if no X of `known` is close to `word`.
inline std::string did_you_mean(std::string_view word, std::span<const std::string> known) {
    const std::string* meant = nearest(word, known);
    return meant ? "; did you mean " + *meant + "?" : "";
}

}  // namespace gpurun::tool
