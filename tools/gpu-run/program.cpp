// Options that say what a program sees: files, arguments, environment, input.
#include "engine/program.h"

#include <cstdlib>

#include "commands.h"
#include "engine/load.h"
#include "engine/names.h"
#include "engine/trace.h"
#include "output.h"

namespace gpurun::tool {
namespace {

// HOST or HOST::GUEST. A directory without a name for the guest has its own.
host::Mount mount_of(const std::string& text, bool is_writable) {
    usize colons = text.find("::");
    if (colons == text.npos) return {text, text, is_writable};
    return {text.substr(0, colons), text.substr(colons + 2), is_writable};
}

// Then they are only counted; of one process that is traced, taken away.
constexpr u32 debug_records = 4096, traced_records = 65536;

}  // namespace

std::string entry_name(const RunOptions& options) {
    return options.invoke.empty() ? "_start" : options.invoke;
}

Result<const wasm::Export*> find_entry(const wasm::Module& module, const RunOptions& options) {
    auto error = [&](const std::string& message) { return Error{options.file + ": " + message}; };
    const std::string name = entry_name(options);
    if (options.invoke.empty() && !module.find_export(name))
        return error(
            "no _start function, so it is not a program; --invoke NAME calls another function");
    Result<const wasm::Export*> found = engine::find_function_export(module, name);
    if (!found) return error(found.error().message);
    return found;
}

Result<host::SystemOptions> system_options(const RunOptions& options) {
    host::SystemOptions system;
    for (const std::string& text : options.directories)
        system.mounts.push_back(mount_of(text, true));
    for (const std::string& text : options.read_only_directories)
        system.mounts.push_back(mount_of(text, false));
    for (const std::string& text : options.environment) {
        const char* inherited = nullptr;
        if (text.empty() || text[0] == '=')
            return Error{"--env takes NAME=VALUE or NAME, not \"" + text + "\""};
        if (text.find('=') != text.npos) {
            system.environment.push_back(text);
        } else if ((inherited = std::getenv(text.c_str()))) {
            system.environment.push_back(text + "=" + inherited);
        }
    }
    system.arguments.push_back(options.argv0.empty() ? options.file : options.argv0);
    if (options.invoke.empty())
        system.arguments.insert(system.arguments.end(), options.arguments.begin(),
                                options.arguments.end());
    system.has_numbered_arguments = options.instances.has_value();
    system.process_count = options.instances.value_or(1);
    system.seed = options.seed;
    system.keeps_files = !options.out.empty();
    system.is_traced = options.trace;
    system.debug_capacity = options.trace && options.instances ? traced_records : debug_records;
    if (!options.input.empty()) {
        Result<std::vector<u8>> input = engine::read_file(options.input);
        if (!input) return Error{"--stdin " + input.error().message};
        system.input = std::move(*input);
    }
    return system;
}

Result<engine::DumpFolder> make_dump_folder(const RunOptions& options, const wasm::Module& module) {
    auto made = engine::DumpFolder::make(options.dump, options.file, module);
    if (!made) return Error{"--dump " + made.error().to_string()};
    return made;
}

void say_debug(const std::vector<DebugRecord>& records, u64 dropped) {
    for (const DebugRecord& record : records) say_more(engine::to_string(record));
    if (dropped > 0)
        say(std::to_string(dropped) + " more debug messages came than there is room for (" +
            std::to_string(records.size()) + ")");
}

}  // namespace gpurun::tool
