// Tables, slots and blocks of processes and their threads.
#include "runtime/processes.h"

namespace gpurun::rt {
namespace {

u64 slot_pages(const ProgramEntry& program) { return page_count(program.slot_size); }
u32* slot_words(const Machine& m, u64 page) {
    return reinterpret_cast<u32*>(m.pages + (page << page_shift));
}

void note_spare_taken(const Machine& m, ProgramEntry& program) {
    fetch_add(&program.spare_count, ~u32{0});
    fetch_add(&m.header->spare_pages, u64{0} - slot_pages(program));
}
// A page, or 0.
u64 take_spare(const Machine& m, ProgramEntry& program, u64& list) {
    const u32 page = pop(&list, [&](u32 first) { return slot_words(m, first); });
    if (page != 0) note_spare_taken(m, program);
    return page;
}
// Which list of spares to look at first: where there are few, that of the last one given.
u32 spare_shard(const ProgramEntry& program) {
    return load_relaxed(&program.spare_count) < spare_shards ? load_relaxed(&program.last_shard)
                                                             : lane_shard() % spare_shards;
}

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

[[gnu::noinline]] void give_back(const Machine& m, const Belongings& had) {
    if (had.bytes_size != 0)
        PageAllocator(m).give(had.bytes_at >> page_shift, page_count(had.bytes_size));
    give_slot(m, m.program(had.program), had.slot_at >> page_shift, had.is_raw);
    end_resident(m.nobody(), had.block);
}
// One process less. True: it was the last.
bool count_out(const Machine& m) {
    fetch_add(&m.header->ended, u64{1});
    release_fence();  // what it wrote is there for whoever sees that nobody is left
    return fetch_add(&m.header->alive, ~u32{0}) == 1;
}

// The list is the process's lock's. But its first task is there before anybody takes the lock, and
// who ends a process may come so late that the entry is another's: it reads what it finds.
void link_task(const Machine& m, u32 index) {
    TaskEntry& task = m.task(index);
    ProcessEntry& process = m.process(task.process);
    task.previous_of_process = 0;
    store_relaxed(&task.next_of_process, process.first_task);
    if (process.first_task != 0) m.task(process.first_task - 1).previous_of_process = index + 1;
    store_relaxed(&process.first_task, index + 1);
    store_relaxed(&process.tasks, process.tasks + 1);
}
void unlink_task(const Machine& m, u32 index) {
    TaskEntry& task = m.task(index);
    ProcessEntry& process = m.process(task.process);
    if (task.next_of_process != 0)
        m.task(task.next_of_process - 1).previous_of_process = task.previous_of_process;
    if (task.previous_of_process != 0)
        store_relaxed(&m.task(task.previous_of_process - 1).next_of_process, task.next_of_process);
    else
        store_relaxed(&process.first_task, task.next_of_process);
    store_shared(&process.tasks, process.tasks - 1);  // pairs with is_shared
}

void link_child(const Machine& m, u32& list, u32 index) {
    ProcessEntry& child = m.process(index);
    child.previous_sibling = 0;
    child.next_sibling = list;
    if (list != 0) m.process(list - 1).previous_sibling = index + 1;
    store_relaxed(&list, index + 1);  // who is about to wait looks without the lock
}

// What a process is made of. 0: there is none.
struct Parts {
    u32 entry, task;  // indices
    u64 page;         // of its slot
    bool is_new;      // the slot
    bool has_files;   // is counted among the users of the files that are wanted
    ResidentBlocks blocks;
};

// Whether a process can have what the lane kept of one that ended.
bool fits(const Process& p, const Kept& kept, const NewProcess& wanted, u32 string_bytes) {
    const Belongings& had = kept.had;
    const ProcessBlock* block = at_handle<ProcessBlock>(p, had.block);
    // All of it is on its way at the same time.
    const Handle files = block->files, guest_blocks = block->guest_blocks;
    const u32 capacity = block->descriptor_capacity, bytes = block->string_bytes;
    return (had.program == wanted.program) & (had.is_raw == 0) & (had.bytes_size == 0) &
           (files == wanted.files) & (files != 0) & (guest_blocks == 0) &
           (capacity == ResidentBlocks::first_descriptors) & ((bytes == 0) == (string_bytes == 0)) &
           (class_of(bytes) == class_of(string_bytes));
}

// False: there is nothing kept that fits, and nothing kept any more.
bool take_kept_parts(const Machine& m, const NewProcess& wanted, u32 string_bytes, Parts& parts) {
    Kept& kept = *m.kept;
    const Process p = m.nobody();
    if (fits(p, kept, wanted, string_bytes)) {
        parts.entry = kept.entry != 0 ? kept.entry - 1 : take_process_entry(m);
        kept.entry = 0;
    }
    if (parts.entry == 0) {
        give_back_kept(m);
        return false;
    }
    const ProcessBlock* block = at_handle<ProcessBlock>(p, kept.had.block);
    parts.task = kept.task - 1;
    parts.page = kept.had.slot_at >> page_shift;
    parts.has_files = true;
    parts.blocks = {kept.had.block, block->descriptors, block->strings, string_bytes};
    kept.task = 0;
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
    bool is_kept = m.kept != nullptr && m.kept->task != 0;
    if (is_kept) {
        [[clang::always_inline]] is_kept = take_kept_parts(m, wanted, string_bytes, parts);
    }
    if (!is_kept) take_new_parts(m, wanted, string_bytes, parts);
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
    process.quiet = process.on_lanes = process.held = process.had_children = 0;
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

void reap(const Machine& m, u32 index) {
    store_relaxed(reinterpret_cast<u32*>(&m.process(index).state), u32(ProcessState::free));
    if (Kept* kept = m.kept; kept != nullptr && kept->task != 0 && kept->entry == 0)
        kept->entry = index + 1;
    else
        give_process_entry(m, index);
}

bool claim_end(ProcessEntry& process, u32 pid, Ending ending, u32 code) {
    const u64 mine = (u64(ending) + 1) << 32 | code;
    return compare_exchange_relaxed(&process.ending, u64{pid}, mine) == pid;
}

[[gnu::noinline]] bool end_all_tasks(const Machine& m, u32 pid, Ending ending, u32 code) {
    const u32 index = pid_index(m, pid);
    ProcessEntry& process = m.process(index);
    if (!claim_end(process, pid, ending, code)) return false;
    // Those on lanes or in queues see it there. By now the entry may be another's, and the task;
    // one that shows its process to the host waits for the host alone.
    Lock lock(&process.lock);
    for (u32 at = load_relaxed(&process.first_task); at != 0;
         at = load_relaxed(&m.task(at - 1).next_of_process))
        unblock(m, at - 1, Wake::ended, [&] {
            const TaskEntry& task = m.task(at - 1);
            return task.process == index && is_ending(process) &&
                   task.wait_key != wait_key(WaitFor::show, at - 1);
        });
    return true;
}

namespace {

// Whose parent does not wait for it any more goes when it ends.
[[gnu::noinline]] void leave_children(const Machine& m, ProcessEntry& process) {
    u32 zombies;
    {
        Lock lock(&process.lock);
        for (u32 at = process.first_child, next; at != 0; at = next) {
            // From then on it can end, and its entry be another's.
            next = m.process(at - 1).next_sibling;
            store_shared(&m.process(at - 1).parent, u32{0});  // pairs with tell_parent's
        }
        zombies = process.first_zombie;
        process.first_child = process.first_zombie = 0;
    }
    while (zombies != 0) {
        const u32 next = m.process(zombies - 1).next_sibling;
        reap(m, zombies - 1);
        zombies = next;
    }
}

// ProcessEntry::next_free of one that has just come into the list of the host's zombies.
constexpr u32 next_is_unknown = ~u32{0};

// Nobody tries again, however many end at once: what comes after it is written when it is in the
// list.
void tell_host(const Machine& m, u32 index) {
    u32* next = &m.process(index).next_free;
    store_relaxed(next, next_is_unknown);
    const u32 head = exchange(&m.header->host_zombies, index + 1);  // pairs with take_host_zombies'
    store_relaxed(next, head);
}

// A task of that process, which waited for another's end, goes on here, if it may.
void go_on(const Machine& m, const ProcessEntry& process, u32 task) {
    Kept* kept = m.kept;
    if (kept == nullptr || !kept->may_hand) return make_ready(m, process, task);
    kept->may_hand = false;
    kept->handed = task + 1;
    kept->program = process.program;
}

// A parent of one thread that waits for any child, or by `key` for that one, gets its end at once,
// in place of a zombie. False: it does not. Its lock is the caller's.
bool give_end(const Machine& m, u32 parent_index, u64 any, u64 key, const ProcessEntry& child) {
    const ProcessEntry& parent = m.process(parent_index);
    const u32 taken = take_first_waiting(m, parent_index, any, key);
    if (taken == 0) return false;
    const Handle own = m.task(taken - 1).call;
    CallState* call = at_handle<CallState>(m.nobody(), own != 0 ? own : parent.block);
    call->request_at = child.pid;
    call->progress = load_relaxed(&child.ending);
    go_on(m, parent, taken - 1);
    return true;
}

// Ends: a parent that ended since has left its children by then. True: nobody will wait for it, and
// its entry can be used again.
bool tell_parent(const Machine& m, u32 index) {
    ProcessEntry& process = m.process(index);
    for (;;) {
        const u32 pid = load_relaxed(&process.parent);
        if (pid == 0) {
            load_shared(&process.parent);  // pairs with leave_children's: it is done with the entry
            return true;
        }
        if (pid == host_parent) {
            tell_host(m, index);
            return false;
        }
        const u32 parent_index = pid_index(m, pid);
        ProcessEntry& parent = m.process(parent_index);
        const u64 any = wait_key(WaitFor::child, parent_index),
                  key = wait_key(WaitFor::child, parent_index, process.pid);
        const WaitBucket& bucket = m.bucket(bucket_of(any));
        lock(&parent.lock);
        // All of it is on its way at the same time.
        const u32 now = load_relaxed(&process.parent), tasks = load_relaxed(&parent.tasks),
                  waiting = load_relaxed(&bucket.count), next = process.next_sibling,
                  previous = process.previous_sibling;
        const bool is_still = now == pid;
        if (is_still) {
            if (next != 0) m.process(next - 1).previous_sibling = previous;
            if (previous != 0)
                m.process(previous - 1).next_sibling = next;
            else
                store_relaxed(&parent.first_child, next);
        }
        if (is_still && tasks == 1 && waiting != 0 &&
            give_end(m, parent_index, any, key, process)) {
            store_shared(&parent.lock, u32{0});
            return true;
        }
        if (is_still) {
            link_child(m, parent.first_zombie, index);
            // Who sees it without the lock looks again with it.
            store_relaxed(reinterpret_cast<u32*>(&process.state), u32(ProcessState::zombie));
        }
        atomic_fence();  // for who takes the lock; and pairs with park's
        store_released(&parent.lock, u32{0});
        if (!is_still) continue;
        take_waiting(m, any, ~u32{0}, key, [&](u32 task) { go_on(m, parent, task); });
        return false;
    }
}

// Nothing of it runs any more.
[[gnu::always_inline]] void finish_process(const Machine& m, u32 index, EndedTasks& tasks) {
    ProcessEntry& process = m.process(index);
    const Belongings had(process);
    if (at_handle<ProcessBlock>(m.nobody(), had.block)->descriptor_count != 0)
        close_descriptors(m.nobody(), had.block);
    process.ended = clock_ns();
    // Under another's hands it is only if it has children, and it gets no more.
    if (process.had_children) leave_children(m, process);
    // A parent that waits is told at once: what it starts next waits for what this one had, if need
    // be. The host gets to know when all but its task is given back.
    const u32 parent = load_relaxed(&process.parent);
    const bool is_told_first = parent != host_parent && parent != 0;
    fetch_add(&m.header->leaving, u32{1});
    tasks.leaving++;
    bool is_free = false;
    if (is_told_first) {
        is_free = tell_parent(m, index);  // whoever has its lock then sees that it is leaving
        if (m.kept != nullptr && m.kept->handed != 0) {
            m.kept->had = had;
            m.kept->task = tasks.first;  // the only one
            tasks = {};
            if (is_free) reap(m, index);
            return;
        }
    }
    give_back(m, had);
    const bool is_last = count_out(m);
    if (!is_told_first) is_free = tell_parent(m, index);
    if (is_free) reap(m, index);
    if (is_last) fetch_add(&m.header->idle_turns, u32{1});
}

}  // namespace

u32 take_host_zombies(const Machine& m) {
    u32* list = &m.header->host_zombies;
    return load_relaxed(list) == 0 ? 0 : exchange(list, u32{0});  // pairs with tell_host's
}

u32 next_host_zombie(const Machine& m, u32 index) {
    // Ends: who put it there has only to write what comes after it.
    for (;;) {
        const u32 next = load_relaxed(&m.process(index).next_free);
        if (next != next_is_unknown) return next;
        pause();
    }
}

void give_back(const Machine& m, const EndedTasks& ended) {
    if (ended.first == 0) return;
    push_chain(&m.header->free_tasks, ended.first, ended.last,
               [&](u32 i) { return &m.task(i - 1).next_free; });
    if (ended.leaving == 0) return;
    release_fence();  // what they had is there for whoever sees that they have left
    fetch_add(&m.header->leaving, u32{0} - ended.leaving);
}

void give_back_kept(const Machine& m) {
    Kept& kept = *m.kept;
    if (kept.task == 0) return;
    give_back(m, kept.had);
    if (count_out(m)) fetch_add(&m.header->idle_turns, u32{1});
    if (kept.entry != 0) give_process_entry(m, kept.entry - 1);
    give_back(m, EndedTasks{kept.task, kept.task, 1});
    kept.task = kept.entry = 0;
}

[[gnu::always_inline]] void end_task(const Machine& m, u32 index, bool is_alone,
                                     EndedTasks& ended) {
    TaskEntry& task = m.task(index);
    const u32 process_index = task.process;
    ProcessEntry& process = m.process(process_index);
    if (task.call != 0) give_block(m.nobody(), task.call, sizeof(CallState));
    if (task.words_pages != 0) PageAllocator(m).give(task.words_at >> page_shift, task.words_pages);
    bool is_last = true;
    if (!is_alone) {
        Lock lock(&process.lock);
        unlink_task(m, index);
        is_last = process.tasks == 0;
    }
    store_task_state(task, TaskState::free);
    store_relaxed(&task.next_free, ended.first);
    ended.first = index + 1;
    if (ended.last == 0) ended.last = index + 1;
    if (is_last) finish_process(m, process_index, ended);
}

bool is_deadly(u32 signal) {
    constexpr u32 sigchld = 16, sigcont = 17, sigurg = 22, sigwinch = 27;
    return signal != 0 && signal != sigchld && signal != sigcont && signal != sigurg &&
           signal != sigwinch;
}

u32 make_thread(const Machine& m, const Process& p, u32 index, u32 start_argument) {
    ProcessEntry& process = m.process(index);
    const ProgramInfo& info = m.program(process.program).info;
    const u64 pages = page_count(info.template_words * sizeof(u32));
    const u32 made = take_task_entry(m);
    if (made == 0) return 0;
    const u64 page = PageAllocator(m).take(pages);
    const Handle call = take_zeroed(p, sizeof(CallState));
    if (page == 0 || call == 0) {
        if (page != 0) PageAllocator(m).give(page, pages);
        give_block(p, call, sizeof(CallState));
        give_task_entry(m, made);
        return 0;
    }
    TaskEntry& task = m.task(made);
    task.process = index;
    task.words_pages = u32(pages);
    task.words_at = page << page_shift;
    task.wake = Wake::none;
    task.stack_slots = info.stack_end - info.stack;
    task.call = call;
    task.is_fresh = 0;
    task.frames = stack_step;  // the arguments
    task.was_on_lane = 0;
    store_relaxed(&m.deadline(made), no_deadline);
    // An instance as the program's first thread had it, but with the memories of this one.
    u32* words = reinterpret_cast<u32*>(m.pages + task.words_at);
    const u32* from = reinterpret_cast<const u32*>(m.pages + m.program(process.program).words_at);
    copy_system(reinterpret_cast<u8*>(words), reinterpret_cast<const u8*>(from),
                info.template_words * sizeof(u32));
    for (u32 at = words[process_memories]; at != 0; at = words[at + memory_next])
        for (u32 i = 0; i < memory_flags; i++) words[at + i] = word(p.words, at + i);
    words[process_block] = process.block;
    words[process_task] = made;
    words[process_call] = call;
    words[process_clipped] |= clipped_shared;
    u32* thread = words + info.thread;
    thread[thread_pc] = info.thread_entry;
    set<u64>(thread, thread_fuel, get<u64>(p.words, info.thread + thread_fuel));
    constexpr u32 most_tid = (1u << 29) - 1;
    Lock lock(&process.lock);
    process.next_tid = process.next_tid == most_tid ? 1 : process.next_tid + 1;
    task.tid = process.next_tid;
    words[info.stack] = task.tid;
    words[info.stack + 1] = start_argument;
    link_task(m, made);
    return made;
}

}  // namespace gpurun::rt
