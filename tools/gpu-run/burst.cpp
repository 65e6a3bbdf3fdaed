// Runs the same function in many processes, and tells how they ended.
#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <unordered_map>

#include "attempt.h"
#include "commands.h"
#include "endings.h"
#include "interrupt.h"
#include "out_folder.h"
#include "output.h"
#include "piped_input.h"
#include "profile.h"
#include "progress.h"
#include "report.h"

namespace gpurun::tool {
namespace {

void say_outcome(const std::vector<api::Result>& results, const api::Device& device) {
    char text[256];
    const api::Result& all = results[0];  // what is not of a job is the same in each
    u64 processes = 0;
    for (const api::Result& result : results) processes += result.size();
    int size = std::snprintf(
        text, sizeof text, "%" PRIu64 " processes on %s in %.6f s, %.0f/s, %u slots", processes,
        device.id().c_str(), all.seconds(), double(processes) / all.seconds(), all.slots());
    auto add = [&](const char* pattern, double value) {
        size += std::snprintf(text + size, sizeof text - usize(size), pattern, value);
    };
    if (all.lanes_busy() > 0) add(", lanes busy %.1f %%", all.lanes_busy() * 100);
    if (all.stop_seconds() >= 0) add(", stopped within %.1f ms", all.stop_seconds() * 1e3);
    say(text);
    say_layout(device, all.layout() == GPURUN_LAYOUT_INTERLEAVED, all.layout_choice());
    say_phases(device);
}

// Processes that ended alike: the same ending, the same output.
struct Group {
    api::Process first;
    std::string ending;
    std::vector<u32> processes;
};

// Compares outputs, of which there may be gigabytes, until somebody does not want to wait for it.
// What was not compared to its end differs from all others.
class Comparison {
public:
    // Returns nothing if there was no time for it.
    std::optional<usize> hash(std::string_view text) const {
        const std::hash<std::string_view> hash_piece;
        usize all = text.size();
        for (; !text.empty(); text.remove_prefix(std::min(text.size(), patient_piece))) {
            if (patience_.is_over()) return std::nullopt;
            all = 3 * all ^ hash_piece(text.substr(0, patient_piece));
        }
        return all;
    }
    bool is_equal(std::string_view one, std::string_view other) const {
        if (one.size() != other.size()) return false;
        for (usize at = 0; at < one.size(); at += patient_piece)
            if (patience_.is_over() ||
                one.substr(at, patient_piece) != other.substr(at, patient_piece))
                return false;
        return true;
    }

private:
    Patience patience_;
};

// The most common first, then by first appearance.
std::vector<Group> group(std::span<const api::Process> processes, bool each, bool is_program) {
    std::vector<Group> groups;
    std::unordered_multimap<usize, usize> known;  // by hash, so that large outputs are not copied
    const Comparison comparison;
    for (u32 id = 0; id < processes.size(); id++) {
        const api::Process& process = processes[id];
        std::string ending =
            is_program && process.ending() == GPURUN_RETURNED ? "exited with 0" : describe(process);
        std::optional<usize> output, error;
        if (!each) output = comparison.hash(process.output());
        if (output) error = comparison.hash(process.error());
        const bool is_apart = !output || !error;
        const usize key =
            is_apart ? 0 : std::hash<std::string>()(ending) ^ 3 * *output ^ 5 * *error;
        auto is_alike = [&](const auto& row) {
            const Group& group = groups[row.second];
            return group.ending == ending &&
                   comparison.is_equal(group.first.output(), process.output()) &&
                   comparison.is_equal(group.first.error(), process.error());
        };
        const auto [begin, end] = known.equal_range(key);
        const auto found = is_apart ? end : std::find_if(begin, end, is_alike);
        const usize at = found == end ? groups.size() : found->second;
        if (found == end) {
            if (!is_apart) known.emplace(key, at);
            groups.push_back({process, std::move(ending), {}});
        }
        groups[at].processes.push_back(id);
        process.unload_output();
    }
    std::ranges::sort(groups, [](const Group& a, const Group& b) {
        return a.processes.size() != b.processes.size() ? a.processes.size() > b.processes.size()
                                                        : a.processes[0] < b.processes[0];
    });
    return groups;
}

void print_error(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stderr); }

// Prints the results of functions to standard output, a line for each group.
void print_results(const std::vector<Group>& groups, bool each) {
    for (const Group& group : groups) {
        print_error(group.first.error());
        print(group.first.output());
        print(std::to_string(each ? group.processes[0] : group.processes.size()) + "\t" +
              group.ending + "\n");
    }
}

// Returns which of `all` processes a group has, and how they ended.
std::string title(const Group& group, usize all, bool each) {
    const std::string first = std::to_string(group.processes[0]);
    const usize count = group.processes.size();
    if (each || count == 1) return "process " + first + ": " + group.ending;
    if (count == all) return all_ended(count, group.ending);
    return std::to_string(count) + " of " + std::to_string(all) + " processes (the first is " +
           first + "): " + group.ending;
}

// Gives an output to `put` piece by piece. Returns false if there was no patience for all of it.
template <class Put>
bool put_pieces(std::string_view text, const Patience& patience, Put put) {
    for (; !text.empty(); text.remove_prefix(std::min(text.size(), patient_piece))) {
        if (patience.is_over()) return false;
        put(text.substr(0, patient_piece));
    }
    return true;
}

bool ended_alike(const std::vector<Group>& groups) {
    return std::ranges::all_of(
        groups, [&](const Group& group) { return group.ending == groups[0].ending; });
}

// Prints the output of programs as it is; what it belongs to, on standard error. A fault of all is
// told here even to those who want quiet: no table follows that would tell it.
void print_outputs(const std::vector<Group>& groups, bool each) {
    usize all = 0;
    for (const Group& group : groups) all += group.processes.size();
    const bool is_fault = !groups.empty() && groups[0].first.ending() != GPURUN_RETURNED &&
                          groups[0].first.ending() != GPURUN_EXITED;
    auto tell = is_fault && ended_alike(groups) ? say : note;
    const Patience patience;
    bool is_whole = true;
    for (const Group& group : groups) {
        is_whole &= !patience.is_over();
        if (!is_whole) break;
        tell(title(group, all, each), group.first.is_success() ? Tone::plain : Tone::bad);
        finish_output(0);  // in order, where both outputs go to one place
        is_whole = put_pieces(group.first.error(), patience, print_error) &&
                   put_pieces(group.first.output(), patience, print);
        finish_output(0);
        group.first.unload_output();
    }
    if (!is_whole)
        say(interruption() + " while outputs were printed; the rest is left out", Tone::bad);
}

// How many ended how, where that is not told yet.
void say_endings(const std::vector<Group>& groups, bool is_program) {
    std::vector<EndingCount> counts;
    for (const Group& group : groups) {
        bool is_result = !is_program && group.first.ending() == GPURUN_RETURNED;
        EndingCount row{is_result ? "returned" : group.ending, group.processes.size(),
                        group.processes[0], group.first.is_success()};
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

int exit_code(const std::vector<Group>& groups) {
    bool some_stopped = false, some_trapped = false;
    std::optional<u32> common;
    bool is_common = true;
    for (const Group& group : groups) {
        const u32 code = group.first.exit_code();
        const bool has_exited =
            group.first.ending() == GPURUN_RETURNED || group.first.ending() == GPURUN_EXITED;
        some_stopped |= is_stopped(group.first);
        some_trapped |= !has_exited && !is_stopped(group.first);
        is_common &= !common || *common == code;
        common = code;
    }
    if (some_stopped) return was_interrupted() ? interrupted_code() : exit_timeout;
    if (some_trapped) return exit_trap;
    return is_common ? int(common.value_or(0) & 0xff) : exit_input;
}

struct Job {
    api::Module module;
    api::Config config;
};

Result<Job> make_job(const RunOptions& options, std::optional<double> timeout) {
    Job job{TRY(load_module(options)), TRY(make_config(options))};
    // Without --instances a {} is nothing but that.
    if (!options.instances && options.invoke.empty()) {
        job.config.process(options.arguments);
    } else {
        add_arguments(options, job.config);
        job.config.processes(options.instances.value_or(1));
    }
    TRY(check_config(options, job.module, job.config));
    limit(job.config, timeout);
    show_debug(job.config);
    if (!options.out.empty()) TRY(prepare_out(options.out));
    TRY(make_dump_folder(options, job.module));
    if (!options.profile.empty()) TRY(check_profile(options.profile));
    job.config.profiled(!options.profile.empty());
    return job;
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
            if (!jobs[i].profile.empty())
                TRY(check("--profile ", jobs[i].profile + ".folded", jobs[k].profile + ".folded"));
        }
    return {};
}

// Standard input for those that want it and have no other. False: it was not there in time.
Result<bool> add_input(std::span<const RunOptions> options, std::vector<Job>& jobs,
                       std::optional<double> timeout) {
    std::optional<std::string> input;
    for (usize i = 0; i < jobs.size(); i++) {
        if (!options[i].input.empty() || !reads_input(jobs[i].module)) continue;
        if (!input) input = TRY(piped_input(timeout));
        if (!input) return false;
        jobs[i].config.input(*input);
    }
    return true;
}

void say_dumps(const api::Result& result, const std::vector<Group>& groups) {
    u64 trapped = 0;
    for (const Group& group : groups)
        if (group.first.ending() == GPURUN_TRAPPED) trapped += group.processes.size();
    if (std::string problem = result.dump_problem(); !problem.empty())
        say("--dump " + problem, Tone::bad);
    else
        note_dumps(trapped, result.dump_count());
}

// Says how a job's processes ended, or stores it. Its exit code.
Result<int> tell(const api::Result& result, const RunOptions& options, Endings& endings) {
    bool is_program = options.invoke.empty();
    std::vector<api::Process> processes;
    for (u32 i = 0; i < result.size(); i++) processes.push_back(result[i]);
    std::vector<Group> groups = group(processes, options.each, is_program);
    for (const Group& group : groups) endings.add(group.first, group.processes.size());
    say_debug_lost(result.debug_dropped());
    if (!options.out.empty()) {
        std::vector<OutGroup> stored;
        for (const Group& group : groups) stored.push_back({group.first, group.processes});
        TRY(store_out(options.out, result, stored));
    }
    if (!options.dump.empty()) say_dumps(result, groups);
    const std::string lost = result.output_problem();
    if (!lost.empty()) say(lost, Tone::bad);
    bool all_succeeded =
        std::ranges::all_of(groups, [](const Group& group) { return group.first.is_success(); });
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
    const int code = exit_code(groups);
    return code == 0 && !lost.empty() ? exit_input : code;
}

Result<int> run(std::span<const RunOptions> jobs, const BatchOptions& options) {
    std::vector<Job> made;
    for (const RunOptions& job : jobs) made.push_back(TRY(make_job(job, options.timeout)));
    TRY(check_folders(jobs));
    TRY(check_report(options.report));
    RunReport report{options.command, {}};
    if (!TRY(add_input(jobs, made, options.timeout))) {
        std::vector<u64> counts;
        for (const RunOptions& job : jobs) {
            report.jobs.push_back({job.file, {}});
            counts.push_back(job.instances.value_or(1));
        }
        return report_no_input(report, counts, options.report, options.device);
    }
    api::Device device = TRY(choose_device(options.device));
    Progress progress(!is_quiet());
    made[0].config.progress(
        [&](u64 ended, u64 all) { progress.show(ended, double(ended) / double(all)); });
    std::vector<api::Job> all;
    for (const Job& job : made) all.push_back({&job.module, &job.config});
    Result<std::vector<api::Result>> ran = attempt([&] { return api::run_jobs(device, all); });
    progress.clear();
    if (was_interrupted()) leave_unnamed_files();
    if (!ran && jobs.size() > 1) return ran.error();
    if (!ran) return Error{jobs[0].file + ": " + ran.error().to_string()};
    const std::vector<api::Result>& results = *ran;
    report.slots = results[0].slots();
    report.busy = results[0].lanes_busy();
    report.is_interleaved = results[0].layout() == GPURUN_LAYOUT_INTERLEAVED;
    report.layout_choice = results[0].layout_choice();
    for (u32 i = 0; i < jobs.size(); i++) {
        finish_output(0);  // in order, where both outputs go to one place
        if (jobs.size() > 1) note("job " + std::to_string(i + 1) + ", " + jobs[i].file);
        const gpurun_native native = results[i].native();
        report.jobs.push_back({jobs[i].file, {}, tier_name(jobs[i].tier, native), native});
        int code = TRY(tell(results[i], jobs[i], report.jobs.back().endings));
        const bool is_written =
            tell_profile(jobs[i].profile, jobs[i].file, results[i].stacks(), device, false);
        if (!is_written && code == 0) code = exit_input;
        if (report.exit_code == 0) report.exit_code = code;
    }
    if (options.stats) say_outcome(results, device);
    for (const RunReport::Job& job : report.jobs)
        if (options.stats) say_tier(job.file, job.tier, job.native);
    report.exit_code = finish_output(report.exit_code);
    return finish_report(options.report, report, device);
}

}  // namespace

int tell_programs(std::span<const api::Process> processes, const RunOptions& options,
                  Endings& endings) {
    const std::vector<Group> groups = group(processes, options.each, true);
    for (const Group& group : groups) endings.add(group.first, group.processes.size());
    print_outputs(groups, options.each);
    if (!ended_alike(groups)) {
        finish_output(0);  // in order, where both outputs go to one place
        say_endings(groups, true);
    }
    return exit_code(groups);
}

int run_burst(std::span<const RunOptions> jobs, const BatchOptions& options) {
    Result<int> code = run(jobs, options);
    return code ? *code : input_error(code.error().to_string());
}

}  // namespace gpurun::tool
