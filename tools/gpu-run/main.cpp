// The command line: parses options once and calls a command.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "base/threads.h"
#include "commands.h"
#include "engine/objdump.h"
#include "input_file.h"
#include "manual.h"
#include "map.h"
#include "numbers.h"
#include "output.h"
#include "progress.h"
#include "run_options.h"
#include "suggest.h"

using namespace gpurun::tool;
using gpurun::Result;

namespace {

constexpr HelpText help_text = {
    R"(  gpu-run app.wasm                     run a program: its _start function
  gpu-run --dir data::/ app.wasm x     with an argument, and with data as its /
  gpu-run --timeout 10s app.wasm       for at most ten seconds
  gpu-run --invoke fac fac.wat 20      call an exported function and print its results
  gpu-run --instances 9 --invoke fac fac.wat {}   run nine processes at once; {} is 0 to 8
  gpu-run map --in data --out results app.wasm    run a process for each file of a directory
  gpu-run --instances 9 --report run.json app.wasm   write what happened as JSON
  gpu-run --resident --program x=count.wasm app.wasm   run a program that can start another as x
  gpu-run --trace app.wasm             print each system call
  gpu-run --profile app app.wasm       show where the time goes: app.svg, app.folded
  gpu-run --dump dump app.wasm         keep the state if it traps, for gpu-run inspect dump/0
  gpu-run devices                      list the devices of this machine
  gpu-run compile app.wasm             make machine code for later runs
  gpu-run compile -o app.gpu app.wasm  make a file to ship, for --allow-precompiled app.gpu
  gpu-run cache                        list the machine code that is kept
  gpu-run validate app.wasm            check a module
  gpu-run objdump app.wasm | less      show what is in a module, with the interpreter's code
  gpu-run wast test.wast               run a script of the official test suite)",
    R"(FILE is a binary module, text (.wat), a file that compile -o made (.gpu), or - for standard
input. Options of gpu-run stand before FILE. Whatever follows it goes to the program, or is an
argument of the function: a number as in wasm's text format, such as -5, 0xff, 1.5e3, inf or
nan:0x200000. Sizes are in bytes, with or without a unit: 65536, 64KiB, 64k, 1GiB.)",
    R"(0, or the exit code of the program; 1 bad input; 2 wrong options;
124 the time limit was reached; 129 SIGHUP; 130 Ctrl-C; 143 SIGTERM;
134 a trap, an exception that was not caught, or no fuel left.)"};

constexpr const char* map_footer = R"(Examples:
  gpu-run map --in texts count.wasm                   each file is a standard input; outputs in order
  gpu-run map --in texts --out counts count.wasm      texts/a/b.txt becomes counts/a/b.txt
  gpu-run map --in texts --out counts --resume count.wasm   go on after Ctrl-C; retry what failed
  gpu-run map --in texts count.wasm --title {}        {} is the file's name below texts
  gpu-run map --lines jobs.txt app.wasm               words of a line are arguments, as in a shell
  seq 1000 | gpu-run map --lines - app.wasm -n {}     {} is the whole line

Inputs are sorted by name, or keep the order of the lines. Outputs come in the same order. What
processes write to standard error goes there, with the input's name before each line. An input that
fails does not stop the others; failures are listed at the end.

With --out, the output of line 12345 is 000/012/345 in the directory. An output gets its name once it
is complete. Outputs of failed processes go to .gpu-run/failed; .gpu-run/journal says what is done,
what failed, and why. Without --resume everything is done again.

Processes run in chunks. A process that --timeout stops is tried again with fewer beside it, because
it may have waited for its turn; so a process that never ends takes a multiple of that time.

Exit codes: 0 all processes exited with 0; 1 some failed, or bad input; 2 wrong options;
130 Ctrl-C, 143 SIGTERM, 129 SIGHUP: what is done is kept.)";

bool is_positional(const CLI::Option* option) { return option->get_positional(); }

// Returns the options and commands that are not hidden, as data.
std::vector<CommandText> command_texts(const CLI::App& app) {
    std::vector<CommandText> texts;
    std::vector<const CLI::App*> commands{&app};
    for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
        commands.push_back(command);
    for (const CLI::App* command : commands) {
        CommandText& text = texts.emplace_back();
        if (command != &app) text.name = command->get_name();
        text.help = command->get_description();
        for (const CLI::Option* option : command->get_options()) {
            if (option->get_positional()) {
                text.words = value_words(option->get_name(true));
                if (option->get_name(true) == "COMMAND")
                    text.words = CLI::detail::join(command_names(app), " ");
                continue;
            }
            if (option->get_group().empty()) continue;
            OptionText& row = text.options.emplace_back();
            if (!option->get_snames().empty()) row.short_name = "-" + option->get_snames()[0];
            if (!option->get_lnames().empty()) row.long_name = "--" + option->get_lnames()[0];
            if (option->get_items_expected_max() > 0) row.value = option->get_type_name();
            row.words = value_words(row.value);
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
        if (!arguments.empty()) {
            takes = arguments[0]->get_name(true) +
                    (arguments[0]->get_items_expected_max() > 1 ? "..." : "");
            takes = arguments[0]->get_required() ? " " + takes : " [" + takes + "]";
        }
        if (!app->get_parent())
            return "Usage: gpu-run [OPTIONS] FILE [ARGUMENTS]\n"
                   "       gpu-run COMMAND [OPTIONS] FILE...\n";
        if (app->get_name() == "run") return "Usage: gpu-run [run] [OPTIONS] FILE [ARGUMENTS]\n";
        if (app->get_name() == "map")
            return "Usage: gpu-run map (--in DIR | --lines FILE) [OPTIONS] FILE [ARGUMENTS]\n";
        return "Usage: gpu-run " + app->get_name() + " [OPTIONS]" + takes + "\n";
    }

    // Without how many values an option takes: their names say it.
    std::string make_option_opts(const CLI::Option* option) const override {
        std::string text = CLI::Formatter::make_option_opts(option);
        return text.substr(0, text.find(" x 2"));
    }
};

int run_batch(const std::string& file, const BatchOptions& options) {
    Result<std::vector<uint8_t>> text = read_input(file);
    if (!text) return input_error(text.error().to_string());
    std::vector<RunOptions> jobs;
    std::string_view left(reinterpret_cast<const char*>(text->data()), text->size());
    for (size_t number = 1; !left.empty(); number++) {
        std::string_view line = left.substr(0, left.find('\n'));
        left.remove_prefix(std::min(left.size(), line.size() + 1));
        auto words = split_words(line);
        if (words && (words->empty() || words->front()[0] == '#')) continue;
        RunOptions job;
        const std::string problem = words ? parse_job(*words, job) : "a quote is not closed";
        if (!problem.empty())
            return input_error(file + ":" + std::to_string(number) + ": " + problem);
        jobs.push_back(std::move(job));
    }
    if (jobs.empty())
        return input_error(file + ": no jobs in it; a job is a line: [OPTIONS] FILE [ARGUMENTS]");
    return run_burst(jobs, options);
}

// Returns what stands on the command line that the command cannot use, or nothing.
std::string misplaced(const CLI::App& app, const CLI::App& command) {
    // These mean the same before a command and after it, or for all commands.
    constexpr std::string_view common[] = {"--device", "--quiet", "--no-color"};
    const std::string& name = command.get_name();
    if (name == "run") return "";  // it takes all of them
    for (const CLI::Option* option : app.get_options())
        if (option->count() > 0 && !std::ranges::count(common, option->get_name()))
            return option->get_name() + " is not for " + name;
    if (name == "map") return "";  // the rest is for the program
    std::vector<std::string> rest = app.remaining(true);
    if (rest.empty()) return "";
    if (rest[0][0] != '-') return name + " takes no argument " + rest[0];
    return name + " has no option " + rest[0] +
           did_you_mean(rest[0].substr(0, rest[0].find('=')), option_names(command));
}

// Says what is wrong, and where help is if the message does not end in a suggestion.
int usage_error_with(const std::string& problem, const std::string& help) {
    return usage_error(problem.ends_with('?') ? problem : problem + "; " + help);
}

// The commands with their options, and what these were set to.
class CommandLine {
public:
    CommandLine() {
        app_.name("gpu-run");
        auto formatter = std::make_shared<Formatter>();
        formatter->label("REQUIRED", "");
        formatter->label("Positionals", "Arguments");
        app_.formatter(formatter);
        app_.set_help_flag("-h,--help", "show this text; after a command, the command's");
        app_.set_version_flag("-V,--version", "gpu-run " GPURUN_VERSION, "show the version");
        app_.prefix_command();
        app_.option_defaults()->take_last();
        add_run_options(app_, run_options_);
        const char* no_colour = std::getenv("NO_COLOR");
        style_.has_colour = !(no_colour && *no_colour);
        set_style(style_);
        add_style(app_);
        add_runs();
        add_tools();
        for (CLI::App* command : app_.get_subcommands([](CLI::App*) { return true; }))
            command->group("Commands");
        app_.footer("Examples:\n" + std::string(help_text.examples) + "\n\n" +
                    std::string(help_text.notes) + "\n\nExit codes: " +
                    std::string(help_text.exit_codes));  // last, or the commands would inherit it
    }

    int run(int argc, char** argv) {
        // Its argument would be taken for one more command.
        const bool wants_help = argc > 1 && argv[1] == std::string_view("help");
        if (wants_help && (argc == 2 || argv[2][0] != '-'))
            return show_help(argc > 2 ? argv[2] : "");
        try {
            app_.parse(argc, argv);
        } catch (const CLI::CallForHelp&) {
            print(app_.help());
            return finish_output(0);
        } catch (const CLI::CallForVersion& version) {
            print(std::string(version.what()) + "\n");
            return finish_output(0);
        } catch (const CLI::ParseError& error) {
            return usage_error(explain(error) + "; gpu-run --help lists the options");
        }
        style_.has_colour &= !has_no_colour_;
        set_style(style_);
        for (const CLI::App* command : app_.get_subcommands())
            if (std::string problem = misplaced(app_, *command); !problem.empty())
                return usage_error_with(
                    problem, "gpu-run " + command->get_name() + " --help lists its options");
        for (std::string* device : {&batch_options_.device, &map_options_.run.device})
            if (device->empty()) *device = run_options_.device;
        for (const std::string& device :
             {run_options_.device, batch_options_.device, map_options_.run.device})
            if (!is_device_name(device))
                return usage_error("unknown device \"" + device +
                                   "\"; --device takes auto, cpu, cuda or cuda:N");
        const std::vector<CLI::App*> chosen = app_.get_subcommands();
        return chosen.empty() || *run_ ? start_run() : start(chosen[0]);
    }

private:
    int run_cache() {
        const std::optional<uint64_t> limit = parse_size(cache_size_);
        if (!cache_size_.empty() && !limit)
            return usage_error("--cache-size takes a size, such as 500MiB, not \"" + cache_size_ +
                               "\"");
        return show_cache(is_cleared_, limit);
    }

    CLI::App* add(const char* name, const char* help) { return app_.add_subcommand(name, help); }

    void add_files(CLI::App* command, const char* help) {
        command->add_option("FILE", files_, help)->required()->type_name("")->take_all();
    }

    void add_style(CLI::App& app) {
        app.add_flag("-q,--quiet", style_.is_quiet, "print nothing but output and errors");
        app.add_flag("--no-color", has_no_colour_, "never use colours; NO_COLOR does the same");
    }

    void add_device(CLI::App* command, std::string& device) {
        command->add_option("--device", device, "where to run: auto, cpu, cuda, cuda:N")
            ->type_name("DEVICE");
    }

    void add_runs() {
        run_ = add("run", "run a program or a function; the word run can be left out");
        add_run_options(*run_, run_options_);
        add_style(*run_);
        map_ =
            add("map", "run a program once for each file of a directory, or each line of a file");
        map_options_.run.device = "";
        add_map_options(*map_, map_options_);
        map_->footer(map_footer);
        map_->add_flag("-q,--quiet", style_.is_quiet,
                       "print no progress, nothing but output and errors");
        batch_ =
            add("batch", "run several programs or functions at once, one in each line of a file");
        batch_options_.command = "batch";
        batch_options_.device = "";
        add_device(batch_, batch_options_.device);
        batch_->add_flag("--stats", batch_options_.stats, "print how long each step took");
        batch_
            ->add_option("--report", batch_options_.report,
                         "write what happened to a file, as JSON")
            ->type_name("FILE");
        add_number(*batch_, "--timeout", "TIME", "stop after this time: 10s, 0.5, 200ms",
                   batch_options_.timeout, parse_seconds, "a time such as 10s or 200ms");
        add_files(batch_, "a file with a job in each line: [OPTIONS] FILE [ARGUMENTS]");
    }

    void add_tools() {
        compile_ = add("compile", "make machine code of modules, to keep or to ship");
        compile_
            ->add_option("-o,--output", compiling_.out,
                         "make a file to ship: the module with its machine code")
            ->type_name("FILE");
        compile_
            ->add_option("--target", compiling_.target, "with -o: what it runs on: cpu, cuda, all")
            ->type_name("TARGET");
        compile_
            ->add_option("--cpu", compiling_.cpu,
                         "with -o: the oldest CPU it runs on, by LLVM's name; native is this one")
            ->type_name("CPU");
        compile_->add_option("--emit", compiling_.emitted, "print intermediate code: ir, asm, ptx")
            ->type_name("KIND");
        add_files(compile_, "modules (.wasm, .wat)");
        cache_ = add("cache", "list the machine code that is kept");
        cache_->add_flag("--clear", is_cleared_, "remove all of it");
        cache_
            ->add_option(
                "--cache-size", cache_size_,
                "keep at most this much from now on; what was not used for longest goes first")
            ->type_name("SIZE");
        devices_ = add("devices", "list the devices of this machine");
        devices_->add_flag("--json", is_json_, "print JSON");
        validate_ = add("validate", "check modules without running them");
        validate_->add_flag("-v,--verbose", is_verbose_, "print a line for valid modules too");
        add_files(validate_, "modules (.wasm or .wat)");
        objdump_ = add("objdump", "show what is in modules, with the interpreter's code");
        objdump_->add_flag("--headers", dump_.headers_only,
                           "leave out the functions' instructions");
        objdump_->add_option("--function", dump_.function, "show this function, by index or name")
            ->type_name("F");
        add_files(objdump_, "modules (.wasm or .wat)");
        add_inspect();
        wast_ = add("wast", "run scripts of the official WebAssembly test suite");
        wast_->add_flag("-q,--quiet", is_quiet_, "print only files with failures, and the total");
        add_files(wast_, "scripts (.wast)");
        add_device(wast_, run_options_.device);
        wast_->add_option("--tier", run_options_.tier, "how to run: interp, native, auto")
            ->type_name("TIER");
        wast_->add_flag("--poison", run_options_.is_watched,
                        "check gpu-run itself: put canaries and poison into its memory");
        add("help", "show the options of a command")
            ->add_option("COMMAND", shell_, "a command; without one, all commands")
            ->type_name("");
        add("man", "print the manual page");
        completions_ = add("completions", "print completions for a shell: bash, zsh or fish");
        completions_->add_option("SHELL", shell_, "bash, zsh or fish")->type_name("");
    }

    void add_inspect() {
        inspect_ = add("inspect", "show the state of a process that --dump wrote");
        inspect_->add_option("--memory", range_, "show bytes of its memory: 0x400 64")
            ->type_name("ADDRESS SIZE")
            ->expected(2)
            ->take_all();
        add_number(*inspect_, "--strings", "N", "show text in its memory of at least N characters",
                   inspection_.strings, parse_process_count, "a number of characters");
        add_number(*inspect_, "--memory-number", "N", "which memory, if there are several",
                   inspection_.memory, parse_small_count, "a number");
        inspect_
            ->add_option("DUMP", inspection_.dump, "DIR/<number>, below the directory of --dump")
            ->required()
            ->type_name("");
    }

    int start(const CLI::App* command) {
        if (command == map_) return start_map();
        if (command == batch_)
            return files_.size() == 1 ? run_batch(files_[0], batch_options_)
                                      : usage_error("batch takes one file");
        if (command == wast_) {
            const std::string problem = check_names(run_options_);
            return problem.empty() ? run_scripts(files_, run_options_, is_quiet_)
                                   : usage_error(problem);
        }
        if (command == devices_) return list_devices(is_json_);
        if (command == compile_) {
            compiling_.files = files_;
            return compile_files(compiling_);
        }
        if (command == cache_) return run_cache();
        if (command == validate_) return validate_files(files_, is_verbose_);
        if (command == objdump_) return dump_files(files_, dump_);
        if (command == inspect_) return start_inspect();
        if (command == completions_) return print_completions(app_, shell_);
        print(manual_page(command_texts(app_), help_text));
        return finish_output(0);
    }

    int start_run() {
        RunOptions& run = run_options_;
        const std::string problem = take_file(*run_ ? *run_ : app_, run);
        if (!problem.empty())
            return usage_error_with(problem, "gpu-run --help shows how to call it");
        if (const std::string wrong = check_run(run); !wrong.empty()) return usage_error(wrong);
        // A word that is neither a file nor like the name of one was meant to be a command.
        const bool is_word = run.file.find_first_of("./") == run.file.npos;
        if (is_word && !is_standard_input(run.file) && access(run.file.c_str(), F_OK) != 0)
            if (std::string meant = did_you_mean(run.file, command_names(app_)); !meant.empty())
                return input_error(run.file + ": no such file or command" + meant);
        run.is_watched |= run.spoilt_process.has_value();
        if (!run.instances || run.resident) return run_file(run);
        return run_burst({&run, 1}, {run.device, run.timeout, run.stats, run.report, "run"});
    }

    int start_map() {
        std::string problem = take_file(*map_, map_options_.run);
        if (problem.empty()) problem = check_map(map_options_);
        if (!problem.empty())
            return usage_error_with(problem, "gpu-run map --help shows how to call it");
        map_options_.has_progress = !style_.is_quiet;
        return run_map(map_options_);
    }

    int start_inspect() {
        std::optional<uint64_t> address, size;
        if (range_.size() == 2) address = parse_count(range_[0]), size = parse_size(range_[1]);
        if (!range_.empty() && !(address && size))
            return usage_error("--memory takes an address and a size, such as 0x400 64");
        if (!range_.empty()) inspection_.range = {*address, *size};
        return inspect_dump(inspection_);
    }

    int show_help(const std::string& name) {
        const std::vector<std::string> names = command_names(app_);
        if (!name.empty() && !std::ranges::count(names, name))
            return usage_error_with("no command " + name + did_you_mean(name, names),
                                    "gpu-run --help lists the commands");
        print(name.empty() ? app_.help() : app_.get_subcommand(name)->help());
        return finish_output(0);
    }

    CLI::App app_{"Runs WebAssembly on GPUs and CPUs: programs, functions and test scripts."};
    CLI::App *run_, *map_, *batch_, *compile_, *cache_, *devices_, *validate_, *objdump_, *inspect_,
        *wast_, *completions_;
    OutputStyle style_;
    bool has_no_colour_ = false;
    RunOptions run_options_;  // wast has some of them
    MapOptions map_options_;
    BatchOptions batch_options_;
    std::vector<std::string> files_;
    CompileOptions compiling_;
    gpurun::engine::ObjdumpOptions dump_;
    InspectOptions inspection_;
    std::vector<std::string> range_;
    std::string shell_;       // that completions are for
    std::string cache_size_;  // empty: as it is
    bool is_cleared_ = false, is_json_ = false, is_verbose_ = false, is_quiet_ = false;
};

int run_command(int argc, char** argv) {
    hold_standard_streams();
    gpurun_set_notes([](void*, const char* text) { note_lines(text); }, nullptr);
    gpurun_set_compile_progress(
        [](void*, uint64_t done, uint64_t all) { show_compiled(done, all); }, nullptr);
    return CommandLine().run(argc, argv);
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
