// gpu-run map: one process for each of many inputs. Its parts, each with a thread of its own:
// map_inputs reads, map runs, map_results writes.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "commands.h"

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

// What its process gets.
struct ProcessInput {
    u32 number = 0;
    std::vector<std::string> arguments;
    std::optional<std::string> input;  // all of standard input; nothing: what all have
};

struct Input {
    std::string name;   // of its output below the folder of outputs
    std::string label;  // for people
    ProcessInput process;
    std::string mark;     // what it is, for the journal: another one has another mark
    std::string problem;  // why there is nothing to run; empty: there is
    double share = -1;    // of all inputs, those up to this one; below 0: nobody knows
};

// An input that an earlier run has done, and whose output is there.
struct EarlierResult {
    std::string mark;    // Input::mark of then; empty: that version of gpu-run did not note it
    s64 written_at = 0;  // the output's time of modification, ns
};
using FindEarlier = std::function<std::optional<EarlierResult>(const std::string& name)>;

class Inputs {
public:
    virtual ~Inputs() = default;
    enum class Next { input, nothing_yet, end };
    virtual Result<Next> next(Input& to) = 0;
    virtual u64 skipped() const = 0;  // that were done before and are the same, so far
};

// Both replace {} in the arguments. Contents larger than `most_bytes` are a problem of the input.
Result<std::unique_ptr<Inputs>> file_inputs(const MapOptions& options, FindEarlier find_earlier,
                                            u64 most_bytes);
Result<std::unique_ptr<Inputs>> line_inputs(const MapOptions& options, FindEarlier find_earlier);

// ---- results -----------------------------------------------------------------------

struct InputResult {
    enum class State { unfinished, done, failed };
    State state = State::unfinished;
    std::string why;                            // it failed
    std::shared_ptr<const api::Result> result;  // of its launch; nothing: it did not run
    u32 process = 0;                            // in there
    bool has_files = false;                     // what it changed is kept there

    std::string_view output() const { return result ? (*result)[process].output() : ""; }
    std::string_view errors() const { return result ? (*result)[process].error() : ""; }
};

// Inputs that were read together.
struct Ran {
    std::vector<Input> inputs;
    std::vector<InputResult> endings;  // of each
    u64 notes_lost = 0;                // lines of the debug functions and traces
};

// Where outputs go.
class Results {
public:
    virtual ~Results() = default;
    // In the order of the inputs; of those that are not unfinished.
    virtual Result<void> put(const Input& input, const InputResult& ending) = 0;
    // What was put stays, whatever happens next.
    virtual Result<void> flush() = 0;
    virtual std::optional<EarlierResult> find_earlier(const std::string& name) const = 0;
    // For people: where all failures are listed; empty: nowhere.
    virtual std::string failure_list() const = 0;
};

std::unique_ptr<Results> print_results();
Result<std::unique_ptr<Results>> store_results(const MapOptions& options);

}  // namespace gpurun::tool
