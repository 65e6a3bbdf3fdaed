// Where in the source something is done.
#pragma once

#include "base/ints.h"

namespace gpurun::test {

struct Site {
    const char* file;
    u32 line;
    // As a default argument: of whoever calls the function that has it.
    static constexpr Site here(const char* file = __builtin_FILE_NAME(),
                               u32 line = __builtin_LINE()) {
        return {file, line};
    }
};

}  // namespace gpurun::test
