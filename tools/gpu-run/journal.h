// What of a map is done and what failed, in a file that only grows: a run that was interrupted, or
// killed, goes on from there. An entry is a line; one that is cut short does not count.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace gpurun::tool {

class Journal {
public:
    // `head` says what the run is. One that goes on must have the same as the one before.
    static Result<Journal> open(const std::string& path, const std::string& head, bool resumes);

    Journal(Journal&& other) noexcept;
    Journal& operator=(Journal&&) = delete;
    ~Journal();

    bool is_done(const std::string& name) const;  // by an earlier run
    void note_done(const std::string& name);
    void note_failed(const std::string& name, const std::string& why);
    // Writes what was noted.
    Result<void> settle();

private:
    Journal(std::string path, int file) : path_(std::move(path)), file_(file) {}
    Result<void> load(const std::string& head);

    std::string path_;
    int file_;
    std::vector<char> earlier_;           // what the file held
    std::vector<std::string_view> done_;  // in it, sorted
    std::string noted_;
};

}  // namespace gpurun::tool
