// Draws the line at most ten times a second, as wide as the terminal has room for.
#include "progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "output.h"

namespace gpurun::tool {
namespace {

using std::chrono::steady_clock;

constexpr std::string_view cleared = "\r\033[K";
std::atomic<bool> is_drawn = false;  // a line is on the terminal
static_assert(std::atomic<bool>::is_always_lock_free);

// Programs that show a terminal's lines without being one say so.
bool has_terminal() {
    const char* kind = std::getenv("TERM");
    return isatty(STDERR_FILENO) && kind && std::string_view(kind) != "dumb";
}

size_t terminal_width() {
    winsize size = {};
    bool is_known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    return is_known ? size.ws_col : 80;
}

void draw(std::string line) {
    line.resize(std::min(line.size(), terminal_width() - 1));
    is_drawn = true;
    std::fprintf(stderr, "%s%s", cleared.data(), line.c_str());
    std::fflush(stderr);
}

void clear_line() {
    if (!is_drawn.exchange(false)) return;
    std::fputs(cleared.data(), stderr);
    std::fflush(stderr);
}

// "12,345"
std::string grouped(uint64_t number) {
    std::string digits = std::to_string(number);
    for (size_t at = digits.size(); at > 3;) digits.insert(at -= 3, ",");
    return digits;
}

// "1:05:09", "0:07"
std::string clock_text(double seconds) {
    constexpr double longest = 999 * 3600;
    auto all = static_cast<unsigned long long>(std::clamp(seconds, 0.0, longest) + 0.5);
    char text[64];
    if (all >= 3600)
        std::snprintf(text, sizeof text, "%llu:%02llu:%02llu", all / 3600, all / 60 % 60, all % 60);
    else
        std::snprintf(text, sizeof text, "%llu:%02llu", all / 60, all % 60);
    return text;
}

std::string bar(double share) {
    constexpr size_t width = 24;
    auto full = std::min(width, static_cast<size_t>(share * width));
    return "[" + std::string(full, '#') + std::string(width - full, '.') + "] ";
}

// A line of how many are done of something that may take long.
class Countdown {
public:
    explicit Countdown(const char* what) : what_(what) {}
    void show(uint64_t done, uint64_t all) {
        constexpr std::chrono::milliseconds silence(500);
        if (!std::exchange(is_going_on_, done < all)) begin_ = steady_clock::now();
        if (done >= all) return clear_line();
        if (is_quiet() || !has_terminal() || steady_clock::now() - begin_ < silence) return;
        draw("gpu-run: " + std::string(what_) + grouped(done) + " of " + grouped(all));
    }

private:
    const char* what_;
    steady_clock::time_point begin_;
    bool is_going_on_ = false;
};

}  // namespace

Progress::Progress(bool is_wanted)
    : is_wanted_(is_wanted && has_terminal()), begin_(steady_clock::now()), drawn_(begin_) {}

void Progress::show(uint64_t done, double share) {
    constexpr std::chrono::milliseconds pause(100);
    auto now = steady_clock::now();
    // What an earlier run did is part of the share, but took none of this one's time.
    if (first_share_ < 0) first_share_ = share;
    if (!is_wanted_ || now - drawn_ < pause) return;
    drawn_ = now;
    double seconds = std::chrono::duration<double>(now - begin_).count();
    char text[128];
    std::string line = "gpu-run: ";
    if (share >= 0) line += bar(share);
    std::snprintf(text, sizeof text, "%llu done, %.0f/s", static_cast<unsigned long long>(done),
                  static_cast<double>(done) / seconds);
    line += text;
    if (share > first_share_ && first_share_ >= 0) {
        double left = seconds * (1 - share) / (share - first_share_);
        std::snprintf(text, sizeof text, ", %d %%, %s left", static_cast<int>(share * 100),
                      clock_text(left).c_str());
        line += text;
    }
    draw(std::move(line));
}

void Progress::clear() { clear_line(); }

void show_written(uint64_t done, uint64_t all) {
    static Countdown files("Writing back files: ");
    files.show(done, all);
}

void show_compiled(uint64_t done, uint64_t all) {
    static Countdown parts("Compiling: ");
    parts.show(done, all);
}

void clear_progress() { clear_line(); }

void clear_progress_in_handler() {
    if (is_drawn) (void)!write(STDERR_FILENO, cleared.data(), cleared.size());
}

}  // namespace gpurun::tool
