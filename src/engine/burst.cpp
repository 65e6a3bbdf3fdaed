// Makes a template on the host and passes it to a device, which runs processes that begin as copies
// of it.
#include "engine/burst.h"

#include <algorithm>

#include "base/format.h"
#include "engine/names.h"
#include "host/harvest.h"

namespace gpurun::engine {
namespace {

using wasm::ValType;

// Words of a process's object heap, unless the user sets a number.
constexpr u32 default_heap_words = 16 << 10;

bool has_objects(const wasm::Module& module) {
    if (!module.tags.empty()) return true;
    for (u32 i = 0; i < module.types.size(); i++) {
        if (module.types[i].kind != wasm::TypeKind::func) return true;
    }
    return false;
}

// Checks that host and device can keep arguments and results of all processes.
Result<void> check_count(const device::DeviceInfo& device, const wasm::FuncType& type,
                         u32 processes) {
    u64 words = result_first;
    for (ValType param : type.params) words += translate::words_of(param);
    for (ValType result : type.results) words += translate::words_of(result);
    u64 needed = words * sizeof(u32) * processes, available = device.memory_free / 2;
    if (needed <= available) return {};
    return Error{
        format("arguments and results of %u processes take %llu MiB, %s has %llu MiB for them; ask "
               "for fewer "
               "--instances",
               processes, (unsigned long long)(needed >> 20), device.id.c_str(),
               (unsigned long long)(available >> 20))};
}

// Checks that a device has room for a module's memories. Templates are made before the device is
// asked for it.
Result<void> check_memories(const device::DeviceInfo& device, const wasm::Module& module) {
    u64 needed = 0;
    for (const wasm::MemoryType& memory : module.memories)
        needed += std::min(memory.limits.min, u64{1} << 40) << page_bits;
    if (device.reserves_lazily || needed <= device.memory_free) return {};
    return Error{format("not enough device memory: a process begins with %llu MiB, %s has %llu MiB",
                        (unsigned long long)(needed >> 20), device.id.c_str(),
                        (unsigned long long)(device.memory_free >> 20))};
}

// Reads bytes up to the last that is not zero.
Result<std::vector<u8>> read_until_zeros(device::Space& space, u64 base, u64 size) {
    constexpr u64 piece_size = 1 << 20;
    std::vector<u8> bytes, piece;
    for (u64 at = 0; at < size; at += piece_size) {
        piece.resize(std::min(piece_size, size - at));
        TRY(space.read_bytes(base + at, piece));
        while (!piece.empty() && piece.back() == 0) piece.pop_back();
        if (piece.empty()) continue;
        bytes.resize(at);
        bytes.insert(bytes.end(), piece.begin(), piece.end());
    }
    return bytes;
}

// Returns the arguments of a process: those of all, with its number for {}, then its own.
std::vector<std::string> arguments_of(const Run& run, u32 process) {
    std::vector<std::string> all;
    for (const std::string& pattern : run.arguments)
        all.push_back(with_number(pattern, run.many.number_of(process)));
    if (!run.many.own.empty()) {
        const std::vector<std::string>& own = run.many.own[process].arguments;
        all.insert(all.end(), own.begin(), own.end());
    }
    return all;
}

Result<std::vector<u32>> argument_words(const wasm::FuncType& type, const Run& run) {
    std::vector<u32> words;
    for (u32 process = 0; process < run.many.count(); process++)
        for (const Value& value : TRY(parse_arguments(
                 type, run.function,
                 run.is_program() ? std::vector<std::string>() : arguments_of(run, process))))
            words.insert(words.end(), value.bits.word,
                         value.bits.word + translate::words_of(value.type));
    return words;
}

// Returns what processes have of their own, or nothing if they are all alike: then the device makes
// it.
std::vector<host::ProcessInput> process_inputs(const Job& job) {
    const auto& [program, run] = job;
    std::vector<host::ProcessInput> inputs;
    if (run.many.own.empty() && run.many.first_number == 0) return inputs;
    for (u32 i = 0; i < run.many.count(); i++) {
        host::ProcessInput& made = inputs.emplace_back();
        made.number = run.many.number_of(i);
        if (!run.many.own.empty()) made.input = run.many.own[i].input;
        if (run.is_program()) made.arguments = arguments_of(run, i);
        made.arguments.insert(made.arguments.begin(), run.program_name.value_or(program.name));
    }
    return inputs;
}

// Returns the size of system memory for processes. It is limited even where untouched memory costs
// nothing, so that a program that never stops writing does not take all memory.
u64 arena_size(const device::DeviceInfo& device, const Many& many,
               std::span<const host::ProcessInput> inputs) {
    constexpr u64 beside = 512;  // what else is kept for an input
    u64 size = system_bytes(device, many.count());
    if (many.own.empty()) return size;
    if (device.reserves_lazily) size = std::min(size, device.memory_free / 8);
    for (const host::ProcessInput& input : inputs) {
        size += beside + (input.input ? input.input->size() : 0);
        for (const std::string& text : input.arguments) size += sizeof text + text.size();
    }
    return size & ~u64{0xffff};
}

// Returns the options of a burst's system memory, which refer to `inputs`.
host::SystemOptions burst_system(const device::DeviceInfo& device, const Job& job,
                                 std::span<const host::ProcessInput> inputs,
                                 const device::RunControl& control) {
    constexpr u32 traced_records = 65536;
    host::SystemOptions system =
        system_options(arena_size(device, job.run.many, inputs), job.run, control);
    system.arguments = program_arguments(job);
    system.process_count = job.run.many.count();
    if (device.capability != 0 || system.process_count > 1)
        system.warm_bytes = host::max_warm_ahead;
    system.has_numbered_arguments = inputs.empty();
    system.inputs = inputs;
    if (!system.input) system.input = std::make_shared<std::vector<u8>>();
    if (system.is_traced) system.debug_capacity = traced_records;
    return system;
}

// Returns the device that templates are made on: the CPU, whatever device the processes are for.
device::Device& template_device() {
    static const std::unique_ptr<device::Device> cpu = std::move(*device::open_device("cpu"));
    return *cpu;
}

// Runs the initialisers of a template, which has no system memory: a system call ends them as a
// fault does. Returns true if each returned within a short time, since the user waits for them.
Result<bool> initialise(const Template& made, const wasm::Export* initialize,
                        device::RunControl control) {
    control.slice = std::chrono::seconds(5);
    Store& store = *made.store;
    const ThreadState state = TRY(store.run(control));
    Completion completion = TRY(store.complete(state));
    if (completion.kind == Completion::Kind::returned && initialize)
        completion =
            TRY(store.call(*store.find_export(*made.instance, initialize->name), {}, control));
    if (control.wants_stop()) return Error{"stopped in its initialisation"};
    return completion.kind == Completion::Kind::returned;
}

// Dumps a process. Returns false if no more are to be dumped. If the dump cannot be written, the
// other processes go on all the same.
Result<bool> dump_process(BurstReport::Part& part, const DumpFolder& folder,
                          device::WaitingProcess& process, u32 number) {
    if (part.dump_problem || part.dumps >= max_dumps) return false;
    ProcessSnapshot state = TRY(part.store->capture(process));
    if (Result<void> written = folder.write(number, state, process); !written)
        part.dump_problem = written.error();
    else
        part.dumps++;
    return !part.dump_problem && part.dumps < max_dumps;
}

}  // namespace

Result<device::Burst> Store::make_burst(const Extern& func, std::vector<u32> arguments,
                                        u32 processes) {
    const wasm::FuncType& type = type_of(func);
    std::vector<Value> placeholders;
    for (ValType param : type.params) placeholders.push_back({param});
    TRY(begin_call(func, placeholders));

    device::Burst burst;
    burst.processes = processes;
    burst.code.resize(next_code_);
    TRY(space_->read_code(0, burst.code));
    next_word_ = (next_word_ + stack_step - 1) / stack_step * stack_step;  // its stack comes next
    burst.words.resize(next_word_);
    TRY(space_->read_words(0, burst.words));
    burst.words[process_block] = 0;  // each process gets its own
    burst.words[process_canaries] = last_canary_;
    burst.stack_slots = options_.stack_slots;
    for (const Extern& made : all_memories()) {
        device::BurstMemory& memory = burst.memories.emplace_back();
        memory.record = made.at;
        u64 base = TRY(read_wide(memory.record + memory_base)),
            size = TRY(read_wide(memory.record + memory_bytes));
        memory.data = TRY(read_until_zeros(*space_, base, size));
    }
    burst.is_watched = options_.is_watched;
    burst.native = native_;
    burst.tier = options_.tier;
    burst.layout = options_.layout;
    burst.thread = current_.at;
    for (ValType param : type.params) burst.argument_words += translate::words_of(param);
    for (ValType result : type.results) burst.result_words += translate::words_of(result);
    burst.arguments = std::move(arguments);
    return burst;
}

StoreOptions template_options(const Job& job, device::Device& device,
                              const device::RunControl& control) {
    const wasm::Module& module = *job.program.module;
    StoreOptions fitting;
    // The runtime's functions are one instance, the host's another.
    fitting.instances = module.imports.empty() ? 1 : 3;
    fitting.table_growth = 64;
    fitting.heap_words = has_objects(module) ? default_heap_words : 0;
    StoreOptions store = store_options(fitting, job, control);
    // Reports keep their templates, and address space is limited.
    store.all_memory_bytes =
        std::min(store.all_memory_bytes, memory_room(module, store.memory_bytes));
    store.bursts_on = &device;
    return store;
}

Result<Extern> Template::entry(const wasm::Export& wanted, const wasm::Export* initialize) const {
    if (!is_initialised) return store->add_beginning(*instance, initialize, wanted);
    return *store->find_export(*instance, wanted.name);
}

Result<Template> make_template(const Job& job, const std::string& function,
                               const StoreOptions& wanted) {
    const std::shared_ptr<const wasm::Module>& module = job.program.module;
    const wasm::Export* func = TRY(find_function_export(*module, function));
    const wasm::Export* initialize = TRY(find_initialize(*module, function));
    Template made;
    auto begin = [&]() -> Result<void> {
        made.store = TRY(Store::create(wanted, template_device()));
        if (!wanted.is_for_machine) TRY(made.store->offer(job.run.functions));
        const std::vector<Extern> imports = TRY(made.store->system_imports(*module));
        made.instance = TRY(made.store->begin_instance(module, imports));
        return {};
    };
    TRY(begin());
    // If fuel is limited, each process has to run its initialisers itself, to pay for them.
    const bool is_tried = !wanted.fuel || !(module->start || initialize);
    if (is_tried) made.is_initialised = TRY(initialise(made, initialize, wanted.control));
    if (is_tried && !made.is_initialised) TRY(begin());
    made.func = TRY(made.entry(*func, initialize));
    return made;
}

namespace {

// Returns the report of a burst that was stopped before it began.
BurstReport stopped_report(std::span<const Job> jobs) {
    std::vector<BurstReport::Part> parts(jobs.size());
    device::BurstOutcome outcome;
    for (usize i = 0; i < jobs.size(); i++) {
        parts[i].processes = jobs[i].run.many.count();
        device::BurstResults& results = outcome.parts.emplace_back();
        results.stride = result_first;
        results.words.resize(usize(parts[i].processes) * result_first);
        static_assert(u32(ThreadState::ready) == 0);
    }
    return BurstReport(std::move(parts), std::move(outcome), {});
}

Result<BurstReport> run_to_end(device::Device& device, std::span<const Job> jobs,
                               const TakeSpill& spill, const device::RunControl& control,
                               BurstRanges& ranges) {
    std::vector<BurstReport::Part> parts;
    std::vector<device::Burst> bursts;
    std::vector<std::optional<System>> systems;
    std::vector<std::optional<DumpFolder>> dumps;
    for (const Job& job : jobs) {
        const auto& [program, run] = job;
        dumps.push_back(TRY(dump_folder(job)));
        TRY(check_memories(device.info(), *program.module));
        const std::vector<host::ProcessInput> inputs = process_inputs(job);
        const host::SystemOptions system = burst_system(device.info(), job, inputs, control);
        StoreOptions wanted = template_options(job, device, control);
        wanted.layout = ranges.layout();
        wanted.may_interleave = ranges.may_interleave();
        Template made = TRY(make_template(job, run.function, wanted));
        const wasm::FuncType& type = made.store->type_of(made.func);
        TRY(check_count(device.info(), type, run.many.count()));
        std::vector<u32> arguments = TRY(argument_words(type, run));
        bursts.push_back(
            TRY(made.store->make_burst(made.func, std::move(arguments), run.many.count())));
        bursts.back().spoilt = run.many.spoilt;
        bursts.back().words[bursts.back().thread + thread_is_looked_at] = run.dump.has_value();
        BurstReport::Part& part = parts.emplace_back();
        part.store = std::move(made.store);
        part.func = made.func;
        part.processes = run.many.count();
        systems.emplace_back();
        if (program.module->imports.empty()) continue;
        systems.back() = TRY(System::make(device, system));
        part.notes.emplace(run, system.debug_capacity, true);
        bursts.back().system = &systems.back()->memory();
    }
    for (u32 i = 0; i < parts.size(); i++) {
        if (systems[i])
            bursts[i].serve = [&, i](device::WaitingProcess& process) {
                // A process whose output is lost goes on; its call that wrote returns an error.
                auto take = [&](u32 number, int stream, std::string_view bytes) -> Result<bool> {
                    Result<void> taken = spill(i, number, stream, bytes);
                    if (!taken && !parts[i].output_problem) parts[i].output_problem = taken.error();
                    return taken.ok();
                };
                auto note = [&](const DebugRecord& record) { parts[i].notes->add(record); };
                return systems[i]->fulfil(process, jobs[i].run.functions, take, note);
            };
        if (dumps[i])
            bursts[i].look = [&, i](device::WaitingProcess& process, u32 id) {
                return dump_process(parts[i], *dumps[i], process, jobs[i].run.many.number_of(id));
            };
        if (jobs[i].run.is_profiled)
            bursts[i].sample = [&part = parts[i]](device::ProcessMemory& process, u32 times) {
                return part.sampler.look(*part.store, process, times);
            };
        if (parts[i].store->awaits_native())
            bursts[i].late_native = [&store = *parts[i].store](const device::Activity& activity) {
                return store.take_late_native(activity);
            };
    }
    std::vector<Store*> stores;
    for (const BurstReport::Part& part : parts) stores.push_back(part.store.get());
    device::BurstOutcome outcome = TRY(ranges.run(bursts, stores, control));
    // Files that each of many processes changed are its own, and are not written back.
    for (usize i = 0; i < parts.size(); i++) {
        if (!systems[i]) continue;
        TRY(parts[i].notes->take_from(*systems[i]));
        parts[i].snapshot = TRY(systems[i]->finish(0));
    }
    return BurstReport(std::move(parts), std::move(outcome), ranges.choice());
}

}  // namespace

Result<BurstReport> run_burst(device::Device& device, std::span<const Job> jobs,
                              const TakeSpill& spill) {
    return run_controlled(
        device, device::Mode::burst, jobs[0].run,
        [&](device::RunControl control) {
            u64 all = 0;
            for (const Job& job : jobs) all += job.run.many.count();
            if (const auto& tell = jobs[0].run.progress)
                control.progress = [&tell, all](u64 ended) { tell(ended, all); };
            const u64 launches = device.usage().launches;
            BurstRanges ranges(device, jobs, false);
            Result<BurstReport> report = run_to_end(device, jobs, spill, control, ranges);
            if (report || !ranges.interleaves_unasked() || device.usage().launches != launches)
                return report;
            // A layout that nobody asked for must not make the burst fail, e.g. for lack of memory.
            BurstRanges linear(device, jobs, true);
            return run_to_end(device, jobs, spill, control, linear);
        },
        [&] { return stopped_report(jobs); });
}

Completion BurstReport::of(u32 process, u32 job) const {
    std::span<const u32> words = outcome_.parts[job].of(process);
    const Part& part = parts_[job];
    Completion completion;
    completion.trap = Trap(words[result_trap]);
    switch (ThreadState(words[result_state])) {
        case ThreadState::finished:
            completion.results = part.store->results_from(part.func, words.subspan(result_first));
            return completion;
        case ThreadState::trapped: completion.kind = Completion::Kind::trapped; break;
        case ThreadState::uncaught: completion.kind = Completion::Kind::uncaught_exception; break;
        case ThreadState::out_of_fuel: completion.kind = Completion::Kind::out_of_fuel; break;
        case ThreadState::waiting: completion.kind = Completion::Kind::blocked; break;
        case ThreadState::exited:
            completion.kind = Completion::Kind::exited;
            completion.exit_code = words[result_exit];
            return completion;
        case ThreadState::ready:
        case ThreadState::outgrown:
        case ThreadState::sleeping:
        case ThreadState::blocked:
        case ThreadState::host: completion.kind = Completion::Kind::stopped; break;
    }
    if (!part.store) return completion;
    if (std::optional<Frame> frame = part.store->frame_at(words[result_pc]))
        completion.backtrace.push_back(*frame);
    return completion;
}

Result<std::string> BurstReport::stream(u32 process, int number, u32 job) const {
    const SystemSnapshot* all = snapshot(job);
    Handle at = block(process, job);
    if (!all || at == 0) return std::string();
    ProcessBlock me = TRY(host::value_at<ProcessBlock>(all->arena.bytes, host::offset_of(at),
                                                       "the block of a process"));
    return host::contents(all->arena.bytes, number == 1 ? me.output : me.error);
}

const Notes* BurstReport::notes(u32 job) const {
    const std::optional<Notes>& found = parts_[job].notes;
    return found ? &*found : nullptr;
}

const SystemSnapshot* BurstReport::snapshot(u32 job) const {
    return parts_[job].snapshot ? &*parts_[job].snapshot : nullptr;
}

Handle BurstReport::block(u32 process, u32 job) const {
    return outcome_.parts[job].of(process)[result_block];
}

}  // namespace gpurun::engine
