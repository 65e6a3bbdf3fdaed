// The calls by which guests start, wait for and end other processes, and start threads: those of
// the import module gpu, of wasi-threads, and the same under the names of WASIX. Lanes that make
// them together do so one after another.
#include "runtime/processes.h"

namespace gpurun::rt {
namespace {

struct Caller {
    Machine m;
    u32 index;  // of the process
    ProcessEntry& process;

    explicit Caller(const Call& call)
        : m(machine_of(call.p)), index(call.me->entry), process(m.process(index)) {}
};

u32 find_program(const Machine& m, const u8* name, u32 length) {
    for (u32 i = 0; i < max_programs; i++) {
        const ProgramEntry& program = m.program(i);
        if (load_shared(reinterpret_cast<const u32*>(&program.state)) != u32(ProgramState::ready) ||
            program.info.name_length != length)
            continue;
        u32 same = 0;
        while (same < length && program.info.name[same] == load_bytes<u8>(name + same)) same++;
        if (same == length) return i;
    }
    return max_programs;
}

// ---- spawn -------------------------------------------------------------------------

// Which of the caller's descriptors a child gets.
struct Inheritance {
    u32 pairs;       // guest address of (child's, caller's)
    u32 count;       // ~0: all, under the same numbers
    u32 streams[3];  // in place of 0, 1 and 2: the caller's descriptor; ~0: none
    bool has_streams = false;
    u32 hidden[6] = {};  // with ~0: these were made for the streams alone; 0: none

    bool hides(u32 fd) const {
        for (u32 other : hidden)
            if (fd != 0 && fd == other) return true;
        return false;
    }
};

Errno inherit_all(const Call& call, const Owner& parent, const Owner& child,
                  const Inheritance& what) {
    const Descriptor* all = at_handle<Descriptor>(call.p, parent.me->descriptors);
    for (u32 fd = 0; fd < parent.me->descriptor_count; fd++) {
        if (all[fd].kind == DescriptorKind::closed || what.hides(fd)) continue;
        if (Errno error = inherit_descriptor(parent, fd, child, fd); error != Errno::success)
            return error;
    }
    return Errno::success;
}

Errno inherit(const Call& call, const Owner& parent, const Owner& child, const Inheritance& what) {
    if (what.count == ~u32{0}) {
        if (Errno error = inherit_all(call, parent, child, what); error != Errno::success)
            return error;
    } else {
        // Preopens stay where they are, unless something else is put there.
        for (u32 fd = 0; fd < parent.me->descriptor_count; fd++) {
            const Descriptor& file = at_handle<Descriptor>(call.p, parent.me->descriptors)[fd];
            if (file.kind == DescriptorKind::closed || file.preopen == 0) continue;
            if (Errno error = inherit_descriptor(parent, fd, child, fd); error != Errno::success)
                return error;
        }
    }
    for (u32 i = 0; what.count != ~u32{0} && i < what.count; i++) {
        const u8* pair = call.in(what.pairs + i * 8, 8);
        const u32 to = load_bytes<u32>(pair), from = load_bytes<u32>(pair + 4);
        if (Errno error = inherit_descriptor(parent, from, child, to); error != Errno::success)
            return error;
    }
    for (u32 i = 0; what.has_streams && i < 3; i++) {
        if (i < child.me->descriptor_count &&
            at_handle<Descriptor>(call.p, child.me->descriptors)[i].kind != DescriptorKind::closed)
            close_descriptor(child, i);
        if (what.streams[i] == ~u32{0}) continue;
        Errno error = inherit_descriptor(parent, what.streams[i], child, i);
        if (error != Errno::success) return error;
    }
    return Errno::success;
}

struct Spawning {
    const u8* name;
    u32 name_length;
    Text arguments, environment;
    Inheritance inheritance;
};

// The caller's files are locked. `index` is 0 unless there is something to be dropped on an error.
Errno spawn_locked(const Call& call, const Caller& caller, const Spawning& wanted, u32& index) {
    const Machine& m = caller.m;
    const u32 program = find_program(m, wanted.name, wanted.name_length);
    if (program == max_programs) return Errno::noent;
    const Owner parent = call.owner();
    const Handle files = call.me->files != 0 ? call.me->files : caller.process.block;
    Errno error = make_process(m,
                               {program, caller.process.pid, 0, caller.process.priority, ~u64{0},
                                wanted.arguments, wanted.environment, files},
                               index);
    if (error != Errno::success) index = 0;
    if (error != Errno::success) return error;
    const Owner child = owner_of(call.p, at_handle<ProcessBlock>(call.p, m.process(index).block));
    return inherit(call, parent, child, wanted.inheritance);
}

Errno spawn_process(const Call& call, const Caller& caller, const Spawning& wanted, u32& pid) {
    Errno error;
    u32 index = 0;
    {
        Lock lock(&call.owner().files->file_lock);
        error = spawn_locked(call, caller, wanted, index);
    }
    pid = caller.m.process(index).pid;
    if (error == Errno::success)
        start_process(caller.m, index);
    else if (index != 0)
        drop_process(caller.m, index);
    return error;
}

// Strings that end with a NUL each.
Errno read_text(const Call& call, u32 address, u32 size, Text& text) {
    text = {call.in(address, size), 0, size};
    if (text.bytes == nullptr) return Errno::fault;
    if (size > max_spawn_bytes) return Errno::toobig;
    for (u32 i = 0; i < size; i++) text.count += load_bytes<u8>(text.bytes + i) == 0;
    if (size > 0 && load_bytes<u8>(text.bytes + size - 1) != 0) return Errno::inval;
    return Errno::success;
}

Text own_environment(const Call& call) {
    return {at_offset<u8>(call.p, call.me->environment), call.me->environment_count,
            call.me->environment_bytes};
}

Errno spawn(Call& call, const Caller& caller) {
    Spawning wanted{};
    const u32 name = call.i32();
    wanted.name_length = call.i32();
    wanted.name = call.in(name, wanted.name_length);
    const u32 arguments = call.i32(), argument_bytes = call.i32();
    const u32 environment = call.i32(), environment_bytes = call.i32();
    wanted.inheritance.pairs = call.i32();
    wanted.inheritance.count = call.i32();
    const u32 pid_at = call.i32();
    if (wanted.name == nullptr || call.in(pid_at, 4) == nullptr) return Errno::fault;
    Errno error = read_text(call, arguments, argument_bytes, wanted.arguments);
    if (error != Errno::success) return error;
    if (environment == 0 && environment_bytes == 0)
        wanted.environment = own_environment(call);
    else
        error = read_text(call, environment, environment_bytes, wanted.environment);
    if (error != Errno::success) return error;
    const u32 pairs = wanted.inheritance.count;
    if (pairs != ~u32{0} && pairs > max_descriptors) return Errno::inval;
    if (pairs != ~u32{0} && call.in(wanted.inheritance.pairs, u64(pairs) * 8) == nullptr)
        return Errno::fault;
    u32 pid;
    error = spawn_process(call, caller, wanted, pid);
    return error == Errno::success ? call.put<u32>(pid_at, pid) : error;
}

// ---- wait --------------------------------------------------------------------------

struct Ended {
    u32 pid;
    Ending ending;
    u32 code;
};

enum class Found : u32 { none, ended, lives };

// A child that has ended is taken from the table. `pid` 0: any.
Found take_zombie(const Caller& caller, u32 pid, Ended& ended) {
    const Machine& m = caller.m;
    ProcessEntry& process = caller.process;
    u32 index;
    {
        Lock lock(&process.lock);
        if (pid == 0) {
            if (process.first_zombie == 0)
                return process.first_child != 0 ? Found::lives : Found::none;
            index = process.first_zombie - 1;
        } else {
            index = pid_index(m, pid);
            const ProcessEntry& child = m.process(index);
            if (index == 0 || child.pid != pid || load_relaxed(&child.parent) != process.pid ||
                child.state == ProcessState::free)
                return Found::none;
            if (child.state != ProcessState::zombie) return Found::lives;
        }
        ProcessEntry& child = m.process(index);
        if (child.next_sibling != 0)
            m.process(child.next_sibling - 1).previous_sibling = child.previous_sibling;
        if (child.previous_sibling != 0)
            m.process(child.previous_sibling - 1).next_sibling = child.next_sibling;
        else
            process.first_zombie = child.next_sibling;
        ended = {child.pid, Ending((child.ending >> 32) - 1), u32(child.ending)};
    }
    reap(m, index);
    // Other threads of the process may wait for children that there are no longer.
    if (load_relaxed(&process.first_child) == 0 && load_relaxed(&process.first_zombie) == 0)
        wake(m, wait_key(WaitFor::child, caller.index), ~u32{0});
    return Found::ended;
}

Outcome wait(Call& call, const Caller& caller) {
    const u32 asked = call.i32(), flags = call.i32(), pid_at = call.i32(), status_at = call.i32();
    const u32 pid = asked == ~u32{0} ? 0 : asked;
    if (call.in(pid_at, 4) == nullptr || call.in(status_at, 8) == nullptr)
        return call.done(Errno::fault);
    if (asked == 0) return call.done(Errno::child);
    Ended ended;
    switch (take_zombie(caller, pid, ended)) {
        case Found::none: return call.done(Errno::child);
        case Found::lives:
            if (flags & 1) return call.done(Errno::again);
            return call.wait_for(Request::child, 0, pid, no_deadline);
        default: break;
    }
    call.put<u32>(pid_at, ended.pid);
    call.put<u32>(status_at, u32(ended.ending));
    return call.done(call.put<u32>(status_at + 4, ended.code));
}

// ---- kill --------------------------------------------------------------------------

// The process itself or one of its descendants. Ends: parents are older, and go round no circle.
Errno find_target(const Caller& caller, u32 pid, u32& index) {
    const Machine& m = caller.m;
    index = pid_index(m, pid);
    const ProcessEntry& target = m.process(index);
    if (index == 0 || target.pid != pid || target.state == ProcessState::free) return Errno::srch;
    u32 at = pid;
    for (u32 turns = 0; turns < m.header->process_count; turns++) {
        if (at == caller.process.pid) return Errno::success;
        const ProcessEntry& process = m.process(pid_index(m, at));
        if (process.pid != at) break;
        at = load_relaxed(&process.parent);
        if (at == 0 || at == host_parent) break;
    }
    return Errno::perm;
}

Outcome kill(Call& call, const Caller& caller, u32 pid, u32 signal) {
    constexpr u32 most = 30;
    if (signal > most) return call.done(Errno::inval);
    u32 index;
    if (Errno error = find_target(caller, pid, index); error != Errno::success)
        return call.done(error);
    if (is_deadly(signal)) {
        end_all_tasks(caller.m, pid, Ending::killed, signal);
        if (index == caller.index) return call.leave(ThreadState::exited);
    }
    return call.done(Errno::success);
}

// ---- pipes -------------------------------------------------------------------------

Errno make_pipe_ends(const Call& call, u32& read_fd, u32& write_fd) {
    const Owner owner = call.owner();
    Lock lock(&owner.files->file_lock);
    Handle node = make_pipe(call.p, owner.files->next_inode++);
    if (node == 0) return Errno::nomem;
    // Held meanwhile, so that it stays when one end could not be had.
    constexpr u64 both = wasi::right_fd_read | wasi::right_fd_write;
    constexpr u64 reads = wasi::stream_rights & ~u64{wasi::right_fd_write},
                  writes = wasi::stream_rights & ~u64{wasi::right_fd_read};
    open_pipe(call.p, node, both);
    Errno error = add_descriptor(owner, {DescriptorKind::stream, node, 0, reads, 0, 0, 0}, read_fd);
    if (error == Errno::success) {
        error = add_descriptor(owner, {DescriptorKind::stream, node, 0, writes, 0, 0, 0}, write_fd);
        if (error != Errno::success) close_descriptor(owner, read_fd);
    }
    close_pipe(call.p, node, both);
    return error;
}

Errno pipe(Call& call) {
    const u32 read_at = call.i32(), write_at = call.i32();
    if (call.in(read_at, 4) == nullptr || call.in(write_at, 4) == nullptr) return Errno::fault;
    u32 read_fd, write_fd;
    if (Errno error = make_pipe_ends(call, read_fd, write_fd); error != Errno::success)
        return error;
    call.put<u32>(read_at, read_fd);
    return call.put<u32>(write_at, write_fd);
}

// ---- others ------------------------------------------------------------------------

u32 parent_pid(const ProcessEntry& process) {
    const u32 parent = load_relaxed(&process.parent);
    return parent == host_parent ? 0 : parent;
}

Errno set_priority(const Caller& caller, u32 pid, u32 priority) {
    if (priority >= priorities) return Errno::inval;
    u32 index;
    if (Errno error = find_target(caller, pid, index); error != Errno::success) return error;
    store_relaxed(&caller.m.process(index).priority, priority);
    return Errno::success;
}

Outcome thread_spawn(Call& call, const Caller& caller, u32 start_argument) {
    if (caller.m.program(caller.process.program).info.thread_entry == 0)
        return give(call, u32(-s32(Errno::nosys)));
    const u32 made = make_thread(caller.m, call.p, caller.index, start_argument);
    if (made == 0) return give(call, u32(-s32(Errno::again)));
    const u32 tid = caller.m.task(made).tid;
    word(call.p.words, process_clipped) |= clipped_shared;
    make_ready(caller.m, made);
    return give(call, tid);
}

// ---- WASIX -------------------------------------------------------------------------

// Its numbers are Linux's: from 16 on one more than preview 1's, which has no SIGSTKFLT.
constexpr u32 wasix_stkflt = 16;
u32 from_wasix(u32 signal) {
    return signal < wasix_stkflt ? signal : signal == wasix_stkflt ? 15 : signal - 1;
}
u32 to_wasix(u32 signal) { return signal < wasix_stkflt ? signal : signal + 1; }

// Lines; empty ones are none.
Errno read_lines(const Call& call, u32 address, u32 size, u8* to, Text& text) {
    const u8* from = call.in(address, size);
    if (from == nullptr) return Errno::fault;
    text = {to, 0, 0};
    bool is_start = true;
    for (u32 i = 0; i <= size; i++) {
        const u8 byte = i < size ? load_bytes<u8>(from + i) : u8('\n');
        const bool is_end = byte == '\n' || byte == '\r';
        if (is_end && is_start) continue;
        store_bytes<u8>(to + text.size++, is_end ? u8(0) : byte);
        text.count += is_end;
        is_start = is_end;
    }
    return Errno::success;
}

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
    const u32 name = call.i32();
    wanted.name_length = call.i32();
    wanted.name = call.in(name, wanted.name_length);
    const u32 chroot = call.i32(), arguments = call.i32(), argument_bytes = call.i32();
    call.i32();  // preopens: those of the caller, so none may be named
    const u32 preopen_bytes = call.i32();
    u32 modes[3];
    for (u32& mode : modes) mode = call.i32();
    call.i32();  // working directory: there is none
    call.i32();
    const u32 handles_at = call.i32();
    if (wanted.name == nullptr || call.in(handles_at, 28) == nullptr) return Errno::fault;
    if (chroot != 0 || preopen_bytes != 0) return Errno::notsup;
    if (argument_bytes > max_spawn_bytes) return Errno::toobig;
    // "/bin/cat.wasm" is "cat".
    for (u32 i = wanted.name_length; i > 0; i--)
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

    const Handle scratch = take_block(call.p, argument_bytes + 1);
    if (scratch == 0) return Errno::nomem;
    Errno error = read_lines(call, arguments, argument_bytes, at_handle<u8>(call.p, scratch),
                             wanted.arguments);
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
    give_block(call.p, scratch, argument_bytes + 1);
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
    Found found = tag == 1 && pid == 0 ? Found::none : take_zombie(caller, pid, ended);
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
    if (index == 0 || process.pid != pid || process.state == ProcessState::free) return Errno::badf;
    return call.put<u32>(at, parent_pid(process));
}

Outcome serve_process(Call& call, SystemCall which) {
    if (!has_machine(call.p)) {
        const u32 error = u32(Errno::nosys);
        return which == SystemCall::getpid || which == SystemCall::getppid ? give(call, 0)
               : which == SystemCall::thread_spawn ? give(call, u32(-s32(error)))
                                                   : give(call, error);
    }
    Caller caller(call);
    switch (which) {
        case SystemCall::spawn: return call.done(spawn(call, caller));
        case SystemCall::wait: return wait(call, caller);
        case SystemCall::kill: {
            const u32 pid = call.i32();
            return kill(call, caller, pid, call.i32());
        }
        case SystemCall::fd_pipe:
        case SystemCall::pipe: return call.done(pipe(call));
        case SystemCall::getpid: return give(call, caller.process.pid);
        case SystemCall::getppid: return give(call, parent_pid(caller.process));
        case SystemCall::set_priority: {
            const u32 pid = call.i32();
            return call.done(set_priority(caller, pid, call.i32()));
        }
        case SystemCall::proc_spawn: return call.done(proc_spawn(call, caller));
        case SystemCall::proc_join: return proc_join(call, caller);
        case SystemCall::proc_signal: {
            const u32 pid = call.i32();
            return kill(call, caller, pid, from_wasix(call.i32()));
        }
        case SystemCall::proc_id: return call.done(call.put<u32>(call.i32(), caller.process.pid));
        case SystemCall::proc_parent: return call.done(proc_parent(call, caller));
        default: return thread_spawn(call, caller, call.i32());
    }
}

}  // namespace

Outcome call_process(Call& call, SystemCall which) {
    Outcome outcome = Outcome::next;
    one_by_one([&] { outcome = serve_process(call, which); });
    return outcome;
}

}  // namespace gpurun::rt
