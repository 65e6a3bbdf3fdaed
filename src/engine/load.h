// Loads a module from a file or bytes: binary, text, or shipped with its machine code (.gpu). The
// first bytes tell which.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "engine/images.h"
#include "wasm/module.h"

namespace gpurun::engine {

// Reads a file. Errors name it.
Result<std::vector<u8>> read_file(const std::string& path);
// Reads an open file, which stays open; `name` is what errors call it.
Result<std::vector<u8>> read_stream(int descriptor, const std::string& name);
Result<std::shared_ptr<const wasm::Module>> load_file(const std::string& path);
// Loads a module from the bytes of a file. Errors name it, and for text the line.
Result<std::shared_ptr<const wasm::Module>> load_bytes(std::vector<u8> bytes,
                                                       const std::string& name);
// Load a module with the machine code that was shipped with it, if any.
Result<std::shared_ptr<Images>> load_images_of_file(const std::string& path);
Result<std::shared_ptr<Images>> load_images(std::vector<u8> bytes, const std::string& name);

}  // namespace gpurun::engine
