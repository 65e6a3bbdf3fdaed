// The kernel of a machine: each warp does what the scheduler has it do, until it is told to park.
#include "runtime/kernels/runtime_nvptx.h"

extern "C" [[clang::nvptx_kernel]] void gpurun_resident(gpurun::MachineParams params) {
    using namespace gpurun::rt;
    run_machine(params, global_thread() / warp_lanes, stack_limit(params.native_stack_bytes));
}
