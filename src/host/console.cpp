// Reads and writes descriptors 0, 1 and 2.
#include "host/console.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/format.h"

namespace gpurun::host {
namespace {

u32 terminals() {
    u32 bits = 0;
    for (int stream = 0; stream < 3; stream++) bits |= u32(isatty(stream)) << stream;
    return bits;
}

Result<bool> write_stream(int stream, std::string_view bytes) {
    // A write to a closed pipe must return an error here, not end the program.
    static const bool is_ignored = signal(SIGPIPE, SIG_IGN) != SIG_ERR;
    (void)is_ignored;
    while (!bytes.empty()) {
        ssize_t count = write(stream, bytes.data(), bytes.size());
        if (count < 0 && errno == EPIPE) return false;
        if (count < 0 && errno == EAGAIN) {
            pollfd wait{stream, POLLOUT, 0};
            poll(&wait, 1, 100);
            continue;
        }
        // A process goes on even if its messages cannot be shown.
        if (count < 0 && errno != EINTR && stream == STDERR_FILENO) return false;
        if (count < 0 && errno != EINTR)
            return Error{format("cannot write to standard output: %s", std::strerror(errno))};
        if (count > 0) bytes.remove_prefix(usize(count));
    }
    return true;
}

Result<Streams::Input> read_input(usize most, Streams::Deadline deadline,
                                  const std::atomic<bool>* stop) {
    using namespace std::chrono;
    using Answer = Streams::Input;
    constexpr milliseconds look(50);  // at the stop request
    for (;;) {
        milliseconds wait = look;
        if (deadline)
            wait = std::clamp(duration_cast<milliseconds>(*deadline - steady_clock::now()),
                              milliseconds(0), look);
        pollfd input{STDIN_FILENO, POLLIN, 0};
        int ready = poll(&input, 1, int(wait.count()));
        if (ready > 0) {
            std::vector<u8> bytes(most);
            ssize_t count = read(STDIN_FILENO, bytes.data(), bytes.size());
            if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
            // A standard input that is closed or missing counts as empty, as does a terminal that
            // is gone.
            if (count < 0 && errno != EBADF && !(errno == EIO && isatty(STDIN_FILENO)))
                return Error{format("cannot read standard input: %s", std::strerror(errno))};
            bytes.resize(count > 0 ? usize(count) : 0);
            return Answer(std::move(bytes));
        }
        if (stop && stop->load(std::memory_order_relaxed)) return Answer();
        if (deadline && steady_clock::now() >= *deadline) return Answer();
    }
}

}  // namespace

Streams console() { return {terminals(), write_stream, read_input}; }

}  // namespace gpurun::host
