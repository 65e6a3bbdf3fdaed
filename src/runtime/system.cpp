// System calls: the table of them, arguments and environment, clocks, processes.
#include "runtime/system.h"
#include "runtime/wait.h"

namespace gpurun::rt {
namespace {

// The caller's memory: the instance that the newest record leads back to.
Memory caller_memory(const Process& p, const Registers& r) {
    const u32* instance = word_at(p.words, word(r.rp, record_instance));
    // At hand, but where other threads make it grow.
    if (instance == r.instance && !(word(p.words, process_clipped) & clipped_shared))
        return {r.memory, r.memory_size};
    u32 at = module_of(p, instance).memories;
    return at == 0 ? Memory{p.bytes, 0} : memory_at(p, word(instance, at));
}

u32 decimal_length(u32 number) {
    u32 length = 1;
    for (; number >= 10; number /= 10) length++;
    return length;
}

// Arguments or variables: strings with a NUL after each.
struct Strings {
    u32 count, bytes;
    const u8* text;
    bool is_numbered;  // "{}" stands for the process's number
};

Strings arguments_of(const Call& call) {
    return {call.me->argument_count, call.me->argument_bytes,
            at_offset<u8>(call.p, call.me->arguments),
            system_of(call.p).has_numbered_arguments != 0};
}

Strings environment_of(const Call& call) {
    if (has_machine(call.p))
        return {call.me->environment_count, call.me->environment_bytes,
                at_offset<u8>(call.p, call.me->environment), false};
    const SystemHeader& system = system_of(call.p);
    return {system.environment_count, system.environment_bytes,
            at_handle<u8>(call.p, system.environment), false};
}

// Gives each byte to `put`, and tells `start` where a string begins.
template <class Start, class Put>
void for_strings(const Call& call, const Strings& strings, Start start, Put put) {
    const u8* text = strings.text;
    bool is_start = true;
    for (u32 i = 0; i < strings.bytes; i++) {
        if (is_start) start();
        is_start = text[i] == 0;
        if (strings.is_numbered && text[i] == '{' && text[i + 1] == '}') {
            u32 number = call.me->id, length = decimal_length(number), power = 1;
            for (u32 k = 1; k < length; k++) power *= 10;
            for (; power > 0; power /= 10) put(u8('0' + number / power % 10));
            i++;
        } else {
            put(text[i]);
        }
    }
}

[[gnu::noinline]] Errno get_strings(Call& call, const Strings& strings) {
    u32 pointers = call.i32(), buffer = call.i32();
    Errno error = Errno::success;
    auto note = [&](Errno now) {
        if (error == Errno::success) error = now;
    };
    for_strings(
        call, strings,
        [&] {
            note(call.put<u32>(pointers, buffer));
            pointers += 4;
        },
        [&](u8 byte) { note(call.put<u8>(buffer++, byte)); });
    return error;
}

[[gnu::noinline]] Errno get_string_sizes(Call& call, const Strings& strings) {
    u32 count_at = call.i32(), size_at = call.i32(), size = 0;
    for_strings(call, strings, [] {}, [&](u8) { size++; });
    Errno error = call.put<u32>(count_at, strings.count);
    return error == Errno::success ? call.put<u32>(size_at, size) : error;
}

Errno clock_time(Call& call) {
    u32 clock = call.i32();
    call.i64();  // precision
    u32 at = call.i32();
    if (clock > wasi::clock_thread) return Errno::inval;
    return call.put<u64>(
        at, clock == wasi::clock_realtime ? realtime_ns(call.p) : monotonic_ns(call.p));
}

Errno clock_resolution(Call& call) {
    u32 clock = call.i32(), at = call.i32();
    return clock > wasi::clock_thread ? Errno::inval : call.put<u64>(at, u64{1000});
}

Outcome exit_process(Call& call, u32 code) {
    call.me->exit_code = code;
    call.my->progress = 0;
    return call.leave(ThreadState::exited);
}

// The signals that end a process do so with the code that shells show; SIGCHLD, SIGCONT and the
// like do nothing.
Outcome raise(Call& call) {
    u32 signal = call.i32();
    constexpr u32 most = 30, sigchld = 16, sigcont = 17, sigurg = 22, sigwinch = 27;
    if (signal > most) return call.done(Errno::inval);
    if (signal == 0 || signal == sigchld || signal == sigcont || signal == sigurg ||
        signal == sigwinch)
        return call.done(Errno::success);
    return exit_process(call, 128 + signal);
}

// A socket is what none of the descriptors is.
Outcome no_socket(Call& call) {
    Errno error = descriptor(call, call.i32()) == nullptr ? Errno::badf : Errno::notsock;
    return call.done(error);
}

// The first time the arguments are put where the host finds them; then its results are there.
[[gnu::noinline]] Outcome call_host_function(Call& call, u32 number, u32 most_words) {
    const u64 size = sizeof(HostCallBlock) + most_words * 4;
    if (call.my->progress == 0) {
        Handle made = take_block(call.p, size);
        if (made == 0) return trap(call.r, Trap::system_memory_exhausted);
        HostCallBlock* block = at_handle<HostCallBlock>(call.p, made);
        block->status = host_call_asked;
        block->result_words = 0;
        block->memory_at = u64(call.memory.base - call.p.bytes);
        block->memory_size = call.memory.size;
        u32* words = reinterpret_cast<u32*>(block + 1);
        for (u32 i = 0; i < most_words; i++) words[i] = word(call.r.fp, i);
        call.my->progress = made;
        return call.ask_host(Request::call, made, number);
    }
    Handle made = Handle(call.my->progress);
    HostCallBlock* block = at_handle<HostCallBlock>(call.p, made);
    const u32 status = block->status, count = block->result_words;
    if (status == host_call_asked) return call.ask_host(Request::call, made, number);
    const u32* words = reinterpret_cast<const u32*>(block + 1);
    for (u32 i = 0; i < count && i < most_words; i++) word(call.r.fp, i) = words[i];
    give_block(call.p, made, size);
    call.my->progress = 0;
    if (status != host_call_done) return trap(call.r, Trap::host_function_failed);
    return call.done();
}

// Calls that concern no file and no descriptor. (Functions of their own are what is called often,
// so that a call saves few registers and runs through little code.)
bool is_simple(SystemCall which) {
    switch (which) {
        case SystemCall::args_get:
        case SystemCall::args_sizes_get:
        case SystemCall::environ_get:
        case SystemCall::environ_sizes_get:
        case SystemCall::clock_res_get:
        case SystemCall::clock_time_get:
        case SystemCall::proc_exit:
        case SystemCall::proc_raise:
        case SystemCall::sched_yield:
        case SystemCall::instance_id:
        case SystemCall::instance_count:
        case SystemCall::lane_id:
        case SystemCall::time: return true;
        default: return false;
    }
}

[[gnu::noinline]] Outcome serve_simple(Call& of, SystemCall which) {
    Call& call = *in_stack(&of);
    switch (which) {
        case SystemCall::args_get: return call.done(get_strings(call, arguments_of(call)));
        case SystemCall::args_sizes_get:
            return call.done(get_string_sizes(call, arguments_of(call)));
        case SystemCall::environ_get: return call.done(get_strings(call, environment_of(call)));
        case SystemCall::environ_sizes_get:
            return call.done(get_string_sizes(call, environment_of(call)));
        case SystemCall::clock_res_get: return call.done(clock_resolution(call));
        case SystemCall::clock_time_get: return call.done(clock_time(call));
        case SystemCall::proc_exit: return exit_process(call, call.i32());
        case SystemCall::proc_raise: return raise(call);
        case SystemCall::instance_id: return give(call, call.me->id);
        case SystemCall::instance_count: return give(call, system_of(call.p).process_count);
        case SystemCall::lane_id: return give(call, lane_number());
        case SystemCall::time: set<u64>(call.r.fp, 0, monotonic_ns(call.p)); return call.done();
        default: return call.done(Errno::success);  // sched_yield
    }
}

[[gnu::noinline]] Outcome serve(Call& call, SystemCall which) {
    switch (which) {
        case SystemCall::fd_pread:
        case SystemCall::fd_pwrite:
        case SystemCall::fd_read:
        case SystemCall::fd_write: return call_transfer(call, which);
        case SystemCall::poll_oneoff:
        case SystemCall::unstable_poll_oneoff: return call_poll(call, which);
        case SystemCall::random_get: return call_random(call);
        case SystemCall::sock_accept:
        case SystemCall::sock_recv:
        case SystemCall::sock_send:
        case SystemCall::sock_shutdown: return no_socket(call);
        case SystemCall::path_create_directory:
        case SystemCall::path_filestat_get:
        case SystemCall::unstable_path_filestat_get:
        case SystemCall::path_filestat_set_times:
        case SystemCall::path_link:
        case SystemCall::path_open:
        case SystemCall::path_readlink:
        case SystemCall::path_remove_directory:
        case SystemCall::path_rename:
        case SystemCall::path_symlink:
        case SystemCall::path_unlink_file: return call_path(call, which);
        default:
            return which >= SystemCall::instance_id ? call_gpu(call, which)
                                                    : call_descriptor(call, which);
    }
}

}  // namespace

namespace {

// Whether others may use the same descriptors or files at the same time: then one after another,
// under the lock. Nobody but the process itself can make it so.
bool is_shared(const Process& p, ProcessBlock* me) {
    if (!has_machine(p)) return false;
    const ProcessBlock* files = me->files != 0 ? at_handle<ProcessBlock>(p, me->files) : me;
    const bool is_so = load_relaxed(&files->file_users) > 1 ||
                       load_relaxed(&machine_of(p).process(me->entry).tasks) > 1;
    const u32 was_so = load_relaxed(&me->was_shared);
    if (is_so && was_so == 0) store_relaxed(&me->was_shared, u32{1});
    if (!is_so && was_so != 0) {
        acquire_fence();  // what the others did is there
        store_relaxed(&me->was_shared, u32{0});
    }
    return is_so;
}

[[gnu::noinline]] Outcome serve_shared(Call& call, SystemCall which) {
    Outcome outcome = Outcome::next;
    call.is_shared = true;
    one_by_one([&] {
        Lock lock(&call.owner().files->file_lock);
        outcome = serve(call, which);
    });
    return outcome;
}

Outcome run_call(Call& call, SystemCall which) {
    if (is_simple(which)) return serve_simple(call, which);
    if (which >= SystemCall::spawn && which <= last_process_call) return call_process(call, which);
    return is_shared(call.p, call.me) ? serve_shared(call, which) : serve(call, which);
}

// One that leaves a record for the host to print, or does so because it is traced.
[[gnu::noinline]] Outcome run_recorded(Call& call, SystemCall which) {
    const SystemHeader& system = system_of(call.p);
    if (system.is_live && !has_room_for_records(call)) return call.ask_host(Request::output, 0, 0);
    if (has_machine(call.p) && system.is_traced && !has_room_for_records(call)) return call.again();
    const u32 first_word = word(call.r.fp, 0);
    const Outcome outcome = run_call(call, which);
    if (system.is_traced) trace(call, which, first_word, outcome);
    return outcome;
}

}  // namespace

Outcome run_system(const Process& of, u32* thread, Registers& at, u64 w) {
    const Process& p = *in_stack(&of);
    Registers& r = *in_stack(&at);
    if (p.system == nullptr) return trap(r, Trap::system_memory_exhausted);
    const bool is_at_hand = may_be_resident && p.entry != 0;
    ProcessBlock* me =
        at_handle<ProcessBlock>(p, is_at_hand ? p.block : word(p.words, process_block));
    const Handle own = is_at_hand ? p.call : word(p.words, process_call);
    Call call{p,
              thread,
              r,
              me,
              own == 0 ? static_cast<CallState*>(me) : at_handle<CallState>(p, own),
              caller_memory(p, r)};
    const SystemCall which = SystemCall(imm_of(w));
    if (which >= SystemCall::count)
        return call_host_function(call, imm_of(w) - u32(SystemCall::count), a_of(w));
    // Machines trace nothing.
    if (which >= SystemCall::debug_i32 || system_of(p).is_traced)
        return run_recorded(call, which);
    [[clang::always_inline]] return run_call(call, which);
}

// ---- descriptors -------------------------------------------------------------------

Errno free_descriptor(const Owner& owner, u32& fd) {
    ProcessBlock* me = owner.me;
    Descriptor* all = at_handle<Descriptor>(owner.p, me->descriptors);
    for (fd = 0; fd < me->descriptor_count; fd++)
        if (all[fd].kind == DescriptorKind::closed) break;
    if (fd == max_descriptors) return Errno::mfile;
    if (fd == me->descriptor_capacity) {
        u64 used = fd * sizeof(Descriptor);
        Handle grown = take_copy(owner.p, 2 * used, reinterpret_cast<const u8*>(all), used);
        if (grown == 0) return Errno::nomem;
        give_block(owner.p, me->descriptors, used);
        me->descriptors = grown;
        me->descriptor_capacity = 2 * fd;
    }
    return Errno::success;
}

namespace {

bool is_pipe(const Process& p, const Descriptor& descriptor) {
    return may_be_resident && descriptor.kind == DescriptorKind::stream &&
           node_at(p, descriptor.node)->flags & node_is_pipe;
}

// Whether opening or closing it changes what others count who have the same files: under their
// lock. (Pipes count for themselves, and nobody counts what is the base's.)
bool counts_files(const Process& p, const Descriptor& file) {
    return file.kind == DescriptorKind::file || (!is_base(p, file.node) && !is_pipe(p, file));
}

void open_node(const Owner& owner, const Descriptor& opened) {
    if (is_base(owner.p, opened.node)) return;
    if (is_pipe(owner.p, opened)) return open_pipe(owner.p, opened.node, opened.rights);
    node_at(owner.p, opened.node)->open_count++;
}

}  // namespace

Errno add_descriptor(const Owner& owner, const Descriptor& added, u32& fd) {
    if (Errno error = free_descriptor(owner, fd); error != Errno::success) return error;
    if (fd == owner.me->descriptor_count) owner.me->descriptor_count++;
    at_handle<Descriptor>(owner.p, owner.me->descriptors)[fd] = added;
    open_node(owner, added);
    return Errno::success;
}

void end_waits(const Owner& owner, Handle pipe) {
    if (!has_machine(owner.p)) return;
    const Machine& m = machine_of(owner.p);
    ProcessEntry& process = m.process(owner.me->entry);
    if (load_relaxed(&process.tasks) < 2) return;
    const u64 data = wait_key(WaitFor::pipe_data, pipe), room = wait_key(WaitFor::pipe_room, pipe);
    // Who is on its way to its bucket sees there that something was closed, before it looks at the
    // pipe; who has looked is seen to be blocked.
    fetch_add(&owner.me->closes, u32{1});
    Lock lock(&process.lock);
    for (u32 at = process.first_task; at != 0; at = m.task(at - 1).next_of_process) {
        const TaskEntry& task = m.task(at - 1);
        unblock(m, at - 1, Wake::woken, [&] {
            return task.wait_key == data || task.wait_key == room || task.wait_key == pipes_key();
        });
    }
}

void close_descriptor(const Owner& owner, u32 fd) {
    Descriptor& closed = at_handle<Descriptor>(owner.p, owner.me->descriptors)[fd];
    const Handle node = closed.node;
    const bool was_pipe = is_pipe(owner.p, closed);
    closed.kind = DescriptorKind::closed;
    if (closed.cell != 0) {
        OffsetCell* cell = at_handle<OffsetCell>(owner.p, closed.cell);
        if (--cell->users == 0) give_block(owner.p, closed.cell, sizeof(OffsetCell));
        closed.cell = 0;
    }
    if (is_base(owner.p, node)) return;
    if (was_pipe) {
        end_waits(owner, node);
        return close_pipe(owner.p, node, closed.rights);
    }
    node_at(owner.p, node)->open_count--;
    drop_node(owner, node);
}

void refresh_descriptor(const Owner& owner, Descriptor& file) {
    if (owner.files->copy_count == 0 || !is_base(owner.p, file.node)) return;
    const Handle now = current_node(owner, file.node);
    if (now == file.node) return;
    file.node = now;
    node_at(owner.p, now)->open_count++;
}

Errno inherit_descriptor(const Owner& parent, u32 fd, const Owner& child, u32 child_fd,
                         LateLock* lock) {
    const Process& p = parent.p;
    auto is_open = [&](u32 number, const Owner& owner) {
        return number < owner.me->descriptor_count &&
               at_handle<Descriptor>(p, owner.me->descriptors)[number].kind !=
                   DescriptorKind::closed;
    };
    if (!is_open(fd, parent)) return Errno::badf;
    if (child_fd >= max_descriptors) return Errno::mfile;
    ProcessBlock* block = child.me;
    if (child_fd >= block->descriptor_capacity) {
        u32 capacity = block->descriptor_capacity;
        while (capacity <= child_fd) capacity *= 2;
        const u64 used = block->descriptor_count * sizeof(Descriptor);
        Handle grown =
            take_copy(p, capacity * sizeof(Descriptor), at_handle<u8>(p, block->descriptors), used);
        if (grown == 0) return Errno::nomem;
        give_block(p, block->descriptors, block->descriptor_capacity * sizeof(Descriptor));
        block->descriptors = grown;
        block->descriptor_capacity = capacity;
    }
    Descriptor& from = at_handle<Descriptor>(p, parent.me->descriptors)[fd];
    if (lock != nullptr && counts_files(p, from)) lock->take();
    if (from.kind == DescriptorKind::file) {
        if (from.cell == 0) {
            from.cell = take_block(p, sizeof(OffsetCell));
            if (from.cell == 0) return Errno::nomem;
            *at_handle<OffsetCell>(p, from.cell) = {from.offset, 1, 0};
        }
        at_handle<OffsetCell>(p, from.cell)->users++;
    }
    if (is_open(child_fd, child)) close_descriptor(child, child_fd);
    for (u32& count = block->descriptor_count; count <= child_fd; count++)
        at_handle<Descriptor>(p, block->descriptors)[count].kind = DescriptorKind::closed;
    Descriptor& to = at_handle<Descriptor>(p, block->descriptors)[child_fd];
    to = from;
    open_node(child, to);
    return Errno::success;
}

// ---- processes ---------------------------------------------------------------------

namespace {

// What process `id` of the launch is called with: what is its own, or what all have.
InputEntry input_of(const Process& p, u32 id) {
    const SystemHeader& system = system_of(p);
    InputEntry shared{id, system.argument_count, system.argument_bytes, system.stdin_node,
                      u64{system.arguments} << handle_shift};
    if (system.inputs == 0) return shared;
    InputEntry own = at_handle<InputEntry>(p, system.inputs)[id];
    if (own.stdin_node == 0) own.stdin_node = system.stdin_node;
    return own;
}

}  // namespace

Handle begin_process(const Process& p, u32 id) {
    const SystemHeader& system = system_of(p);
    const InputEntry given = input_of(p, id);
    constexpr u32 first_capacity = 16;
    Handle block = take_zeroed(p, sizeof(ProcessBlock));
    if (block == 0) return 0;
    ProcessBlock* me = at_handle<ProcessBlock>(p, block);
    Owner owner = owner_of(p, me);
    me->id = given.number;
    me->argument_count = given.argument_count;
    me->argument_bytes = given.argument_bytes;
    me->arguments = given.arguments;
    me->next_inode = u64{1} << 32;
    me->descriptors = take_zeroed(p, first_capacity * sizeof(Descriptor));
    me->descriptor_capacity = first_capacity;
    me->roots = take_zeroed(p, max_preopens * sizeof(Handle));
    me->input = given.stdin_node != 0 ? given.stdin_node : make_node(owner, NodeKind::stream);
    me->output = make_node(owner, NodeKind::stream);
    me->error = make_node(owner, NodeKind::stream);
    bool is_there = me->descriptors != 0 && me->roots != 0 && me->input != 0 && me->output != 0 &&
                    me->error != 0;
    if (!is_there) {
        end_process(p, block, false);
        return 0;
    }
    // The block itself holds the streams, closed or not.
    node_at(p, me->output)->link_count = node_at(p, me->error)->link_count = 1;
    if (given.stdin_node == 0) {
        node_at(p, me->input)->link_count = 1;
        node_at(p, me->input)->flags |= node_is_ended;
    }
    // A live input is the only process's own, though the host made it; a file has its end already.
    if (system.terminals & 1 && system.is_live && !(node_at(p, me->input)->flags & node_is_ended))
        node_at(p, me->input)->flags |= node_is_terminal;
    if (system.terminals & 2) node_at(p, me->output)->flags |= node_is_terminal;
    if (system.terminals & 4) node_at(p, me->error)->flags |= node_is_terminal;
    constexpr u64 reads = wasi::stream_rights & ~u64{wasi::right_fd_write},
                  writes = wasi::stream_rights & ~u64{wasi::right_fd_read};
    const Descriptor streams[] = {
        {DescriptorKind::stream, me->input, 0, reads, 0, 0, 0},
        {DescriptorKind::stream, me->output, 0, writes, 0, wasi::fdflag_append, 0},
        {DescriptorKind::stream, me->error, 0, writes, 0, wasi::fdflag_append, 0}};
    u32 fd;
    for (const Descriptor& stream : streams) add_descriptor(owner, stream, fd);
    open_preopens(owner);
    return block;
}

void open_preopens(const Owner& owner) {
    const Process& p = owner.p;
    const SystemHeader& system = system_of(p);
    u32 fd;
    Handle* roots = at_handle<Handle>(p, owner.files->roots);
    const Preopen* preopens = at_handle<Preopen>(p, system.preopens);
    for (u32 i = 0; i < system.preopen_count; i++) {
        u64 rights = wasi::directory_rights, inheriting = wasi::all_rights;
        if (!preopens[i].is_writable) {
            rights &= ~wasi::writing_rights;
            inheriting &= ~wasi::writing_rights;
        }
        roots[i] = preopens[i].node;
        add_descriptor(owner,
                       {DescriptorKind::directory, roots[i], 0, rights, inheriting, 0, i + 1}, fd);
    }
}

namespace {

// The tree of private nodes, one directory after another: a directory's entries lose their links,
// and its subdirectories are put on the list.
void free_files(const Owner& owner) {
    const Process& p = owner.p;
    ProcessBlock* me = owner.files;
    Handle list = 0;
    auto add = [&](Handle node) {
        if (node == 0 || is_base(p, node)) return;
        if (node_at(p, node)->kind == NodeKind::directory) {
            node_at(p, node)->parent = list;
            list = node;
        } else {
            Node* unlinked = node_at(p, node);
            if (unlinked->link_count > 0) unlinked->link_count--;
            drop_node(owner, node);
        }
    };
    if (me->roots != 0)
        for (u32 i = 0; i < system_of(p).preopen_count; i++)
            add(at_handle<Handle>(p, me->roots)[i]);
    while (list != 0) {
        Handle directory = list;
        Node* node = node_at(p, directory);
        list = node->parent;
        for (u32 i = 0; i < node->content_count; i++) add(entries_of(p, node)[i].node);
        node->link_count = 0;
        drop_node(owner, directory);
    }
    give_block(p, me->roots, max_preopens * sizeof(Handle));
    give_block(p, me->copies, me->copy_capacity * sizeof(Handle));
    me->roots = me->copies = me->copy_capacity = 0;
}

void free_stream(const Owner& owner, Handle& stream) {
    if (stream != 0 && !is_base(owner.p, stream)) {
        node_at(owner.p, stream)->link_count = 0;
        drop_node(owner, stream);
    }
    stream = 0;
}

}  // namespace

void give_back(const Process& p, const ResidentBlocks& blocks) {
    give_block(p, blocks.block, sizeof(ProcessBlock));
    give_block(p, blocks.descriptors, ResidentBlocks::descriptor_bytes);
    give_block(p, blocks.strings, blocks.string_bytes);
}

Handle begin_resident(const Process& p, const ResidentBlocks& blocks) {
    if (!blocks.are_there()) return 0;
    fill_system(at_handle<u8>(p, blocks.block), 0, block_size(sizeof(ProcessBlock)));
    ProcessBlock* me = at_handle<ProcessBlock>(p, blocks.block);
    me->next_inode = u64{1} << 32;
    me->file_users = 1;
    me->descriptors = blocks.descriptors;
    me->descriptor_capacity = ResidentBlocks::first_descriptors;
    me->strings = blocks.strings;
    me->string_bytes = blocks.string_bytes;
    return blocks.block;
}

void close_descriptors(const Process& p, Handle block) {
    ProcessBlock* me = at_handle<ProcessBlock>(p, block);
    Owner owner = owner_of(p, me);
    LateLock lock(&owner.files->file_lock);
    for (u32 fd = 0; fd < me->descriptor_count; fd++) {
        const Descriptor& file = at_handle<Descriptor>(p, me->descriptors)[fd];
        if (file.kind == DescriptorKind::closed) continue;
        if (counts_files(p, file)) lock.take();
        close_descriptor(owner, fd);
    }
    me->descriptor_count = 0;
}

void end_resident(const Process& p, Handle block) {
    ProcessBlock* me = at_handle<ProcessBlock>(p, block);
    const Owner owner = owner_of(p, me);
    close_descriptors(p, block);
    give_block(p, me->descriptors, me->descriptor_capacity * sizeof(Descriptor));
    me->descriptors = me->descriptor_capacity = 0;
    free_guest_blocks(p, me);
    give_block(p, me->strings, me->string_bytes);
    me->strings = 0;
    // Who shared its files with others leaves its block to them.
    const Handle files = owner.files == me ? block : me->files;
    ProcessBlock* const shared = owner.files;
    if (files != block) give_block(p, block, sizeof(ProcessBlock));
    release_fence();  // what was done to them is done, for the last one
    if (fetch_add(&shared->file_users, ~u32{0}) != 1) return;
    acquire_fence();  // what the others did is there
    free_files({p, owner.files, owner.files});
    give_block(p, files, sizeof(ProcessBlock));
}

void end_process(const Process& p, Handle block, bool keeps) {
    ProcessBlock* me = at_handle<ProcessBlock>(p, block);
    Owner owner = owner_of(p, me);
    for (u32 fd = 0; fd < me->descriptor_count; fd++)
        if (at_handle<Descriptor>(p, me->descriptors)[fd].kind != DescriptorKind::closed)
            close_descriptor(owner, fd);
    give_block(p, me->descriptors, me->descriptor_capacity * sizeof(Descriptor));
    me->descriptors = me->descriptor_count = me->descriptor_capacity = 0;
    free_guest_blocks(p, me);
    free_stream(owner, me->input);
    if (!keeps || !system_of(p).keeps_files) free_files(owner);
    if (keeps) return;
    free_stream(owner, me->output);
    free_stream(owner, me->error);
    give_block(p, block, sizeof(ProcessBlock));
}

}  // namespace gpurun::rt
