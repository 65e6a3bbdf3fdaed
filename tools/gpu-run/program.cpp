// Options that say what runs and what it sees: files, arguments, environment, input.
#include <cstdlib>
#include <filesystem>

#include "attempt.h"
#include "commands.h"
#include "input_file.h"
#include "output.h"
#include "progress.h"

namespace gpurun::tool {
namespace {

// Adds HOST or HOST::GUEST. A directory without a name for the guest has its own.
Result<void> add_directory(const std::string& text, bool is_writable, api::Config& config) {
    usize colons = text.find("::");
    if (colons != text.npos) {
        config.directory(text.substr(0, colons), text.substr(colons + 2), is_writable);
        return {};
    }
    // Other programs part both names by one colon.
    std::error_code problem;
    if (const usize colon = text.find(':');
        colon != text.npos && !std::filesystem::exists(text, problem) &&
        std::filesystem::is_directory(text.substr(0, colon), problem))
        return Error{(is_writable ? "--dir " : "--dir-ro ") + text +
                     ": no such directory; two colons give it another name in the program: " +
                     text.substr(0, colon) + "::" + text.substr(colon + 1)};
    config.directory(text, text, is_writable);
    return {};
}

Result<void> add_environment(const std::string& text, api::Config& config) {
    if (text.empty() || text[0] == '=')
        return Error{"--env takes NAME=VALUE or NAME, not \"" + text + "\""};
    if (text.find('=') != text.npos) {
        config.environment(text);
    } else if (const char* inherited = std::getenv(text.c_str())) {
        config.environment(text + "=" + inherited);
    }
    return {};
}

void set_limits(const RunOptions& options, api::Config& config) {
    if (options.stack_slots) config.stack(*options.stack_slots);
    if (options.heap_words) config.heap(*options.heap_words);
    if (options.memory_bytes) config.memory(*options.memory_bytes);
    if (options.output_buffer) config.output_buffer(*options.output_buffer);
    if (options.fuel) config.fuel(*options.fuel);
    config.tier(*tier_of(options.tier));
    config.layout(*layout_of(options.layout));
    config.watched(options.is_watched);
    if (options.spoilt_process) config.spoil(*options.spoilt_process);
}

}  // namespace

std::optional<gpurun_tier> tier_of(const std::string& name) {
    if (name == "auto") return GPURUN_TIER_AUTO;
    if (name == "interp") return GPURUN_TIER_INTERP;
    if (name == "native") return GPURUN_TIER_NATIVE;
    if (name == "alternate") return GPURUN_TIER_ALTERNATE;  // for tests, as are the next
    if (name == "early") return GPURUN_TIER_EARLY;
    if (name == "partial") return GPURUN_TIER_PARTIAL;
    if (name == "quick") return GPURUN_TIER_QUICK;
    return std::nullopt;
}

std::optional<gpurun_layout> layout_of(const std::string& name) {
    if (name == "auto") return GPURUN_LAYOUT_AUTO;
    if (name == "linear") return GPURUN_LAYOUT_LINEAR;
    if (name == "interleaved") return GPURUN_LAYOUT_INTERLEAVED;
    return std::nullopt;
}

namespace {

Result<api::Module> load_from(const std::string& path) {
    if (!is_standard_input(path)) return attempt([&] { return api::Module::from_file(path); });
    const std::vector<u8> bytes = TRY(read_input(path));
    return attempt([&] {
        return api::Module::from_bytes({reinterpret_cast<const char*>(bytes.data()), bytes.size()},
                                       path);
    });
}

}  // namespace

Result<api::Module> load_module(const RunOptions& options) {
    api::Module module = TRY(load_from(options.file));
    if (options.allows_precompiled) module.allow_precompiled();
    if (options.invoke.empty() && !module.has_export("_start"))
        return Error{
            options.file +
            ": no _start function, so it is not a program; --invoke NAME calls another function"};
    return module;
}

Result<std::optional<std::string>> input_file(const RunOptions& options) {
    using Answer = std::optional<std::string>;
    if (options.input.empty()) return Answer();
    Result<std::vector<u8>> input = read_input(options.input);
    if (!input) return Error{"--stdin " + input.error().message};
    return Answer(std::string(input->begin(), input->end()));
}

Result<api::Config> make_config(const RunOptions& options) {
    api::Config config;
    if (!options.invoke.empty()) config.function(options.invoke);
    config.program_name(options.argv0.empty() ? options.file : options.argv0);
    for (const std::string& text : options.directories) TRY(add_directory(text, true, config));
    for (const std::string& text : options.read_only_directories)
        TRY(add_directory(text, false, config));
    for (const std::string& text : options.environment) TRY(add_environment(text, config));
    if (options.seed) config.seed(*options.seed);
    if (std::optional<std::string> input = TRY(input_file(options))) config.input(*input);
    config.keep_files(!options.out.empty()).traced(options.trace);
    config.write_progress(show_written);
    if (!options.dump.empty()) config.dump(options.dump);
    set_limits(options, config);
    return config;
}

void add_arguments(const RunOptions& options, api::Config& config) {
    for (const std::string& argument : options.arguments) config.argument(argument);
}

Result<api::Config> make_process_config(const RunOptions& options, u32 number,
                                        const std::optional<std::string>& input) {
    api::Config config;
    config.program_name(options.argv0.empty() ? options.file : options.argv0);
    for (const std::string& text : options.environment) TRY(add_environment(text, config));
    if (input) config.input(*input);
    for (std::string argument : options.arguments) {
        const std::string digits = std::to_string(number);
        for (usize at = 0; (at = argument.find("{}", at)) != argument.npos; at += digits.size())
            argument.replace(at, 2, digits);
        config.argument(argument);
    }
    return config;
}

Result<void> check_config(const RunOptions& options, const api::Module& module,
                          const api::Config& config) {
    Result<void> checked = attempt([&] { config.check(module); });
    if (!checked) return Error{options.file + ": " + checked.error().message};
    return {};
}

Result<void> make_dump_folder(const RunOptions& options, const api::Module& module) {
    if (options.dump.empty()) return {};
    Result<void> made = attempt([&] { api::make_dump_folder(options.dump, module); });
    if (!made) return Error{"--dump " + made.error().message};
    return {};
}

void note_dumps(u64 trapped, u64 dumped) {
    if (dumped < trapped)
        note(std::to_string(trapped) + " processes trapped, the state of " +
             std::to_string(dumped) + " of them is dumped");
}

void show_debug(api::Config& config) {
    config.debug([](std::string_view line) { say_more(line); });
}

void say_debug_lost(u64 count) {
    if (count > 0)
        say("lines of debug functions and traces that found no room: " + std::to_string(count),
            Tone::bad);
}

}  // namespace gpurun::tool
