// fd_read, fd_write, fd_pread, fd_pwrite: bytes between guest memory and files or streams. Long
// ones go piece by piece, their progress in the process's block.
#include "runtime/wasi/system.h"

namespace gpurun::rt {
namespace {

constexpr u32 max_vectors = 1024;         // as elsewhere: then EINVAL
constexpr u64 max_transfer = 0x7fffffff;  // bytes; of more, the first are moved

}  // namespace

Piece piece_at(const Call& call, u32 vectors, u32 vector_count, u64 skip) {
    const u8* list = call.in(vectors, u64(vector_count) * 8);
    if (list == nullptr) return {Errno::fault, 0, 0};
    for (u32 i = 0; i < vector_count; i++) {
        u32 address = load_bytes<u32>(list + i * 8), count = load_bytes<u32>(list + i * 8 + 4);
        if (call.in(address, count) == nullptr) return {Errno::fault, 0, 0};
        if (skip < count) return {Errno::success, address + u32(skip), count - skip};
        skip -= count;
    }
    return {Errno::success, 0, 0};
}

namespace {

// Before the first byte moves, so that a call which fails has done nothing.
Errno check_vectors(const Call& call, u32 vectors, u32 vector_count) {
    return piece_at(call, vectors, vector_count, ~u64{0}).error;
}

// Copies now, or leaves it to all lanes: then the call comes again.
bool copy_now(Call& call, u8* to, const u8* from, u64 count) {
    if (count > small_copy && !call.is_shared) {
        call.r.chore = {to, from, count, 0};
        return false;
    }
    copy_system(to, from, count);
    return true;
}

bool clear_now(Call& call, u8* to, u64 count) {
    if (count > small_copy && !call.is_shared) {
        call.r.chore = {to, nullptr, count, 0};
        return false;
    }
    for (u64 i = 0; i < count; i++) store_bytes<u8>(to + i, 0);
    return true;
}

struct Transfer {
    Descriptor* file;
    Node* node;
    u32 vectors, vector_count;
    u64 offset;  // where the first byte is or goes
    u32 result_at;
    bool is_positioned;
};

Outcome finish(Call& call, const Transfer& transfer, u64 done) {
    if (!transfer.is_positioned) offset_of(call.p, *transfer.file) = transfer.offset + done;
    return call.done(call.put<u32>(transfer.result_at, u32(done)));
}

// Ends: each turn moves a piece of at least one byte; a turn that leaves the copying to others
// ends the call's turn.
Outcome read_pieces(Call& call, const Transfer& transfer) {
    Node* node = transfer.node;
    for (;;) {
        u64 done = call.my->progress, at = transfer.offset + done;
        Piece piece = piece_at(call, transfer.vectors, transfer.vector_count, done);
        if (piece.error != Errno::success) return call.done(piece.error);
        u64 left = smaller(at < node->size ? node->size - at : 0, max_transfer - done);
        if (piece.count == 0 || left == 0) return finish(call, transfer, done);
        u64 within = at % file_block;
        u64 count = smaller(smaller(piece.count, left), file_block - within);
        bool is_cold;
        const u8* block = block_to_read(call.p, node, at / file_block, is_cold);
        if (is_cold) return call.ask_host(Request::block, transfer.file->node, at / file_block);
        u8* to = call.out(piece.address, count);
        bool is_now = block != nullptr ? copy_now(call, to, block + within, count)
                                       : clear_now(call, to, count);
        call.my->progress = done + count;
        if (!is_now) return call.again();
    }
}

Outcome write_pieces(Call& call, const Transfer& transfer) {
    Node* node = transfer.node;
    for (;;) {
        u64 done = call.my->progress, at = transfer.offset + done;
        Piece piece = piece_at(call, transfer.vectors, transfer.vector_count, done);
        if (piece.error != Errno::success) return call.done(piece.error);
        piece.count = smaller(piece.count, max_transfer - done);
        if (piece.count == 0) return finish(call, transfer, done);
        if (at >= max_file) return done > 0 ? finish(call, transfer, done) : call.done(Errno::fbig);
        u64 within = at % file_block;
        u64 count = smaller(piece.count, file_block - within);
        bool is_cold;
        u8* block = block_to_write(call.p, node, at / file_block, count == file_block, is_cold);
        if (is_cold) return call.ask_host(Request::block, transfer.file->node, at / file_block);
        // The host makes room in a stream that holds something.
        if (block == nullptr && node->kind == NodeKind::stream && node->size > 0 &&
            system_of(call.p).output_limit != output_stays)
            return call.ask_host(Request::output, transfer.file->node, 0);
        if (block == nullptr)
            return done > 0 ? finish(call, transfer, done) : call.done(Errno::nospc);
        bool is_now = copy_now(call, block + within, call.in(piece.address, count), count);
        call.my->progress = done + count;
        if (at + count > node->size) node->size = at + count;
        node->flags |= node_is_changed;
        if (done == 0) node->modified = node->changed = realtime_ns(call.p);
        if (!is_now) return call.again();
    }
}

// Streams have no position: what was read is gone, what is written goes to the end.
Outcome read_stream(Call& call, Transfer transfer) {
    Node* node = transfer.node;
    if (system_of(call.p).is_live && transfer.file->offset >= node->size &&
        call.my->progress == 0) {
        node->size = transfer.file->offset = transfer.offset = 0;  // all of it was read
        Piece first = piece_at(call, transfer.vectors, transfer.vector_count, 0);
        bool wants_more = first.error == Errno::success && first.count > 0;
        if (wants_more && !(node->flags & node_is_ended)) {
            if (transfer.file->flags & wasi::fdflag_nonblock) return call.done(Errno::again);
            return call.ask_host(Request::input, transfer.file->node, 0);
        }
    }
    return read_pieces(call, transfer);
}

Outcome write_stream(Call& call, Transfer transfer) {
    Node* node = transfer.node;
    if (call.my->progress == 0 && node->flags & node_is_ended)
        return call.done(Errno::io);  // nobody reads it
    if (node->size >= system_of(call.p).output_limit)
        return call.ask_host(Request::output, transfer.file->node, 0);
    // The host may have taken away what there was, between two pieces too.
    transfer.offset = node->size - call.my->progress;
    return write_pieces(call, transfer);
}

}  // namespace

Outcome call_transfer(Call& call, SystemCall which) {
    bool is_write = which == SystemCall::fd_write || which == SystemCall::fd_pwrite;
    bool is_positioned = which == SystemCall::fd_pread || which == SystemCall::fd_pwrite;
    u32 fd = call.i32();
    Transfer transfer{};
    transfer.vectors = call.i32();
    transfer.vector_count = call.i32();
    transfer.is_positioned = is_positioned;
    if (is_positioned) transfer.offset = call.i64();
    transfer.result_at = call.i32();
    u64 rights = is_write ? wasi::right_fd_write : wasi::right_fd_read;
    if (is_positioned) rights |= wasi::right_fd_seek;
    if (call.my->request_failed) {
        call.my->request_failed = 0;
        return call.done(Errno::io);
    }
    Errno error = get_descriptor(call, fd, rights, transfer.file);
    if (error != Errno::success && is_positioned && transfer.file != nullptr &&
        transfer.file->kind == DescriptorKind::stream)
        return call.done(Errno::spipe);
    if (error != Errno::success) return call.done(error);
    if (transfer.file->kind == DescriptorKind::directory) return call.done(Errno::isdir);
    if (transfer.vector_count > max_vectors) return call.done(Errno::inval);
    if (call.in(transfer.result_at, 4) == nullptr) return call.done(Errno::fault);
    if (call.my->progress == 0) {
        error = check_vectors(call, transfer.vectors, transfer.vector_count);
        if (error != Errno::success) return call.done(error);
    }
    if (is_write && transfer.file->kind == DescriptorKind::file &&
        is_base(call.p, transfer.file->node)) {
        if (own_node(call.owner(), transfer.file->node) == 0) return call.done(Errno::nospc);
        transfer.file = descriptor(call, fd);
    }
    transfer.node = node_at(call.p, transfer.file->node);
    if (!is_positioned) transfer.offset = offset_of(call.p, *transfer.file);
    if (transfer.file->kind == DescriptorKind::stream) {
        if (is_positioned) return call.done(Errno::spipe);
        if (may_be_resident && transfer.node->flags & (node_is_pipe | node_is_null))
            return call_pipe_transfer(call, transfer.file, is_write, transfer.vectors,
                                      transfer.vector_count, transfer.result_at);
        return is_write ? write_stream(call, transfer) : read_stream(call, transfer);
    }
    if (!is_write) return read_pieces(call, transfer);
    if (!is_positioned && (transfer.file->flags & wasi::fdflag_append))
        transfer.offset = transfer.node->size - call.my->progress;
    return write_pieces(call, transfer);
}

}  // namespace gpurun::rt
