// What a user asked for: a program, and how to run it. The reader of a user's options fills both in
// once; a process alone, many of them and machines take them as they are.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/beside.h"
#include "engine/store.h"
#include "engine/system.h"
#include "host/console.h"
#include "host/system_base.h"

namespace gpurun::engine {

// How many records of processes are kept if nobody takes them, and how many the device holds until
// somebody does.
inline constexpr u32 held_records = 4096;

// A module with what belongs to it.
struct Program {
    std::shared_ptr<const wasm::Module> module;
    std::string name = {};
    std::shared_ptr<Images> images = {};  // its machine code
    std::string file = {};                // where the module came from, for dumps
};

// What each process may have. A limit that is not set suits the device and the number of processes.
struct ProcessLimits {
    std::optional<u32> stack_slots, heap_words;
    std::optional<u64> memory_bytes, fuel;
    std::optional<u64> system_bytes;  // system memory of the whole launch
};

// Where standard streams lead, if not to SystemContents::input. Output that nobody takes is kept
// with the process's ending.
struct StreamOptions {
    bool are_inherited = false;          // they are this program's own, live
    decltype(host::Streams::read) read;  // reads input when a process asks for it
    TakeOutput write;                    // takes output; that of many once all have ended

    // Returns which of them are terminals, as host::Streams has it.
    u32 terminals(bool has_input) const;
};

// How many processes run beside each other, and what each has of its own.
struct Many {
    struct Own {
        std::vector<std::string> arguments;            // after those of all
        std::shared_ptr<const std::vector<u8>> input;  // nothing: that of all
        std::optional<u32> number;                     // nothing: by its place
    };
    u32 processes = 0;     // 0: one, which has the device to itself
    std::vector<Own> own;  // of each, or empty
    u32 first_number = 0;  // that the first process sees as its own
    u32 spoilt = ~u32{0};  // the process whose watch must fail, to test that

    bool is_asked_for() const { return processes > 0 || !own.empty(); }
    u32 count() const { return own.empty() ? std::max(processes, 1u) : u32(own.size()); }
    u32 number_of(u32 process) const;
};

// What a machine has. A limit of 0 means one that suits the device.
struct MachineLimits {
    u64 memory_bytes = 0;               // for programs and processes
    u32 processes = 0, threads = 0;     // at once
    u32 share = 100;                    // percent of the time that lanes may be busy
    std::chrono::microseconds spin{0};  // before the host sleeps, for short latencies
};

// How to run a program. Each mode reads the fields that concern it.
struct Run {
    std::string function = "_start";
    std::vector<std::string> arguments;       // of the program, or values of the function
    std::optional<std::string> program_name;  // what the program sees; nothing: its own
    host::SystemContents system;
    std::vector<HostFunction> functions;  // not on machines
    ProcessLimits limits;
    StreamOptions streams;
    device::Tier tier = device::Tier::interp;
    // The layout of memories of many processes on GPUs. If it is not set, the faster one is found
    // out (engine/burst_ranges.h).
    std::optional<Layout> layout;
    Many many;
    MachineLimits machine;
    u32 priority = normal_priority;  // of a process on a machine
    // Who may stop it.
    std::shared_ptr<const std::atomic<bool>> stop;
    std::optional<double> timeout;  // seconds
    // What is shown of it.
    std::function<void(u64 ended, u64 all)> progress;        // of many, while they run
    std::function<void(const std::string& line)> take_line;  // takes what guests note
    std::optional<std::string> dump;                         // a folder for states of what traps
    bool is_profiled = false, is_watched = false;

    bool is_program() const { return function == "_start"; }
    bool is_stopped() const { return stop && *stop; }
    // Returns the control of the preparations, which have no time limit.
    device::RunControl stop_control() const;
    // Returns the control of the run, with its time limit, if it begins now.
    device::RunControl control() const;
    bool is_looked_at() const { return dump || is_profiled; }
    // Returns the tier of processes. Those that are dumped or profiled, by this run or by that of a
    // machine, are interpreted unless the user chose a tier: machine code keeps no variables that
    // are not needed any more, and parks at few places.
    device::Tier chosen_tier(bool is_looked_at) const;
};

// A program with its run. The caller owns both.
struct Job {
    const Program& program;
    const Run& run;
};

// Returns the pattern with a number for each {}.
std::string with_number(const std::string& pattern, u32 number);
// Returns what a program sees as its arguments, its name first. If a function other than _start is
// called, the name is all it sees.
std::vector<std::string> program_arguments(const Job& job);
// Returns the values that the function of one process is called with, or an Error if there is no
// such function or it takes other values.
Result<std::vector<Value>> function_values(const Job& job);
// Makes the folder for dumps, if some are wanted.
Result<std::optional<DumpFolder>> dump_folder(const Job& job);

// Returns how a store is made for a job; `fitting` is what suits the device.
StoreOptions store_options(StoreOptions fitting, const Job& job, const device::RunControl& control);
// Returns how system memory is made for a run: of `fitting` bytes, if the user does not say.
host::SystemOptions system_options(u64 fitting, const Run& run, const device::RunControl& control);

// Prepares the device, and lets body(control) run a job to its end. Returns stopped() if the job
// was stopped before it began. Preparations do not count against time limits.
template <class Body, class Stopped>
auto run_controlled(device::Device& device, device::Mode mode, const Run& run, Body body,
                    Stopped stopped) -> decltype(body(device::RunControl())) {
    TRY(prepare(device, mode, run.stop_control()));
    const device::RunControl control = run.control();
    if (control.wants_stop()) return stopped();
    auto ended = body(control);
    if (!ended && control.wants_stop()) return stopped();
    return ended;
}

}  // namespace gpurun::engine
