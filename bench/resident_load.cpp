// resident-load: a machine under load for a while, whether it did everything right, and how fast it
// was, as JSON. Exit code 1, and a line for each, if something that has to hold does not.
#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <map>
#include <thread>

#include "resident/compare.h"
#include "resident/figures.h"
#include "resident/mixed.h"

using namespace resident_load;

namespace {

struct Options {
    std::string device = "auto", guests, out, commit;
    MixedOptions mixed;
    double idle_seconds = 10, full_gang_seconds = 5;
    uint32_t samples = 1000;
    uint64_t million = 0;
    bool is_native = false, is_full_gang = false, stops_host = false, compares = false,
         is_strict = false;
    CompareOptions compare;
};

struct Programs {
    uint32_t load, spawns, instant;
};

std::string today() {
    const time_t now = time(nullptr);
    tm parts{};
    gmtime_r(&now, &parts);
    return text_of("%04d-%02d-%02d", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday);
}

void pause_between_samples() { std::this_thread::sleep_for(std::chrono::milliseconds(3)); }

std::vector<double> ping_times(gpu::Machine& machine, uint32_t count) {
    std::vector<double> times;
    for (uint32_t i = 0; i < count; i++) {
        pause_between_samples();
        times.push_back(machine.ping());
    }
    return times;
}

// Of processes that end at once, one at a time: until the host knows that it ended.
std::vector<double> end_times(gpu::Machine& machine, uint32_t program, uint32_t count) {
    std::vector<double> times;
    const gpu::Config instant = silent({});
    for (uint32_t i = 0; i < count; i++) {
        pause_between_samples();
        const auto begin = Clock::now();
        machine.spawn(program, instant);
        if (!machine.next(10)) throw gpu::Error("a process on a quiet machine does not end");
        times.push_back(seconds_since(begin));
    }
    return times;
}

// Of one that stays: until the host knows its pid. It is killed then.
std::vector<double> begin_times(gpu::Machine& machine, uint32_t program, uint32_t count) {
    constexpr uint32_t signal_kill = 9;
    std::vector<double> times;
    const gpu::Config waits = silent({"wait"});
    for (uint32_t i = 0; i < count; i++) {
        pause_between_samples();
        const auto begin = Clock::now();
        const uint32_t process = machine.spawn(program, waits);
        uint32_t pid = 0;
        while (pid == 0 && seconds_since(begin) < 10) pid = machine.pid(process);
        times.push_back(seconds_since(begin));
        machine.kill(pid, signal_kill);
        if (pid == 0 || !machine.next(10)) throw gpu::Error("a process cannot be killed");
    }
    return times;
}

std::string idle_json(gpu::Machine& machine, double seconds, bool is_strict, Checks& checks) {
    machine.wait_idle(10);
    const double cpu = cpu_seconds();
    const auto begin = Clock::now();
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    const double share = (cpu_seconds() - cpu) / seconds_since(begin);
    if (is_strict)
        checks.check("host CPU idle", share < 0.01, text_of("%.3f%% of a core", 100 * share));
    JsonObject json;
    json.add_number("seconds", seconds_since(begin)).add_number("host_cpu_share", share);
    return json.line();
}

// What was called between the two, of which nothing may wait but on the doorbell.
std::string driver_calls_json(const std::map<std::string, uint64_t>& before,
                              const std::map<std::string, uint64_t>& after, Checks& checks) {
    static constexpr const char* allowed[] = {"cuStreamWaitValue32_v2", "cuEventRecord",
                                              "cuEventSynchronize"};
    JsonObject json;
    std::string others;
    for (const auto& [name, count] : after) {
        auto found = before.find(name);
        const uint64_t calls = count - (found == before.end() ? 0 : found->second);
        if (calls == 0) continue;
        json.add_count(name, calls);
        if (std::ranges::find(allowed, name) == std::end(allowed)) others += " " + name;
    }
    checks.check("driver calls", others.empty(),
                 others.empty() ? "none but those for the doorbell" : "others:" + others);
    return json.line();
}

Programs load_programs(gpu::Machine& machine, const Options& options) {
    gpu::Config config;
    config.tier(options.is_native ? GPURUN_TIER_NATIVE : GPURUN_TIER_INTERP);
    std::vector<gpu::Module> modules;
    for (const char* name : {"load", "spawns", "instant"})
        modules.push_back(gpu::Module::from_file(options.guests + "/" + name + ".wasm"));
    const gpu::Program programs[] = {{"load", &modules[0], &config},
                                     {"spawns", &modules[1], &config},
                                     {"instant", &modules[2], &config}};
    const std::vector<uint32_t> numbers = machine.load(programs);
    return {numbers[0], numbers[1], numbers[2]};
}

// The machine of all parts but two; it is gone afterwards.
void run_machine(const gpu::Device& device, const Options& options, Checks& checks,
                 JsonObject& json) {
    gpu::Config config;
    config.inherit_streams();
    gpu::Machine machine(device, config);
    const bool is_cpu = device.id().starts_with("cpu");
    // Guests' instructions are the host's own there, and its clock goes on while it is stopped.
    const bool is_strict = options.is_strict && !is_cpu;
    const Programs programs = load_programs(machine, options);
    // It is launched with its first programs, once they are there; what is called from when it
    // answers until it is told to end is what it takes to run.
    machine.ping();
    const std::map<std::string, uint64_t> calls = device.driver_calls();

    JsonObject latency;
    const std::string count = std::to_string(options.samples);
    auto by_guest = [&](std::vector<std::string> arguments) {
        return output_of(machine, programs.spawns, arguments, 120);
    };
    const std::string by_guests = by_guest({"latency", count});
    latency.add("guest", by_guests);
    latency.add("guest_pipe", by_guest({"pipe", count}));
    latency.add("guest_rate", by_guest({"rate", std::to_string(20 * options.samples)}));
    latency.add("host_spawn_to_spawned",
                times_json(begin_times(machine, programs.load, options.samples)));
    latency.add("host_spawn_to_ended",
                times_json(end_times(machine, programs.instant, options.samples)));
    const std::vector<double> pings = ping_times(machine, options.samples);
    latency.add("ping_asleep", times_json(pings));
    const size_t both = by_guests.find("spawn_and_wait_us");
    const std::optional<double> median =
        both == by_guests.npos ? std::nullopt
                               : number_in(std::string_view(by_guests).substr(both), "median");
    if (is_strict)
        checks.check("spawn and wait between guests", median && *median < 50,
                     text_of("%.1f us", median.value_or(0)));
    if (is_strict)
        checks.check("ping, the host asleep", percentile(pings, 50) < 200e-6,
                     text_of("%.1f us", 1e6 * percentile(pings, 50)));
    json.add("latency", latency.line());
    json.add("idle", idle_json(machine, options.idle_seconds, is_strict, checks));

    // A first little load, so that what stays for good is there.
    MixedOptions first = options.mixed;
    first.seconds = std::min(0.5, options.mixed.seconds);
    checks.part = "first load";
    run_mixed(machine, programs.load, first, std::nullopt, false, checks);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));  // until it has written it down
    const MemoryUse before = memory_use(machine);
    checks.part = "load";
    json.add("load", run_mixed(machine, programs.load, options.mixed, before, is_strict, checks));
    if (options.stops_host) {
        MixedOptions stopped = options.mixed;
        stopped.stop_host = 5;
        stopped.seconds = std::min(10.0, options.mixed.seconds) + stopped.stop_host;
        checks.part = "stopped host";
        json.add("stopped_host", run_mixed(machine, programs.load, stopped, before, false, checks));
    }
    checks.part = "full gang";
    if (options.is_full_gang)
        json.add("full_gang", run_full_gang(machine, programs.load, options.full_gang_seconds,
                                            is_strict, checks));
    checks.part = "spawns in all";
    if (options.million > 0)
        json.add("spawns_in_all",
                 run_many_spawns(machine, programs.load, options.million, options.mixed.spawners,
                                 60 + 1e-3 * double(options.million), before, checks));
    checks.part = "";
    json.add("driver_calls", driver_calls_json(calls, device.driver_calls(), checks));
    const auto begin = Clock::now();
    machine.close();
    const double seconds = seconds_since(begin);
    const gpurun_machine_stats stats = machine.stats();
    checks.check("launches", stats.launches == 1,
                 text_of("%llu", (unsigned long long)stats.launches));
    if (is_strict)
        checks.check("heartbeat", stats.heartbeat_latest < 0.1,
                     text_of("%.3f ms at the latest", 1e3 * stats.heartbeat_latest));
    json.add_count("launches", stats.launches).add_count("lanes", stats.lanes);
    json.add_count("heartbeat_latest_ns", uint64_t(1e9 * stats.heartbeat_latest));
    json.add_count("slowest_warp", stats.slowest_warp)
        .add_count("slowest_phase", stats.slowest_phase);
    json.add_number("stop_seconds", seconds);
}

// Of a machine whose host does not sleep.
void ping_spinning(const gpu::Device& device, const Options& options, Checks& checks,
                   JsonObject& json) {
    gpu::Config config;
    config.spin(10000);  // longer than what is between two
    config.inherit_streams();
    gpu::Machine machine(device, config);
    const std::vector<double> pings = ping_times(machine, options.samples);
    if (options.is_strict && !device.id().starts_with("cpu"))
        checks.check("ping, the host spinning", percentile(pings, 50) < 20e-6,
                     text_of("%.1f us", 1e6 * percentile(pings, 50)));
    json.add("ping_spinning", times_json(pings));
    const Programs programs = load_programs(machine, options);
    json.add("host_spawn_to_ended_spinning",
             times_json(end_times(machine, programs.instant, options.samples)));
    machine.close();
}

int run(const Options& options, const std::string& command) {
    const gpu::Device device(options.device);
    Checks checks;
    JsonObject json, about;
    about.add_text("id", device.id()).add_text("name", device.name());
    json.add_text("date", today()).add_text("commit", options.commit);
    json.add_text("command", command).add("device", about.line());
    json.add_text("driver", device.driver());
    // What one part found is worth something without the others.
    auto guarded = [&](const char* part, const auto& body) {
        try {
            body();
        } catch (const std::exception& problem) {
            checks.check(part, false, problem.what());
        }
        checks.part = "";
    };
    guarded("machine", [&] { run_machine(device, options, checks, json); });
    guarded("spinning", [&] { ping_spinning(device, options, checks, json); });
    if (options.compares)
        guarded("compare", [&] {
            CompareOptions compare = options.compare;
            if (options.is_native) compare.tier = GPURUN_TIER_NATIVE;
            json.add("compare", run_compare(device, options.guests, compare, checks));
        });
    json.add("checks", checks.json());
    FILE* out = options.out.empty() ? stdout : fopen(options.out.c_str(), "w");
    if (!out) throw gpu::Error(options.out + " cannot be written");
    fputs((json.lines() + "\n").c_str(), out);
    if (out != stdout && fclose(out) != 0) throw gpu::Error(options.out + " cannot be written");
    return checks.all_hold() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
    Options options;
    MixedOptions& mixed = options.mixed;
    CLI::App app("A resident machine under load: does it do everything right, and how fast?");
    app.add_option("--guests", options.guests, "folder of load.wasm, spawns.wasm and instant.wasm")
        ->required();
    app.add_option("--device", options.device);
    app.add_flag("--native", options.is_native, "by machine code");
    app.add_option("--seconds", mixed.seconds, "of load");
    app.add_option("--arrivals", mixed.arrivals, "processes that the host asks for in a second");
    app.add_option("--spawns", mixed.spawns, "processes that guests start in a second");
    app.add_option("--spawners", mixed.spawners, "such guests")->check(CLI::PositiveNumber);
    app.add_option("--output-bytes", mixed.output_bytes, "that processes write in a second");
    app.add_option("--patience", mixed.patience, "seconds for the last ones to end");
    app.add_option("--idle-seconds", options.idle_seconds, "without load, before it");
    app.add_option("--samples", options.samples, "of each latency")->check(CLI::PositiveNumber);
    app.add_flag("--full-gang", options.is_full_gang, "a process that computes for each lane");
    app.add_option("--full-gang-seconds", options.full_gang_seconds);
    app.add_option("--million", options.million, "so many spawns by guests, 1000000 if not given")
        ->expected(0, 1)
        ->default_str("1000000");
    app.add_flag("--stop-host", options.stops_host,
                 "a second load, in which this program is stopped for 5 s");
    app.add_flag("--strict", options.is_strict,
                 "what takes time on a GPU has to take as little as it should");
    app.add_flag("--compare", options.compares,
                 "the same work in bursts, on a machine, and in bursts with pauses");
    app.add_option("--compare-processes", options.compare.processes, "all at once");
    app.add_option("--compare-rounds", options.compare.rounds, "that each computes");
    app.add_option("--compare-seconds", options.compare.seconds, "of arrivals");
    app.add_option("--compare-arrivals", options.compare.arrivals, "a second");
    app.add_option("--out", options.out, "a file for the JSON");
    app.add_option("--commit", options.commit, "what the JSON says was measured");
    CLI11_PARSE(app, argc, argv);
    std::string command = "resident-load";
    for (int i = 1; i < argc; i++) command += std::string(" ") + argv[i];
    // Processes share the input of this program; nobody is to wait for it.
    const int none = open("/dev/null", O_RDONLY);
    if (none >= 0) {
        dup2(none, 0);
        close(none);
    }
    try {
        return run(options, command);
    } catch (const std::exception& problem) {
        fprintf(stderr, "resident-load: %s\n", problem.what());
        return 1;
    }
}
