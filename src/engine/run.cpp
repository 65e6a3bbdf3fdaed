// Turns what a user asked for into options of stores and of system memory.
#include "engine/run.h"

#include "engine/names.h"

namespace gpurun::engine {

u32 StreamOptions::terminals(bool has_input) const {
    u32 bits = are_inherited ? host::console().terminals : 0;
    if (has_input || read) bits &= ~u32{1};
    return write ? bits & 1 : bits;
}

u32 Many::number_of(u32 process) const {
    const u32 number = first_number + process;
    return own.empty() ? number : own[process].number.value_or(number);
}

device::RunControl Run::stop_control() const {
    device::RunControl control;
    control.stop = stop.get();
    return control;
}

device::RunControl Run::control() const {
    using namespace std::chrono;
    constexpr double longest = 1e9;  // seconds; what a clock can count in nanoseconds
    device::RunControl control = stop_control();
    if (timeout && *timeout < longest)
        control.deadline =
            steady_clock::now() + duration_cast<nanoseconds>(duration<double>(*timeout));
    return control;
}

device::Tier Run::chosen_tier(bool is_looked_at) const {
    return tier == device::Tier::automatic && is_looked_at ? device::Tier::interp : tier;
}

std::string with_number(const std::string& pattern, u32 number) {
    std::string text = pattern;
    for (usize at = text.find("{}"); at != std::string::npos; at = text.find("{}", at))
        text.replace(at, 2, std::to_string(number));
    return text;
}

std::vector<std::string> program_arguments(const Job& job) {
    const Run& run = job.run;
    std::vector<std::string> all{run.program_name.value_or(job.program.name)};
    if (run.is_program()) all.insert(all.end(), run.arguments.begin(), run.arguments.end());
    return all;
}

Result<std::vector<Value>> function_values(const Job& job) {
    const auto& [program, run] = job;
    const wasm::Export* entry = TRY(find_function_export(*program.module, run.function));
    return parse_arguments(program.module->func_type(entry->index), run.function,
                           run.is_program() ? std::vector<std::string>() : run.arguments);
}

Result<std::optional<DumpFolder>> dump_folder(const Job& job) {
    if (!job.run.dump) return std::optional<DumpFolder>();
    return std::optional(
        TRY(DumpFolder::make(*job.run.dump, job.program.file, *job.program.module)));
}

StoreOptions store_options(StoreOptions fitting, const Job& job,
                           const device::RunControl& control) {
    const ProcessLimits& limits = job.run.limits;
    StoreOptions store = std::move(fitting);
    store.stack_slots = limits.stack_slots.value_or(store.stack_slots);
    store.heap_words = limits.heap_words.value_or(store.heap_words);
    store.memory_bytes = limits.memory_bytes.value_or(store.memory_bytes);
    store.fuel = limits.fuel;
    store.tier = job.run.chosen_tier(job.run.is_looked_at());
    store.images = job.program.images;
    store.is_watched = job.run.is_watched;
    store.control = control;
    return store;
}

host::SystemOptions system_options(u64 fitting, const Run& run, const device::RunControl& control) {
    host::SystemOptions system;
    static_cast<host::SystemContents&>(system) = run.system;
    system.arena_size = run.limits.system_bytes.value_or(fitting);
    system.debug_capacity = held_records;
    system.is_cancelled = [control] { return control.wants_stop(); };
    return system;
}

}  // namespace gpurun::engine
