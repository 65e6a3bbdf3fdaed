#include "resident/figures.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace resident_load {

double cpu_seconds() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    auto seconds = [](const timeval& time) {
        return double(time.tv_sec) + 1e-6 * double(time.tv_usec);
    };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

std::string text_of(const char* format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return text;
}

double percentile(std::vector<double> values, double percent) {
    if (values.empty()) return 0;
    std::ranges::sort(values);
    return values[std::min(values.size() - 1, size_t(double(values.size()) * percent / 100))];
}

std::string times_json(std::vector<double> seconds) {
    JsonObject json;
    json.add_count("count", seconds.size());
    json.add_number("median_us", 1e6 * percentile(seconds, 50));
    json.add_number("p99_us", 1e6 * percentile(seconds, 99));
    json.add_number("most_us", 1e6 * percentile(seconds, 100));
    return json.line();
}

std::optional<double> number_in(std::string_view text, std::string_view name) {
    const std::string json(text), key = "\"" + std::string(name) + "\": ";
    const size_t at = json.find(key);
    if (at == json.npos) return {};
    return strtod(json.c_str() + at + key.size(), nullptr);
}

bool Checks::check(std::string_view what, bool holds, std::string_view text) {
    const std::string name = part.empty() ? std::string(what) : part + ": " + std::string(what);
    JsonObject row;
    row.add_text("name", name).add("ok", holds ? "true" : "false").add_text("text", text);
    rows_.push_back(row.line());
    failed_ += !holds;
    if (!holds) fprintf(stderr, "FAILED: %s: %.*s\n", name.c_str(), int(text.size()), text.data());
    return holds;
}

std::string Checks::json() const {
    std::string list;
    for (const std::string& row : rows_) list += (list.empty() ? "\n  " : ",\n  ") + row;
    return "[" + list + "\n ]";
}

MemoryUse memory_use(gpu::Machine& machine) {
    const gpurun_machine_stats stats = machine.stats();
    return {stats.memory_used, stats.system_memory_used};
}

void check_memory(gpu::Machine& machine, const std::optional<MemoryUse>& before, Checks& checks) {
    constexpr double patience = 10;  // of a machine that has nothing else to do
    const bool is_idle = machine.wait_idle(patience);
    checks.check("idle", is_idle, is_idle ? "no process is left" : "processes are left");
    if (!before) return;
    // What it wrote down last may be of a moment before.
    const auto begin = Clock::now();
    MemoryUse now = memory_use(machine);
    auto is_back = [&] {
        return now.memory <= before->memory && now.system_memory <= before->system_memory;
    };
    while (!is_back() && seconds_since(begin) < patience) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        now = memory_use(machine);
    }
    checks.check(
        "memory", is_back(),
        text_of("%llu bytes of memory and %llu of system memory in use, %llu and %llu "
                "before",
                (unsigned long long)now.memory, (unsigned long long)now.system_memory,
                (unsigned long long)before->memory, (unsigned long long)before->system_memory));
}

gpu::Config silent(const std::vector<std::string>& arguments) {
    gpu::Config config;
    for (const std::string& argument : arguments) config.argument(argument);
    config.inherit_streams();
    return config;
}

std::string output_of(gpu::Machine& machine, uint32_t program,
                      const std::vector<std::string>& arguments, double patience) {
    gpu::Config config;
    for (const std::string& argument : arguments) config.argument(argument);
    const uint32_t process = machine.spawn(program, config);
    std::optional<gpu::Machine::Ended> ended = machine.next(patience);
    if (!ended) throw gpu::Error(arguments[0] + " does not end");
    gpu::Process result = ended->result[0];
    if (ended->process != process || !result.is_success())
        throw gpu::Error(arguments[0] + ": " + result.message() + ": " +
                         std::string(result.error()));
    std::string text(result.output());
    while (text.ends_with('\n')) text.pop_back();
    return text;
}

}  // namespace resident_load
