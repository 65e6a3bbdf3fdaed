// The standard streams of this program, for a guest that uses them while it runs.
#pragma once

#include <atomic>
#include <chrono>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/ints.h"
#include "base/result.h"

namespace gpurun::host {

// Bit n: stream n is a terminal.
u32 terminals();

// False: nobody reads it any more.
Result<bool> write_stream(int stream, std::string_view bytes);

// What there is of standard input, at most `most` bytes; empty: it has ended. Nothing: `deadline`
// passed first, or somebody wants to stop.
Result<std::optional<std::vector<u8>>> read_input(
    usize most, std::optional<std::chrono::steady_clock::time_point> deadline,
    const std::atomic<bool>* stop);

}  // namespace gpurun::host
