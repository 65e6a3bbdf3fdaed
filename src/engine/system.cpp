// Makes system memory, fulfils what processes ask the host for, and takes what they left.
#include "engine/system.h"

#include <algorithm>
#include <cstddef>

#include "base/format.h"
#include "base/notes.h"
#include "engine/value.h"
#include "host/harvest.h"
#include "host/write_through.h"
#include "translate/translate.h"

namespace gpurun::engine {
namespace {

using device::SystemMemory;
using wasm::ValType;

// A call of a host function, with the guest's memory on the device.
class StagedCall final : public HostCall {
public:
    StagedCall(const device::Device& device, device::WaitingProcess& waiting, u32 number,
               const HostCallBlock& block)
        : device_(device), waiting_(waiting), number_(number), block_(block) {}

    void set_arguments(const wasm::FuncType& type, std::span<const u32> words) {
        for (ValType param : type.params) {
            Value value{param};
            std::copy_n(words.begin(), translate::words_of(param), value.bits.word);
            words = words.subspan(translate::words_of(param));
            arguments_.push_back(value);
        }
    }
    const HostCallBlock& block() const { return block_; }

    const device::Device& device() const override { return device_; }
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

    const device::Device& device_;
    device::WaitingProcess& waiting_;
    u32 number_;
    HostCallBlock block_;
    std::vector<Value> arguments_;
};

// How many blocks of a file are sent at once if a process asks for one.
constexpr u64 blocks_ahead = 64;

// Reads handles. The device's numbers are checked before they are used.
Result<std::vector<Handle>> read_handles(SystemMemory& system, Handle at, u64 count) {
    if (offset_of(at) + count * sizeof(Handle) > system.size())
        return Error{"system memory is damaged: the table of a stream"};
    std::vector<Handle> handles(count);
    TRY(system.read(offset_of(at),
                    {reinterpret_cast<u8*>(handles.data()), count * sizeof(Handle)}));
    return handles;
}

Result<std::string> stream_bytes(SystemMemory& system, const Node& node) {
    const u64 count = (node.size + file_block - 1) / file_block;
    const bool is_deep = node.flags & node_is_deep;
    const u64 tables = is_deep ? (count + table_blocks - 1) / table_blocks : count;
    if (node.kind != NodeKind::stream || tables > node.content_count || node.size > system.size())
        return Error{"system memory is damaged: a stream"};
    std::vector<Handle> blocks = TRY(read_handles(system, node.content, tables));
    if (is_deep) {
        std::vector<Handle> all;
        for (Handle table : blocks)
            std::ranges::copy(TRY(read_handles(system, table, table_blocks)),
                              std::back_inserter(all));
        blocks = std::move(all);
    }
    std::string bytes(count * file_block, '\0');
    for (u64 i = 0; i < count; i++) {
        if (offset_of(blocks[i]) + file_block > system.size())
            return Error{"system memory is damaged: a block of a stream"};
        TRY(system.read(offset_of(blocks[i]),
                        {reinterpret_cast<u8*>(bytes.data()) + i * file_block, file_block}));
    }
    bytes.resize(node.size);
    return bytes;
}

}  // namespace

Result<SystemSnapshot> System::finish(Handle block) {
    const SystemHeader header = TRY(read_value<SystemHeader>(*memory_, 0));
    const u64 size = std::min(header.bump, memory_->size());
    SystemSnapshot snapshot{TRY(memory_->take(size)), std::move(base_), {}};
    memory_.reset();
    if (block == 0) return snapshot;
    Result<void> written = host::write_back(snapshot.arena.bytes, block, *snapshot.base);
    if (!written) snapshot.files = written.error();
    return snapshot;
}

u64 system_bytes(const device::DeviceInfo& device, u32 processes) {
    constexpr u64 least = u64{1} << 30, for_each = 32 << 10;
    if (device.reserves_lazily) return u64{64} << 30;
    return std::min(device.memory_free / 3, least + u64(processes) * for_each) & ~u64{0xffff};
}

Result<System> System::make(device::Device& device, const host::SystemOptions& options,
                            u32 terminals, const Place& place) {
    System system(device);
    system.base_ = std::make_unique<host::SystemBase>(TRY(host::SystemBase::make(options)));
    system.memory_ = TRY(device.make_system(options.arena_size));
    SystemHeader header = system.base_->fresh_header();
    header.terminals = terminals;
    if (place) TRY(place(header));
    if (system.base_->cold_count() > 0)
        header.size =
            header.base_end + (header.size - header.base_end) / 2 / file_block * file_block;
    system.cold_blocks_begin_ = system.next_cold_block_ = header.size;
    system.records_at_ = offset_of(header.debug);
    system.record_places_ = header.debug_capacity;
    TRY(system.memory_->write(0, system.base_->bytes()));
    TRY(write_value(*system.memory_, 0, header));
    return system;
}

Result<void> System::fulfil(device::WaitingProcess& process,
                            std::span<const HostFunction> functions, const TakeOutput& take,
                            const TakeRecord& note_record) {
    u64 at = offset_of(process.block());
    ProcessBlock me = TRY(read_value<ProcessBlock>(*memory_, at));
    if (me.request == Request::block) return load_block(me, at);
    if (me.request == Request::call) return call_host(process, me, functions);
    if (me.request == Request::sync) {
        Result<void> written = sync_file(*memory_, process.block(), me.request_node, *base_);
        if (written) return {};
        note(written.error().message);
        return write_value<u32>(*memory_, at + offsetof(CallState, request_failed), 1);
    }
    if (me.request != Request::output) return {};
    TRY(take_records(note_record));
    return drain(process.id(), process.block(), take);
}

Result<void> sync_file(SystemMemory& memory, Handle process, Handle node,
                       const host::SystemBase& system_base) {
    auto read = [&](u64 offset, std::span<u8> bytes) { return memory.read(offset, bytes); };
    TRY(host::write_through(read, memory.size(), process, node, system_base));
    const u64 flags = offset_of(node) + offsetof(Node, flags);
    return write_value<u32>(memory, flags, TRY(read_value<u32>(memory, flags)) & ~node_is_changed);
}

Result<void> System::drain(u32 process, Handle block, const TakeOutput& take) {
    const ProcessBlock me = TRY(read_value<ProcessBlock>(*memory_, offset_of(block)));
    std::optional<Error> problem;
    for (int stream : {1, 2}) {
        const u64 at = offset_of(stream == 1 ? me.output : me.error);
        Node node = TRY(read_value<Node>(*memory_, at));
        if (node.size == 0) continue;
        const std::string bytes = TRY(stream_bytes(*memory_, node));
        Result<bool> is_open = take(process, stream, bytes);
        if (!is_open && !problem) problem = is_open.error();
        if (!is_open || !*is_open) node.flags |= node_is_ended;
        node.size = 0;
        TRY(write_value(*memory_, at, node));
    }
    if (problem) return *problem;
    return {};
}

// Stops at the first record that is not complete: others may write records meanwhile.
Result<void> System::take_records(const TakeRecord& take) {
    const u64 count = TRY(memory_->load_shared(offsetof(SystemHeader, debug_count), 0, 1))[0];
    std::vector<DebugRecord> records;
    while (taken_records_ < count && records.size() < record_places_) {
        const u64 place = taken_records_ % record_places_;
        const u64 most = std::min(count - taken_records_, record_places_ - place);
        const u64 at = records_at_ + place * sizeof(DebugRecord);
        const std::vector<u64> turns =
            TRY(memory_->load_shared(at + offsetof(DebugRecord, turn), sizeof(DebugRecord), most));
        u64 ready = 0;
        while (ready < most && turns[ready] == taken_records_ + ready + 1) ready++;
        const usize before = records.size();
        records.resize(before + ready);
        TRY(memory_->read(
            at, {reinterpret_cast<u8*>(records.data() + before), ready * sizeof(DebugRecord)}));
        taken_records_ += ready;
        if (ready < most) break;
    }
    if (records.empty()) return {};
    TRY(memory_->store_shared(offsetof(SystemHeader, debug_taken), taken_records_));
    // Only the kind is checked, for the switches over it: nothing else in a record refers to
    // anything.
    for (const DebugRecord& record : records)
        if (record.kind <= DebugKind::call) take(record);
    return {};
}

Result<u64> System::lost_records() {
    return read_value<u64>(*memory_, offsetof(SystemHeader, debug_dropped));
}

// Calls a host function for a process. The device's numbers are checked before they are used.
Result<void> System::call_host(device::WaitingProcess& process, const ProcessBlock& me,
                               std::span<const HostFunction> functions) {
    u64 at = offset_of(me.request_node);
    if (me.request_at >= functions.size() || at + sizeof(HostCallBlock) > memory_->size())
        return Error{"system memory is damaged: a call of a host function"};
    const HostFunction& function = functions[me.request_at];
    StagedCall call(*device_, process, me.id, TRY(read_value<HostCallBlock>(*memory_, at)));
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

Result<void> System::load_block(const ProcessBlock& me, u64 at) {
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
    auto is_there_already = [&](u64 handle) -> Result<bool> {
        return TRY(read_value<Handle>(*memory_, handle)) != 0;
    };
    if (is_there && TRY(is_there_already(entry))) return {};  // somebody else asked for it before
    // Blocks that follow are sent too if the file is small, or is read in order.
    const u64 table_size = node.flags & node_is_deep ? table_blocks : node.content_count;
    const u64 blocks = std::max<u64>(1, (node.size + file_block - 1) / file_block);
    const u64 room = (memory_->size() - next_cold_block_) / file_block;
    u64 count = 1;
    if (is_there && room > 8 * blocks_ahead &&
        (blocks <= blocks_ahead || (place > 0 && TRY(is_there_already(entry - sizeof(Handle))))))
        while (count < blocks_ahead && place + count < table_size &&
               me.request_at + count < blocks &&
               !TRY(is_there_already(entry + count * sizeof(Handle))))
            count++;
    Result<std::vector<u8>> bytes = base_->read_blocks(node.host_id, me.request_at, count);
    if (!bytes || !is_there || count > room)
        return write_value<u32>(*memory_, at + offsetof(CallState, request_failed), 1);
    TRY(memory_->write(next_cold_block_, *bytes));
    for (u64 i = 0; i < count; i++, next_cold_block_ += file_block)
        TRY(write_value(*memory_, entry + i * sizeof(Handle),
                        Handle(next_cold_block_ >> handle_shift)));
    return {};
}

}  // namespace gpurun::engine
