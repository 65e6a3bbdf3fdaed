// The calls by which guests start, wait for and end other processes, and start threads: those of
// the import module gpu and of wasi-threads. Lanes that make them together do so one after another.
#include "runtime/process/process_calls.h"

namespace gpurun::rt {
namespace {

bool is_called(const ProgramInfo& program, const u8* name, u32 length) {
    if (program.name_length != length) return false;
    // All bytes are on their way at the same time.
    u32 difference = 0;
    for (u32 at = 0; at < length; at++) difference |= program.name[at] ^ load_bytes<u8>(name + at);
    return difference == 0;
}

[[gnu::noinline]] u32 look_for_program(const Machine& m, const u8* name, u32 length) {
    const u32 count = load_relaxed(&m.header->programs_used);
    for (u32 i = 0; i < count; i++) {
        const ProgramEntry& program = m.program(i);
        // Acquired: what the program is is there.
        if (load_shared(reinterpret_cast<const u32*>(&program.state)) == u32(ProgramState::ready) &&
            is_called(program.info, name, length))
            return i;
    }
    return max_programs;
}

// What is ready stays as it is: mostly it is the one that the lane found the last time.
u32 find_program(const Machine& m, const u8* name, u32 length) {
    if (m.leftovers == nullptr) return look_for_program(m, name, length);
    if (const u32 last = m.leftovers->last_program;
        last != 0 && is_called(m.program(last - 1).info, name, length))
        return last - 1;
    const u32 program = look_for_program(m, name, length);
    m.leftovers->last_program = program == max_programs ? 0 : program + 1;
    return program;
}

// ---- spawn -------------------------------------------------------------------------

Errno inherit_all(const Call& call, const Owner& parent, const Owner& child,
                  const Inheritance& what, LateLock& lock) {
    const Descriptor* all = at_handle<Descriptor>(call.p, parent.me->descriptors);
    for (u32 fd = 0; fd < parent.me->descriptor_count; fd++) {
        if (all[fd].kind == DescriptorKind::closed || what.hides(fd)) continue;
        if (Errno error = inherit_descriptor(parent, fd, child, fd, &lock); error != Errno::success)
            return error;
    }
    return Errno::success;
}

[[gnu::noinline]] Errno inherit(const Call& call, const Owner& parent, const Owner& child,
                                const Inheritance& what, LateLock& lock) {
    if (what.count == ~u32{0}) {
        if (Errno error = inherit_all(call, parent, child, what, lock); error != Errno::success)
            return error;
    } else if (system_of(call.p).preopen_count != 0) {
        // Preopens stay where they are, unless something else is put there.
        for (u32 fd = 0; fd < parent.me->descriptor_count; fd++) {
            const Descriptor& file = at_handle<Descriptor>(call.p, parent.me->descriptors)[fd];
            if (file.kind == DescriptorKind::closed || file.preopen == 0) continue;
            if (Errno error = inherit_descriptor(parent, fd, child, fd, &lock);
                error != Errno::success)
                return error;
        }
    }
    for (u32 i = 0; what.count != ~u32{0} && i < what.count; i++) {
        const u8* pair = call.in(what.pairs + i * 8, 8);
        const u32 to = load_bytes<u32>(pair), from = load_bytes<u32>(pair + 4);
        if (Errno error = inherit_descriptor(parent, from, child, to, &lock);
            error != Errno::success)
            return error;
    }
    for (u32 i = 0; what.has_streams && i < 3; i++) {
        if (i < child.me->descriptor_count &&
            at_handle<Descriptor>(call.p, child.me->descriptors)[i].kind != DescriptorKind::closed)
            close_descriptor(child, i);
        if (what.streams[i] == ~u32{0}) continue;
        Errno error = inherit_descriptor(parent, what.streams[i], child, i, &lock);
        if (error != Errno::success) return error;
    }
    if (what.fd_op_count == 0) return Errno::success;
    lock.take();
    return apply_fd_ops(call, child, what.fd_ops, what.fd_op_count);
}

// `index` is 0 unless there is something to be dropped on an error. `lock` is that of the caller's
// files.
Errno prepare_child(const Call& call, const Caller& caller, const Spawning& wanted, u32& index,
                    LateLock& lock) {
    const Machine& m = caller.m;
    const u32 program = find_program(m, wanted.name, wanted.name_length);
    if (program == max_programs) return Errno::noent;
    const Owner parent = call.owner();
    const Handle files = call.me->files != 0 ? call.me->files : caller.process.block;
    const NewProcess made = {
        program,          caller.process.pid, 0,    load_relaxed(&caller.process.priority), ~u64{0},
        wanted.arguments, wanted.environment, files};
    Errno error;
    [[clang::always_inline]] error = make_process(m, made, index);
    if (error != Errno::success) {
        index = 0;
        return error;
    }
    const Inheritance& what = wanted.inheritance;
    if (what.is_nothing() && system_of(call.p).preopen_count == 0) return Errno::success;
    const Owner child = owner_of(call.p, at_handle<ProcessBlock>(call.p, m.process(index).block));
    return inherit(call, parent, child, what, lock);
}

}  // namespace

Errno spawn_process(const Call& call, const Caller& caller, const Spawning& wanted, u32& pid) {
    Errno error;
    u32 index = 0;
    {
        LateLock lock(&call.owner().files->file_lock);
        if (load_relaxed(&caller.process.tasks) > 1)
            lock.take();  // its descriptors are others' too
        [[clang::always_inline]] error = prepare_child(call, caller, wanted, index, lock);
    }
    store_relaxed(&call.me->was_shared, u32{1});
    pid = caller.m.process(index).pid;
    if (error == Errno::success) {
        [[clang::always_inline]] start_process(caller.m, index);
    } else if (index != 0) {
        drop_process(caller.m, index);
    }
    return error;
}

Text own_environment(const Call& call) {
    return {at_offset<u8>(call.p, call.me->environment), call.me->environment_count,
            call.me->environment_bytes};
}

namespace {

// Strings that end with a NUL each.
Errno read_text(const Call& call, u32 address, u32 size, Text& text) {
    text = {call.in(address, size), 0, size};
    if (text.bytes == nullptr) return Errno::fault;
    if (size > max_spawn_bytes) return Errno::toobig;
    for (u32 i = 0; i < size; i++) text.count += load_bytes<u8>(text.bytes + i) == 0;
    if (size > 0 && load_bytes<u8>(text.bytes + size - 1) != 0) return Errno::inval;
    return Errno::success;
}

[[gnu::noinline]] Errno spawn(Call& of) {
    Call& call = *in_stack(&of);
    const Caller caller(call);
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
    [[clang::always_inline]] error = spawn_process(call, caller, wanted, pid);
    return error == Errno::success ? call.put<u32>(pid_at, pid) : error;
}

// ---- wait --------------------------------------------------------------------------

// As ProcessEntry::ending has it.
Ended ended_as(u32 pid, u64 ending) { return {pid, Ending((ending >> 32) - 1), u32(ending)}; }

// A child that has ended is taken from the table.
Found take_zombie(const Caller& caller, u32 pid, Ended& ended) {
    const Machine& m = caller.m;
    ProcessEntry& process = caller.process;
    u32 index;
    bool was_last;
    {
        Lock lock(&process.lock);
        if (pid == 0) {
            if (process.first_zombie == 0)
                return process.first_child != 0 ? Found::lives : Found::none;
            index = process.first_zombie - 1;
        } else {
            index = pid_index(m, pid);
            const ProcessEntry& child = m.process(index);
            // Of a child, all of it is written under the lock.
            const u32 state = load_relaxed(reinterpret_cast<const u32*>(&child.state));
            if (index == 0 || load_relaxed(&child.pid) != pid || state == u32(ProcessState::free) ||
                load_relaxed(&child.parent) != process.pid)
                return Found::none;
            if (state != u32(ProcessState::zombie)) return Found::lives;
        }
        ProcessEntry& child = m.process(index);
        if (child.next_sibling != 0)
            m.process(child.next_sibling - 1).previous_sibling = child.previous_sibling;
        if (child.previous_sibling != 0)
            m.process(child.previous_sibling - 1).next_sibling = child.next_sibling;
        else
            store_relaxed(&process.first_zombie, child.next_sibling);
        ended = ended_as(child.pid, load_relaxed(&child.ending));
        was_last = process.first_child == 0 && process.first_zombie == 0;
    }
    reap(m, index);
    // Other threads of the process may wait for children that there are no longer.
    if (was_last && load_relaxed(&process.tasks) > 1)
        wake(m, wait_key(WaitFor::child, caller.index), ~u32{0});
    return Found::ended;
}

}  // namespace

Found find_ended(const Call& call, const Caller& caller, u32 pid, Ended& ended) {
    const u64 given = call.my->progress;  // by notify_parent, while it waited
    if (given == 0) return take_zombie(caller, pid, ended);
    ended = ended_as(u32(call.my->request_at), given);
    return Found::ended;
}

namespace {

[[gnu::noinline]] Outcome wait(Call& of) {
    Call& call = *in_stack(&of);
    const Caller caller(call);
    const u32 asked = call.i32(), flags = call.i32(), pid_at = call.i32(), status_at = call.i32();
    const u32 pid = asked == ~u32{0} ? 0 : asked;
    u8 *const pid_to = call.out(pid_at, 4), *const status_to = call.out(status_at, 8);
    if (pid_to == nullptr || status_to == nullptr) return call.done(Errno::fault);
    if (asked == 0) return call.done(Errno::child);
    Ended ended;
    Found found;
    [[clang::always_inline]] found = find_ended(call, caller, pid, ended);
    switch (found) {
        case Found::none: return call.done(Errno::child);
        case Found::lives:
            if (flags & 1) return call.done(Errno::again);
            return call.wait_for(Request::child, 0, pid, no_deadline);
        default: break;
    }
    store_bytes<u32>(pid_to, ended.pid);
    store_bytes<u32>(status_to, u32(ended.ending));
    store_bytes<u32>(status_to + 4, ended.code);
    return call.done(Errno::success);
}

// ---- kill --------------------------------------------------------------------------

// The process itself or one of its descendants. Ends: parents are older, and go round no circle.
Errno find_target(const Caller& caller, u32 pid, u32& index) {
    const Machine& m = caller.m;
    index = pid_index(m, pid);
    const ProcessEntry& target = m.process(index);
    if (index == 0 || !has_pid(target, pid)) return Errno::srch;
    u32 at = pid;
    for (u32 turns = 0; turns < m.header->process_count; turns++) {
        if (at == caller.process.pid) return Errno::success;
        const ProcessEntry& process = m.process(pid_index(m, at));
        if (load_relaxed(&process.pid) != at) break;
        at = load_relaxed(&process.parent);
        if (at == 0 || at == host_parent) break;
    }
    return Errno::perm;
}

}  // namespace

[[gnu::noinline]] Outcome kill(Call& call, const Caller& caller, u32 pid, u32 signal) {
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

namespace {

// ---- pipes -------------------------------------------------------------------------

}  // namespace

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

namespace {

[[gnu::noinline]] Errno pipe(Call& call) {
    const u32 read_at = call.i32(), write_at = call.i32();
    if (call.in(read_at, 4) == nullptr || call.in(write_at, 4) == nullptr) return Errno::fault;
    u32 read_fd, write_fd;
    if (Errno error = make_pipe_ends(call, read_fd, write_fd); error != Errno::success)
        return error;
    call.put<u32>(read_at, read_fd);
    return call.put<u32>(write_at, write_fd);
}

// ---- others ------------------------------------------------------------------------

}  // namespace

u32 parent_pid(const ProcessEntry& process) {
    const u32 parent = load_relaxed(&process.parent);
    return parent == host_parent ? 0 : parent;
}

namespace {

[[gnu::noinline]] Errno set_priority(const Caller& caller, u32 pid, u32 priority) {
    if (priority >= priorities) return Errno::inval;
    u32 index;
    if (Errno error = find_target(caller, pid, index); error != Errno::success) return error;
    store_relaxed(&caller.m.process(index).priority, priority);
    return Errno::success;
}

[[gnu::noinline]] Outcome thread_spawn(Call& call, const Caller& caller, u32 start_argument) {
    if (caller.m.program(caller.process.program).info.thread_entry == 0)
        return give(call, u32(-s32(Errno::nosys)));
    const u32 made = make_thread(caller.m, call.p, caller.index, start_argument);
    if (made == 0) return give(call, u32(-s32(Errno::again)));
    const u32 tid = caller.m.task(made).tid;
    word(call.p.words, process_clipped) |= clipped_shared;
    store_relaxed(&call.me->was_shared, u32{1});
    make_ready(caller.m, made);
    return give(call, tid);
}

Outcome serve_process(Call& call, SystemCall which) {
    if (!has_machine(call.p)) {
        const u32 error = u32(Errno::nosys);
        return which == SystemCall::getpid || which == SystemCall::getppid ? give(call, 0)
               : which == SystemCall::thread_spawn ? give(call, u32(-s32(error)))
                                                   : give(call, error);
    }
    if (which == SystemCall::spawn) return call.done(spawn(call));
    if (which == SystemCall::wait) return wait(call);
    Caller caller(call);
    switch (which) {
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
        case SystemCall::thread_spawn: return thread_spawn(call, caller, call.i32());
        default: return call_wasix(call, caller, which);
    }
}

}  // namespace

Outcome call_process(Call& call, SystemCall which) {
    Outcome outcome = Outcome::next;
    one_by_one([&] { outcome = serve_process(call, which); });
    return outcome;
}

}  // namespace gpurun::rt
