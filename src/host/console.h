// Where the standard streams of a guest lead while it runs: to those of this program, or elsewhere.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/ints.h"
#include "base/result.h"

namespace gpurun::host {

struct Streams {
    using Deadline = std::optional<std::chrono::steady_clock::time_point>;
    using Input = std::optional<std::vector<u8>>;

    u32 terminals = 0;  // bit n: stream n is a terminal
    // Writes output. Returns false if nobody reads it any more.
    std::function<Result<bool>(int stream, std::string_view bytes)> write;
    // Reads what there is of standard input, at most `most` bytes, and waits for some. Returns no
    // bytes if it has ended, and nullopt if `deadline` passed first or somebody wants to stop.
    std::function<Result<Input>(usize most, Deadline deadline, const std::atomic<bool>* stop)> read;
};

// Returns this program's own streams.
Streams console();

}  // namespace gpurun::host
