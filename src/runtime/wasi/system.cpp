// System calls: the table of them, arguments and environment, clocks, host functions.
#include "runtime/wasi/system.h"
#include "runtime/machine/wait.h"

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

// Returns true if others may use the same descriptors or files at the same time: then they do one
// after another, under the lock. Nobody but the process itself can make it so.
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
    if (!has_room_for_records(call)) return wait_for_records(call);
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
    if (which >= SystemCall::debug_i32 || system_of(p).is_traced) return run_recorded(call, which);
    [[clang::always_inline]] return run_call(call, which);
}

}  // namespace gpurun::rt
