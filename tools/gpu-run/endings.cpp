// Words and tables.
#include "endings.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>

#include "interrupt.h"
#include "output.h"

namespace gpurun::tool {

using engine::Completion;

std::string describe(const Completion& completion) {
    if (completion.kind == Completion::Kind::returned) {
        std::string text;
        for (const engine::Value& value : completion.results)
            text += (text.empty() ? "" : " ") + value.to_string();
        return text;
    }
    std::string text = completion.to_string();
    if (completion.kind == Completion::Kind::trapped) text = "trap: " + text;
    if (completion.kind == Completion::Kind::stopped && !was_interrupted()) text = "timeout";
    if (!completion.backtrace.empty()) {
        const engine::Frame& frame = completion.backtrace[0];
        char offset[16];
        std::snprintf(offset, sizeof offset, "0x%x", frame.wasm_offset);
        text += " in " + frame.function + " at " + offset;
        if (!frame.source.empty()) text += ", " + frame.source;
    }
    return text;
}

bool is_success(const Completion& completion) {
    return completion.kind == Completion::Kind::returned ||
           (completion.kind == Completion::Kind::exited && completion.exit_code == 0);
}

void say_endings(std::vector<EndingCount> counts) {
    constexpr usize max_rows = 20;
    u64 all = 0;
    for (const EndingCount& row : counts) all += row.count;
    std::ranges::sort(counts, [](const EndingCount& a, const EndingCount& b) {
        return a.count != b.count ? a.count > b.count : a.first < b.first;
    });
    std::string processes = std::to_string(all) + (all == 1 ? " process" : " processes");
    // What went wrong is said to those who want quiet too.
    bool is_bad = !std::ranges::all_of(counts, &EndingCount::is_success);
    auto tell = is_bad ? say : note;
    auto tell_more = is_bad ? say_more : note_more;
    if (counts.size() == 1) return tell(processes + ": " + counts[0].ending, Tone::plain);
    tell(processes + ", and how they ended:", Tone::plain);
    tell_more("     count   share      first  ending", Tone::plain);
    for (usize i = 0; i < counts.size() && i < max_rows; i++) {
        const EndingCount& row = counts[i];
        char numbers[64];
        std::snprintf(numbers, sizeof numbers, "%10" PRIu64 "  %5.1f%%  %9" PRIu64 "  ", row.count,
                      100 * double(row.count) / double(all), row.first);
        tell_more(numbers + row.ending, row.is_success ? Tone::plain : Tone::bad);
    }
    if (counts.size() > max_rows)
        tell_more("            and " + std::to_string(counts.size() - max_rows) + " other endings",
                  Tone::plain);
}

}  // namespace gpurun::tool
