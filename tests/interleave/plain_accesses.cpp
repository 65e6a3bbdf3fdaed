// What the compiler calls before each plain load and store of the sources that are compiled with
// -fsanitize-coverage=trace-loads,trace-stores.
#include "explorer.h"

extern "C" {
#define GPURUN_ACCESS(size)                                               \
    void __sanitizer_cov_load##size(void* p) {                            \
        gpurun::test::plain(p, size, false, __builtin_return_address(0)); \
    }                                                                     \
    void __sanitizer_cov_store##size(void* p) {                           \
        gpurun::test::plain(p, size, true, __builtin_return_address(0));  \
    }
GPURUN_ACCESS(1)
GPURUN_ACCESS(2)
GPURUN_ACCESS(4)
GPURUN_ACCESS(8)
GPURUN_ACCESS(16)
#undef GPURUN_ACCESS
}
