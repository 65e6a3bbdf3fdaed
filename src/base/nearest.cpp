// Counts edits between names.
#include "base/nearest.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/ints.h"

namespace gpurun {
namespace {

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

const std::string* nearest(std::string_view name, std::span<const std::string> known) {
    constexpr usize least_prefix = 3;
    const std::string* best = nullptr;
    usize best_distance = std::max<usize>(2, name.size() / 3 + 1);
    for (const std::string& candidate : known) {
        usize distance = edit_distance(name, candidate, best_distance);
        if (distance >= best_distance) continue;
        best = &candidate;
        best_distance = distance;
    }
    if (best || name.size() < least_prefix) return best;
    const auto begun = std::ranges::find_if(
        known, [&](const std::string& candidate) { return candidate.starts_with(name); });
    return begun == known.end() ? nullptr : &*begun;
}

}  // namespace gpurun
