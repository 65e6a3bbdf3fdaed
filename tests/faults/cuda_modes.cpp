// The modes on a GPU, with a driver that has none: memory is the host's, kernels are those of
// tests/lanes, and its calls can fail.
#include <sys/mman.h>

#include <map>

#include "../device/fake_cuda.h"
#include "../lanes/warps.h"
#include "api/handles.h"
#include "device/cuda_device.h"
#include "mode_parts.h"
#include "runtime/interp.h"
#include "runtime/system.h"
#include "runtime/waiting.h"

extern "C" {
void gpurun_burst_32(gpurun::BurstParams params);
void gpurun_resident_32(gpurun::MachineParams params);
}

namespace gpurun::faults {
namespace {

using device::cuda::DevicePointer;
using device::cuda::Driver;
using device::cuda::FakeGpu;
using device::cuda::FakeStream;
using device::cuda::Handle;
using device::cuda::Status;

constexpr Status injected = 999;

// ---- kernels -----------------------------------------------------------------------

void run_warps(u32 warps, test::Warps::Kernel kernel, void* params) {
    test::WarpOptions options;
    options.warps = warps;
    options.interruptions = 0;
    const std::string problem = test::Warps(options).run(kernel, params);
    if (!problem.empty()) {
        std::fprintf(stderr, "%s\n", problem.c_str());
        std::abort();
    }
}

bool run_resident(const MachineParams& params) {
    MachineParams copy = params;
    run_warps(
        device::block_lanes / device::warp_lanes,
        [](void* p) { gpurun_resident_32(*static_cast<MachineParams*>(p)); }, &copy);
    return true;
}

// A process that has a warp to itself has its memory as one of the CPU has.
void run_solo(const SoloParams& params) {
    auto* words = reinterpret_cast<u32*>(params.words);
    rt::Process process{reinterpret_cast<const u64*>(params.code),
                        words,
                        reinterpret_cast<u8*>(params.bytes),
                        words,
                        0,
                        63,
                        reinterpret_cast<u8*>(params.system)};
    if (process.system && words[process_block] == 0)
        words[process_block] = rt::begin_process(process, 0);
    while (rt::may_go_on(process, words + params.thread) &&
           rt::run(process, params.thread, 1 << 16) == ThreadState::ready) {
    }
}

// What a function's handle points to.
enum class Kernel : u32 { solo, burst, resident };
const Kernel kernels[] = {Kernel::solo, Kernel::burst, Kernel::resident};

Status launch(Handle function, unsigned blocks, unsigned, unsigned, unsigned lanes, unsigned,
              unsigned, unsigned, Handle stream, void** params, void**) {
    std::function<void()> work;
    if (*static_cast<const Kernel*>(function) == Kernel::solo) {
        work = [copy = *static_cast<const SoloParams*>(params[0])] { run_solo(copy); };
    } else {
        const u32 warps = blocks * lanes / device::warp_lanes;
        work = [warps, copy = *static_cast<const BurstParams*>(params[0])]() mutable {
            run_warps(
                warps, [](void* p) { gpurun_burst_32(*static_cast<BurstParams*>(p)); }, &copy);
        };
    }
    static_cast<FakeStream*>(stream)->push(std::move(work));
    return 0;
}

// ---- the driver --------------------------------------------------------------------

constexpr usize memory_bytes = usize{8} << 30;

std::map<DevicePointer, usize>& allocations() {
    static std::map<DevicePointer, usize> all;
    return all;
}
std::mutex allocations_mutex;

// What fake_cuda.h leaves out. Device memory is mapped, so that to clear it costs nothing.
void fill_in_rest(Driver& driver) {
    driver.device_attribute.set([](int* value, int attribute, int) -> Status {
        using namespace device::cuda;
        *value = attribute == attribute_multiprocessors            ? 1
                 : attribute == attribute_lanes_per_multiprocessor ? 128
                 : attribute == attribute_capability_major         ? 8
                                                                   : 0;
        return 0;
    });
    driver.device_memory.set([](usize* bytes, int) -> Status {
        *bytes = memory_bytes;
        return 0;
    });
    driver.memory_info.set([](usize* free, usize* total) -> Status {
        *free = *total = memory_bytes;
        return 0;
    });
    driver.memory_alloc.set([](DevicePointer* pointer, usize bytes) -> Status {
        void* made = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        *pointer = reinterpret_cast<u64>(made);
        std::lock_guard lock(allocations_mutex);
        allocations()[*pointer] = bytes;
        return 0;
    });
    driver.memory_free.set([](DevicePointer pointer) -> Status {
        device::cuda::wait_for_all();
        std::lock_guard lock(allocations_mutex);
        auto found = allocations().extract(pointer);
        munmap(reinterpret_cast<void*>(pointer), found.mapped());
        return 0;
    });
    driver.fill_bytes.set([](DevicePointer to, unsigned char value, usize bytes, Handle) -> Status {
        void* at = reinterpret_cast<void*>(to);
        if (value != 0 || to % 4096 != 0 || madvise(at, bytes, MADV_DONTNEED) != 0)
            std::memset(at, value, bytes);
        return 0;
    });
    driver.copy_to_host.set([](void* to, DevicePointer from, usize bytes, Handle stream) -> Status {
        const Status status =
            static_cast<FakeStream*>(stream)->is_idle() ? 0 : device::cuda::wait_for_all();
        std::memcpy(to, reinterpret_cast<void*>(from), bytes);
        return status;
    });
    driver.module_load.set([](Handle* module, const void*) -> Status {
        *module = new u64(0);
        return 0;
    });
    driver.module_unload.set([](Handle module) -> Status {
        delete static_cast<u64*>(module);
        return 0;
    });
    driver.module_function.set([](Handle* function, Handle, const char* name) -> Status {
        const std::string_view wanted = name;
        const Kernel kernel = wanted == "gpurun_solo"    ? Kernel::solo
                              : wanted == "gpurun_burst" ? Kernel::burst
                                                         : Kernel::resident;
        *function = kernel == Kernel::resident ? reinterpret_cast<Handle>(&run_resident)
                                               : const_cast<Kernel*>(&kernels[u32(kernel)]);
        return 0;
    });
    driver.module_global.set(
        [](DevicePointer* at, usize* size, Handle module, const char*) -> Status {
            *at = reinterpret_cast<DevicePointer>(module);
            *size = sizeof(u64);
            return 0;
        });
    driver.function_attribute.set([](int* value, int, Handle) -> Status {
        *value = 64;
        return 0;
    });
    driver.occupancy.set([](int* blocks, Handle, int, usize) -> Status {
        *blocks = 1;
        return 0;
    });
    driver.context_limit.set([](int, usize) -> Status { return 0; });
    driver.launch.set(launch);
    driver.link_create.set([](unsigned, int*, void**, Handle* link) -> Status {
        *link = new u64(0);
        return 0;
    });
    driver.link_add.set(
        [](Handle, int, void*, usize, const char*, unsigned, int*, void**) -> Status { return 0; });
    driver.link_complete.set([](Handle link, void** cubin, usize* size) -> Status {
        *cubin = link;
        *size = sizeof(u64);
        return 0;
    });
    driver.link_destroy.set([](Handle link) -> Status {
        delete static_cast<u64*>(link);
        return 0;
    });
}

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
        fill_in_rest(inner());
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
