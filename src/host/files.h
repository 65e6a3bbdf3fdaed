// Files of the host, reached from an open directory name by name. No symbolic link is ever followed
// on the way, so what is reached lies below the directory whatever the tree looks like by then.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ints.h"

namespace gpurun::host {

using Number = unsigned long long;  // for format()

// Owns a file descriptor of the host.
class File {
public:
    explicit File(int descriptor = -1) : descriptor_(descriptor) {}
    File(File&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
    File& operator=(File&& other) noexcept {
        std::swap(descriptor_, other.descriptor_);
        return *this;
    }
    ~File();

    int get() const { return descriptor_; }
    int release() { return std::exchange(descriptor_, -1); }
    bool close();  // false: errno says what was not written
    explicit operator bool() const { return descriptor_ >= 0; }

private:
    int descriptor_;
};

// A name that a directory can hold: not empty, ".", "..", no '/' or NUL, not too long.
bool is_name(std::string_view name);
// What a file may leave out: it reads as zeros all the same.
bool is_zero(std::span<const u8> bytes);

// "a/b/c": "a/b" and "c".
std::pair<std::string_view, std::string_view> split_path(std::string_view path);

// Below root. Without a file in it, errno says why. An empty path is root itself.
File open_directory(int root, std::string_view path);
File open_regular(int root, std::string_view path);  // to be read

// The names in a directory, sorted. Nothing: it cannot be read to its end, errno says why.
std::optional<std::vector<std::string>> list_names(int directory);

// Writes all of it. False: errno says why not.
bool write_at(int file, u64 offset, std::span<const u8> bytes);

// errno's meaning as part of a sentence: "no such file or directory".
std::string reason(int error);

}  // namespace gpurun::host
