// What gpu-run itself prints: results on standard output, messages on standard error.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gpurun::tool {

inline constexpr int exit_input = 1, exit_usage = 2, exit_timeout = 124, exit_trap = 134,
                     exit_closed_pipe = 141;

// First of all: streams that are closed stay so, rather than become whatever file is opened next.
void hold_standard_streams();
// To standard output. False: nobody reads on, or it is full; finish_output says which.
bool print(std::string_view text);
// The last words of every command: `code`, or what became of the output.
int finish_output(int code);

std::string counted(size_t count, const char* thing);  // "1 export", "2 exports"

// How messages look. Colours are for terminals alone, whatever is said here.
struct OutputStyle {
    bool is_quiet = false;  // no notes, only what went wrong or was asked for
    bool has_colour = true;
};
void set_style(const OutputStyle& style);
bool is_quiet();

enum class Tone { plain, bad };

// "gpu-run: …" on standard error, control characters made visible.
void say(std::string_view message, Tone tone = Tone::plain);
void say_more(std::string_view line, Tone tone = Tone::plain);  // below it, without the prefix
// The same for what --quiet leaves out.
void note(std::string_view message, Tone tone = Tone::plain);
void note_more(std::string_view line, Tone tone = Tone::plain);
void note_lines(std::string_view text);     // note() of the first line, note_more() of the others
int input_error(std::string_view message);  // says it, returns exit_input
int usage_error(std::string_view message);  // says it, returns exit_usage

}  // namespace gpurun::tool
