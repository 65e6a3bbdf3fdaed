// What each command of the command line does. Returns exit codes.
#pragma once

#include <gpurun/gpurun.hpp>

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace gpurun::engine {
struct ObjdumpOptions;
}

namespace gpurun::tool {

struct RunOptions {
    std::string file;
    std::vector<std::string> arguments;
    std::string invoke;                                           // empty: _start
    std::optional<double> timeout;                                // seconds
    std::vector<std::string> directories, read_only_directories;  // HOST[::GUEST]
    std::vector<std::string> environment;                         // NAME=VALUE, or NAME
    std::string argv0;                                            // empty: the file's name
    std::optional<u64> seed;
    std::string input;  // --stdin: a file, for every process
    std::string out;    // --out: a folder
    std::string device = "auto", tier = "auto", layout = "auto";
    bool allows_precompiled = false;  // the machine code of .gpu files may run
    std::optional<u32> stack_slots, heap_words;
    std::optional<u64> memory_bytes, fuel, output_buffer;
    // More than one process:
    std::optional<u32> instances;
    bool each = false;                  // a line for each, not one for all that ended alike
    bool stats = false;                 // say how long it took
    std::string report;                 // --report: a file
    std::string profile;                // --profile: files' name, without their endings
    std::string dump;                   // --dump: a folder for the state of what traps
    bool trace = false;                 // a line for each system call
    bool is_watched = false;            // --poison: gpurun_config_set_watched()
    std::optional<u32> spoilt_process;  // gpurun_config_spoil()
    // A resident machine:
    bool resident = false;
    std::vector<std::string> programs;  // [NAME=]FILE, for others to start
    std::optional<u32> share;           // percent
    std::optional<u64> machine_memory;  // bytes for programs and processes
};

// What --tier names, if it is one.
std::optional<gpurun_tier> tier_of(const std::string& name);

// What --layout names, if it is one.
std::optional<gpurun_layout> layout_of(const std::string& name);

// The module, which is a program unless --invoke names a function.
Result<api::Module> load_module(const RunOptions& options);
// --stdin: what is in the file, if there is one.
Result<std::optional<std::string>> input_file(const RunOptions& options);
// What to call and what it sees, but for its arguments, its time limit and what stops it.
Result<api::Config> make_config(const RunOptions& options);
void add_arguments(const RunOptions& options, api::Config& config);
// The same for one of many programs on a machine: what is its own, with its number for each {}.
Result<api::Config> make_process_config(const RunOptions& options, u32 number,
                                        const std::optional<std::string>& input);
// Whether the module can be run so.
Result<void> check_config(const RunOptions& options, const api::Module& module,
                          const api::Config& config);
// --dump: made before the work, so that it is not for nothing.
Result<void> make_dump_folder(const RunOptions& options, const api::Module& module);
// Says how many of the processes that trapped were dumped, if not all of them.
void note_dumps(u64 trapped, u64 dumped);
// Has lines of the gpu module's debug_* functions and of traced calls shown on standard error, as
// they come.
void show_debug(api::Config& config);
// Says how many of them were lost, if any.
void say_debug_lost(u64 count);

// On standard error: what took how long.
void say_phases(const api::Device& device);

// What happened, then a line a frame, innermost first. The exit code.
int say_ending(const api::Process& process, const RunOptions& options);

int run_file(const RunOptions& options);
// A module that starts processes or threads only has them on a resident machine.
bool needs_machine(const api::Module& module);
// An option that was given and that machines have nothing for. Empty: there is none.
std::string unfit_for_machine(const RunOptions& options);
Result<int> run_resident(const RunOptions& options, const api::Module& module);

// What all jobs of a burst have in common.
struct BatchOptions {
    std::string device = "auto";
    std::optional<double> timeout;
    bool stats = false;
    std::string report, command;  // --report: a file; what it calls this
};
// All in one launch.
int run_burst(std::span<const RunOptions> jobs, const BatchOptions& options);
// The words of a line, as a shell splits them: spaces, quotes and backslashes. Nothing: a quote is
// not closed.
std::optional<std::vector<std::string>> split_words(std::string_view line);
int list_devices(bool json);
int show_cache(bool is_cleared, std::optional<uint64_t> limit);
struct CompileOptions {
    std::vector<std::string> files;
    std::string emitted;         // --emit, or nothing
    std::string out;             // -o: a .gpu file, or nothing
    std::string target = "all";  // cpu, cuda, all: what is in it
    std::string cpu;             // that its machine code is for; native: this machine's
};
int compile_files(const CompileOptions& options);
struct InspectOptions {
    std::string dump;                          // DIR/<number>
    u32 memory = 0;                            // which
    std::optional<std::pair<u64, u64>> range;  // address and size
    std::optional<u32> strings;                // characters that make one
};
int inspect_dump(const InspectOptions& options);
// Opens a device, and tells a person at a terminal which one it chose.
Result<api::Device> choose_device(const std::string& id);
void note_device(const std::string& wanted, const std::string& id, const std::string& name);
// Of the options, those that say where and how.
int run_scripts(const std::vector<std::string>& files, const RunOptions& options, bool quiet);
int validate_files(const std::vector<std::string>& files, bool verbose);
int dump_files(const std::vector<std::string>& files, const engine::ObjdumpOptions& options);

}  // namespace gpurun::tool
