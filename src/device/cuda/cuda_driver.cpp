// Opens libcuda.so.1 and finds its functions.
#include "device/cuda/cuda_driver.h"

#include <dlfcn.h>

#include "base/format.h"
#include "base/phases.h"

namespace gpurun::device::cuda {
namespace {

Result<const Driver*> open() {
    PhaseTimer timer(Phase::driver);
    void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return Error{
            "no CUDA driver: libcuda.so.1 was not found; install NVIDIA's driver, or use --device "
            "cpu"};
    static Driver driver;
#define F(name, symbol, parameters) \
    driver.name.set(reinterpret_cast<Status(*) parameters>(dlsym(library, #symbol)));
    GPURUN_CUDA_FUNCTIONS(F)
    GPURUN_CUDA_NEWER_FUNCTIONS(F)
#undef F
#define F(name, symbol, parameters)                                   \
    if (!driver.name)                                                 \
        return Error{"the CUDA driver is too old: it has no " #symbol \
                     "; version 11.0 or later is needed"};
    GPURUN_CUDA_FUNCTIONS(F)
#undef F
    Status status = driver.init(0);
    constexpr Status no_device = 100;
    if (status == no_device)
        return Error{
            "no CUDA GPU: the driver is there but sees none (is CUDA_VISIBLE_DEVICES set?); use "
            "--device cpu"};
    TRY(driver.check(status, "starting the driver"));
    TRY(driver.check(driver.driver_version(&driver.version), "asking for the driver's version"));
    return &driver;
}

}  // namespace

std::map<std::string, u64> Driver::calls() const {
    std::map<std::string, u64> all;
#define F(name, symbol, parameters) \
    if (u64 count = name.calls()) all[#symbol] = count;
    GPURUN_CUDA_FUNCTIONS(F)
    GPURUN_CUDA_NEWER_FUNCTIONS(F)
#undef F
    return all;
}

Result<void> Driver::check(Status status, const char* what) const {
    if (status == 0) return {};
    const char *name = "unknown", *text = "unknown error";
    error_name(status, &name);
    error_text(status, &text);
    return Error{
        format("CUDA: %s: %s (%s)", what, text ? text : "unknown error", name ? name : "?")};
}

Result<const Driver*> open_driver() {
    static Result<const Driver*> driver = open();
    return driver;
}

}  // namespace gpurun::device::cuda
