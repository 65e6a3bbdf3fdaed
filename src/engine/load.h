// From a file or bytes to a module: binary, text, or shipped with its machine code (.gpu), told
// apart by their first bytes.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "engine/images.h"
#include "wasm/module.h"

namespace gpurun::engine {

// Errors name the file, and for text the line.
Result<std::vector<u8>> read_file(const std::string& path);
// Reads an open file, which stays open; `name` is what errors call it.
Result<std::vector<u8>> read_stream(int descriptor, const std::string& name);
Result<std::shared_ptr<const wasm::Module>> load_file(const std::string& path);
// What a file of that name would have.
Result<std::shared_ptr<const wasm::Module>> load_bytes(std::vector<u8> bytes,
                                                       const std::string& name);
// The same for whoever wants its machine code too, as far as it was shipped.
Result<std::shared_ptr<Images>> load_images_of_file(const std::string& path);
Result<std::shared_ptr<Images>> load_images(std::vector<u8> bytes, const std::string& name);

}  // namespace gpurun::engine
