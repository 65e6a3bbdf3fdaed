// gpu-run map: reads inputs, runs them chunk by chunk and writes results, all three at once. What
// is in memory is a few chunks, however many inputs there are.
#include "map.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <filesystem>
#include <thread>

#include "endings.h"
#include "engine/load.h"
#include "handoff.h"
#include "interrupt.h"
#include "output.h"
#include "progress.h"
#include "report.h"

namespace gpurun::tool {
namespace {

using engine::Completion;

constexpr u32 first_chunk = 256, growth = 4;      // processes
constexpr usize max_listed = 20;                  // failures
constexpr u64 max_input = u64{1} << 30;           // bytes of one
constexpr u64 max_chunk_input = u64{64} << 20;    // bytes of all in a chunk, but for the first
constexpr u64 max_chunk_system = u64{256} << 20;  // what its processes should take beside
constexpr double enough_seconds = 0.5;            // a chunk that takes that long is large enough

struct Chunk {
    std::vector<Input> inputs;
    u64 bytes = 0;  // that they take
};

// With what else is kept for an input.
u64 bytes_of(const host::ProcessInput& given) {
    u64 bytes = 512 + (given.input ? given.input->size() : 0);
    for (const std::string& argument : given.arguments) bytes += sizeof argument + argument.size();
    return bytes;
}

// How many processes go together: as many as asked for; or as many as keep the device busy, found
// step by step, since nobody knows before what a program takes.
class ChunkSize {
public:
    ChunkSize(const device::DeviceInfo& device, std::optional<u32> jobs)
        : lanes_(device.lanes),
          most_(jobs.value_or(std::clamp<u32>(device.lanes, 4096, 1 << 17))),
          wanted_(jobs.value_or(first_chunk)) {}

    u32 get() const { return now_.load(std::memory_order_relaxed); }

    void learn(const engine::BurstReport& report) {
        u32 processes = report.processes();
        bool can_grow = processes < lanes_ || report.outcome().seconds < enough_seconds;
        if (can_grow && processes >= wanted_) wanted_ = std::min(most_, wanted_ * growth);
        const engine::Leavings* left = report.left();
        u64 taken = left ? left->arena.size() - left->image->base_end() : 0;
        u64 each = taken / processes + 1;
        now_ = u32(std::clamp<u64>(max_chunk_system / each, 1, wanted_));
    }

private:
    u32 lanes_, most_, wanted_;
    std::atomic<u32> now_ = wanted_;
};

class Map {
public:
    Map(const MapOptions& options, device::Device& device,
        std::shared_ptr<const wasm::Module> module, engine::BurstOptions burst, Inputs& inputs,
        Results& results)
        : options_(options),
          device_(device),
          module_(std::move(module)),
          burst_(std::move(burst)),
          inputs_(inputs),
          results_(results),
          chunk_size_(device.info(), options.jobs),
          progress_(options.has_progress) {}

    int run() {
        run_control(std::nullopt);
        // Ctrl-C is for this thread; the others are told.
        sigset_t interrupt, before;
        sigemptyset(&interrupt);
        sigaddset(&interrupt, SIGINT);
        pthread_sigmask(SIG_BLOCK, &interrupt, &before);
        std::thread reader([this] { read(); }), writer([this] { write(); });
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
        run_chunks();
        is_over_ = true;
        chunks_.close();
        ran_.close();
        reader.join();
        writer.join();
        progress_.clear();
        int code = tell();
        RunReport report{"map", {{options_.run.file, endings_}}, code, slots_, 0};
        return finish_report(options_.run.report, report, device_);
    }

private:
    // ---- the reader's thread

    void read() {
        Chunk chunk;
        for (bool is_end = false; !is_end && !is_over_ && !was_interrupted();) {
            Input input;
            Result<Inputs::Got> got = inputs_.next(input);
            if (!got) fail(got.error());
            is_end = !got || *got == Inputs::Got::end;
            bool is_pause = got && *got == Inputs::Got::nothing_yet;
            if (!is_end && !is_pause) {
                chunk.bytes += bytes_of(input.given);
                chunk.inputs.push_back(std::move(input));
            }
            bool is_full =
                chunk.inputs.size() >= chunk_size_.get() || chunk.bytes >= max_chunk_input;
            if (chunk.inputs.empty() || !(is_full || is_end || is_pause)) continue;
            if (!chunks_.put(std::exchange(chunk, {}))) break;
        }
        chunks_.close();
    }

    // ---- the main thread

    void run_chunks() {
        while (std::optional<Chunk> chunk = chunks_.take()) {
            Result<Ran> ran = run_chunk(std::move(*chunk));
            if (!ran) return fail({options_.run.file + ": " + ran.error().to_string()});
            if (!ran_.put(std::move(*ran)) || was_interrupted()) return;
        }
    }

    // In one launch, if the time limit does not stop it. Then those that have not ended run again,
    // fewer at a time: those that did not even end where each had a lane to itself have failed.
    Result<Ran> run_chunk(Chunk chunk) {
        Ran ran;
        ran.endings.resize(chunk.inputs.size());
        std::deque<u32> left;
        for (u32 i = 0; i < chunk.inputs.size(); i++) {
            ran.endings[i].why = chunk.inputs[i].problem;
            if (ran.endings[i].why.empty())
                left.push_back(i);
            else
                ran.endings[i].state = Ending::State::failed;
        }
        const usize lanes = device_.info().lanes;
        usize most = left.size();
        while (!left.empty() && !was_interrupted()) {
            std::vector<u32> now;
            for (; !left.empty() && now.size() < most; left.pop_front())
                now.push_back(left.front());
            bool may_fail = now.size() <= lanes;
            usize ended = TRY(run_round(chunk, now, may_fail, ran));
            for (u32 i : now)
                if (ran.endings[i].state == Ending::State::unfinished) left.push_back(i);
            if (ended < now.size())
                most = std::max({lanes, ended, now.size() / 8});
            else
                most *= 2;
        }
        ran.inputs = std::move(chunk.inputs);
        return ran;
    }

    // How many ended, or have failed to in time.
    Result<usize> run_round(Chunk& chunk, const std::vector<u32>& now, bool may_fail, Ran& ran) {
        std::vector<host::ProcessInput> given;
        for (u32 i : now) given.push_back(std::move(chunk.inputs[i].given));
        auto report =
            std::make_shared<const engine::BurstReport>(TRY(run_launch(given, chunk.bytes)));
        usize stopped = 0;
        for (u32 process = 0; process < now.size(); process++)
            stopped += report->of(process).kind == Completion::Kind::stopped;
        may_fail &= stopped == now.size() && !was_interrupted();
        usize ended = 0;
        for (u32 process = 0; process < now.size(); process++) {
            Ending& ending = ran.endings[now[process]];
            ending = TRY(ending_of(report, process, may_fail));
            if (ending.state == Ending::State::unfinished)
                chunk.inputs[now[process]].given = std::move(given[process]);
            else
                ended++;
        }
        u64 dropped = 0;
        std::ranges::move(report->debug(dropped), std::back_inserter(ran.records));
        ran.records_dropped += dropped;
        return ended;
    }

    // `may_fail`: one that was stopped had its time.
    Result<Ending> ending_of(const std::shared_ptr<const engine::BurstReport>& report, u32 process,
                             bool may_fail) {
        using State = Ending::State;
        Completion completion = report->of(process);
        Ending ending;
        if (completion.kind == Completion::Kind::stopped && !may_fail) return ending;
        endings_.add(completion);
        ending.state = is_success(completion) ? State::done : State::failed;
        if (ending.state == State::failed) ending.why = describe(completion);
        ending.output = TRY(report->stream(process, 1));
        ending.errors = TRY(report->stream(process, 2));
        if (burst_.system.keeps_files) ending.report = report;
        ending.process = process;
        return ending;
    }

    Result<engine::BurstReport> run_launch(std::span<const host::ProcessInput> given, u64 bytes) {
        engine::BurstJob job{module_, burst_};
        job.options.processes = u32(given.size());
        job.options.system.inputs = given;
        job.options.system.arena_size = arena_size(job.options.processes, bytes);
        engine::BurstReport report =
            TRY(engine::run_burst(device_, {&job, 1}, run_control(options_.run.timeout)));
        chunk_size_.learn(report);
        slots_ = std::max(slots_, report.outcome().slots);
        seconds_ += report.outcome().seconds;
        launches_ += report.outcome().launches;
        return report;
    }

    // Where untouched memory costs nothing, a program that writes on and on must still not take
    // all there is.
    u64 arena_size(u32 processes, u64 input_bytes) const {
        const device::DeviceInfo& info = device_.info();
        u64 size = engine::system_bytes(info, processes);
        if (info.reserves_lazily) size = std::min(size, info.memory_free / 8);
        return (size + input_bytes) & ~u64{0xffff};
    }

    // ---- the writer's thread

    void write() {
        while (std::optional<Ran> ran = ran_.take()) {
            Result<void> written = put(*ran);
            // Whatever came before a failure is kept.
            Result<void> settled = results_.settle();
            if (!written || !settled) {
                fail(!written ? written.error() : settled.error());
                break;
            }
        }
        ran_.close();
        chunks_.close();
    }

    Result<void> put(const Ran& ran) {
        if (!ran.records.empty()) progress_.clear();
        say_debug(ran.records, ran.records_dropped);
        for (usize i = 0; i < ran.inputs.size(); i++) {
            const Input& input = ran.inputs[i];
            const Ending& ending = ran.endings[i];
            if (ending.state == Ending::State::unfinished) continue;
            show_errors(input.label, ending.errors);
            if (shares_terminal_ && !ending.output.empty()) progress_.clear();
            TRY(results_.put(input, ending));
            count(input, ending);
        }
        return {};
    }

    // With the input's name before each line.
    void show_errors(const std::string& label, std::string_view text) {
        if (text.empty()) return;
        std::string lines;
        while (!text.empty()) {
            std::string_view line = text.substr(0, text.find('\n'));
            text.remove_prefix(std::min(text.size(), line.size() + 1));
            lines.append(label).append(": ").append(line) += '\n';
        }
        progress_.clear();
        std::fflush(stdout);  // in order, where both go to one place
        std::fwrite(lines.data(), 1, lines.size(), stderr);
    }

    void count(const Input& input, const Ending& ending) {
        if (ending.state == Ending::State::failed) {
            failed_++;
            if (failures_.size() < max_listed) failures_.push_back(input.label + ": " + ending.why);
        } else {
            done_++;
        }
        progress_.show(done_ + failed_, input.share);
    }

    // ---- the end

    void fail(Error error) {
        std::lock_guard lock(problem_mutex_);
        if (!problem_) problem_ = std::move(error);
    }

    // Says what became of it all; the exit code.
    int tell() {
        bool is_stored = !options_.run.out.empty();
        if (is_stored) {
            std::string text = std::to_string(done_) + " done";
            if (u64 before = inputs_.skipped()) text += ", " + std::to_string(before) + " before";
            note(text + ", " + std::to_string(failed_) + " failed");
        }
        for (usize i = 0; i < failures_.size(); i++) say(failures_[i], Tone::bad);
        if (failed_ > failures_.size())
            say("and " + std::to_string(failed_ - failures_.size()) + " more failed" +
                (is_stored ? "; " + results_.failure_list() + " lists them" : ""));
        if (options_.run.stats) say_figures();
        if (problem_) {
            if (!problem_->message.empty()) return input_error(problem_->to_string());
            return finish_output(exit_input);
        }
        if (was_interrupted()) {
            say(is_stored ? "interrupted; --resume goes on from here" : "interrupted");
            return finish_output(exit_interrupted);
        }
        return finish_output(failed_ == 0 ? 0 : exit_input);
    }

    void say_figures() const {
        char text[256];
        std::snprintf(text, sizeof text, "%llu processes on %s in %.6f s, %llu launches",
                      (unsigned long long)(done_ + failed_), device_.info().id.c_str(), seconds_,
                      (unsigned long long)launches_);
        say(text);
        say_phases();
    }

    const MapOptions& options_;
    device::Device& device_;
    std::shared_ptr<const wasm::Module> module_;
    engine::BurstOptions burst_;
    Inputs& inputs_;    // the reader's
    Results& results_;  // the writer's
    ChunkSize chunk_size_;
    Progress progress_;  // the writer's
    Handoff<Chunk> chunks_;
    Handoff<Ran> ran_;
    std::mutex problem_mutex_;
    std::optional<Error> problem_;
    std::atomic<bool> is_over_ = false;
    // The main thread's.
    Endings endings_;
    u32 slots_ = 0;
    double seconds_ = 0;
    u64 launches_ = 0;
    // The writer's.
    const bool shares_terminal_ = options_.run.out.empty() && isatty(STDOUT_FILENO);
    u64 done_ = 0, failed_ = 0;
    std::vector<std::string> failures_;
};

Result<int> map_all(const MapOptions& options) {
    const RunOptions& run = options.run;
    auto module = TRY(engine::load_file(run.file));
    TRY(find_entry(*module, run));
    engine::BurstOptions burst;
    burst.function = entry_name(run);
    burst.stack_slots = run.stack_slots;
    burst.heap_words = run.heap_words;
    burst.memory_bytes = run.memory_bytes;
    burst.fuel = run.fuel;
    burst.is_watched = run.is_watched;
    burst.system = TRY(system_options(run));
    burst.system.keeps_files = !options.run.out.empty() && !run.directories.empty();
    std::error_code problem;
    if (!options.in.empty() && !options.run.out.empty() &&
        std::filesystem::equivalent(options.in, options.run.out, problem))
        return Error{"--out " + options.run.out + ": the inputs are there; give another folder"};
    TRY(check_report(run.report));
    auto device = TRY(choose_device(run.device, true));
    std::unique_ptr<Results> results;
    auto is_done = [&](const std::string& name) { return results->is_done(name); };
    std::unique_ptr<Inputs> inputs =
        options.in.empty() ? TRY(line_inputs(options, burst.system.arguments, is_done))
                           : TRY(file_inputs(options, burst.system.arguments, is_done, max_input));
    // Last, so that nothing is made if something else is wrong.
    results = run.out.empty() ? print_results() : TRY(store_results(options));
    return Map(options, *device, std::move(module), std::move(burst), *inputs, *results).run();
}

}  // namespace

int run_map(const MapOptions& options) {
    Result<int> code = map_all(options);
    return code ? *code : input_error(code.error().to_string());
}

}  // namespace gpurun::tool
