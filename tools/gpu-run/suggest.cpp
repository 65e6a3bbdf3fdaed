// Counts edits between words.
#include "suggest.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace gpurun::tool {
namespace {

// Returns how many letters must be inserted, removed, replaced or swapped with their neighbour to
// turn `a` into `b`.
size_t edits(std::string_view a, std::string_view b) {
    std::vector<size_t> before, above, row(b.size() + 1);
    for (size_t k = 0; k <= b.size(); k++) row[k] = k;
    for (size_t i = 1; i <= a.size(); i++) {
        before = std::exchange(above, row);
        row[0] = i;
        for (size_t k = 1; k <= b.size(); k++) {
            row[k] =
                std::min({above[k] + 1, row[k - 1] + 1, above[k - 1] + (a[i - 1] != b[k - 1])});
            const bool is_swapped = i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1];
            if (is_swapped) row[k] = std::min(row[k], before[k - 2] + 1);
        }
    }
    return row[b.size()];
}

}  // namespace

std::string nearest(std::string_view word, std::span<const std::string> known) {
    constexpr size_t least_prefix = 3;
    const size_t letters = word.size() - std::min(word.find_first_not_of('-'), word.size());
    // Two words of three letters that share one of them mean different things.
    size_t fewest = std::min<size_t>(2, letters / 2) + 1;
    std::string found;
    for (const std::string& name : known)
        if (const size_t count = edits(word, name); count < fewest) fewest = count, found = name;
    if (!found.empty() || letters < least_prefix) return found;
    const auto begun = std::ranges::find_if(
        known, [&](const std::string& name) { return name.starts_with(word); });
    return begun == known.end() ? "" : *begun;
}

std::string did_you_mean(std::string_view word, std::span<const std::string> known) {
    const std::string name = nearest(word, known);
    return name.empty() ? "" : "; did you mean " + name + "?";
}

}  // namespace gpurun::tool
