// gpu-run cache: lists what is kept of machine code and kernels, or clears it.
#include "image/cache.h"
#include "commands.h"
#include "output.h"

namespace gpurun::tool {

int show_cache(bool is_cleared) {
    const image::Cache cache(image::Cache::default_folder());
    if (cache.folder().empty()) return input_error("nothing is kept: $GPURUN_CACHE is empty");
    if (is_cleared) cache.trim(0);
    u64 bytes = 0;
    const std::vector<image::Cache::Entry> entries = cache.entries();
    for (const image::Cache::Entry& entry : entries) {
        print(entry.name + "  " + entry.kind + "  " + std::to_string(entry.bytes) + " bytes\n");
        bytes += entry.bytes;
    }
    print(cache.folder() + ": " + std::to_string(entries.size()) + " entries, " +
          std::to_string(bytes) + " bytes\n");
    return finish_output(0);
}

}  // namespace gpurun::tool
