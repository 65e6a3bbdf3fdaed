// gpu-run cache: lists what is kept of machine code and kernels, or clears it.
#include "cache/cache.h"

#include <algorithm>
#include <ctime>

#include "commands.h"
#include "output.h"

namespace gpurun::tool {

namespace {

// "5 s", "3 min", "7 h", "12 days": how long ago that was.
std::string age(s64 since) {
    const s64 seconds = std::max<s64>(0, s64(std::time(nullptr)) - since);
    if (seconds < 60) return std::to_string(seconds) + " s";
    if (seconds < 3600) return std::to_string(seconds / 60) + " min";
    if (seconds < 2 * 86400) return std::to_string(seconds / 3600) + " h";
    return std::to_string(seconds / 86400) + " days";
}

}  // namespace

int show_cache(bool is_cleared, std::optional<uint64_t> limit) {
    const cache::Cache cache(cache::Cache::default_folder());
    if (cache.folder().empty()) return input_error("nothing is kept: $GPURUN_CACHE is empty");
    if (limit && !cache.set_limit(*limit))
        return input_error(cache.folder() + ": the limit cannot be written");
    if (is_cleared) cache.trim(0);
    u64 bytes = 0;
    const std::vector<cache::Cache::Entry> entries = cache.entries();
    for (const cache::Cache::Entry& entry : entries) {
        print(entry.name + "  " + entry.kind + "  " + std::to_string(entry.bytes) +
              " bytes, used " + age(entry.used) + " ago" +
              (entry.label.empty() ? "" : "  " + entry.label) + "\n");
        bytes += entry.bytes;
    }
    print(cache.folder() + ": " + std::to_string(entries.size()) + " entries, " +
          std::to_string(bytes) + " bytes, at most " + std::to_string(cache.limit()) + "\n");
    return finish_output(0);
}

}  // namespace gpurun::tool
