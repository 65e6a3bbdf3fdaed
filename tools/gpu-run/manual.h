// The options and commands as data, and what is made of them beside --help: completions for shells
// and a manual page.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gpurun::tool {

struct OptionText {
    std::string short_name, long_name;  // "-q", "--quiet"; either may be empty
    std::string value;                  // "FILE"; empty: it takes none
    std::string words;                  // what the value can be, with spaces; empty: anything
    std::string help;
};

// The first is gpu-run itself, without a name.
struct CommandText {
    std::string name, help;
    std::string words;  // what its argument can be, with spaces; empty: files
    std::vector<OptionText> options;
};

// What stands below the options in --help.
struct HelpText {
    std::string_view examples, notes, exit_codes;
};

// Empty: there are none for such a shell.
std::string completions(const std::vector<CommandText>& commands, std::string_view shell);
std::string manual_page(const std::vector<CommandText>& commands, const HelpText& text);

}  // namespace gpurun::tool
