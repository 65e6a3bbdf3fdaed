// One line on a terminal that says how far a long run, or writing back its files, is. Nothing where
// there is no terminal.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace gpurun::tool {

class Progress {
public:
    explicit Progress(bool is_wanted);
    ~Progress() { clear(); }

    // So many were done by this run, and it stands at that share of all there is; below 0: nobody
    // knows.
    void show(uint64_t done, double share);
    // Makes room for other lines.
    void clear();

private:
    bool is_wanted_;
    std::chrono::steady_clock::time_point begin_, drawn_;
    double first_share_ = -1;
};

// Shows how many files have been written back, once that has taken half a second. Nothing for
// --quiet. `done` is 0 when it begins, and `all` when it is over: then the line goes.
void show_written(uint64_t done, uint64_t all);
// Shows how much of the machine code that gpu-run waits for has been made, in the same way.
void show_compiled(uint64_t done, uint64_t all);
// Removes the line, whoever has drawn it: before a message, and before gpu-run ends in a signal
// handler.
void clear_progress();
void clear_progress_in_handler();

}  // namespace gpurun::tool
