// A process that makes system calls without a module: calls go to the runtime as the interpreter
// would pass them on, with any arguments, and guest memory is read and written from here. Plays
// the host's part too: input, output, pieces of cold files. Knows nothing of GoogleTest.
#pragma once

#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "abi/wasi.h"
#include "base/check.h"
#include "host/system_base.h"
#include "runtime/wasi/system.h"

namespace gpurun::test {

using rt::SystemCall;
using wasi::Errno;

inline constexpr std::string_view call_parameters[] = {
#define SYSTEM_CALL(name, parameters, results) parameters,
#include "abi/system_calls.def"
#undef SYSTEM_CALL
};
inline constexpr std::string_view call_names[] = {
#define SYSTEM_CALL(name, parameters, results) #name,
#include "abi/system_calls.def"
#undef SYSTEM_CALL
};
inline constexpr u32 all_calls = u32(SystemCall::count);

// Bytes with nothing behind them, so that a sanitizer sees who goes too far.
class Bytes {
public:
    explicit Bytes(u64 size) : size_((size + 63) & ~u64{63}) {
        data_.reset(static_cast<u8*>(std::aligned_alloc(64, size_)));
        CHECK(data_ != nullptr);
    }
    u8* data() const { return data_.get(); }
    u64 size() const { return size_; }

private:
    struct Free {
        void operator()(u8* p) const { std::free(p); }
    };
    u64 size_;
    std::unique_ptr<u8, Free> data_;
};

// System memory with a base in it.
class System {
public:
    explicit System(host::SystemOptions options, u64 size = 16 << 20) : arena_(size) {
        options.arena_size = arena_.size();
        auto made = host::SystemBase::make(options);
        if (!made) std::fprintf(stderr, "%s\n", made.error().message.c_str());
        CHECK(made);
        base_ = std::make_unique<host::SystemBase>(std::move(*made));
        restart();
    }

    // As it was at first.
    void restart() {
        std::memset(arena_.data(), 0xcd, arena_.size());
        restart_quickly();
    }
    // The same, where nobody looks at memory that was never allocated.
    void restart_quickly() {
        std::memcpy(arena_.data(), base_->bytes().data(), base_->bytes().size());
        if (base_->cold_count() > 0)
            header().size -= (header().size - header().base_end) / 2 / file_block * file_block;
        next_brought_ = header().size;
    }

    // A piece of a cold file, behind the heap. False: it does not fit.
    bool bring(std::span<const u8> bytes, Handle& handle) {
        if (next_brought_ + file_block > arena_.size()) return false;
        std::memcpy(arena_.data() + next_brought_, bytes.data(), file_block);
        handle = Handle(next_brought_ >> handle_shift);
        next_brought_ += file_block;
        return true;
    }

    u8* data() const { return arena_.data(); }
    SystemHeader& header() const { return *reinterpret_cast<SystemHeader*>(arena_.data()); }
    const host::SystemBase& base() const { return *base_; }
    std::span<const u8> used() const { return {arena_.data(), usize(header().bump)}; }

private:
    Bytes arena_;
    std::unique_ptr<host::SystemBase> base_;
    u64 next_brought_ = 0;
};

// Where a string argument is in guest memory.
struct Text {
    u32 at, length;
};

class Caller {
public:
    static constexpr u32 memory_size = 192 << 10;
    static constexpr u32 result = 0x100;   // where calls put results
    static constexpr u32 vectors = 0x200;  // of iovecs
    static constexpr u32 texts = 0x4000;   // paths and the like
    static constexpr u32 buffer = 0x10000;
    static constexpr u32 buffer_size = 0x18000;

    explicit Caller(System& system, u32 id = 0, u64 bytes = memory_size)
        : system_(system), memory_(bytes), words_(256) {
        std::memset(memory_.data(), 0, memory_size < bytes ? memory_size : bytes);
        words_[process_canaries] = 1;  // what is given back is overwritten
        words_[instance_at + instance_module] = header_at;
        words_[instance_at + instance_first_free] = memory_at;
        reinterpret_cast<ModuleHeader*>(code_ + header_at)->memories = instance_first_free;
        set_memory_size(memory_.size());
        process_ = {code_, words_.data(), memory_.data(), words_.data(), 0, 63, system.data()};
        words_[process_block] = rt::begin_process(process_, id);
    }
    Caller(const Caller&) = delete;
    Caller& operator=(const Caller&) = delete;
    ~Caller() { end(); }

    bool has_begun() const { return words_[process_block] != 0; }
    void end(bool keeps = false) {
        if (has_begun()) rt::end_process(process_, words_[process_block], keeps);
        words_[process_block] = 0;
    }
    Handle block() const { return words_[process_block]; }
    ProcessBlock& me() const { return *at<ProcessBlock>(block()); }
    const rt::Process& process() const { return process_; }
    System& system() const { return system_; }
    template <class T>
    T* at(Handle handle) const {
        return rt::at_handle<T>(process_, handle);
    }
    void set_memory_size(u64 size) {
        std::memcpy(&words_[memory_at + memory_bytes], &size, sizeof size);
    }

    // ---- calls -------------------------------------------------------------------------

    // Arguments as many as the call has. The state tells whether it returned.
    u32 call_raw(SystemCall which, std::initializer_list<u64> arguments) {
        return call_raw(which, std::vector<u64>(arguments));
    }
    u32 call_raw(SystemCall which, const std::vector<u64>& arguments) {
        std::string_view parameters = call_parameters[u32(which)];
        CHECK(arguments.size() == parameters.size());
        u32 slot = stack_at;
        for (usize i = 0; i < arguments.size(); i++) {
            words_[slot++] = u32(arguments[i]);
            if (parameters[i] == 'I' || parameters[i] == 'F')
                words_[slot++] = u32(arguments[i] >> 32);
        }
        state_ = ThreadState::ready;
        return go_on(which);
    }
    // The same call once more, after a sleep.
    u32 go_on(SystemCall which) {
        words_[thread_at + thread_state] = u32(ThreadState::ready);
        for (turns_ = 1;; turns_++) {
            CHECK(turns_ < 10'000'000);
            rt::Registers r{};
            r.pc = 100;
            r.fp = {&words_[stack_at]};
            r.rp = {&words_[record_at]};
            words_[record_at + record_instance] = instance_at;
            rt::Outcome outcome = rt::run_system(process_, &words_[thread_at], r, u64(which) << 32);
            rt::do_chore(r.chore);
            if (outcome == rt::Outcome::next) {
                CHECK(r.pc == 101);
                state_ = ThreadState::finished;
                return words_[stack_at];
            }
            if (outcome == rt::Outcome::chunk) {
                if (takes_output_between) take_output();
                continue;
            }
            CHECK(outcome == rt::Outcome::leave);
            state_ = ThreadState(words_[thread_at + thread_state]);
            if (state_ != ThreadState::host || !fulfil()) return ~u32{0};
            words_[thread_at + thread_state] = u32(ThreadState::ready);
        }
    }
    Errno call(SystemCall which, std::initializer_list<u64> arguments) {
        return Errno(call_raw(which, arguments));
    }
    // `finished`, or why the last call did not return: sleeping, exited, host.
    ThreadState state() const { return state_; }
    u64 wait_end() const { return rt::get<u64>(words_.data(), thread_at + thread_wait_until); }
    u32 turns() const { return turns_; }
    u64 result_i64() const { return get<u64>(stack_bytes()); }

    // ---- guest memory ------------------------------------------------------------------

    u8* memory() const { return memory_.data(); }
    template <class T>
    T load(u32 address) const {
        return get<T>(memory_.data() + address);
    }
    template <class T>
    void store(u32 address, T value) {
        std::memcpy(memory_.data() + address, &value, sizeof value);
    }
    std::string bytes(u32 address, u64 count) const {
        return {reinterpret_cast<const char*>(memory_.data()) + address, usize(count)};
    }
    void put(u32 address, std::string_view text) {
        std::memcpy(memory_.data() + address, text.data(), text.size());
    }
    Text text(std::string_view text, u32 number = 0) {
        u32 at = texts + number * 0x2000;
        put(at, text);
        return {at, u32(text.size())};
    }

    // ---- the calls that tests make most --------------------------------------------------

    Errno open(std::string_view path, u32& fd, u32 oflags = 0, u64 rights = wasi::all_rights,
               u32 directory = wasi::first_preopen, u32 fdflags = 0,
               u64 inheriting = wasi::all_rights, u32 lookup = wasi::lookup_symlink_follow) {
        Text at = text(path);
        Errno error = call(SystemCall::path_open, {directory, lookup, at.at, at.length, oflags,
                                                   rights, inheriting, fdflags, result});
        if (error == Errno::success) fd = load<u32>(result);
        return error;
    }
    Errno close(u32 fd) { return call(SystemCall::fd_close, {fd}); }

    // One vector at `buffer`; what was moved.
    Errno write(u32 fd, std::string_view data, u32* done = nullptr) {
        put(buffer, data);
        return move(SystemCall::fd_write, fd, u32(data.size()), 0, done);
    }
    Errno pwrite(u32 fd, std::string_view data, u64 offset, u32* done = nullptr) {
        put(buffer, data);
        return move(SystemCall::fd_pwrite, fd, u32(data.size()), offset, done);
    }
    Errno read(u32 fd, u32 count, std::string& data) {
        u32 done = 0;
        Errno error = move(SystemCall::fd_read, fd, count, 0, &done);
        data = error == Errno::success ? bytes(buffer, done) : "";
        return error;
    }
    Errno pread(u32 fd, u32 count, u64 offset, std::string& data) {
        u32 done = 0;
        Errno error = move(SystemCall::fd_pread, fd, count, offset, &done);
        data = error == Errno::success ? bytes(buffer, done) : "";
        return error;
    }

    // A call that takes a descriptor and one path.
    Errno path(SystemCall which, std::string_view name, u32 directory = wasi::first_preopen) {
        Text at = text(name);
        return call(which, {directory, at.at, at.length});
    }
    Errno make_directory(std::string_view name, u32 directory = wasi::first_preopen) {
        return path(SystemCall::path_create_directory, name, directory);
    }
    Errno remove_directory(std::string_view name, u32 directory = wasi::first_preopen) {
        return path(SystemCall::path_remove_directory, name, directory);
    }
    Errno unlink(std::string_view name, u32 directory = wasi::first_preopen) {
        return path(SystemCall::path_unlink_file, name, directory);
    }
    Errno rename(std::string_view from, std::string_view to, u32 from_fd = wasi::first_preopen,
                 u32 to_fd = wasi::first_preopen) {
        Text a = text(from), b = text(to, 1);
        return call(SystemCall::path_rename, {from_fd, a.at, a.length, to_fd, b.at, b.length});
    }
    Errno link(std::string_view from, std::string_view to, u32 lookup = 0,
               u32 from_fd = wasi::first_preopen, u32 to_fd = wasi::first_preopen) {
        Text a = text(from), b = text(to, 1);
        return call(SystemCall::path_link,
                    {from_fd, lookup, a.at, a.length, to_fd, b.at, b.length});
    }
    Errno symlink(std::string_view target, std::string_view name,
                  u32 directory = wasi::first_preopen) {
        Text a = text(target), b = text(name, 1);
        return call(SystemCall::path_symlink, {a.at, a.length, directory, b.at, b.length});
    }
    Errno readlink(std::string_view name, std::string& target, u32 size = 4096,
                   u32 directory = wasi::first_preopen) {
        Text a = text(name);
        Errno error =
            call(SystemCall::path_readlink, {directory, a.at, a.length, buffer, size, result});
        target = error == Errno::success ? bytes(buffer, load<u32>(result)) : "";
        return error;
    }

    struct Filestat {
        u64 device, inode, type, links, size, accessed, modified, changed;
    };
    Errno stat(std::string_view name, Filestat& to, u32 lookup = 0,
               u32 directory = wasi::first_preopen) {
        Text a = text(name);
        Errno error =
            call(SystemCall::path_filestat_get, {directory, lookup, a.at, a.length, result});
        to = load<Filestat>(result);
        return error;
    }
    Errno stat_fd(u32 fd, Filestat& to) {
        Errno error = call(SystemCall::fd_filestat_get, {fd, result});
        to = load<Filestat>(result);
        return error;
    }

    struct Fdstat {
        u8 type, padding;
        u16 flags;
        u32 padding_2;
        u64 rights, inheriting;
    };
    Errno fdstat(u32 fd, Fdstat& to) {
        Errno error = call(SystemCall::fd_fdstat_get, {fd, result});
        to = load<Fdstat>(result);
        return error;
    }

    struct Entry {
        u64 next, inode;
        u32 type;
        std::string name;
    };
    // Those that are in the buffer whole.
    Errno readdir(u32 fd, u64 cookie, std::vector<Entry>& entries, u32 size = 4096,
                  u32* used = nullptr) {
        entries.clear();
        Errno error = call(SystemCall::fd_readdir, {fd, buffer, size, cookie, result});
        if (error != Errno::success) return error;
        u32 end = load<u32>(result);
        if (used) *used = end;
        for (u32 i = 0; i + 24 <= end;) {
            u32 length = load<u32>(buffer + i + 16);
            if (i + 24 + length > end) break;
            entries.push_back({load<u64>(buffer + i), load<u64>(buffer + i + 8),
                               load<u32>(buffer + i + 20), bytes(buffer + i + 24, length)});
            i += 24 + length;
        }
        return error;
    }
    Errno seek(u32 fd, s64 distance, u32 whence, u64* to = nullptr) {
        Errno error = call(SystemCall::fd_seek, {fd, u64(distance), whence, result});
        if (to) *to = load<u64>(result);
        return error;
    }

    // ---- the host's part -----------------------------------------------------------------

    std::deque<std::string> input;      // live: what comes, a piece at a time; then the end
    std::string taken[2];               // live: what was written to standard output and error
    bool takes_output_between = false;  // live: the host looks in between
    u32 blocks_to_bring = ~u32{0};      // of cold files; then the host fails
    u32 blocks_brought = 0;

    void take_output() {
        for (u32 i = 0; i < 2; i++) {
            Node* node = at<Node>(i == 0 ? me().output : me().error);
            taken[i] += content(*node);
            node->size = 0;
        }
    }
    // Of a file or stream whose blocks are all here.
    std::string content(const Node& node) const {
        std::string all(node.size, '\0');
        for (u64 i = 0; i * file_block < node.size; i++) {
            const Handle* block = rt::slot_of(process_, &node, i);
            if (block == nullptr || *block <= zero_block) continue;
            std::memcpy(&all[i * file_block], at<u8>(*block),
                        std::min<u64>(file_block, node.size - i * file_block));
        }
        return all;
    }
    std::string output() const { return content(*at<Node>(me().output)); }

private:
    static constexpr u32 header_at = 2;
    static constexpr u32 instance_at = 16, memory_at = 32, thread_at = 48, stack_at = 96,
                         record_at = 160;

    template <class T>
    static T get(const u8* from) {
        T value;
        std::memcpy(&value, from, sizeof value);
        return value;
    }
    const u8* stack_bytes() const { return reinterpret_cast<const u8*>(&words_[stack_at]); }

    Errno move(SystemCall which, u32 fd, u32 count, u64 offset, u32* done) {
        store<u32>(vectors, buffer);
        store<u32>(vectors + 4, count);
        bool is_positioned = which == SystemCall::fd_pread || which == SystemCall::fd_pwrite;
        Errno error = is_positioned ? call(which, {fd, vectors, 1, offset, result})
                                    : call(which, {fd, vectors, 1, result});
        if (done) *done = error == Errno::success ? load<u32>(result) : 0;
        return error;
    }

    // False: the call waits.
    bool fulfil() {
        switch (me().request) {
            case Request::output:
                take_output();
                system_.header().debug_taken = system_.header().debug_count;
                return true;
            case Request::input: return bring_input();
            case Request::block: bring_block(); return true;
            default: return false;
        }
    }
    bool bring_input() {
        Node* node = at<Node>(me().request_node);
        if (input.empty()) {
            node->flags |= node_is_ended;
            return true;
        }
        std::string bytes = input.front();
        input.pop_front();
        if (bytes.empty()) return false;  // nothing yet
        for (usize i = 0; i * file_block < bytes.size(); i++)
            std::memcpy(at<u8>(at<Handle>(node->content)[i]), bytes.data() + i * file_block,
                        std::min<usize>(file_block, bytes.size() - i * file_block));
        node->size = bytes.size();
        return true;
    }
    void bring_block() {
        Node* node = at<Node>(me().request_node);
        Handle* block = rt::slot_of(process_, node, me().request_at);
        if (block != nullptr && *block != 0) return;
        auto bytes = system_.base().read_block(node->host_id, me().request_at);
        if (!bytes || blocks_to_bring == 0 || block == nullptr || !system_.bring(*bytes, *block)) {
            me().request_failed = 1;
            return;
        }
        blocks_to_bring--;
        blocks_brought++;
    }

    System& system_;
    Bytes memory_;
    u64 code_[16] = {};
    std::vector<u32> words_;
    rt::Process process_;
    ThreadState state_ = ThreadState::ready;
    u32 turns_ = 0;
};

}  // namespace gpurun::test
