// Lays out the slot in which a process of a burst runs: its words and bytes before it begins, with
// as much stack and memory as the slot has. A process that needs more goes on in a larger slot.
#pragma once

#include "device/device.h"

namespace gpurun::burst {

using device::Burst;

struct SlotSize {
    u32 stack_slots = ~u32{0};
    u64 memory_bytes = ~u64{0};  // of each memory; what it begins with at the least
};

struct SlotLayout {
    std::vector<u32> words;
    std::vector<WordRange> ranges;  // what of them a fresh process gets; burst_ranges at the most
    u64 bytes_per_process = 0;
    u32 stack = 0, stack_end = 0;  // word indices
    u32 clipped = 0;               // clipped_*: of what the process may have more
};

// Lays out a slot of that size, or of what the burst's processes may have if that is less.
SlotLayout lay_out(const Burst& burst, const SlotSize& size = {});
// Returns the bytes with which a process begins in the slot, up to the last that is not zero.
std::vector<u8> initial_bytes(const Burst& burst, const SlotLayout& slot);

}  // namespace gpurun::burst
