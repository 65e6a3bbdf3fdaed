// The command line: parses options once and calls a command.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "base/threads.h"
#include "commands.h"
#include "engine/load.h"
#include "engine/objdump.h"
#include "manual.h"
#include "map.h"
#include "numbers.h"
#include "output.h"

using namespace gpurun::tool;
using gpurun::Result;

namespace {

constexpr HelpText help_text = {
    R"(  gpu-run --invoke fac fac.wat 20      call an exported function, print its results
  gpu-run app.wasm                     run a program: its _start function
  gpu-run --timeout 10s app.wasm       the same, but no longer than that
  gpu-run --dir data::/ app.wasm x     the same with an argument, and a folder as its /
  gpu-run --instances 9 --invoke fac fac.wat {}   nine processes at once, {} is 0 to 8
  gpu-run map --in data --out results app.wasm    a process for each file of a folder
  gpu-run --instances 9 --report run.json app.wasm   and what happened, as JSON
  gpu-run --resident --program x=count.wasm app.wasm   a program that can start another as x
  gpu-run --trace app.wasm             a line for each system call
  gpu-run --profile app app.wasm       where its time goes: app.svg, app.folded
  gpu-run --dump dump app.wasm         the state it traps in, if it does: gpu-run inspect dump/0
  gpu-run devices                      where it can run
  gpu-run compile app.wasm             machine code for later runs
  gpu-run compile -o app.gpu app.wasm  and as a file to ship, for --allow-precompiled app.gpu
  gpu-run cache                        what is kept of machine code
  gpu-run validate app.wasm            is it a valid module?
  gpu-run objdump app.wasm | less      what is in it, with the interpreter's code
  gpu-run wast test.wast               run a script of the official test suite's language)",
    R"(A FILE is a binary module, text (.wat), or what compile -o made (.gpu). Options of gpu-run stand
before it; whatever follows is for the program, or the arguments of the function: numbers as wasm's
text writes them, such as -5, 0xff, 1.5e3, inf or nan:0x200000.)",
    R"(0 or the program's own; 1 bad input; 2 wrong options; 124 the time is over;
130 interrupted by Ctrl-C, 143 by SIGTERM, 129 by SIGHUP;
134 a trap, an exception that nothing caught, or no fuel left.)"};

constexpr const char* map_footer = R"(Examples:
  gpu-run map --in texts count.wasm                   each file as standard input, outputs in order
  gpu-run map --in texts --out counts count.wasm      texts/a/b.txt becomes counts/a/b.txt
  gpu-run map --in texts --out counts --resume count.wasm   go on after Ctrl-C, or try failed ones again
  gpu-run map --in texts count.wasm --title {}        {} is the file's name below texts
  gpu-run map --lines jobs.txt app.wasm               a line's words are arguments, as a shell has them
  seq 1000 | gpu-run map --lines - app.wasm -n {}     {} is the whole line

Inputs are sorted by name, or in the order of the lines; so are outputs, whenever a process ends.
What processes write to standard error goes there, the input's name before each line. What fails is
listed at the end, and the rest is done.

With --out, the output of line 12345 is 000/012/345 in the folder. An output gets its name only once
it is whole. Outputs of failed processes go to .gpu-run/failed instead; .gpu-run/journal says what is
done and what failed, and why. Without --resume everything is done again.

Processes run in chunks. What --timeout stops begins again, fewer at a time, for it may have waited for
its turn; so a process that does not end takes a multiple of the time until it is given up.

Exit codes: 0 all processes ended with 0; 1 some failed, or bad input; 2 wrong options;
130 interrupted by Ctrl-C, 143 by SIGTERM, 129 by SIGHUP, what is done is kept.)";

bool is_positional(const CLI::Option* option) { return option->get_positional(); }

// The options and commands that are not hidden, as data.
std::vector<CommandText> command_texts(const CLI::App& app) {
    std::vector<CommandText> texts;
    std::vector<const CLI::App*> commands{&app};
    for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
        if (!command->get_group().empty()) commands.push_back(command);
    for (const CLI::App* command : commands) {
        CommandText& text = texts.emplace_back();
        if (command != &app) text.name = command->get_name();
        text.help = command->get_description();
        for (const CLI::Option* option : command->get_options()) {
            if (option->get_group().empty() || option->get_positional()) continue;
            OptionText& row = text.options.emplace_back();
            if (!option->get_snames().empty()) row.short_name = "-" + option->get_snames()[0];
            if (!option->get_lnames().empty()) row.long_name = "--" + option->get_lnames()[0];
            if (option->get_items_expected_max() > 0) row.value = option->get_type_name();
            row.help = option->get_description();
        }
    }
    return texts;
}

int print_completions(const CLI::App& app, const std::string& shell) {
    std::string text = completions(command_texts(app), shell);
    if (text.empty()) return usage_error("completions are for bash, zsh or fish");
    print(text);
    return finish_output(0);
}

struct Formatter : CLI::Formatter {
    std::string make_usage(const CLI::App* app, std::string) const override {
        auto arguments = app->get_options(is_positional);
        std::string takes;
        if (!arguments.empty())
            takes = " " + arguments[0]->get_name(true) +
                    (arguments[0]->get_items_expected_max() > 1 ? "..." : "");
        if (app->get_parent() && app->get_name() == "map")
            return "Usage: gpu-run map (--in DIR | --lines FILE) [OPTIONS] FILE [ARGUMENTS]\n";
        if (app->get_parent())
            return "Usage: gpu-run " + app->get_name() + " [OPTIONS]" + takes + "\n";
        return "Usage: gpu-run [OPTIONS] FILE [ARGUMENTS]\n"
               "       gpu-run COMMAND [OPTIONS] FILE...\n";
    }

    // Without how many values an option takes: their names say it.
    std::string make_option_opts(const CLI::Option* option) const override {
        std::string text = CLI::Formatter::make_option_opts(option);
        return text.substr(0, text.find(" x 2"));
    }
};

// An option whose value `parse` reads; `wants` says what it takes.
template <class T, class Parse>
CLI::Option* add_number(CLI::App& app, const std::string& name, const char* value, const char* help,
                        T& to, Parse parse, const char* wants) {
    auto read = [=, &to](const std::string& text) {
        auto number = parse(text);
        if (!number)
            throw CLI::ValidationError(name + " takes " + wants + ", not \"" + text + "\"");
        to = *number;
        return true;
    };
    return app.add_option_function<std::string>(name, read, help)->type_name(value);
}

// A count that fits 32 bits.
std::optional<uint32_t> parse_small_count(std::string_view text) {
    auto count = parse_count(text);
    return count && *count <= UINT32_MAX ? std::optional(uint32_t(*count)) : std::nullopt;
}

std::optional<uint32_t> parse_process_count(std::string_view text) {
    auto count = parse_small_count(text);
    return count && *count > 0 ? count : std::nullopt;
}

std::optional<uint32_t> parse_percent(std::string_view text) {
    if (text.ends_with('%')) text.remove_suffix(1);
    auto percent = parse_small_count(text);
    return percent && *percent > 0 && *percent <= 100 ? percent : std::nullopt;
}

std::optional<uint64_t> parse_machine_size(std::string_view text) {
    auto size = parse_size(text);
    return size && *size > 0 ? size : std::nullopt;
}

bool is_device_name(std::string_view name) {
    if (name == "auto" || name == "cpu" || name == "cuda") return true;
    return name.starts_with("cuda:") && parse_small_count(name.substr(5)).has_value();
}

// What is wrong with --tier and --layout. Empty: nothing.
std::string check_names(const RunOptions& run) {
    if (!tier_of(run.tier))
        return "unknown tier \"" + run.tier + "\"; --tier takes interp, native or auto";
    if (!layout_of(run.layout))
        return "unknown layout \"" + run.layout + "\"; --layout takes linear, interleaved or auto";
    return "";
}

void add_run_options(CLI::App& app, RunOptions& run) {
    app.add_option("--invoke", run.invoke, "call this exported function instead of _start")
        ->type_name("NAME");
    app.add_option("--device", run.device,
                   "where to run: auto (a GPU if there is one), cpu, cuda, cuda:N")
        ->type_name("DEVICE");
    app.add_option("--tier", run.tier,
                   "how to run: interp, native (machine code), auto (first interp, then native)")
        ->type_name("TIER");
    app.add_option("--layout", run.layout,
                   "how memories of many processes lie on a GPU: linear, interleaved, auto")
        ->type_name("LAYOUT");
    app.add_flag("--allow-precompiled", run.allows_precompiled,
                 "run the machine code of a .gpu file, as if it were an executable");
    add_number(app, "--instances", "N",
               "as many processes; {} in an argument is the process's number", run.instances,
               parse_process_count, "a number of processes from 1 to 4294967295");
    app.add_flag("--each", run.each, "with --instances: a line for each process");
    app.add_flag("--stats", run.stats,
                 "say what took how long; with --resident a line a second too");
    app.add_flag("--trace", run.trace, "a line for each system call, on standard error");
    app.add_option("--profile", run.profile,
                   "show where its time goes; NAME.folded and NAME.svg have its stacks")
        ->type_name("NAME");
    app.add_option("--dump", run.dump,
                   "write the state of processes that trap, for gpu-run inspect")
        ->type_name("DIR");
    app.add_option("--report", run.report, "write what happened to a file, as JSON")
        ->type_name("FILE");
    add_number(app, "--fuel", "N", "stop after that many instructions", run.fuel, parse_count,
               "a number of instructions");
    add_number(app, "--timeout", "TIME", "stop after that time: 10s, 0.5, 200ms", run.timeout,
               parse_seconds, "a time such as 10s or 200ms");
    add_number(app, "--stack", "N", "call stack, in slots of 4 bytes: 1048576", run.stack_slots,
               parse_small_count, "a number of slots below 4294967296");
    add_number(app, "--heap", "N", "heap of objects, in words of 4 bytes", run.heap_words,
               parse_small_count, "a number of words below 4294967296");
    add_number(app, "--memory", "SIZE", "most that a memory may grow to: 64KiB, 1GiB",
               run.memory_bytes, parse_size, "a size such as 64KiB or 1GiB");
    add_number(app, "--output-buffer", "SIZE",
               "output that a process may be ahead of gpu-run, then it waits: 64KiB",
               run.output_buffer, parse_machine_size, "a size such as 64KiB or 1MiB");
    app.add_option("--dir", run.directories,
                   "let the program use a directory, and write back what it changed there")
        ->type_name("HOST[::GUEST]")
        ->allow_extra_args(false)
        ->take_all();
    app.add_option("--dir-ro", run.read_only_directories, "the same, but only to read")
        ->type_name("HOST[::GUEST]")
        ->allow_extra_args(false)
        ->take_all();
    app.add_option("--env", run.environment, "a variable of the program's environment")
        ->type_name("NAME[=VALUE]")
        ->allow_extra_args(false)
        ->take_all();
    app.add_option("--argv0", run.argv0, "the program's name, as it sees it")->type_name("NAME");
    app.add_option("--stdin", run.input,
                   "standard input from a file; all of many processes get all of it")
        ->type_name("FILE");
    app.add_option(
           "--out", run.out,
           "with --instances: a new folder for what each wrote and changed, and how it ended")
        ->type_name("DIR");
    app.add_flag("--resident", run.resident,
                 "boot the device as a machine of its own, on which the program can start others");
    app.add_option("--program", run.programs,
                   "with --resident: one more program, for others to start by its name")
        ->type_name("[NAME=]FILE")
        ->allow_extra_args(false)
        ->take_all();
    add_number(app, "--share", "PERCENT",
               "with --resident: the part of its time that the device may be busy", run.share,
               parse_percent, "a part from 1% to 100%");
    add_number(app, "--machine-memory", "SIZE",
               "with --resident: memory for programs and processes, else half of what is free",
               run.machine_memory, parse_machine_size, "a size such as 512MiB or 8GiB");
    add_number(app, "--seed", "N", "random numbers that repeat", run.seed, parse_count, "a number");
    app.add_flag("--poison", run.is_watched,
                 "watch over gpu-run itself: canaries and poison in its memory");
    add_number(app, "--poison-test", "ID", "the same, and spoil a canary of that process",
               run.spoilt_process, parse_small_count, "a process's number")
        ->group("");
}

// What a run has, but for what is said otherwise.
void add_map_options(CLI::App& app, MapOptions& map) {
    app.add_option("--in", map.in,
                   "a process for each file of the folder, which is its standard input")
        ->type_name("DIR");
    app.add_option("--lines", map.lines,
                   "a process for each line of the file, which are its arguments; - is standard "
                   "input")
        ->type_name("FILE");
    add_run_options(app, map.run);
    for (const char* name : {"--invoke", "--instances", "--each", "--poison-test", "--resident",
                             "--program", "--share", "--machine-memory"})
        app.remove_option(app.get_option(name));
    app.get_option("--out")->description(
        "outputs go to files of the folder, not to standard output");
    app.get_option("--timeout")
        ->description("a process that has not ended after that time fails: 10s, 0.5, 200ms");
    app.get_option("--stats")->description("say what took how long");
    app.get_option("--fuel")->description("a process fails after that many instructions");
    app.get_option("--dir")->description(
        "let the program use a directory; what it changes goes to NAME.files in --out");
    app.get_option("--stdin")->description("with --lines: standard input from a file");
    add_number(app, "--jobs", "N", "at most so many processes at once", map.jobs,
               parse_process_count, "a number of processes from 1 to 4294967295");
    app.add_flag("--resume", map.resumes,
                 "do only what an earlier run with this --out did not do, what failed or has "
                 "changed");
    app.footer(map_footer);
}

// What is wrong with options of the resident machine, or beside them. Empty: nothing.
std::string check_resident(const CLI::App& app, const RunOptions& run) {
    for (const char* name : {"--program", "--share", "--machine-memory"})
        if (!run.resident && app.count(name) > 0)
            return std::string(name) + " is for a resident machine: --resident";
    const std::string unfit = unfit_for_machine(run);
    return run.resident && !unfit.empty() ? unfit + " is not for --resident" : "";
}

// What is wrong with how map is called. Empty: nothing.
std::string check_map(const MapOptions& map) {
    if (map.in.empty() == map.lines.empty())
        return map.in.empty() ? "map takes inputs from --in DIR or --lines FILE"
                              : "map takes --in or --lines, not both";
    if (map.resumes && map.run.out.empty()) return "--resume is for runs with --out";
    if (!map.in.empty() && !map.run.input.empty())
        return "--stdin is for --lines; with --in each file is a standard input";
    return check_names(map.run);
}

// What is wrong, in the words of this program.
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

// What follows the options: a file and its arguments. What is wrong with it; empty: nothing.
std::string take_file(const CLI::App& app, RunOptions& run) {
    std::vector<std::string> rest = app.remaining();
    if (!rest.empty() && rest[0] == "--") rest.erase(rest.begin());
    if (rest.empty() || rest[0].empty()) return "no file given";
    if (rest[0].size() > 1 && rest[0][0] == '-') return "unknown option " + rest[0];
    run.file = rest[0];
    run.arguments.assign(rest.begin() + 1, rest.end());
    return "";
}

// A line of a batch: options, a file, arguments.
std::optional<std::string> parse_job(const std::vector<std::string>& words, RunOptions& job) {
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
    std::string problem = take_file(app, job);
    return problem.empty() ? std::nullopt : std::optional(problem);
}

int run_batch(const std::string& file, const BatchOptions& options) {
    Result<std::vector<uint8_t>> text = gpurun::engine::read_file(file);
    if (!text) return input_error(text.error().to_string());
    std::vector<RunOptions> jobs;
    std::string_view left(reinterpret_cast<const char*>(text->data()), text->size());
    for (size_t number = 1; !left.empty(); number++) {
        std::string_view line = left.substr(0, left.find('\n'));
        left.remove_prefix(std::min(left.size(), line.size() + 1));
        auto words = split_words(line);
        if (words && (words->empty() || words->front()[0] == '#')) continue;
        RunOptions job;
        std::optional<std::string> problem = "a quote is not closed";
        if (words) problem = parse_job(*words, job);
        if (problem) return input_error(file + ":" + std::to_string(number) + ": " + *problem);
        jobs.push_back(std::move(job));
    }
    if (jobs.empty())
        return input_error(file + ": no jobs in it; a job is a line: [OPTIONS] FILE [ARGUMENTS]");
    return run_burst(jobs, options);
}

// What stands on the command line that the command cannot use. Empty: nothing.
std::string misplaced(const CLI::App& app, const CLI::App& command) {
    // These mean the same before a command and after it, or for all commands.
    constexpr std::string_view common[] = {"--device", "--quiet", "--no-color"};
    for (const CLI::Option* option : app.get_options())
        if (option->count() > 0 && !std::ranges::count(common, option->get_name()))
            return option->get_name() + " is not for " + command.get_name();
    if (command.get_name() == "map") return "";  // the rest is for the program
    std::vector<std::string> rest = app.remaining(true);
    if (rest.empty()) return "";
    return command.get_name() + (rest[0][0] == '-' ? " has no option " : " takes no argument ") +
           rest[0];
}

int run_command(int argc, char** argv) {
    hold_standard_streams();
    gpurun_set_notes([](void*, const char* line) { note(line); }, nullptr);
    CLI::App app("Runs WebAssembly: programs, functions and test scripts.");
    app.name("gpu-run");
    auto formatter = std::make_shared<Formatter>();
    formatter->label("REQUIRED", "");
    formatter->label("Positionals", "Arguments");
    app.formatter(formatter);
    app.set_help_flag("-h,--help", "this text; after a command, of the command");
    app.set_version_flag("--version", "gpu-run " GPURUN_VERSION, "the version");
    app.prefix_command();
    app.option_defaults()->take_last();
    RunOptions run;
    add_run_options(app, run);
    OutputStyle style;
    const char* no_colour = std::getenv("NO_COLOR");
    style.has_colour = !(no_colour && *no_colour);
    set_style(style);
    bool has_no_colour = false;
    app.add_flag("-q,--quiet", style.is_quiet, "say nothing but what goes wrong");
    app.add_flag("--no-color", has_no_colour,
                 "no colours, not even on a terminal; as does NO_COLOR in the environment");

    std::vector<std::string> files;
    auto add_files = [&](CLI::App* command, const char* help) {
        command->add_option("FILE", files, help)->required()->type_name("")->take_all();
    };
    CLI::App* wast =
        app.add_subcommand("wast", "run scripts of the official test suite's language");
    bool is_quiet = false;
    wast->add_flag("-q,--quiet", is_quiet, "only the files with failures, and the total");
    add_files(wast, "scripts (.wast)");
    wast->add_option("--device", run.device, "where to run: auto, cpu, cuda, cuda:N")
        ->type_name("DEVICE");
    wast->add_option("--tier", run.tier, "how to run: interp, native, auto")->type_name("TIER");
    wast->add_flag("--poison", run.is_watched,
                   "watch over gpu-run itself: canaries and poison in its memory");
    CLI::App* batch = app.add_subcommand(
        "batch", "run several programs or functions at once, one a line of a file");
    BatchOptions batch_options;
    batch_options.command = "batch";
    batch->add_option("--device", batch_options.device, "where to run: auto, cpu, cuda, cuda:N")
        ->type_name("DEVICE");
    batch->add_flag("--stats", batch_options.stats, "say what took how long");
    batch->add_option("--report", batch_options.report, "write what happened to a file, as JSON")
        ->type_name("FILE");
    add_number(*batch, "--timeout", "TIME", "stop after that time: 10s, 0.5, 200ms",
               batch_options.timeout, parse_seconds, "a time such as 10s or 200ms");
    add_files(batch, "a file with a job a line: [OPTIONS] FILE [ARGUMENTS]");
    CLI::App* map = app.add_subcommand(
        "map", "run a program for each of many inputs: files of a folder, or lines");
    MapOptions map_options;
    add_map_options(*map, map_options);
    map->add_flag("-q,--quiet", style.is_quiet, "no progress, nothing but what goes wrong");
    CLI::App* compile =
        app.add_subcommand("compile", "make machine code of modules, to keep or to ship");
    CompileOptions compiling;
    compile
        ->add_option("-o,--output", compiling.out,
                     "make a file to ship: the module with its machine code")
        ->type_name("FILE");
    compile->add_option("--target", compiling.target, "with -o, what it runs on: cpu, cuda, all")
        ->type_name("TARGET");
    compile
        ->add_option(
            "--cpu", compiling.cpu,
            "with -o, the least CPU it runs on: a name that LLVM knows, or native for this "
            "one")
        ->type_name("CPU");
    compile->add_option("--emit", compiling.emitted, "print what is made on the way: ir, asm, ptx")
        ->type_name("KIND");
    add_files(compile, "modules (.wasm, .wat)");
    CLI::App* cache = app.add_subcommand("cache", "list the machine code that is kept");
    bool is_cleared = false;
    cache->add_flag("--clear", is_cleared, "remove all of it");
    CLI::App* devices = app.add_subcommand("devices", "list the devices that are here");
    bool is_json = false;
    devices->add_flag("--json", is_json, "for programs to read");
    CLI::App* validate = app.add_subcommand("validate", "check modules without running them");
    bool is_verbose = false;
    validate->add_flag("-v,--verbose", is_verbose, "say something of valid ones too");
    add_files(validate, "modules (.wasm or .wat)");
    CLI::App* objdump =
        app.add_subcommand("objdump", "show what is in modules, with the interpreter's code");
    gpurun::engine::ObjdumpOptions dump;
    objdump->add_flag("--headers", dump.headers_only, "everything but the functions' instructions");
    objdump->add_option("--function", dump.function, "only this function, by index or name")
        ->type_name("F");
    add_files(objdump, "modules (.wasm or .wat)");
    CLI::App* inspect = app.add_subcommand("inspect", "show what --dump wrote of a process");
    InspectOptions inspection;
    std::vector<std::string> range;
    inspect->add_option("--memory", range, "bytes of its memory: 0x400 64")
        ->type_name("ADDRESS SIZE")
        ->expected(2)
        ->take_all();
    add_number(*inspect, "--strings", "N", "text in its memory, of so many characters at least",
               inspection.strings, parse_process_count, "a number of characters");
    add_number(*inspect, "--memory-number", "N", "which memory, where there are several",
               inspection.memory, parse_small_count, "a number");
    inspect->add_option("DUMP", inspection.dump, "DIR/<number>, below the folder of --dump")
        ->required()
        ->type_name("");
    CLI::App* completion = app.add_subcommand("completions", "completions for a shell");
    std::string shell;
    completion->add_option("SHELL", shell, "bash, zsh or fish")->type_name("");
    CLI::App* manual = app.add_subcommand("man", "the manual page");
    for (CLI::App* command : {completion, manual}) command->group("");
    for (CLI::App* command :
         {map, batch, wast, devices, compile, cache, validate, objdump, inspect})
        command->group("Commands");
    app.footer("Examples:\n" + std::string(help_text.examples) + "\n\n" +
               std::string(help_text.notes) + "\n\nExit codes: " +
               std::string(help_text.exit_codes));  // last, or the commands would inherit it

    try {
        app.parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
        print(app.help());
        return finish_output(0);
    } catch (const CLI::CallForVersion& version) {
        print(std::string(version.what()) + "\n");
        return finish_output(0);
    } catch (const CLI::ParseError& error) {
        return usage_error(explain(error) + "; gpu-run --help lists the options");
    }
    style.has_colour &= !has_no_colour;
    set_style(style);
    for (const CLI::App* command : app.get_subcommands())
        if (std::string problem = misplaced(app, *command); !problem.empty())
            return usage_error(problem + "; gpu-run " + command->get_name() +
                               " --help lists its options");
    if (*batch && batch->count("--device") == 0) batch_options.device = run.device;
    if (*batch && files.size() != 1) return usage_error("batch takes one file");
    if (*batch) run.device = batch_options.device;
    if (*map && map->count("--device") == 0) map_options.run.device = run.device;
    if (*map) run.device = map_options.run.device;
    if (!is_device_name(run.device))
        return usage_error("unknown device \"" + run.device +
                           "\"; --device takes auto, cpu, cuda or cuda:N");
    if (*batch) return run_batch(files[0], batch_options);
    if (*map) {
        std::string problem = take_file(*map, map_options.run);
        if (problem.empty()) problem = check_map(map_options);
        if (!problem.empty())
            return usage_error(problem + "; gpu-run map --help shows how to call it");
        map_options.has_progress = !style.is_quiet;
        return run_map(map_options);
    }
    if (*wast) {
        if (std::string problem = check_names(run); !problem.empty()) return usage_error(problem);
        return run_scripts(files, run, is_quiet);
    }
    if (*devices) return list_devices(is_json);
    if (*compile) {
        compiling.files = files;
        return compile_files(compiling);
    }
    if (*cache) return show_cache(is_cleared);
    if (*validate) return validate_files(files, is_verbose);
    if (*objdump) return dump_files(files, dump);
    if (*inspect) {
        std::optional<uint64_t> address, size;
        if (range.size() == 2) address = parse_count(range[0]), size = parse_size(range[1]);
        if (!range.empty() && !(address && size))
            return usage_error("--memory takes an address and a size, such as 0x400 64");
        if (!range.empty()) inspection.range = {*address, *size};
        return inspect_dump(inspection);
    }
    if (*completion) return print_completions(app, shell);
    if (*manual) {
        print(manual_page(command_texts(app), help_text));
        return finish_output(0);
    }

    if (std::string problem = take_file(app, run); !problem.empty())
        return usage_error(problem + "; gpu-run --help shows how to call it");
    for (const char* name : {"--out", "--each"})
        if (!run.instances && app.count(name) > 0)
            return usage_error(std::string(name) + " is for many processes: --instances N");
    if (std::string problem = check_resident(app, run); !problem.empty())
        return usage_error(problem);
    if (std::string problem = check_names(run); !problem.empty()) return usage_error(problem);
    run.is_watched |= run.spoilt_process.has_value();
    if (!run.instances || run.resident) return run_file(run);
    return run_burst({&run, 1}, {run.device, run.timeout, run.stats, run.report, "run"});
}

}  // namespace

int main(int argc, char** argv) {
    gpurun::Result<int> ran =
        gpurun::guarded([&]() -> gpurun::Result<int> { return run_command(argc, argv); });
    // Nothing takes memory here: that there is none may be what is to be said.
    if (!ran) std::fprintf(stderr, "gpu-run: %s\n", ran.error().message.c_str());
    const int code = ran ? *ran : exit_input;
    // Nobody waits for machine code that comes too late.
    if (gpurun_is_compiling()) {
        std::fflush(nullptr);
        _exit(code);
    }
    return code;
}
