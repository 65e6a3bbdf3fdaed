// --report: what a run did, as JSON. docs/report.md describes it, docs/report.schema.json too.
#pragma once

#include <gpurun/gpurun.hpp>

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace gpurun::tool {

// How processes ended.
class Endings {
public:
    void add(const api::Process& process, u64 count = 1);
    void add(const Endings& others);
    // Counts processes that a signal or a time limit kept from beginning.
    void add_stopped(u64 count);
    u64 count() const;
    std::string to_json() const;

private:
    std::map<u32, u64> exits_;  // by code; a function that returned counts as 0
    std::map<std::string, u64> traps_, others_;
};

struct RunOptions;
// Shows what programs wrote and how they ended, those that did the same once. The exit code of all.
int tell_programs(std::span<const api::Process> processes, const RunOptions& options,
                  Endings& endings);

struct RunReport {
    struct Job {
        std::string file;
        Endings endings;
        std::string tier = "interp";  // tier_name()
        gpurun_native native = {};    // nothing of it
    };
    std::string command;  // "run", "batch", "map"
    std::vector<Job> jobs;
    int exit_code = 0;
    u32 slots = 1;    // processes that had memory of their own at once
    double busy = 0;  // share of the lanes' time with a process; 0: not known
    std::optional<gpurun_machine_stats> machine = std::nullopt;  // at its end
    bool is_interleaved = false;                                 // memories: --layout
    gpurun_layout_choice layout_choice = {};                     // why they are
};

// What ran, where `asked` was asked for: "interp", "native", "switched" from the one to
// the other, or "alternate".
std::string tier_name(const std::string& asked, const gpurun_native& native);
// --stats: the same, with where machine code came from, on standard error.
void say_tier(const std::string& file, const std::string& tier, const gpurun_native& native);

// --stats: how memories of many processes lay on a GPU, and why, on standard error.
void say_layout(const api::Device& device, bool is_interleaved, const gpurun_layout_choice& choice);

// Tells and reports a run of so many processes for each job that did not begin, because standard
// input had not ended when it was stopped. Returns the exit code.
Result<int> report_no_input(RunReport& report, const std::vector<u64>& processes,
                            const std::string& path, const std::string& device);

// Before the work, so that it is not for nothing: can it be written?
Result<void> check_report(const std::string& path);
Result<void> write_report(const std::string& path, const RunReport& report,
                          const api::Device& device);
// Writes it if a path is given. The exit code: the report's, or that of a report that failed.
int finish_report(const std::string& path, const RunReport& report, const api::Device& device);

}  // namespace gpurun::tool
