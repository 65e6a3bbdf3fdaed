// The manual page, in the language of man(7).
#include "manual.h"

namespace gpurun::tool {
namespace {

// Text that man takes as it is: hyphens that stay hyphens, no line that is taken for a request.
std::string plain(std::string_view text) {
    std::string result;
    for (char c : text) {
        bool is_line_start = result.empty() || result.back() == '\n';
        if (is_line_start && (c == '.' || c == '\'')) result += "\\&";
        if (c == '\\') {
            result += "\\e";
        } else if (c == '-') {
            result += "\\-";
        } else {
            result += c;
        }
    }
    return result;
}

std::string option_text(const OptionText& option) {
    std::string names;
    for (const std::string& name : {option.short_name, option.long_name})
        if (!name.empty()) names += (names.empty() ? "\\fB" : ", \\fB") + plain(name) + "\\fR";
    if (!option.value.empty()) names += " \\fI" + plain(option.value) + "\\fR";
    return ".TP\n" + names + "\n" + plain(option.help) + "\n";
}

}  // namespace

std::string manual_page(const std::vector<CommandText>& commands, const HelpText& text) {
    std::string page = ".TH GPU\\-RUN 1 \"\" \"gpu\\-run " + plain(GPURUN_VERSION) +
                       "\" \"User Commands\"\n"
                       ".SH NAME\ngpu\\-run \\- runs WebAssembly on GPUs\n"
                       ".SH SYNOPSIS\n"
                       ".B gpu\\-run\n[\\fIOPTIONS\\fR] \\fIFILE\\fR [\\fIARGUMENTS\\fR]\n.br\n"
                       ".B gpu\\-run\n\\fICOMMAND\\fR [\\fIOPTIONS\\fR] \\fIFILE\\fR...\n"
                       ".SH DESCRIPTION\n" +
                       plain(commands[0].help) + "\n.PP\n" + plain(text.notes) + "\n.SH OPTIONS\n";
    for (const OptionText& option : commands[0].options) page += option_text(option);
    page += ".SH COMMANDS\n";
    for (const CommandText& command : commands) {
        if (command.name.empty()) continue;
        page += ".SS " + plain(command.name) + "\n" + plain(command.help) + "\n";
        if (command.name == "run") {
            page += "It takes the options above.\n";
            continue;
        }
        for (const OptionText& option : command.options) page += option_text(option);
    }
    return page + ".SH EXAMPLES\n.nf\n" + plain(text.examples) + "\n.fi\n.SH EXIT STATUS\n" +
           plain(text.exit_codes) + "\n";
}

}  // namespace gpurun::tool
