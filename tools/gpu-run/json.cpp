// Escapes and punctuation.
#include "json.h"

#include <charconv>
#include <cmath>
#include <cstdio>

#include "base/utf8.h"

namespace gpurun::tool {
std::string json_quoted(std::string_view text) {
    std::string json = "\"";
    while (!text.empty()) {
        const u32 size = utf8_length(text);
        unsigned char first = static_cast<unsigned char>(text[0]);
        if (size == 0) {
            json += "\\ufffd";
        } else if (first < 0x20 || first == 0x7f) {
            char escape[8];
            std::snprintf(escape, sizeof escape, "\\u%04x", first);
            json += escape;
        } else {
            if (first == '"' || first == '\\') json += '\\';
            json += text.substr(0, size);
        }
        text.remove_prefix(size == 0 ? 1 : size);
    }
    return json + "\"";
}

std::string json_number(double value) {
    char buffer[32];
    auto end = std::to_chars(buffer, buffer + sizeof buffer, std::isfinite(value) ? value : 0);
    return std::string(buffer, end.ptr);
}

JsonObject& JsonObject::add(std::string_view name, std::string_view value) {
    std::string member = json_quoted(name) + ": " + std::string(value);
    members_ += (members_.empty() ? "" : ", ") + member;
    member_lines_ += (member_lines_.empty() ? "  " : ",\n  ") + member;
    return *this;
}

JsonObject& JsonObject::add_text(std::string_view name, std::string_view text) {
    return add(name, json_quoted(text));
}

JsonObject& JsonObject::add_number(std::string_view name, double value) {
    return add(name, json_number(value));
}

JsonObject& JsonObject::add_count(std::string_view name, uint64_t count) {
    return add(name, std::to_string(count));
}

std::string JsonObject::lines() const { return "{\n" + member_lines_ + "\n}\n"; }

}  // namespace gpurun::tool
