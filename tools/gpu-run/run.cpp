// Runs one module: an exported function, or _start.
#include <signal.h>

#include <atomic>
#include <chrono>
#include <cstdio>

#include "commands.h"
#include "engine/load.h"
#include "engine/store.h"

namespace gpurun::tool {
namespace {

std::atomic<bool> interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free);

void on_interrupt(int) { interrupted = true; }

// "  0: fac (0x1f)" a frame.
void print_completion(const engine::Completion& completion) {
    std::string message = completion.to_string();
    if (completion.kind == engine::Completion::Kind::trapped) message = "trap: " + message;
    std::fprintf(stderr, "gpu-run: %s\n", message.c_str());
    for (usize i = 0; i < completion.backtrace.size(); i++) {
        const engine::Frame& frame = completion.backtrace[i];
        std::fprintf(stderr, "  %2zu: %s (0x%x)\n", i, frame.function.c_str(), frame.wasm_offset);
    }
}

int exit_code(const engine::Completion& completion) {
    switch (completion.kind) {
        case engine::Completion::Kind::returned: return 0;
        case engine::Completion::Kind::stopped: return interrupted ? 130 : 124;
        default: return 134;
    }
}

Result<int> run(const RunOptions& options) {
    std::shared_ptr<const wasm::Module> module = TRY(engine::load_file(options.file));
    if (!module->imports.empty()) {
        const wasm::Import& import = module->imports[0];
        return Error{options.file + ": unknown import \"" + import.module + "\" \"" + import.name +
                     "\": programs that import functions cannot run yet"};
    }
    engine::StoreOptions store_options;
    store_options.fuel = options.fuel;
    if (options.stack_slots) store_options.stack_slots = *options.stack_slots;
    if (options.heap_words) store_options.heap_words = *options.heap_words;
    if (options.memory_bytes) store_options.memory_bytes = *options.memory_bytes;

    device::RunControl control;
    control.stop = &interrupted;
    signal(SIGINT, on_interrupt);
    if (options.timeout)
        control.deadline = std::chrono::steady_clock::now() +
                           std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(*options.timeout));

    std::unique_ptr<engine::Store> store = TRY(engine::Store::create(store_options));
    engine::Store::Instantiated made = TRY(store->instantiate(module, {}, control));
    if (made.completion.kind != engine::Completion::Kind::returned) {
        print_completion(made.completion);
        return exit_code(made.completion);
    }
    std::string name = options.invoke.empty() ? "_start" : options.invoke;
    std::optional<engine::Extern> found = store->find_export(*made.instance, name);
    if (!found || found->kind != wasm::ExternKind::func)
        return Error{options.file + ": no exported function \"" + name + "\"" +
                     (options.invoke.empty() ? "; --invoke NAME calls another one" : "")};

    const wasm::FuncType& type = store->type_of(*found);
    if (type.params.size() != options.arguments.size())
        return Error{name + " takes " + std::to_string(type.params.size()) + " arguments, got " +
                     std::to_string(options.arguments.size())};
    std::vector<engine::Value> arguments;
    for (usize i = 0; i < type.params.size(); i++)
        arguments.push_back(TRY(engine::parse_value(type.params[i], options.arguments[i])));

    engine::Completion completion = TRY(store->call(*found, arguments, control));
    if (completion.kind != engine::Completion::Kind::returned) {
        print_completion(completion);
        return exit_code(completion);
    }
    for (const engine::Value& value : completion.results) std::printf("%s\n", value.to_string().c_str());
    return std::fflush(stdout) == 0 ? 0 : 1;
}

}  // namespace

int run_file(const RunOptions& options) {
    Result<int> code = run(options);
    return code ? *code : input_error(code.error().to_string());
}

}  // namespace gpurun::tool
