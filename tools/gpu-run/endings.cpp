// Words and tables.
#include "endings.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>

#include "output.h"

namespace gpurun::tool {

std::string describe(const api::Process& process) {
    if (process.ending() == GPURUN_RETURNED) {
        std::string text;
        for (const gpurun_value& value : process.values())
            text += (text.empty() ? "" : " ") + api::to_string(value);
        return text;
    }
    std::string text = process.message();
    if (process.ending() == GPURUN_TRAPPED) text = "trap: " + text;
    if (std::vector<api::Frame> frames = process.frames(); !frames.empty()) {
        const api::Frame& frame = frames[0];
        char offset[32];
        std::snprintf(offset, sizeof offset, "0x%" PRIx64, frame.offset);
        text += " in " + frame.function + " at " + offset;
        if (!frame.source.empty()) text += ", " + frame.source;
    }
    if (process.is_initialising()) text += " in its initialisation";
    return text;
}

std::string all_ended(u64 count, const std::string& ending) {
    if (count == 1) return "1 process: " + ending;
    const bool is_verb = ending.starts_with("exited");
    return std::to_string(count) + " processes, all " + (is_verb ? "" : "alike: ") + ending;
}

bool is_stopped(const api::Process& process) {
    return process.ending() == GPURUN_TIMED_OUT || process.ending() == GPURUN_STOPPED;
}

void say_endings(std::vector<EndingCount> counts) {
    constexpr usize max_rows = 20;
    u64 all = 0;
    for (const EndingCount& row : counts) all += row.count;
    std::ranges::sort(counts, [](const EndingCount& a, const EndingCount& b) {
        return a.count != b.count ? a.count > b.count : a.first < b.first;
    });
    // What went wrong is said to those who want quiet too.
    bool is_bad = !std::ranges::all_of(counts, &EndingCount::is_success);
    auto tell = is_bad ? say : note;
    auto tell_more = is_bad ? say_more : note_more;
    if (counts.size() == 1) return tell(all_ended(all, counts[0].ending), Tone::plain);
    tell(std::to_string(all) + " processes ended like this:", Tone::plain);
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
