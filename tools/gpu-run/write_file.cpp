// Opens and writes.
#include "write_file.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace gpurun::tool {
namespace {

Error file_error(const char* option, const std::string& path) {
    return {option + path + ": " + std::strerror(errno)};
}

// Writes piece by piece until `is_over()`. Returns false if that was not all.
template <class IsOver>
Result<bool> write_pieces(const char* option, const std::string& path, std::string_view text,
                          IsOver is_over) {
    FILE* file = std::fopen(path.c_str(), "wb");
    if (!file) return file_error(option, path);
    bool is_written = true;
    while (is_written && !text.empty() && !is_over()) {
        const usize size = std::min(text.size(), patient_piece);
        is_written = std::fwrite(text.data(), 1, size, file) == size;
        text.remove_prefix(size);
    }
    is_written = is_written && std::fflush(file) == 0;
    int problem = errno;
    if (std::fclose(file) == 0 && is_written) return text.empty();
    if (!is_written) errno = problem;
    return file_error(option, path);
}

}  // namespace

Result<void> check_writable(const char* option, const std::string& path) {
    FILE* file = std::fopen(path.c_str(), "ab");
    if (!file) return file_error(option, path);
    std::fclose(file);
    return {};
}

Result<void> write_file(const char* option, const std::string& path, std::string_view text) {
    TRY(write_pieces(option, path, text, [] { return false; }));
    return {};
}

Result<bool> write_output(const char* option, const std::string& path, std::string_view text,
                          const Patience& patience) {
    return write_pieces(option, path, text, [&] { return patience.is_over(); });
}

}  // namespace gpurun::tool
