// Finds what somebody probably meant.
#include "engine/names.h"

#include <algorithm>
#include <vector>

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

}  // namespace

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
