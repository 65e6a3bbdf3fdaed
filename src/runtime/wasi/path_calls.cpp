// The path_* calls.
#include "runtime/wasi/system.h"

namespace gpurun::rt {
namespace {

using namespace wasi;

// A path argument: where it starts and what it leads to.
struct PathCall {
    Call& call;
    Scratch scratch;
    Descriptor* start = nullptr;
    Place place{Errno::success, 0, 0, {nullptr, 0}, false};

    explicit PathCall(Call& c) : call(c), scratch(c.p) {}

    // Checks the descriptor first, then the path.
    Errno find(u32 fd, u64 rights, u32 address, u32 length, LastLink last_link) {
        return find(fd, rights, {call.in(address, length), length}, last_link);
    }
    Errno find(u32 fd, u64 rights, Name path, LastLink last_link) {
        Errno error = get_directory(call, fd, rights, start);
        if (error != Errno::success) return error;
        if (path.bytes == nullptr) return Errno::fault;
        place = resolve(call.owner(), start->node, path.bytes, path.length, last_link, scratch);
        return place.error;
    }
    // The directory of the last name, for a change.
    Node* own_directory() const {
        Handle owned = own_node(call.owner(), place.directory);
        return owned == 0 ? nullptr : node_at(call.p, owned);
    }
    // It may be open and yet removed: then no name can be added there.
    bool is_removed() const { return node_at(call.p, place.directory)->link_count == 0; }
};

Errno create_directory(PathCall& path) {
    const Call& call = path.call;
    if (path.place.node != 0) return Errno::exist;
    if (path.is_removed()) return Errno::noent;
    Node* parent = path.own_directory();
    if (parent == nullptr) return Errno::nospc;
    Handle made = make_node(call.owner(), NodeKind::directory);
    if (made == 0) return Errno::nospc;
    Node* node = node_at(call.p, made);
    node->link_count = 1;
    node->parent = current_node(call.owner(), path.place.directory);
    Errno error = add_entry(call.p, parent, path.place.name, made);
    if (error != Errno::success) {
        node->link_count = 0;
        drop_node(call.owner(), made);
    }
    return error;
}

// Whoever has a file of the base open keeps it when it loses its name, as the process's own. 0: no
// memory for that.
Handle keep_open(const Call& call, Handle node) {
    const Descriptor* all = at_handle<Descriptor>(call.p, call.me->descriptors);
    for (u32 i = 0; i < call.me->descriptor_count; i++)
        if (all[i].kind != DescriptorKind::closed && all[i].node == node)
            return own_node(call.owner(), node);
    return node;
}

// A name less; the node goes if nothing else holds it.
void drop_link(const Call& call, Handle node) {
    if (is_base(call.p, node)) return;
    node_at(call.p, node)->link_count--;
    drop_node(call.owner(), node);
}

Errno unlink(const Call& call, Handle directory, Name name, Handle node) {
    node = keep_open(call, node);
    Handle owned = own_node(call.owner(), directory);
    if (owned == 0 || node == 0) return Errno::nospc;
    Node* parent = node_at(call.p, owned);
    remove_entry(call.p, parent, find_entry(call.p, parent, name));
    drop_link(call, node);
    return Errno::success;
}

Errno remove_directory(PathCall& path) {
    const Call& call = path.call;
    if (path.place.node == 0) return Errno::noent;
    const Node* node = node_at(call.p, path.place.node);
    if (path.place.name.length == 0) return Errno::inval;
    if (node->kind != NodeKind::directory) return Errno::notdir;
    if (node->live_entries != 0) return Errno::notempty;
    return unlink(call, path.place.directory, path.place.name, path.place.node);
}

Errno unlink_file(PathCall& path) {
    const Call& call = path.call;
    if (path.place.node == 0) return Errno::noent;
    if (node_at(call.p, path.place.node)->kind == NodeKind::directory) return Errno::isdir;
    if (path.place.must_be_directory) return Errno::notdir;
    return unlink(call, path.place.directory, path.place.name, path.place.node);
}

Errno make_symlink(PathCall& path, u32 text_at, u32 length) {
    const Call& call = path.call;
    const u8* text = call.in(text_at, length);
    if (text == nullptr) return Errno::fault;
    if (length == 0) return Errno::noent;
    if (length >= max_path) return Errno::nametoolong;
    if (Errno error = check_text(text, length); error != Errno::success) return error;
    if (path.place.node != 0) return Errno::exist;
    if (path.place.must_be_directory || path.is_removed()) return Errno::noent;
    Node* parent = path.own_directory();
    if (parent == nullptr) return Errno::nospc;
    Handle made = make_node(call.owner(), NodeKind::symlink);
    if (made == 0) return Errno::nospc;
    Node* node = node_at(call.p, made);
    node->link_count = 1;
    node->size = length;
    node->content = take_copy(call.p, length, text, length);
    node->content_count = length;
    node->content_capacity = u32(block_size(length));
    Errno error =
        node->content == 0 ? Errno::nospc : add_entry(call.p, parent, path.place.name, made);
    if (error != Errno::success) {
        node->link_count = 0;
        drop_node(call.owner(), made);
    }
    return error;
}

Errno link(PathCall& from, PathCall& to) {
    const Call& call = from.call;
    if (from.place.node == 0) return Errno::noent;
    if (node_at(call.p, from.place.node)->kind == NodeKind::directory) return Errno::perm;
    if (to.place.node != 0) return Errno::exist;
    if (to.place.must_be_directory || to.is_removed()) return Errno::noent;
    Handle node = own_node(call.owner(), from.place.node);
    Node* parent = to.own_directory();
    if (node == 0 || parent == nullptr) return Errno::nospc;
    Errno error = add_entry(call.p, parent, to.place.name, node);
    if (error == Errno::success) node_at(call.p, node)->link_count++;
    return error;
}

bool is_within(const Call& call, Handle node, Handle directory) {
    for (Handle up = node; up != 0; up = node_at(call.p, up)->parent) {
        up = current_node(call.owner(), up);
        if (up == directory) return true;
    }
    return false;
}

Errno rename(PathCall& from, PathCall& to) {
    const Call& call = from.call;
    if (from.place.node == 0) return Errno::noent;
    if (from.place.name.length == 0 || to.place.name.length == 0) return Errno::busy;
    Handle moved = from.place.node, target = to.place.node;
    bool is_directory = node_at(call.p, moved)->kind == NodeKind::directory;
    if ((from.place.must_be_directory || to.place.must_be_directory) && !is_directory)
        return Errno::notdir;
    if (to.is_removed()) return Errno::noent;
    if (moved == target) return Errno::success;
    if (is_directory && is_within(call, to.place.directory, moved)) return Errno::inval;
    if (target != 0) {
        const Node* old = node_at(call.p, target);
        if (old->kind == NodeKind::directory && !is_directory) return Errno::isdir;
        if (old->kind != NodeKind::directory && is_directory) return Errno::notdir;
        if (old->kind == NodeKind::directory && old->live_entries != 0) return Errno::notempty;
    }
    moved = own_node(call.owner(), moved);
    Handle source = own_node(call.owner(), from.place.directory);
    Handle destination = own_node(call.owner(), to.place.directory);
    if (moved == 0 || source == 0 || destination == 0) return Errno::nospc;
    Node* to_directory = node_at(call.p, destination);
    if (target != 0) {
        // In its place, so that nothing can fail half-way.
        target = keep_open(call, current_node(call.owner(), target));
        if (target == 0) return Errno::nospc;
        entries_of(call.p, to_directory)[find_entry(call.p, to_directory, to.place.name)].node =
            moved;
        drop_link(call, target);
        to_directory->modified = to_directory->changed = realtime_ns(call.p);
    } else if (Errno error = add_entry(call.p, to_directory, to.place.name, moved);
               error != Errno::success) {
        return error;
    }
    Node* directory = node_at(call.p, source);
    u32 position = find_entry(call.p, directory, from.place.name);
    remove_entry(call.p, directory, position);
    if (is_directory) node_at(call.p, moved)->parent = destination;
    node_at(call.p, moved)->changed = realtime_ns(call.p);
    return Errno::success;
}

Errno readlink(PathCall& path, u32 buffer, u32 size, u32 result_at) {
    const Call& call = path.call;
    if (path.place.node == 0) return Errno::noent;
    const Node* node = node_at(call.p, path.place.node);
    if (node->kind != NodeKind::symlink) return Errno::inval;
    u32 count = node->content_count < size ? node->content_count : size;
    u8* to = call.out(buffer, count);
    if (to == nullptr) return Errno::fault;
    copy_system(to, at_handle<u8>(call.p, node->content), count);
    return call.put<u32>(result_at, count);
}

Errno create_file(PathCall& path, Handle& made) {
    const Call& call = path.call;
    Node* parent = path.own_directory();
    if (parent == nullptr) return Errno::nospc;
    made = make_node(call.owner(), NodeKind::file);
    if (made == 0) return Errno::nospc;
    Node* node = node_at(call.p, made);
    node->link_count = 1;
    Errno error = add_entry(call.p, parent, path.place.name, made);
    if (error != Errno::success) {
        node->link_count = 0;
        drop_node(call.owner(), made);
    }
    return error;
}

// What keeps a path from being opened.
Errno check_open(const PathCall& path, const OpenOptions& options) {
    const Call& call = path.call;
    if (options.oflags & ~all_oflags || options.fdflags & ~all_fdflags) return Errno::inval;
    if ((options.oflags & oflag_creat) && (options.oflags & oflag_directory)) return Errno::inval;
    auto may = [&](u64 right) { return (path.start->rights & right) != 0; };
    if (path.place.node == 0) {
        if (!(options.oflags & oflag_creat)) return Errno::noent;
        if (!may(right_path_create_file)) return Errno::notcapable;
        if (path.place.must_be_directory) return Errno::isdir;
        return path.is_removed() ? Errno::noent : Errno::success;
    }
    NodeKind kind = node_at(call.p, path.place.node)->kind;
    if ((options.oflags & oflag_creat) && (options.oflags & oflag_excl)) return Errno::exist;
    if (kind == NodeKind::symlink) return Errno::loop;
    if (kind == NodeKind::directory) {
        // The one right whose meaning is that the file is opened for writing.
        if (options.rights & right_fd_write) return Errno::isdir;
        return options.oflags & (oflag_creat | oflag_trunc) ? Errno::isdir : Errno::success;
    }
    if (options.oflags & oflag_directory || path.place.must_be_directory) return Errno::notdir;
    return options.oflags & oflag_trunc && !may(right_path_filestat_set_size) ? Errno::notcapable
                                                                              : Errno::success;
}

// Checks that a file that is opened for writing may be written to. Other rights that the directory
// does not pass on are left out: languages ask for more than they use. Go's O_RDONLY asks for
// fd_filestat_set_size.
Errno check_rights(const PathCall& path, const OpenOptions& options) {
    const bool may_write = path.start->inheriting & right_fd_write;
    return options.rights & right_fd_write && !may_write ? Errno::notcapable : Errno::success;
}

// All else is known to be right: only now something is made or truncated.
Errno open(PathCall& path, const OpenOptions& options, u32& fd) {
    const Call& call = path.call;
    Handle node = path.place.node;
    bool is_directory = node != 0 && node_at(call.p, node)->kind == NodeKind::directory;
    const u64 inherited = path.start->inheriting;
    Errno error = free_descriptor(call.owner(), fd);
    if (error != Errno::success) return error;
    if (node == 0) {
        error = create_file(path, node);
        if (error != Errno::success) return error;
    } else if (options.oflags & oflag_trunc) {
        node = own_node(call.owner(), node);
        if (node == 0) return Errno::nospc;
        Node* file = node_at(call.p, node);
        file->flags = (file->flags | node_is_changed) & ~node_is_cold;
        set_size(call.p, file, 0);
        file->modified = file->changed = realtime_ns(call.p);
    }
    u64 possible = is_directory ? directory_rights : file_rights;
    Descriptor opened{is_directory ? DescriptorKind::directory : DescriptorKind::file,
                      node,
                      0,
                      options.rights & possible & inherited,
                      is_directory ? options.inheriting & inherited : 0,
                      options.fdflags,
                      0};
    return add_descriptor(call.owner(), opened, fd);
}

Errno filestat_set_times(PathCall& path, u64 accessed, u64 modified, u32 flags) {
    const Call& call = path.call;
    if ((flags & fst_atim && flags & fst_atim_now) || (flags & fst_mtim && flags & fst_mtim_now) ||
        flags > 15)
        return Errno::inval;
    if (path.place.node == 0) return Errno::noent;
    Handle node = own_node(call.owner(), path.place.node);
    if (node == 0) return Errno::nospc;
    return set_times(call.p, node_at(call.p, node), accessed, modified, flags);
}

// As the flags of a call say.
LastLink last_link(u32 lookup) {
    return lookup & lookup_symlink_follow ? LastLink::follows : LastLink::follows_a_slash;
}

LastLink last_link(const OpenOptions& options) {
    bool is_new = options.oflags & oflag_creat && options.oflags & oflag_excl;
    return is_new ? LastLink::follows_a_slash : last_link(options.lookup);
}

// Arguments are read in their order; then the path is found, and `act` done.
template <class Act>
Outcome with_path(Call& call, PathCall& path, u32 fd, u64 rights, u32 at, u32 length, LastLink last,
                  Act act) {
    Errno error = path.find(fd, rights, at, length, last);
    return call.done(error == Errno::success ? act() : error);
}

Outcome call_two_paths(Call& call, SystemCall which) {
    PathCall from(call), to(call);
    u32 fd = call.i32(), flags = which == SystemCall::path_link ? call.i32() : 0;
    u32 at = call.i32(), length = call.i32();
    u32 to_fd = call.i32(), to_at = call.i32(), to_length = call.i32();
    bool is_link = which == SystemCall::path_link;
    Errno error = from.find(fd, is_link ? right_path_link_source : right_path_rename_source, at,
                            length, is_link ? last_link(flags) : LastLink::stays);
    if (error == Errno::success)
        error = to.find(to_fd, is_link ? right_path_link_target : right_path_rename_target, to_at,
                        to_length, LastLink::stays);
    if (error != Errno::success) return call.done(error);
    return call.done(is_link ? link(from, to) : rename(from, to));
}

}  // namespace

Outcome call_path(Call& call, SystemCall which) {
    if (which == SystemCall::path_link || which == SystemCall::path_rename)
        return call_two_paths(call, which);
    PathCall path(call);
    if (which == SystemCall::path_symlink) {
        u32 text = call.i32(), text_length = call.i32(), fd = call.i32(), at = call.i32(),
            length = call.i32();
        return with_path(call, path, fd, right_path_symlink, at, length, LastLink::stays,
                         [&] { return make_symlink(path, text, text_length); });
    }
    u32 fd = call.i32();
    switch (which) {
        case SystemCall::path_create_directory: {
            u32 at = call.i32(), length = call.i32();
            return with_path(call, path, fd, right_path_create_directory, at, length,
                             LastLink::stays, [&] { return create_directory(path); });
        }
        case SystemCall::path_remove_directory: {
            u32 at = call.i32(), length = call.i32();
            return with_path(call, path, fd, right_path_remove_directory, at, length,
                             LastLink::stays, [&] { return remove_directory(path); });
        }
        case SystemCall::path_unlink_file: {
            u32 at = call.i32(), length = call.i32();
            return with_path(call, path, fd, right_path_unlink_file, at, length, LastLink::stays,
                             [&] { return unlink_file(path); });
        }
        case SystemCall::path_filestat_get:
        case SystemCall::unstable_path_filestat_get: {
            u32 flags = call.i32(), at = call.i32(), length = call.i32(), to = call.i32();
            return with_path(
                call, path, fd, right_path_filestat_get, at, length, last_link(flags), [&] {
                    return path.place.node == 0
                               ? Errno::noent
                               : put_filestat(call, node_at(call.p, path.place.node), to,
                                              which == SystemCall::unstable_path_filestat_get);
                });
        }
        case SystemCall::path_filestat_set_times: {
            u32 flags = call.i32(), at = call.i32(), length = call.i32();
            u64 accessed = call.i64(), modified = call.i64();
            u32 times = call.i32();
            return with_path(call, path, fd, right_path_filestat_set_times, at, length,
                             last_link(flags),
                             [&] { return filestat_set_times(path, accessed, modified, times); });
        }
        case SystemCall::path_readlink: {
            u32 at = call.i32(), length = call.i32(), buffer = call.i32(), size = call.i32(),
                result_at = call.i32();
            return with_path(call, path, fd, right_path_readlink, at, length,
                             LastLink::follows_a_slash,
                             [&] { return readlink(path, buffer, size, result_at); });
        }
        default: {  // path_open
            OpenOptions options{};
            options.lookup = call.i32();
            u32 at = call.i32(), length = call.i32();
            options.oflags = call.i32();
            options.rights = call.i64();
            options.inheriting = call.i64();
            options.fdflags = call.i32();
            const u32 result_at = call.i32();
            return with_path(call, path, fd, right_path_open, at, length, last_link(options), [&] {
                Errno error = check_open(path, options);
                if (error == Errno::success) error = check_rights(path, options);
                if (error != Errno::success) return error;
                if (call.in(result_at, 4) == nullptr) return Errno::fault;
                u32 opened;
                error = open(path, options, opened);
                return error == Errno::success ? call.put<u32>(result_at, opened) : error;
            });
        }
    }
}

Errno open_path(Call& call, u32 fd, Name name, const OpenOptions& options, u32& opened) {
    PathCall path(call);
    Errno error = path.find(fd, right_path_open, name, last_link(options));
    if (error == Errno::success) error = check_open(path, options);
    if (error == Errno::success) error = check_rights(path, options);
    return error == Errno::success ? open(path, options, opened) : error;
}

}  // namespace gpurun::rt
