// Many processes in wasmtime's native code on all cores: the rival of gpu-run --instances. Module,
// arguments and output are gpu-run's, so that what both print can be compared byte for byte.
// wasmtime is a shared library, opened at run time: scripts/find-wasmtime prints its path.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/format.h"
#include "base/result.h"
#include "engine/load.h"
#include "engine/value.h"
#include "wasmtime_library.h"

using namespace gpurun;
using namespace gpurun::wasmtime;

namespace {

// ---- the module in wasmtime, set up to be as fast as it can be

struct Options {
    std::string library, file, function;
    std::vector<std::string> arguments;
    u32 threads = std::max(1u, std::thread::hardware_concurrency());
    u32 instances = 1;
    u32 keep_resident = 1 << 20;
    bool each = false, stats = false;
};

struct Compiled {  // never deleted: the command ends with it
    wasm_engine_t* engine;
    wasmtime_instance_pre_t* instance_pre;
};

// A pool with a slot for each thread: what the last process left mapped there, the next one uses.
// Pages that it wrote, up to keep_resident bytes, are restored in place instead of being given back
// to the kernel, which costs a fault each to have again. Without support for concurrency a store
// is cheaper to make; no process here calls asynchronous functions.
wasm_engine_t* make_engine(const Options& options) {
    wasmtime_pooling_allocation_config_t* pool = wasmtime_pooling_allocation_config_new();
    wasmtime_pooling_allocation_config_total_core_instances_set(pool, options.threads);
    wasmtime_pooling_allocation_config_total_memories_set(pool, options.threads);
    wasmtime_pooling_allocation_config_total_tables_set(pool, options.threads);
    wasmtime_pooling_allocation_config_max_unused_warm_slots_set(pool, options.threads);
    wasmtime_pooling_allocation_config_linear_memory_keep_resident_set(pool, options.keep_resident);
    wasmtime_pooling_allocation_config_table_keep_resident_set(pool, options.keep_resident);
    wasm_config_t* config = wasm_config_new();
    wasmtime_config_strategy_set(config, strategy_cranelift);
    wasmtime_config_cranelift_opt_level_set(config, opt_level_speed);
    wasmtime_config_memory_init_cow_set(config, true);
    wasmtime_config_concurrency_support_set(config, false);
    wasmtime_pooling_allocation_strategy_set(config, pool);
    wasmtime_pooling_allocation_config_delete(pool);
    return wasm_engine_new_with_config(config);
}

Result<Compiled> compile(const wasm::Bytes& bytes, const Options& options) {
    Compiled compiled{make_engine(options), nullptr};
    wasmtime_module_t* module = nullptr;
    if (auto error =
            failure(wasmtime_module_new(compiled.engine, bytes.data(), bytes.size(), &module)))
        return *error;
    wasmtime_linker_t* linker = wasmtime_linker_new(compiled.engine);
    if (auto error =
            failure(wasmtime_linker_instantiate_pre(linker, module, &compiled.instance_pre)))
        return *error;
    return compiled;
}

// ---- the processes

// Of all processes: the arguments, and after its end the results, of each from id * stride on.
struct Values {
    size_t stride;
    std::vector<wasmtime_val_raw_t> all;

    wasmtime_val_raw_t* of(u32 id) { return all.data() + id * stride; }
};

std::string with_number(const std::string& pattern, u32 number) {
    std::string text = pattern;
    for (usize at = text.find("{}"); at != std::string::npos; at = text.find("{}", at))
        text.replace(at, 2, std::to_string(number));
    return text;
}

Result<Values> parse_arguments(const wasm::FuncType& type, const Options& options) {
    if (type.params.size() != options.arguments.size())
        return Error{format("%s takes %zu arguments, got %zu", options.function.c_str(),
                            type.params.size(), options.arguments.size())};
    auto is_ref = [](wasm::ValType value) { return value.is_ref(); };
    if (std::any_of(type.params.begin(), type.params.end(), is_ref) ||
        std::any_of(type.results.begin(), type.results.end(), is_ref))
        return Error{options.function + " takes or returns references, not only numbers"};
    Values values{std::max(type.params.size(), type.results.size()), {}};
    values.all.resize(values.stride * options.instances);
    for (u32 id = 0; id < options.instances; id++)
        for (usize i = 0; i < type.params.size(); i++)
            values.of(id)[i].bits =
                TRY(engine::parse_value(type.params[i], with_number(options.arguments[i], id)))
                    .bits;
    return values;
}

// From nothing to its end: a store, an instance in it, a call.
std::optional<Error> run_process(const Compiled& compiled, const std::string& function,
                                 wasmtime_val_raw_t* values, size_t count) {
    struct Store {
        wasmtime_store_t* store;
        ~Store() { wasmtime_store_delete(store); }
    } owner{wasmtime_store_new(compiled.engine, nullptr, nullptr)};
    wasmtime_context_t* context = wasmtime_store_context(owner.store);
    wasmtime_instance_t instance;
    wasm_trap_t* trap = nullptr;
    wasmtime_error_t* error =
        wasmtime_instance_pre_instantiate(compiled.instance_pre, context, &instance, &trap);
    if (error || trap) return failure(error, trap);
    wasmtime_extern_t item;
    if (!wasmtime_instance_export_get(context, &instance, function.data(), function.size(),
                                      &item) ||
        item.kind != extern_func)
        return Error{"wasmtime finds no exported function " + function};
    error = wasmtime_func_call_unchecked(context, &item.of.func, values, count, &trap);
    return failure(error, trap);
}

// Seconds from the start of the threads to the end of the last. A process that fails ends it all:
// what it would have cost to go on is not known.
Result<double> run_processes(const Compiled& compiled, const Options& options, Values& values) {
    // Small enough that all threads end together, large enough that they seldom meet.
    u32 block = std::clamp(options.instances / options.threads / 8, 1u, 64u);
    std::atomic<u64> next = 0;
    std::mutex mutex;
    std::optional<Error> first_error;
    auto work = [&] {
        for (;;) {
            u64 first = next.fetch_add(block, std::memory_order_relaxed);
            if (first >= options.instances) return;
            u64 end = std::min<u64>(first + block, options.instances);
            for (u32 id = u32(first); id < end; id++) {
                auto error = run_process(compiled, options.function, values.of(id), values.stride);
                if (!error) continue;
                std::lock_guard lock(mutex);
                if (!first_error) first_error = Error{format("process %u: ", id) + error->message};
                next = options.instances;
                return;
            }
        }
    };
    auto start = std::chrono::steady_clock::now();
    std::vector<std::thread> threads;
    for (u32 i = 0; i < options.threads; i++) threads.emplace_back(work);
    for (std::thread& thread : threads) thread.join();
    std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    if (first_error) return *first_error;
    return took.count();
}

// ---- what gpu-run prints

std::string describe(const wasm::FuncType& type, const wasmtime_val_raw_t* values) {
    std::string text;
    for (usize i = 0; i < type.results.size(); i++)
        text += (i ? " " : "") + engine::Value{type.results[i], values[i].bits}.to_string();
    return text;
}

void print_each(const wasm::FuncType& type, u32 processes, Values& values) {
    for (u32 id = 0; id < processes; id++)
        std::printf("%u\t%s\n", id, describe(type, values.of(id)).c_str());
}

// Equal results with their count, the most common first, then by first appearance.
void print_counts(const wasm::FuncType& type, u32 processes, Values& values) {
    struct Group {
        std::string text;
        u32 count, first;
    };
    std::unordered_map<std::string, Group> by_text;
    for (u32 id = 0; id < processes; id++) {
        std::string text = describe(type, values.of(id));
        by_text.try_emplace(text, Group{text, 0, id}).first->second.count++;
    }
    std::vector<Group> groups;
    for (auto& [text, group] : by_text) groups.push_back(group);
    std::sort(groups.begin(), groups.end(), [](const Group& a, const Group& b) {
        return a.count != b.count ? a.count > b.count : a.first < b.first;
    });
    for (const Group& group : groups) std::printf("%u\t%s\n", group.count, group.text.c_str());
}

void say(const std::string& message) {
    std::fprintf(stderr, "wasmtime-bench: %s\n", message.c_str());
}

Result<void> run(const Options& options) {
    auto module = TRY(engine::load_file(options.file));
    const wasm::Export* func = module->find_export(options.function);
    if (!func || func->kind != wasm::ExternKind::func)
        return Error{format("%s: no exported function \"%s\"", options.file.c_str(),
                            options.function.c_str())};
    const wasm::FuncType& type = module->func_type(func->index);
    Values values = TRY(parse_arguments(type, options));
    TRY(open_library(options.library));
    auto compiled = compile(module->bytes, options);
    if (!compiled) return Error{options.file + ": " + compiled.error().message};
    double seconds = TRY(run_processes(*compiled, options, values));
    (options.each ? print_each : print_counts)(type, options.instances, values);
    if (std::fflush(stdout) != 0) return Error{"cannot write to standard output"};
    if (options.stats)
        say(format("%u processes on wasmtime in %.6f s, %.0f/s, %u slots", options.instances,
                   seconds, options.instances / seconds, options.threads));
    return {};
}

}  // namespace

int main(int argc, char** argv) {
    constexpr int exit_input = 1, exit_usage = 2;
    Options options;
    CLI::App app("Runs a function in many processes of wasmtime's native code.");
    app.name("wasmtime-bench");
    app.footer("Then FILE, a module or text (.wat), and the function's arguments.");
    app.prefix_command();  // what follows FILE may begin with a minus
    app.add_option("--library", options.library, "wasmtime's shared library")->required();
    app.add_option("--invoke", options.function, "call this exported function")->required();
    app.add_option("--instances", options.instances,
                   "as many processes (1); {} in an argument is the process's number")
        ->check(CLI::Range(1u, UINT32_MAX));
    app.add_option("--threads", options.threads, "that run them (as many as there are cores)")
        ->check(CLI::Range(1u, 4096u));
    app.add_option("--keep-resident", options.keep_resident,
                   "bytes of a memory that are restored in place for the next process (1048576)");
    app.add_flag("--each", options.each, "a line for each process");
    app.add_flag("--stats", options.stats, "say how long it took");
    try {
        app.parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
        std::fputs(app.help().c_str(), stdout);
        return 0;
    } catch (const CLI::ParseError& error) {
        say(std::string(error.what()) + "; wasmtime-bench --help lists the options");
        return exit_usage;
    }
    std::vector<std::string> rest = app.remaining();
    if (rest.empty() || rest[0].starts_with("-")) {
        say((rest.empty() ? "no file given" : "unknown option " + rest[0]) +
            "; wasmtime-bench --help lists the options");
        return exit_usage;
    }
    options.file = rest[0];
    options.arguments.assign(rest.begin() + 1, rest.end());
    Result<void> done = run(options);
    if (done) return 0;
    say(done.error().to_string());
    return exit_input;
}
