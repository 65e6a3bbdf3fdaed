// What the parts of the scheduler share: a warp's heartbeat, and where a task is.
#pragma once

#include "runtime/machine/machine.h"
#include "runtime/memory/state.h"

namespace gpurun::rt {

// A warp's heartbeat: notes when it got on with something, and asks if it is to end. All lanes take
// part.
class Pulse {
public:
    Pulse(const Machine& m, u32 warp, u64 until)
        : m_(m),
          entry_(m.warp(warp)),
          until_(until),
          now_(shuffle(clock_ns(), 0)),
          latest_(entry_.latest) {
        if (until_ != 0) until_ += now_;
    }
    // Begins a turn. Returns false if it is to be the last.
    bool beat() {
        begin_beat();
        return goes_on();
    }
    // Two steps of beat(): what is asked in the first is here by the second.
    void begin_beat() {
        get_on();
        stop_ = lane_id() == 0 ? load_relaxed(&m_.header->stop) : 0;
    }
    bool goes_on() const {
        return shuffle(stop_, 0) == stop_none && (until_ == 0 || now_ < until_);
    }
    // Notes that a part of a turn with much to do is done.
    void get_on() {
        const u64 last = now_;
        now_ = shuffle(clock_ns(), 0);
        if (lane_id() != 0) return;
        store_relaxed(&entry_.heartbeat, now_);
        if (now_ - last <= latest_) return;
        store_relaxed(&entry_.latest, latest_ = now_ - last);
        store_relaxed(&entry_.latest_phase, u32(phase_));
    }
    void in(WarpPhase phase) {
        phase_ = phase;
        if (lane_id() == 0) store_relaxed(&entry_.phase, u32(phase));
    }
    u64 now() const { return now_; }
    WarpEntry& entry() const { return entry_; }

private:
    const Machine& m_;
    WarpEntry& entry_;
    u64 until_, now_;
    u64 latest_;  // what the entry says, at hand
    u32 stop_ = stop_none;
    WarpPhase phase_ = WarpPhase::begin;
};
inline bool has_threads(const Machine& m, const TaskEntry& task) {
    return m.program(m.process(task.process).program).info.thread_entry != 0;
}

// Returns where a process's words and memories are.
inline Process place_of(const Machine& m, const ProgramEntry& program, u32 index) {
    const TaskEntry& task = m.task(index);
    const ProcessEntry& process = m.process(task.process);
    u32* words = reinterpret_cast<u32*>(m.pages + task.words_at);
    return {reinterpret_cast<const u64*>(m.pages + program.code_at),
            words,
            m.pages + process.bytes_at,
            words,
            0,
            process.bytes_size != 0 ? 63 : program.dirty_shift,
            m.system,
            &m,
            program.info.system,
            task.process,
            process.block,
            task.call,
            program.info.memory};
}
inline Process place_of(const Machine& m, u32 index) {
    return place_of(m, m.program(m.process(m.task(index).process).program), index);
}

// Returns what the task whose words these are keeps of its system call.
inline CallState* call_state(const Process& p) {
    return p.call != 0 ? at_handle<CallState>(p, p.call) : at_handle<ProcessBlock>(p, p.block);
}

}  // namespace gpurun::rt
