#include "resident/compare.h"

#include <algorithm>
#include <functional>
#include <thread>
#include <unordered_map>

#include "resident/work.h"

namespace resident_load {
namespace {

constexpr double burst_seconds = 0.5, pause_seconds = 1;
constexpr uint32_t answer_count = 16;
constexpr uint32_t most_at_once = 8192;  // on a machine, which has room for more

uint32_t seed_of(uint32_t number) { return (number % answer_count) * 2654435761u | 1; }

class Work {
public:
    Work(const gpu::Device& device, const gpu::Module& module, const CompareOptions& options)
        : device_(device), module_(module), options_(options) {
        for (uint32_t i = 0; i < answer_count; i++)
            answers_.push_back(work_compute(seed_of(i), options.rounds));
    }

    std::vector<std::string> arguments(uint32_t number) const {
        return {std::to_string(seed_of(number)), std::to_string(options_.rounds)};
    }
    void take(uint32_t number, const gpu::Process& process, double latency) {
        const bool has_ended =
            process.ending() == GPURUN_EXITED || process.ending() == GPURUN_RETURNED;
        wrong += !has_ended || process.exit_code() != answers_[number % answer_count];
        latencies.push_back(latency);
    }
    // One burst of those numbers; the seconds it took.
    double burst(uint32_t begin, uint32_t end, const std::function<double(uint32_t)>& arrived,
                 Clock::time_point start) {
        gpu::Config config;
        config.tier(options_.tier);
        for (uint32_t i = begin; i < end; i++) config.process(arguments(i));
        const auto before = Clock::now();
        const gpu::Result result = gpu::run(device_, module_, config);
        const double took = seconds_since(before), now = seconds_since(start);
        for (uint32_t i = begin; i < end; i++) take(i, result[i - begin], now - arrived(i));
        return took;
    }

    std::vector<double> latencies;
    uint64_t wrong = 0;

protected:
    const gpu::Device& device_;
    const gpu::Module& module_;
    const CompareOptions& options_;
    std::vector<uint32_t> answers_;
};

// When work is there: seconds since the beginning, by its number. And how much there will be.
struct Supply {
    uint32_t count;
    double rate;  // 0: all of it at the beginning
    double arrived(uint32_t number) const { return rate > 0 ? double(number) / rate : 0; }
    uint32_t there(double seconds) const {
        return rate > 0 ? uint32_t(std::min(double(count), seconds * rate + 1)) : count;
    }
};

void sleep_seconds(double seconds) {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

// What is there, as soon as the burst before is over; with a pause, as much as fits its time.
void in_bursts(Work& work, const Supply& supply, bool has_pauses) {
    const auto start = Clock::now();
    auto arrived = [&](uint32_t number) { return supply.arrived(number); };
    double rate = 1000;  // processes/s, as the last burst had it
    for (uint32_t done = 0; done < supply.count;) {
        uint32_t end = supply.there(seconds_since(start));
        if (has_pauses)
            end = uint32_t(std::min(double(end), done + std::max(1.0, rate * burst_seconds)));
        if (end == done) {
            sleep_seconds(0.001);
            continue;
        }
        rate = (end - done) / work.burst(done, end, arrived, start);
        done = end;
        if (has_pauses && done < supply.count) sleep_seconds(pause_seconds);
    }
}

void on_machine(Work& work, const Supply& supply, gpu::Machine& machine, uint32_t program) {
    constexpr double tick = 0.01;  // a wake of the host costs time
    const auto start = Clock::now();
    std::unordered_map<uint32_t, uint32_t> running;  // numbers of work, by those of processes
    uint32_t asked = 0;
    while (asked < supply.count || !running.empty()) {
        const uint32_t there = supply.there(seconds_since(start));
        for (; asked < there && running.size() < most_at_once; asked++)
            running[machine.spawn(program, silent(work.arguments(asked)))] = asked;
        // Where nothing else can be asked for it waits for an ending, else for the next arrivals.
        double wait = asked < supply.count && asked == there ? tick : 60;
        if (running.empty()) {
            sleep_seconds(tick);
            continue;
        }
        std::optional<gpu::Machine::Ended> ended = machine.next(wait);
        if (!ended && wait > tick) throw gpu::Error("a process of the comparison does not end");
        for (; ended; ended = machine.next(0)) {
            auto found = running.extract(ended->process);
            if (!found) throw gpu::Error("an ending of a process that nobody asked for");
            work.take(found.mapped(), ended->result[0],
                      seconds_since(start) - supply.arrived(found.mapped()));
        }
    }
}

}  // namespace

std::string run_compare(const gpu::Device& device, const std::string& guests,
                        const CompareOptions& options, Checks& checks) {
    const gpu::Module module = gpu::Module::from_file(guests + "/work.wasm");
    device.prepare(true);
    auto measured = [&](const char* way, const Supply& supply, const auto& body) {
        Work work(device, module, options);
        const double cpu = cpu_seconds();
        const auto begin = Clock::now();
        body(work, supply);
        const double seconds = seconds_since(begin), used = cpu_seconds() - cpu;
        checks.check(text_of("%s: answers", way),
                     work.wrong == 0 && work.latencies.size() == supply.count,
                     text_of("%zu of %u, %llu wrong", work.latencies.size(), supply.count,
                             (unsigned long long)work.wrong));
        JsonObject json;
        json.add_count("processes", supply.count).add_number("seconds", seconds);
        json.add_number("per_second", supply.count / seconds);
        json.add_number("latency_median_ms", 1e3 * percentile(work.latencies, 50));
        json.add_number("latency_p99_ms", 1e3 * percentile(work.latencies, 99));
        json.add_number("host_cpu_share", used / seconds);
        json.add_number("host_cpu_us_per_process", 1e6 * used / supply.count);
        return json.line();
    };
    const Supply at_hand{options.processes, 0};
    const Supply arriving{uint32_t(options.seconds * options.arrivals), double(options.arrivals)};
    auto bursts = [](Work& work, const Supply& supply) { in_bursts(work, supply, false); };
    auto pauses = [](Work& work, const Supply& supply) { in_bursts(work, supply, true); };
    JsonObject first, second, json;
    Work warm(device, module, options);
    in_bursts(warm, {100, 0}, false);
    first.add("burst", measured("burst", at_hand, bursts));
    second.add("burst", measured("burst, arriving", arriving, bursts));
    {
        gpu::Config config;
        config.inherit_streams();
        gpu::Machine machine(device, config);
        gpu::Config of_program;
        of_program.tier(options.tier);
        const uint32_t program = machine.load("work", module, of_program);
        auto resident = [&](Work& work, const Supply& supply) {
            on_machine(work, supply, machine, program);
        };
        on_machine(warm, {100, 0}, machine, program);
        first.add("resident", measured("resident", at_hand, resident));
        second.add("resident", measured("resident, arriving", arriving, resident));
        machine.close();
    }
    first.add("bursts_with_pauses", measured("bursts with pauses", at_hand, pauses));
    second.add("bursts_with_pauses", measured("bursts with pauses, arriving", arriving, pauses));
    json.add_count("rounds", options.rounds);
    json.add("all_at_hand", first.line());
    json.add_count("arrivals_per_second", options.arrivals).add("arriving", second.line());
    return json.line();
}

}  // namespace resident_load
