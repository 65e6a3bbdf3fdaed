// Machines of the interface: a resident machine of the engine, and what its processes read and
// wrote.
#include <algorithm>
#include <chrono>
#include <deque>
#include <map>
#include <span>

#include "api/handles.h"
#include "base/format.h"
#include "engine/resident.h"
#include "host/console.h"

using namespace gpurun;
using engine::ProcessEnding;
using engine::Resident;
using std::chrono::steady_clock;

// What belongs to the streams of one process. Two threads look at it.
struct Captured {
    std::mutex mutex;
    u32 number = 0;        // the process's; held until it is known
    std::string bytes[2];  // that nobody takes before it has ended; more is spilled
};
constexpr usize most_captured = 1 << 20;

struct gpurun_machine {
    gpurun_device* device = nullptr;  // once it is this machine's
    std::unique_ptr<Resident> resident;
    bool has_console = false;
    std::mutex mutex;
    std::optional<u32> console[3];                      // once a process uses them
    std::map<u32, std::shared_ptr<Captured>> captured;  // by the process's number
    std::optional<Error> stream_problem;
    bool is_output_closed = false;  // nobody reads standard output any more, or it failed
    api::Spill spill;
    // Who may stop it.
    std::shared_ptr<const std::atomic<bool>> stop;
    bool has_time_limit = false;

    ~gpurun_machine() {
        resident.reset();
        if (!device) return;
        std::lock_guard lock(device->running);
        device->has_machine = false;
    }
};

namespace {

constexpr u32 signal_pipe = 13;

const gpurun_config& or_default(const gpurun_config* config) {
    static const gpurun_config none;
    return config ? *config : none;
}

Result<void> check(const gpurun_config& config) {
    if (!config.problem.empty()) return Error{config.problem};
    return {};
}

Resident::Deadline after(double seconds) {
    constexpr double longest = 1e9;  // what a clock can count in nanoseconds
    if (seconds < 0 || seconds > longest) return {};
    return steady_clock::now() + std::chrono::duration_cast<std::chrono::nanoseconds>(
                                     std::chrono::duration<double>(seconds));
}

// The standard streams of this program, shared by all processes that use them.
Result<void> use_console(gpurun_machine& machine, Resident::Ends& ends, bool has_input) {
    if (!machine.has_console)
        return Error{"the machine was opened without the standard streams of this program"};
    std::lock_guard lock(machine.mutex);
    const host::Streams streams = host::console();
    for (int i : {1, 2}) {
        if (!machine.console[i])
            machine.console[i] = TRY(machine.resident->open_output(
                [&machine, i, write = streams.write](std::string_view bytes) -> Result<bool> {
                    Result<bool> is_open = write(i, bytes);
                    if (is_open && *is_open) return true;
                    {
                        std::lock_guard inner(machine.mutex);
                        if (!is_open) machine.stream_problem = is_open.error();
                        machine.is_output_closed |= i == 1;
                    }
                    // What writes to it would go on for nothing.
                    if (i == 1) (void)machine.resident->kill(0, signal_pipe);
                    return false;
                },
                Resident::Use::always));
        ends[i] = machine.console[i];
    }
    if (has_input) return {};
    if (!machine.console[0])
        machine.console[0] = TRY(machine.resident->open_input(
            [&machine, read = streams.read](usize most, auto deadline,
                                            auto stop) -> Result<host::Streams::Input> {
                Result<host::Streams::Input> bytes = read(most, deadline, stop);
                if (bytes) return bytes;
                // Processes go on without; whoever closes the machine hears of it.
                std::lock_guard inner(machine.mutex);
                machine.stream_problem = std::move(bytes).error();
                return host::Streams::Input(std::vector<u8>());
            },
            Resident::Use::always));
    ends[0] = machine.console[0];
    return {};
}

// Keeps output of a process until it has ended: in memory, or all of it in the file if it is much.
// Returns false if there is no room for it.
bool keep(gpurun_machine& machine, Captured& captured, int stream, std::string_view bytes) {
    std::string& in_memory = captured.bytes[stream - 1];
    const bool is_spilled = machine.spill.holds(captured.number, stream);
    if (!is_spilled && in_memory.size() + bytes.size() <= most_captured) {
        in_memory += bytes;
        return true;
    }
    Result<void> kept;
    if (!is_spilled && !in_memory.empty())
        kept = machine.spill.append(captured.number, stream, in_memory);
    if (kept) kept = machine.spill.append(captured.number, stream, bytes);
    if (kept) {
        in_memory = {};
        return true;
    }
    std::lock_guard lock(machine.mutex);
    machine.stream_problem = std::move(kept).error();
    return false;
}

Result<std::shared_ptr<Captured>> open_streams(gpurun_machine& machine, const engine::Run& run,
                                               Resident::Ends& ends) {
    std::shared_ptr<Captured> captured;
    Resident& resident = *machine.resident;
    if (run.streams.read)
        ends[0] = TRY(resident.open_input(run.streams.read, Resident::Use::once));
    else if (run.system.input)
        ends[0] = TRY(resident.open_input(*run.system.input, Resident::Use::once));
    if (run.streams.are_inherited) {
        TRY(use_console(machine, ends, ends[0].has_value()));
    } else {
        captured = std::make_shared<Captured>();
        for (int i : {1, 2})
            ends[usize(i)] = TRY(resident.open_output(
                [&machine, captured, i,
                 write = run.streams.write](std::string_view bytes) -> Result<bool> {
                    std::unique_lock lock(captured->mutex);
                    const u32 number = captured->number;
                    if (!write) return keep(machine, *captured, i, bytes);
                    lock.unlock();
                    return write(number, i, bytes);
                },
                Resident::Use::once));
    }
    return captured;
}

std::string message_of(const ProcessEnding& ended) {
    if (ended.refusal)
        return format("the machine had no room for it: %s", wasi::to_string(*ended.refusal));
    switch (ended.ending) {
        case Ending::exited: return format("exited with %u", ended.code);
        case Ending::trapped:
            return ended.code == 0 ? "uncaught exception" : to_string(Trap(ended.code));
        case Ending::killed: return format("killed by signal %u", ended.code);
        case Ending::out_of_fuel: return "out of fuel";
    }
    return "unknown ending";
}

gpurun_ending ending_of(const ProcessEnding& ended) {
    if (ended.refusal) return GPURUN_REFUSED;
    switch (ended.ending) {
        case Ending::exited: return GPURUN_EXITED;
        case Ending::trapped: return ended.code == 0 ? GPURUN_EXCEPTION : GPURUN_TRAPPED;
        case Ending::out_of_fuel: return GPURUN_NO_FUEL;
        case Ending::killed: break;
    }
    return GPURUN_KILLED;
}

// Says how a process ended if it was the host that ended it: with the machine, or since its output
// went nowhere. Returns false if it was not.
bool collect_stop(gpurun_machine& machine, const ProcessEnding& ended, gpurun_result& result) {
    gpurun_result::Process& process = result.processes[0];
    std::lock_guard lock(machine.mutex);
    if (ended.is_stopped) {
        const bool is_late = machine.has_time_limit && !(machine.stop && *machine.stop);
        process.ending = is_late ? GPURUN_TIMED_OUT : GPURUN_STOPPED;
        api::collect_message(is_late ? "timeout" : "interrupted", 0, result);
        return true;
    }
    if (!machine.is_output_closed || ended.refusal || ended.ending != Ending::killed ||
        ended.code != signal_pipe)
        return false;
    process.ending = machine.stream_problem ? GPURUN_FAILED : GPURUN_CLOSED;
    api::collect_message(
        machine.stream_problem ? machine.stream_problem->to_string() : "nobody reads its output", 0,
        result);
    return true;
}

std::unique_ptr<gpurun_result> result_of(gpurun_machine& machine, const ProcessEnding& ended) {
    auto result = std::make_unique<gpurun_result>();
    gpurun_result::Process& process = result->processes.emplace_back();
    if (!collect_stop(machine, ended, *result)) {
        process.ending = ending_of(ended);
        if (process.ending == GPURUN_EXITED || process.ending == GPURUN_KILLED)
            process.exit_code = shell_code(ended.ending, ended.code);
        api::collect_message(message_of(ended), 0, *result);
    }
    if (!ended.frames.empty()) result->frames[0] = ended.frames;
    result->seconds = 1e-9 * double(ended.ended - ended.started);
    result->launches = 0;
    std::shared_ptr<Captured> captured;
    {
        std::lock_guard lock(machine.mutex);
        if (auto found = machine.captured.extract(ended.request)) captured = found.mapped();
    }
    for (int stream : {1, 2}) {
        if (!captured) {
            api::collect_output(stream, "", 0, *result);
            continue;
        }
        std::lock_guard lock(captured->mutex);
        api::collect_output(stream, captured->bytes[stream - 1], 0, *result);
    }
    Result<api::Spill::Mapped> spilled = machine.spill.take(ended.request);
    if (spilled)
        result->spilled = std::move(*spilled);
    else
        result->output_problem = spilled.error().to_string();
    return result;
}

const std::atomic<bool>* flag_of(const gpurun_stop* stop) {
    return stop ? stop->is_requested.get() : nullptr;
}

}  // namespace

gpurun_error* gpurun_machine_open(gpurun_device* device, const gpurun_config* given,
                                  gpurun_machine** machine) {
    return api::guarded([&]() -> Result<void> {
        if (!device || !machine)
            return Error{"gpurun_machine_open wants a device and a place for the machine"};
        const gpurun_config& config = or_default(given);
        TRY(check(config));
        auto made = std::make_unique<gpurun_machine>();
        {
            TRY(api::Inside::check(*device));
            api::DeviceLock lock(*device);
            if (device->has_machine) return Error{"the device has a machine already"};
            device->has_machine = true;
            made->device = device;
        }
        made->has_console = config.streams.are_inherited;
        made->stop = config.stop;
        made->has_time_limit = config.timeout.has_value();
        made->resident = TRY(Resident::make(*device->device, config));
        *machine = made.release();
        return {};
    });
}

gpurun_error* gpurun_machine_close(gpurun_machine* machine) {
    return api::guarded([&]() -> Result<void> {
        if (!machine) return Error{"gpurun_machine_close wants a machine"};
        Result<void> stopped = machine->resident->stop();
        std::lock_guard lock(machine->mutex);
        if (stopped && machine->stream_problem) return *machine->stream_problem;
        return stopped;
    });
}

void gpurun_machine_delete(gpurun_machine* machine) { delete machine; }

gpurun_error* gpurun_machine_load(gpurun_machine* machine, const char* name,
                                  const gpurun_module* module, const gpurun_config* config,
                                  uint32_t* number) {
    const gpurun_program program{name, module, config};
    return gpurun_machine_load_programs(machine, &program, 1, number);
}

gpurun_error* gpurun_machine_load_programs(gpurun_machine* machine, const gpurun_program* programs,
                                           size_t count, uint32_t* numbers) {
    return api::guarded([&]() -> Result<void> {
        if (!machine || !programs || !numbers)
            return Error{
                "to load programs takes a machine, the programs and places for their numbers"};
        std::deque<engine::Program> named;  // as they are called there
        std::vector<engine::Job> all;
        for (const gpurun_program& program : std::span(programs, count)) {
            if (!program.name || !program.module)
                return Error{"a program of a machine has a name and a module"};
            const gpurun_config& config = or_default(program.config);
            TRY(check(config));
            named.push_back(*program.module);
            named.back().name = program.name;
            all.push_back({named.back(), config});
        }
        std::ranges::copy(TRY(machine->resident->load(all)), numbers);
        return {};
    });
}

gpurun_error* gpurun_machine_spawn(gpurun_machine* machine, uint32_t program,
                                   const gpurun_config* given, uint32_t* process) {
    return api::guarded([&]() -> Result<void> {
        if (!machine || !process)
            return Error{"gpurun_machine_spawn wants a machine and a place for the number"};
        const gpurun_config& config = or_default(given);
        TRY(check(config));
        Resident::Ends ends;
        std::shared_ptr<Captured> captured = TRY(open_streams(*machine, config, ends));
        // What has to be kept of it, so that nothing can go wrong once it runs.
        std::map<u32, std::shared_ptr<Captured>> kept;
        if (captured) kept[0] = captured;
        auto node = kept.extract(0);
        // Before its ending can be asked for, and before what it writes is taken.
        std::lock_guard lock(machine->mutex);
        std::unique_lock<std::mutex> capturing;
        if (captured) capturing = std::unique_lock(captured->mutex);
        *process = TRY(machine->resident->spawn(program, config, ends));
        if (!captured) return {};
        captured->number = node.key() = *process;
        machine->captured.insert(std::move(node));
        return {};
    });
}

uint32_t gpurun_machine_pid(gpurun_machine* machine, uint32_t process) {
    return machine ? machine->resident->pid_of(process).value_or(0) : 0;
}

gpurun_error* gpurun_machine_kill(gpurun_machine* machine, uint32_t pid, uint32_t signal) {
    return api::guarded([&]() -> Result<void> {
        if (!machine) return Error{"gpurun_machine_kill wants a machine"};
        return machine->resident->kill(pid, signal);
    });
}

gpurun_error* gpurun_machine_next(gpurun_machine* machine, double seconds, const gpurun_stop* stop,
                                  uint32_t* process, gpurun_result** result) {
    return api::guarded([&]() -> Result<void> {
        if (!machine || !process || !result)
            return Error{"gpurun_machine_next wants a machine and places for what it finds"};
        std::optional<ProcessEnding> ended =
            TRY(machine->resident->next_ending(after(seconds), flag_of(stop)));
        *result = ended ? result_of(*machine, *ended).release() : nullptr;
        *process = ended ? ended->request : 0;
        return {};
    });
}

gpurun_error* gpurun_machine_wait_idle(gpurun_machine* machine, double seconds,
                                       const gpurun_stop* stop, bool* is_idle) {
    return api::guarded([&]() -> Result<void> {
        if (!machine || !is_idle)
            return Error{"gpurun_machine_wait_idle wants a machine and a place for the answer"};
        *is_idle = TRY(machine->resident->wait_idle(after(seconds), flag_of(stop)));
        return {};
    });
}

gpurun_error* gpurun_machine_observe(gpurun_machine* machine, gpurun_result** result) {
    return api::guarded([&]() -> Result<void> {
        if (!machine || !result)
            return Error{"gpurun_machine_observe wants a machine and a place for the result"};
        auto made = std::make_unique<gpurun_result>();
        made->stacks = machine->resident->samples();
        const engine::DumpReport dumps = machine->resident->dumps();
        made->dumps = dumps.written;
        made->machine_faults = dumps.faults;
        if (dumps.problem) made->dump_problem = dumps.problem->to_string();
        std::lock_guard lock(machine->mutex);
        if (machine->is_output_closed) made->output_problem = "nobody reads standard output";
        *result = made.release();
        return {};
    });
}

gpurun_error* gpurun_machine_ping(gpurun_machine* machine, double* seconds) {
    return api::guarded([&]() -> Result<void> {
        if (!machine || !seconds)
            return Error{"gpurun_machine_ping wants a machine and a place for the time"};
        *seconds = std::chrono::duration<double>(TRY(machine->resident->ping())).count();
        return {};
    });
}

void gpurun_machine_get_stats(gpurun_machine* machine, gpurun_machine_stats* stats) {
    if (!machine || !stats) return;
    *stats = {};
    engine::ResidentStats now;
    gpurun_error* problem = api::guarded([&]() -> Result<void> {
        now = machine->resident->stats();
        return {};
    });
    gpurun_error_delete(problem);
    const MachineStats& it = now.machine;
    stats->seconds = now.seconds;
    stats->host_cpu_seconds = now.host_cpu_seconds;
    stats->launches = now.launches;
    for (const auto& [name, count] : now.driver_calls) stats->driver_calls += count;
    stats->processes = it.processes;
    stats->threads = it.tasks;
    stats->ready = it.ready;
    stats->blocked = it.blocked;
    stats->spawned = it.spawned;
    stats->ended = it.ended;
    stats->lanes = it.lanes;
    stats->lanes_busy = it.lanes_busy;
    stats->busy_lane_seconds = 1e-9 * double(it.busy_lane_ns);
    stats->lane_seconds = 1e-9 * double(it.lane_ns);
    stats->memory = it.page_bytes;
    stats->memory_used = it.page_bytes_used;
    stats->system_memory = it.heap_bytes;
    stats->system_memory_used = it.heap_bytes_used;
    stats->heartbeat_age = 1e-9 * double(it.heartbeat_age);
    stats->heartbeat_latest = 1e-9 * double(it.heartbeat_latest);
    stats->slowest_warp = uint32_t(it.slowest_warp);
    stats->slowest_phase = uint32_t(it.slowest_warp >> 32);
}
