// Completions for bash, zsh and fish.
#include "manual.h"

namespace gpurun::tool {
namespace {

enum class Values { none, words, files, directories };

// Returns what can follow an option.
Values values_of(const OptionText& option) {
    if (!option.words.empty()) return Values::words;
    if (option.value == "DIR" || option.value == "HOST[::GUEST]") return Values::directories;
    return option.value.ends_with("FILE") ? Values::files : Values::none;
}

void append(std::string& list, const std::string& item, const char* separator) {
    if (!item.empty()) list += (list.empty() ? "" : separator) + item;
}

// For single quotes of a shell.
std::string unquoted(std::string_view text) {
    std::string result;
    for (char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return result;
}

// ---- bash --------------------------------------------------------------------------

// "wast:-q|wast:--quiet", so that an option is known with its command.
std::string bash_pattern(const CommandText& command, const OptionText& option) {
    std::string pattern;
    for (const std::string& name : {option.short_name, option.long_name})
        if (!name.empty()) append(pattern, command.name + ":" + name, "|");
    return pattern;
}

std::string bash_values(const OptionText& option) {
    switch (values_of(option)) {
        case Values::words:
            return "COMPREPLY=($(compgen -W '" + option.words + "' -- \"$current\")); ";
        case Values::files: return "COMPREPLY=($(compgen -f -- \"$current\")); ";
        case Values::directories: return "COMPREPLY=($(compgen -d -- \"$current\")); ";
        case Values::none: break;
    }
    return "";
}

std::string bash(const std::vector<CommandText>& commands) {
    std::string names, values, options, words;
    for (const CommandText& command : commands) {
        if (!command.words.empty())
            words += "        " + command.name + ") words='" + command.words + "' ;;\n";
        append(names, command.name, " ");
        std::string known;
        for (const OptionText& option : command.options) {
            append(known, option.short_name, " ");
            append(known, option.long_name, " ");
            if (!option.value.empty())
                values += "        " + bash_pattern(command, option) + ") " + bash_values(option) +
                          "return ;;\n";
        }
        options += "        '" + command.name + "') options='" + known + "' ;;\n";
    }
    return R"(# gpu-run's completions for bash: put this where bash-completion looks, or source it.
_gpu_run() {
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} command= options= words=
    local commands=')" +
           names + R"('
    if ((COMP_CWORD > 1)) && [[ " $commands " == *" ${COMP_WORDS[1]} "* ]]; then
        command=${COMP_WORDS[1]}
    fi
    case $command:$previous in
)" + values +
           R"(    esac
    case $command in
)" + options +
           R"(    esac
    case $command in
)" + words +
           R"(    esac
    if [[ $current == -* ]]; then
        COMPREPLY=($(compgen -W "$options" -- "$current"))
    elif [[ $words ]]; then
        COMPREPLY=($(compgen -W "$words" -- "$current"))
    else
        COMPREPLY=($(compgen -f -- "$current"))
        if ((COMP_CWORD == 1)); then COMPREPLY+=($(compgen -W "$commands" -- "$current")); fi
    fi
}
complete -o filenames -F _gpu_run gpu-run
)";
}

// ---- zsh ---------------------------------------------------------------------------

std::string zsh_values(const OptionText& option) {
    switch (values_of(option)) {
        case Values::words: return "(" + option.words + ")";
        case Values::files: return "_files";
        case Values::directories: return "_files -/";
        case Values::none: break;
    }
    return " ";
}

// '(-q --quiet)'{-q,--quiet}'[say nothing]' of _arguments.
std::string zsh_option(const OptionText& option) {
    std::string help;
    for (char c : option.help) {
        if (c == '[' || c == ']' || c == ':' || c == '\\') help += '\\';
        help += c;
    }
    std::string rest = "'[" + unquoted(help) + "]";
    if (!option.value.empty()) {
        std::string name;
        for (char c : option.value) name += c == ':' ? '.' : c;
        rest += ":" + name + ":" + zsh_values(option);
    }
    rest += "'";
    bool has_both = !option.short_name.empty() && !option.long_name.empty();
    if (has_both) return "{" + option.short_name + "," + option.long_name + "}" + rest;
    return "'*'" + option.short_name + option.long_name + rest;
}

std::string zsh_arguments(const CommandText& command) {
    return command.words.empty() ? "file:_files" : "name:(" + command.words + ")";
}

std::string zsh(const std::vector<CommandText>& commands) {
    std::string names, cases, main;
    for (const CommandText& command : commands) {
        std::string options;
        for (const OptionText& option : command.options)
            options += " \\\n            " + zsh_option(option);
        if (command.name.empty()) {
            main = options;
        } else {
            append(names, "'" + command.name + ":" + unquoted(command.help) + "'", "\n        ");
            cases += "        " + command.name + ") _arguments" + options +
                     " \\\n            '*:" + zsh_arguments(command) + "' ;;\n";
        }
    }
    return R"(#compdef gpu-run
# gpu-run's completions for zsh: put this into a folder of fpath, as _gpu-run.
_gpu-run() {
    local -a commands
    commands=(
        )" +
           names + R"(
    )
    if ((CURRENT == 2)) && [[ $words[2] != -* ]]; then
        _describe command commands
        _files
        return
    fi
    case $words[2] in
)" + cases +
           R"(        *) _arguments)" + main + R"( \
            '*:file:_files' ;;
    esac
}
_gpu-run "$@"
)";
}

// ---- fish --------------------------------------------------------------------------

std::string fish(const std::vector<CommandText>& commands) {
    std::string names, lines;
    for (const CommandText& command : commands) append(names, command.name, " ");
    for (const CommandText& command : commands) {
        std::string condition = command.name.empty()
                                    ? "not __fish_seen_subcommand_from " + names
                                    : "__fish_seen_subcommand_from " + command.name;
        if (!command.name.empty())
            lines += "complete -c gpu-run -n __fish_is_first_token -a " + command.name + " -d '" +
                     unquoted(command.help) + "'\n";
        if (!command.words.empty())
            lines += "complete -c gpu-run -n '" + condition + "' -f -a '" + command.words + "'\n";
        for (const OptionText& option : command.options) {
            lines += "complete -c gpu-run -n '" + condition + "'";
            if (!option.short_name.empty()) lines += " -s " + option.short_name.substr(1);
            if (!option.long_name.empty()) lines += " -l " + option.long_name.substr(2);
            switch (values_of(option)) {
                case Values::words: lines += " -x -a '" + option.words + "'"; break;
                case Values::files: lines += " -r"; break;
                case Values::directories: lines += " -x -a '(__fish_complete_directories)'"; break;
                case Values::none:
                    if (!option.value.empty()) lines += " -x";
            }
            lines += " -d '" + unquoted(option.help) + "'\n";
        }
    }
    return "# gpu-run's completions for fish: put this into "
           "~/.config/fish/completions/gpu-run.fish\n" +
           lines;
}

}  // namespace

std::string completions(const std::vector<CommandText>& commands, std::string_view shell) {
    if (shell == "bash") return bash(commands);
    if (shell == "zsh") return zsh(commands);
    return shell == "fish" ? fish(commands) : "";
}

}  // namespace gpurun::tool
