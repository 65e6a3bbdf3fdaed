// Files come by the engine, standard input by its descriptor.
#include "input_file.h"

#include <unistd.h>

#include "engine/load.h"

namespace gpurun::tool {

Result<std::vector<u8>> read_input(const std::string& path) {
    return is_standard_input(path) ? engine::read_stream(STDIN_FILENO, path)
                                   : engine::read_file(path);
}

Result<std::shared_ptr<const wasm::Module>> load_input(const std::string& path) {
    if (!is_standard_input(path)) return engine::load_file(path);
    return engine::load_bytes(TRY(read_input(path)), path);
}

}  // namespace gpurun::tool
