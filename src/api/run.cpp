// Runs of the interface: from a configuration to the engine's options and back to a result.
#include <algorithm>
#include <chrono>
#include <utility>

#include "api/handles.h"
#include "base/format.h"
#include "engine/names.h"
#include "engine/trace.h"

using namespace gpurun;
using engine::BurstReport;
using engine::Leavings;

namespace {

constexpr u32 debug_records = 4096, traced_records = 65536;  // then they are only counted

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
    system.is_traced = config.trace != nullptr;
    system.debug_capacity = config.trace ? traced_records : debug_records;
    bool is_live = !is_many(config) && (config.inherits_streams || config.input_callback);
    if (!is_live || config.input) system.input = config.input.value_or(std::vector<u8>());
    return system;
}

device::RunControl run_control(const gpurun_config& config) {
    using namespace std::chrono;
    constexpr double longest = 1e9;  // seconds; what a clock can count in nanoseconds
    device::RunControl control;
    control.stop = config.stop.get();
    if (config.timeout && *config.timeout < longest)
        control.deadline =
            steady_clock::now() + duration_cast<nanoseconds>(duration<double>(*config.timeout));
    return control;
}

host::Streams streams_of(const gpurun_config& config, std::string* captured) {
    host::Streams streams;
    if (config.inherits_streams) streams = host::console();
    if (config.output_callback) {
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
    if (config.input_callback)
        streams.read = [&config](usize most, auto, auto) -> Result<host::Streams::Input> {
            std::vector<u8> bytes(most);
            bytes.resize(std::min(
                most, config.input_callback(config.input_data, bytes.data(), bytes.size())));
            return host::Streams::Input(std::move(bytes));
        };
    return streams;
}

Result<std::vector<engine::Value>> function_arguments(const gpurun_module& module,
                                                      const gpurun_config& config) {
    const wasm::Export* entry = TRY(engine::find_function_export(*module.module, config.function));
    const std::vector<std::string> none;
    return engine::parse_arguments(module.module->func_type(entry->index), config.function,
                                   config.function == "_start" ? none : config.arguments);
}

Result<void> run_one(device::Device& device, const gpurun_module& module,
                     const gpurun_config& config, gpurun_result& result) {
    std::string captured[2];
    engine::ProgramOptions options;
    options.function = config.function;
    options.arguments = TRY(function_arguments(module, config));
    options.system = system_options(module, config);
    options.limits = engine::options_for(device.info());
    options.limits.fuel = config.fuel;
    options.limits.stack_slots = config.stack_slots.value_or(options.limits.stack_slots);
    options.limits.heap_words = config.heap_words.value_or(options.limits.heap_words);
    options.limits.memory_bytes = config.memory_bytes.value_or(options.limits.memory_bytes);
    options.host_functions = config.functions;
    options.streams = streams_of(config, captured);
    if (config.trace)
        options.take_record = [&config](const DebugRecord& record) {
            config.trace(config.trace_data, engine::describe(record).c_str());
        };
    if (config.dump)
        options.dump = TRY(engine::DumpFolder::make(*config.dump, module.name, *module.module));
    TRY(device.prepare(false));
    auto begin = std::chrono::steady_clock::now();
    engine::ProgramEnding ended =
        TRY(engine::run_program(device, module.module, options, run_control(config)));
    result.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    gpurun_result::Process& process = result.processes.emplace_back();
    api::collect(std::move(ended.completion), config, 0, result);
    for (int stream : {1, 2}) api::collect_output(stream, captured[stream - 1], 0, result);
    if (ended.was_output_closed) {
        process.ending = GPURUN_CLOSED;
        api::collect_message("nobody reads its output", 0, result);
    }
    process.is_initialising = !ended.has_begun;
    process.block = ended.block;
    api::collect_records(ended.debug, config, result);
    result.debug_dropped = ended.debug_dropped;
    if (ended.dump) result.file_problem = ended.dump->to_string();
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

// Every process has what all have, with its number for {}, and then what it has of its own.
std::vector<host::ProcessInput> process_inputs(const gpurun_config& config,
                                               const std::vector<std::string>& common, u32 count) {
    std::vector<host::ProcessInput> inputs(count);
    for (u32 i = 0; i < count; i++) {
        host::ProcessInput& made = inputs[i];
        if (!config.own.empty()) made = config.own[i];
        made.number = config.first_number + i;
        std::vector<std::string> all;
        for (const std::string& pattern : common)
            all.push_back(engine::with_number(pattern, made.number));
        made.arguments.insert(made.arguments.begin(), all.begin(), all.end());
    }
    return inputs;
}

Result<void> run_many(device::Device& device, const gpurun_module& module,
                      const gpurun_config& config, gpurun_result& result) {
    TRY(check_many(config));
    TRY(engine::find_function_export(*module.module, config.function));
    engine::BurstJob job{module.module, {}};
    const u32 processes = config.own.empty() ? config.processes : u32(config.own.size());
    const bool is_program = config.function == "_start";
    job.options.processes = processes;
    job.options.function = config.function;
    job.options.stack_slots = config.stack_slots;
    job.options.heap_words = config.heap_words;
    job.options.memory_bytes = config.memory_bytes;
    job.options.fuel = config.fuel;
    job.options.system = system_options(module, config);
    job.options.host_functions = config.functions;
    if (config.dump)
        job.options.dump = TRY(engine::DumpFolder::make(*config.dump, module.name, *module.module));
    // Where all are alike, the device makes their arguments.
    const bool is_each_different = !config.own.empty() || config.first_number != 0;
    std::vector<host::ProcessInput> inputs;
    if (is_each_different) {
        inputs = process_inputs(
            config, is_program ? job.options.system.arguments : config.arguments, processes);
    } else {
        job.options.system.has_numbered_arguments = true;
        if (!is_program) job.options.arguments = config.arguments;
    }
    if (is_each_different && !is_program)
        for (host::ProcessInput& input : inputs)
            job.options.own_arguments.push_back(
                std::exchange(input.arguments, job.options.system.arguments));
    job.options.system.inputs = inputs;
    TRY(device.prepare(true));
    auto report = std::make_shared<const BurstReport>(
        TRY(engine::run_burst(device, {&job, 1}, run_control(config))));
    result.seconds = report->outcome().seconds;
    if (report->dump_problem()) result.file_problem = report->dump_problem()->to_string();
    result.processes.resize(processes);
    if (config.keeps_files) {
        result.left = report->left();
        result.keeper = report;
    }
    bool is_wanted = true;
    for (u32 i = 0; i < processes; i++) {
        api::collect(report->of(i), config, i, result);
        result.processes[i].block = report->block(i);
        for (int stream : {1, 2}) {
            std::string bytes = TRY(report->stream(i, stream));
            if (!config.output_callback)
                api::collect_output(stream, bytes, i, result);
            else if (is_wanted && !bytes.empty())
                is_wanted = config.output_callback(config.output_data, config.first_number + i,
                                                   stream, bytes.data(), bytes.size());
        }
        TRY(api::collect_files(i, result));
    }
    api::collect_records(report->debug(result.debug_dropped), config, result);
    return {};
}

}  // namespace

gpurun_error* gpurun_run(gpurun_device* device, const gpurun_module* module,
                         const gpurun_config* config, gpurun_result** result) {
    return api::guarded([&]() -> Result<void> {
        if (!device || !module || !config || !result)
            return Error{
                "gpurun_run wants a device, a module, a configuration and a place for the "
                "result"};
        if (!config->problem.empty()) return Error{config->problem};
        auto made = std::make_unique<gpurun_result>();
        std::lock_guard only(device->running);
        TRY(is_many(*config) ? run_many(*device->device, *module, *config, *made)
                             : run_one(*device->device, *module, *config, *made));
        *result = made.release();
        return {};
    });
}
