// The whole runtime in one translation unit, for the kernels of NVIDIA GPUs; and what the kernels
// have in common.
#pragma once

#include "abi/burst.h"

// Nothing but the kernels is visible from outside, so that what is not used is not there.
#pragma clang attribute push(__attribute__((internal_linkage)), apply_to = function)
#include "runtime/machine/wait.h"
#include "runtime/machine/waiting.h"
#include "runtime/memory/move.h"
#include "runtime/memory/state.h"
#include "runtime/memory/watch.h"
#include "runtime/vm/access.cpp"
#include "runtime/vm/bulk.cpp"
#include "runtime/vm/control.cpp"
#include "runtime/vm/interp.cpp"
#include "runtime/vm/object.cpp"
#include "runtime/vm/vector.cpp"
#if GPURUN_RESIDENT
// What processes come and go by.
#include "runtime/process/end.cpp"
#include "runtime/process/process_calls.cpp"
#include "runtime/process/slots.cpp"
#include "runtime/process/start.cpp"
#include "runtime/process/threads.cpp"
#include "runtime/scheduler/block.cpp"
#include "runtime/scheduler/clock.cpp"
#include "runtime/scheduler/lane.cpp"
#include "runtime/scheduler/leave.cpp"
#include "runtime/scheduler/pick.cpp"
#include "runtime/scheduler/prepare.cpp"
#include "runtime/scheduler/scheduler.cpp"
#include "runtime/scheduler/worker.cpp"
#include "runtime/wasi/descriptor_table.cpp"
#include "runtime/wasi/pipes.cpp"
#include "runtime/wasi/process_block.cpp"
#include "runtime/wasi/system.cpp"
#endif
// The rest of the system calls, and what they need: small rather than fast, for the time it takes
// to assemble them.
#pragma clang attribute push(__attribute__((minsize)), apply_to = function)
#include "runtime/fs/contents.cpp"
#include "runtime/fs/directories.cpp"
#include "runtime/fs/files.cpp"
#include "runtime/fs/paths.cpp"
#include "runtime/process/wasix_calls.cpp"
#include "runtime/wasi/descriptors.cpp"
#include "runtime/wasi/gpu_calls.cpp"
#include "runtime/wasi/path_calls.cpp"
#include "runtime/wasi/poll.cpp"
#include "runtime/wasi/random.cpp"
#include "runtime/wasi/trace.cpp"
#include "runtime/wasi/transfer.cpp"
#if GPURUN_RESIDENT
#include "runtime/mailbox/mailbox.cpp"
#include "runtime/mailbox/programs.cpp"
#include "runtime/process/growth.cpp"
#else
#include "runtime/process/end.cpp"
#include "runtime/process/process_calls.cpp"
#include "runtime/process/slots.cpp"
#include "runtime/process/start.cpp"
#include "runtime/process/threads.cpp"
#include "runtime/wasi/descriptor_table.cpp"
#include "runtime/wasi/pipes.cpp"
#include "runtime/wasi/process_block.cpp"
#include "runtime/wasi/system.cpp"
#endif
#pragma clang attribute pop
#if GPURUN_NATIVE || GPURUN_RESIDENT
#include "runtime/native/native.cpp"
#endif
#pragma clang attribute pop

namespace gpurun::rt {
namespace {

template <class T>
T* pointer(u64 address) {
    return reinterpret_cast<T*>(address);
}

// Words of code between two looks at the stop word: a few milliseconds at the most.
[[maybe_unused]] constexpr s64 quantum = 1 << 14;

#if GPURUN_NATIVE || GPURUN_RESIDENT
// Returns how far down machine code may use the hardware's stack. (Asked by a kernel itself.)
inline u8* stack_limit(u32 stack_bytes) {
    // What the runtime's own functions take, below the frame of one that is machine code.
    constexpr u32 reserve = 6 << 10;
    volatile u8 here = 0;
    return reinterpret_cast<u8*>(reinterpret_cast<u64>(&here) - (stack_bytes - reserve));
}
#endif

}  // namespace
}  // namespace gpurun::rt
