// Names, values and help of the options.
#include "run_options.h"

#include <algorithm>

#include "input_file.h"
#include "numbers.h"
#include "output.h"
#include "suggest.h"

namespace gpurun::tool {
namespace {

constexpr const char* stack_and_heap_sizes = "a size below 16GiB, such as 64KiB or 4MiB";

std::optional<u32> parse_percent(std::string_view text) {
    if (text.ends_with('%')) text.remove_suffix(1);
    auto percent = parse_small_count(text);
    return percent && *percent > 0 && *percent <= 100 ? percent : std::nullopt;
}

std::optional<u64> parse_positive_size(std::string_view text) {
    auto size = parse_size(text);
    return size && *size > 0 ? size : std::nullopt;
}

// Stacks and heaps are counted in words of 4 bytes.
std::optional<u32> parse_words(std::string_view text) {
    auto size = parse_size(text);
    const u64 words = size.value_or(0) / sizeof(u32);
    return size && words <= UINT32_MAX ? std::optional(u32(words)) : std::nullopt;
}

void add_repeated(CLI::App& app, const char* name, std::vector<std::string>& to, const char* value,
                  const char* help) {
    app.add_option(name, to, help)->type_name(value)->allow_extra_args(false)->take_all();
}

// Warns of an option that stands behind the file, where it is the program's. Programs have options
// of their own; so this is for those that few of them have, and not for those behind "--".
void note_late_option(const CLI::App& app, const RunOptions& run) {
    constexpr std::string_view common[] = {"--help", "--version", "--quiet", "--no-color"};
    const std::vector<std::string> known = option_names(app);
    for (const std::string& argument : run.arguments) {
        if (argument == "--") return;
        const std::string name = argument.substr(0, argument.find('='));
        if (!name.starts_with("--") || !std::ranges::count(known, name) ||
            std::ranges::count(common, name))
            continue;
        return note(name + " stands behind " + run.file +
                    ", so it goes to the program; options of gpu-run stand before the file");
    }
}

}  // namespace

std::optional<u32> parse_small_count(std::string_view text) {
    auto count = parse_count(text);
    return count && *count <= UINT32_MAX ? std::optional(u32(*count)) : std::nullopt;
}

std::optional<u32> parse_process_count(std::string_view text) {
    auto count = parse_small_count(text);
    return count && *count > 0 ? count : std::nullopt;
}

bool is_device_name(std::string_view name) {
    if (name == "auto" || name == "cpu" || name == "cuda") return true;
    return name.starts_with("cuda:") && parse_small_count(name.substr(5)).has_value();
}

std::string_view value_words(std::string_view value) {
    if (value == "DEVICE") return "auto cpu cuda";
    if (value == "TIER") return "auto interp native";
    if (value == "LAYOUT") return "auto linear interleaved";
    if (value == "TARGET") return "all cpu cuda";
    if (value == "CPU") return "native";
    if (value == "KIND") return "ir asm ptx";
    return value == "SHELL" ? "bash zsh fish" : "";
}

void add_run_options(CLI::App& app, RunOptions& run) {
    app.add_option("--invoke", run.invoke, "call this exported function instead of _start")
        ->type_name("NAME");
    app.add_option("--device", run.device,
                   "where to run: auto (a GPU if there is one), cpu, cuda, cuda:N")
        ->type_name("DEVICE");
    app.add_option("--tier", run.tier,
                   "how to run: interp, native (machine code), auto (interp, then native)")
        ->type_name("TIER");
    app.add_option("--layout", run.layout,
                   "memory layout of many processes on a GPU: linear, interleaved, auto")
        ->type_name("LAYOUT");
    app.add_flag("--allow-precompiled", run.allows_precompiled,
                 "run the machine code of a .gpu file; trust it like an executable");
    add_number(app, "--instances", "N",
               "start N processes; {} in an argument becomes the process's number", run.instances,
               parse_process_count, "a number of processes from 1 to 4294967295");
    app.add_flag("--each", run.each, "with --instances: print a line for each process");
    app.add_flag("--stats", run.stats,
                 "print how long each step took; with --resident also a line every second");
    app.add_flag("--trace", run.trace, "print each system call to standard error");
    app.add_option("--profile", run.profile,
                   "show where the time goes; write the stacks to NAME.folded and NAME.svg")
        ->type_name("NAME");
    app.add_option("--dump", run.dump,
                   "write the state of processes that trap, for gpu-run inspect")
        ->type_name("DIR");
    app.add_option("--report", run.report, "write what happened to a file, as JSON")
        ->type_name("FILE");
    add_number(app, "--fuel", "N", "stop after N instructions", run.fuel, parse_count,
               "a number of instructions");
    add_number(app, "--timeout", "TIME", "stop after this time: 10s, 0.5, 200ms", run.timeout,
               parse_seconds, "a time such as 10s or 200ms");
    add_number(app, "--stack", "SIZE", "limit of the call stack: 64KiB; the default is 4MiB",
               run.stack_slots, parse_words, stack_and_heap_sizes);
    add_number(app, "--heap", "SIZE", "limit of the heap for objects and exceptions: 64KiB, 1GiB",
               run.heap_words, parse_words, stack_and_heap_sizes);
    add_number(app, "--memory", "SIZE", "limit of each linear memory: 64KiB, 1GiB",
               run.memory_bytes, parse_size, "a size such as 64KiB or 1GiB");
    add_number(app, "--output-buffer", "SIZE",
               "output that a process can write before it waits for gpu-run: 64KiB",
               run.output_buffer, parse_positive_size, "a size such as 64KiB or 1MiB");
    add_repeated(app, "--dir", run.directories, "HOST[::GUEST]",
                 "give the program a directory; write its changes back at the end");
    add_repeated(app, "--dir-ro", run.read_only_directories, "HOST[::GUEST]",
                 "give the program a directory that it can only read");
    add_repeated(app, "--env", run.environment, "NAME[=VALUE]",
                 "set an environment variable of the program, or pass on your own");
    app.add_option("--argv0", run.argv0, "the name that the program sees as its own")
        ->type_name("NAME");
    app.add_option("--stdin", run.input,
                   "read standard input from a file; each of many processes gets all of it")
        ->type_name("FILE");
    app.add_option("--out", run.out,
                   "with --instances: write output, changed files and ending of each process to a "
                   "new directory")
        ->type_name("DIR");
    app.add_flag("--resident", run.resident,
                 "boot the device as a machine on which programs can start others");
    add_repeated(app, "--program", run.programs, "[NAME=]FILE",
                 "with --resident: add a program that others can start by its name");
    add_number(app, "--share", "PERCENT",
               "with --resident: limit how much of the time the device is busy", run.share,
               parse_percent, "a part from 1% to 100%");
    add_number(app, "--machine-memory", "SIZE",
               "with --resident: memory for programs and processes; the default is half of what is "
               "free",
               run.machine_memory, parse_positive_size, "a size such as 512MiB or 8GiB");
    add_number(app, "--seed", "N", "make random numbers repeat", run.seed, parse_count, "a number");
    app.add_flag("--poison", run.is_watched,
                 "check gpu-run itself: put canaries and poison into its memory");
    add_number(app, "--poison-test", "ID", "the same, and spoil a canary of that process",
               run.spoilt_process, parse_small_count, "a process's number")
        ->group("");
}

void add_map_options(CLI::App& app, MapOptions& map) {
    app.add_option("--in", map.in,
                   "start a process for each file of a directory, with the file as standard input")
        ->type_name("DIR");
    app.add_option("--lines", map.lines,
                   "start a process for each line of a file, with its words as arguments; - is "
                   "standard input")
        ->type_name("FILE");
    add_run_options(app, map.run);
    for (const char* name : {"--invoke", "--instances", "--each", "--poison-test", "--resident",
                             "--program", "--share", "--machine-memory"})
        app.remove_option(app.get_option(name));
    app.get_option("--out")->description(
        "write outputs to files of a directory, not to standard output");
    app.get_option("--timeout")
        ->description("a process fails if it has not ended after this time: 10s, 0.5, 200ms");
    app.get_option("--stats")->description("print how long each step took");
    app.get_option("--fuel")->description("a process fails after N instructions");
    app.get_option("--dir")->description(
        "give the program a directory; its changes go to NAME.files in --out");
    app.get_option("--stdin")->description("with --lines: read standard input from a file");
    add_number(app, "--jobs", "N", "run at most N processes at once", map.jobs, parse_process_count,
               "a number of processes from 1 to 4294967295");
    app.add_flag("--resume", map.resumes,
                 "do only what an earlier run with this --out left out, what failed and what "
                 "changed");
}

std::string check_names(const RunOptions& run) {
    if (!tier_of(run.tier))
        return "unknown tier \"" + run.tier + "\"; --tier takes interp, native or auto";
    if (!layout_of(run.layout))
        return "unknown layout \"" + run.layout + "\"; --layout takes linear, interleaved or auto";
    return "";
}

std::string check_run(const RunOptions& run) {
    auto wants = [](const char* name, const char* what) { return std::string(name) + what; };
    constexpr const char *many = " is for many processes: --instances N",
                         *machine = " is for a resident machine: --resident";
    if (!run.instances && !run.out.empty()) return wants("--out", many);
    if (!run.instances && run.each) return wants("--each", many);
    if (!run.resident && !run.programs.empty()) return wants("--program", machine);
    if (!run.resident && run.share) return wants("--share", machine);
    if (!run.resident && run.machine_memory) return wants("--machine-memory", machine);
    const std::string unfit = unfit_for_machine(run);
    if (run.resident && !unfit.empty()) return unfit + " is not for --resident";
    return check_names(run);
}

std::string check_map(const MapOptions& map) {
    if (map.in.empty() == map.lines.empty())
        return map.in.empty() ? "map takes inputs from --in DIR or --lines FILE"
                              : "map takes --in or --lines, not both";
    if (map.resumes && map.run.out.empty()) return "--resume is for runs with --out";
    if (!map.in.empty() && !map.run.input.empty())
        return "--stdin is for --lines; with --in each file is a standard input";
    if (is_standard_input(map.run.file) && is_standard_input(map.lines))
        return "standard input cannot be the program and the lines";
    return check_names(map.run);
}

std::vector<std::string> option_names(const CLI::App& app) {
    std::vector<std::string> names;
    for (const CLI::Option* option : app.get_options())
        if (!option->get_group().empty())
            for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    return names;
}

std::vector<std::string> command_names(const CLI::App& app) {
    std::vector<std::string> names;
    for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
        names.push_back(command->get_name());
    return names;
}

std::string explain(const CLI::ParseError& error) {
    std::string message = error.what();
    switch (CLI::ExitCodes(error.get_exit_code())) {
        case CLI::ExitCodes::ArgumentMismatch:
            return message.substr(0, message.find(':')) + " needs a value";
        case CLI::ExitCodes::RequiredError: return "no file given";
        case CLI::ExitCodes::ExtrasError:
            return "unknown option " + message.substr(message.rfind(' ') + 1);
        default: return message;
    }
}

std::string take_file(const CLI::App& app, RunOptions& run) {
    std::vector<std::string> rest = app.remaining();
    const bool is_parted = !rest.empty() && rest[0] == "--";
    if (is_parted) rest.erase(rest.begin());
    if (rest.empty() || rest[0].empty()) return "no file given";
    if (rest[0].size() > 1 && rest[0][0] == '-')
        return "unknown option " + rest[0] +
               did_you_mean(rest[0].substr(0, rest[0].find('=')), option_names(app));
    run.file = rest[0];
    run.arguments.assign(rest.begin() + 1, rest.end());
    if (!is_parted) note_late_option(app, run);
    return "";
}

std::string parse_job(const std::vector<std::string>& words, RunOptions& job) {
    CLI::App app;
    app.prefix_command();
    app.option_defaults()->take_last();
    add_run_options(app, job);
    try {
        app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
    } catch (const CLI::ParseError& error) {
        return explain(error);
    }
    for (const char* name : {"--device", "--timeout", "--stats", "--report"})
        if (app.get_option(name)->count() > 0)
            return std::string(name) + " is for the whole batch, not for a line";
    if (std::string problem = check_names(job); !problem.empty()) return problem;
    for (const char* name : {"--resident", "--program", "--share", "--machine-memory"})
        if (app.get_option(name)->count() > 0)
            return std::string(name) + " is not for a line of a batch";
    return take_file(app, job);
}

}  // namespace gpurun::tool
