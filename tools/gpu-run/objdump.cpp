// gpu-run objdump: prints what the engine says of modules.
#include "engine/objdump.h"

#include "commands.h"
#include "input_file.h"
#include "output.h"

namespace gpurun::tool {

int dump_files(const std::vector<std::string>& files, const engine::ObjdumpOptions& options) {
    int code = 0;
    for (const std::string& file : files) {
        auto module = load_input(file);
        if (!module) {
            code = input_error(module.error().to_string());
            continue;
        }
        if (files.size() > 1 && !print(file + ":\n\n")) break;
        Result<void> done = engine::objdump(**module, options, print);
        if (!done) code = input_error(file + ": " + done.error().to_string());
    }
    return finish_output(code);
}

}  // namespace gpurun::tool
