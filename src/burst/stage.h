// What a burst has on a device: its parts, and for each stage the slots that their processes are
// in.
#pragma once

#include <memory>

#include "burst/plan.h"
#include "device/kernel_device.h"

namespace gpurun::burst {

using device::Buffer;
using device::KernelDevice;

// A part of a burst from its first process to its last.
struct Part {
    const Burst* burst = nullptr;
    // On the device.
    Buffer code, arguments, results;
    device::UploadedEntries entries;
    // The run's.
    std::vector<device::NativePart> native;  // the machine code that it has
    bool awaits_native = false;              // more of that will come
    u32 end = 0;                             // behind the last process that may begin
};

// Processes of a part, all in slots of one size.
struct SlotGroup {
    usize part = 0;  // index
    SlotLayout layout;
    Plan plan;
    Buffer template_words, template_bytes, next, words, bytes, lanes;
    std::vector<LaneState> states;  // of the lanes, between launches
    bool is_changed = false;        // the host changed them since the last launch
    u64 begun = 0;                  // behind the last process that a lane has taken

    u64 lane_count() const { return plan.warps * plan.warp_lanes; }
    // Where memories begin: `bytes` itself may not be a multiple of interleaved_unit.
    u64 bytes_at() const {
        if (plan.layout == Layout::linear) return bytes.at();
        return (bytes.at() + interleaved_unit - 1) / interleaved_unit * interleaved_unit;
    }
    // Returns true if processes wait here for larger slots.
    bool has_outgrown() const;
};

// What one launch runs: the processes of all parts at first, in small slots, or those of one part
// that have outgrown the slots of another stage.
struct Stage {
    u32 number = 0;  // plan.h: slot_size()
    std::vector<SlotGroup> slots;
    SlotGroup* source = nullptr;  // where its processes come from
    device::BurstKernel kernel;
    std::vector<BurstPart> table;
    Buffer rows, counters, moved;
    u32 warps = 0;
    u64 busy_lanes = 0;  // that have a process
};

// Returns true if machine code runs: one kernel runs all parts, those without machine code too.
bool is_native(std::span<const Part> parts);
// Returns true if machine code of some is being made.
bool awaits_native(std::span<const Part> parts);

// Brings what parts have of their own to the device.
Result<std::vector<Part>> upload_parts(KernelDevice& device, std::span<const Burst> bursts);

// Makes a stage ready to be launched, with slots for so many processes of each of its parts.
// Returns false if there is no room for a warp of each.
Result<bool> prepare(KernelDevice& device, std::span<const Part> parts, Stage& stage,
                     std::span<const u64> processes);
// Says how much room a stage would have needed that has none.
Result<std::string> describe_need(KernelDevice& device, const Stage& stage, Layout layout);

// Writes the rows of a stage's table again, once they have changed.
Result<void> write_table(KernelDevice& device, const Stage& stage, const char* what);
// Reads what lanes left when a kernel ended; writes what the host changed of that before the next.
Result<void> read_lanes(KernelDevice& device, SlotGroup& slots);
Result<void> write_lanes(KernelDevice& device, SlotGroup& slots);

}  // namespace gpurun::burst
