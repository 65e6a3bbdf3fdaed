// Standard output and standard error.
#include "output.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "progress.h"

namespace gpurun::tool {
namespace {

int output_errno = 0;  // of the first write that failed
OutputStyle style;

// Control characters made visible: what guests and file names hold is not for the terminal.
std::string visible(std::string_view text) {
    static constexpr char hex[] = "0123456789abcdef";
    std::string line;
    for (char c : text) {
        if (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f) {
            line += c;
        } else {
            line += '\\';
            line += hex[c >> 4];
            line += hex[c & 15];
        }
    }
    return line;
}

std::string painted(const std::string& text, const char* colour) {
    static const bool is_terminal = isatty(STDERR_FILENO);
    if (!style.has_colour || !is_terminal) return text;
    return std::string("\x1b[") + colour + "m" + text + "\x1b[0m";
}

constexpr const char *bold = "1", *red = "31", *bold_red = "1;31";

void write_line(std::string line) {
    clear_progress();
    line += '\n';
    std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace

void hold_standard_streams() {
    // The other way round, so that reading and writing fail as if they were closed.
    for (int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
        if (fcntl(number, F_GETFD) < 0 && errno == EBADF)
            (void)!open("/dev/null", number == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

bool print(std::string_view text) {
    if (output_errno == 0 && std::fwrite(text.data(), 1, text.size(), stdout) != text.size())
        output_errno = errno;
    return output_errno == 0;
}

// A closed pipe ends the process by its signal, without a word; where the signal is ignored the
// exit code is what a shell would have shown.
int finish_output(int code) {
    if (output_errno == 0 && std::fflush(stdout) != 0) output_errno = errno;
    if (output_errno == 0) return code;
    if (output_errno == EPIPE) return exit_closed_pipe;
    static bool is_said = false;  // commands finish more than once
    if (!std::exchange(is_said, true))
        say(std::string("cannot write to standard output: ") + std::strerror(output_errno),
            Tone::bad);
    return exit_input;
}

std::string counted(size_t count, const char* thing) {
    return std::to_string(count) + " " + thing + (count == 1 ? "" : "s");
}

void set_style(const OutputStyle& wanted) { style = wanted; }
bool is_quiet() { return style.is_quiet; }

void say(std::string_view message, Tone tone) {
    write_line(painted("gpu-run:", tone == Tone::bad ? bold_red : bold) + " " + visible(message));
}

void say_more(std::string_view line, Tone tone) {
    write_line(tone == Tone::bad ? painted(visible(line), red) : visible(line));
}

void note(std::string_view message, Tone tone) {
    if (!style.is_quiet) say(message, tone);
}

void note_more(std::string_view line, Tone tone) {
    if (!style.is_quiet) say_more(line, tone);
}

void note_lines(std::string_view text) {
    for (bool is_first = true; is_first || !text.empty(); is_first = false) {
        const std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(text.size(), line.size() + 1));
        is_first ? note(line) : note_more(line);
    }
}

int input_error(std::string_view message) {
    say(message, Tone::bad);
    return exit_input;
}

int usage_error(std::string_view message) {
    say(message, Tone::bad);
    return exit_usage;
}

}  // namespace gpurun::tool
