// printf into a std::string. (std::format is not in Debian 12's C++ library.)
#pragma once

#include <cstdarg>
#include <string>

#include "base/ints.h"

namespace gpurun {

[[gnu::format(printf, 1, 2)]] std::string format(const char* pattern, ...);

}  // namespace gpurun
