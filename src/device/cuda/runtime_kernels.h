// The runtime's kernels as the binary carries them: as PTX, which the CUDA driver can assemble, and
// as machine code for some GPUs (cubins) if the build made any (GPURUN_CUBINS). All is compressed.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "abi/burst.h"
#include "base/ints.h"

namespace gpurun {

// Stands in front of compressed bytes; cmake/pack_kernel.cpp writes it.
struct PackedHeader {
    u64 ptx_hash;   // of the PTX that this is, or that it was assembled from
    u64 size;       // before it was compressed
    u32 chip;       // compute capability: 75 is 7.5; 0: this is PTX
    u32 registers;  // the limit that it was assembled with; 0: this is PTX
    u32 toolkit;    // the assembler's version, as drivers tell theirs: 12090; 0: this is PTX
    u32 padding;
};
static_assert(sizeof(PackedHeader) == 32);

// A PackedHeader and what follows it.
using PackedBytes = std::span<const u8>;

struct RuntimeKernel {
    const char* name;  // of the kernel in the module
    u32 registers;     // that a lane may have at the most
    PackedBytes ptx;
    std::vector<PackedBytes> cubins;
};

PackedHeader header_of(PackedBytes packed);
// Decompresses what was packed.
std::vector<u8> unpack(PackedBytes packed);
std::string unpack_text(PackedBytes packed);

// The kernels. Compute capability 7.5 is 75, 8.0 is 80, …
namespace kernels {

// Returns false if this build left them out (GPURUN_KERNELS).
bool are_built();
// Returns gpurun_burst; the deep one is for stacks beyond gang_stack_slots.
const RuntimeKernel& gang(u32 capability, bool is_deep, Layout layout);
// Returns gpurun_solo; the deep one is for stacks that use more than stack_window.
const RuntimeKernel& solo(bool is_deep);
// Return gpurun_burst and gpurun_solo that run machine code, which is loaded apart from them.
const RuntimeKernel& native_gang(Layout layout);
const RuntimeKernel& native_solo();
// Returns gpurun_resident.
const RuntimeKernel& resident(u32 capability);

}  // namespace kernels
}  // namespace gpurun
