// Reads files and turns them into modules.
#include "engine/load.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/format.h"
#include "text/assemble.h"
#include "wasm/limits.h"

namespace gpurun::engine {
namespace {

Error file_error(const std::string& path, const char* what) {
    return {format("%s: %s", path.c_str(), what)};
}

bool is_binary(const std::vector<u8>& bytes) {
    static constexpr u8 magic[] = {0, 'a', 's', 'm'};
    return bytes.size() >= 4 && std::equal(magic, magic + 4, bytes.begin());
}

// Text has no zero bytes and begins with a parenthesis, a comment or space.
bool may_be_text(const std::vector<u8>& bytes) {
    for (u8 byte : bytes) {
        if (byte == '(' || byte == ';') return true;
        if (byte != ' ' && byte != '\t' && byte != '\n' && byte != '\r') return false;
    }
    return false;
}

// Where the text has the instruction that an error's offset speaks of.
Error at_line(const text::Assembled& assembled, const std::string& path, const Error& error) {
    auto after = std::upper_bound(assembled.lines.begin(), assembled.lines.end(), error.offset,
                                  [](u64 offset, const auto& line) { return offset < line.first; });
    if (error.offset == Error::nowhere || after == assembled.lines.begin())
        return {format("%s: %s", path.c_str(), error.message.c_str())};
    text::Position at = std::prev(after)->second;
    return {format("%s:%u:%u: %s", path.c_str(), at.line, at.column, error.message.c_str())};
}

}  // namespace

Result<std::vector<u8>> read_file(const std::string& path) {
    int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return file_error(path, std::strerror(errno));
    struct stat info;
    std::vector<u8> bytes;
    const char* problem = nullptr;
    if (fstat(file, &info) != 0) {
        problem = std::strerror(errno);
    } else if (S_ISDIR(info.st_mode)) {
        problem = "is a directory, expected a .wasm or .wat file";
    } else if (info.st_size > s64(wasm::max_module_bytes)) {
        problem = "is larger than 1 GiB, the most a module may have";
    } else {
        bytes.resize(S_ISREG(info.st_mode) ? usize(info.st_size) + 1 : 1 << 16);
        usize size = 0;
        for (;;) {
            if (size == bytes.size()) bytes.resize(bytes.size() * 2);
            ssize_t got = read(file, bytes.data() + size, bytes.size() - size);
            if (got < 0 && errno == EINTR) continue;
            if (got < 0) problem = std::strerror(errno);
            if (got <= 0) break;
            size += usize(got);
            if (size > wasm::max_module_bytes) {
                problem = "is larger than 1 GiB, the most a module may have";
                break;
            }
        }
        bytes.resize(size);
    }
    close(file);
    if (problem) return file_error(path, problem);
    return bytes;
}

Result<std::shared_ptr<const wasm::Module>> load_file(const std::string& path) {
    std::vector<u8> bytes = TRY(read_file(path));
    if (bytes.empty()) return file_error(path, "is empty, expected a WebAssembly module");
    if (is_binary(bytes) || !may_be_text(bytes)) {
        auto module = wasm::load(std::move(bytes));
        if (!module) return file_error(path, module.error().to_string().c_str());
        return module;
    }
    std::string_view source(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    text::Assembled assembled = TRY(text::assemble(source, path));
    auto module = wasm::load(std::move(assembled.bytes));
    if (!module) return at_line(assembled, path, module.error());
    return module;
}

}  // namespace gpurun::engine
