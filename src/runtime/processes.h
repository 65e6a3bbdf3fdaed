// Processes of the resident machine: how they begin, end, and are waited for.
#pragma once

#include "runtime/pages.h"
#include "runtime/system.h"
#include "runtime/wait.h"

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

// Of a lane. Where the only task of a warp has ended, and with it a process, whoever waited for
// that goes on in its place: without the way through a queue, and before what the process had is
// given back. If it starts another process of the same program, that has it all as it is.
struct Kept {
    bool may_hand = false;
    u32 handed = 0;   // the task that goes on: index + 1
    u32 program = 0;  // its program
    u32 task = 0;     // of the process that ended: index + 1, or 0: there is none
    u32 entry = 0;    // its entry once it was waited for: index + 1
    Belongings had;   // the process that ended

    u32 found = 0;  // the program that a process was last started of: index + 1
};
// Not used until the end of a turn: others may want it.
[[maybe_unused]] void give_back_kept(const Machine& m);

// An entry with everything but descriptors; it does not run yet. EAGAIN: the tables are full.
Errno make_process(const Machine& m, const NewProcess& wanted, u32& index);
void start_process(const Machine& m, u32 index);
// Of one that was made and will not run.
void drop_process(const Machine& m, u32 index);

// The first to say so decides how a process ends. False: somebody has, or the entry is that of
// another pid by now.
bool claim_end(ProcessEntry& process, u32 pid, Ending ending, u32 code);
// The same, and its tasks leave wherever they are.
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
// Of the caller's task, which is off its lane. The last one ends the process. `is_alone`: the
// process has no other, and it was this one that claimed the end, so nobody else looks at its
// tasks.
[[maybe_unused]] void end_task(const Machine& m, u32 index, bool is_alone, EndedTasks& ended);
// Those whose end the host is to know, the newest first, as index + 1, or 0: to turn them round
// takes too long when very many end at once. The mailbox warp's to take.
[[maybe_unused]] u32 take_host_zombies(const Machine& m);
[[maybe_unused]] u32 next_host_zombie(const Machine& m, u32 index);
// Its entry can be used again.
void reap(const Machine& m, u32 index);

// Puts `signal` to a process: false if that is a signal which ends none.
bool is_deadly(u32 signal);

// Words of a thread's own in the caller's process; it runs once the caller says so. 0: no memory.
u32 make_thread(const Machine& m, const Process& p, u32 index, u32 start_argument);

}  // namespace gpurun::rt
