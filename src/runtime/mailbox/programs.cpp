// Where programs lie in page memory, and what they need beside their code.
#include "runtime/mailbox/programs.h"

#include "runtime/machine/pages.h"

namespace gpurun::rt {
namespace {

bool can_be(const Machine& m, const ProgramInfo& info) {
    const u64 most = u64{1} << 40;
    return info.number < max_programs && info.name_length <= max_program_name &&
           info.code_bytes <= most && info.template_words * 4 <= most &&
           info.template_bytes <= most && info.memory_bytes <= most &&
           info.template_bytes <= info.memory_bytes && info.stack <= info.stack_end &&
           info.stack % stack_step == 0 && info.stack_end % stack_step == 0 &&
           info.stack_end <= info.template_words && info.thread < info.template_words &&
           info.memory < info.template_words && m.program(info.number).state == ProgramState::free;
}

u64 take_pages(const Machine& m, u64 bytes) {
    u64 page = 0;
    if (lane_id() == 0) page = PageAllocator(m).take(page_count(bytes));
    return shuffle(page, 0);
}

}  // namespace

bool make_queue(const Machine& m, RunQueue& queue) {
    if (queue.slots_at != 0) return true;
    u32 slots = 1;
    while (slots <= m.header->task_count) slots *= 2;
    const u64 page = take_pages(m, u64(slots) * 8);
    if (page == 0) return false;
    do_part({m.pages + (page << page_shift), nullptr, u64(slots) * 8, 0});
    sync_warp();
    if (lane_id() == 0) {
        queue.mask = slots - 1;
        store_relaxed(&queue.slots_at, page << page_shift);
    }
    sync_warp();
    return true;
}

LoadResult begin_program(const Machine& m, const ProgramInfo& info) {
    if (!can_be(m, info)) return LoadResult::invalid;
    ProgramEntry& program = m.program(info.number);
    const u64 words = info.template_words * 4;
    const u64 blob = info.code_bytes + words + info.template_bytes;
    const u64 page = take_pages(m, blob);
    if (page == 0) return LoadResult::no_memory;
    if (lane_id() == 0) {
        program.info = info;
        program.blob_at = program.code_at = page << page_shift;
        program.blob_bytes = blob;
        program.words_at = program.code_at + info.code_bytes;
        program.bytes_at = program.words_at + words;
        program.words_size = page_count(words) << page_shift;
        program.slot_size = program.words_size + info.memory_bytes;
        program.dirty_shift = 10;
        while ((u64{32} << program.dirty_shift) < info.memory_bytes) program.dirty_shift++;
        program.state = ProgramState::loading;
    }
    sync_warp();
    return LoadResult::ok;
}

LoadResult add_program_data(const Machine& m, const ProgramData& data, const u8* bytes, u64 size) {
    if (data.number >= max_programs) return LoadResult::invalid;
    const ProgramEntry& program = m.program(data.number);
    if (program.state != ProgramState::loading || !in_bounds(data.offset, size, program.blob_bytes))
        // Of one for which there was no memory: what comes of it is dropped.
        return program.state == ProgramState::ready ? LoadResult::invalid : LoadResult::no_memory;
    do_part({m.pages + program.blob_at + data.offset, bytes, size, 0});
    sync_warp();
    return LoadResult::ok;
}

bool make_program_queues(const Machine& m, u32 number) {
    bool has_queues = true;
    for (RunQueue& queue : m.program(number).queues)
        has_queues = has_queues && make_queue(m, queue);
    return has_queues;
}

void publish_program(const Machine& m, u32 number) {
    if (lane_id() == 0) {
        if (number >= m.header->programs_used) store_shared(&m.header->programs_used, number + 1);
        store_shared(reinterpret_cast<u32*>(&m.program(number).state), u32(ProgramState::ready));
    }
    sync_warp();
}

}  // namespace gpurun::rt
