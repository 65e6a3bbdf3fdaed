// Hands things from one thread to another, one at a time: whoever is ahead waits.
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>

namespace gpurun::tool {

template <class T>
class Handoff {
public:
    // False: nobody takes any more.
    bool put(T thing) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return !thing_ || is_closed_; });
        if (is_closed_) return false;
        thing_ = std::move(thing);
        changed_.notify_all();
        return true;
    }
    // Nothing: no more will come.
    std::optional<T> take() {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return thing_ || is_closed_; });
        std::optional<T> taken = std::move(thing_);
        thing_.reset();
        changed_.notify_all();
        return taken;
    }
    // By either side. What was put before can still be taken.
    void close() {
        std::lock_guard lock(mutex_);
        is_closed_ = true;
        changed_.notify_all();
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::optional<T> thing_;
    bool is_closed_ = false;
};

}  // namespace gpurun::tool
