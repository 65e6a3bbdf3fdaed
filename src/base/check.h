// CHECK: our own invariants on the host. A failure is a bug of gpu-run, never of its input.
#pragma once

namespace gpurun {

[[noreturn]] void check_failed(const char* file, int line, const char* condition);

#define CHECK(condition) \
    ((condition) ? (void)0 : ::gpurun::check_failed(__FILE__, __LINE__, #condition))

}  // namespace gpurun
