// One line on a terminal that says how far a long run is. Nothing where there is no terminal.
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
    bool is_wanted_, is_shown_ = false;
    std::chrono::steady_clock::time_point begin_, drawn_;
    double first_share_ = -1;
};

}  // namespace gpurun::tool
