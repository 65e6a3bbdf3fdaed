// Threads of the host that are always joined, and exceptions that become Errors. Memory can run out
// wherever the standard library is used, so no exception may leave a thread's function.
#pragma once

#include <algorithm>
#include <atomic>
#include <exception>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "base/ints.h"
#include "base/result.h"

namespace gpurun {

// Turns the exception that is being handled into an Error. Takes no memory for that if memory has
// run out.
Error caught_error() noexcept;

// Returns what `body` returns, a Result; an exception becomes its Error.
template <class Body>
auto guarded(Body&& body) noexcept -> decltype(body()) {
    try {
        return body();
    } catch (...) {
        return caught_error();
    }
}

// Starts a thread whose function throws nothing. `purpose` completes "cannot start a thread ...".
Result<std::thread> start_thread(const char* purpose, std::function<void()> function) noexcept;

// Joins threads wherever its scope is left.
class JoinGuard {
public:
    explicit JoinGuard(std::vector<std::thread>& threads) : threads_(threads) {}
    JoinGuard(const JoinGuard&) = delete;
    JoinGuard& operator=(const JoinGuard&) = delete;
    ~JoinGuard() { join(); }
    void join() {
        for (std::thread& thread : threads_) thread.join();
        threads_.clear();
    }

private:
    std::vector<std::thread>& threads_;
};

// Calls work(0) to work(count - 1) at the same time: the first in this thread, each of the others
// in a thread of its own. Where the system has no thread for one of them it is not called, so it is
// for work that those who are there share. Returns when all have returned; throws what one of them
// threw.
template <class Work>
void share_work(u32 count, const Work& work) {
    std::atomic_flag has_failed;
    std::exception_ptr failure;
    auto call = [&](u32 number) noexcept {
        try {
            work(number);
        } catch (...) {
            if (!has_failed.test_and_set()) failure = std::current_exception();
        }
    };
    std::vector<std::thread> threads;
    threads.reserve(count);
    {
        JoinGuard guard(threads);
        for (u32 number = 1; number < count; number++) {
            Result<std::thread> thread =
                start_thread("to share work", [&call, number] { call(number); });
            if (!thread) break;
            threads.push_back(std::move(*thread));
        }
        call(0);
    }
    if (failure) std::rethrow_exception(failure);
}

}  // namespace gpurun
