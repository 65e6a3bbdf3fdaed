// --resident: boots a machine, runs a program on it with all that it starts, and ends.
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <map>

#include "attempt.h"
#include "commands.h"
#include "endings.h"
#include "interrupt.h"
#include "output.h"
#include "piped_input.h"
#include "profile.h"
#include "progress.h"
#include "report.h"

namespace gpurun::tool {
namespace {

using std::chrono::steady_clock;

struct ProgramFile {
    std::string name, file;
};

// The name of a file without its folder and what it ends in.
std::string program_name(const std::string& file) {
    std::filesystem::path path(file);
    const std::string ending = path.extension().string();
    return ending == ".wasm" || ending == ".wat" ? path.stem().string() : path.filename().string();
}

// NAME=FILE or FILE.
ProgramFile program_file(const std::string& text) {
    const usize at = text.find('=');
    if (at == text.npos) return {program_name(text), text};
    return {text.substr(0, at), text.substr(at + 1)};
}

std::string size_text(u64 bytes) {
    const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double size = double(bytes);
    usize unit = 0;
    for (; size >= 1024 && unit + 1 < std::size(units); unit++) size /= 1024;
    char text[32];
    std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.1f %s", size, units[unit]);
    return text;
}

// A line a second: what there is now, and what the last second was like.
class StatsLines {
public:
    explicit StatsLines(api::Machine& machine) : machine_(machine) {}

    double until_next() const {
        return std::chrono::duration<double>(next_ - steady_clock::now()).count();
    }
    void say_due() {
        if (steady_clock::now() < next_) return;
        next_ += std::chrono::seconds(1);
        say_now();
    }
    void say_now() {
        if (!has_header_)
            say_more(
                "    seconds  processes  lanes busy  run queue      memory  host CPU  heartbeat"
                "  launches");
        has_header_ = true;
        const gpurun_machine_stats now = machine_.stats();
        const double lanes = now.lane_seconds - before_.lane_seconds,
                     seconds = now.seconds - before_.seconds;
        const double busy =
            lanes > 0 ? (now.busy_lane_seconds - before_.busy_lane_seconds) / lanes : 0;
        const double cpu =
            seconds > 0 ? (now.host_cpu_seconds - before_.host_cpu_seconds) / seconds : 0;
        char line[160];
        std::snprintf(line, sizeof line,
                      "%11.1f  %9" PRIu64 "  %9.1f%%  %9" PRIu64
                      "  %10s  %7.1f%%  %6.1f ms  %8" PRIu64,
                      now.seconds, now.processes, 100 * busy, now.ready,
                      size_text(now.memory_used + now.system_memory_used).c_str(), 100 * cpu,
                      1e3 * now.heartbeat_age, now.launches);
        say_more(line);
        before_ = now;
    }

private:
    api::Machine& machine_;
    steady_clock::time_point next_ = steady_clock::now() + std::chrono::seconds(1);
    gpurun_machine_stats before_{};
    bool has_header_ = false;
};

// What ended the waiting.
enum class WaitEnd { ended, timed_out, interrupted };

std::string ending_text(WaitEnd outcome) {
    return outcome == WaitEnd::interrupted
               ? interruption()
               : "timeout: the time limit was reached; --timeout raises it";
}

// Waits for what happens on a machine, as long as there is time.
class Watch {
public:
    Watch(api::Machine& machine, const RunOptions& options)
        : machine_(machine), stats_(machine), timeout_(options.timeout), shows_(options.stats) {}

    // One step: wait(seconds) waits for so long at the most, and says whether that is all.
    template <class Wait>
    WaitEnd until(Wait wait) {
        for (;;) {
            double seconds = -1;
            if (timeout_) {
                seconds =
                    *timeout_ - std::chrono::duration<double>(steady_clock::now() - begin_).count();
                if (seconds <= 0) return WaitEnd::timed_out;
            }
            if (shows_) {
                stats_.say_due();
                const double next = std::max(0.0, stats_.until_next());
                seconds = seconds < 0 ? next : std::min(seconds, next);
            }
            if (was_interrupted()) return WaitEnd::interrupted;
            if (wait(seconds)) return WaitEnd::ended;
        }
    }
    WaitEnd until_idle() {
        return until([&](double seconds) { return machine_.wait_idle(seconds, interrupt_stop()); });
    }
    void finish() {
        if (shows_) stats_.say_now();
    }

private:
    api::Machine& machine_;
    StatsLines stats_;
    const steady_clock::time_point begin_ = steady_clock::now();
    std::optional<double> timeout_;
    bool shows_;
};

// The processes that the host begins on a machine, one for each configuration.
class Processes {
public:
    explicit Processes(std::vector<const api::Config*> configs) : configs_(std::move(configs)) {}

    // Runs all of them, of which some at once.
    WaitEnd run(api::Machine& machine, u32 program, Watch& watch) {
        constexpr usize at_once = 1000;  // each has streams of its own
        Progress progress(!is_quiet() && configs_.size() > 1);
        while (results_.size() < configs_.size()) {
            for (; begun_ < configs_.size() && numbers_.size() < at_once; begun_++)
                numbers_[machine.spawn(program, *configs_[begun_])] = begun_;
            const WaitEnd outcome =
                watch.until([&](double seconds) { return take(machine, seconds); });
            if (outcome != WaitEnd::ended) return outcome;
            progress.show(results_.size(), double(results_.size()) / double(configs_.size()));
        }
        return watch.until_idle();
    }
    // Takes the endings that a closed machine has left, of those that it stopped, too.
    void take_rest(api::Machine& machine) {
        ended_ = results_.size();
        while (!numbers_.empty() && take(machine, 0)) {
        }
    }
    // By the number that the process has among all.
    const std::map<u32, api::Result>& results() const { return results_; }
    usize ended() const { return ended_; }  // before the machine was closed
    usize not_begun() const { return configs_.size() - begun_; }
    bool has_begun() const { return begun_ > 0; }

private:
    bool take(api::Machine& machine, double seconds) {
        auto ended = machine.next(seconds, seconds == 0 ? nullptr : interrupt_stop());
        if (!ended) return false;
        results_.emplace(numbers_.at(ended->process), std::move(ended->result));
        numbers_.erase(ended->process);
        return true;
    }

    const std::vector<const api::Config*> configs_;
    std::map<u32, u32> numbers_;  // by the machine's, of those that run
    std::map<u32, api::Result> results_;
    u32 begun_ = 0;
    usize ended_ = 0;
};

// Says what was seen of all processes. Returns false if something of it could not be written.
bool tell_observed(const RunOptions& options, const api::Result& observed,
                   const api::Device& device) {
    const std::string problem = observed.dump_problem();
    if (!problem.empty())
        say("--dump " + problem, Tone::bad);
    else if (!options.dump.empty())
        note_dumps(observed.fault_count(), observed.dump_count());
    return tell_profile(options.profile, options.file, observed.stacks(), device,
                        !options.instances) &&
           problem.empty();
}

// Makes the configurations of many, with standard input for all if they can read it. Returns
// nothing if that did not end in time.
Result<std::optional<std::vector<api::Config>>> many_configs(const RunOptions& options,
                                                             const api::Module& module) {
    std::optional<std::string> input = TRY(input_file(options));
    if (!input && reads_input(module)) {
        input = TRY(piped_input(options.timeout));
        if (!input) return std::optional<std::vector<api::Config>>();
    }
    std::vector<api::Config> configs;
    for (u32 i = 0; i < *options.instances; i++)
        configs.push_back(TRY(make_process_config(options, i, input)));
    return std::optional(std::move(configs));
}

}  // namespace

bool needs_machine(const api::Module& module) {
    constexpr std::pair<const char*, const char*> functions[] = {
        {"gpu", "spawn"},
        {"gpu", "wait"},
        {"gpu", "kill"},
        {"gpu", "pipe"},
        {"gpu", "getpid"},
        {"gpu", "getppid"},
        {"gpu", "set_priority"},
        {"wasi", "thread-spawn"},
        {"wasix_32v1", "fd_pipe"},
        {"wasix_32v1", "proc_spawn"},
        {"wasix_32v1", "proc_spawn2"},
        {"wasix_32v1", "proc_spawn3"},
        {"wasix_32v1", "proc_id"},
        {"wasix_32v1", "proc_parent"},
        {"wasix_32v1", "proc_join"},
        {"wasix_32v1", "proc_signal"},
    };
    for (const auto& [from, name] : functions)
        if (module.has_import(from, name)) return true;
    return false;
}

std::string unfit_for_machine(const RunOptions& options) {
    const std::pair<bool, const char*> given[] = {
        {!options.invoke.empty(), "--invoke"},
        {!options.out.empty(), "--out"},
        {options.spoilt_process.has_value(), "--poison-test"},
        {options.is_watched, "--poison"},
    };
    for (const auto& [is_given, name] : given)
        if (is_given) return name;
    return "";
}

Result<int> run_resident(const RunOptions& options, const api::Module& module) {
    std::vector<std::pair<std::string, api::Module>> programs;
    for (const std::string& text : options.programs) {
        const ProgramFile program = program_file(text);
        RunOptions loaded;
        loaded.file = program.file;
        loaded.allows_precompiled = options.allows_precompiled;
        programs.emplace_back(program.name, TRY(load_module(loaded)));
    }
    api::Config config = TRY(make_config(options));
    add_arguments(options, config);
    TRY(check_config(options, module, config));
    TRY(check_report(options.report));
    if (!options.profile.empty()) TRY(check_profile(options.profile));
    watch_interrupt();
    RunReport report{"run", {{options.file, {}}}};
    std::vector<api::Config> configs;
    if (options.instances) {
        std::optional<std::vector<api::Config>> made = TRY(many_configs(options, module));
        if (!made)
            return report_no_input(report, {*options.instances}, options.report, options.device);
        configs = std::move(*made);
        config.processes(*options.instances);
    }
    config.inherit_streams();
    show_debug(config);
    if (options.share) config.share(*options.share);
    if (options.machine_memory) config.machine_memory(*options.machine_memory);
    config.profiled(!options.profile.empty());
    TRY(make_dump_folder(options, module));
    limit(config, options.timeout);
    api::Device device = TRY(attempt([&] { return api::Device(options.device); }));
    note_device(options.device, device.id(), device.name());

    std::vector<const api::Config*> all_configs;
    for (const api::Config& one : configs) all_configs.push_back(&one);
    if (!options.instances) all_configs.push_back(&config);
    WaitEnd outcome = WaitEnd::ended;
    std::optional<steady_clock::time_point> begun;
    Processes processes(std::move(all_configs));
    std::optional<api::Result> observed;
    std::optional<Error> problem;  // of files or streams, once it is closed
    Result<void> ran = attempt([&] {
        api::Machine machine(device, config);
        begun = steady_clock::now();
        Watch watch(machine, options);
        std::vector<api::Program> all = {{program_name(options.file), &module, &config}};
        for (const auto& [name, other] : programs) all.push_back({name, &other, &config});
        const u32 program = machine.load(all)[0];
        Result<void> watched = attempt([&] { outcome = processes.run(machine, program, watch); });
        watch.finish();
        Result<void> closed = attempt([&] { machine.close(); });
        if (!closed || !watched) problem = (closed ? watched : closed).error();
        observed = machine.observe();
        processes.take_rest(machine);
        if (was_interrupted()) leave_unnamed_files();
        report.machine = machine.stats();
        if (report.machine->lane_seconds > 0)
            report.busy = report.machine->busy_lane_seconds / report.machine->lane_seconds;
    });
    const bool is_all_written = !observed || tell_observed(options, *observed, device);
    if (options.stats) say_phases(device);
    const bool is_late =
        options.timeout && begun &&
        steady_clock::now() - *begun >= std::chrono::duration<double>(*options.timeout);
    // What could not be loaded since it was stopped is no error.
    if (!ran && was_interrupted())
        outcome = WaitEnd::interrupted;
    else if (!ran && is_late)
        outcome = WaitEnd::timed_out;
    else if (!ran && !processes.has_begun())
        return Error{options.file + ": " + ran.error().message};
    else if (!ran)
        problem = ran.error();

    Endings& endings = report.jobs[0].endings;
    bool is_told = false;       // an ending that says what the problem is
    bool is_stop_told = false;  // with where the process was
    std::vector<api::Process> ended;
    for (const auto& [number, result] : processes.results()) {
        ended.push_back(result[0]);
        const std::string lost = result.output_problem();
        if (!problem && !lost.empty()) problem = Error{lost};
    }
    for (const api::Process& process : ended) is_told |= process.ending() == GPURUN_FAILED;
    if (options.instances) {
        report.exit_code = tell_programs(ended, options, endings);
    } else if (!ended.empty()) {
        endings.add(ended[0]);
        is_stop_told = outcome != WaitEnd::ended && is_stopped(ended[0]);
        if (outcome == WaitEnd::ended || is_stop_told)
            report.exit_code = say_ending(ended[0], options);
    }
    if (outcome != WaitEnd::ended) endings.add_stopped(processes.not_begun());
    if (outcome != WaitEnd::ended && !is_stop_told) {
        std::string text = options.file + ": " + ending_text(outcome);
        if (options.instances)
            text += " (" + std::to_string(processes.ended()) + " of " +
                    std::to_string(*options.instances) + " had ended)";
        say(text, Tone::bad);
        report.exit_code = outcome == WaitEnd::interrupted ? interrupted_code() : exit_timeout;
    }
    if (problem && !is_told) say(options.file + ": " + problem->message, Tone::bad);
    // The process may have ended before its output was taken.
    const bool is_closed = observed && !observed->output_problem().empty();
    if (is_closed && outcome == WaitEnd::ended) report.exit_code = exit_closed_pipe;
    if (problem && (is_closed || report.exit_code == 0)) report.exit_code = exit_input;
    if (!is_all_written && report.exit_code == 0) report.exit_code = exit_input;
    report.exit_code = finish_output(report.exit_code);
    return finish_report(options.report, report, device);
}

}  // namespace gpurun::tool
