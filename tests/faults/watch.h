// Ends this program if what it does hangs, and prints where each of its threads is. Says nothing of
// what is only slow because others have the cores.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/ints.h"

namespace gpurun::faults {

// Something hangs once `patience` seconds have passed beyond those that this program's threads
// waited for a core, or once it has used so many seconds of the cores' time.
class Watch {
public:
    explicit Watch(double patience);
    Watch(const Watch&) = delete;
    ~Watch();

    // Between begin() and end() it watches. Afterwards no file of the watch is open. `what` is
    // printed of something that hangs, and stays until end().
    void begin(const char* what);
    void end();

private:
    void run();

    const double patience_;
    std::mutex mutex_;
    std::condition_variable changed_;
    bool is_watching_ = false, is_over_ = false;
    u64 turn_ = 0;  // calls of begin()
    const char* what_ = "";
    std::thread thread_;
};

}  // namespace gpurun::faults
