// Where processes run. A Space is the memory of one process on a device, with the code memory
// it runs from; the host reads and writes it by index, never by pointer.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <span>

#include "abi/layout.h"
#include "base/result.h"

namespace gpurun::device {

// What is reserved. Untouched parts cost address space only, where the device can do that.
struct Sizes {
    u64 code_words = 0;
    u64 words = 0;
    u64 bytes = 0;
};

// Who may interrupt a run.
struct RunControl {
    const std::atomic<bool>* stop = nullptr;
    std::optional<std::chrono::steady_clock::time_point> deadline;
};

class Space {
public:
    virtual ~Space() = default;

    // All memory is zero at first. Ranges are the caller's to keep inside the sizes.
    virtual Result<void> write_code(u32 position, std::span<const u64> words) = 0;
    virtual Result<void> write_words(u32 index, std::span<const u32> words) = 0;
    virtual Result<void> read_words(u32 index, std::span<u32> words) = 0;
    virtual Result<void> read_bytes(u64 offset, std::span<u8> bytes) = 0;

    // Runs a thread until it ends, blocks or is interrupted; the latter leaves it `ready`.
    virtual Result<ThreadState> run(u32 thread, const RunControl& control) = 0;
    // The same for `count` instructions of code at the most.
    virtual Result<ThreadState> step(u32 thread, u64 count) = 0;
};

Result<std::unique_ptr<Space>> make_cpu_space(const Sizes& sizes);

}  // namespace gpurun::device
