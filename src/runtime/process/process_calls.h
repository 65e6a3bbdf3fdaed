// What the calls for processes share, under the names of the import module gpu (process_calls.cpp)
// and of WASIX (wasix_calls.cpp).
#pragma once

#include "runtime/process/processes.h"

namespace gpurun::rt {

struct Caller {
    const Machine& m;
    u32 index;  // of the process
    ProcessEntry& process;

    explicit Caller(const Call& call)
        : m(machine_of(call.p)),
          index(call.p.entry != 0 ? call.p.entry : call.me->entry),
          process(m.process(index)) {}
};

// Entries of others may be given back and be another's at any time.
inline ProcessState state_of(const ProcessEntry& process) {
    return ProcessState(load_shared(reinterpret_cast<const u32*>(&process.state)));
}
inline bool has_pid(const ProcessEntry& process, u32 pid) {
    return load_relaxed(&process.pid) == pid && state_of(process) != ProcessState::free;
}

// Which of the caller's descriptors a child gets.
struct Inheritance {
    u32 pairs;       // guest address of (child's, caller's)
    u32 count;       // ~0: all, under the same numbers
    u32 streams[3];  // in place of 0, 1 and 2: the caller's descriptor; ~0: none
    bool has_streams = false;
    u32 hidden[6] = {};  // with ~0: these were made for the streams alone; 0: none
    // What is done with them then, by WASIX: guest address of the fd_ops.
    u32 fd_ops = 0, fd_op_count = 0;

    // But preopens, if there are any.
    bool is_nothing() const { return count == 0 && !has_streams && fd_op_count == 0; }
    bool hides(u32 fd) const {
        for (u32 other : hidden)
            if (fd != 0 && fd == other) return true;
        return false;
    }
};

struct Spawning {
    const u8* name;
    u32 name_length;
    Text arguments, environment;
    Inheritance inheritance;
};
Errno spawn_process(const Call& call, const Caller& caller, const Spawning& wanted, u32& pid);
Text own_environment(const Call& call);

struct Ended {
    u32 pid;
    Ending ending;
    u32 code;
};
enum class Found : u32 { none, ended, lives };
// A child that has ended, for a call that asks for one, or has waited for it. `pid` 0: any.
Found find_ended(const Call& call, const Caller& caller, u32 pid, Ended& ended);

Outcome kill(Call& call, const Caller& caller, u32 pid, u32 signal);
Errno make_pipe_ends(const Call& call, u32& read_fd, u32& write_fd);
u32 parent_pid(const ProcessEntry& process);

// ---- WASIX (wasix_calls.cpp) -------------------------------------------------------

[[gnu::noinline]] Outcome call_wasix(Call& call, const Caller& caller, SystemCall which);
// Carries out what is to be done with a child's descriptors before it begins. Its files are locked.
Errno apply_fd_ops(const Call& call, const Owner& child, u32 at, u32 count);

}  // namespace gpurun::rt
