// Runs of the interface: from a configuration to a result.
#include <deque>

#include "api/handles.h"
#include "base/format.h"
#include "engine/names.h"

using namespace gpurun;
using engine::BurstReport;
using engine::SystemSnapshot;

namespace {

Result<void> run_one(device::Device& device, const engine::Job& job, gpurun_result& result) {
    engine::ProgramEnding ended = TRY(engine::run_program(device, job));
    result.seconds = ended.seconds;
    gpurun_result::Process& process = result.processes.emplace_back();
    result.dumps = ended.dumps;
    result.native = ended.native;
    api::collect(std::move(ended.completion), job.run.is_stopped(), 0, result);
    for (int stream : {1, 2}) api::collect_output(stream, ended.output[stream - 1], 0, result);
    if (ended.problem) {
        process.ending = GPURUN_FAILED;
        api::collect_message(ended.problem->to_string(), 0, result);
    }
    if (ended.was_output_closed) {
        process.ending = GPURUN_CLOSED;
        api::collect_message("nobody reads its output", 0, result);
    }
    process.block = ended.block;
    api::collect_records(ended.debug, result);
    result.debug_dropped = ended.debug_dropped;
    result.stacks = std::move(ended.samples);
    if (ended.dump) result.dump_problem = ended.dump->to_string();
    if (ended.snapshot.files) result.file_problem = ended.snapshot.files->to_string();
    if (!job.run.system.keeps_files) return {};
    auto snapshot = std::make_shared<const SystemSnapshot>(std::move(ended.snapshot));
    result.snapshot = snapshot.get();
    result.keeper = snapshot;
    return api::collect_files(0, result);
}

Result<void> check_many(const engine::Job& job) {
    const auto& [program, run] = job;
    const auto& [processes, own, first_number, spoilt] = run.many;
    if (!own.empty() && processes > 0 && processes != own.size())
        return Error{
            format("%u processes were asked for, and %zu were added", processes, own.size())};
    if (own.size() > ~u32{0}) return Error{"there are more processes than can be numbered"};
    if (run.streams.are_inherited)
        return Error{
            "several processes cannot share the standard streams; read their output from "
            "the result, or set a callback for it"};
    if (run.streams.read)
        return Error{"several processes cannot share an input callback; give the input as bytes"};
    TRY(engine::find_function_export(*program.module, run.function));
    return {};
}

// What the job of that number left.
Result<void> collect_job(const std::shared_ptr<const BurstReport>& report, u32 job,
                         const engine::Run& run, bool was_stopped, api::Spill& spill,
                         gpurun_result& result) {
    const device::BurstOutcome& outcome = report->outcome();
    result.seconds = outcome.seconds;
    result.slots = outcome.slots;
    result.layout = report->layout_choice();
    result.launches = outcome.launches;
    result.lanes_busy = outcome.busy;
    result.stop_seconds = outcome.stop_seconds.value_or(-1);
    result.dumps = report->dumps(job);
    result.stacks = report->samples(job);
    result.native = report->native_facts(job);
    if (report->dump_problem(job)) result.dump_problem = report->dump_problem(job)->to_string();
    const u32 processes = report->processes(job);
    result.processes.resize(processes);
    const SystemSnapshot* snapshot = report->snapshot(job);
    if (snapshot) result.system_bytes = snapshot->arena.bytes.size() - snapshot->base->base_end();
    if (run.system.keeps_files) {
        result.snapshot = snapshot;
        result.keeper = report;
    }
    const auto& problem = report->output_problem(job);
    Result<api::Spill::Mapped> spilled = spill.map_all(
        [&](u32 process, int stream) { return report->stream(process, stream, job); });
    if (spilled) result.spilled = std::move(*spilled);
    if (problem || !spilled)
        result.output_problem = (problem ? *problem : spilled.error()).to_string();
    bool is_wanted = true;
    for (u32 i = 0; i < processes; i++) {
        api::collect(report->of(i, job), was_stopped, i, result);
        result.processes[i].block = report->block(i, job);
        for (int stream : {1, 2}) {
            auto large = result.spilled.streams.find(api::Spill::key(i, stream));
            const bool is_large = large != result.spilled.streams.end();
            const std::string small =
                is_large ? std::string() : TRY(report->stream(i, stream, job));
            const std::string_view bytes = is_large ? large->second : std::string_view(small);
            if (!run.streams.write)
                api::collect_output(stream, small, i, result);
            else if (is_wanted && !bytes.empty())
                is_wanted = TRY(run.streams.write(run.many.first_number + i, stream, bytes));
        }
        TRY(api::collect_files(i, result));
    }
    if (const engine::Notes* notes = report->notes(job)) {
        api::collect_records(notes->kept(), result);
        result.debug_dropped = notes->lost();
    }
    return {};
}

using Results = std::vector<std::unique_ptr<gpurun_result>>;

Result<Results> run_many(device::Device& device, std::span<const engine::Job> jobs) {
    for (const engine::Job& job : jobs) TRY(check_many(job));
    std::deque<api::Spill> spills(jobs.size());
    auto spill = [&](u32 job, u32 process, int stream, std::string_view bytes) {
        return spills[job].append(process, stream, bytes);
    };
    auto report = std::make_shared<const BurstReport>(TRY(engine::run_burst(device, jobs, spill)));
    const bool was_stopped = jobs[0].run.is_stopped();
    Results results;
    for (u32 i = 0; i < jobs.size(); i++) {
        results.push_back(std::make_unique<gpurun_result>());
        TRY(collect_job(report, i, jobs[i].run, was_stopped, spills[i], *results.back()));
    }
    return results;
}

// Its kernel does not end, so nothing else would begin.
Result<void> check_free(const gpurun_device& device) {
    if (device.has_machine) return Error{"a machine has the device to itself"};
    return {};
}

Result<engine::Job> job_of(const gpurun_module* module, const gpurun_config* config) {
    if (!module || !config) return Error{"a job wants a module and a configuration"};
    if (!config->problem.empty()) return Error{config->problem};
    return engine::Job{*module, *config};
}

}  // namespace

gpurun_error* gpurun_config_check(const gpurun_config* config, const gpurun_module* module) {
    return api::guarded([&]() -> Result<void> {
        const engine::Job job = TRY(job_of(module, config));
        if (job.run.many.is_asked_for()) return check_many(job);
        TRY(engine::function_values(job));
        return {};
    });
}

gpurun_error* gpurun_run(gpurun_device* device, const gpurun_module* module,
                         const gpurun_config* config, gpurun_result** result) {
    if (config && config->many.is_asked_for()) {
        const gpurun_job job{module, config};
        return gpurun_run_jobs(device, &job, 1, result);
    }
    return api::guarded([&]() -> Result<void> {
        if (!device || !module || !config || !result)
            return Error{
                "gpurun_run wants a device, a module, a configuration and a place for the "
                "result"};
        const engine::Job job = TRY(job_of(module, config));
        auto made = std::make_unique<gpurun_result>();
        TRY(api::Inside::check(*device));
        api::DeviceLock lock(*device);
        TRY(check_free(*device));
        TRY(run_one(*device->device, job, *made));
        *result = made.release();
        return {};
    });
}

gpurun_error* gpurun_run_jobs(gpurun_device* device, const gpurun_job* jobs, size_t count,
                              gpurun_result** results) {
    return api::guarded([&]() -> Result<void> {
        if (!device || !jobs || count == 0 || !results)
            return Error{"gpurun_run_jobs wants a device, jobs and places for their results"};
        std::vector<engine::Job> all;
        for (size_t i = 0; i < count; i++)
            all.push_back(TRY(job_of(jobs[i].module, jobs[i].config)));
        TRY(api::Inside::check(*device));
        api::DeviceLock lock(*device);
        TRY(check_free(*device));
        Results made = TRY(run_many(*device->device, all));
        for (size_t i = 0; i < count; i++) results[i] = made[i].release();
        return {};
    });
}
