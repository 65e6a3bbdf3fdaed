// Configurations: what is given is copied; what cannot be used is remembered for gpurun_run().
#include "api/handles.h"
#include "base/format.h"

using gpurun::Error;
using gpurun::Result;
using gpurun::u64;
using gpurun::u8;
using gpurun::engine::HostCall;
using gpurun::engine::HostFunction;
using gpurun::engine::Value;
using Input = gpurun::host::Streams::Input;

namespace {

template <class Body>
void change(gpurun_config* config, const char* setter, Body body) noexcept {
    if (!config) return;
    Result<void> done = gpurun::guarded([&]() -> Result<void> { return body(); });
    if (done || !config->problem.empty()) return;
    try {
        config->problem = std::string(setter) + ": " + done.error().to_string();
    } catch (...) {
        config->problem = gpurun::caught_error().message;
    }
}

Result<std::string> text(const char* given) {
    if (!given) return Error{"a text is NULL"};
    return std::string(given);
}

// A callback with what belongs to it.
struct Callback {
    gpurun_function function;
    void* data;
    void (*release)(void* data);

    Callback(gpurun_function f, void* d, void (*r)(void*)) : function(f), data(d), release(r) {}
    Callback(const Callback&) = delete;
    Callback& operator=(const Callback&) = delete;
    ~Callback() {
        if (release) release(data);
    }
};

Result<std::vector<Value>> call(const Callback& callback, const gpurun::wasm::FuncType& type,
                                HostCall& call) {
    std::vector<gpurun_value> arguments, results;
    for (const Value& value : call.arguments()) arguments.push_back(gpurun::api::to_c(value));
    for (gpurun::wasm::ValType result : type.results)
        results.push_back(gpurun::api::to_c(Value{result}));
    // Whatever thread it is, to run something on the guest's device would wait for itself.
    gpurun::api::Inside inside(call.device());
    gpurun_call handle{call};
    if (!callback.function(callback.data, &handle, arguments.data(), results.data()))
        return Error{"a host function failed"};
    std::vector<Value> values;
    for (const gpurun_value& value : results) values.push_back(TRY(gpurun::api::from_c(value)));
    return values;
}

Result<std::vector<gpurun::wasm::ValType>> types(const gpurun_type* given, size_t count) {
    if (!given && count > 0) return Error{"the types are NULL"};
    std::vector<gpurun::wasm::ValType> made;
    for (size_t i = 0; i < count; i++) made.push_back(TRY(gpurun::api::type_from_c(given[i])));
    return made;
}

}  // namespace

gpurun_config* gpurun_config_new(void) { return new (std::nothrow) gpurun_config; }
void gpurun_config_delete(gpurun_config* config) { delete config; }

void gpurun_config_set_function(gpurun_config* config, const char* name) {
    change(config, "gpurun_config_set_function", [&]() -> Result<void> {
        config->function = TRY(text(name));
        return {};
    });
}

void gpurun_config_add_argument(gpurun_config* config, const char* argument) {
    change(config, "gpurun_config_add_argument", [&]() -> Result<void> {
        config->arguments.push_back(TRY(text(argument)));
        return {};
    });
}

void gpurun_config_add_value(gpurun_config* config, gpurun_value value) {
    change(config, "gpurun_config_add_value", [&]() -> Result<void> {
        config->arguments.push_back(TRY(gpurun::api::from_c(value)).to_string());
        return {};
    });
}

void gpurun_config_set_program_name(gpurun_config* config, const char* name) {
    change(config, "gpurun_config_set_program_name", [&]() -> Result<void> {
        config->program_name = TRY(text(name));
        return {};
    });
}

void gpurun_config_add_environment(gpurun_config* config, const char* variable) {
    change(config, "gpurun_config_add_environment", [&]() -> Result<void> {
        std::string made = TRY(text(variable));
        if (made.find('=') == made.npos || made[0] == '=')
            return Error{"\"" + made + "\" is not NAME=VALUE"};
        config->system.environment.push_back(std::move(made));
        return {};
    });
}

void gpurun_config_add_directory(gpurun_config* config, const char* host_path,
                                 const char* guest_path, bool is_writable) {
    change(config, "gpurun_config_add_directory", [&]() -> Result<void> {
        std::string host = TRY(text(host_path)), guest = TRY(text(guest_path));
        config->system.mounts.push_back({std::move(host), std::move(guest), is_writable});
        return {};
    });
}

void gpurun_config_add_function(gpurun_config* config, const char* module, const char* name,
                                const gpurun_type* parameters, size_t parameter_count,
                                const gpurun_type* results, size_t result_count,
                                gpurun_function function, void* data, void (*release)(void* data)) {
    if (!config && release) release(data);
    change(config, "gpurun_config_add_function", [&]() -> Result<void> {
        // First of all, so that it is released whatever is wrong with the rest.
        std::shared_ptr<const Callback> callback;
        try {
            callback = std::make_shared<const Callback>(function, data, release);
        } catch (...) {
            if (release) release(data);
            throw;
        }
        if (!function) return Error{"the function is NULL"};
        HostFunction made;
        made.module = TRY(text(module));
        made.name = TRY(text(name));
        made.type.params = TRY(types(parameters, parameter_count));
        made.type.results = TRY(types(results, result_count));
        made.call = [callback, type = made.type](HostCall& it) {
            return call(*callback, type, it);
        };
        config->functions.push_back(std::move(made));
        return {};
    });
}

void gpurun_config_set_input(gpurun_config* config, const void* bytes, size_t size) {
    change(config, "gpurun_config_set_input", [&]() -> Result<void> {
        if (!bytes && size > 0) return Error{"the bytes are NULL"};
        const u8* first = static_cast<const u8*>(bytes);
        config->system.input = std::make_shared<const std::vector<u8>>(first, first + size);
        return {};
    });
}

void gpurun_config_set_input_callback(gpurun_config* config, gpurun_input input, void* data) {
    change(config, "gpurun_config_set_input_callback", [&]() -> Result<void> {
        config->streams.read = nullptr;
        if (!input) return {};
        config->streams.read = [=](size_t most, auto, auto) -> Result<Input> {
            std::vector<u8> bytes(most);
            bytes.resize(std::min(most, input(data, bytes.data(), bytes.size())));
            return Input(std::move(bytes));
        };
        return {};
    });
}

void gpurun_config_set_output_callback(gpurun_config* config, gpurun_output output, void* data) {
    change(config, "gpurun_config_set_output_callback", [&]() -> Result<void> {
        config->streams.write = nullptr;
        if (!output) return {};
        config->streams.write = [=](uint32_t process, int stream,
                                    std::string_view bytes) -> Result<bool> {
            return output(data, process, stream, bytes.data(), bytes.size());
        };
        return {};
    });
}

void gpurun_config_inherit_streams(gpurun_config* config) {
    if (config) config->streams.are_inherited = true;
}
void gpurun_config_set_processes(gpurun_config* config, uint32_t count) {
    if (config) config->many.processes = count;
}
void gpurun_config_add_process(gpurun_config* config, const char* const* arguments, size_t count,
                               const void* input, size_t size) {
    change(config, "gpurun_config_add_process", [&]() -> Result<void> {
        if ((!arguments && count > 0) || (!input && size > 0))
            return Error{"the arguments or the input is NULL"};
        gpurun::engine::Many::Own process;
        for (size_t i = 0; i < count; i++) process.arguments.push_back(TRY(text(arguments[i])));
        if (const u8* first = static_cast<const u8*>(input))
            process.input = std::make_shared<const std::vector<u8>>(first, first + size);
        config->many.own.push_back(std::move(process));
        return {};
    });
}
void gpurun_config_clear_processes(gpurun_config* config) {
    if (config) config->many.own.clear();
}
void gpurun_config_set_first_number(gpurun_config* config, uint32_t number) {
    if (config) config->many.first_number = number;
}
void gpurun_config_set_process_number(gpurun_config* config, uint32_t number) {
    change(config, "gpurun_config_set_process_number", [&]() -> Result<void> {
        if (config->many.own.empty()) return Error{"no process was added"};
        config->many.own.back().number = number;
        return {};
    });
}
void gpurun_config_set_stack(gpurun_config* config, uint32_t slots) {
    if (config) config->limits.stack_slots = slots;
}
void gpurun_config_set_heap(gpurun_config* config, uint32_t words) {
    if (config) config->limits.heap_words = words;
}
void gpurun_config_set_memory(gpurun_config* config, uint64_t bytes) {
    if (config) config->limits.memory_bytes = bytes;
}
void gpurun_config_set_output_buffer(gpurun_config* config, uint64_t bytes) {
    if (config) config->system.output_limit = std::max<uint64_t>(bytes, 1);
}
void gpurun_config_set_fuel(gpurun_config* config, uint64_t instructions) {
    if (config) config->limits.fuel = instructions;
}
void gpurun_config_set_timeout(gpurun_config* config, double seconds) {
    change(config, "gpurun_config_set_timeout", [&]() -> Result<void> {
        if (!(seconds >= 0)) return Error{gpurun::format("%g is no time in seconds", seconds)};
        config->timeout = seconds;
        return {};
    });
}
void gpurun_config_set_seed(gpurun_config* config, uint64_t seed) {
    if (config) config->system.seed = seed;
}
void gpurun_config_set_stop(gpurun_config* config, gpurun_stop* stop) {
    if (config) config->stop = stop ? stop->is_requested : nullptr;
}
void gpurun_config_keep_files(gpurun_config* config, bool is_kept) {
    if (config) config->system.keeps_files = is_kept;
}
void gpurun_config_set_write_progress(gpurun_config* config, gpurun_progress progress, void* data) {
    change(config, "gpurun_config_set_write_progress", [&]() -> Result<void> {
        config->system.write_listener = {};
        if (progress)
            config->system.write_listener = [progress, data](u64 done, u64 all) {
                progress(data, done, all);
            };
        return {};
    });
}
void gpurun_config_set_progress(gpurun_config* config, gpurun_progress progress, void* data) {
    change(config, "gpurun_config_set_progress", [&]() -> Result<void> {
        config->progress = {};
        if (progress)
            config->progress = [progress, data](u64 ended, u64 all) { progress(data, ended, all); };
        return {};
    });
}
void gpurun_config_set_trace(gpurun_config* config, gpurun_line line, void* data) {
    gpurun_config_set_debug(config, line, data);
    gpurun_config_set_traced(config, line != nullptr);
}
void gpurun_config_set_debug(gpurun_config* config, gpurun_line line, void* data) {
    change(config, "gpurun_config_set_debug", [&]() -> Result<void> {
        config->take_line = nullptr;
        if (line) config->take_line = [=](const std::string& text) { line(data, text.c_str()); };
        return {};
    });
}
void gpurun_config_set_traced(gpurun_config* config, bool is_traced) {
    if (config) config->system.is_traced = is_traced;
}
void gpurun_config_set_profiled(gpurun_config* config, bool is_profiled) {
    if (config) config->is_profiled = is_profiled;
}
void gpurun_config_set_tier(gpurun_config* config, gpurun_tier tier) {
    change(config, "gpurun_config_set_tier", [&]() -> Result<void> {
        using gpurun::device::Tier;
        switch (tier) {
            case GPURUN_TIER_AUTO: config->tier = Tier::automatic; return {};
            case GPURUN_TIER_INTERP: config->tier = Tier::interp; return {};
            case GPURUN_TIER_NATIVE: config->tier = Tier::native; return {};
            case GPURUN_TIER_ALTERNATE: config->tier = Tier::alternate; return {};
            case GPURUN_TIER_EARLY: config->tier = Tier::early; return {};
            case GPURUN_TIER_PARTIAL: config->tier = Tier::partial; return {};
            case GPURUN_TIER_QUICK: config->tier = Tier::quick; return {};
        }
        return Error{gpurun::format("%d is no tier", int(tier))};
    });
}
void gpurun_config_set_layout(gpurun_config* config, gpurun_layout layout) {
    change(config, "gpurun_config_set_layout", [&]() -> Result<void> {
        switch (layout) {
            case GPURUN_LAYOUT_AUTO: config->layout = {}; return {};
            case GPURUN_LAYOUT_LINEAR: config->layout = gpurun::Layout::linear; return {};
            case GPURUN_LAYOUT_INTERLEAVED: config->layout = gpurun::Layout::interleaved; return {};
        }
        return Error{gpurun::format("%d is no layout", int(layout))};
    });
}
void gpurun_config_set_watched(gpurun_config* config, bool is_watched) {
    if (config) config->is_watched = is_watched;
}
void gpurun_config_spoil(gpurun_config* config, uint32_t process) {
    if (config) config->many.spoilt = process;
}
void gpurun_config_set_dump(gpurun_config* config, const char* folder) {
    change(config, "gpurun_config_set_dump", [&]() -> Result<void> {
        config->dump = TRY(text(folder));
        if (config->dump->empty()) config->dump.reset();
        return {};
    });
}
void gpurun_config_set_priority(gpurun_config* config, uint32_t priority) {
    change(config, "gpurun_config_set_priority", [&]() -> Result<void> {
        if (priority >= gpurun::priorities) return Error{"a priority is 0, 1 or 2"};
        config->priority = priority;
        return {};
    });
}
void gpurun_config_set_share(gpurun_config* config, uint32_t percent) {
    change(config, "gpurun_config_set_share", [&]() -> Result<void> {
        if (percent == 0 || percent > 100) return Error{"a share is 1 to 100 percent"};
        config->machine.share = percent;
        return {};
    });
}
void gpurun_config_set_machine_memory(gpurun_config* config, uint64_t bytes) {
    if (config) config->machine.memory_bytes = bytes;
}
void gpurun_config_set_machine_processes(gpurun_config* config, uint32_t processes,
                                         uint32_t threads) {
    if (!config) return;
    config->machine.processes = processes;
    config->machine.threads = threads;
}
void gpurun_config_set_spin(gpurun_config* config, uint32_t microseconds) {
    if (config) config->machine.spin = std::chrono::microseconds(microseconds);
}

// ---- host calls and stops ----------------------------------------------------------

uint32_t gpurun_call_process(const gpurun_call* call) { return call ? call->call.process() : 0; }
uint64_t gpurun_call_memory_size(const gpurun_call* call) {
    return call ? call->call.memory_size() : 0;
}
bool gpurun_call_read(gpurun_call* call, uint64_t address, void* bytes, size_t size) {
    if (!call || (!bytes && size > 0)) return false;
    return call->call.read_memory(address, {static_cast<u8*>(bytes), size}).ok();
}
bool gpurun_call_write(gpurun_call* call, uint64_t address, const void* bytes, size_t size) {
    if (!call || (!bytes && size > 0)) return false;
    return call->call.write_memory(address, {static_cast<const u8*>(bytes), size}).ok();
}

gpurun_stop* gpurun_stop_new(void) {
    gpurun_stop* made = nullptr;
    gpurun_error_delete(gpurun::api::guarded([&]() -> Result<void> {
        made = new gpurun_stop{std::make_shared<std::atomic<bool>>(false)};
        return {};
    }));
    return made;
}
void gpurun_stop_delete(gpurun_stop* stop) { delete stop; }
void gpurun_stop_request(gpurun_stop* stop) {
    if (stop) stop->is_requested->store(true, std::memory_order_relaxed);
}
void gpurun_stop_reset(gpurun_stop* stop) {
    if (stop) stop->is_requested->store(false, std::memory_order_relaxed);
}
bool gpurun_stop_is_requested(const gpurun_stop* stop) {
    return stop && stop->is_requested->load(std::memory_order_relaxed);
}
