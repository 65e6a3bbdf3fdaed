// The few functions of base that are not inline.
#include <cstdio>
#include <cstdlib>

#include "base/check.h"
#include "base/format.h"
#include "base/result.h"

namespace gpurun {

std::string Error::to_string() const {
    return offset == nowhere ? message
                             : format("0x%llx: %s", (unsigned long long)offset, message.c_str());
}

void check_failed(const char* file, int line, const char* condition) {
    std::fprintf(stderr, "gpu-run: internal error: %s:%d: %s\n", file, line, condition);
    std::abort();
}

std::string format(const char* pattern, ...) {
    va_list args, again;
    va_start(args, pattern);
    va_copy(again, args);
    int size = std::vsnprintf(nullptr, 0, pattern, args);
    va_end(args);
    std::string text(size > 0 ? usize(size) : 0, '\0');
    if (size > 0) std::vsnprintf(text.data(), text.size() + 1, pattern, again);
    va_end(again);
    return text;
}

}  // namespace gpurun
