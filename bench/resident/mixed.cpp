#include "resident/mixed.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <deque>
#include <map>
#include <memory>
#include <thread>
#include <unordered_map>

#include "resident/work.h"

namespace resident_load {
namespace {

constexpr uint32_t signal_kill = 9;
constexpr uint32_t compute_rounds = 20000;

enum class Kind { exits, sleeps, traps, computes, writes, is_killed };
constexpr const char* kind_names[] = {"exits", "sleeps", "traps", "computes", "writes", "killed"};

// Of 20 arrivals; every wake of the host brings some of each.
constexpr Kind kinds[] = {
    Kind::exits,    Kind::exits, Kind::sleeps, Kind::exits,  Kind::writes,
    Kind::exits,    Kind::traps, Kind::exits,  Kind::sleeps, Kind::computes,
    Kind::exits,    Kind::exits, Kind::writes, Kind::exits,  Kind::is_killed,
    Kind::computes, Kind::exits, Kind::sleeps, Kind::traps,  Kind::writes,
};
constexpr uint32_t kinds_that_write = uint32_t(std::ranges::count(kinds, Kind::writes));

// What a process wrote, against what it has to write. The machine's thread alone looks at it until
// the machine is idle.
struct Written {
    const std::string* wanted = nullptr;
    uint64_t size = 0;
    bool is_right = true;

    void take(std::string_view bytes) {
        is_right &=
            size <= wanted->size() && std::string_view(*wanted).substr(size, bytes.size()) == bytes;
        size += bytes.size();
    }
};

// What processes of a seed answer. There are a few of them, known beforehand: to find it out under
// load would be the host's work and not the machine's.
struct Answers {
    uint32_t seed = 0;
    uint32_t computed = 0, sum = 0;  // exit codes
    std::string output;

    Answers(uint32_t seed, uint64_t output_size)
        : seed(seed), computed(work_compute(seed, compute_rounds)) {
        uint32_t random = seed;
        for (uint64_t i = 0; i < output_size; i++) {
            output += char(work_byte(&random));
            sum += uint8_t(output.back());
        }
        sum &= 127;
    }
};
constexpr uint32_t answer_count = 16;
// Before the host is stopped: more than all pipes and the ring to the host hold.
constexpr uint32_t flood_writers = 64, flood_bytes = 256 << 10;

struct Arrival {
    Kind kind;
    gpurun_ending ending = GPURUN_EXITED;
    uint32_t code = 0;
    std::string message;  // of a trap
    std::vector<std::string> arguments;
    const std::string* output = nullptr;  // that it has to write
    Written* written = nullptr;
    bool has_ended = false;
};

class Mixed {
public:
    Mixed(gpu::Machine& machine, uint32_t program, const MixedOptions& options, Checks& checks)
        : machine_(machine),
          program_(program),
          options_(options),
          checks_(checks),
          flood_(1, options.stop_host > 0 ? flood_bytes : 0) {
        const double writers = double(options.arrivals) * kinds_that_write / std::size(kinds);
        if (writers > 0) bytes_each_ = uint64_t(double(options.output_bytes) / writers) + 1;
        for (uint32_t i = 0; i < answer_count; i++)
            answers_.emplace_back(i * 2654435761u | 1, bytes_each_);
    }

    void start_spawners();
    void run();
    void check_arrivals();
    void check_spawners(bool is_strict);

    double load_seconds = 0;  // without the wait for the last ones
    uint64_t asked() const { return arrivals_.size(); }
    uint64_t spawner_count() const { return spawner_output_.size(); }
    uint64_t spawned = 0;  // by guests
    JsonObject endings, spawner_counts;
    uint64_t output_size = 0;

private:
    Arrival make_arrival(uint32_t number);
    static Arrival writer(const Answers& answers);
    void ask(Arrival arrival);
    void kill_those_that_began();
    bool take_endings(double seconds);
    void take(const gpu::Machine::Ended& ended);
    void complain(const std::string& what);

    gpu::Machine& machine_;
    uint32_t program_;
    const MixedOptions options_;
    Checks& checks_;
    uint64_t bytes_each_ = 0;
    std::vector<Answers> answers_;
    Answers flood_;
    std::deque<Arrival> arrivals_;
    std::deque<Written> written_;
    std::unordered_map<uint32_t, uint32_t> arrival_of_;  // by the number of the process
    std::map<uint32_t, std::string> spawner_output_;
    std::vector<uint32_t> to_kill_;  // numbers of processes
    uint64_t ended_ = 0, wrong_ = 0, doubled_ = 0;
    uint32_t spawners_left_ = 0;
};

void Mixed::complain(const std::string& what) {
    constexpr uint64_t most_told = 10;
    if (wrong_++ < most_told) fprintf(stderr, "resident-load: %s\n", what.c_str());
}

Arrival Mixed::make_arrival(uint32_t number) {
    static constexpr const char* traps[] = {"unreachable", "integer divide by zero",
                                            "out of bounds memory access"};
    const uint32_t round = number / std::size(kinds), code = number % 251;
    const Answers& answers = answers_[round % answer_count];
    Arrival made{
        kinds[number % std::size(kinds)], GPURUN_EXITED, code, "", {}, nullptr, nullptr, false};
    auto text = [](uint64_t value) { return std::to_string(value); };
    switch (made.kind) {
        case Kind::exits: made.arguments = {"exit", text(code)}; break;
        case Kind::sleeps: made.arguments = {"sleep", text(1 + round % 50), text(code)}; break;
        case Kind::traps:
            made.ending = GPURUN_TRAPPED;
            made.code = 0;
            made.message = traps[round % 3];
            made.arguments = {"trap", text(round % 3)};
            break;
        case Kind::computes:
            made.code = answers.computed;
            made.arguments = {"compute", text(answers.seed), text(compute_rounds)};
            break;
        case Kind::writes: return writer(answers);
        case Kind::is_killed:
            made.ending = GPURUN_KILLED;
            made.code = 128 + signal_kill;
            // Asleep, or as busy as can be.
            if (round % 2 == 0)
                made.arguments = {"wait"};
            else
                made.arguments = {"spin", text(3600000)};
            break;
    }
    return made;
}

Arrival Mixed::writer(const Answers& answers) {
    return {Kind::writes,
            GPURUN_EXITED,
            answers.sum,
            "",
            {"write", std::to_string(answers.seed), std::to_string(answers.output.size())},
            &answers.output,
            nullptr,
            false};
}

void Mixed::ask(Arrival arrival) {
    gpu::Config config;
    for (const std::string& argument : arrival.arguments) config.argument(argument);
    if (arrival.kind == Kind::writes) {
        written_.push_back({arrival.output});
        arrival.written = &written_.back();
        auto take = [](void* data, uint32_t, int stream, const void* bytes, size_t size) {
            auto* written = static_cast<Written*>(data);
            if (stream == 1) written->take({static_cast<const char*>(bytes), size});
            return true;
        };
        gpurun_config_set_output_callback(config.get(), take, arrival.written);
    } else {
        config.inherit_streams();
    }
    const uint32_t process = machine_.spawn(program_, config);
    if (arrival.kind == Kind::is_killed) to_kill_.push_back(process);
    arrival_of_[process] = uint32_t(arrivals_.size());
    arrivals_.push_back(std::move(arrival));
}

void Mixed::kill_those_that_began() {
    std::erase_if(to_kill_, [&](uint32_t process) {
        const uint32_t pid = machine_.pid(process);
        if (pid != 0) machine_.kill(pid, signal_kill);
        return pid != 0;
    });
}

void Mixed::take(const gpu::Machine::Ended& ended) {
    gpu::Process result = ended.result[0];
    if (auto spawner = spawner_output_.find(ended.process); spawner != spawner_output_.end()) {
        spawner->second = std::string(result.output());
        spawners_left_--;
        if (!result.is_success())
            complain("a spawner: " + result.message() + ": " + std::string(result.error()));
        return;
    }
    auto found = arrival_of_.find(ended.process);
    if (found == arrival_of_.end()) return complain("an ending of a process that nobody asked for");
    Arrival& arrival = arrivals_[found->second];
    if (arrival.has_ended) {
        doubled_++;
        return;
    }
    arrival.has_ended = true;
    ended_++;
    const bool is_right = result.ending() == arrival.ending &&
                          (arrival.ending == GPURUN_TRAPPED ? result.message() == arrival.message
                                                            : result.exit_code() == arrival.code);
    if (!is_right)
        complain(text_of(
            "%s %s ended with %s, exit code %u; wanted %u %s", arrival.arguments[0].c_str(),
            arrival.arguments.size() > 1 ? arrival.arguments[1].c_str() : "",
            result.message().c_str(), result.exit_code(), arrival.code, arrival.message.c_str()));
}

// All there are; waits so long for the first.
bool Mixed::take_endings(double seconds) {
    bool took = false;
    while (std::optional<gpu::Machine::Ended> ended = machine_.next(took ? 0 : seconds)) {
        take(*ended);
        took = true;
    }
    return took;
}

void Mixed::start_spawners() {
    for (uint32_t i = 0; i < options_.spawners; i++) {
        const uint32_t rate =
            options_.spawns * (i + 1) / options_.spawners - options_.spawns * i / options_.spawners;
        if (rate == 0) continue;
        gpu::Config config;
        config.argument("spawner")
            .argument(std::to_string(i * 1000))
            .argument(std::to_string(rate));
        config.argument(std::to_string(uint64_t(options_.seconds * 1000))).argument("0");
        spawner_output_[machine_.spawn(program_, config)] = "";
        spawners_left_++;
    }
}

// Another process stops this one and lets it go on.
void stop_for(double seconds) {
    const pid_t here = getpid();
    const pid_t helper = fork();
    if (helper < 0) throw gpu::Error("no process to go on by");
    if (helper == 0) {
        ::kill(here, SIGSTOP);
        usleep(useconds_t(seconds * 1e6));
        ::kill(here, SIGCONT);
        _exit(0);
    }
    waitpid(helper, nullptr, 0);
}

void Mixed::run() {
    constexpr auto tick = std::chrono::milliseconds(10);
    const auto begin = Clock::now();
    auto next = begin;
    bool will_stop = options_.stop_host > 0;
    uint64_t asked_by_time = 0;
    for (;;) {
        const double passed = seconds_since(begin);
        if (passed >= options_.seconds) break;
        if (will_stop && passed >= (options_.seconds - options_.stop_host) / 2) {
            will_stop = false;
            for (uint32_t i = 0; i < flood_writers; i++) ask(writer(flood_));
            stop_for(options_.stop_host);
        }
        const double due = passed * options_.arrivals;
        while (double(asked_by_time) < due) ask(make_arrival(uint32_t(asked_by_time++)));
        take_endings(0);
        kill_those_that_began();
        next += tick;
        std::this_thread::sleep_until(next);
    }
    load_seconds = seconds_since(begin);
    const auto end = Clock::now();
    while ((ended_ < arrivals_.size() || spawners_left_ > 0) &&
           seconds_since(end) < options_.patience) {
        kill_those_that_began();
        take_endings(0.01);
    }
}

void Mixed::check_arrivals() {
    checks_.check("arrivals: none is missing", ended_ == arrivals_.size(),
                  text_of("%llu of %zu have ended", (unsigned long long)ended_, arrivals_.size()));
    checks_.check("arrivals: none ended twice", doubled_ == 0,
                  text_of("%llu did", (unsigned long long)doubled_));
    checks_.check("endings are as they have to be", wrong_ == 0,
                  text_of("%llu are not", (unsigned long long)wrong_));
    uint64_t counts[std::size(kind_names)] = {}, incomplete = 0;
    for (const Arrival& arrival : arrivals_) {
        counts[size_t(arrival.kind)]++;
        if (!arrival.written) continue;
        output_size += arrival.written->size;
        incomplete +=
            !arrival.written->is_right || arrival.written->size != arrival.written->wanted->size();
    }
    for (size_t i = 0; i < std::size(kind_names); i++) endings.add_count(kind_names[i], counts[i]);
    checks_.check("output is complete", incomplete == 0,
                  text_of("%llu processes wrote something else", (unsigned long long)incomplete));
}

// The sums of what spawners wrote.
std::map<std::string, double> sums_of(const std::map<uint32_t, std::string>& outputs,
                                      Checks& checks) {
    std::map<std::string, double> sums;
    bool are_all_there = true;
    for (const auto& [process, output] : outputs)
        for (const char* name : {"spawned", "exited", "trapped", "killed", "wrong", "full"}) {
            const std::optional<double> value = number_in(output, name);
            are_all_there &= value.has_value();
            sums[name] += value.value_or(0);
        }
    checks.check("spawners told their counts", are_all_there,
                 text_of("%zu spawners", outputs.size()));
    checks.check(
        "children of guests ended as they have to",
        sums["wrong"] == 0 && sums["exited"] + sums["trapped"] + sums["killed"] == sums["spawned"],
        text_of("%.0f spawned, %.0f exited, %.0f trapped, %.0f killed, %.0f wrong", sums["spawned"],
                sums["exited"], sums["trapped"], sums["killed"], sums["wrong"]));
    return sums;
}

void Mixed::check_spawners(bool is_strict) {
    if (spawner_output_.empty()) return;
    std::map<std::string, double> sums = sums_of(spawner_output_, checks_);
    for (const auto& [name, sum] : sums) spawner_counts.add_count(name, uint64_t(sum));
    spawned = uint64_t(sums["spawned"]);
    const double wanted = options_.spawns * options_.seconds;
    if (is_strict)
        checks_.check("spawns by guests", double(spawned) >= 0.95 * wanted,
                      text_of("%.0f of %.0f", double(spawned), wanted));
}

// The machine's own counts, once it has written them down.
void check_counts(gpu::Machine& machine, const gpurun_machine_stats& before, uint64_t wanted,
                  Checks& checks) {
    constexpr double patience = 2;
    const auto begin = Clock::now();
    uint64_t spawned = 0, ended = 0;
    do {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
        const gpurun_machine_stats now = machine.stats();
        spawned = now.spawned - before.spawned;
        ended = now.ended - before.ended;
    } while ((spawned != wanted || ended != wanted) && seconds_since(begin) < patience);
    checks.check(
        "the machine's counts", spawned == wanted && ended == wanted,
        text_of("%llu spawned, %llu ended; %llu were asked for", (unsigned long long)spawned,
                (unsigned long long)ended, (unsigned long long)wanted));
}

}  // namespace

std::string run_mixed(gpu::Machine& machine, uint32_t load_program, const MixedOptions& options,
                      const std::optional<MemoryUse>& before, bool is_strict, Checks& checks) {
    const gpurun_machine_stats stats = machine.stats();
    const double cpu = cpu_seconds();
    const auto begin = Clock::now();
    // The machine may call back for as long as it is there, if something went wrong.
    static std::vector<std::unique_ptr<Mixed>> kept;
    Mixed& mixed =
        *kept.emplace_back(std::make_unique<Mixed>(machine, load_program, options, checks));
    mixed.start_spawners();
    mixed.run();
    const double share = (cpu_seconds() - cpu) / seconds_since(begin);
    const gpurun_machine_stats after = machine.stats();
    check_memory(machine, before, checks);
    mixed.check_arrivals();
    mixed.check_spawners(is_strict);
    check_counts(machine, stats, mixed.asked() + mixed.spawner_count() + mixed.spawned, checks);
    if (is_strict) {
        const double wanted = options.arrivals * options.seconds;
        checks.check("arrivals", double(mixed.asked()) >= 0.95 * wanted,
                     text_of("%llu of %.0f", (unsigned long long)mixed.asked(), wanted));
        if (options.stop_host == 0)
            checks.check("host CPU under load", share < 0.05,
                         text_of("%.2f%% of a core", 100 * share));
    }
    const double lane_seconds = after.lane_seconds - stats.lane_seconds;
    JsonObject json;
    json.add_number("seconds", mixed.load_seconds);
    json.add_number("seconds_with_last_endings", seconds_since(begin));
    if (options.stop_host > 0) json.add_number("host_stopped_seconds", options.stop_host);
    json.add_count("arrivals", mixed.asked());
    json.add("arrivals_by_kind", mixed.endings.line());
    json.add_count("spawns_by_guests", mixed.spawned);
    json.add("guests_counts", mixed.spawner_counts.line());
    json.add_number("arrivals_per_second", double(mixed.asked()) / mixed.load_seconds);
    json.add_number("spawns_per_second", double(mixed.spawned) / options.seconds);
    json.add_count("output_bytes", mixed.output_size);
    json.add_number("output_bytes_per_second", double(mixed.output_size) / mixed.load_seconds);
    json.add_number("host_cpu_share", share);
    json.add_number(
        "busy_lane_share",
        lane_seconds > 0 ? (after.busy_lane_seconds - stats.busy_lane_seconds) / lane_seconds : 0);
    json.add_count("heartbeat_latest_ns", uint64_t(1e9 * after.heartbeat_latest));
    return json.line();
}

std::string run_many_spawns(gpu::Machine& machine, uint32_t load_program, uint64_t count,
                            uint32_t spawners, double patience, const MemoryUse& before,
                            Checks& checks) {
    const auto begin = Clock::now();
    std::map<uint32_t, std::string> outputs;
    for (uint32_t i = 0; i < spawners; i++) {
        const uint64_t share = count * (i + 1) / spawners - count * i / spawners;
        if (share == 0) continue;
        gpu::Config config;
        config.argument("spawner").argument(std::to_string(i * 1000)).argument("0").argument("0");
        config.argument(std::to_string(share));
        outputs[machine.spawn(load_program, config)] = "";
    }
    size_t ended = 0;
    while (ended < outputs.size()) {
        std::optional<gpu::Machine::Ended> next = machine.next(patience);
        if (!next) break;
        ended++;
        gpu::Process result = next->result[0];
        outputs[next->process] = std::string(result.output());
        if (!result.is_success())
            checks.check("spawner", false, result.message() + ": " + std::string(result.error()));
    }
    const double seconds = seconds_since(begin);
    std::map<std::string, double> sums = sums_of(outputs, checks);
    checks.check("spawns in all", uint64_t(sums["spawned"]) == count,
                 text_of("%.0f of %llu", sums["spawned"], (unsigned long long)count));
    check_memory(machine, before, checks);
    JsonObject json;
    json.add_count("spawns", uint64_t(sums["spawned"])).add_count("spawners", spawners);
    json.add_number("seconds", seconds).add_number("per_second", sums["spawned"] / seconds);
    return json.line();
}

std::string run_full_gang(gpu::Machine& machine, uint32_t load_program, double seconds,
                          bool is_strict, Checks& checks) {
    constexpr double patience = 60;  // until all of them are there, and gone
    const uint64_t lanes =
        std::min<uint64_t>(machine.stats().lanes, 130000);  // what its table holds
    const gpu::Config config = silent({"spin", "3600000"});
    const auto asked = Clock::now();
    for (uint64_t i = 0; i < lanes; i++) machine.spawn(load_program, config);
    while (machine.stats().processes < lanes && seconds_since(asked) < patience)
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const double begun = seconds_since(asked);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));  // and have lanes
    const gpurun_machine_stats first = machine.stats();
    const double cpu = cpu_seconds();
    const auto begin = Clock::now();
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    const gpurun_machine_stats last = machine.stats();
    const double host_share = (cpu_seconds() - cpu) / seconds_since(begin);
    machine.kill(0, signal_kill);
    uint64_t ended = 0, wrong = 0;
    for (; ended < lanes; ended++) {
        std::optional<gpu::Machine::Ended> next = machine.next(patience);
        if (!next) break;
        wrong += next->result[0].ending() != GPURUN_KILLED;
    }
    const double share = (last.busy_lane_seconds - first.busy_lane_seconds) /
                         std::max(last.lane_seconds - first.lane_seconds, 1e-9);
    checks.check(
        "all end", ended == lanes && wrong == 0,
        text_of("%llu of %llu, %llu otherwise than they have to", (unsigned long long)ended,
                (unsigned long long)lanes, (unsigned long long)wrong));
    if (is_strict) checks.check("busy lanes", share > 0.8, text_of("%.1f%%", 100 * share));
    JsonObject json;
    json.add_count("lanes", lanes).add_number("seconds", seconds);
    json.add_number("seconds_to_begin", begun);
    json.add_number("busy_lane_share", share).add_number("host_cpu_share", host_share);
    return json.line();
}

}  // namespace resident_load
