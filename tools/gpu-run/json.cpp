// Escapes and punctuation.
#include "json.h"

#include <charconv>
#include <cmath>
#include <cstdio>

namespace gpurun::tool {
namespace {

// Bytes of the UTF-8 character at the start, or 0: it is not one.
size_t character_size(std::string_view text) {
    auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
    unsigned first = byte(0);
    if (first < 0x80) return 1;
    size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4 || text.size() < size) return 0;
    for (size_t i = 1; i < size; i++)
        if ((byte(i) & 0xc0) != 0x80) return 0;
    bool is_overlong = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xf0 && byte(1) < 0x90);
    bool is_no_point = (first == 0xed && byte(1) >= 0xa0) || (first == 0xf4 && byte(1) >= 0x90);
    return is_overlong || is_no_point ? 0 : size;
}

}  // namespace

std::string json_quoted(std::string_view text) {
    std::string json = "\"";
    while (!text.empty()) {
        size_t size = character_size(text);
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
