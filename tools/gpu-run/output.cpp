// Standard output and standard error.
#include "output.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace gpurun::tool {
namespace {

int output_errno = 0;  // of the first write that failed

}  // namespace

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
    return input_error(std::string("cannot write to standard output: ") +
                       std::strerror(output_errno));
}

std::string counted(size_t count, const char* thing) {
    return std::to_string(count) + " " + thing + (count == 1 ? "" : "s");
}

void say(std::string_view message) { say_more("gpu-run: " + std::string(message)); }

void say_more(std::string_view text) {
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
    line += '\n';
    std::fwrite(line.data(), 1, line.size(), stderr);
}

int input_error(std::string_view message) {
    say(message);
    return exit_input;
}

int usage_error(std::string_view message) {
    say(message);
    return exit_usage;
}

}  // namespace gpurun::tool
