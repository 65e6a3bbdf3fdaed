// Runs a process and fulfils its requests in between: output, input, sleep, cold files.
#include "engine/program.h"

#include <algorithm>
#include <cinttypes>
#include <cstddef>
#include <cstring>

#include "abi/system.h"
#include "base/format.h"
#include "host/console.h"
#include "host/harvest.h"

namespace gpurun::engine {
namespace {

using device::RunControl;
using device::SystemMemory;
using std::chrono::steady_clock;
using wasm::ValType;

u64 offset_of(Handle handle) { return u64(handle) << handle_shift; }

template <class T>
Result<T> read_value(SystemMemory& system, u64 offset) {
    T value;
    TRY(system.read(offset, {reinterpret_cast<u8*>(&value), sizeof value}));
    return value;
}
template <class T>
Result<void> write_value(SystemMemory& system, u64 offset, const T& value) {
    return system.write(offset, {reinterpret_cast<const u8*>(&value), sizeof value});
}

// A call of a host function, with the guest's memory on the device.
class StagedCall final : public HostCall {
public:
    StagedCall(device::WaitingProcess& waiting, u32 number, const HostCallBlock& block)
        : waiting_(waiting), number_(number), block_(block) {}

    void set_arguments(const wasm::FuncType& type, std::span<const u32> words) {
        for (ValType param : type.params) {
            Value value{param};
            std::copy_n(words.begin(), translate::words_of(param), value.bits.word);
            words = words.subspan(translate::words_of(param));
            arguments_.push_back(value);
        }
    }
    const HostCallBlock& block() const { return block_; }

    u32 process() const override { return number_; }
    std::span<const Value> arguments() const override { return arguments_; }
    u64 memory_size() const override { return block_.memory_size; }
    Result<void> read_memory(u64 address, std::span<u8> bytes) override {
        TRY(check(address, bytes.size()));
        return waiting_.read_bytes(block_.memory_at + address, bytes);
    }
    Result<void> write_memory(u64 address, std::span<const u8> bytes) override {
        TRY(check(address, bytes.size()));
        return waiting_.write_bytes(block_.memory_at + address, bytes);
    }

private:
    Result<void> check(u64 address, u64 size) const {
        if (address <= block_.memory_size && size <= block_.memory_size - address) return {};
        return Error{format("%llu bytes at %llu are not in the guest's memory of %llu",
                            (unsigned long long)size, (unsigned long long)address,
                            (unsigned long long)block_.memory_size)};
    }

    device::WaitingProcess& waiting_;
    u32 number_;
    HostCallBlock block_;
    std::vector<Value> arguments_;
};

// The one process of a Space.
class SoleProcess final : public device::WaitingProcess {
public:
    SoleProcess(device::Space& space, Handle block) : space_(space), block_(block) {}
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

// What leaves a state to look at.
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
    Runner(System& system, Store& store, const ProgramOptions& options, const RunControl& control)
        : all_(system),
          system_(system.memory()),
          store_(store),
          options_(options),
          control_(control) {}

    // Goes on with the thread until it ends or is stopped.
    Result<ThreadState> run() {
        RunControl control = control_;
        for (;;) {
            // Short slices at first, so that a prompt shows at once; longer ones cost less.
            control.slice = std::min(control.slice + std::chrono::milliseconds(2),
                                     std::chrono::microseconds(20'000));
            if (options_.is_profiled) control.slice = sampling_slice;
            ThreadState state = TRY(store_.run(control));
            if (options_.is_profiled && state == ThreadState::ready) TRY(sampler_.look(store_));
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
    std::vector<DebugRecord> take_records() { return std::move(records_); }
    u64 dropped_records() const { return dropped_; }
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

    // Takes away what the process has written, in the order of the streams.
    Result<void> drain() {
        if (TRY(block()) == 0) return {};
        TRY(drain_records());
        ProcessBlock me = TRY(process());
        for (int stream : {1, 2}) {
            u64 at = offset_of(stream == 1 ? me.output : me.error);
            Node node = TRY(read_value<Node>(system_, at));
            if (node.size == 0) continue;
            std::string bytes = TRY(stream_bytes(node));
            bool is_open = TRY(options_.streams.write(stream, bytes));
            is_closed_ |= !is_open && stream == 1;
            TRY(write_value<u64>(system_, at + offsetof(Node, size), 0));
        }
        return {};
    }

    Result<void> drain_records() {
        constexpr u64 count_at = offsetof(SystemHeader, debug_count);
        u64 count = TRY(read_value<u64>(system_, count_at));
        if (count == 0) return {};
        Handle at = TRY(read_value<Handle>(system_, offsetof(SystemHeader, debug)));
        u32 capacity = TRY(read_value<u32>(system_, offsetof(SystemHeader, debug_capacity)));
        std::vector<DebugRecord> records(std::min<u64>(count, capacity));
        const u64 size = records.size() * sizeof(DebugRecord);
        if (offset_of(at) + size > system_.size())
            return Error{"system memory is damaged: debug records"};
        TRY(system_.read(offset_of(at), {reinterpret_cast<u8*>(records.data()), size}));
        dropped_ += count - records.size();
        for (const DebugRecord& record : records) {
            if (options_.take_record)
                options_.take_record(record);
            else if (records_.size() < capacity)
                records_.push_back(record);
            else
                dropped_++;
        }
        return write_value<u64>(system_, count_at, 0);
    }

    // The device's numbers are checked before they are followed.
    Result<std::string> stream_bytes(const Node& node) {
        u64 count = (node.size + file_block - 1) / file_block;
        if (node.kind != NodeKind::stream || count > node.content_count ||
            offset_of(node.content) + u64(node.content_count) * sizeof(Handle) > system_.size())
            return Error{"system memory is damaged: a stream"};
        std::vector<Handle> table(count);
        TRY(system_.read(offset_of(node.content),
                         {reinterpret_cast<u8*>(table.data()), count * sizeof(Handle)}));
        std::string bytes(count * file_block, '\0');
        for (u64 i = 0; i < count; i++) {
            if (offset_of(table[i]) + file_block > system_.size())
                return Error{"system memory is damaged: a block of a stream"};
            TRY(system_.read(offset_of(table[i]),
                             {reinterpret_cast<u8*>(bytes.data()) + i * file_block, file_block}));
        }
        bytes.resize(node.size);
        return bytes;
    }

    // How far ahead a time of the process's monotonic clock is.
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
            case Request::input: return bring_input(me);
            case Request::block:
            case Request::call: {
                SoleProcess sole(store_.space(), block_);
                TRY(all_.fulfil(sole, options_.host_functions));
                return true;
            }
            default: return true;  // output: it was taken away
        }
    }

    Result<bool> bring_input(const ProcessBlock& me) {
        std::optional<steady_clock::time_point> deadline = when(TRY(store_.wait_end()));
        if (control_.deadline)
            deadline = deadline ? std::min(*deadline, *control_.deadline) : *control_.deadline;
        auto bytes = TRY(options_.streams.read(host::live_input, deadline, control_.stop));
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
    const ProgramOptions& options_;
    const RunControl& control_;
    Handle block_ = 0;
    bool is_closed_ = false;
    std::vector<DebugRecord> records_;  // as many as there is room for on the device
    u64 dropped_ = 0;
    Sampler sampler_;
};

}  // namespace

Result<System> System::make(device::Device& device, const host::SystemOptions& options,
                            u32 terminals) {
    System system;
    system.image_ = std::make_unique<host::SystemImage>(TRY(host::SystemImage::make(options)));
    system.memory_ = TRY(device.make_system(options.arena_size));
    SystemHeader header = system.image_->fresh_header();
    header.terminals = terminals;
    if (system.image_->cold_count() > 0)
        header.size =
            header.base_end + (header.size - header.base_end) / 2 / file_block * file_block;
    system.next_brought_ = header.size;
    TRY(system.memory_->write(0, system.image_->bytes()));
    TRY(write_value(*system.memory_, 0, header));
    return system;
}

Result<void> System::fulfil(device::WaitingProcess& process,
                            std::span<const HostFunction> functions) {
    u64 at = offset_of(process.block());
    ProcessBlock me = TRY(read_value<ProcessBlock>(*memory_, at));
    if (me.request == Request::block) return bring_block(me, at);
    if (me.request == Request::call) return call_host(process, me, functions);
    return {};
}

// The device's numbers are checked before they are followed.
Result<void> System::call_host(device::WaitingProcess& process, const ProcessBlock& me,
                               std::span<const HostFunction> functions) {
    u64 at = offset_of(me.request_node);
    if (me.request_at >= functions.size() || at + sizeof(HostCallBlock) > memory_->size())
        return Error{"system memory is damaged: a call of a host function"};
    const HostFunction& function = functions[me.request_at];
    StagedCall call(process, me.id, TRY(read_value<HostCallBlock>(*memory_, at)));
    u64 words = 0;
    for (ValType type : function.type.params) words += translate::words_of(type);
    std::vector<u32> arguments(words);
    TRY(memory_->read(at + sizeof(HostCallBlock),
                      {reinterpret_cast<u8*>(arguments.data()), words * 4}));
    call.set_arguments(function.type, arguments);

    Result<std::vector<Value>> results = function.call(call);
    HostCallBlock answer = call.block();
    std::vector<u32> result_words;
    bool is_done = results && results->size() == function.type.results.size();
    for (usize i = 0; is_done && i < results->size(); i++) {
        const Value& value = (*results)[i];
        is_done = value.type == function.type.results[i];
        result_words.insert(result_words.end(), value.bits.word,
                            value.bits.word + translate::words_of(value.type));
    }
    answer.status = is_done ? host_call_done : host_call_failed;
    answer.result_words = is_done ? u32(result_words.size()) : 0;
    if (is_done)
        TRY(memory_->write(
            at + sizeof(HostCallBlock),
            {reinterpret_cast<const u8*>(result_words.data()), result_words.size() * 4}));
    return write_value(*memory_, at, answer);
}

Result<void> System::bring_block(const ProcessBlock& me, u64 at) {
    Node node = TRY(read_value<Node>(*memory_, offset_of(me.request_node)));
    u64 table = offset_of(node.content), place = me.request_at;
    bool is_there = place < node.content_count;
    if (node.flags & node_is_deep) {
        is_there = place / table_blocks < node.content_count;
        if (is_there)
            table = offset_of(
                TRY(read_value<Handle>(*memory_, table + place / table_blocks * sizeof(Handle))));
        is_there = is_there && table != 0;
        place %= table_blocks;
    }
    u64 entry = table + place * sizeof(Handle);
    if (is_there && TRY(read_value<Handle>(*memory_, entry)) != 0)
        return {};  // somebody else asked for it before
    Result<std::vector<u8>> bytes = image_->read_block(node.host_id, me.request_at);
    if (!bytes || !is_there || next_brought_ + file_block > memory_->size())
        return write_value<u32>(*memory_, at + offsetof(CallState, request_failed), 1);
    TRY(memory_->write(next_brought_, *bytes));
    TRY(write_value(*memory_, entry, Handle(next_brought_ >> handle_shift)));
    next_brought_ += file_block;
    return {};
}

Result<std::vector<u8>> System::read_all() {
    SystemHeader header = TRY(read_value<SystemHeader>(*memory_, 0));
    std::vector<u8> arena(std::min(header.bump, memory_->size()));
    TRY(memory_->read(0, arena));
    return arena;
}

Result<Leavings> System::take() {
    Leavings left{TRY(read_all()), std::move(image_)};
    memory_.reset();
    return left;
}

u64 system_bytes(const device::DeviceInfo& device, u32 processes) {
    constexpr u64 least = u64{1} << 30, for_each = 32 << 10;
    if (device.reserves_lazily) return u64{64} << 30;
    return std::min(device.memory_free / 3, least + u64(processes) * for_each) & ~u64{0xffff};
}

Result<ProgramEnding> run_program(device::Device& device,
                                  std::shared_ptr<const wasm::Module> module,
                                  ProgramOptions options, const RunControl& control) {
    if (options.system.arena_size == 0) options.system.arena_size = system_bytes(device.info(), 1);
    options.system.is_live = true;
    System system = TRY(System::make(device, options.system, options.streams.terminals));
    std::unique_ptr<Store> store = TRY(Store::create(options.limits, device, &system.memory()));
    TRY(store->offer(options.host_functions));
    std::vector<Extern> imports = TRY(store->system_imports(*module));
    ProgramEnding ending;
    Runner runner(system, *store, options, control);
    Instance* instance = TRY(store->begin_instance(module, imports));
    ThreadState initialised = TRY(runner.run());
    ending.completion = TRY(store->complete(initialised));
    // Libraries have an initialiser of their own.
    std::vector<std::pair<std::string, std::vector<Value>>> calls;
    if (options.function != "_start" && module->find_export("_initialize"))
        calls.push_back({"_initialize", {}});
    calls.push_back({options.function, options.arguments});
    for (const auto& [name, arguments] : calls) {
        if (ending.completion.kind != Completion::Kind::returned) break;
        ending.has_begun = name == options.function;
        std::optional<Extern> func = store->find_export(*instance, name);
        if (!func || func->kind != wasm::ExternKind::func)
            return Error{format("no exported function \"%s\"", name.c_str())};
        TRY(store->begin_call(*func, arguments));
        ThreadState state = TRY(runner.run());
        ending.completion = TRY(store->finish_call(*func, state));
    }
    ending.was_output_closed = runner.was_output_closed();
    ending.block = TRY(runner.block());
    if (options.dump && is_fault(ending.completion)) {
        ProcessState state = TRY(store->capture(store->space()));
        Result<void> written = options.dump->write(0, state, store->space());
        if (!written)
            ending.dump = written.error();
        else
            ending.dumps = 1;
    }
    ending.samples = runner.sampler().samples(*store);
    ending.native = store->native_facts();
    store.reset();  // it uses what is taken
    ending.left = TRY(system.take());
    if (ending.block) {
        Result<void> written =
            host::write_back(ending.left.arena, ending.block, *ending.left.image);
        if (!written) ending.files = written.error();
    }
    ending.debug = runner.take_records();
    ending.debug_dropped = runner.dropped_records();
    return ending;
}

}  // namespace gpurun::engine
