// The calls for processes under the names of WASIX, with its structs: what WASI's own lack.
#include "runtime/process/process_calls.h"

namespace gpurun::rt {
namespace {

// ---- strings -----------------------------------------------------------------------

// Strings of the guest's with a NUL after each, in a block of the heap while the call is made.
// Other threads of the guest may change them meanwhile: what was measured is all that is copied.
class Gathered {
public:
    explicit Gathered(const Process& p) : p_(p) {}
    Gathered(const Gathered&) = delete;
    Gathered& operator=(const Gathered&) = delete;
    ~Gathered() { give_block(p_, block_, size_); }

    Text text{nullptr, 0, 0};

    // Lines; empty ones are none.
    Errno take_lines(const Call& call, u32 address, u32 size) {
        const u8* from = call.in(address, size);
        if (from == nullptr) return Errno::fault;
        if (size > max_spawn_bytes) return Errno::toobig;
        if (!take(size + 1)) return Errno::nomem;
        bool is_start = true;
        for (u32 i = 0; i <= size; i++) {
            const u8 byte = i < size ? load_bytes<u8>(from + i) : u8('\n');
            const bool is_end = byte == '\n' || byte == '\r';
            if (is_end && is_start) continue;
            add(is_end ? u8(0) : byte);
            is_start = is_end;
        }
        return Errno::success;
    }

    // As many pointers to strings that end with a NUL.
    Errno take_pointers(const Call& call, u32 address, u32 count) {
        const u8* from = call.in(address, u64(count) * 4);
        if (from == nullptr) return Errno::fault;
        if (count > max_spawn_bytes) return Errno::toobig;
        u32 total = 0;
        for (u32 i = 0; i < count; i++) {
            Errno error = for_bytes(call, load_bytes<u32>(from + u64(i) * 4), [&](u8) {
                return ++total <= max_spawn_bytes ? Errno::success : Errno::toobig;
            });
            if (error != Errno::success) return error;
        }
        if (!take(total + 1)) return Errno::nomem;
        for (u32 i = 0; i < count; i++) {
            Errno error = for_bytes(call, load_bytes<u32>(from + u64(i) * 4), [&](u8 byte) {
                if (text.size == total) return Errno::inval;
                add(byte);
                return Errno::success;
            });
            if (error != Errno::success) return error;
        }
        return Errno::success;
    }

    // Whether each is NAME=VALUE.
    bool are_variables() const {
        bool has_equals = false;
        for (u32 i = 0; i < text.size; i++) {
            if (text.bytes[i] == 0 && !has_equals) return false;
            has_equals = text.bytes[i] != 0 && (has_equals || text.bytes[i] == '=');
        }
        return true;
    }

private:
    bool take(u32 size) {
        block_ = take_block(p_, size);
        size_ = size;
        text.bytes = block_ == 0 ? nullptr : at_handle<u8>(p_, block_);
        return block_ != 0;
    }
    void add(u8 byte) {
        at_handle<u8>(p_, block_)[text.size++] = byte;
        text.count += byte == 0;
    }
    // Of a string with its NUL.
    template <class Act>
    static Errno for_bytes(const Call& call, u32 address, Act act) {
        for (u64 at = address;; at++) {
            const u8* from = at >> 32 == 0 ? call.in(u32(at), 1) : nullptr;
            if (from == nullptr) return Errno::fault;
            const u8 byte = load_bytes<u8>(from);
            if (Errno error = act(byte); error != Errno::success || byte == 0) return error;
        }
    }

    const Process& p_;
    Handle block_ = 0;
    u32 size_ = 0;
};

// What a program is called: of "/bin/cat.wasm" it is "cat".
Errno take_name(const Call& call, u32 address, u32 length, Spawning& wanted) {
    wanted.name = call.in(address, length);
    wanted.name_length = length;
    if (wanted.name == nullptr) return Errno::fault;
    for (u32 i = length; i > 0; i--)
        if (load_bytes<u8>(wanted.name + i - 1) == '/') {
            wanted.name += i;
            wanted.name_length -= i;
            break;
        }
    constexpr u8 suffix[] = {'.', 'w', 'a', 's', 'm'};
    u32 same = 0;
    while (wanted.name_length > sizeof suffix && same < sizeof suffix &&
           load_bytes<u8>(wanted.name + wanted.name_length - sizeof suffix + same) == suffix[same])
        same++;
    if (same == sizeof suffix) wanted.name_length -= u32(sizeof suffix);
    return Errno::success;
}

// ---- proc_spawn --------------------------------------------------------------------

enum StdioMode : u32 { stdio_piped, stdio_inherit, stdio_null, stdio_log };

// What a child has as standard stream `number`, and the caller's end of it: ~0 none.
Errno open_stream(const Call& call, u32 number, u32 mode, u32& childs, u32& callers) {
    childs = callers = ~u32{0};
    if (mode > stdio_log) return Errno::inval;
    if (mode == stdio_inherit) childs = number;
    if (mode != stdio_piped) return Errno::success;
    u32 read_fd, write_fd;
    Errno error = make_pipe_ends(call, read_fd, write_fd);
    childs = number == 0 ? read_fd : write_fd;
    callers = number == 0 ? write_fd : read_fd;
    return error;
}

void put_option(const Call& call, u32 address, u32 fd) {
    call.put<u32>(address, fd != ~u32{0});
    call.put<u32>(address + 4, fd);
}

Errno proc_spawn(Call& call, const Caller& caller) {
    Spawning wanted{};
    const u32 name = call.i32(), name_length = call.i32();
    const u32 chroot = call.i32(), arguments = call.i32(), argument_bytes = call.i32();
    call.i32();  // preopens: those of the caller, so none may be named
    const u32 preopen_bytes = call.i32();
    u32 modes[3];
    for (u32& mode : modes) mode = call.i32();
    call.i32();  // working directory: there is none
    call.i32();
    const u32 handles_at = call.i32();
    Errno error = take_name(call, name, name_length, wanted);
    if (error != Errno::success) return error;
    if (call.in(handles_at, 28) == nullptr) return Errno::fault;
    if (chroot != 0 || preopen_bytes != 0) return Errno::notsup;

    Gathered gathered(call.p);
    error = gathered.take_lines(call, arguments, argument_bytes);
    wanted.arguments = gathered.text;
    wanted.environment = own_environment(call);
    wanted.inheritance.count = ~u32{0};
    wanted.inheritance.has_streams = true;
    u32 callers[3] = {~u32{0}, ~u32{0}, ~u32{0}};
    u32* childs = wanted.inheritance.streams;
    for (u32 i = 0; i < 3; i++) childs[i] = ~u32{0};
    for (u32 i = 0; i < 3 && error == Errno::success; i++)
        error = open_stream(call, i, modes[i], childs[i], callers[i]);
    for (u32 i = 0; i < 3; i++) {
        if (callers[i] == ~u32{0}) continue;
        wanted.inheritance.hidden[2 * i] = callers[i];
        wanted.inheritance.hidden[2 * i + 1] = childs[i];
    }
    u32 pid = 0;
    if (error == Errno::success) error = spawn_process(call, caller, wanted, pid);
    // The child's ends are the child's; and if there is none, nothing is left of it.
    {
        const Owner owner = call.owner();
        Lock lock(&owner.files->file_lock);
        for (u32 i = 0; i < 3; i++) {
            if (callers[i] == ~u32{0}) continue;
            close_descriptor(owner, childs[i]);
            if (error != Errno::success) close_descriptor(owner, callers[i]);
        }
    }
    if (error != Errno::success) return error;
    call.put<u32>(handles_at, pid);
    for (u32 i = 0; i < 3; i++) put_option(call, handles_at + 4 + i * 8, callers[i]);
    return Errno::success;
}

// ---- proc_spawn2, proc_spawn3 ------------------------------------------------------

constexpr u32 fd_op_bytes = 56, disposition_bytes = 2;
constexpr u32 max_fd_ops = 256;  // then EINVAL: files are locked while they are carried out

// What posix_spawn becomes. proc_spawn2 has strings in lines, proc_spawn3 by pointers.
Errno proc_spawn2(Call& call, const Caller& caller, bool has_pointers) {
    Spawning wanted{};
    const u32 name = call.i32(), name_length = call.i32();
    const u32 arguments = call.i32(), argument_size = call.i32();
    const u32 environment = call.i32(), environment_size = call.i32();
    const u32 fd_ops = call.i32(), fd_op_count = call.i32();
    const u32 signals = call.i32(), signal_count = call.i32();
    call.i32();  // whether it is to be searched for, and where: programs have one name each
    const u32 path = call.i32(), path_length = call.i32();
    const u32 pid_at = call.i32();
    Errno error = take_name(call, name, name_length, wanted);
    if (error != Errno::success) return error;
    if (call.in(pid_at, 4) == nullptr || call.in(path, path_length) == nullptr ||
        call.in(fd_ops, u64(fd_op_count) * fd_op_bytes) == nullptr ||
        // Who is given no handlers has none to lose.
        call.in(signals, u64(signal_count) * disposition_bytes) == nullptr)
        return Errno::fault;
    if (fd_op_count > max_fd_ops) return Errno::inval;

    Gathered own(call.p), given(call.p);
    auto take = [&](Gathered& strings, u32 at, u32 size) {
        return has_pointers ? strings.take_pointers(call, at, size)
                            : strings.take_lines(call, at, size);
    };
    error = take(own, arguments, argument_size);
    if (error != Errno::success) return error;
    wanted.arguments = own.text;
    if (environment == 0) {
        wanted.environment = own_environment(call);
    } else {
        error = take(given, environment, environment_size);
        if (error != Errno::success) return error;
        if (!given.are_variables()) return Errno::inval;
        wanted.environment = given.text;
    }
    wanted.inheritance.count = ~u32{0};
    wanted.inheritance.fd_ops = fd_ops;
    wanted.inheritance.fd_op_count = fd_op_count;
    u32 pid;
    error = spawn_process(call, caller, wanted, pid);
    return error == Errno::success ? call.put<u32>(pid_at, pid) : error;
}

enum FdOpName : u8 { fd_op_close, fd_op_dup2, fd_op_open, fd_op_chdir, fd_op_fchdir };

struct FdOp {
    u32 name;
    u32 fd, source;
    u32 path, path_length;
    OpenOptions options;
};

FdOp read_fd_op(const u8* at) {
    return {load_bytes<u8>(at),
            load_bytes<u32>(at + 4),
            load_bytes<u32>(at + 8),
            load_bytes<u32>(at + 12),
            load_bytes<u32>(at + 16),
            {load_bytes<u32>(at + 20), load_bytes<u16>(at + 24), load_bytes<u64>(at + 32),
             load_bytes<u64>(at + 40), load_bytes<u16>(at + 48)}};
}

bool is_preopen(const Call& child, u32 fd) {
    const Descriptor* file = descriptor(child, fd);
    return file != nullptr && file->preopen != 0;
}

// Paths without what says nothing at their beginning: "/a", "./a" and "a" are the same.
Name skip_start(Name path) {
    for (;;) {
        const u8 first = path.length > 0 ? load_bytes<u8>(path.bytes) : u8(0);
        const u8 second = path.length > 1 ? load_bytes<u8>(path.bytes + 1) : u8('/');
        if (first != '/' && (first != '.' || second != '/')) return path;
        path.bytes++;
        path.length--;
    }
}

bool is_below(Name path, Name directory) {
    if (path.length < directory.length) return false;
    for (u32 i = 0; i < directory.length; i++)
        if (load_bytes<u8>(path.bytes + i) != load_bytes<u8>(directory.bytes + i)) return false;
    return directory.length == 0 || path.length == directory.length ||
           load_bytes<u8>(path.bytes + directory.length) == '/';
}

// The preopened directory that a path is in, as C libraries find it: that with the longest name.
// What is left of the path is relative to it.
Errno find_preopen(const Call& child, Name& path, u32& fd) {
    path = skip_start(path);
    Name best{nullptr, 0};
    const Preopen* preopens = at_handle<Preopen>(child.p, system_of(child.p).preopens);
    for (u32 i = 0; i < child.me->descriptor_count; i++) {
        if (!is_preopen(child, i)) continue;
        const Preopen& preopen = preopens[descriptor(child, i)->preopen - 1];
        const Name name = skip_start({at_offset<u8>(child.p, preopen.name), preopen.name_length});
        if (!is_below(path, name) || (best.bytes != nullptr && name.length <= best.length))
            continue;
        best = name;
        fd = i;
    }
    if (best.bytes == nullptr) return Errno::noent;
    path = skip_start({path.bytes + best.length, path.length - best.length});
    return Errno::success;
}

// In place of what the child has there.
Errno duplicate(const Call& child, u32 from, u32 to) {
    Errno error = inherit_descriptor(child.owner(), from, child.owner(), to, nullptr);
    if (error == Errno::success) descriptor(child, to)->preopen = 0;
    return error;
}

Errno open_as(Call& child, const FdOp& op) {
    const u8* bytes = child.in(op.path, op.path_length);
    if (bytes == nullptr) return Errno::fault;
    if (is_preopen(child, op.fd)) return Errno::notsup;
    if (op.fd >= max_descriptors) return Errno::badf;
    if (descriptor(child, op.fd) != nullptr) close_descriptor(child.owner(), op.fd);
    if (op.path_length == 0) return Errno::noent;
    Name path{bytes, op.path_length};
    u32 directory = 0, opened;
    Errno error = find_preopen(child, path, directory);
    if (error != Errno::success) return error;
    static constexpr u8 itself = '.';
    if (path.length == 0) path = {&itself, 1};
    error = open_path(child, directory, path, op.options, opened);
    if (error != Errno::success || opened == op.fd) return error;
    error = duplicate(child, opened, op.fd);
    close_descriptor(child.owner(), opened);
    return error;
}

// POSIX: to close what is not open is no error there.
Errno apply_fd_op(Call& child, const FdOp& op) {
    switch (op.name) {
        case fd_op_close:
            if (descriptor(child, op.fd) != nullptr && !is_preopen(child, op.fd))
                close_descriptor(child.owner(), op.fd);
            return Errno::success;
        case fd_op_dup2:
            if (descriptor(child, op.source) == nullptr) return Errno::badf;
            if (op.fd >= max_descriptors) return Errno::badf;
            if (op.fd == op.source) return Errno::success;
            if (is_preopen(child, op.fd)) return Errno::notsup;
            return duplicate(child, op.source, op.fd);
        case fd_op_open: return open_as(child, op);
        case fd_op_chdir:
        case fd_op_fchdir: return Errno::notsup;  // there is no working directory
        default: return Errno::inval;
    }
}

// ---- others ------------------------------------------------------------------------

// Its numbers are Linux's: from 16 on one more than preview 1's, which has no SIGSTKFLT.
constexpr u32 wasix_stkflt = 16;
u32 from_wasix(u32 signal) {
    return signal < wasix_stkflt ? signal : signal == wasix_stkflt ? 15 : signal - 1;
}
u32 to_wasix(u32 signal) { return signal < wasix_stkflt ? signal : signal + 1; }

enum JoinStatus : u8 { join_nothing, join_exited, join_signalled };
constexpr u32 sigabrt = 6;

Outcome proc_join(Call& call, const Caller& caller) {
    const u32 pid_at = call.i32(), flags = call.i32(), status_at = call.i32();
    const u8* asked = call.in(pid_at, 8);
    if (asked == nullptr || call.in(status_at, 6) == nullptr) return call.done(Errno::fault);
    const u8 tag = load_bytes<u8>(asked);
    if (tag > 1) return call.done(Errno::inval);
    const u32 pid = tag == 0 ? 0 : load_bytes<u32>(asked + 4);
    Ended ended{};
    Found found = tag == 1 && pid == 0 ? Found::none : find_ended(call, caller, pid, ended);
    if (found == Found::lives && !(flags & 1))
        return call.wait_for(Request::child, 0, pid, no_deadline);
    call.put<u32>(pid_at, found != Found::none);
    call.put<u32>(pid_at + 4, ended.pid);
    const u32 signal = ended.ending == Ending::killed ? to_wasix(ended.code) : sigabrt;
    u8 kind = ended.ending == Ending::exited ? join_exited : join_signalled;
    if (found != Found::ended) kind = join_nothing;
    call.put<u16>(status_at, kind);
    call.put<u16>(status_at + 2, kind == join_exited ? u16(ended.code) : u16(0));
    call.put<u16>(status_at + 4, kind == join_signalled ? u16(signal) : u16(0));
    return call.done(found == Found::none ? Errno::child : Errno::success);
}

Errno proc_parent(Call& call, const Caller& caller) {
    const u32 pid = call.i32(), at = call.i32(), index = pid_index(caller.m, pid);
    const ProcessEntry& process = caller.m.process(index);
    if (index == 0 || !has_pid(process, pid)) return Errno::badf;
    return call.put<u32>(at, parent_pid(process));
}

}  // namespace

Errno apply_fd_ops(const Call& call, const Owner& child, u32 at, u32 count) {
    // A call as the child would make it, with the caller's memory.
    Call childs{call.p, call.thread, call.r, child.me, call.my, call.memory, true};
    for (u32 i = 0; i < count; i++) {
        Errno error = apply_fd_op(childs, read_fd_op(call.in(at + i * fd_op_bytes, fd_op_bytes)));
        if (error != Errno::success) return error;
    }
    return Errno::success;
}

Outcome call_wasix(Call& call, const Caller& caller, SystemCall which) {
    switch (which) {
        case SystemCall::proc_spawn: return call.done(proc_spawn(call, caller));
        case SystemCall::proc_spawn2: return call.done(proc_spawn2(call, caller, false));
        case SystemCall::proc_spawn3: return call.done(proc_spawn2(call, caller, true));
        case SystemCall::proc_join: return proc_join(call, caller);
        case SystemCall::proc_signal: {
            const u32 pid = call.i32();
            return kill(call, caller, pid, from_wasix(call.i32()));
        }
        case SystemCall::proc_id: return call.done(call.put<u32>(call.i32(), caller.process.pid));
        default: return call.done(proc_parent(call, caller));
    }
}

}  // namespace gpurun::rt
