// What system calls have in common: their arguments, the guest's memory, descriptors.
#pragma once

#include "abi/machine.h"
#include "runtime/fs/files.h"
#include "runtime/machine/waiting.h"
#include "runtime/memory/lock.h"

namespace gpurun::rt {

struct Machine;

enum class SystemCall : u32 {
#define SYSTEM_CALL(name, parameters, results) name,
#include "abi/system_calls.def"
#undef SYSTEM_CALL
    count
};

inline constexpr SystemCall last_process_call = SystemCall::thread_spawn;

// Most bytes that a call copies itself; more is left to all lanes, or to the next turn.
inline constexpr u64 small_copy = 256;

struct Call {
    const Process& p;
    u32* thread;
    Registers& r;
    ProcessBlock* me;
    CallState* my;  // of the thread
    Memory memory;  // the caller's
    // Others have the same files or descriptors: what is copied is copied at once, while they are
    // locked.
    bool is_shared = false;
    u32 next_slot = 0;

    Owner owner() const { return owner_of(p, me); }

    // Arguments, in their order.
    u32 i32() { return word(r.fp, next_slot++); }
    u64 i64() {
        next_slot += 2;
        return get<u64>(r.fp, next_slot - 2);
    }

    // Guest memory to be read or written; null: it is not all there.
    const u8* in(u32 address, u64 count) const {
        return in_bounds(address, count, memory.size) ? guest_at(memory.base, address) : nullptr;
    }
    u8* out(u32 address, u64 count) const {
        if (!in_bounds(address, count, memory.size)) return nullptr;
        u8* at = guest_at(memory.base, address);
        mark_dirty(p, r, at, count);
        return at;
    }
    template <class T>
    Errno put(u32 address, T value) const {
        u8* at = out(address, sizeof(T));
        if (at == nullptr) return Errno::fault;
        store_bytes<T>(at, value);
        return Errno::success;
    }

    // How calls end.
    Outcome done(Errno error) const {
        word(r.fp, 0) = u32(error);
        return done();
    }
    Outcome done() const {
        my->progress = 0;
        r.pc += 1;
        return Outcome::next;
    }
    // The same call once more, after other things.
    Outcome again() const { return Outcome::chunk; }
    Outcome leave(ThreadState state, u64 until = no_deadline) const {
        begin_wait(thread, state, until);
        return Outcome::leave;
    }
    // Off the lane until then, and once more.
    Outcome wait_for(Request what, Handle node, u64 at, u64 deadline) const {
        my->request = what;
        my->request_node = node;
        my->request_at = at;
        my->seen_closes = load_relaxed(&me->closes);
        return leave(ThreadState::blocked, deadline);
    }
    Outcome ask_host(Request request, Handle node, u64 at, u64 deadline = no_deadline) const {
        my->request = request;
        my->request_node = node;
        my->request_at = at;
        return leave(ThreadState::host, deadline);
    }
};

// A call whose result is no error number.
inline Outcome give(const Call& call, u32 result) {
    word(call.r.fp, 0) = result;
    return call.done();
}

// ---- descriptors (descriptor_table.cpp) --------------------------------------------

// Somebody else with the same files may have made another version of what it has open.
void refresh_descriptor(const Owner& owner, Descriptor& descriptor);
inline Descriptor* descriptor(const Call& call, u32 fd) {
    if (fd >= call.me->descriptor_count) return nullptr;
    Descriptor* found = at_handle<Descriptor>(call.p, call.me->descriptors) + fd;
    if (found->kind == DescriptorKind::closed) return nullptr;
    if (call.is_shared) refresh_descriptor(call.owner(), *found);
    return found;
}
inline u64& offset_of(const Process& p, Descriptor& file) {
    return file.cell == 0 ? file.offset : at_handle<OffsetCell>(p, file.cell)->offset;
}
// One with these rights, or the error.
inline Errno get_descriptor(const Call& call, u32 fd, u64 rights, Descriptor*& found) {
    found = descriptor(call, fd);
    if (found == nullptr) return Errno::badf;
    return (found->rights & rights) == rights ? Errno::success : Errno::notcapable;
}
inline Errno get_directory(const Call& call, u32 fd, u64 rights, Descriptor*& found) {
    found = descriptor(call, fd);
    if (found == nullptr) return Errno::badf;
    if (found->kind != DescriptorKind::directory) return Errno::notdir;
    return (found->rights & rights) == rights ? Errno::success : Errno::notcapable;
}
// The lowest number that is free, with room for it.
Errno free_descriptor(const Owner& owner, u32& fd);
Errno add_descriptor(const Owner& owner, const Descriptor& descriptor, u32& fd);
void close_descriptor(const Owner& owner, u32 fd);
// Returns true if opening or closing it changes what others count who have the same files: that is
// done under their lock. (Pipes count for themselves, and nobody counts what is the base's.)
bool counts_files(const Process& p, const Descriptor& file);
// Threads of the process that wait for a pipe by a descriptor that is closed look again. Its files
// are locked.
void end_waits(const Owner& owner, Handle pipe);

// ---- processes (process_block.cpp) -------------------------------------------------

// A fresh process's side of system memory. 0: no memory.
[[maybe_unused]] Handle begin_process(const Process& p, u32 id);
// Gives back what the host will not look at: with `keeps`, all but the block, what was written to
// the standard streams and, if the header says so, the files.
[[maybe_unused]] void end_process(const Process& p, Handle block, bool keeps);

// From the lowest free descriptor on; the block has its roots.
void open_preopens(const Owner& owner);
// What one of a resident machine has: room for strings, no descriptors and no roots yet.
struct ResidentBlocks {
    static constexpr u32 first_descriptors = 16;
    static constexpr u64 descriptor_bytes = first_descriptors * sizeof(Descriptor);

    Handle block, descriptors;
    Handle strings;  // 0 if there are no bytes of them
    u32 string_bytes;

    bool are_there() const {
        return block != 0 && descriptors != 0 && (strings != 0 || string_bytes == 0);
    }
};
// Gives back those that are there.
[[gnu::noinline]] void give_back(const Process& p, const ResidentBlocks& blocks);
// Makes the first of them ready and returns it, or 0 if there was no memory for one.
Handle begin_resident(const Process& p, const ResidentBlocks& blocks);
// Closes all descriptors of a process.
[[gnu::noinline]] void close_descriptors(const Process& p, Handle block);
// Gives back all that a process of a machine has in system memory.
void end_resident(const Process& p, Handle block);
// A child has what its parent has open: descriptor `fd` of it, as `child_fd`. Both may be the same.
// `lock`: of their files, or null: it is taken.
Errno inherit_descriptor(const Owner& parent, u32 fd, const Owner& child, u32 child_fd,
                         LateLock* lock);

struct OpenOptions {
    u32 lookup, oflags;
    u64 rights, inheriting;
    u32 fdflags;
};
// What path_open does, of a path from directory `fd` on.
Errno open_path(Call& call, u32 fd, Name name, const OpenOptions& options, u32& opened);

// The `skip`th byte of the vectors: its address, and how many follow in the same vector. Vectors
// are read again each time: another thread of the guest may change them.
struct Piece {
    Errno error;
    u32 address;
    u64 count;  // 0: none are left
};
Piece piece_at(const Call& call, u32 vectors, u32 vector_count, u64 skip);

// ---- pipes (pipes.cpp) -------------------------------------------------------------

// Ask PipeBlock::ends.
inline bool has_readers(u64 ends) { return u32(ends) != 0; }
inline bool has_writers(u64 ends) { return ends >> 32 != 0; }
inline PipeBlock* pipe_of(const Process& p, const Node* node) {
    return at_handle<PipeBlock>(p, node->content);
}
// So many of those that wait for the same pipe are woken: each that finds something there, and
// leaves some, wakes as many.
inline constexpr u32 woken_at_once = 4;
// A node that nobody has open; 0: no memory.
Handle make_pipe(const Process& p, u64 inode);
// One end more, or less; the last one gives the pipe back.
void open_pipe(const Process& p, Handle node, u64 rights);
void close_pipe(const Process& p, Handle node, u64 rights);
// Those who poll it beside others, after it has changed and whoever waits for it alone was woken
// (poll.cpp).
void wake_pollers(const Machine& m, PipeBlock* pipe);
void wake_poller(const Machine& m, u32 poller);
Outcome call_pipe_transfer(Call& call, Descriptor* file, bool is_write, u32 vectors,
                           u32 vector_count, u32 result_at);

// ---- what the host prints ----------------------------------------------------------

// A record that is being written; finish_record() shows it to the host.
struct NewRecord {
    DebugRecord* at = nullptr;  // null: there is no room for more
    u64 turn = 0;               // what it will have
};
NewRecord new_debug_record(const Call& call);
void finish_record(const NewRecord& record);
// Leaves a record of how a fault ended a process of a machine.
[[maybe_unused]] void note_ending(const Process& p, u32 pid, const FaultEnding& ending);
// Returns true if a call that leaves records can be made. The other half of the places is for those
// that asked at the same time, and for faults.
bool has_room_for_records(const Call& call);
// Has the call made again once the host may have taken some.
Outcome wait_for_records(const Call& call);
// Notes a call that has ended, with the first word of its arguments as it was.
void trace(const Call& call, SystemCall which, u32 first_word, Outcome outcome);

// ---- families of calls -------------------------------------------------------------

Outcome call_descriptor(Call& call, SystemCall which);
Outcome call_transfer(Call& call, SystemCall which);
Outcome call_path(Call& call, SystemCall which);
Outcome call_poll(Call& call, SystemCall which);
Outcome call_random(Call& call);
Outcome call_gpu(Call& call, SystemCall which);
Outcome call_process(Call& call, SystemCall which);
void free_guest_blocks(const Process& p, ProcessBlock* me);
// `is_unstable`: as wasi_unstable has it.
Errno put_filestat(const Call& call, const Node* node, u32 address, bool is_unstable);
Errno set_times(const Process& p, Node* node, u64 accessed, u64 modified, u32 flags);

}  // namespace gpurun::rt
