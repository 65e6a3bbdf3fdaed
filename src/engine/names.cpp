// Finds what somebody probably meant.
#include "engine/names.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include "engine/rust_name.h"
#include "wasm/print.h"

namespace gpurun::engine {
namespace {

constexpr usize max_listed = 8;

// Insertions, deletions, replacements and swaps of neighbours that turn one into the other;
// `limit` if there are that many or more.
usize edit_distance(std::string_view a, std::string_view b, usize limit) {
    if (a.size() > b.size()) std::swap(a, b);
    if (b.size() - a.size() >= limit) return limit;
    std::vector<usize> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
    for (usize j = 0; j <= b.size(); j++) last[j] = j;
    for (usize i = 1; i <= a.size(); i++) {
        row[0] = i;
        for (usize j = 1; j <= b.size(); j++) {
            row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = std::min(row[j], before[j - 2] + 1);
        }
        std::swap(before, last);
        std::swap(last, row);
    }
    return std::min(limit, last[b.size()]);
}

// "$LT$" and the like, and ".." for "::", in an identifier of Rust's.
std::string unescaped(std::string_view text) {
    static constexpr std::pair<std::string_view, char> named[] = {
        {"SP", '@'}, {"BP", '*'}, {"RF", '&'}, {"LT", '<'},
        {"GT", '>'}, {"LP", '('}, {"RP", ')'}, {"C", ','}};
    std::string result;
    if (text.starts_with("_$")) text.remove_prefix(1);
    while (!text.empty()) {
        usize end = text[0] == '$' ? text.find('$', 1) : text.npos;
        std::string_view inner = end == text.npos ? "" : text.substr(1, end - 1);
        auto same = [&](const auto& row) { return row.first == inner; };
        auto row = std::ranges::find_if(named, same);
        u32 code = 0;
        bool is_hex =
            inner.size() > 1 && inner.size() < 8 && inner[0] == 'u' &&
            std::from_chars(inner.data() + 1, inner.data() + inner.size(), code, 16).ptr ==
                inner.data() + inner.size();
        if (row != std::end(named)) {
            result += row->second;
        } else if (is_hex && code >= 0x20 && code < 0x7f) {
            result += char(code);
        } else if (text.starts_with("..")) {
            result += "::";
            end = 1;
        } else {
            result += text[0];
            end = 0;
        }
        text.remove_prefix(end + 1);
    }
    return result;
}

bool is_rust_hash(std::string_view part) {
    return part.size() == 17 && part[0] == 'h' &&
           part.find_first_not_of("0123456789abcdef", 1) == part.npos;
}

}  // namespace

// Lengths and identifiers between _ZN and E, the last of them a hash: without that it is C++.
std::string readable_name(std::string name) {
    if (auto readable = rust_v0_name(name)) return *readable;
    std::string_view left = name;
    if (!left.starts_with("_ZN")) return name;
    left.remove_prefix(3);
    std::string result;
    std::string_view part;
    while (!left.empty() && left[0] != 'E') {
        if (!part.empty()) result += (result.empty() ? "" : "::") + unescaped(part);
        usize size = 0;
        auto [digits_end, problem] = std::from_chars(left.data(), left.data() + left.size(), size);
        left.remove_prefix(usize(digits_end - left.data()));
        if (problem != std::errc() || size == 0 || size > left.size()) return name;
        part = left.substr(0, size);
        left.remove_prefix(size);
    }
    return is_rust_hash(part) && left == "E" && !result.empty() ? result : name;
}

std::string quoted(std::string_view name) {
    std::string text;
    wasm::append_quoted(text, name);
    return text;
}

std::string suggest(std::string_view name, std::span<const std::string> known) {
    const std::string* best = nullptr;
    usize best_distance = std::max<usize>(2, name.size() / 3 + 1);
    for (const std::string& candidate : known) {
        usize distance = edit_distance(name, candidate, best_distance);
        if (distance >= best_distance) continue;
        best = &candidate;
        best_distance = distance;
    }
    if (best) return "; did you mean " + quoted(*best) + "?";
    if (known.empty() || known.size() > max_listed) return "";
    std::string text = known.size() == 1 ? "; there is " : "; there are ";
    for (usize i = 0; i < known.size(); i++) (text += i == 0 ? "" : ", ") += quoted(known[i]);
    return text;
}

Result<const wasm::Export*> find_function_export(const wasm::Module& module,
                                                 std::string_view name) {
    const wasm::Export* found = module.find_export(name);
    if (found && found->kind == wasm::ExternKind::func) return found;
    if (found)
        return Error{"export " + quoted(name) + " is a " + to_string(found->kind) +
                     ", not a function"};
    std::vector<std::string> known;
    for (const wasm::Export& item : module.exports)
        if (item.kind == wasm::ExternKind::func) known.push_back(item.name);
    if (known.empty())
        return Error{"no exported function " + quoted(name) + ": the module exports none"};
    return Error{"no exported function " + quoted(name) + suggest(name, known)};
}

}  // namespace gpurun::engine
