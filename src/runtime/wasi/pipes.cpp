// Pipes: a buffer in the device heap with readers and writers. The host's end of a stream counts as
// one of them; what concerns it is the mailbox warp's to do.
#include "runtime/machine/machine.h"
#include "runtime/machine/wait.h"
#include "runtime/wasi/system.h"

namespace gpurun::rt {

namespace {

u64 ends_of(u64 rights) {
    return (rights & wasi::right_fd_read ? pipe_reader : 0) +
           (rights & wasi::right_fd_write ? pipe_writer : 0);
}

}  // namespace

Handle make_pipe(const Process& p, u64 inode) {
    Handle node = take_zeroed(p, sizeof(Node)), block = take_zeroed(p, sizeof(PipeBlock)),
           buffer = take_block(p, pipe_bytes);
    if (node == 0 || block == 0 || buffer == 0) {
        give_block(p, node, sizeof(Node));
        give_block(p, block, sizeof(PipeBlock));
        give_block(p, buffer, pipe_bytes);
        return 0;
    }
    Node* made = node_at(p, node);
    made->kind = NodeKind::stream;
    made->flags = node_is_pipe;
    made->content = block;
    made->inode = inode;
    made->link_count = 1;
    made->accessed = made->modified = made->changed = realtime_ns(p);
    at_handle<PipeBlock>(p, block)->buffer = buffer;
    return node;
}

void open_pipe(const Process& p, Handle node, u64 rights) {
    fetch_add(&pipe_of(p, node_at(p, node))->ends, ends_of(rights));
}

void close_pipe(const Process& p, Handle node, u64 rights) {
    const Machine& m = machine_of(p);
    PipeBlock* pipe = pipe_of(p, node_at(p, node));
    // Once this end is closed the pipe may go, unless it was the last.
    const bool is_hosts = pipe->host_stream != 0;
    const u64 mine = ends_of(rights);
    release_fence();  // what was done to it is done, for the last one
    const u64 left = fetch_add(&pipe->ends, u64{0} - mine) - mine;
    // Who is left sees that nobody is at the other end.
    const bool was_last_reader = u32(mine) != 0 && u32(left) == 0,
               was_last_writer = mine >> 32 != 0 && left >> 32 == 0;
    if (is_hosts && (was_last_reader || was_last_writer))
        fetch_add(&m.header->output_waits, u64{1});
    if (was_last_writer) wake(m, wait_key(WaitFor::pipe_data, node), ~u32{0});
    if (was_last_reader) wake(m, wait_key(WaitFor::pipe_room, node), ~u32{0});
    // If it is gone, nobody polls it.
    if (was_last_writer || was_last_reader) wake_poller(m, load_stale(&pipe->poller));
    if (left != 0) return;
    acquire_fence();  // what the others did to it is done
    give_block(p, pipe->buffer, pipe_bytes);
    give_block(p, node_at(p, node)->content, sizeof(PipeBlock));
    give_block(p, node, sizeof(Node));
}

namespace {

// Bytes between a pipe's buffer and memory, from position `at` of all that ever went through it.
void from_pipe(const Process& p, const PipeBlock* pipe, u64 at, u8* to, u64 count) {
    const u8* buffer = at_handle<u8>(p, pipe->buffer);
    const u64 within = at % pipe_bytes, first = smaller(count, pipe_bytes - within);
    copy_system(to, buffer + within, first);
    copy_system(to + first, buffer, count - first);
}
void to_pipe(const Process& p, PipeBlock* pipe, u64 at, const u8* from, u64 count) {
    u8* buffer = at_handle<u8>(p, pipe->buffer);
    const u64 within = at % pipe_bytes, first = smaller(count, pipe_bytes - within);
    copy_system(buffer + within, from, first);
    copy_system(buffer, from + first, count - first);
}

// What one call reads at the most: it keeps the pipe locked meanwhile.
constexpr u64 pipe_turn = 4096;

Outcome read_pipe(Call& call, Descriptor* file, u32 vectors, u32 vector_count, u32 result_at) {
    PipeBlock* pipe = pipe_of(call.p, node_at(call.p, file->node));
    u64 done = 0;
    Errno error = Errno::success;
    bool is_empty, wants_any = false, leaves_some;
    {
        Lock lock(&pipe->lock);
        const u64 there = pipe->written - pipe->read;
        is_empty = there == 0 && has_writers(load_relaxed(&pipe->ends));
        while (done < pipe_turn) {
            Piece piece = piece_at(call, vectors, vector_count, done);
            error = piece.error;
            wants_any |= piece.count > 0;
            const u64 count = smaller(smaller(piece.count, there - done), pipe_turn - done);
            if (error != Errno::success || count == 0) break;
            from_pipe(call.p, pipe, pipe->read + done, call.out(piece.address, count), count);
            done += count;
        }
        store_relaxed(&pipe->read, pipe->read + done);
        leaves_some = there > done;
    }
    if (error != Errno::success) return call.done(error);
    if (is_empty && wants_any) {
        if (file->flags & wasi::fdflag_nonblock) return call.done(Errno::again);
        return call.wait_for(Request::pipe_data, file->node, 0, no_deadline);
    }
    const Machine& m = machine_of(call.p);
    if (done > 0) wake(m, wait_key(WaitFor::pipe_room, file->node), woken_at_once);
    // Who woke this one may have left it to wake the next.
    if (done > 0 && leaves_some) wake(m, wait_key(WaitFor::pipe_data, file->node), woken_at_once);
    if (done > 0) wake_pollers(m, pipe);
    if (done > 0 && pipe->host_stream != 0) fetch_add(&m.header->output_waits, u64{1});
    return call.done(call.put<u32>(result_at, u32(done)));
}

// All of it is written, in pieces; those of up to pipe_atomic bytes are not torn.
Outcome write_pipe(Call& call, Descriptor* file, u32 vectors, u32 vector_count, u32 result_at) {
    PipeBlock* pipe = pipe_of(call.p, node_at(call.p, file->node));
    const Machine& m = machine_of(call.p);
    u64 total = 0;
    for (u32 i = 0; i < vector_count; i++) {
        const u8* list = call.in(vectors, u64(vector_count) * 8);
        if (list == nullptr) return call.done(Errno::fault);
        total += load_bytes<u32>(list + i * 8 + 4);
    }
    bool is_broken, is_full = false, has_room = false;
    Errno error = Errno::success;
    u64 done = call.my->progress, needed = 0;
    {
        Lock lock(&pipe->lock);
        is_broken = !has_readers(load_relaxed(&pipe->ends));
        const u64 left = total - done, room = pipe_bytes - (pipe->written - pipe->read);
        const u64 turn = smaller(left, pipe_turn);
        needed = turn;
        is_full = room < turn;
        // Without waiting, as much of a long one as there is room for.
        const bool is_partial =
            is_full && (file->flags & wasi::fdflag_nonblock) && total > pipe_atomic && room > 0;
        u64 most = is_partial ? room : is_full ? 0 : turn, now = 0;
        while (!is_broken && now < most) {
            Piece piece = piece_at(call, vectors, vector_count, done + now);
            error = piece.error;
            const u64 count = smaller(piece.count, most - now);
            if (error != Errno::success || count == 0) break;
            to_pipe(call.p, pipe, pipe->written + now, call.in(piece.address, count), count);
            now += count;
        }
        store_relaxed(&pipe->written, pipe->written + now);
        done += now;
        has_room = room - now >= pipe_atomic;
        if (is_partial) is_full = false, total = done;
    }
    if (is_broken) return call.done(Errno::pipe);
    if (error != Errno::success) return call.done(error);
    if (is_full) {
        if (file->flags & wasi::fdflag_nonblock)
            return done > 0 ? call.done(call.put<u32>(result_at, u32(done)))
                            : call.done(Errno::again);
        return call.wait_for(Request::pipe_room, file->node, needed, no_deadline);
    }
    wake(m, wait_key(WaitFor::pipe_data, file->node), woken_at_once);
    if (has_room) wake(m, wait_key(WaitFor::pipe_room, file->node), woken_at_once);
    wake_pollers(m, pipe);
    if (pipe->host_stream != 0) fetch_add(&m.header->output_waits, u64{1});
    if (done < total) {
        call.my->progress = done;
        return call.again();
    }
    return call.done(call.put<u32>(result_at, u32(done)));
}

}  // namespace

Outcome call_pipe_transfer(Call& call, Descriptor* file, bool is_write, u32 vectors,
                           u32 vector_count, u32 result_at) {
    Node* node = node_at(call.p, file->node);
    Outcome outcome = Outcome::next;
    if (node->flags & node_is_null) {
        u64 total = 0;
        for (u32 i = 0; is_write && i < vector_count; i++)
            total += load_bytes<u32>(call.in(vectors + i * 8 + 4, 4));
        return call.done(call.put<u32>(result_at, u32(smaller(total, 0x7fffffff))));
    }
    one_by_one([&] {
        outcome = is_write ? write_pipe(call, file, vectors, vector_count, result_at)
                           : read_pipe(call, file, vectors, vector_count, result_at);
    });
    return outcome;
}

}  // namespace gpurun::rt
