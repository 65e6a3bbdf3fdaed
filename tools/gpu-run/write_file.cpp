// Opens and writes.
#include "write_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace gpurun::tool {
namespace {

Error file_error(const char* option, const std::string& path) {
    return {option + path + ": " + std::strerror(errno)};
}

}  // namespace

Result<void> check_writable(const char* option, const std::string& path) {
    FILE* file = std::fopen(path.c_str(), "ab");
    if (!file) return file_error(option, path);
    std::fclose(file);
    return {};
}

Result<void> write_file(const char* option, const std::string& path, std::string_view text) {
    FILE* file = std::fopen(path.c_str(), "wb");
    if (!file) return file_error(option, path);
    bool is_written =
        std::fwrite(text.data(), 1, text.size(), file) == text.size() && std::fflush(file) == 0;
    int problem = errno;
    if (std::fclose(file) == 0 && is_written) return {};
    if (!is_written) errno = problem;
    return file_error(option, path);
}

}  // namespace gpurun::tool
