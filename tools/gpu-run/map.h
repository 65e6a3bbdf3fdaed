// gpu-run map: one process for each of many inputs. Its parts, each with a thread of its own:
// map_inputs reads, map runs, map_results writes.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "commands.h"
#include "engine/burst.h"

namespace gpurun::tool {

struct MapOptions {
    RunOptions run;         // its `out`: a folder for the outputs; empty: standard output
    std::string in, lines;  // a folder, or a file; one of them
    std::optional<u32> jobs;
    bool resumes = false;
    bool has_progress = true;  // shown, if there is a terminal
};

int run_map(const MapOptions& options);

// Below the folder of outputs: what map keeps for itself.
inline constexpr const char* map_folder = ".gpu-run";
// Behind the name of an output: the folder of the files that its process changed.
inline constexpr const char* changed_suffix = ".files";

// ---- inputs ------------------------------------------------------------------------

struct Input {
    std::string name;   // of its output below the folder of outputs
    std::string label;  // for people
    host::ProcessInput given;
    std::string problem;  // why there is nothing to run; empty: there is
    double share = -1;    // of all inputs, those up to this one; below 0: nobody knows
};

// What of an earlier run need not be done again.
using IsDone = std::function<bool(const std::string& name)>;

class Inputs {
public:
    virtual ~Inputs() = default;
    enum class Got { input, nothing_yet, end };
    virtual Result<Got> next(Input& to) = 0;
    virtual u64 skipped() const = 0;  // that were done before, so far
};

// Both replace {} in the arguments. Contents larger than `most_bytes` are a problem of the input.
Result<std::unique_ptr<Inputs>> file_inputs(const MapOptions& options,
                                            std::vector<std::string> arguments, IsDone is_done,
                                            u64 most_bytes);
Result<std::unique_ptr<Inputs>> line_inputs(const MapOptions& options,
                                            std::vector<std::string> arguments, IsDone is_done);

// ---- results -----------------------------------------------------------------------

struct Ending {
    enum class State { unfinished, done, failed };
    State state = State::unfinished;
    std::string why;  // it failed
    std::string output, errors;
    // Where the files that it changed are, if somebody wants them.
    std::shared_ptr<const engine::BurstReport> report;
    u32 process = 0;
};

// Inputs that were read together.
struct Ran {
    std::vector<Input> inputs;
    std::vector<Ending> endings;  // of each
    std::vector<DebugRecord> records;
    u64 records_dropped = 0;
};

// Where outputs go.
class Results {
public:
    virtual ~Results() = default;
    // In the order of the inputs; of those that are not unfinished.
    virtual Result<void> put(const Input& input, const Ending& ending) = 0;
    // What was put stays, whatever happens next.
    virtual Result<void> settle() = 0;
    virtual bool is_done(const std::string& name) const = 0;
    // For people: where all failures are listed; empty: nowhere.
    virtual std::string failure_list() const = 0;
};

std::unique_ptr<Results> print_results();
Result<std::unique_ptr<Results>> store_results(const MapOptions& options);

}  // namespace gpurun::tool
