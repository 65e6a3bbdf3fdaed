// Runs the same function in many processes, and tells how they ended.
#include "engine/burst.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <unordered_map>

#include "commands.h"
#include "endings.h"
#include "engine/load.h"
#include "interrupt.h"
#include "out_folder.h"
#include "output.h"
#include "piped_input.h"
#include "report.h"

namespace gpurun::tool {
namespace {

using engine::Completion;

std::string format_running(const device::DeviceInfo& device, u32 processes) {
    return std::string("Running on ") + (device.id == "cpu" ? "CPU" : "GPU") + " with " +
           std::to_string(processes) + " threads...\n";
}

void say_outcome(const engine::BurstReport& report, const device::DeviceInfo& device) {
    char text[256];
    const device::BurstOutcome& outcome = report.outcome();
    u64 processes = 0;
    for (u32 job = 0; job < report.jobs(); job++) processes += report.processes(job);
    int size = std::snprintf(text, sizeof text, "%llu processes on %s in %.6f s, %.0f/s, %u slots",
                             (unsigned long long)processes, device.id.c_str(), outcome.seconds,
                             double(processes) / outcome.seconds, outcome.slots);
    auto add = [&](const char* pattern, double value) {
        size += std::snprintf(text + size, sizeof text - usize(size), pattern, value);
    };
    if (outcome.busy > 0) add(", lanes busy %.1f %%", outcome.busy * 100);
    if (outcome.stop_seconds) add(", stopped within %.1f ms", *outcome.stop_seconds * 1e3);
    say(text);
    say_phases();
}

// Processes that ended alike: how, and what they wrote.
struct Group {
    Completion completion;
    std::string ending, output, error;
    std::vector<u32> processes;
};

// The most common first, then by first appearance.
Result<std::vector<Group>> group(const engine::BurstReport& report, u32 job, bool each,
                                 bool is_program) {
    std::vector<Group> groups;
    std::unordered_map<std::string, usize> known;
    for (u32 id = 0; id < report.processes(job); id++) {
        Completion completion = report.of(id, job);
        std::string ending = is_program && completion.kind == Completion::Kind::returned
                                 ? "exit 0"
                                 : describe(completion);
        std::string output = TRY(report.stream(id, 1, job)), error = TRY(report.stream(id, 2, job));
        std::string key = ending + '\0' + std::to_string(output.size()) + '\0' + output + error;
        auto [found, is_new] = known.try_emplace(each ? std::to_string(id) : key, groups.size());
        if (is_new)
            groups.push_back({std::move(completion),
                              std::move(ending),
                              std::move(output),
                              std::move(error),
                              {}});
        groups[found->second].processes.push_back(id);
    }
    std::ranges::sort(groups, [](const Group& a, const Group& b) {
        return a.processes.size() != b.processes.size() ? a.processes.size() > b.processes.size()
                                                        : a.processes[0] < b.processes[0];
    });
    return groups;
}

// Functions: a line a group, on standard output.
void print_results(const std::vector<Group>& groups, bool each) {
    bool is_terminal = isatty(STDOUT_FILENO) && !each;
    for (const Group& group : groups) {
        std::string count = std::to_string(group.processes.size());
        std::fwrite(group.error.data(), 1, group.error.size(), stderr);
        print(group.output);
        if (is_terminal) {
            print("Result: " + group.ending + (groups.size() > 1 ? "  (" + count + " times)" : "") +
                  "\n");
        } else {
            print((each ? std::to_string(group.processes[0]) : count) + "\t" + group.ending + "\n");
        }
    }
}

// Programs: their output as it is; what it belongs to, on standard error.
void print_outputs(const std::vector<Group>& groups, bool each) {
    for (const Group& group : groups) {
        std::string whose = each || group.processes.size() == 1
                                ? "process " + std::to_string(group.processes[0])
                                : std::to_string(group.processes.size()) +
                                      " processes, the first " + std::to_string(group.processes[0]);
        note(whose + ": " + group.ending, is_success(group.completion) ? Tone::plain : Tone::bad);
        finish_output(0);  // in order, where both outputs go to one place
        std::fwrite(group.error.data(), 1, group.error.size(), stderr);
        print(group.output);
        finish_output(0);
    }
}

// How many ended how, where that is not told yet.
void say_endings(const std::vector<Group>& groups, bool is_program) {
    std::vector<EndingCount> counts;
    for (const Group& group : groups) {
        bool is_result = !is_program && group.completion.kind == Completion::Kind::returned;
        EndingCount row{is_result ? "returned" : group.ending, group.processes.size(),
                        group.processes[0], is_success(group.completion)};
        auto same = [&](const EndingCount& other) { return other.ending == row.ending; };
        auto found = std::ranges::find_if(counts, same);
        if (found == counts.end()) {
            counts.push_back(row);
        } else {
            found->count += row.count;
            found->first = std::min(found->first, row.first);
        }
    }
    say_endings(std::move(counts));
}

bool ended_alike(const std::vector<Group>& groups) {
    return std::ranges::all_of(
        groups, [&](const Group& group) { return group.ending == groups[0].ending; });
}

int exit_code(const std::vector<Group>& groups) {
    bool some_stopped = false, some_trapped = false;
    std::optional<u32> common;
    bool is_common = true;
    for (const Group& group : groups) {
        Completion::Kind kind = group.completion.kind;
        some_stopped |= kind == Completion::Kind::stopped;
        some_trapped |= kind > Completion::Kind::exited && kind != Completion::Kind::stopped;
        is_common &= !common || *common == group.completion.exit_code;
        common = group.completion.exit_code;
    }
    if (some_stopped) return was_interrupted() ? exit_interrupted : exit_timeout;
    if (some_trapped) return exit_trap;
    return is_common ? int(common.value_or(0) & 0xff) : exit_input;
}

Result<engine::BurstJob> make_job(const RunOptions& options) {
    engine::BurstOptions burst;
    auto module = TRY(engine::load_file(options.file));
    TRY(find_entry(*module, options));
    burst.processes = options.instances.value_or(1);
    burst.function = entry_name(options);
    if (!options.invoke.empty()) burst.arguments = options.arguments;
    burst.stack_slots = options.stack_slots;
    burst.heap_words = options.heap_words;
    burst.memory_bytes = options.memory_bytes;
    burst.fuel = options.fuel;
    burst.is_watched = options.is_watched;
    burst.spoilt = options.spoilt_process.value_or(burst.spoilt);
    burst.system = TRY(system_options(options));
    if (!options.out.empty()) TRY(prepare_out(options.out));
    if (!options.dump.empty()) burst.dump = TRY(make_dump_folder(options, *module));
    return engine::BurstJob{std::move(module), std::move(burst)};
}

// What one job stores is not for another to write over.
Result<void> check_folders(std::span<const RunOptions> jobs) {
    auto check = [](const char* option, const std::string& one,
                    const std::string& other) -> Result<void> {
        std::error_code problem;
        if (one.empty() || other.empty() || !std::filesystem::equivalent(one, other, problem))
            return {};
        return Error{option + one + ": two jobs have it; give each its own"};
    };
    for (usize i = 0; i < jobs.size(); i++)
        for (usize k = 0; k < i; k++) {
            TRY(check("--out ", jobs[i].out, jobs[k].out));
            TRY(check("--dump ", jobs[i].dump, jobs[k].dump));
        }
    return {};
}

// Standard input for those that want it and have no other. False: it was not there in time.
Result<bool> add_input(std::vector<engine::BurstJob>& jobs, std::optional<double> timeout) {
    std::optional<std::vector<u8>> input;
    for (engine::BurstJob& job : jobs) {
        if (job.options.system.input || !reads_input(*job.module)) continue;
        if (!input) input = TRY(piped_input(run_control(timeout)));
        if (!input) return false;
        job.options.system.input = *input;
    }
    return true;
}

void say_dumps(const engine::BurstReport& report, u32 job, const std::vector<Group>& groups) {
    u64 trapped = 0;
    for (const Group& group : groups)
        if (group.completion.kind == Completion::Kind::trapped) trapped += group.processes.size();
    if (report.dump_problem(job)) {
        say("--dump " + report.dump_problem(job)->to_string(), Tone::bad);
    } else if (report.dumps(job) < trapped) {
        note(std::to_string(trapped) + " processes trapped, the state of " +
             std::to_string(report.dumps(job)) + " of them is dumped");
    }
}

// Says how a job's processes ended, or stores it. Its exit code.
Result<int> tell(const engine::BurstReport& report, u32 job, const RunOptions& options,
                 Endings& endings) {
    bool is_program = options.invoke.empty();
    std::vector<Group> groups = TRY(group(report, job, options.each, is_program));
    for (const Group& group : groups) endings.add(group.completion, group.processes.size());
    u64 dropped = 0;
    std::vector<DebugRecord> records = report.debug(dropped, job);
    say_debug(records, dropped);
    if (!options.out.empty()) {
        std::vector<OutGroup> stored;
        for (const Group& group : groups)
            stored.push_back({group.completion, group.output, group.error, group.processes});
        TRY(store_out(options.out, report, job, stored));
    }
    if (!options.dump.empty()) say_dumps(report, job, groups);
    bool all_succeeded = std::ranges::all_of(
        groups, [](const Group& group) { return is_success(group.completion); });
    if (!is_program) {
        print_results(groups, options.each);
    } else if (options.out.empty()) {
        print_outputs(groups, options.each);
    }
    if (is_program && !options.out.empty()) {
        say_endings(groups, is_program);
    } else if (!(is_program ? ended_alike(groups) : all_succeeded)) {
        finish_output(0);  // in order, where both outputs go to one place
        say_endings(groups, is_program);
    }
    return exit_code(groups);
}

Result<int> run(std::span<const RunOptions> jobs, const BatchOptions& options) {
    std::vector<engine::BurstJob> made;
    for (const RunOptions& job : jobs) made.push_back(TRY(make_job(job)));
    TRY(check_folders(jobs));
    if (!TRY(add_input(made, options.timeout))) {
        say(was_interrupted()
                ? "interrupted before standard input had ended"
                : "timeout: standard input has not ended in time; --timeout gives it more",
            Tone::bad);
        return was_interrupted() ? exit_interrupted : exit_timeout;
    }
    TRY(check_report(options.report));
    auto device = TRY(choose_device(options.device, true));
    if (jobs.size() == 1 && !jobs[0].invoke.empty() && isatty(STDOUT_FILENO))
        print(format_running(device->info(), made[0].options.processes));
    Result<engine::BurstReport> ran =
        engine::run_burst(*device, made, run_control(options.timeout));
    if (!ran && jobs.size() > 1) return ran.error();
    if (!ran) return Error{jobs[0].file + ": " + ran.error().to_string()};
    const engine::BurstReport& report = *ran;
    RunReport told{options.command, {}};
    told.slots = report.outcome().slots;
    told.busy = report.outcome().busy;
    for (u32 i = 0; i < jobs.size(); i++) {
        finish_output(0);  // in order, where both outputs go to one place
        if (jobs.size() > 1) note("job " + std::to_string(i + 1) + ", " + jobs[i].file);
        told.jobs.push_back({jobs[i].file, {}});
        int code = TRY(tell(report, i, jobs[i], told.jobs.back().endings));
        if (told.exit_code == 0) told.exit_code = code;
    }
    if (options.stats) say_outcome(report, device->info());
    told.exit_code = finish_output(told.exit_code);
    return finish_report(options.report, told, *device);
}

}  // namespace

int run_burst(std::span<const RunOptions> jobs, const BatchOptions& options) {
    Result<int> code = run(jobs, options);
    return code ? *code : input_error(code.error().to_string());
}

}  // namespace gpurun::tool
