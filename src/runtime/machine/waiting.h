// Why a thread waits, and until when: thread_state and thread_wait_until of its words say it. Every
// kernel and the CPU device ask may_go_on(); machines wake by their buckets as well
// (runtime/machine/wait.h).
#pragma once

#include "abi/machine.h"
#include "runtime/fs/files.h"
#include "runtime/memory/state.h"

namespace gpurun::rt {

// What memory.atomic.wait returns.
inline constexpr u32 wait_woken = 0, wait_not_equal = 1, wait_timed_out = 2;

// The clock of waits. A module that imports nothing has no system memory, where the process's
// monotonic clock begins: its waits go by the device's.
inline u64 wait_clock(const Process& p) {
    return p.system != nullptr ? monotonic_ns(p) : clock_ns();
}
// The time at which a wait of so many nanoseconds is over that begins now. Negative: never.
inline u64 wait_end(const Process& p, s64 timeout) {
    const u64 now = wait_clock(p);
    return timeout < 0 || now + u64(timeout) < now ? no_deadline : now + u64(timeout);
}

inline void begin_wait(u32* thread, ThreadState why, u64 until) {
    set<u64>(thread, thread_wait_until, until);
    word(thread, thread_state) = u32(why);
}

// Ends the wait of a thread on a lane. `result` is for memory.atomic.wait; calls are made again.
inline void finish_wait(const Process& p, u32* thread, u32 result) {
    if (ThreadState(word(thread, thread_state)) == ThreadState::waiting)
        word(slots_at(p, word(thread, thread_wait_result)), 0) = result;
    word(thread, thread_state) = u32(ThreadState::ready);
}

// Returns true if time alone ends the wait that a thread left its lane with. Nobody else is there
// to end it, so a memory.atomic.wait without a time limit is none; a sleep for ever is.
inline bool waits_for_time(const u32* thread, ThreadState state) {
    return state == ThreadState::sleeping ||
           (state == ThreadState::waiting && get<u64>(thread, thread_wait_until) != no_deadline);
}

// Returns true if the thread can run now. A wait whose time is over ends here.
inline bool may_go_on(const Process& p, u32* thread) {
    const ThreadState state = ThreadState(word(thread, thread_state));
    switch (state) {
        case ThreadState::ready:
        case ThreadState::outgrown:
        case ThreadState::out_of_fuel: return true;  // it was given more
        default: break;
    }
    if (!waits_for_time(thread, state) || wait_clock(p) < get<u64>(thread, thread_wait_until))
        return false;
    finish_wait(p, thread, wait_timed_out);
    return true;
}

}  // namespace gpurun::rt
