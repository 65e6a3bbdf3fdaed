// Opens files by openat with O_NOFOLLOW, one name after another.
#include "host/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <memory>

#include "abi/system.h"

namespace gpurun::host {

File::~File() {
    int kept = errno;  // says why the caller gives up
    close();
    errno = kept;
}

bool File::close() { return descriptor_ < 0 || ::close(release()) == 0; }

bool is_name(std::string_view name) {
    return !name.empty() && name.size() <= max_name && name != "." && name != ".." &&
           name.find('/') == name.npos && name.find('\0') == name.npos;
}

bool is_zero(std::span<const u8> bytes) {
    return bytes.empty() ||
           (bytes[0] == 0 && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

std::pair<std::string_view, std::string_view> split_path(std::string_view path) {
    usize slash = path.rfind('/');
    if (slash == path.npos) return {{}, path};
    return {path.substr(0, slash), path.substr(slash + 1)};
}

File open_directory(int root, std::string_view path) {
    File at(openat(root, ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
    while (at && !path.empty()) {
        usize slash = path.find('/');
        std::string name(path.substr(0, slash));
        path = slash == path.npos ? std::string_view() : path.substr(slash + 1);
        if (!is_name(name)) {
            errno = EINVAL;
            return File();
        }
        at = File(openat(at.get(), name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    }
    return at;
}

File open_regular(int root, std::string_view path) {
    auto [folder, name] = split_path(path);
    File directory = open_directory(root, folder);
    if (!directory) return File();
    if (!is_name(name)) {
        errno = EINVAL;
        return File();
    }
    // If a pipe has replaced the file, opening it must not wait.
    File file(openat(directory.get(), std::string(name).c_str(),
                     O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    struct stat info;
    if (!file || fstat(file.get(), &info) != 0) return File();
    if (!S_ISREG(info.st_mode)) {
        errno = EINVAL;
        return File();
    }
    return file;
}

std::optional<std::vector<std::string>> list_names(int directory) {
    File listed(openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const std::unique_ptr<DIR, int (*)(DIR*)> stream(listed ? fdopendir(listed.get()) : nullptr,
                                                     closedir);
    if (!stream) return std::nullopt;
    listed.release();
    std::vector<std::string> names;
    errno = 0;
    while (const dirent* entry = readdir(stream.get())) {
        if (is_name(entry->d_name)) names.emplace_back(entry->d_name);
        errno = 0;
    }
    if (errno != 0) return std::nullopt;
    std::sort(names.begin(), names.end());
    return names;
}

bool write_at(int file, u64 offset, std::span<const u8> bytes) {
    for (u64 done = 0; done < bytes.size();) {
        ssize_t put = pwrite(file, bytes.data() + done, bytes.size() - done, off_t(offset + done));
        if (put < 0 && errno == EINTR) continue;
        if (put == 0) errno = ENOSPC;
        if (put <= 0) return false;
        done += u64(put);
    }
    return true;
}

std::string reason(int error) {
    std::string text = std::strerror(error);
    if (!text.empty()) text[0] = char(std::tolower(u8(text[0])));
    return text;
}

}  // namespace gpurun::host
