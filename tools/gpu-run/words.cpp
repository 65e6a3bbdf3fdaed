// Splits a line into words.
#include "commands.h"

namespace gpurun::tool {

std::optional<std::vector<std::string>> split_words(std::string_view line) {
    std::vector<std::string> words;
    bool is_word = false;
    char quote = 0;
    for (usize i = 0; i < line.size(); i++) {
        char c = line[i];
        bool is_escape = c == '\\' && quote != '\'' && i + 1 < line.size();
        if (!quote && (c == ' ' || c == '\t' || c == '\r')) {
            is_word = false;
            continue;
        }
        if (!is_word) words.emplace_back();
        is_word = true;
        if (is_escape) {
            words.back() += line[++i];
        } else if (quote ? c == quote : c == '"' || c == '\'') {
            quote = quote ? 0 : c;
        } else {
            words.back() += c;
        }
    }
    if (quote) return std::nullopt;
    return words;
}

}  // namespace gpurun::tool
