// What of a map is done and what failed, in a file that only grows: a run that was interrupted, or
// killed, goes on from there. An entry is a line; one that is cut short does not count.
#pragma once

#include <optional>
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

    // What an earlier run noted of an input that it has done; nothing: it has not. Empty: the
    // version of gpu-run did not note any of it yet.
    std::optional<std::string_view> mark_of(const std::string& name) const;
    // What an earlier run noted of the module; empty: nothing.
    std::string_view module_mark() const { return module_mark_; }

    // A mark says what the input was, on one line without tabs.
    void note_done(const std::string& name, std::string_view mark);
    void note_module(std::string_view mark);
    void note_failed(const std::string& name, const std::string& why);
    // Writes what was noted.
    Result<void> flush();

private:
    Journal(std::string path, int file) : path_(std::move(path)), file_(file) {}
    Result<void> load(const std::string& head);

    std::string path_;
    int file_;
    std::vector<char> earlier_;  // what the file held
    struct NotedInput {
        std::string_view name, mark;
    };
    std::vector<NotedInput> inputs_;  // that it says are done, sorted
    std::string_view module_mark_;
    std::string noted_;
};

}  // namespace gpurun::tool
