// Counts endings, asks the system for times and memory, and writes the file.
#include "report.h"

#include <sys/resource.h>

#include <chrono>
#include <cstdio>

#include "base/format.h"
#include "commands.h"
#include "interrupt.h"
#include "json.h"
#include "output.h"
#include "write_file.h"

namespace gpurun::tool {
namespace {

using std::chrono::steady_clock;

constexpr u64 schema_version = 1;
const steady_clock::time_point program_start = steady_clock::now();

const char* other_ending(gpurun_ending ending) {
    switch (ending) {
        case GPURUN_EXCEPTION: return "uncaught exception";
        case GPURUN_NO_FUEL: return "out of fuel";
        case GPURUN_BLOCKED: return "deadlock";
        case GPURUN_CLOSED: return "output closed";
        case GPURUN_STOPPED: return "interrupted";
        case GPURUN_KILLED: return "killed";
        case GPURUN_REFUSED: return "refused";
        case GPURUN_FAILED: return "failed";
        default: return "timeout";
    }
}

template <class Key>
std::string counts_json(const std::map<Key, u64>& counts) {
    JsonObject object;
    for (const auto& [key, count] : counts) {
        if constexpr (std::is_same_v<Key, u32>)
            object.add_count(std::to_string(key), count);
        else
            object.add_count(key, count);
    }
    return object.line();
}

double seconds_of(const timeval& time) { return double(time.tv_sec) + double(time.tv_usec) * 1e-6; }

std::string device_json(const api::Device& device) {
    return JsonObject()
        .add_text("id", device.id())
        .add_text("name", device.name())
        .add_text("driver", device.driver())
        .add_count("lanes", device.lanes())
        .line();
}

const char* source_name(gpurun_image_source source) {
    switch (source) {
        case GPURUN_IMAGE_NONE: break;
        case GPURUN_IMAGE_COMPILED: return "compiled";
        case GPURUN_IMAGE_CACHE: return "cache";
        case GPURUN_IMAGE_FILE: return "file";
    }
    return "none";
}

std::string native_json(const gpurun_native& native) {
    if (native.source == GPURUN_IMAGE_NONE) return "null";
    return JsonObject()
        .add_text("source", source_name(native.source))
        .add_count("functions", native.functions)
        .add_count("interpreted", native.interpreted)
        .add("compile_seconds", JsonObject()
                                    .add_number("build", native.build_seconds)
                                    .add_number("optimise", native.optimise_seconds)
                                    .add_number("emit", native.emit_seconds)
                                    .line())
        .add("interpreted_seconds",
             native.interpreted_seconds >= 0 ? json_number(native.interpreted_seconds) : "null")
        .line();
}

const char* reason_name(gpurun_layout_reason reason) {
    switch (reason) {
        case GPURUN_LAYOUT_UNTRIED: break;
        case GPURUN_LAYOUT_ASKED: return "asked";
        case GPURUN_LAYOUT_REMEMBERED: return "remembered";
        case GPURUN_LAYOUT_MEASURED: return "measured";
    }
    return "untried";
}

std::string layout_json(const gpurun_layout_choice& choice) {
    auto rate = [](double value) { return value > 0 ? json_number(value) : "null"; };
    return JsonObject()
        .add_text("reason", reason_name(choice.reason))
        .add("linear_per_second", rate(choice.linear_rate))
        .add("interleaved_per_second", rate(choice.interleaved_rate))
        .line();
}

// Of all jobs.
std::string tier_of_all(const std::vector<RunReport::Job>& jobs) {
    for (const RunReport::Job& job : jobs)
        if (job.tier != jobs[0].tier) return "several";
    return jobs.empty() ? "interp" : jobs[0].tier;
}

std::string machine_json(const std::optional<gpurun_machine_stats>& machine) {
    if (!machine) return "null";
    return JsonObject()
        .add_count("launches", machine->launches)
        .add_count("spawned", machine->spawned)
        .add_count("ended", machine->ended)
        .add_count("memory_bytes", machine->memory)
        .add_number("lane_seconds", machine->lane_seconds)
        .add_number("busy_lane_seconds", machine->busy_lane_seconds)
        .add_number("heartbeat_latest_seconds", machine->heartbeat_latest)
        .add_count("driver_calls", machine->driver_calls)
        .line();
}

std::string kernels_json(const gpurun_kernels& kernels) {
    return JsonObject()
        .add_count("loaded", kernels.loaded)
        .add_count("shipped", kernels.shipped)
        .add_count("refused", kernels.refused)
        .add_count("assembled", kernels.assembled)
        .line();
}

std::string to_json(const RunReport& report, const api::Device& device) {
    Endings all;
    std::string jobs;
    for (const RunReport::Job& job : report.jobs) {
        all.add(job.endings);
        jobs +=
            (jobs.empty() ? "\n    " : ",\n    ") + JsonObject()
                                                        .add_text("file", job.file)
                                                        .add_count("instances", job.endings.count())
                                                        .add("endings", job.endings.to_json())
                                                        .add_text("tier", job.tier)
                                                        .add("native", native_json(job.native))
                                                        .line();
    }
    double total = std::chrono::duration<double>(steady_clock::now() - program_start).count();
    double run = 0;
    JsonObject seconds;
    for (const auto& [name, spent] : api::phases()) {
        seconds.add_number(name, spent);
        if (name == "run") run = spent;
    }
    seconds.add_number("total", total);
    rusage usage = {};
    getrusage(RUSAGE_SELF, &usage);
    JsonObject object;
    object.add_text("schema", "gpu-run report")
        .add_count("version", schema_version)
        .add_text("gpu_run", GPURUN_VERSION)
        .add_text("command", report.command)
        .add("device", device_json(device))
        .add_text("tier", tier_of_all(report.jobs))
        .add_text("layout", report.is_interleaved ? "interleaved" : "linear")
        .add("layout_choice", layout_json(report.layout_choice))
        .add_count("instances", all.count())
        .add("endings", all.to_json())
        .add("jobs", "[" + jobs + "\n  ]")
        .add_count("exit_code", u64(report.exit_code))
        .add("seconds", seconds.line())
        .add_number("instances_per_second", run > 0 ? double(all.count()) / run : 0)
        .add_count("launches", device.launches())
        .add("kernels", kernels_json(device.kernels()))
        .add_count("slots", report.slots)
        .add("lanes_busy", report.busy > 0 ? json_number(report.busy) : "null")
        .add("memory", JsonObject()
                           .add_count("host_peak_bytes", u64(usage.ru_maxrss) << 10)
                           .add_count("device_peak_bytes", device.peak_bytes())
                           .line())
        .add("copied", JsonObject()
                           .add_count("to_device_bytes", device.bytes_in())
                           .add_count("from_device_bytes", device.bytes_out())
                           .line())
        .add("machine", machine_json(report.machine))
        .add_number("host_cpu_share",
                    (seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime)) / total);
    return object.lines();
}

}  // namespace

void say_layout(const api::Device& device, bool is_interleaved,
                const gpurun_layout_choice& choice) {
    if (device.id() == "cpu") return;
    std::string text = is_interleaved ? "interleaved memories: " : "linear memories: ";
    text += reason_name(choice.reason);
    auto add = [&](const char* name, double rate) {
        if (rate > 0) text += format(", %s %.0f/s", name, rate);
    };
    add("linear", choice.linear_rate);
    add("interleaved", choice.interleaved_rate);
    say(text);
}

void Endings::add(const api::Process& process, u64 count) {
    switch (process.ending()) {
        case GPURUN_RETURNED: exits_[0] += count; break;
        case GPURUN_EXITED: exits_[process.exit_code()] += count; break;
        case GPURUN_TRAPPED: traps_[process.message()] += count; break;
        default: others_[other_ending(process.ending())] += count; break;
    }
}

void Endings::add(const Endings& others) {
    for (const auto& [code, count] : others.exits_) exits_[code] += count;
    for (const auto& [name, count] : others.traps_) traps_[name] += count;
    for (const auto& [name, count] : others.others_) others_[name] += count;
}

void Endings::add_stopped(u64 count) {
    const gpurun_ending ending = was_interrupted() ? GPURUN_STOPPED : GPURUN_TIMED_OUT;
    if (count > 0) others_[other_ending(ending)] += count;
}

u64 Endings::count() const {
    u64 sum = 0;
    for (const auto& [code, count] : exits_) sum += count;
    for (const auto* counts : {&traps_, &others_})
        for (const auto& [name, count] : *counts) sum += count;
    return sum;
}

std::string Endings::to_json() const {
    return JsonObject()
        .add("exits", counts_json(exits_))
        .add("traps", counts_json(traps_))
        .add("others", counts_json(others_))
        .line();
}

std::string tier_name(const std::string& asked, const gpurun_native& native) {
    if (native.source == GPURUN_IMAGE_NONE) return "interp";
    if (native.interpreted_seconds >= 0) return "switched";
    return asked == "alternate" ? asked : "native";
}

void say_tier(const std::string& file, const std::string& tier, const gpurun_native& native) {
    std::string text = file + ": tier " + tier;
    if (native.source != GPURUN_IMAGE_NONE)
        text += ", " + counted(native.functions, "function") + " of machine code, " +
                std::to_string(native.interpreted) + " in the interpreter";
    if (native.source == GPURUN_IMAGE_CACHE) text += ", from the cache";
    if (native.source == GPURUN_IMAGE_FILE) text += ", from the file";
    if (native.source == GPURUN_IMAGE_COMPILED) {
        char spent[96];
        std::snprintf(spent, sizeof spent, ", compiled: build %.6f, optimise %.6f, emit %.6f",
                      native.build_seconds, native.optimise_seconds, native.emit_seconds);
        text += spent;
    }
    if (native.interpreted_seconds >= 0) {
        char spent[64];
        std::snprintf(spent, sizeof spent, ", after %.6f s in the interpreter",
                      native.interpreted_seconds);
        text += spent;
    }
    say(text);
}

Result<void> check_report(const std::string& path) {
    return path.empty() ? Result<void>() : check_writable("--report ", path);
}

Result<void> write_report(const std::string& path, const RunReport& report,
                          const api::Device& device) {
    return write_file("--report ", path, to_json(report, device));
}

Result<int> report_no_input(RunReport& report, const std::vector<u64>& processes,
                            const std::string& path, const std::string& device) {
    say(was_interrupted()
            ? interruption() + " before standard input had ended"
            : "timeout: standard input did not end within the time limit; --timeout raises it",
        Tone::bad);
    for (usize i = 0; i < processes.size(); i++) report.jobs[i].endings.add_stopped(processes[i]);
    report.exit_code = was_interrupted() ? interrupted_code() : exit_timeout;
    if (path.empty()) return report.exit_code;
    return finish_report(path, report, TRY(choose_device(device)));
}

int finish_report(const std::string& path, const RunReport& report, const api::Device& device) {
    if (path.empty()) return report.exit_code;
    Result<void> written = write_report(path, report, device);
    if (written) return report.exit_code;
    int code = input_error(written.error().to_string());
    return report.exit_code == 0 ? code : report.exit_code;
}

}  // namespace gpurun::tool
