// Lays out the words and bytes of a slot.
#include "burst/slot_layout.h"

#include <algorithm>

#include "abi/code.h"

namespace gpurun::burst {
namespace {

u64 read_wide(std::span<const u32> words, u32 at) { return code_pair(words[at], words[at + 1]); }
void write_wide(std::span<u32> words, u32 at, u64 value) {
    words[at] = u32(value);
    words[at + 1] = u32(value >> 32);
}

// Adds the stack behind everything else, with the record of the first caller at its end.
void add_stack(SlotLayout& slot, const Burst& burst, u32 stack_slots) {
    std::vector<u32>& words = slot.words;
    u32* thread = words.data() + burst.thread;
    slot.stack = u32(words.size());
    slot.stack_end = slot.stack + stack_slots;
    const u32 record = slot.stack_end - record_words, instance = thread[thread_instance];
    thread[thread_stack] = thread[thread_fp] = slot.stack;
    thread[thread_stack_end] = slot.stack_end;
    thread[thread_rp] = record;
    words.resize(slot.stack_end);
    words[record + record_pc] = halt_position;
    words[record + record_fp] = slot.stack;
    words[record + record_instance] = instance;
    if (!burst.is_watched) return;
    words.push_back(canary_word ^ slot.stack_end);
    words.push_back(words[process_canaries]);
    words[process_canaries] = slot.stack_end;
}

// Adds the memories one behind another, each with its canary.
void add_memories(SlotLayout& slot, const Burst& burst, u64 limit) {
    u64 next = 0;
    for (const device::BurstMemory& memory : burst.memories) {
        std::span<u32> record = std::span(slot.words).subspan(memory.record, memory_words);
        const u64 size = read_wide(record, memory_bytes), full = read_wide(record, memory_capacity),
                  capacity = std::min(full, std::max(size, limit & ~u64{0xffff}));
        if (capacity < full) slot.clipped |= clipped_memory;
        write_wide(record, memory_base, next);
        write_wide(record, memory_capacity, capacity);
        next += capacity + (burst.is_watched ? canary_bytes : 0);
    }
    // Interleaved ones begin at multiples of interleaved_unit, a warp after another.
    if (burst.layout == Layout::interleaved) next = (next + 0xffff) & ~u64{0xffff};
    slot.bytes_per_process = next;
}

}  // namespace

SlotLayout lay_out(const Burst& burst, const SlotSize& size) {
    SlotLayout slot;
    slot.words = burst.words;
    const u32 stack_slots = std::min(burst.stack_slots, size.stack_slots);
    if (stack_slots < burst.stack_slots) slot.clipped |= clipped_stack;
    add_stack(slot, burst, stack_slots);
    add_memories(slot, burst, size.memory_bytes);
    slot.words[process_clipped] = slot.clipped;
    const u32 heap_next = slot.words[process_heap_next], heap_end = slot.words[process_heap_end];
    slot.ranges = {{0, heap_next},
                   {heap_end, slot.stack},
                   {slot.stack_end - record_words, u32(slot.words.size())}};
    return slot;
}

std::vector<u8> initial_bytes(const Burst& burst, const SlotLayout& slot) {
    std::vector<u8> bytes;
    for (const device::BurstMemory& memory : burst.memories) {
        const u64 base = read_wide(slot.words, memory.record + memory_base);
        if (!memory.data.empty()) bytes.resize(base);
        bytes.insert(bytes.end(), memory.data.begin(), memory.data.end());
        if (!burst.is_watched) continue;
        bytes.resize(base + read_wide(slot.words, memory.record + memory_capacity));
        bytes.insert(bytes.end(), canary_bytes, u8(canary_pattern));
    }
    bytes.resize((bytes.size() + 7) & ~usize{7});
    return bytes;
}

}  // namespace gpurun::burst
