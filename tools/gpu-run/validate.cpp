// gpu-run validate: says what is wrong with modules, and nothing of those that are valid.
#include "commands.h"
#include "input_file.h"
#include "output.h"
#include "wasm/module.h"

namespace gpurun::tool {

int validate_files(const std::vector<std::string>& files, bool verbose) {
    int code = 0;
    for (const std::string& file : files) {
        auto loaded = load_input(file);
        if (!loaded) {
            code = input_error(loaded.error().to_string());
        } else if (verbose) {
            const wasm::Module& module = **loaded;
            print(file + ": valid, " + counted(module.bytes.size(), "byte") + ", " +
                  counted(module.funcs.size() - module.imported_funcs, "function") + ", " +
                  counted(module.imports.size(), "import") + ", " +
                  counted(module.exports.size(), "export") + "\n");
        }
    }
    return finish_output(code);
}

}  // namespace gpurun::tool
