// Processes of the resident machine: how they begin, end, and are waited for.
#pragma once

#include "runtime/machine/pages.h"
#include "runtime/machine/wait.h"
#include "runtime/wasi/system.h"

namespace gpurun::rt {

// Strings end with a NUL each.
struct Text {
    const u8* bytes;
    u32 count, size;
};

struct NewProcess {
    u32 program;
    u32 parent;  // pid, or host_parent
    u32 request;
    u32 priority;
    u64 fuel;
    Text arguments, environment;
    Handle files;  // the block whose files it shares, or 0: it gets its own
};

// What a process had, as its entry says: that can be another's by the time it is given back.
struct Belongings {
    u32 program = 0, is_raw = 0;
    Handle block = 0;
    u64 slot_at = 0, bytes_at = 0, bytes_size = 0;

    Belongings() = default;
    explicit Belongings(const ProcessEntry& process)
        : program(process.program),
          is_raw(process.is_raw),
          block(process.block),
          slot_at(process.slot_at),
          bytes_at(process.bytes_at),
          bytes_size(process.bytes_size) {}
};

// What a lane keeps of a process that ended there, if whoever waited for it goes on in its place
// (Successor): nothing of it is given back until the end of that one's turn. If it starts another
// process of the same program, that has it all as it is.
struct Leftovers {
    u32 task = 0;    // of the process that ended: index + 1, or 0: there are none
    u32 entry = 0;   // its entry once it was waited for: index + 1
    Belongings had;  // the process that ended

    u32 last_program = 0;  // the program that the lane last started a process of: index + 1
};
// Gives back what was not used by the end of a turn: others may want it.
[[maybe_unused]] void give_back_leftovers(const Machine& m);

// Makes an entry with everything but descriptors; it does not run yet. Returns EAGAIN if the tables
// are full.
Errno make_process(const Machine& m, const NewProcess& wanted, u32& index);
// Puts a process that was made into its queue.
void start_process(const Machine& m, u32 index);
// Gives back a process that was made and will not run.
void drop_process(const Machine& m, u32 index);

// Decides how a process ends. Returns false if another has decided before, or the entry is that of
// another pid by now.
bool claim_end(ProcessEntry& process, u32 pid, Ending ending, u32 code);
// Decides how a process ends, as claim_end() does, and makes its tasks leave wherever they are.
bool end_all_tasks(const Machine& m, u32 pid, Ending ending, u32 code);
inline bool is_ending(const ProcessEntry& process) {
    return load_relaxed(&process.ending) >> 32 != 0;
}
// What tasks that ended one after another leave. It is given back at once: where very many end
// together all want to put theirs into the same list.
struct EndedTasks {
    u32 first = 0, last = 0;  // entries: index + 1, linked by next_free
    u32 leaving = 0;          // processes that MachineHeader::leaving counts
};
[[maybe_unused]] void give_back(const Machine& m, const EndedTasks& ended);
// The task that goes on at once on a lane whose task has ended, because it waited for that one's
// process: without the way through a queue.
struct Successor {
    u32 task = 0;  // index + 1, or 0: there is none
    u32 program = 0;
};
// What end_task() may rely on.
struct TaskEnding {
    // The process has no other task, and it was this one that claimed the end, so nobody else looks
    // at its tasks.
    bool is_alone = false;
    // The lane is free for a successor, and has leftovers.
    bool may_hand_over = false;
};
// Ends the caller's task, which is off its lane; the last one ends the process, and tells who waits
// for that. Returns who goes on in its place; what the process had is in the lane's leftovers then.
[[maybe_unused]] Successor end_task(const Machine& m, u32 index, TaskEnding ending,
                                    EndedTasks& ended);
// Takes the list of processes whose end the host is to know. Returns the newest as index + 1, or 0:
// to turn them round takes too long when very many end at once. For the mailbox warp alone.
[[maybe_unused]] u32 take_host_zombies(const Machine& m);
// Returns the one that ended before it, as index + 1, or 0.
[[maybe_unused]] u32 next_host_zombie(const Machine& m, u32 index);
// Frees the entry of a process that has ended, and that nobody will wait for any more.
void reap(const Machine& m, u32 index);

// Returns true if a signal ends the process that gets it.
bool is_deadly(u32 signal);

// Makes a thread of the caller's process, with words of its own. Returns its task, which runs once
// the caller makes it ready, or 0 if there is no memory.
u32 make_thread(const Machine& m, const Process& p, u32 index, u32 start_argument);

}  // namespace gpurun::rt
