// Allocates and fills what a stage has on the device.
#include "burst/stage.h"

#include "base/format.h"

namespace gpurun::burst {
namespace {

// Chooses the slots of a stage. Returns false if there is no room for a warp of each.
Result<bool> plan(KernelDevice& device, std::span<const Part> parts, Stage& stage,
                  std::span<const u64> processes) {
    const Burst& first = *parts[0].burst;
    // The driver takes local memory for all lanes that could ever be resident.
    u32 local_bytes = stage.kernel.local_bytes;
    if (is_native(parts) || awaits_native(parts))
        local_bytes = std::max(local_bytes, device.native_params(first.tier).stack_bytes);
    u64 free = TRY(device.free_memory()), local = u64(local_bytes) * device.info().lanes;
    bool may_grow = false;
    std::vector<Plan> plans(stage.slots.size());
    double least = 0;
    for (usize i = 0; i < plans.size(); i++) {
        const SlotLayout& layout = stage.slots[i].layout;
        may_grow |= layout.clipped != 0;
        plans[i].layout = first.layout;
        plans[i].warp_lanes = device.info().warp_lanes;
        plans[i].lanes = 1;
        plans[i].words_per_warp = u64(layout.words.size()) * 4 * plans[i].warp_lanes;
        plans[i].bytes_per_lane = layout.bytes_per_process;
        least += plans[i].warp_size();
    }
    double room = double(free - std::min(free, local)) * 0.95;
    if (least > room) return false;
    // The rest is for processes that outgrow their slots.
    if (may_grow) room = std::max(least, room * (stage.number == 0 ? 0.67 : 0.5));
    spread(plans, processes, stage.kernel.resident_warps, room);
    for (usize i = 0; i < plans.size(); i++) {
        SlotGroup& slots = stage.slots[i];
        slots.plan = plans[i];
        // A range has as many lanes in a warp as the whole burst, in fewer warps.
        const u64 needed =
            (parts[slots.part].burst->processes + plans[i].lanes - 1) / plans[i].lanes;
        slots.plan.warps = std::min(plans[i].warps, std::max<u64>(1, needed));
    }
    return true;
}

// Allocates the slots of a part, in their state before the first process.
Result<void> allocate_slots(KernelDevice& device, const Part& part, bool is_first_stage,
                            std::span<const u8> template_bytes, SlotGroup& slots) {
    const SlotLayout& layout = slots.layout;
    const bool is_linear = slots.plan.layout == Layout::linear;
    slots.template_words = TRY(device.upload(std::span<const u32>(layout.words), "the template"));
    slots.template_bytes = TRY(device.upload(template_bytes, "the template"));
    slots.begun = is_first_stage ? part.burst->first : 0;
    const u32 first = u32(slots.begun);
    slots.next = TRY(device.upload(std::span<const u32>(&first, 1), "a counter"));
    slots.words =
        TRY(device.allocate_zeroed(slots.lane_count() * layout.words.size() * 4, "process words"));
    slots.bytes = TRY(device.allocate_zeroed(
        slots.plan.warps * slots.plan.lanes_with_bytes() * layout.bytes_per_process +
            (is_linear ? 0 : interleaved_unit),
        "process memories"));
    if (!is_linear && (slots.bytes.at() + slots.bytes.size()) >> interleaved_address_bits != 0)
        return Error{"the driver's addresses are too large for --layout interleaved"};
    slots.lanes = TRY(device.allocate_zeroed(slots.lane_count() * sizeof(LaneState), "lanes"));
    slots.states.resize(slots.lane_count());
    // Uploads must be done before the host's copies are freed.
    return device.synchronize("preparing the launch");
}

// Fills in where a kernel finds the slots that processes come from.
void set_source(BurstPart& row, const SlotGroup& source) {
    row.source_words = source.words.at();
    row.source_bytes = source.bytes_at();
    row.source_bytes_per_process = source.layout.bytes_per_process;
    row.source_words_per_process = u32(source.layout.words.size());
    row.source_lanes = source.plan.lanes;
    row.source_stack_end = source.layout.stack_end;
}

// Returns the row of a kernel's table for a part in slots of this size.
BurstPart make_row(const KernelDevice& device, const Part& part, const SlotGroup& slots,
                   std::span<const u8> template_bytes, u32 first_warp) {
    const Burst& burst = *part.burst;
    const SlotLayout& layout = slots.layout;
    BurstPart row{};
    row.code = part.code.at();
    row.words = slots.words.at();
    row.bytes = slots.bytes_at();
    row.template_words = slots.template_words.at();
    row.template_bytes = slots.template_bytes.at();
    // Both arrays begin with the entry of the burst's first process.
    row.arguments = part.arguments.at() - u64(burst.first) * burst.argument_words * 4;
    row.results = part.results.at() - u64(burst.first) * burst.result_stride() * 4;
    row.next = slots.next.at();
    row.system = device.address_of(burst.system);
    row.lanes_at = slots.lanes.at();
    row.native = part.entries.addresses;
    row.bytes_per_process = layout.bytes_per_process;
    row.template_size = template_bytes.size();
    while (row.template_begin < template_bytes.size() && template_bytes[row.template_begin] == 0)
        row.template_begin++;
    row.template_begin &= ~u64{7};
    row.words_per_process = u32(layout.words.size());
    row.processes = part.end;
    row.first_warp = first_warp;
    row.warps = u32(slots.plan.warps);
    row.lanes = slots.plan.lanes;
    row.thread = burst.thread;
    row.stack = layout.stack;
    row.stack_end = layout.stack_end;
    row.argument_words = burst.argument_words;
    row.result_words = burst.result_words;
    row.result_stride = burst.result_stride();
    while ((u64{32} << row.dirty_shift) < layout.bytes_per_process) row.dirty_shift++;
    row.is_watched = burst.is_watched;
    std::copy(layout.ranges.begin(), layout.ranges.end(), row.ranges);
    return row;
}

}  // namespace

bool SlotGroup::has_outgrown() const {
    return std::ranges::any_of(
        states, [](const LaneState& state) { return (state.flags & lane_has_outgrown) != 0; });
}

bool is_native(std::span<const Part> parts) {
    return std::ranges::any_of(parts, [](const Part& part) { return !part.native.empty(); });
}
bool awaits_native(std::span<const Part> parts) {
    return std::ranges::any_of(parts, [](const Part& part) { return part.awaits_native; });
}

Result<std::vector<Part>> upload_parts(KernelDevice& device, std::span<const Burst> bursts) {
    std::vector<Part> parts(bursts.size());
    for (usize i = 0; i < parts.size(); i++) {
        parts[i].burst = &bursts[i];
        parts[i].native = bursts[i].native;
        parts[i].awaits_native = bool(bursts[i].late_native);
        parts[i].end = bursts[i].end();
    }
    for (Part& part : parts) {
        const Burst& burst = *part.burst;
        part.code = TRY(device.upload(std::span<const u64>(burst.code), "code"));
        part.arguments =
            TRY(device.upload(std::span<const u32>(burst.arguments)
                                  .subspan(usize(burst.first) * burst.argument_words,
                                           usize(burst.processes) * burst.argument_words),
                              "arguments"));
        part.results = TRY(
            device.allocate_zeroed(u64(burst.processes) * burst.result_stride() * 4, "results"));
        if (is_native(parts))
            part.entries = TRY(device.upload_entries(part.native, burst.code.size()));
    }
    return parts;
}

Result<bool> prepare(KernelDevice& device, std::span<const Part> parts, Stage& stage,
                     std::span<const u64> processes) {
    const u64 free = TRY(device.free_memory());
    bool is_deep = false;
    for (SlotGroup& slots : stage.slots) {
        const Burst& burst = *parts[slots.part].burst;
        slots.layout = lay_out(burst, slot_size(burst, stage.number, device.info().lanes, free));
        is_deep |= slots.layout.stack_end - slots.layout.stack > gang_stack_slots;
    }
    stage.kernel = TRY(device.burst_kernel({is_native(parts), is_deep, parts[0].burst->layout}));
    if (!TRY(plan(device, parts, stage, processes))) return false;
    for (SlotGroup& slots : stage.slots) {
        const Part& part = parts[slots.part];
        const std::vector<u8> bytes = initial_bytes(*part.burst, slots.layout);
        TRY(allocate_slots(device, part, stage.source == nullptr, bytes, slots));
        stage.table.push_back(make_row(device, part, slots, bytes, stage.warps));
        if (stage.source) set_source(stage.table.back(), *stage.source);
        stage.warps += u32(slots.plan.warps);
    }
    stage.rows = TRY(device.upload(std::span<const BurstPart>(stage.table), "the parts"));
    stage.counters = TRY(device.allocate_zeroed(sizeof(BurstCounters), "counters"));
    TRY(device.synchronize("preparing the launch"));
    return true;
}

Result<std::string> describe_need(KernelDevice& device, const Stage& stage, Layout layout) {
    u64 needed = 0, free = TRY(device.free_memory());
    const u32 lanes = device.info().warp_lanes;
    for (const SlotGroup& slots : stage.slots)
        needed += u64(slots.layout.words.size()) * 4 * lanes +
                  slots.layout.bytes_per_process * (layout == Layout::linear ? 1 : lanes);
    return format(
        "not enough device memory: a warp of processes takes %llu MiB at the least, %llu of "
        "%llu MiB are free; a smaller --memory or --stack asks for less",
        (unsigned long long)(needed >> 20), (unsigned long long)(free >> 20),
        (unsigned long long)(device.info().memory_total >> 20));
}

Result<void> write_table(KernelDevice& device, const Stage& stage, const char* what) {
    TRY(device.copy_in(stage.rows.at(), stage.table.data(),
                       stage.table.size() * sizeof(BurstPart)));
    return device.synchronize(what);
}

Result<void> read_lanes(KernelDevice& device, SlotGroup& slots) {
    u32 begun = 0;
    TRY(device.copy_out(&begun, slots.next.at(), sizeof begun));
    slots.begun = begun;
    return device.copy_out(slots.states.data(), slots.lanes.at(),
                           slots.states.size() * sizeof(LaneState));
}

Result<void> write_lanes(KernelDevice& device, SlotGroup& slots) {
    if (!slots.is_changed) return {};
    slots.is_changed = false;
    TRY(device.copy_in(slots.lanes.at(), slots.states.data(),
                       slots.states.size() * sizeof(LaneState)));
    return device.synchronize("writing lanes");
}

}  // namespace gpurun::burst
