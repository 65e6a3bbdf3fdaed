// Reads counts, sizes and times.
#include "numbers.h"

#include <charconv>
#include <cmath>
#include <string>

namespace gpurun::tool {
namespace {

// Takes a number off the front of the text.
template <class T, class... Base>
std::optional<T> take(std::string_view& text, Base... base) {
    T value{};
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base...);
    if (error != std::errc()) return std::nullopt;
    text.remove_prefix(size_t(end - text.data()));
    return value;
}

}  // namespace

std::optional<uint64_t> parse_count(std::string_view text) {
    bool is_hex = text.starts_with("0x");
    if (is_hex) text.remove_prefix(2);
    std::optional<uint64_t> value = take<uint64_t>(text, is_hex ? 16 : 10);
    return text.empty() ? value : std::nullopt;
}

// K is KiB: memory has no powers of ten.
std::optional<uint64_t> parse_size(std::string_view text) {
    std::optional<uint64_t> value = take<uint64_t>(text);
    if (!value || text.empty()) return value;
    std::string unit;
    for (char c : text) unit += char(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
    if (unit == "b") return value;
    size_t power = std::string_view("kmgt").find(unit[0]);
    std::string_view rest = std::string_view(unit).substr(1);
    if (power == std::string_view::npos || (rest != "" && rest != "b" && rest != "ib"))
        return std::nullopt;
    uint64_t scaled;
    if (__builtin_mul_overflow(*value, uint64_t{1} << (10 * (power + 1)), &scaled))
        return std::nullopt;
    return scaled;
}

std::optional<double> parse_seconds(std::string_view text) {
    constexpr double longest = 1e9;  // thirty years; the clock's own type holds ten times that
    std::optional<double> value = take<double>(text);
    if (!value) return std::nullopt;
    if (text == "ms") {
        *value /= 1000;
    } else if (text != "" && text != "s") {
        return std::nullopt;
    }
    if (!(*value > 0)) return std::nullopt;
    return std::fmin(*value, longest);
}

}  // namespace gpurun::tool
