// System calls: the table of them, arguments and environment, clocks, processes.
#include "runtime/system.h"

namespace gpurun::rt {
namespace {

// The caller's memory: the instance that the newest record leads back to.
Memory caller_memory(const Process& p, const Registers& r) {
    const u32* instance = word_at(p.words, word(r.rp, record_instance));
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

Errno get_strings(Call& call, const Strings& strings) {
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

Errno get_string_sizes(Call& call, const Strings& strings) {
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
    call.me->progress = 0;
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
Outcome call_host_function(Call& call, u32 number, u32 most_words) {
    const u64 size = sizeof(HostCallBlock) + most_words * 4;
    if (call.me->progress == 0) {
        Handle made = take_block(call.p, size);
        if (made == 0) return trap(call.r, Trap::system_memory_exhausted);
        HostCallBlock* block = at_handle<HostCallBlock>(call.p, made);
        block->status = host_call_asked;
        block->result_words = 0;
        block->memory_at = u64(call.memory.base - call.p.bytes);
        block->memory_size = call.memory.size;
        u32* words = reinterpret_cast<u32*>(block + 1);
        for (u32 i = 0; i < most_words; i++) words[i] = word(call.r.fp, i);
        call.me->progress = made;
        return call.ask_host(Request::call, made, number);
    }
    Handle made = Handle(call.me->progress);
    HostCallBlock* block = at_handle<HostCallBlock>(call.p, made);
    const u32 status = block->status, count = block->result_words;
    if (status == host_call_asked) return call.ask_host(Request::call, made, number);
    const u32* words = reinterpret_cast<const u32*>(block + 1);
    for (u32 i = 0; i < count && i < most_words; i++) word(call.r.fp, i) = words[i];
    give_block(call.p, made, size);
    call.me->progress = 0;
    if (status != host_call_done) return trap(call.r, Trap::host_function_failed);
    return call.done();
}

Outcome serve(Call& call, SystemCall which) {
    switch (which) {
        case SystemCall::args_get: return call.done(get_strings(call, arguments_of(call)));
        case SystemCall::args_sizes_get:
            return call.done(get_string_sizes(call, arguments_of(call)));
        case SystemCall::environ_get: return call.done(get_strings(call, environment_of(call)));
        case SystemCall::environ_sizes_get:
            return call.done(get_string_sizes(call, environment_of(call)));
        case SystemCall::clock_res_get: return call.done(clock_resolution(call));
        case SystemCall::clock_time_get: return call.done(clock_time(call));
        case SystemCall::fd_pread:
        case SystemCall::fd_pwrite:
        case SystemCall::fd_read:
        case SystemCall::fd_write: return call_transfer(call, which);
        case SystemCall::poll_oneoff: return call_poll(call);
        case SystemCall::proc_exit: return exit_process(call, call.i32());
        case SystemCall::proc_raise: return raise(call);
        case SystemCall::random_get: return call_random(call);
        case SystemCall::sched_yield: return call.done(Errno::success);
        case SystemCall::sock_accept:
        case SystemCall::sock_recv:
        case SystemCall::sock_send:
        case SystemCall::sock_shutdown: return no_socket(call);
        case SystemCall::path_create_directory:
        case SystemCall::path_filestat_get:
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

Outcome run_system(const Process& p, u32* thread, Registers& r, u64 w) {
    if (p.system == nullptr) return trap(r, Trap::system_memory_exhausted);
    ProcessBlock* me = at_handle<ProcessBlock>(p, word(p.words, process_block));
    Call call{p, thread, r, me, caller_memory(p, r)};
    const SystemHeader& system = system_of(p);
    SystemCall which = SystemCall(imm_of(w));
    if (which >= SystemCall::count)
        return call_host_function(call, imm_of(w) - u32(SystemCall::count), a_of(w));
    const bool is_traced = system.is_traced;
    const bool leaves_records = is_traced || which >= SystemCall::debug_i32;
    if (leaves_records && system.is_live && !has_room_for_records(call))
        return call.ask_host(Request::output, 0, 0);
    const u32 first_word = word(r.fp, 0);
    Outcome outcome = serve(call, which);
    if (is_traced) [[unlikely]]
        trace(call, which, first_word, outcome);
    return outcome;
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

Errno add_descriptor(const Owner& owner, const Descriptor& added, u32& fd) {
    if (Errno error = free_descriptor(owner, fd); error != Errno::success) return error;
    if (fd == owner.me->descriptor_count) owner.me->descriptor_count++;
    at_handle<Descriptor>(owner.p, owner.me->descriptors)[fd] = added;
    if (!is_base(owner.p, added.node)) node_at(owner.p, added.node)->open_count++;
    return Errno::success;
}

void close_descriptor(const Owner& owner, u32 fd) {
    Descriptor& closed = at_handle<Descriptor>(owner.p, owner.me->descriptors)[fd];
    Handle node = closed.node;
    closed.kind = DescriptorKind::closed;
    if (is_base(owner.p, node)) return;
    node_at(owner.p, node)->open_count--;
    drop_node(owner, node);
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
    Owner owner{p, me};
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
    Handle* roots = at_handle<Handle>(p, me->roots);
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
    return block;
}

namespace {

// The tree of private nodes, one directory after another: a directory's entries lose their links,
// and its subdirectories are put on the list.
void free_files(const Owner& owner) {
    const Process& p = owner.p;
    ProcessBlock* me = owner.me;
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

void end_process(const Process& p, Handle block, bool keeps) {
    ProcessBlock* me = at_handle<ProcessBlock>(p, block);
    Owner owner{p, me};
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
