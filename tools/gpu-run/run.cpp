// Runs one module: an exported function, or _start.
#include <cstdio>

#include "commands.h"
#include "engine/load.h"
#include "engine/names.h"
#include "engine/trace.h"
#include "interrupt.h"
#include "output.h"
#include "profile.h"
#include "report.h"

namespace gpurun::tool {
namespace {

using engine::Completion;

// What happened, then a line a frame, innermost first.
int report(const Completion& completion, const RunOptions& options, const char* trap) {
    constexpr usize max_frames = 20;
    std::string message = completion.to_string();
    int code = exit_trap;
    switch (completion.kind) {
        case Completion::Kind::returned: return 0;
        case Completion::Kind::exited: return int(completion.exit_code & 0xff);
        case Completion::Kind::trapped:
            message = trap + message;
            if (completion.trap == Trap::call_stack_exhausted)
                message += "; --stack makes it larger";
            if (completion.trap == Trap::heap_exhausted) message += "; --heap makes it larger";
            break;
        case Completion::Kind::uncaught_exception:
            message = std::string(trap) + "an exception was thrown that nothing caught";
            break;
        case Completion::Kind::out_of_fuel:
            message = std::string(trap) + "out of fuel; --fuel gives it more";
            break;
        case Completion::Kind::blocked:
            message = std::string(trap) + "deadlock: it " + message;
            break;
        case Completion::Kind::stopped:
            code = was_interrupted() ? exit_interrupted : exit_timeout;
            message = was_interrupted() ? "interrupted"
                                        : "timeout: not done in time; --timeout gives it more";
            break;
    }
    say(options.file + ": " + message, Tone::bad);
    for (usize i = 0; i < completion.backtrace.size(); i++) {
        if (i == max_frames) {
            say_more("  ...");
            break;
        }
        const engine::Frame& frame = completion.backtrace[i];
        char place[32];
        std::snprintf(place, sizeof place, " (0x%x)", frame.wasm_offset);
        say_more("  " + std::string(i < 10 ? " " : "") + std::to_string(i) + ": " + frame.function +
                 place + (frame.source.empty() ? "" : " at " + frame.source));
    }
    return code;
}

}  // namespace

void say_phases() { say(engine::describe_phases()); }

namespace {

// Everything that can be wrong with the input is found before the program begins.
Result<int> run(const RunOptions& options) {
    std::shared_ptr<const wasm::Module> module = TRY(engine::load_file(options.file));
    auto error = [&](const std::string& message) { return Error{options.file + ": " + message}; };
    bool is_program = options.invoke.empty();
    const std::string name = entry_name(options);
    const wasm::Export* entry = TRY(find_entry(*module, options));
    // What stands after a program is for the program, not for _start.
    const std::vector<std::string> none;
    auto arguments = engine::parse_arguments(module->func_type(entry->index), name,
                                             is_program ? none : options.arguments);
    if (!arguments) return error(arguments.error().message);

    TRY(check_report(options.report));
    if (!options.profile.empty()) TRY(check_profile(options.profile));
    std::unique_ptr<device::Device> device = TRY(choose_device(options.device, false));
    device::RunControl control = run_control(options.timeout);
    engine::StoreOptions limits =
        engine::options_for(device->info(), *module, options.memory_bytes);
    limits.fuel = options.fuel;
    limits.stack_slots = options.stack_slots.value_or(limits.stack_slots);
    limits.heap_words = options.heap_words.value_or(limits.heap_words);
    limits.is_watched = options.is_watched;
    engine::ProgramOptions program;
    program.limits = limits;
    program.function = name;
    program.arguments = *arguments;
    program.system = TRY(system_options(options));
    program.is_profiled = !options.profile.empty();
    if (!options.dump.empty()) program.dump = TRY(make_dump_folder(options, *module));
    program.take_record = [](const DebugRecord& record) { say_more(engine::describe(record)); };
    Result<engine::ProgramEnding> ending = engine::run_program(*device, module, program, control);
    if (!ending) return error(ending.error().message);
    if (options.stats) say_phases();
    for (const engine::Value& value : ending->completion.results) print(value.to_string() + "\n");
    if (ending->files) say(ending->files->to_string());
    if (ending->dump) say("--dump " + ending->dump->to_string(), Tone::bad);
    bool is_all_written = !ending->files && !ending->dump;
    if (!options.profile.empty()) {
        Result<void> written =
            finish_profile(options.profile, options.file, ending->samples, *device);
        if (!written) say(written.error().to_string(), Tone::bad);
        is_all_written &= written.ok();
    }
    RunReport told{"run", {{options.file, {}}}};
    if (ending->was_output_closed) {
        told.jobs[0].endings.add_closed_output();
        told.exit_code = exit_closed_pipe;
    } else {
        told.jobs[0].endings.add(ending->completion);
        told.exit_code = report(ending->completion, options,
                                ending->has_begun ? "trap: " : "trap in its initialisation: ");
        if (!is_all_written && told.exit_code == 0) told.exit_code = exit_input;
    }
    told.exit_code = finish_output(told.exit_code);
    return finish_report(options.report, told, *device);
}

}  // namespace

int run_file(const RunOptions& options) {
    Result<int> code = run(options);
    return finish_output(code ? *code : input_error(code.error().to_string()));
}

}  // namespace gpurun::tool
