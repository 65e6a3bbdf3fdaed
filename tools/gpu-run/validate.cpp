// gpu-run validate: says what is wrong with modules, and nothing of those that are valid.
#include "commands.h"
#include "engine/load.h"
#include "output.h"

namespace gpurun::tool {

int validate_files(const std::vector<std::string>& files, bool verbose) {
    int code = 0;
    for (const std::string& file : files) {
        auto loaded = engine::load_file(file);
        if (!loaded) {
            code = input_error(loaded.error().to_string());
        } else if (verbose) {
            const wasm::Module& module = **loaded;
            print(file + ": valid, " + std::to_string(module.bytes.size()) + " bytes, " +
                  std::to_string(module.funcs.size() - module.imported_funcs) + " functions, " +
                  std::to_string(module.imports.size()) + " imports, " +
                  std::to_string(module.exports.size()) + " exports\n");
        }
    }
    return finish_output(code);
}

}  // namespace gpurun::tool
