// Slots of page memory for processes: those that are spare, by program, and new ones.
#include "runtime/process/parts.h"

namespace gpurun::rt {
namespace {

u64 slot_pages(const ProgramEntry& program) { return page_count(program.slot_size); }

}  // namespace

void note_spare_taken(const Machine& m, ProgramEntry& program) {
    fetch_add(&program.spare_count, ~u32{0});
    fetch_add(&m.header->spare_pages, u64{0} - slot_pages(program));
}

namespace {

// A page, or 0.
u64 take_spare(const Machine& m, ProgramEntry& program, u64& list) {
    const u32 page = pop(&list, [&](u32 first) { return slot_words(m, first); });
    if (page != 0) note_spare_taken(m, program);
    return page;
}

}  // namespace

// Which list of spares to look at first: where there are few, that of the last one given.
u32 spare_shard(const ProgramEntry& program) {
    return load_relaxed(&program.spare_count) < spare_shards ? load_relaxed(&program.last_shard)
                                                             : lane_shard() % spare_shards;
}

namespace {

// Some of the slots that nobody uses go back to the page allocator. False: there are none.
bool give_spares(const Machine& m) {
    constexpr u32 at_once = 32;
    const u32 count = load_relaxed(&m.header->programs_used);
    u32 given = 0;
    for (u32 i = 0; i < count; i++) {
        ProgramEntry& program = m.program(i);
        // Acquired: what the program is is there.
        if (load_shared(reinterpret_cast<u32*>(&program.state)) != u32(ProgramState::ready) ||
            load_relaxed(&program.spare_count) == 0)
            continue;
        for (u64& list : program.spares)
            while (const u64 page = take_spare(m, program, list)) {
                PageAllocator(m).give(page, slot_pages(program));
                if (++given == at_once) return true;
            }
    }
    return given != 0;
}

}  // namespace

// A page, or 0. What a slot held that was in use before is known (prepare_task); a
// new one can hold anything.
u64 take_slot(const Machine& m, ProgramEntry& program, bool& is_new) {
    is_new = false;
    const u32 shard = lane_shard();
    for (u32 i = 0; i < spare_shards && load_relaxed(&program.spare_count) != 0; i++) {
        if (const u64 page = take_spare(m, program, program.spares[(shard + i) % spare_shards]))
            return page;
    }
    is_new = true;
    u64 page = PageAllocator(m).take(slot_pages(program));
    // Ends: there are fewer spares each time, and who makes more of them is leaving.
    while (page == 0 && load_relaxed(&m.header->spare_pages) != 0 && give_spares(m))
        page = PageAllocator(m).take(slot_pages(program));
    return page;
}

// `is_raw`: nothing was ever made ready in it.
void give_slot(const Machine& m, ProgramEntry& program, u64 page, bool is_raw) {
    if (is_raw) return PageAllocator(m).give(page, slot_pages(program));
    const u32 shard = lane_shard() % spare_shards;
    push(&program.spares[shard], u32(page), [&](u32 given) { return slot_words(m, given); });
    store_relaxed(&program.last_shard, shard);
    fetch_add(&program.spare_count, u32{1});
    fetch_add(&m.header->spare_pages, slot_pages(program));
}

}  // namespace gpurun::rt
