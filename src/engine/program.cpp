// Runs a process and fulfils its requests in between: output, input, sleep, cold files.
#include "engine/program.h"

#include <algorithm>
#include <cinttypes>
#include <cstddef>
#include <cstring>

#include "abi/system.h"
#include "base/format.h"
#include "engine/names.h"
#include "engine/trace.h"

namespace gpurun::engine {
namespace {

using device::RunControl;
using device::SystemMemory;
using std::chrono::steady_clock;
using wasm::ValType;

// The one process of a Space.
class SoleProcess final : public device::WaitingProcess {
public:
    SoleProcess(device::Space& space, Handle block) : space_(space), block_(block) {}
    u32 id() const override { return 0; }
    Handle block() const override { return block_; }
    Result<void> read_words(u32 index, std::span<u32> words) override {
        return space_.read_words(index, words);
    }
    Result<void> read_bytes(u64 offset, std::span<u8> bytes) override {
        return space_.read_bytes(offset, bytes);
    }
    Result<void> write_bytes(u64 offset, std::span<const u8> bytes) override {
        return space_.write_bytes(offset, bytes);
    }

private:
    device::Space& space_;
    Handle block_;
};

// Returns true if a call ended by a fault, whose state can be dumped.
bool is_fault(const Completion& completion) {
    switch (completion.kind) {
        case Completion::Kind::returned:
        case Completion::Kind::exited:
        case Completion::Kind::stopped: return false;
        default: return true;
    }
}

class Runner {
public:
    Runner(System& system, Store& store, const Run& run, const host::Streams& streams,
           const RunControl& control)
        : all_(system),
          system_(system.memory()),
          store_(store),
          run_(run),
          streams_(streams),
          control_(control),
          notes_(run, held_records, false) {}

    // Runs the thread until it ends or is stopped.
    Result<ThreadState> run() {
        RunControl control = control_;
        for (;;) {
            // Slices are short at first, so that a prompt shows at once; longer ones cost less.
            control.slice = std::min(control.slice + std::chrono::milliseconds(2),
                                     std::chrono::microseconds(20'000));
            if (run_.is_profiled) control.slice = sampling_slice;
            ThreadState state = TRY(store_.run(control));
            if (run_.is_profiled && state == ThreadState::ready)
                TRY(sampler_.look(store_, store_.space()));
            TRY(drain());
            if (is_closed_) return ThreadState::ready;
            bool goes_on = state == ThreadState::ready || TRY(store_.waits_for_time(state));
            if (state == ThreadState::host) goes_on = TRY(fulfil());
            if (!goes_on || control_.wants_stop()) return state;
            if (state == ThreadState::host) TRY(set_state(ThreadState::ready));
        }
    }

    Result<Handle> block() {
        if (block_ == 0) {
            u32 handle = 0;
            TRY(store_.space().read_words(process_block, {&handle, 1}));
            block_ = handle;
        }
        return block_;
    }
    bool was_output_closed() const { return is_closed_; }
    const Notes& notes() const { return notes_; }
    const Sampler& sampler() const { return sampler_; }

private:
    static constexpr std::chrono::microseconds sampling_slice{500};

    Result<void> set_state(ThreadState state) {
        const u32 word = u32(state);
        return store_.space().write_words(store_.thread() + thread_state, {&word, 1});
    }

    Result<ProcessBlock> process() {
        return read_value<ProcessBlock>(system_, offset_of(TRY(block())));
    }

    Result<void> drain() {
        if (TRY(block()) == 0) return {};
        TRY(all_.take_records([&](const DebugRecord& record) { notes_.add(record); }));
        return all_.drain(0, block_, [&](u32, int stream, std::string_view bytes) -> Result<bool> {
            const bool is_open = TRY(streams_.write(stream, bytes));
            is_closed_ |= !is_open && stream == 1;
            return is_open;
        });
    }

    // Returns when a time of the process's monotonic clock comes, on the host's clock.
    std::optional<steady_clock::time_point> when(u64 deadline) {
        if (deadline == no_deadline) return std::nullopt;
        u64 now = u64(std::chrono::nanoseconds(steady_clock::now().time_since_epoch()).count());
        u64 most = u64{1} << 60;
        u64 left = deadline > now ? std::min(deadline - now, most) : 0;
        return steady_clock::now() + std::chrono::nanoseconds(left);
    }

    Result<bool> fulfil() {
        ProcessBlock me = TRY(process());
        switch (me.request) {
            case Request::input: return give_input(me);
            case Request::block:
            case Request::sync:
            case Request::call: {
                SoleProcess sole(store_.space(), block_);
                TRY(all_.fulfil(sole, run_.functions, {}, {}));
                return true;
            }
            default: return true;  // output: it was taken away
        }
    }

    Result<bool> give_input(const ProcessBlock& me) {
        std::optional<steady_clock::time_point> deadline = when(TRY(store_.wait_end()));
        if (control_.deadline)
            deadline = deadline ? std::min(*deadline, *control_.deadline) : *control_.deadline;
        auto bytes = TRY(streams_.read(host::live_input, deadline, control_.stop));
        if (!bytes) return !control_.wants_stop();
        u64 at = offset_of(me.request_node);
        Node node = TRY(read_value<Node>(system_, at));
        if (bytes->empty()) {
            node.flags |= node_is_ended;
        } else {
            std::vector<Handle> table(host::live_input / file_block);
            TRY(system_.read(offset_of(node.content),
                             {reinterpret_cast<u8*>(table.data()), table.size() * sizeof(Handle)}));
            for (usize i = 0; i * file_block < bytes->size(); i++)
                TRY(system_.write(
                    offset_of(table[i]),
                    std::span(*bytes).subspan(
                        i * file_block,
                        std::min<usize>(file_block, bytes->size() - i * file_block))));
            node.size = bytes->size();
        }
        TRY(write_value(system_, at, node));
        return true;
    }

    System& all_;
    SystemMemory& system_;
    Store& store_;
    const Run& run_;
    const host::Streams& streams_;
    const RunControl& control_;
    Handle block_ = 0;
    bool is_closed_ = false;
    Notes notes_;
    Sampler sampler_;
};

// Returns where the streams of a run lead. Output that nobody takes goes to `kept`.
host::Streams streams_of(const Run& run, std::string* kept) {
    host::Streams streams;
    if (run.streams.are_inherited) streams = host::console();
    streams.terminals = run.streams.terminals(run.system.input != nullptr);
    if (run.streams.read) streams.read = run.streams.read;
    if (run.streams.write)
        streams.write = [&run](int stream, std::string_view bytes) {
            return run.streams.write(0, stream, bytes);
        };
    else if (!run.streams.are_inherited)
        streams.write = [kept](int stream, std::string_view bytes) -> Result<bool> {
            kept[stream - 1] += bytes;
            return true;
        };
    return streams;
}

// Runs the calls of a process one after another: initialisers, then the function that was asked
// for.
Result<void> run_calls(Store& store, Runner& runner, const Instance& instance,
                       const std::string& function, std::span<const Value> arguments,
                       ProgramEnding& ending) {
    const ThreadState initialised = TRY(runner.run());
    ending.completion = TRY(store.complete(initialised));
    std::vector<std::pair<std::string, std::span<const Value>>> calls;
    if (const wasm::Export* initialize = TRY(find_initialize(instance.module(), function)))
        calls.push_back({initialize->name, {}});
    calls.push_back({function, arguments});
    for (const auto& [name, values] : calls) {
        if (ending.completion.kind != Completion::Kind::returned) break;
        std::optional<Extern> func = store.find_export(instance, name);
        if (!func || func->kind != wasm::ExternKind::func)
            return Error{format("no exported function \"%s\"", name.c_str())};
        const u64 fuel = TRY(store.fuel());
        TRY(store.begin_call(*func, values));
        TRY(store.set_fuel(fuel));  // what the initialisers have left
        ThreadState state = TRY(runner.run());
        ending.completion = TRY(store.finish_call(*func, state));
    }
    return {};
}

Result<void> write_dump(const DumpFolder& folder, Store& store, ProgramEnding& ending) {
    const ProcessSnapshot snapshot = TRY(store.capture(store.space()));
    Result<void> written = folder.write(0, snapshot, store.space());
    if (!written)
        ending.dump = written.error();
    else
        ending.dumps = 1;
    return {};
}

Result<ProgramEnding> run_to_end(device::Device& device, const Job& job,
                                 std::span<const Value> arguments,
                                 const std::optional<DumpFolder>& dump, const RunControl& control) {
    const auto begin = steady_clock::now();
    const auto& [program, run] = job;
    ProgramEnding ending;
    const host::Streams streams = streams_of(run, ending.output);
    host::SystemOptions wanted = system_options(system_bytes(device.info(), 1), run, control);
    if (device.info().capability != 0) wanted.warm_bytes = host::max_warm_ahead;
    wanted.arguments = program_arguments(job);
    wanted.is_live = true;
    if (!streams.read && !wanted.input) wanted.input = std::make_shared<std::vector<u8>>();
    System system = TRY(System::make(device, wanted, streams.terminals));
    const StoreOptions fitting =
        options_for(device.info(), *program.module, run.limits.memory_bytes);
    std::unique_ptr<Store> store =
        TRY(Store::create(store_options(fitting, job, control), device, &system.memory()));
    TRY(store->offer(run.functions));
    std::vector<Extern> imports = TRY(store->system_imports(*program.module));
    Instance* instance = TRY(store->begin_instance(program.module, imports));

    Runner runner(system, *store, run, streams, control);
    Result<void> ran = run_calls(*store, runner, *instance, run.function, arguments, ending);
    if (ran && dump && is_fault(ending.completion)) ran = write_dump(*dump, *store, ending);
    if (!ran) ending.problem = ran.error();
    if (Result<Handle> block = runner.block()) ending.block = *block;
    ending.was_output_closed = runner.was_output_closed();
    ending.samples = runner.sampler().samples(*store);
    ending.debug = runner.notes().kept();
    ending.debug_dropped = runner.notes().lost();
    ending.native = store->native_facts();
    store.reset();  // it uses what is taken
    Result<SystemSnapshot> snapshot = system.finish(ending.block);
    if (snapshot)
        ending.snapshot = std::move(*snapshot);
    else if (!ending.problem)
        ending.problem = snapshot.error();
    ending.seconds = std::chrono::duration<double>(steady_clock::now() - begin).count();
    return ending;
}

}  // namespace

Result<ProgramEnding> run_program(device::Device& device, const Job& job) {
    const std::vector<Value> arguments = TRY(function_values(job));
    const std::optional<DumpFolder> dump = TRY(dump_folder(job));
    auto run = [&](const RunControl& control) {
        return run_to_end(device, job, arguments, dump, control);
    };
    auto stopped = [] {
        ProgramEnding ending;
        ending.completion.kind = Completion::Kind::stopped;
        return ending;
    };
    return run_controlled(device, device::Mode::space, job.run, run, stopped);
}

}  // namespace gpurun::engine
