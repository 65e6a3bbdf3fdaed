// Makes folders, and knows the one for large temporary files.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

namespace gpurun {

// Makes a folder and those above it, as far as they are missing. Whoever uses it finds out whether
// that was possible.
inline void make_folders(const std::string& path, mode_t mode) {
    for (auto at = path.find('/', 1); at != path.npos; at = path.find('/', at + 1))
        mkdir(path.substr(0, at).c_str(), mode);
    mkdir(path.c_str(), mode);
}

// Returns $TMPDIR, else a folder that is on a disk rather than in memory.
inline std::string temporary_folder() {
    const char* wanted = std::getenv("TMPDIR");
    if (wanted && *wanted) return wanted;
    return access("/var/tmp", W_OK) == 0 ? "/var/tmp" : "/tmp";
}

}  // namespace gpurun
