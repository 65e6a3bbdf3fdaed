// Standard input of gpu-run for many processes: all of them get all of it.
#include "piped_input.h"

#include <chrono>

#include "host/console.h"
#include "interrupt.h"

namespace gpurun::tool {
namespace {

host::Streams::Deadline deadline_in(std::optional<double> seconds) {
    using namespace std::chrono;
    constexpr double longest = 1e9;  // what a clock can count in nanoseconds
    if (!seconds || *seconds >= longest) return std::nullopt;
    return steady_clock::now() + duration_cast<nanoseconds>(duration<double>(*seconds));
}

}  // namespace

bool reads_input(const api::Module& module) {
    return module.has_import("wasi_snapshot_preview1", "fd_read") ||
           module.has_import("wasi_unstable", "fd_read");
}

Result<std::optional<std::string>> piped_input(std::optional<double> timeout_seconds) {
    constexpr usize most = usize{1} << 30, piece = 1 << 20;
    watch_interrupt();
    const host::Streams::Deadline deadline = deadline_in(timeout_seconds);
    host::Streams streams = host::console();
    std::string all;
    if (streams.terminals & 1) return std::optional(all);
    for (;;) {
        auto bytes = TRY(streams.read(piece, deadline, &interrupt_flag()));
        if (!bytes) return std::optional<std::string>();
        if (bytes->empty()) return std::optional(std::move(all));
        all.append(bytes->begin(), bytes->end());
        if (all.size() > most)
            return Error{"standard input is larger than 1 GiB, the most that processes can share"};
    }
}

}  // namespace gpurun::tool
