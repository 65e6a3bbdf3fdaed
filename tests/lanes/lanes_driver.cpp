// What fake_cuda.h leaves out. Device memory is mapped, so that to clear it costs nothing.
#include "lanes_driver.h"

#include <sys/mman.h>

#include <map>

#include "../device/fake_cuda.h"
#include "base/hash.h"
#include "device/cuda/cuda_device.h"
#include "runtime/machine/waiting.h"
#include "runtime/vm/interp.h"
#include "runtime/wasi/system.h"
#include "warps.h"

extern "C" {
void gpurun_burst_32(gpurun::BurstParams params);
void gpurun_burst_interleaved_32(gpurun::BurstParams params);
void gpurun_burst_deep_32(gpurun::BurstParams params);
void gpurun_burst_deep_interleaved_32(gpurun::BurstParams params);
void gpurun_resident_32(gpurun::MachineParams params);
}

namespace gpurun::test {
namespace {

using device::cuda::DevicePointer;
using device::cuda::Driver;
using device::cuda::DriverHandle;
using device::cuda::FakeStream;
using device::cuda::Status;

// ---- kernels -----------------------------------------------------------------------

void run_warps(u32 warps, Warps::Kernel kernel, void* params) {
    WarpOptions options;
    options.warps = warps;
    options.interruptions = 0;
    const std::string problem = Warps(options).run(kernel, params);
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

// What a function's handle points to. Those for bursts come first.
enum class Kernel : u32 { burst, interleaved, deep, deep_interleaved, solo, resident };
const Kernel all_kernels[] = {Kernel::burst, Kernel::interleaved,
                              Kernel::deep,  Kernel::deep_interleaved,
                              Kernel::solo,  Kernel::resident};
const Warps::Kernel burst_kernels[] = {
    [](void* p) { gpurun_burst_32(*static_cast<BurstParams*>(p)); },
    [](void* p) { gpurun_burst_interleaved_32(*static_cast<BurstParams*>(p)); },
    [](void* p) { gpurun_burst_deep_32(*static_cast<BurstParams*>(p)); },
    [](void* p) { gpurun_burst_deep_interleaved_32(*static_cast<BurstParams*>(p)); }};

Status launch(DriverHandle function, unsigned blocks, unsigned, unsigned, unsigned lanes, unsigned,
              unsigned, unsigned, DriverHandle stream, void** params, void**) {
    std::function<void()> work;
    if (*static_cast<const Kernel*>(function) == Kernel::solo) {
        work = [copy = *static_cast<const SoloParams*>(params[0])] { run_solo(copy); };
    } else {
        const u32 warps = blocks * lanes / device::warp_lanes;
        const Warps::Kernel run = burst_kernels[u32(*static_cast<const Kernel*>(function))];
        work = [warps, run, copy = *static_cast<const BurstParams*>(params[0])]() mutable {
            run_warps(warps, run, &copy);
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

// Returns which kernel for bursts has this PTX; if none has, the first. Those that run machine
// code, of which there is none here, are as those for deep stacks.
Kernel burst_kernel_of(std::string_view ptx) {
    auto is = [&](const RuntimeKernel& kernel) {
        return hash(ptx) == header_of(kernel.ptx).ptx_hash;
    };
    if (!kernels::are_built()) return Kernel::burst;
    auto is_deep = [&](Layout layout) {
        return is(kernels::gang(80, true, layout)) || is(kernels::native_gang(layout));
    };
    if (is(kernels::gang(80, false, Layout::interleaved))) return Kernel::interleaved;
    if (is_deep(Layout::linear)) return Kernel::deep;
    return is_deep(Layout::interleaved) ? Kernel::deep_interleaved : Kernel::burst;
}

}  // namespace

void fill_in_lanes(Driver& driver) {
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
    driver.fill_bytes.set(
        [](DevicePointer to, unsigned char value, usize bytes, DriverHandle) -> Status {
            void* at = reinterpret_cast<void*>(to);
            if (value != 0 || to % 4096 != 0 || madvise(at, bytes, MADV_DONTNEED) != 0)
                std::memset(at, value, bytes);
            return 0;
        });
    driver.copy_to_host.set(
        [](void* to, DevicePointer from, usize bytes, DriverHandle stream) -> Status {
            const Status status =
                static_cast<FakeStream*>(stream)->is_idle() ? 0 : device::cuda::wait_for_all();
            std::memcpy(to, reinterpret_cast<void*>(from), bytes);
            return status;
        });
    // What is assembled is a word: which kernel for bursts it has, if it has one.
    driver.module_load.set([](DriverHandle* module, const void* cubin) -> Status {
        u64 word = 0;
        std::memcpy(&word, cubin, sizeof word);
        *module = new u64(word);
        return 0;
    });
    driver.module_unload.set([](DriverHandle module) -> Status {
        delete static_cast<u64*>(module);
        return 0;
    });
    driver.module_function.set(
        [](DriverHandle* function, DriverHandle module, const char* name) -> Status {
            const std::string_view wanted = name;
            const auto burst = Kernel(*static_cast<const u64*>(module));
            const Kernel kernel = wanted == "gpurun_solo"    ? Kernel::solo
                                  : wanted == "gpurun_burst" ? burst
                                                             : Kernel::resident;
            *function = kernel == Kernel::resident ? reinterpret_cast<DriverHandle>(&run_resident)
                                                   : const_cast<Kernel*>(&all_kernels[u32(kernel)]);
            return 0;
        });
    driver.module_global.set(
        [](DevicePointer* at, usize* size, DriverHandle module, const char*) -> Status {
            *at = reinterpret_cast<DevicePointer>(module);
            *size = sizeof(u64);
            return 0;
        });
    driver.function_attribute.set([](int* value, int, DriverHandle) -> Status {
        *value = 64;
        return 0;
    });
    driver.occupancy.set([](int* blocks, DriverHandle, int, usize) -> Status {
        *blocks = 1;
        return 0;
    });
    driver.context_limit.set([](int, usize) -> Status { return 0; });
    driver.launch.set(launch);
    driver.link_create.set([](unsigned, int*, void**, DriverHandle* link) -> Status {
        *link = new u64(0);
        return 0;
    });
    driver.link_add.set([](DriverHandle link, int, void* ptx, usize size, const char*, unsigned,
                           int*, void**) -> Status {
        *static_cast<u64*>(link) = u64(burst_kernel_of({static_cast<const char*>(ptx), size - 1}));
        return 0;
    });
    driver.link_complete.set([](DriverHandle link, void** cubin, usize* size) -> Status {
        *cubin = link;
        *size = sizeof(u64);
        return 0;
    });
    driver.link_destroy.set([](DriverHandle link) -> Status {
        delete static_cast<u64*>(link);
        return 0;
    });
}

Driver& lanes_driver() {
    static Driver& made = []() -> Driver& {
        static device::cuda::FakeGpu gpu;
        static Driver driver;
        device::cuda::FakeGpu::current() = &gpu;
        device::cuda::fill_in(driver);
        fill_in_lanes(driver);
        return driver;
    }();
    return made;
}

}  // namespace gpurun::test
