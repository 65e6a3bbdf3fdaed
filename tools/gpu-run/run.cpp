// Runs one module: an exported function, or _start.
#include <cinttypes>
#include <cstdio>

#include "attempt.h"
#include "commands.h"
#include "interrupt.h"
#include "output.h"
#include "profile.h"
#include "report.h"

namespace gpurun::tool {
namespace {

// What makes room for what there was too little of.
std::string hint_for(const std::string& trap) {
    if (trap == "call stack exhausted") return "; --stack makes it larger";
    if (trap == "object heap exhausted") return "; --heap makes it larger";
    return "";
}

}  // namespace

int say_ending(const api::Process& process, const RunOptions& options) {
    constexpr usize max_frames = 20;
    const std::string trap = "trap: ";
    std::string message = process.message();
    int code = exit_trap;
    switch (process.ending()) {
        case GPURUN_RETURNED: return 0;
        case GPURUN_EXITED: return int(process.exit_code() & 0xff);
        case GPURUN_CLOSED: return exit_closed_pipe;
        case GPURUN_TRAPPED:
            message = trap + message + (process.is_initialising() ? " in its initialisation" : "") +
                      hint_for(message);
            break;
        case GPURUN_EXCEPTION:
            message = trap + "an exception was thrown that nothing caught";
            break;
        case GPURUN_NO_FUEL: message = trap + "out of fuel; --fuel raises the limit"; break;
        case GPURUN_BLOCKED: message = trap + "deadlock: it " + message; break;
        case GPURUN_TIMED_OUT:
            code = exit_timeout;
            message = "timeout: the time limit was reached; --timeout raises it";
            break;
        case GPURUN_STOPPED:
            code = interrupted_code();
            message = interruption();
            break;
        case GPURUN_KILLED: return int(process.exit_code() & 0xff);  // as a shell has it
        case GPURUN_REFUSED:
        case GPURUN_FAILED: code = exit_input; break;
    }
    say(options.file + ": " + message, Tone::bad);
    std::vector<api::Frame> frames = process.frames();
    for (usize i = 0; i < frames.size(); i++) {
        if (i == max_frames) {
            say_more("  ...");
            break;
        }
        char place[32];
        std::snprintf(place, sizeof place, " (0x%" PRIx64 ")", frames[i].offset);
        say_more("  " + std::string(i < 10 ? " " : "") + std::to_string(i) + ": " +
                 frames[i].function + place +
                 (frames[i].source.empty() ? "" : " at " + frames[i].source));
    }
    return code;
}

void say_phases(const api::Device& device) {
    std::string text = "seconds:";
    for (const auto& [name, seconds] : api::phases()) {
        char spent[32];
        std::snprintf(spent, sizeof spent, " %.6f", seconds);
        text += (text.back() == ':' ? " " : ", ") + name + spent;
    }
    say(text);
    if (device.id() == "cpu") return;
    const gpurun_kernels kernels = device.kernels();
    auto count = [](u64 number) { return std::to_string(number); };
    say("kernels: " + count(kernels.loaded) + " loaded, " + count(kernels.shipped) +
        " of them shipped as machine code; the driver refused " + count(kernels.refused) +
        " and assembled " + count(kernels.assembled));
}

namespace {

// Everything that can be wrong with the input is found before the program begins.
Result<int> run(const RunOptions& options) {
    api::Module module = TRY(load_module(options));
    if (options.resident || (options.invoke.empty() && needs_machine(module))) {
        if (std::string name = unfit_for_machine(options); !name.empty())
            return usage_error(name + " is not for a resident machine, and " + options.file +
                               " needs one: it starts processes or threads");
        return run_resident(options, module);
    }
    api::Config config = TRY(make_config(options));
    add_arguments(options, config);
    TRY(check_config(options, module, config));
    TRY(check_report(options.report));
    if (!options.profile.empty()) TRY(check_profile(options.profile));
    api::Device device = TRY(choose_device(options.device));
    TRY(make_dump_folder(options, module));
    config.inherit_streams().profiled(!options.profile.empty());
    show_debug(config);
    limit(config, options.timeout);
    Result<api::Result> ran = attempt([&] { return api::run(device, module, config); });
    if (!ran) return Error{options.file + ": " + ran.error().message};
    const api::Process process = (*ran)[0];
    for (const gpurun_value& value : process.values()) print(api::to_string(value) + "\n");
    std::string files = ran->file_problem(), dump = ran->dump_problem();
    if (!files.empty()) say(files);
    if (!dump.empty()) say("--dump " + dump, Tone::bad);
    bool is_all_written = files.empty() && dump.empty();
    is_all_written &= tell_profile(options.profile, options.file, ran->stacks(), device, true);
    RunReport report{"run", {{options.file, {}}}};
    report.jobs[0].native = ran->native();
    report.jobs[0].tier = tier_name(options.tier, report.jobs[0].native);
    if (options.stats) say_phases(device);
    if (options.stats) say_tier(options.file, report.jobs[0].tier, report.jobs[0].native);
    report.jobs[0].endings.add(process);
    report.exit_code = say_ending(process, options);
    if (!is_all_written && report.exit_code == 0) report.exit_code = exit_input;
    report.exit_code = finish_output(report.exit_code);
    return finish_report(options.report, report, device);
}

}  // namespace

int run_file(const RunOptions& options) {
    Result<int> code = run(options);
    return finish_output(code ? *code : input_error(code.error().to_string()));
}

}  // namespace gpurun::tool
