// How a process begins: what it is made of, new or left by another, and how it comes to its queue.
#include "runtime/process/parts.h"

namespace gpurun::rt {
namespace {

[[gnu::noinline]] void copy_text(u8* to, const Text& text) {
    copy_system(to, text.bytes, text.size);
}

// What the block needs beside descriptors: what the strings are, and where the files are.
// `has_files`: it counts among their users.
bool fill_block(const Process& p, Handle handle, const NewProcess& wanted, bool has_files) {
    ProcessBlock* block = at_handle<ProcessBlock>(p, handle);
    if (block->strings != 0) {
        u8* to = at_handle<u8>(p, block->strings);
        copy_text(to, wanted.arguments);
        if (wanted.environment.size != 0) copy_text(to + wanted.arguments.size, wanted.environment);
    }
    block->arguments = u64(block->strings) << handle_shift;
    block->argument_count = wanted.arguments.count;
    block->argument_bytes = wanted.arguments.size;
    block->environment = block->arguments + wanted.arguments.size;
    block->environment_count = wanted.environment.count;
    block->environment_bytes = wanted.environment.size;
    if (wanted.files == 0) {
        block->roots = take_zeroed(p, max_preopens * sizeof(Handle));
        return block->roots != 0;
    }
    block->files = wanted.files;
    if (!has_files) fetch_add(&at_handle<ProcessBlock>(p, wanted.files)->file_users, u32{1});
    return true;
}

// What a process is made of. 0: there is none.
struct Parts {
    u32 entry, task;  // indices
    u64 page;         // of its slot
    bool is_new;      // the slot
    bool has_files;   // is counted among the users of the files that are wanted
    ResidentBlocks blocks;
};

// Returns true if a process can have what another left on the lane.
bool fits(const Process& p, const Belongings& had, const NewProcess& wanted, u32 string_bytes) {
    const ProcessBlock* block = at_handle<ProcessBlock>(p, had.block);
    // All of it is on its way at the same time.
    const Handle files = block->files, guest_blocks = block->guest_blocks;
    const u32 capacity = block->descriptor_capacity, bytes = block->string_bytes;
    return (had.program == wanted.program) & (had.is_raw == 0) & (had.bytes_size == 0) &
           (files == wanted.files) & (files != 0) & (guest_blocks == 0) &
           (capacity == ResidentBlocks::first_descriptors) & ((bytes == 0) == (string_bytes == 0)) &
           (class_of(bytes) == class_of(string_bytes));
}

// Makes a process of the lane's leftovers. Returns false if they do not fit; there are none then.
bool take_leftovers(const Machine& m, const NewProcess& wanted, u32 string_bytes, Parts& parts) {
    Leftovers& left = *m.leftovers;
    const Process p = m.nobody();
    if (fits(p, left.had, wanted, string_bytes)) {
        parts.entry = left.entry != 0 ? left.entry - 1 : take_process_entry(m);
        left.entry = 0;
    }
    if (parts.entry == 0) {
        give_back_leftovers(m);
        return false;
    }
    const ProcessBlock* block = at_handle<ProcessBlock>(p, left.had.block);
    parts.task = left.task - 1;
    parts.page = left.had.slot_at >> page_shift;
    parts.has_files = true;
    parts.blocks = {left.had.block, block->descriptors, block->strings, string_bytes};
    left.task = 0;
    // Not the last: who starts another is alive.
    fetch_add(&m.header->ended, u64{1});
    fetch_add(&m.header->alive, ~u32{0});
    fetch_add(&m.header->leaving, ~u32{0});
    return true;
}

// As it is mostly there, everything is taken at the same time; what is not, one by one.
[[gnu::noinline]] void take_new_parts(const Machine& m, const NewProcess& wanted, u32 string_bytes,
                                      Parts& parts) {
    const Process p = m.nobody();
    ProgramEntry& program = m.program(wanted.program);
    EarlyPop entry(&m.header->free_processes), task(&m.header->free_tasks),
        slot(&program.spares[spare_shard(program)]), block(free_blocks(p, sizeof(ProcessBlock))),
        descriptors(free_blocks(p, ResidentBlocks::descriptor_bytes)),
        strings(free_blocks(p, string_bytes));
    acquire_fence();  // pairs with push_chain: what their last owners did to them is done
    entry.look([&](u32 i) { return &m.process(i - 1).next_free; });
    task.look([&](u32 i) { return &m.task(i - 1).next_free; });
    slot.look([&](u32 page) { return slot_words(m, page); });
    auto next_block = [&](u32 handle) { return at_handle<u32>(p, handle); };
    block.look(next_block);
    descriptors.look(next_block);
    strings.look(next_block);
    entry.take();
    task.take();
    slot.take();
    block.take();
    descriptors.take();
    if (string_bytes != 0) strings.take();
    parts.entry = entry.item() != 0 ? entry.item() - 1 : take_process_entry(m);
    parts.task = task.item() != 0 ? task.item() - 1 : take_task_entry(m);
    if (slot.item() != 0) note_spare_taken(m, program);
    parts.page = slot.item() != 0 ? slot.item() : take_slot(m, program, parts.is_new);
    parts.blocks = {take_popped(p, block, sizeof(ProcessBlock)),
                    take_popped(p, descriptors, ResidentBlocks::descriptor_bytes),
                    string_bytes == 0 ? 0 : take_popped(p, strings, string_bytes), string_bytes};
}

// Nobody else has seen them.
[[gnu::noinline]] void give_back(const Machine& m, ProgramEntry& program, const Parts& parts) {
    give_back(m.nobody(), parts.blocks);
    if (parts.page != 0) give_slot(m, program, parts.page, parts.is_new);
    if (parts.task != 0) give_task_entry(m, parts.task);
    if (parts.entry != 0) give_process_entry(m, parts.entry);
}

// Without regard to those on their way out.
Errno try_make_process(const Machine& m, const NewProcess& wanted, u32& index) {
    const Process p = m.nobody();
    ProgramEntry& program = m.program(wanted.program);
    const u32 string_bytes = wanted.arguments.size + wanted.environment.size;
    Parts parts{};
    bool is_reused = m.leftovers != nullptr && m.leftovers->task != 0;
    if (is_reused) {
        [[clang::always_inline]] is_reused = take_leftovers(m, wanted, string_bytes, parts);
    }
    if (!is_reused) take_new_parts(m, wanted, string_bytes, parts);
    index = parts.entry;
    const u32 first = parts.task;
    const u64 page = parts.page;
    const bool is_new = parts.is_new;
    Handle block = begin_resident(p, parts.blocks);
    const u32 pid = next_pid(m, m.process(index).pid, index);
    if (index == 0 || first == 0 || page == 0 || block == 0 ||
        !fill_block(p, block, wanted, parts.has_files)) {
        give_back(m, program, parts);
        return index == 0 || first == 0 ? Errno::again : Errno::nomem;
    }
    at_handle<ProcessBlock>(p, block)->id =
        wanted.parent == host_parent ? wanted.request : pid | 1u << 31;
    at_handle<ProcessBlock>(p, block)->entry = index;
    ProcessEntry& process = m.process(index);
    // Whoever asks for somebody by a pid may look at it meanwhile.
    store_relaxed(&process.pid, pid);
    process.first_child = process.first_zombie = 0;
    process.quiet = process.on_lanes = process.waits_for_move = process.had_children = 0;
    store_relaxed(&process.first_task, first + 1);
    store_relaxed(&process.tasks, u32{1});
    store_relaxed(&process.parent, wanted.parent);
    process.next_sibling = process.previous_sibling = 0;
    process.program = wanted.program;
    process.block = block;
    process.request = wanted.request;
    store_relaxed(&process.priority,
                  wanted.priority < priorities ? wanted.priority : u32{normal_priority});
    process.next_tid = 0;
    process.is_raw = is_new;
    process.slot_at = page << page_shift;
    process.bytes_at = process.slot_at + program.words_size;
    process.bytes_size = 0;
    process.fuel = wanted.fuel;
    store_relaxed(&process.ending, u64{pid});
    process.started = clock_ns();
    process.ended = process.time_used = 0;
    process.trap_pc = 0;
    TaskEntry& task = m.task(first);
    task.process = index;
    task.tid = 0;
    task.words_pages = 0;
    task.words_at = process.slot_at;
    task.wake = Wake::none;
    task.stack_slots = program.info.stack_end - program.info.stack;
    task.call = 0;
    task.is_fresh = is_new ? slot_is_new : slot_is_used;
    task.frames = 0;
    task.was_on_lane = 0;
    store_relaxed(&task.next_of_process, u32{0});
    task.previous_of_process = 0;
    store_relaxed(&m.deadline(first), no_deadline);
    return Errno::success;
}

}  // namespace

Errno make_process(const Machine& m, const NewProcess& wanted, u32& index) {
    // Where nobody gives anything back in time, there is no more.
    constexpr u32 attempts = 1000;
    for (u32 turn = 0;; turn++) {
        const u32 leaving = load_shared(&m.header->leaving);  // pairs with give_back
        Errno error;
        [[clang::always_inline]] error = try_make_process(m, wanted, index);
        if (error == Errno::success || leaving == 0 || turn == attempts) return error;
        back_off(turn);
    }
}

void start_process(const Machine& m, u32 index) {
    ProcessEntry& process = m.process(index);
    const bool has_parent = process.parent != host_parent && process.parent != 0;
    ProcessEntry& parent = m.process(has_parent ? pid_index(m, process.parent) : 0);
    if (has_parent) {
        lock(&parent.lock);
        link_child(m, parent.first_child, index);
        parent.had_children = 1;
    }
    fetch_add(&m.header->alive, u32{1});
    fetch_add(&m.header->spawned, u64{1});
    const u32 first = process.first_task - 1;
    store_task_state(m.task(first), TaskState::ready);
    RunQueue& queue = queue_of(m, process);
    release_fence();  // for who knows its pid, who takes the parent's lock, and who runs it
    store_released(reinterpret_cast<u32*>(&process.state), u32(ProcessState::alive));
    if (has_parent) store_released(&parent.lock, u32{0});
    push_task(queue, m.queue_slots(queue), first, true);
}

void drop_process(const Machine& m, u32 index) {
    ProcessEntry& process = m.process(index);
    give_back(m, Belongings(process));
    give_task_entry(m, process.first_task - 1);
    store_relaxed(&process.ending, u64{0});  // its pid names nobody
    reap(m, index);
}

}  // namespace gpurun::rt
