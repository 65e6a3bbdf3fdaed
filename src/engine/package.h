// Reads and writes .gpu files: a module with images of it, to ship. Reading checks a file's form,
// but not what its machine code does: who lets that run (Images::allow_shipped) trusts the file
// like an executable.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "codegen/codegen.h"

namespace gpurun::engine {

struct ShippedImage {
    codegen::Target target = codegen::Target::host;
    std::string cpu;        // of the host's, as in codegen::Options
    std::string key;        // codegen::target_key() of whoever made it
    std::vector<u8> bytes;  // codegen::to_bytes()
};

struct Package {
    std::vector<u8> module;
    std::vector<ShippedImage> images;
};

// Returns true if the first bytes, as many as there are, may be those of a package.
bool may_be_package(std::string_view start);
std::vector<u8> to_bytes(const Package& package);
Result<Package> package_from_bytes(std::span<const u8> bytes);

}  // namespace gpurun::engine
