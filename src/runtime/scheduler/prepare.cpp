// Makes the words and memories of a new process what its program begins with.
#include "runtime/scheduler/lane.h"

namespace gpurun::rt {
namespace {

// Copies what does not overlap, by all lanes together; several values of each lane are on their way
// at the same time.
template <class T>
void copy_together(T* to, const T* from, u64 count) {
    constexpr u32 batch = 8;
    for (u64 done = lane_id(); done < count; done += batch * warp_lanes) {
        T values[batch] = {};
#pragma clang loop unroll(full)
        for (u32 i = 0; i < batch; i++)
            if (done + i * warp_lanes < count) values[i] = from[done + i * warp_lanes];
#pragma clang loop unroll(full)
        for (u32 i = 0; i < batch; i++)
            if (done + i * warp_lanes < count) to[done + i * warp_lanes] = values[i];
    }
}
template <class T>
void clear_together(T* to, u64 count) {
#pragma clang loop unroll(disable)
    for (u64 i = lane_id(); i < count; i += warp_lanes) to[i] = 0;
}

// So much of a large memory is made ready between two beats of a warp's pulse.
constexpr u64 bytes_at_once = u64{16} << 20;

// Makes a part of a slot's memories what the program begins with. All offsets are multiples of what
// is copied at once.
void prepare_bytes(const ProgramEntry& program, u64* to, const u64* from, u64 begin, u64 end) {
    const u64 copied = program.info.template_bytes;
    const u64 copy_end = smaller(end, copied > begin ? copied : begin);
    copy_together(to + begin / 8, from + begin / 8, (copy_end - begin) / 8);
    clear_together(to + copy_end / 8, (end - copy_end) / 8);
}

}  // namespace

void prepare_task(const Machine& m, const ProgramEntry& program, Pulse& pulse, u32 index) {
    TaskEntry& task = m.task(index);
    ProcessEntry& process = m.process(task.process);
    const ProgramInfo& info = program.info;
    u32* words = reinterpret_cast<u32*>(m.pages + task.words_at);
    const u32* from = reinterpret_cast<const u32*>(m.pages + program.words_at);
    auto* bytes = reinterpret_cast<u64*>(m.pages + process.bytes_at);
    const auto* bytes_from = reinterpret_cast<const u64*>(m.pages + program.bytes_at);
    const bool is_new = task.is_fresh == slot_is_new;
    // Fresh objects are expected to be zero.
    const u32 heap = from[process_heap_next], heap_end = is_new ? heap : words[process_heap_next];
    u32 dirty = ~u32{0};
    if (!is_new && info.thread_entry == 0) dirty = words[info.thread + thread_dirty];
    sync_warp();
    if (is_new)
        clear_together(words, program.words_size / sizeof(u32));
    else if (heap_end > heap)
        clear_together(words + heap, heap_end - heap);
    sync_warp();
    for (const WordRange& range : info.ranges)
        copy_together(words + range.begin, from + range.begin, range.end - range.begin);
    // All of the memories, or the pieces that were written.
    const u64 size = info.memory_bytes;
    if (dirty == ~u32{0}) {
        for (u64 begin = 0; begin < size; begin += bytes_at_once) {
            if (begin != 0) pulse.get_on();
            prepare_bytes(program, bytes, bytes_from, begin, smaller(begin + bytes_at_once, size));
        }
        dirty = 0;
    }
    for (; dirty != 0; dirty &= dirty - 1) {
        const u64 begin = u64(lowest(dirty)) << program.dirty_shift;
        if (begin >= size) break;
        prepare_bytes(program, bytes, bytes_from, begin,
                      smaller(begin + (u64{1} << program.dirty_shift) + dirty_reach, size));
    }
    sync_warp();
    if (lane_id() == 0) {
        words[process_block] = process.block;
        words[process_task] = index;
        words[process_call] = 0;
        if (process.fuel != ~u64{0}) set<u64>(words, info.thread + thread_fuel, process.fuel);
        task.is_fresh = 0;
        process.is_raw = 0;
    }
    sync_warp();
}

}  // namespace gpurun::rt
