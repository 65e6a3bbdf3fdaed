// The options of runs and maps, which set RunOptions and MapOptions, and what can be wrong with
// them.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "commands.h"
#include "map.h"

namespace gpurun::tool {

// Adds an option whose value `parse` reads; `wants` says what it takes.
template <class T, class Parse>
CLI::Option* add_number(CLI::App& app, const std::string& name, const char* value, const char* help,
                        T& to, Parse parse, const char* wants) {
    auto read = [=, &to](const std::string& text) {
        auto number = parse(text);
        if (!number)
            throw CLI::ValidationError(name + " takes " + wants + ", not \"" + text + "\"");
        to = *number;
        return true;
    };
    return app.add_option_function<std::string>(name, read, help)->type_name(value);
}

// Counts that fit 32 bits; the second is not 0.
std::optional<u32> parse_small_count(std::string_view text);
std::optional<u32> parse_process_count(std::string_view text);
bool is_device_name(std::string_view name);

// Returns the words that a value of this name can be, such as those of TIER, with spaces between
// them. Empty: it can be anything.
std::string_view value_words(std::string_view value);

void add_run_options(CLI::App& app, RunOptions& run);
// Adds the options of a run, less those that maps have no use for, and those of maps.
void add_map_options(CLI::App& app, MapOptions& map);

// Take the file and its arguments from what follows the options. Return what is wrong with them, or
// nothing.
std::string take_file(const CLI::App& app, RunOptions& run);

// Return what is wrong with the options, or nothing.
std::string check_names(const RunOptions& run);
std::string check_run(const RunOptions& run);
std::string check_map(const MapOptions& map);

// Returns the names of options and commands that are not hidden.
std::vector<std::string> option_names(const CLI::App& app);
std::vector<std::string> command_names(const CLI::App& app);

// Returns what is wrong with a command line, in the words of this program.
std::string explain(const CLI::ParseError& error);

// Reads a line of a batch: options, a file, arguments. Returns what is wrong with it, or nothing.
std::string parse_job(const std::vector<std::string>& words, RunOptions& job);

}  // namespace gpurun::tool
