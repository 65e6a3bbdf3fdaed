// Makes what a burst has on a device: its parts, and for each stage the slots of their processes.
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
    // Changed by the run.
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
    // Returns where memories begin: `bytes` itself may not be a multiple of interleaved_unit.
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
// Returns true if machine code of some part is still being made.
bool awaits_native(std::span<const Part> parts);

// Copies code and arguments of all parts to the device.
Result<std::vector<Part>> upload_parts(KernelDevice& device, std::span<const Burst> bursts);

// Makes a stage ready to be launched, with slots for so many processes of each of its parts.
// Returns false if there is no room for a warp of each.
Result<bool> prepare(KernelDevice& device, std::span<const Part> parts, Stage& stage,
                     std::span<const u64> processes);
// Describes how much memory a stage needs for which there was not enough.
Result<std::string> describe_need(KernelDevice& device, const Stage& stage, Layout layout);

// Writes the rows of a stage's table again, once they have changed.
Result<void> write_table(KernelDevice& device, const Stage& stage, const char* what);
// Read the states of lanes after a kernel has ended, and write what the host changed of them before
// the next one.
Result<void> read_lanes(KernelDevice& device, SlotGroup& slots);
Result<void> write_lanes(KernelDevice& device, SlotGroup& slots);

}  // namespace gpurun::burst
