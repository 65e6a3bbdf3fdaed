// Makes folders.
#pragma once

#include <sys/stat.h>

#include <string>

namespace gpurun {

// Makes a folder and those above it, as far as they are missing. Whoever uses it finds out whether
// that was possible.
inline void make_folders(const std::string& path, mode_t mode) {
    for (auto at = path.find('/', 1); at != path.npos; at = path.find('/', at + 1))
        mkdir(path.substr(0, at).c_str(), mode);
    mkdir(path.c_str(), mode);
}

}  // namespace gpurun
