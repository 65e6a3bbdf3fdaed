// gpu-run with faults: $GPURUN_FAULT is "KIND NUMBER FAILURE", numbers of faults.h; how many calls
// of the kind there were is written to the file $GPURUN_FAULT_CALLS. They count from the first call
// of the library on: CLI11, which parses options, takes memory in functions that must not throw.
#include <gpurun/gpurun.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>

#include "faults.h"

using namespace gpurun;

namespace {

faults::Plan plan{};

void begin() {
    static std::once_flag once;
    std::call_once(once, [] { faults::arm(plan); });
}

}  // namespace

// By the linker's --wrap.
extern "C" {

int __real_main(int argc, char** argv);
gpurun_error* __real_gpurun_device_open(const char* name, gpurun_device** device);
gpurun_error* __real_gpurun_module_load_file(const char* path, gpurun_module** module);

gpurun_error* __wrap_gpurun_device_open(const char* name, gpurun_device** device) {
    begin();
    return __real_gpurun_device_open(name, device);
}

gpurun_error* __wrap_gpurun_module_load_file(const char* path, gpurun_module** module) {
    begin();
    return __real_gpurun_module_load_file(path, module);
}

int __wrap_main(int argc, char** argv) {
    unsigned kind = 0, failure = 0;
    unsigned long long number = 0;
    const char* given = std::getenv("GPURUN_FAULT");
    if (!given || std::sscanf(given, "%u %llu %u", &kind, &number, &failure) != 3) return 2;
    plan = {faults::Kind(kind), number, faults::FailureMode(failure)};
    const int code = __real_main(argc, argv);
    const faults::Seen seen = faults::disarm();
    if (const char* path = std::getenv("GPURUN_FAULT_CALLS")) {
        if (FILE* file = std::fopen(path, "w")) {
            std::fprintf(file, "%llu", (unsigned long long)seen.calls);
            std::fclose(file);
        }
    }
    return code;
}

}  // extern "C"
