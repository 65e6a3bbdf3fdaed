// The modes on a GPU, with a driver that has none (tests/lanes/lanes_driver.h) and whose calls can
// fail.
#include "../device/fake_cuda.h"
#include "../lanes/lanes_driver.h"
#include "api/handles.h"
#include "device/cuda/cuda_device.h"
#include "mode_parts.h"

namespace gpurun::faults {
namespace {

using device::cuda::DevicePointer;
using device::cuda::Driver;
using device::cuda::DriverHandle;
using device::cuda::FakeGpu;
using device::cuda::Status;

constexpr Status injected = 999;

Driver& inner() {
    static Driver driver;
    return driver;
}

// What gives something back does so whatever it answers.
template <auto member>
constexpr bool gives_back = false;
template <>
constexpr bool gives_back<&Driver::memory_free> = true;
template <>
constexpr bool gives_back<&Driver::host_free> = true;
template <>
constexpr bool gives_back<&Driver::stream_destroy> = true;
template <>
constexpr bool gives_back<&Driver::event_destroy> = true;
template <>
constexpr bool gives_back<&Driver::module_unload> = true;
template <>
constexpr bool gives_back<&Driver::link_destroy> = true;
template <>
constexpr bool gives_back<&Driver::context_release> = true;

template <auto member>
constexpr bool is_query = false;
template <>
constexpr bool is_query<&Driver::stream_query> = true;

template <auto member, class Signature>
struct Faulty;
template <auto member, class... Parameters>
struct Faulty<member, Status(Parameters...)> {
    static Status call(Parameters... parameters) {
        // How often somebody looks whether a kernel still runs is nothing to go by.
        if constexpr (is_query<member>) {
            const Off off;
            if (inner().stream_query(parameters...) == device::cuda::not_ready)
                return device::cuda::not_ready;
        }
        const bool is_bad = fails(Kind::driver);
        if (is_bad && !gives_back<member>) return injected;
        const Off off;
        const Status status = (inner().*member)(parameters...);
        return is_bad ? injected : status;
    }
};

Driver& driver() {
    static Driver& made = []() -> Driver& {
        static FakeGpu gpu;
        FakeGpu::current() = &gpu;
        device::cuda::fill_in(inner());
        test::fill_in_lanes(inner());
        static Driver outer;
        outer.version = inner().version;
#define F(name, symbol, parameters) outer.name.set(Faulty<&Driver::name, Status parameters>::call);
        GPURUN_CUDA_FUNCTIONS(F)
        GPURUN_CUDA_NEWER_FUNCTIONS(F)
#undef F
        return outer;
    }();
    return made;
}

gpurun_error* open(gpurun_device** device) {
    return api::guarded([&]() -> Result<void> {
        auto made = std::make_unique<gpurun_device>();
        auto cuda = std::make_unique<device::CudaDevice>(&driver(), 0);
        TRY(cuda->open());
        made->device = std::move(cuda);
        *device = made.release();
        return {};
    });
}

}  // namespace

const Mode cuda_alone{"cuda_alone",
                      [](const Folder& folder, const Plan& plan, Seen& seen) {
                          return run_alone(folder, plan, seen, GPURUN_TIER_INTERP, open);
                      },
                      true};
const Mode cuda_many{"cuda_many",
                     [](const Folder& folder, const Plan& plan, Seen& seen) {
                         return run_many(folder, plan, seen, GPURUN_TIER_INTERP, open);
                     },
                     true};
const Mode cuda_machine{"cuda_machine",
                        [](const Folder& folder, const Plan& plan, Seen& seen) {
                            return run_machine(folder, plan, seen, GPURUN_TIER_INTERP, open);
                        },
                        true};

}  // namespace gpurun::faults
