// Runs of the interface: from a configuration to the engine's options and back to a result.
#include <algorithm>
#include <chrono>
#include <deque>
#include <utility>

#include "api/handles.h"
#include "base/format.h"
#include "engine/beside.h"
#include "engine/names.h"
#include "engine/trace.h"

using namespace gpurun;
using engine::BurstReport;
using engine::Leavings;

namespace {

// Then they are only counted; of one process that is traced, taken away.
constexpr u32 debug_records = 4096, traced_records = 65536;

bool is_many(const gpurun_config& config) { return config.processes > 0 || !config.own.empty(); }

host::SystemOptions system_options(const gpurun_module& module, const gpurun_config& config) {
    host::SystemOptions system;
    system.mounts = config.mounts;
    system.environment = config.environment;
    system.arguments.push_back(config.program_name.value_or(module.name));
    if (config.function == "_start")
        system.arguments.insert(system.arguments.end(), config.arguments.begin(),
                                config.arguments.end());
    system.seed = config.seed;
    system.keeps_files = config.keeps_files;
    system.is_traced = config.is_traced;
    system.output_limit = config.output_buffer;
    return system;
}

device::Tier tier_of(const gpurun_config& config) {
    return api::tier_for(config.tier, config.dump || config.is_profiled);
}

bool is_stopped(const gpurun_config& config) { return config.stop && *config.stop; }

host::Streams streams_of(const gpurun_config& config, std::string* captured) {
    host::Streams streams;
    if (config.inherits_streams) streams = host::console();
    if (config.output_callback) {
        streams.terminals &= 1;
        streams.write = [&config](int stream, std::string_view bytes) -> Result<bool> {
            return config.output_callback(config.output_data, 0, stream, bytes.data(),
                                          bytes.size());
        };
    } else if (!config.inherits_streams) {
        streams.write = [captured](int stream, std::string_view bytes) -> Result<bool> {
            captured[stream - 1] += bytes;
            return true;
        };
    }
    if (config.input_callback) {
        streams.terminals &= ~u32{1};
        streams.read = [&config](usize most, auto, auto) -> Result<host::Streams::Input> {
            std::vector<u8> bytes(most);
            bytes.resize(std::min(
                most, config.input_callback(config.input_data, bytes.data(), bytes.size())));
            return host::Streams::Input(std::move(bytes));
        };
    }
    return streams;
}

Result<std::vector<engine::Value>> function_arguments(const gpurun_module& module,
                                                      const gpurun_config& config) {
    const wasm::Export* entry = TRY(engine::find_function_export(*module.module, config.function));
    const std::vector<std::string> none;
    return engine::parse_arguments(module.module->func_type(entry->index), config.function,
                                   config.function == "_start" ? none : config.arguments);
}

Result<std::optional<engine::DumpFolder>> dump_folder(const gpurun_module& module,
                                                      const gpurun_config& config) {
    if (!config.dump) return std::optional<engine::DumpFolder>();
    return std::optional(TRY(engine::DumpFolder::make(*config.dump, module.name, *module.module)));
}

Result<engine::ProgramOptions> program_options(const device::DeviceInfo& device,
                                               const gpurun_module& module,
                                               const gpurun_config& config) {
    engine::ProgramOptions options;
    options.function = config.function;
    options.arguments = TRY(function_arguments(module, config));
    options.system = system_options(module, config);
    options.system.debug_capacity = debug_records;
    const bool is_live = config.inherits_streams || config.input_callback;
    if (!is_live || config.input) options.system.input = config.input.value_or(std::vector<u8>());
    options.limits = engine::options_for(device, *module.module, config.memory_bytes);
    options.limits.fuel = config.fuel;
    options.limits.stack_slots = config.stack_slots.value_or(options.limits.stack_slots);
    options.limits.heap_words = config.heap_words.value_or(options.limits.heap_words);
    options.limits.is_watched = config.is_watched;
    options.limits.tier = tier_of(config);
    options.limits.images = module.images;
    options.is_profiled = config.is_profiled;
    options.host_functions = config.functions;
    if (config.line)
        options.take_record = [&config](const DebugRecord& record) {
            config.line(config.line_data, engine::describe(record).c_str());
        };
    options.dump = TRY(dump_folder(module, config));
    return options;
}

Result<void> run_one(device::Device& device, const gpurun_module& module,
                     const gpurun_config& config, gpurun_result& result) {
    std::string captured[2];
    engine::ProgramOptions options = TRY(program_options(device.info(), module, config));
    options.streams = streams_of(config, captured);
    // Their time limits are theirs, so what has to be made ready for them comes before.
    TRY(engine::prepare(device, device::Mode::space, api::stop_control(config)));
    auto begin = std::chrono::steady_clock::now();
    engine::ProgramEnding ended =
        TRY(engine::run_program(device, module.module, options, api::run_control(config)));
    result.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    gpurun_result::Process& process = result.processes.emplace_back();
    result.dumps = ended.dumps;
    result.native = ended.native;
    api::collect(std::move(ended.completion), is_stopped(config), 0, result);
    for (int stream : {1, 2}) api::collect_output(stream, captured[stream - 1], 0, result);
    if (ended.problem) {
        process.ending = GPURUN_FAILED;
        api::collect_message(ended.problem->to_string(), 0, result);
    }
    if (ended.was_output_closed) {
        process.ending = GPURUN_CLOSED;
        api::collect_message("nobody reads its output", 0, result);
    }
    process.is_initialising = !ended.has_begun;
    process.block = ended.block;
    api::collect_records(ended.debug, config, result);
    result.debug_dropped = ended.debug_dropped;
    result.stacks = std::move(ended.samples);
    if (ended.dump) result.dump_problem = ended.dump->to_string();
    if (ended.files) result.file_problem = ended.files->to_string();
    if (!config.keeps_files) return {};
    auto left = std::make_shared<const Leavings>(std::move(ended.left));
    result.left = left.get();
    result.keeper = left;
    return api::collect_files(0, result);
}

Result<void> check_many(const gpurun_config& config) {
    if (!config.own.empty() && config.processes > 0 && config.processes != config.own.size())
        return Error{format("%u processes were asked for, and %zu were added", config.processes,
                            config.own.size())};
    if (config.own.size() > ~u32{0}) return Error{"there are more processes than can be numbered"};
    if (config.inherits_streams)
        return Error{
            "several processes cannot share the standard streams; read their output from "
            "the result, or set a callback for it"};
    if (config.input_callback)
        return Error{"several processes cannot share an input callback; give the input as bytes"};
    return {};
}

// What a process passes to the engine has what all have, with its number for {}, before what it has
// of its own. `names` of the first stay as they are: they are no arguments.
std::vector<host::ProcessInput> process_inputs(const gpurun_config& config,
                                               const std::vector<std::string>& common, usize names,
                                               u32 count) {
    std::vector<host::ProcessInput> inputs(count);
    for (u32 i = 0; i < count; i++) {
        host::ProcessInput& made = inputs[i];
        made.number = config.first_number + i;
        if (!config.own.empty()) {
            made.number = config.own[i].number.value_or(made.number);
            made.input = config.own[i].input;
        }
        for (usize k = 0; k < common.size(); k++)
            made.arguments.push_back(k < names ? common[k]
                                               : engine::with_number(common[k], made.number));
        if (!config.own.empty())
            made.arguments.insert(made.arguments.end(), config.own[i].arguments.begin(),
                                  config.own[i].arguments.end());
    }
    return inputs;
}

// System memory for processes whose inputs come in large numbers. Where untouched memory costs
// nothing, a program that writes on and on must still not take all there is.
u64 arena_size(const device::DeviceInfo& device, const std::vector<host::ProcessInput>& inputs) {
    constexpr u64 beside = 512;  // what else is kept for an input
    u64 size = engine::system_bytes(device, u32(inputs.size()));
    if (device.reserves_lazily) size = std::min(size, device.memory_free / 8);
    for (const host::ProcessInput& input : inputs) {
        size += beside + (input.input ? input.input->size() : 0);
        for (const std::string& text : input.arguments) size += sizeof text + text.size();
    }
    return size & ~u64{0xffff};
}

// `inputs` is what the job points to.
Result<engine::BurstJob> make_job(const device::DeviceInfo& device, const gpurun_module& module,
                                  const gpurun_config& config,
                                  std::vector<host::ProcessInput>& inputs) {
    TRY(check_many(config));
    TRY(engine::find_function_export(*module.module, config.function));
    engine::BurstJob job{module.module, {}};
    const bool is_program = config.function == "_start";
    job.options.processes =
        config.own.empty() ? std::max(config.processes, 1u) : u32(config.own.size());
    job.options.function = config.function;
    job.options.stack_slots = config.stack_slots;
    job.options.heap_words = config.heap_words;
    job.options.memory_bytes = config.memory_bytes;
    job.options.fuel = config.fuel;
    job.options.is_watched = config.is_watched;
    job.options.tier = tier_of(config);
    job.options.images = module.images;
    job.options.spoilt = config.spoilt;
    job.options.system = system_options(module, config);
    job.options.system.debug_capacity = config.is_traced ? traced_records : debug_records;
    job.options.system.input = config.input.value_or(std::vector<u8>());
    job.options.host_functions = config.functions;
    job.options.dump = TRY(dump_folder(module, config));
    job.options.is_profiled = config.is_profiled;
    if (config.own.empty() && config.first_number == 0) {
        // Where all are alike, the device makes their arguments.
        job.options.system.has_numbered_arguments = true;
        if (!is_program) job.options.arguments = config.arguments;
        return job;
    }
    inputs = process_inputs(config, is_program ? job.options.system.arguments : config.arguments,
                            is_program ? 1 : 0, job.options.processes);
    if (!config.own.empty()) job.options.system.arena_size = arena_size(device, inputs);
    if (config.dump)
        for (const host::ProcessInput& input : inputs) job.options.numbers.push_back(input.number);
    if (!is_program)
        for (host::ProcessInput& input : inputs)
            job.options.own_arguments.push_back(
                std::exchange(input.arguments, job.options.system.arguments));
    job.options.system.inputs = inputs;
    return job;
}

// What the job of that number left.
Result<void> collect_job(const std::shared_ptr<const BurstReport>& report, u32 job,
                         const gpurun_config& config, bool was_stopped, api::Spill& spill,
                         gpurun_result& result) {
    const device::BurstOutcome& outcome = report->outcome();
    result.seconds = outcome.seconds;
    result.slots = outcome.slots;
    result.launches = outcome.launches;
    result.lanes_busy = outcome.busy;
    result.stop_seconds = outcome.stop_seconds.value_or(-1);
    result.dumps = report->dumps(job);
    result.stacks = report->samples(job);
    result.native = report->native_facts(job);
    if (report->dump_problem(job)) result.dump_problem = report->dump_problem(job)->to_string();
    const u32 processes = report->processes(job);
    result.processes.resize(processes);
    const Leavings* left = report->left(job);
    if (left) result.system_bytes = left->arena.bytes.size() - left->image->base_end();
    if (config.keeps_files) {
        result.left = left;
        result.keeper = report;
    }
    const auto& problem = report->output_problem(job);
    Result<api::Spill::Packed> packed =
        spill.pack([&](u32 process, int stream) { return report->stream(process, stream, job); });
    if (packed) result.spilled = std::move(*packed);
    if (problem || !packed)
        result.output_problem = (problem ? *problem : packed.error()).to_string();
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
            if (!config.output_callback)
                api::collect_output(stream, small, i, result);
            else if (is_wanted && !bytes.empty())
                is_wanted = config.output_callback(config.output_data, config.first_number + i,
                                                   stream, bytes.data(), bytes.size());
        }
        TRY(api::collect_files(i, result));
    }
    api::collect_records(report->debug(result.debug_dropped, job), config, result);
    return {};
}

using Results = std::vector<std::unique_ptr<gpurun_result>>;

// Has host functions called by whatever thread as if it were the one that runs the processes.
void mark_calls(std::vector<engine::HostFunction>& functions, const gpurun_device& device) {
    for (engine::HostFunction& function : functions)
        function.call = [&device, call = std::move(function.call)](engine::HostCall& it) {
            api::Inside inside(device);
            return call(it);
        };
}

Result<Results> run_many(gpurun_device& on, std::span<const gpurun_job> jobs) {
    device::Device& device = *on.device;
    std::vector<engine::BurstJob> made;
    std::vector<std::vector<host::ProcessInput>> inputs(jobs.size());
    for (usize i = 0; i < jobs.size(); i++)
        made.push_back(TRY(make_job(device.info(), *jobs[i].module, *jobs[i].config, inputs[i])));
    for (engine::BurstJob& job : made) mark_calls(job.options.host_functions, on);
    const gpurun_config& first = *jobs[0].config;
    TRY(engine::prepare(device, device::Mode::burst, api::stop_control(first)));
    std::deque<api::Spill> spills(jobs.size());
    for (usize i = 0; i < jobs.size(); i++)
        made[i].options.take_output = [&spill = spills[i]](u32 process, int stream,
                                                           std::string_view bytes) -> Result<bool> {
            TRY(spill.append(process, stream, bytes));
            return true;
        };
    auto report = std::make_shared<const BurstReport>(
        TRY(engine::run_burst(device, made, api::run_control(first))));
    inputs.clear();
    Results results;
    for (u32 i = 0; i < jobs.size(); i++) {
        results.push_back(std::make_unique<gpurun_result>());
        TRY(collect_job(report, i, *jobs[i].config, is_stopped(first), spills[i], *results.back()));
    }
    return results;
}

// Its kernel does not end, so nothing else would begin.
Result<void> check_free(const gpurun_device& device) {
    if (device.has_machine) return Error{"a machine has the device to itself"};
    return {};
}

Result<void> check_job(const gpurun_job& job) {
    if (!job.module || !job.config) return Error{"a job wants a module and a configuration"};
    if (!job.config->problem.empty()) return Error{job.config->problem};
    return {};
}

}  // namespace

namespace gpurun::api {

device::Tier tier_for(device::Tier wanted, bool is_looked_at) {
    return wanted == device::Tier::automatic && is_looked_at ? device::Tier::interp : wanted;
}

device::RunControl stop_control(const gpurun_config& config) {
    device::RunControl control;
    control.stop = config.stop.get();
    return control;
}

device::RunControl run_control(const gpurun_config& config) {
    using namespace std::chrono;
    constexpr double longest = 1e9;  // seconds; what a clock can count in nanoseconds
    device::RunControl control = stop_control(config);
    if (config.timeout && *config.timeout < longest)
        control.deadline =
            steady_clock::now() + duration_cast<nanoseconds>(duration<double>(*config.timeout));
    return control;
}

}  // namespace gpurun::api

gpurun_error* gpurun_config_check(const gpurun_config* config, const gpurun_module* module) {
    return api::guarded([&]() -> Result<void> {
        TRY(check_job({module, config}));
        if (!is_many(*config)) {
            TRY(function_arguments(*module, *config));
            return {};
        }
        TRY(check_many(*config));
        TRY(engine::find_function_export(*module->module, config->function));
        return {};
    });
}

gpurun_error* gpurun_run(gpurun_device* device, const gpurun_module* module,
                         const gpurun_config* config, gpurun_result** result) {
    if (config && is_many(*config)) {
        const gpurun_job job{module, config};
        return gpurun_run_jobs(device, &job, 1, result);
    }
    return api::guarded([&]() -> Result<void> {
        if (!device || !module || !config || !result)
            return Error{
                "gpurun_run wants a device, a module, a configuration and a place for the "
                "result"};
        TRY(check_job({module, config}));
        auto made = std::make_unique<gpurun_result>();
        TRY(api::Inside::check(*device));
        api::Turn only(*device);
        TRY(check_free(*device));
        TRY(run_one(*device->device, *module, *config, *made));
        *result = made.release();
        return {};
    });
}

gpurun_error* gpurun_run_jobs(gpurun_device* device, const gpurun_job* jobs, size_t count,
                              gpurun_result** results) {
    return api::guarded([&]() -> Result<void> {
        if (!device || !jobs || count == 0 || !results)
            return Error{"gpurun_run_jobs wants a device, jobs and places for their results"};
        for (size_t i = 0; i < count; i++) TRY(check_job(jobs[i]));
        TRY(api::Inside::check(*device));
        api::Turn only(*device);
        TRY(check_free(*device));
        Results made = TRY(run_many(*device, {jobs, count}));
        for (size_t i = 0; i < count; i++) results[i] = made[i].release();
        return {};
    });
}
