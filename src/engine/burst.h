// Runs many processes at once. Each process of a job makes the same call, with arguments that may
// contain its number.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/device.h"
#include "engine/burst_ranges.h"
#include "engine/profile.h"
#include "engine/run.h"
#include "engine/trace.h"

namespace gpurun::engine {

inline constexpr u32 max_dumps = 100;  // of a job: enough to look at, little to wait for

// The state in which the processes of a job begin: an instance that was made on the CPU, whatever
// device they run on. Its initialisers have run there if they make no system call and end well;
// otherwise each process runs them.
struct Template {
    std::unique_ptr<Store> store;
    Instance* instance = nullptr;
    bool is_initialised = false;
    Extern func;  // that they call

    // Returns the function that a thread calls to begin with an exported function.
    Result<Extern> entry(const wasm::Export& wanted,
                         const wasm::Export* initialize = nullptr) const;
};
// Returns the options of a template's store for processes on that device.
StoreOptions template_options(const Job& job, device::Device& device,
                              const device::RunControl& control);
// Makes the template of processes that call `function`.
Result<Template> make_template(const Job& job, const std::string& function,
                               const StoreOptions& wanted);

// How each process of each job ended.
class BurstReport {
public:
    struct Part {
        std::unique_ptr<Store> store;
        Extern func;
        u32 processes = 0;
        std::optional<SystemSnapshot> snapshot;  // of modules with imports
        u32 dumps = 0;                           // that were written
        std::optional<Error> dump_problem;
        std::optional<Error> output_problem;  // why output was lost
        std::optional<Notes> notes;           // of modules with imports
        Sampler sampler;                      // of a job that is profiled
    };
    BurstReport(std::vector<Part> parts, device::BurstOutcome outcome, const LayoutChoice& choice)
        : parts_(std::move(parts)), outcome_(std::move(outcome)), layout_choice_(choice) {}

    u32 jobs() const { return u32(parts_.size()); }
    u32 processes(u32 job = 0) const { return parts_[job].processes; }
    Completion of(u32 process, u32 job = 0) const;
    const device::BurstOutcome& outcome() const { return outcome_; }
    const LayoutChoice& layout_choice() const { return layout_choice_; }

    // Returns standard output (1) or standard error (2) of a process.
    Result<std::string> stream(u32 process, int number, u32 job = 0) const;
    // Returns the lines that processes noted and nobody took, and how many found no room, or null
    // if there are none.
    const Notes* notes(u32 job = 0) const;
    // Return the system memory that all processes of the job left, and where the block of one is in
    // it, or 0 if it has none.
    const SystemSnapshot* snapshot(u32 job = 0) const;
    Handle block(u32 process, u32 job = 0) const;
    // Return how many processes were dumped, max_dumps at most, and why others were not.
    u32 dumps(u32 job = 0) const { return parts_[job].dumps; }
    const std::optional<Error>& dump_problem(u32 job = 0) const { return parts_[job].dump_problem; }
    const std::optional<Error>& output_problem(u32 job = 0) const {
        return parts_[job].output_problem;
    }
    // Returns all stacks that processes of the job were seen with, if it was profiled.
    std::vector<StackSample> samples(u32 job = 0) const {
        const Part& part = parts_[job];
        return part.store ? part.sampler.samples(*part.store) : std::vector<StackSample>();
    }
    NativeFacts native_facts(u32 job = 0) const {
        return parts_[job].store ? parts_[job].store->native_facts() : NativeFacts();
    }

private:
    std::vector<Part> parts_;
    device::BurstOutcome outcome_;
    LayoutChoice layout_choice_;
};

// Takes output of processes that have written more than the device holds, while they run; the rest
// is in the report. Returns an Error if the output is lost.
using TakeSpill = std::function<Result<void>(u32 job, u32 process, int stream, std::string_view)>;

// Runs all jobs as one launch, under the control of the first. Processes that are stopped before
// they begin have an ending, too.
Result<BurstReport> run_burst(device::Device& device, std::span<const Job> jobs,
                              const TakeSpill& spill);

}  // namespace gpurun::engine
