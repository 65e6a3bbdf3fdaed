// The fd_* calls that move no bytes of files.
#include "runtime/machine/machine.h"
#include "runtime/wasi/system.h"

namespace gpurun::rt {
namespace {

using namespace wasi;

u8 filetype_of(const Node* node) {
    switch (node->kind) {
        case NodeKind::file: return filetype_regular_file;
        case NodeKind::directory: return filetype_directory;
        case NodeKind::symlink: return filetype_symbolic_link;
        default: return filetype_character_device;
    }
}

Errno fdstat_get(const Call& call, const Descriptor& file, u32 address) {
    u8* at = call.out(address, 24);
    if (at == nullptr) return Errno::fault;
    const Node* node = node_at(call.p, file.node);
    u8 type = filetype_of(node);
    // What comes from a file or a pipe of the host is no terminal.
    if (file.kind == DescriptorKind::stream)
        type =
            node->flags & node_is_terminal ? u8(filetype_character_device) : u8(filetype_unknown);
    store_bytes<u64>(at, type);
    store_bytes<u16>(at + 2, u16(file.flags));
    store_bytes<u64>(at + 8, file.rights);
    store_bytes<u64>(at + 16, file.inheriting);
    return Errno::success;
}

// For reading a file it need not be the process's own; to change it, it must.
Errno own_file(const Call& call, u32 fd, u64 rights, Descriptor*& file) {
    Errno error = get_descriptor(call, fd, rights, file);
    if (error != Errno::success) return error;
    if (file->kind == DescriptorKind::stream) return Errno::inval;
    if (!is_base(call.p, file->node)) return Errno::success;
    if (own_node(call.owner(), file->node) == 0) return Errno::nospc;
    file = descriptor(call, fd);
    return Errno::success;
}

Outcome filestat_set_size(Call& call, u32 fd, u64 size) {
    Descriptor* file;
    if (call.my->request_failed) {
        call.my->request_failed = 0;
        return call.done(Errno::io);
    }
    Errno error = own_file(call, fd, right_fd_filestat_set_size, file);
    if (error != Errno::success) return call.done(error);
    if (file->kind != DescriptorKind::file) return call.done(Errno::inval);
    Node* node = node_at(call.p, file->node);
    error = set_size(call.p, node, size);
    if (error == Errno::again) return call.ask_host(Request::block, file->node, size / file_block);
    if (error != Errno::success) return call.done(error);
    node->flags |= node_is_changed;
    node->modified = node->changed = realtime_ns(call.p);
    return call.done(Errno::success);
}

// Has the host write a changed file through, where it will write it back. Done when the call is
// made again and the host has neither failed nor been asked in vain.
Outcome sync_file(Call& call, const Descriptor& file) {
    const SystemHeader& system = system_of(call.p);
    const bool is_written_back = has_machine(call.p) ? system.keeps_files : system.is_live;
    if (call.my->progress == 0) {
        if (file.kind != DescriptorKind::file || is_base(call.p, file.node) || !is_written_back ||
            !(node_at(call.p, file.node)->flags & node_is_changed))
            return call.done(Errno::success);
        call.my->progress = 1;
        return call.ask_host(Request::sync, file.node, 0);
    }
    const bool has_failed = call.my->request_failed != 0;
    call.my->request_failed = 0;
    return call.done(has_failed ? Errno::io : Errno::success);
}

Outcome allocate_range(Call& call, u32 fd, u64 offset, u64 length) {
    Descriptor* file;
    Errno error = own_file(call, fd, right_fd_allocate, file);
    if (error != Errno::success) return call.done(error);
    if (file->kind != DescriptorKind::file || length == 0) return call.done(Errno::inval);
    if (offset > max_file || length > max_file - offset) return call.done(Errno::fbig);
    Node* node = node_at(call.p, file->node);
    if (offset + length <= node->size) return call.done(Errno::success);
    node->flags |= node_is_changed;
    return call.done(set_size(call.p, node, offset + length));
}

Errno seek(const Call& call, Descriptor& file, s64 distance, u32 whence, u32 result_at) {
    u64 from = whence == whence_set   ? 0
               : whence == whence_cur ? offset_of(call.p, file)
                                      : node_at(call.p, file.node)->size;
    if (whence > whence_end) return Errno::inval;
    s64 to;
    if (__builtin_add_overflow(s64(from), distance, &to) || to < 0) return Errno::inval;
    Errno error = call.put<u64>(result_at, u64(to));
    if (error == Errno::success) offset_of(call.p, file) = u64(to);
    return error;
}

// What wasi_unstable's whence is called now.
u32 current_whence(u32 unstable) {
    constexpr u32 unstable_cur = 0, unstable_end = 1, unstable_set = 2;
    return unstable == unstable_cur   ? whence_cur
           : unstable == unstable_end ? whence_end
           : unstable == unstable_set ? whence_set
                                      : unstable;
}

Errno renumber(const Call& call, u32 from, u32 to) {
    Descriptor* source = descriptor(call, from);
    if (source == nullptr || descriptor(call, to) == nullptr) return Errno::badf;
    if (from == to) return Errno::success;
    Descriptor moved = *source;
    // The node stays open meanwhile.
    source->kind = DescriptorKind::closed;
    end_waits(call.owner(), moved.node);
    close_descriptor(call.owner(), to);
    *(at_handle<Descriptor>(call.p, call.me->descriptors) + to) = moved;
    return Errno::success;
}

// Writes entries into the guest's buffer until it is full; the last may be cut off.
struct DirectoryWriter {
    const Call& call;
    u32 buffer, size, used;
    Errno error = Errno::success;

    bool is_full() const { return used == size || error != Errno::success; }
    void put(u8 byte) {
        if (is_full()) return;
        error = call.put<u8>(buffer + used, byte);
        if (error == Errno::success) used++;
    }
    void number(u64 value, u32 bytes) {
        for (u32 i = 0; i < bytes; i++) put(u8(value >> (8 * i)));
    }
    void head(u64 next, const Node* node, u32 name_length) {
        number(next, 8);
        number(node->inode, 8);
        number(name_length, 4);
        number(filetype_of(node), 4);
    }
    void entry(u64 next, const Node* node, Name name) {
        head(next, node, name.length);
        for (u32 i = 0; i < name.length; i++) put(name.bytes[i]);
    }
    void dots(u64 count, const Node* node) {
        head(count, node, u32(count));
        for (u64 i = 0; i < count; i++) put('.');
    }
};

constexpr u32 entries_a_turn = 64;

// Cookies: 0 ".", 1 "..", from 2 on the serial number of the entry before. A listing is whole
// unless the buffer is full, so a long one goes on in the next turn: progress is the serial number
// of the last entry and how much of the buffer is used.
Outcome readdir(Call& call, const Descriptor& file, u32 buffer, u32 size, u64 cookie,
                u32 result_at) {
    if (file.kind != DescriptorKind::directory) return call.done(Errno::notdir);
    if (call.in(buffer, size) == nullptr) return call.done(Errno::fault);
    const Process& p = call.p;
    const Node* directory = node_at(p, file.node);
    DirectoryWriter writer{call, buffer, size, u32(call.my->progress)};
    if (call.my->progress != 0) cookie = (call.my->progress >> 32) + 2;
    for (; cookie < 2 && !writer.is_full(); cookie++) writer.dots(cookie + 1, directory);
    const DirEntry* entries = entries_of(p, directory);
    u32 i = first_entry_after(p, directory, cookie < 2 ? 0 : cookie - 2), turn = 0;
    for (; i < directory->content_count && !writer.is_full(); i++, turn++) {
        if (turn == entries_a_turn) {
            call.my->progress = u64(entries[i - 1].serial) << 32 | writer.used;
            return call.again();
        }
        if (entries[i].node == 0) continue;
        writer.entry(u64(entries[i].serial) + 2, node_at(p, entries[i].node),
                     {at_offset<u8>(p, entries[i].name), entries[i].name_length});
    }
    if (writer.error != Errno::success) return call.done(writer.error);
    return call.done(call.put<u32>(result_at, writer.used));
}

Errno prestat(const Call& call, u32 fd, const Preopen*& preopen) {
    const Descriptor* file = descriptor(call, fd);
    if (file == nullptr || file->preopen == 0) return Errno::badf;
    preopen = at_handle<Preopen>(call.p, system_of(call.p).preopens) + (file->preopen - 1);
    return Errno::success;
}

Errno prestat_get(const Call& call, u32 fd, u32 address) {
    const Preopen* preopen;
    if (Errno error = prestat(call, fd, preopen); error != Errno::success) return error;
    return call.put<u64>(address, u64(preopen->name_length) << 32);
}

Errno prestat_dir_name(const Call& call, u32 fd, u32 address, u32 size) {
    const Preopen* preopen;
    if (Errno error = prestat(call, fd, preopen); error != Errno::success) return error;
    if (size < preopen->name_length) return Errno::nametoolong;
    u8* to = call.out(address, preopen->name_length);
    if (to == nullptr) return Errno::fault;
    copy_system(to, at_offset<u8>(call.p, preopen->name), preopen->name_length);
    return Errno::success;
}

Errno set_rights(Descriptor& file, u64 rights, u64 inheriting) {
    if ((rights & ~file.rights) != 0 || (inheriting & ~file.inheriting) != 0)
        return Errno::notcapable;
    file.rights = rights;
    file.inheriting = inheriting;
    return Errno::success;
}

}  // namespace

Errno put_filestat(const Call& call, const Node* node, u32 address, bool is_unstable) {
    u8* at = call.out(address, is_unstable ? 56 : 64);
    if (at == nullptr) return Errno::fault;
    auto put = [&](u64 field) {
        store_bytes<u64>(at, field);
        at += sizeof field;
    };
    put(1);  // device
    put(node->inode);
    if (is_unstable) {
        // The links are 32 bits, where there is padding behind the type now.
        put(filetype_of(node) | u64(node->link_count) << 32);
    } else {
        put(filetype_of(node));
        put(node->link_count);
    }
    // A directory's size says nothing, but on Linux it is hardly ever 0.
    put(node->kind == NodeKind::directory ? file_block : node->size);
    put(node->accessed);
    put(node->modified);
    put(node->changed);
    return Errno::success;
}

Errno set_times(const Process& p, Node* node, u64 accessed, u64 modified, u32 flags) {
    u64 now = realtime_ns(p);
    if (flags & fst_atim) node->accessed = accessed;
    if (flags & fst_atim_now) node->accessed = now;
    if (flags & fst_mtim) node->modified = modified;
    if (flags & fst_mtim_now) node->modified = now;
    node->changed = now;
    node->flags |= node_is_changed;
    return Errno::success;
}

Outcome call_descriptor(Call& call, SystemCall which) {
    u32 fd = call.i32();
    Descriptor* file = descriptor(call, fd);
    if (file == nullptr) return call.done(Errno::badf);
    bool is_stream = file->kind == DescriptorKind::stream;
    auto allowed = [&](u64 rights) { return (file->rights & rights) == rights; };
    auto finish = [&](u64 rights, auto act) {
        return call.done(allowed(rights) ? act() : Errno::notcapable);
    };
    switch (which) {
        case SystemCall::fd_advise: {
            u64 offset = call.i64(), length = call.i64();
            u32 advice = call.i32();
            return finish(right_fd_advise, [&] {
                if (file->kind == DescriptorKind::directory) return Errno::badf;
                return advice > 5 || offset + length < offset ? Errno::inval : Errno::success;
            });
        }
        case SystemCall::fd_allocate: {
            u64 offset = call.i64(), length = call.i64();
            return allocate_range(call, fd, offset, length);
        }
        case SystemCall::fd_close:
            close_descriptor(call.owner(), fd);
            return call.done(Errno::success);
        case SystemCall::fd_datasync:
        case SystemCall::fd_sync:
            if (!allowed(which == SystemCall::fd_sync ? right_fd_sync : right_fd_datasync))
                return call.done(Errno::notcapable);
            return sync_file(call, *file);
        case SystemCall::fd_fdstat_get: return call.done(fdstat_get(call, *file, call.i32()));
        case SystemCall::fd_fdstat_set_flags: {
            u32 flags = call.i32();
            return finish(right_fd_fdstat_set_flags, [&] {
                if (flags & ~all_fdflags) return Errno::inval;
                file->flags = flags;
                return Errno::success;
            });
        }
        case SystemCall::fd_fdstat_set_rights: {
            u64 rights = call.i64(), inheriting = call.i64();
            return call.done(set_rights(*file, rights, inheriting));
        }
        case SystemCall::fd_filestat_get:
        case SystemCall::unstable_fd_filestat_get: {
            u32 address = call.i32();
            return finish(right_fd_filestat_get, [&] {
                return put_filestat(call, node_at(call.p, file->node), address,
                                    which == SystemCall::unstable_fd_filestat_get);
            });
        }
        case SystemCall::fd_filestat_set_size: return filestat_set_size(call, fd, call.i64());
        case SystemCall::fd_filestat_set_times: {
            u64 accessed = call.i64(), modified = call.i64();
            u32 flags = call.i32();
            if ((flags & fst_atim && flags & fst_atim_now) ||
                (flags & fst_mtim && flags & fst_mtim_now) || flags > 15)
                return call.done(Errno::inval);
            Errno error = own_file(call, fd, right_fd_filestat_set_times, file);
            if (error != Errno::success) return call.done(error);
            return call.done(
                set_times(call.p, node_at(call.p, file->node), accessed, modified, flags));
        }
        case SystemCall::fd_prestat_get: return call.done(prestat_get(call, fd, call.i32()));
        case SystemCall::fd_prestat_dir_name: {
            u32 address = call.i32(), size = call.i32();
            return call.done(prestat_dir_name(call, fd, address, size));
        }
        case SystemCall::fd_readdir: {
            u32 buffer = call.i32(), size = call.i32();
            u64 cookie = call.i64();
            u32 result_at = call.i32();
            if (!allowed(right_fd_readdir)) return call.done(Errno::notcapable);
            return readdir(call, *file, buffer, size, cookie, result_at);
        }
        case SystemCall::fd_renumber: return call.done(renumber(call, fd, call.i32()));
        case SystemCall::fd_seek:
        case SystemCall::unstable_fd_seek: {
            s64 distance = s64(call.i64());
            u32 whence = call.i32(), result_at = call.i32();
            if (which == SystemCall::unstable_fd_seek) whence = current_whence(whence);
            if (is_stream) return call.done(Errno::spipe);  // rather than a right it cannot have
            // To ask for the position is enough for that.
            bool only_asks = distance == 0 && whence == whence_cur;
            return finish(only_asks && allowed(right_fd_tell) ? u64{0} : u64{right_fd_seek},
                          [&] { return seek(call, *file, distance, whence, result_at); });
        }
        default: {  // fd_tell
            u32 result_at = call.i32();
            if (is_stream) return call.done(Errno::spipe);
            return finish(right_fd_tell,
                          [&] { return seek(call, *file, 0, whence_cur, result_at); });
        }
    }
}

}  // namespace gpurun::rt
