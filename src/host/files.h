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
    bool close();  // returns false, with errno, if something was not written
    explicit operator bool() const { return descriptor_ >= 0; }

private:
    int descriptor_;
};

// Returns true if a directory can have an entry of that name: it is not empty, "." or "..", has no
// '/' or NUL, and is not too long.
bool is_name(std::string_view name);
// Returns true if all bytes are zero. A file may leave those out and still reads as zeros there.
bool is_zero(std::span<const u8> bytes);

// Splits a path at its last slash: "a/b/c" gives "a/b" and "c".
std::pair<std::string_view, std::string_view> split_path(std::string_view path);

// Opens a directory below root; an empty path is root itself. If the File is empty, errno says why.
File open_directory(int root, std::string_view path);
File open_regular(int root, std::string_view path);  // to be read

// Returns the names in a directory, sorted, or nullopt, with errno, if it cannot be read to its
// end.
std::optional<std::vector<std::string>> list_names(int directory);

// Writes all bytes. Returns false, with errno, if that fails.
bool write_at(int file, u64 offset, std::span<const u8> bytes);

// Returns the meaning of an errno as part of a sentence: "no such file or directory".
std::string reason(int error);

}  // namespace gpurun::host
