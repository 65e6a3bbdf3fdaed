// Threads of a process: tasks with words of their own, and its memory.
#include "runtime/process/parts.h"

namespace gpurun::rt {

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
