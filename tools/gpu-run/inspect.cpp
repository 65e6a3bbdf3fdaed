// gpu-run inspect: what is in a dump.
#include "engine/inspect.h"

#include "commands.h"
#include "output.h"

namespace gpurun::tool {
namespace {

Result<void> inspect(const InspectOptions& options) {
    engine::Dump dump = TRY(engine::read_dump(options.dump));
    bool shows_all = !options.range && !options.strings;
    if (shows_all) print(engine::describe_dump(dump));
    if (options.range)
        TRY(engine::print_memory(dump, options.memory, options.range->first, options.range->second,
                                 print));
    if (options.strings) TRY(engine::print_strings(dump, options.memory, *options.strings, print));
    return {};
}

}  // namespace

int inspect_dump(const InspectOptions& options) {
    Result<void> shown = inspect(options);
    return finish_output(shown ? 0 : input_error(shown.error().to_string()));
}

}  // namespace gpurun::tool
