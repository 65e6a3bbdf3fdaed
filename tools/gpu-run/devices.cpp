// gpu-run devices: what is here, and what would fit.
#include <unistd.h>

#include <cinttypes>
#include <cstdio>

#include "attempt.h"
#include "commands.h"
#include "device/device.h"
#include "json.h"
#include "output.h"

namespace gpurun::tool {
namespace {

using device::DeviceInfo;

// Processes with this much memory, beside what else a process takes.
u64 fitting(const DeviceInfo& info, u64 memory) {
    constexpr u64 words_bytes = 40 << 10;
    return info.memory_free / (memory + words_bytes);
}

std::string as_json(const DeviceInfo& d) {
    char text[1024];
    std::snprintf(
        text, sizeof text,
        "  {\"id\": %s, \"name\": %s, \"driver\": %s, \"capability\": \"%u.%u\", "
        "\"multiprocessors\": %u, \"lanes\": %u, \"memory_total\": %" PRIu64
        ", "
        "\"memory_free\": %" PRIu64
        ", \"watchdog\": %s, "
        "\"fits\": {\"64KiB\": %" PRIu64 ", \"1MiB\": %" PRIu64 ", \"16MiB\": %" PRIu64 "}}",
        json_quoted(d.id).c_str(), json_quoted(d.name).c_str(), json_quoted(d.driver).c_str(),
        d.capability / 10, d.capability % 10, d.multiprocessors, d.lanes, d.memory_total,
        d.memory_free, d.has_watchdog ? "true" : "false", fitting(d, 64 << 10), fitting(d, 1 << 20),
        fitting(d, 16 << 20));
    return text;
}

std::string as_text(const DeviceInfo& d) {
    char text[1024];
    int size = std::snprintf(text, sizeof text, "%-8s %s\n", d.id.c_str(), d.name.c_str());
    auto add = [&](const char* pattern, auto... values) {
        size += std::snprintf(text + size, sizeof text - usize(size), pattern, values...);
    };
    if (d.capability)
        add("         compute capability %u.%u, CUDA driver %s%s\n", d.capability / 10,
            d.capability % 10, d.driver.c_str(),
            d.has_watchdog ? ", kernels are timed by a watchdog" : "");
    add("         %u %s, %u lanes, %" PRIu64 " of %" PRIu64 " MiB free\n", d.multiprocessors,
        d.capability ? "multiprocessors" : "cores", d.lanes, d.memory_free >> 20,
        d.memory_total >> 20);
    add("         room for %" PRIu64 " processes of 64 KiB, %" PRIu64 " of 1 MiB, %" PRIu64
        " of 16 MiB\n",
        fitting(d, 64 << 10), fitting(d, 1 << 20), fitting(d, 16 << 20));
    return text;
}

}  // namespace

Result<api::Device> choose_device(const std::string& id) {
    return attempt([&] {
        api::Device device(id);
        note_device(id, device.id(), device.name());
        return device;
    });
}

void note_device(const std::string& wanted, const std::string& id, const std::string& name) {
    if (wanted == "auto" && id != "cpu" && isatty(STDERR_FILENO))
        note("running on " + id + ", " + name);
}

int list_devices(bool json) {
    std::string missing;
    std::vector<DeviceInfo> devices = device::list_devices(missing);
    if (json) {
        print("[\n");
        for (usize i = 0; i < devices.size(); i++)
            print(as_json(devices[i]) + (i + 1 < devices.size() ? ",\n" : "\n"));
        print("]\n");
    } else {
        for (const DeviceInfo& device : devices) print(as_text(device));
        if (!missing.empty()) say(missing);
    }
    return finish_output(0);
}

}  // namespace gpurun::tool
