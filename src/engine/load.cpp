// Reads files and turns them into modules.
#include "engine/load.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "base/format.h"
#include "base/phases.h"
#include "host/files.h"
#include "text/assemble.h"
#include "wasm/limits.h"

namespace gpurun::engine {
namespace {

Error file_error(const std::string& path, const char* what) {
    return {format("%s: %s", path.c_str(), what)};
}

constexpr std::string_view magic("\0asm", 4), spaces(" \t\n\r");
constexpr const char* too_large = "is larger than 1 GiB, the most a module may have";

std::string_view as_text(const std::vector<u8>& bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Returns true if a file is text: it begins with a parenthesis, a comment or space, where binary
// modules have a zero.
bool is_text(std::string_view start) {
    usize first = start.find_first_not_of(spaces);
    return first == start.npos || start[first] == '(' || start[first] == ';';
}

// Returns true if a file is a component. Those have the magic number of modules; then follow a
// version and a layer, of 16 bits each: 1 and 0 for modules, a changing version and 1 for
// components.
bool is_component(std::string_view start) {
    constexpr std::string_view layer("\1\0", 2);
    return start.starts_with(magic) && start.substr(std::min<usize>(start.size(), 6), 2) == layer;
}

// Returns false if the first bytes rule a module out, so that endless files are not read to their
// end.
bool may_be_module(std::string_view start) {
    return start.starts_with(magic.substr(0, start.size())) || may_be_package(start) ||
           is_text(start);
}

// Returns an error whose place is the line of text that its offset was assembled from.
Error at_line(const text::Assembled& assembled, const std::string& path, const Error& error) {
    auto after = std::upper_bound(assembled.lines.begin(), assembled.lines.end(), error.offset,
                                  [](u64 offset, const auto& line) { return offset < line.first; });
    if (error.offset == Error::nowhere || after == assembled.lines.begin())
        return {format("%s: %s", path.c_str(), error.message.c_str())};
    text::Position at = std::prev(after)->second;
    return {format("%s:%u:%u: %s", path.c_str(), at.line, at.column, error.message.c_str())};
}

using Predicate = bool (*)(std::string_view start);

// Reads a file to its end, or until `is_wanted` returns false for what has been read so far.
Result<std::vector<u8>> read_while(int file, const std::string& path, Predicate is_wanted) {
    constexpr usize chunk = 1 << 16, most = usize{wasm::max_module_bytes} + 1;
    struct stat info;
    std::vector<u8> bytes;
    const char *problem = nullptr, *larger = is_wanted ? too_large : "is larger than 1 GiB";
    if (fstat(file, &info) != 0) {
        problem = std::strerror(errno);
    } else if (S_ISDIR(info.st_mode)) {
        problem = is_wanted ? "is a directory, expected a .wasm or .wat file"
                            : "is a directory, expected a file";
    } else if (info.st_size >= s64(most)) {
        problem = larger;
    } else {
        bytes.resize(S_ISREG(info.st_mode) ? usize(info.st_size) + 1 : chunk);
        usize size = 0;
        while (!problem) {
            if (size == bytes.size()) bytes.resize(std::min(bytes.size() * 2, most));
            ssize_t got = read(file, bytes.data() + size, bytes.size() - size);
            if (got < 0 && errno == EINTR) continue;
            if (got < 0) problem = std::strerror(errno);
            if (got <= 0) break;
            size += usize(got);
            if (size == most) problem = larger;
            if (is_wanted && !is_wanted(as_text(bytes).substr(0, std::min(size, chunk)))) break;
        }
        bytes.resize(size);
    }
    if (problem) return file_error(path, problem);
    return bytes;
}

Result<std::vector<u8>> read_while(const std::string& path, Predicate is_wanted) {
    const host::File file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file) return file_error(path, std::strerror(errno));
    return read_while(file.get(), path, is_wanted);
}

}  // namespace

Result<std::vector<u8>> read_file(const std::string& path) { return read_while(path, nullptr); }

Result<std::vector<u8>> read_stream(int descriptor, const std::string& name) {
    return read_while(descriptor, name, nullptr);
}

Result<std::shared_ptr<const wasm::Module>> load_file(const std::string& path) {
    return TRY(load_images_of_file(path))->module();
}

Result<std::shared_ptr<const wasm::Module>> load_bytes(std::vector<u8> bytes,
                                                       const std::string& path) {
    return TRY(load_images(std::move(bytes), path))->module();
}

Result<std::shared_ptr<Images>> load_images_of_file(const std::string& path) {
    PhaseTimer timer(Phase::load);
    return load_images(TRY(read_while(path, may_be_module)), path);
}

Result<std::shared_ptr<Images>> load_images(std::vector<u8> bytes, const std::string& path) {
    PhaseTimer timer(Phase::load);
    std::vector<ShippedImage> shipped;
    if (bytes.empty()) return file_error(path, "is empty, expected a WebAssembly module");
    if (bytes.size() > wasm::max_module_bytes) return file_error(path, too_large);
    if (!magic.starts_with(as_text(bytes)) && may_be_package(as_text(bytes))) {
        Result<Package> package = package_from_bytes(bytes);
        if (!package) return file_error(path, package.error().to_string().c_str());
        bytes = std::move(package->module);
        shipped = std::move(package->images);
        if (!as_text(bytes).starts_with(magic))
            return file_error(path, "is damaged: what it has is no module");
    }
    std::string_view start = as_text(bytes).substr(0, magic.size());
    if (!magic.starts_with(start) && !is_text(as_text(bytes)))
        return file_error(
            path, "0x0: magic header not detected: a module begins with \\0asm, text with (");
    if (is_component(as_text(bytes)))
        return file_error(path,
                          "is a component, for WASI 0.2 or later; gpu-run runs core modules: build "
                          "it for wasm32-wasip1");
    if (magic.starts_with(start)) {
        auto module = wasm::load(std::move(bytes));
        if (!module) return file_error(path, module.error().to_string().c_str());
        return std::make_shared<Images>(std::move(*module), path, std::move(shipped));
    }
    text::Assembled assembled = TRY(text::assemble(as_text(bytes), path));
    auto module = wasm::load(std::move(assembled.bytes));
    if (!module) return at_line(assembled, path, module.error());
    return std::make_shared<Images>(std::move(*module), path);
}

}  // namespace gpurun::engine
