// JSON for programs to read. Only writes it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace gpurun::tool {

// A string of JSON. What is not UTF-8 becomes U+FFFD: file names may hold any bytes.
std::string json_quoted(std::string_view text);
std::string json_number(double value);  // infinities and NaNs, which JSON has not, become 0

// The members of an object, in the order they are added.
class JsonObject {
public:
    // `value` is JSON itself.
    JsonObject& add(std::string_view name, std::string_view value);
    JsonObject& add_text(std::string_view name, std::string_view text);
    JsonObject& add_number(std::string_view name, double value);
    JsonObject& add_count(std::string_view name, uint64_t count);

    std::string line() const { return "{" + members_ + "}"; }  // on one line
    std::string lines() const;                                 // a member a line

private:
    std::string members_, member_lines_;
};

}  // namespace gpurun::tool
