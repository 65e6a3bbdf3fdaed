// Many processes at once: for each job the same call in each of its processes, with arguments that
// may name the process.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/device.h"
#include "engine/program.h"
#include "engine/store.h"

namespace gpurun::engine {

struct BurstOptions {
    u32 processes = 1;
    std::string function;
    std::vector<std::string> arguments;  // {} stands for the process's number, from 0
    std::vector<std::vector<std::string>> own_arguments;  // of each process, instead; or empty
    std::optional<u32> stack_slots, heap_words;
    std::optional<u64> memory_bytes, fuel;
    bool is_watched = false;  // as in StoreOptions
    device::Tier tier = device::Tier::interp;
    std::shared_ptr<Images> images;  // of the job's module
    bool is_for_machine = false;     // its template, to be exact
    u32 spoilt = ~u32{0};            // the process whose watch must fail, to test that
    // For modules with imports. arena_size 0: what suits the device. Its `inputs`, if there are
    // any, are one for each process.
    host::SystemOptions system;
    std::vector<HostFunction> host_functions;
    // Numbers that dumps of the processes have; empty: they are counted from 0.
    std::vector<u32> numbers;
    std::optional<DumpFolder> dump;  // where the state of those goes that trap
    bool is_profiled = false;        // the report has samples of their stacks
    // Takes output while processes run, of those that have written more than the device holds
    // (SystemOptions::output_limit); the rest of it is in the report.
    TakeOutput take_output;
};

inline constexpr u32 max_dumps = 100;  // of a job: enough to look at, little to wait for

// The pattern with a number for each {}.
std::string with_number(const std::string& pattern, u32 number);

// What one part of a burst runs.
struct BurstJob {
    std::shared_ptr<const wasm::Module> module;
    BurstOptions options;
};

// What the processes of a job begin as: an instance that was made on the CPU, whatever device they
// are for.
struct Template {
    std::optional<System> system;  // what its initialisers used
    std::unique_ptr<Store> store;
    Instance* instance = nullptr;
    Extern func;  // that they call
};
Result<Template> make_template(const std::shared_ptr<const wasm::Module>& module,
                               const BurstOptions& options, const device::RunControl& control,
                               device::Device* bursts_on);

// How each process of each job ended.
class BurstReport {
public:
    struct Part {
        std::optional<System> template_system;  // what initialisers of the template used
        std::unique_ptr<Store> store;
        Extern func;
        u32 processes = 0;
        std::optional<Leavings> left;  // of modules with imports
        u32 dumps = 0;                 // that were written
        std::optional<Error> dump_problem;
        std::optional<Error> output_problem;  // why output was lost
        Sampler sampler;                      // of a job that is profiled
    };
    BurstReport(std::vector<Part> parts, device::BurstOutcome outcome)
        : parts_(std::move(parts)), outcome_(std::move(outcome)) {}

    u32 jobs() const { return u32(parts_.size()); }
    u32 processes(u32 job = 0) const { return parts_[job].processes; }
    Completion of(u32 process, u32 job = 0) const;
    const device::BurstOutcome& outcome() const { return outcome_; }

    // Standard output (1) and standard error (2) of a process.
    Result<std::string> stream(u32 process, int number, u32 job = 0) const;
    // Writes what a process made or changed below `folder`.
    Result<void> store_files(u32 process, const std::string& folder, u32 job = 0) const;
    std::vector<DebugRecord> debug(u64& dropped, u32 job = 0) const;
    // What all processes of the job left, and where the block of one is in it; 0: it has none.
    const Leavings* left(u32 job = 0) const;
    Handle block(u32 process, u32 job = 0) const;
    // How many were dumped, max_dumps at the most, and what kept others from it.
    u32 dumps(u32 job = 0) const { return parts_[job].dumps; }
    const std::optional<Error>& dump_problem(u32 job = 0) const { return parts_[job].dump_problem; }
    const std::optional<Error>& output_problem(u32 job = 0) const {
        return parts_[job].output_problem;
    }
    // The stacks that processes of the job were seen with, all together, if it was profiled.
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
};

// Runs all jobs in one launch. Processes that `control` stops before they begin have ended, too.
Result<BurstReport> run_burst(device::Device& device, std::span<const BurstJob> jobs,
                              const device::RunControl& control);

}  // namespace gpurun::engine
