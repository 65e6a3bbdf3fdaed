// gpu-run map: reads inputs, runs them chunk by chunk and writes results, all three at once. What
// is in memory is a few chunks, however many inputs there are.
#include "map.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <filesystem>
#include <thread>

#include "attempt.h"
#include "base/threads.h"
#include "endings.h"
#include "handoff.h"
#include "interrupt.h"
#include "output.h"
#include "profile.h"
#include "progress.h"
#include "report.h"

namespace gpurun::tool {
namespace {

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
u64 bytes_of(const ProcessInput& given) {
    u64 bytes = 512 + (given.input ? given.input->size() : 0);
    for (const std::string& argument : given.arguments) bytes += sizeof argument + argument.size();
    return bytes;
}

bool keeps_files(const MapOptions& options) {
    return !options.run.out.empty() && !options.run.directories.empty();
}

// How many processes go together: as many as asked for; or as many as keep the device busy, found
// step by step, since nobody knows before what a program takes.
class ChunkSize {
public:
    ChunkSize(u32 lanes, std::optional<u32> jobs)
        : lanes_(lanes),
          most_(jobs.value_or(std::clamp<u32>(lanes, 4096, 1 << 17))),
          wanted_(jobs.value_or(first_chunk)) {}

    u32 get() const { return now_.load(std::memory_order_relaxed); }

    void learn(const api::Result& result) {
        u32 processes = result.size();
        bool can_grow = processes < lanes_ || result.seconds() < enough_seconds;
        if (can_grow && processes >= wanted_) wanted_ = std::min(most_, wanted_ * growth);
        u64 each = result.system_bytes() / processes + 1;
        now_ = u32(std::clamp<u64>(max_chunk_system / each, 1, wanted_));
    }

private:
    u32 lanes_, most_, wanted_;
    std::atomic<u32> now_ = wanted_;
};

class Map {
public:
    Map(const MapOptions& options, const api::Device& device, const api::Module& module,
        api::Config& config, Inputs& inputs, Results& results)
        : options_(options),
          device_(device),
          module_(module),
          config_(config),
          inputs_(inputs),
          results_(results),
          chunk_size_(device.lanes(), options.jobs),
          progress_(options.has_progress) {}

    int run() {
        limit(config_, options_.run.timeout);
        show_debug(config_);
        Result<void> done = guarded([&]() -> Result<void> {
            std::vector<std::thread> threads;
            threads.reserve(2);
            JoinGuard guard(threads);
            const Closer closer{*this};
            {
                const BlockedSignals blocked;  // they are for this thread; the others are told
                for (void (Map::*work)() : {&Map::read, &Map::write})
                    threads.push_back(TRY(start_thread("of the map", [this, work] {
                        Result<void> worked = guarded([&]() -> Result<void> {
                            (this->*work)();
                            return {};
                        });
                        if (worked) return;
                        fail(std::move(worked).error());
                        close();
                    })));
            }
            run_chunks();
            return {};
        });
        if (!done) fail(std::move(done).error());
        progress_.clear();
        int code = tell();
        if (!tell_looks() && code == 0) code = exit_input;
        RunReport report{"map", {{options_.run.file, endings_, tier(), native_}}, code, slots_, 0};
        report.is_interleaved = is_interleaved_;
        report.layout_choice = layout_choice_;
        return finish_report(options_.run.report, report, device_);
    }

private:
    void close() {
        is_over_ = true;
        chunks_.close();
        ran_.close();
    }
    // Has the threads end. They finish what they have.
    struct Closer {
        Map& map;
        ~Closer() { map.close(); }
    };

    // ---- the reader's thread

    void read() {
        Chunk chunk;
        for (bool is_end = false; !is_end && !is_over_ && !was_interrupted();) {
            Input input;
            Result<Inputs::Next> got = inputs_.next(input);
            if (!got) fail(got.error());
            is_end = !got || *got == Inputs::Next::end;
            bool is_pause = got && *got == Inputs::Next::nothing_yet;
            if (!is_end && !is_pause) {
                chunk.bytes += bytes_of(input.process);
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
                ran.endings[i].state = InputResult::State::failed;
        }
        const usize lanes = device_.lanes();
        usize most = left.size();
        while (!left.empty() && !was_interrupted() && !is_over_) {
            std::vector<u32> now;
            for (; !left.empty() && now.size() < most; left.pop_front())
                now.push_back(left.front());
            bool may_fail = now.size() <= lanes;
            usize ended = TRY(run_round(chunk, now, may_fail, ran));
            for (u32 i : now)
                if (ran.endings[i].state == InputResult::State::unfinished) left.push_back(i);
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
        auto result = std::make_shared<const api::Result>(TRY(run_launch(chunk, now)));
        usize stopped = 0;
        for (u32 process = 0; process < now.size(); process++)
            stopped += is_stopped((*result)[process]);
        may_fail &= stopped == now.size() && !was_interrupted() && !is_over_;
        usize ended = 0;
        for (u32 process = 0; process < now.size(); process++) {
            InputResult& ending = ran.endings[now[process]];
            ending = ending_of(result, process, may_fail);
            if (ending.state == InputResult::State::unfinished) continue;
            chunk.inputs[now[process]].process = {};
            ended++;
        }
        samples_.add(result->stacks());
        look_at_dumps(*result);
        ran.notes_lost += result->debug_dropped();
        if (std::string lost = result->output_problem(); !lost.empty() && !was_interrupted())
            return Error{lost};
        return ended;
    }

    // What became of dumps. Once there are enough of them nobody wants more.
    void look_at_dumps(const api::Result& result) {
        constexpr u32 enough = 100;
        if (dump_problem_.empty()) dump_problem_ = result.dump_problem();
        dumps_ += result.dump_count();
        if (dumps_ >= enough || !dump_problem_.empty()) config_.dump("");
    }

    // `may_fail`: one that was stopped had its time.
    InputResult ending_of(const std::shared_ptr<const api::Result>& result, u32 number,
                          bool may_fail) {
        using State = InputResult::State;
        const api::Process process = (*result)[number];
        InputResult ending;
        if (is_stopped(process) && !may_fail) return ending;
        endings_.add(process);
        trapped_ += process.ending() == GPURUN_TRAPPED;
        ending.state = process.is_success() ? State::done : State::failed;
        if (ending.state == State::failed) ending.why = describe(process);
        ending.result = result;
        ending.process = number;
        ending.has_files = keeps_files(options_);
        return ending;
    }

    Result<api::Result> run_launch(Chunk& chunk, const std::vector<u32>& now) {
        for (u32 i : now) {
            ProcessInput& given = chunk.inputs[i].process;
            if (given.input)
                config_.process(given.arguments, *given.input);
            else
                config_.process(given.arguments);
            config_.process_number(given.number);
            // Nothing runs again where there is no time limit, and inputs are large.
            if (!options_.run.timeout) given = {};
        }
        api::Result result = TRY(attempt([&] { return api::run(device_, module_, config_); }));
        if (was_interrupted()) leave_unnamed_files();
        config_.clear_processes();
        chunk_size_.learn(result);
        slots_ = std::max(slots_, result.slots());
        note_layout(result);
        seconds_ += result.seconds();
        launches_ += result.launches();
        native_ = result.native();
        return result;
    }

    // The last chunks may be too small to say anything.
    void note_layout(const api::Result& result) {
        const gpurun_layout_choice choice = result.layout_choice();
        if (choice.reason == GPURUN_LAYOUT_UNTRIED && layout_choice_.reason != choice.reason)
            return;
        is_interleaved_ = result.layout() == GPURUN_LAYOUT_INTERLEAVED;
        layout_choice_ = choice;
    }

    // ---- the writer's thread

    void write() {
        while (std::optional<Ran> ran = ran_.take()) {
            Result<void> written = put(*ran);
            // Whatever came before a failure is kept.
            Result<void> flushed = results_.flush();
            if (!written || !flushed) {
                fail(!written ? written.error() : flushed.error());
                is_over_ = true;
                stop_runs();  // nobody would get what they do
                break;
            }
        }
        ran_.close();
        chunks_.close();
    }

    Result<void> put(const Ran& ran) {
        say_debug_lost(ran.notes_lost);
        for (usize i = 0; i < ran.inputs.size(); i++) {
            const Input& input = ran.inputs[i];
            const InputResult& ending = ran.endings[i];
            if (ending.state == InputResult::State::unfinished) continue;
            show_errors(input.label, ending.errors());
            if (shares_terminal_ && !ending.output().empty()) progress_.clear();
            TRY(results_.put(input, ending));
            if (ending.result) (*ending.result)[ending.process].unload_output();
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

    void count(const Input& input, const InputResult& ending) {
        if (ending.state == InputResult::State::failed) {
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

    // Says what was seen of the processes. Returns false if something of it could not be written.
    bool tell_looks() const {
        if (!dump_problem_.empty())
            say("--dump " + dump_problem_, Tone::bad);
        else if (!options_.run.dump.empty())
            note_dumps(trapped_, dumps_);
        return tell_profile(options_.run.profile, options_.run.file, samples_.samples(), device_,
                            false) &&
               dump_problem_.empty();
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
            say(interruption() + (is_stored ? "; --resume goes on from here" : ""));
            return finish_output(interrupted_code());
        }
        return finish_output(failed_ == 0 ? 0 : exit_input);
    }

    void say_figures() const {
        char text[256];
        std::snprintf(text, sizeof text, "%llu processes on %s in %.6f s, %llu launches",
                      (unsigned long long)(done_ + failed_), device_.id().c_str(), seconds_,
                      (unsigned long long)launches_);
        say(text);
        say_layout(device_, is_interleaved_, layout_choice_);
        say_phases(device_);
        say_tier(options_.run.file, tier(), native_);
    }

    std::string tier() const { return tier_name(options_.run.tier, native_); }

    const MapOptions& options_;
    const api::Device& device_;
    const api::Module& module_;
    api::Config& config_;  // with the processes of a launch, while it lasts
    Inputs& inputs_;       // the reader's
    Results& results_;     // the writer's
    ChunkSize chunk_size_;
    Progress progress_;  // the writer's
    Handoff<Chunk> chunks_;
    Handoff<Ran> ran_;
    std::mutex problem_mutex_;
    std::optional<Error> problem_;
    std::atomic<bool> is_over_ = false;
    // The main thread's.
    Endings endings_;
    gpurun_native native_ = {};  // of the latest launch
    u32 slots_ = 0;
    bool is_interleaved_ = false;  // memories: --layout
    gpurun_layout_choice layout_choice_ = {};
    double seconds_ = 0;
    u64 launches_ = 0;
    MergedSamples samples_;
    u64 trapped_ = 0, dumps_ = 0;
    std::string dump_problem_;
    // The writer's.
    const bool shares_terminal_ = options_.run.out.empty() && isatty(STDOUT_FILENO);
    u64 done_ = 0, failed_ = 0;
    std::vector<std::string> failures_;
};

Result<int> map_all(const MapOptions& options) {
    const RunOptions& run = options.run;
    api::Module module = TRY(load_module(run));
    api::Config config = TRY(make_config(run));
    TRY(check_config(run, module, config));
    config.keep_files(keeps_files(options));
    std::error_code problem;
    if (!options.in.empty() && !options.run.out.empty() &&
        std::filesystem::equivalent(options.in, options.run.out, problem))
        return Error{"--out " + options.run.out + ": the inputs are there; give another folder"};
    TRY(check_report(run.report));
    if (!run.profile.empty()) TRY(check_profile(run.profile));
    config.profiled(!run.profile.empty());
    api::Device device = TRY(choose_device(run.device));
    std::unique_ptr<Results> results;
    auto find_earlier = [&](const std::string& name) { return results->find_earlier(name); };
    std::unique_ptr<Inputs> inputs = options.in.empty()
                                         ? TRY(line_inputs(options, find_earlier))
                                         : TRY(file_inputs(options, find_earlier, max_input));
    // Last, so that nothing is made if something else is wrong.
    TRY(make_dump_folder(run, module));
    results = run.out.empty() ? print_results() : TRY(store_results(options));
    return Map(options, device, module, config, *inputs, *results).run();
}

}  // namespace

int run_map(const MapOptions& options) {
    Result<int> code = map_all(options);
    return code ? *code : input_error(code.error().to_string());
}

}  // namespace gpurun::tool
