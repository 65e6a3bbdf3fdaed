// Shares of functions, and the files.
#include "profile.h"

#include <algorithm>
#include <cinttypes>
#include <map>
#include <set>

#include "output.h"
#include "write_file.h"

namespace gpurun::tool {
namespace {

using api::StackSample;

struct Share {
    std::string function;
    u64 self = 0, total = 0;  // samples with it innermost, or anywhere
};

std::vector<Share> shares_of(std::span<const StackSample> samples) {
    std::map<std::string, Share> by_name;
    for (const StackSample& sample : samples) {
        by_name[sample.functions.back()].self += sample.count;
        // Recursion counts once.
        std::set<std::string_view> names(sample.functions.begin(), sample.functions.end());
        for (std::string_view name : names) by_name[std::string(name)].total += sample.count;
    }
    std::vector<Share> shares;
    for (auto& [name, share] : by_name) {
        share.function = name;
        shares.push_back(share);
    }
    std::ranges::sort(shares, [](const Share& a, const Share& b) {
        return std::tie(b.self, b.total, a.function) < std::tie(a.self, a.total, b.function);
    });
    return shares;
}

void say_shares(std::span<const StackSample> samples, u64 all) {
    constexpr usize max_rows = 20;
    std::vector<Share> shares = shares_of(samples);
    say_more("    self   total  function");
    for (usize i = 0; i < shares.size() && i < max_rows; i++) {
        char numbers[32];
        std::snprintf(numbers, sizeof numbers, "  %5.1f%%  %5.1f%%  ",
                      100 * double(shares[i].self) / double(all),
                      100 * double(shares[i].total) / double(all));
        say_more(numbers + shares[i].function);
    }
    if (shares.size() > max_rows)
        say_more("                  and " + counted(shares.size() - max_rows, "other function"));
}

// What of a GPU the processes used.
void say_usage(const api::Device& device, bool is_alone) {
    if (device.id() == "cpu") return;
    char text[160];
    std::snprintf(text, sizeof text,
                  "%" PRIu64
                  " launches, %.1f MiB copied to the device, "
                  "%.1f MiB from it",
                  device.launches(), double(device.bytes_in()) / (1 << 20),
                  double(device.bytes_out()) / (1 << 20));
    const std::string active =
        is_alone ? "1 of " + std::to_string(device.lanes()) + " lanes active, " : "";
    say(active + text);
}

}  // namespace

std::string folded_stacks(std::span<const StackSample> samples) {
    std::string text;
    for (const StackSample& sample : samples) {
        std::string line;
        for (const std::string& function : sample.functions) {
            if (!line.empty()) line += ';';
            for (char c : function) line += c == ';' ? ':' : u8(c) < 0x20 ? ' ' : c;
        }
        text += line + " " + std::to_string(sample.count) + "\n";
    }
    return text;
}

Result<void> check_profile(const std::string& name) {
    for (const char* ending : {".folded", ".svg"}) TRY(check_writable("--profile ", name + ending));
    return {};
}

Result<void> finish_profile(const std::string& name, const std::string& file,
                            std::span<const StackSample> samples, const api::Device& device,
                            bool is_alone) {
    u64 all = 0;
    for (const StackSample& sample : samples) all += sample.count;
    TRY(write_file("--profile ", name + ".folded", folded_stacks(samples)));
    TRY(write_file("--profile ", name + ".svg", flame_graph(samples, file)));
    if (all == 0) {
        say(is_alone
                ? "no profile: it ended before anybody looked at it; give it more to do"
                : "no profile: they ended before anybody looked at them; give them more to do");
        return {};
    }
    say("profile of " + file + ": " + counted(all, "sample") + ", in " + name + ".folded and " +
        name + ".svg");
    say_shares(samples, all);
    say_usage(device, is_alone);
    return {};
}

bool tell_profile(const std::string& name, const std::string& file,
                  std::span<const StackSample> samples, const api::Device& device, bool is_alone) {
    if (name.empty()) return true;
    Result<void> written = finish_profile(name, file, samples, device, is_alone);
    if (!written) say(written.error().to_string(), Tone::bad);
    return written.ok();
}

void MergedSamples::add(std::span<const StackSample> samples) {
    for (const StackSample& sample : samples) seen_[sample.functions] += sample.count;
}

std::vector<StackSample> MergedSamples::samples() const {
    std::vector<StackSample> all;
    for (const auto& [functions, count] : seen_) all.push_back({functions, count});
    return all;
}

}  // namespace gpurun::tool
