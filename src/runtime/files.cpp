// Nodes, contents and directories.
#include "runtime/files.h"

namespace gpurun::rt {
namespace {

u64 blocks_of(u64 size) { return (size + file_block - 1) / file_block; }

bool same_name(const Process& p, const DirEntry& entry, Name name) {
    if (entry.name_length != name.length) return false;
    const u8* bytes = at_offset<u8>(p, entry.name);
    for (u32 i = 0; i < name.length; i++)
        if (bytes[i] != name.bytes[i]) return false;
    return true;
}

u32 hash_of(Name name) {
    u32 hash = name_hash_start;
    for (u32 i = 0; i < name.length; i++) hash = name_hash(hash, name.bytes[i]);
    return hash;
}

// The private copy that was made of a node of the base, or 0.
Handle copy_of(const Owner& owner, Handle node) {
    Handle copy = owner.me->copies;
    while (copy != 0 && node_at(owner.p, copy)->origin != node)
        copy = node_at(owner.p, copy)->next_copy;
    return copy;
}

Handle copy_node(const Owner& owner, Handle from) {
    const Process& p = owner.p;
    const Node* source = node_at(p, from);
    Handle made = take_copy(p, sizeof(Node), reinterpret_cast<const u8*>(source), sizeof(Node));
    if (made == 0) return 0;
    Node* node = node_at(p, made);
    u64 element = source->kind == NodeKind::file        ? sizeof(Handle)
                  : source->kind == NodeKind::directory ? sizeof(DirEntry)
                                                        : 1;
    u64 used = source->content_count * element, size = used > least_block ? used : least_block;
    node->content = take_copy(p, size, at_handle<u8>(p, source->content), used);
    if (node->content == 0) {
        give_block(p, made, sizeof(Node));
        return 0;
    }
    node->content_capacity = u32(block_size(size) / element);
    node->origin = from;
    node->index = node->index_mask = 0;
    node->open_count = 0;
    node->flags &= ~node_is_changed;
    node->next_copy = owner.me->copies;
    owner.me->copies = made;
    return made;
}

// Whoever has the old node open goes on with the new one.
void replace_open(const Owner& owner, Handle old_node, Handle new_node) {
    Descriptor* descriptors = at_handle<Descriptor>(owner.p, owner.me->descriptors);
    for (u32 i = 0; i < owner.me->descriptor_count; i++) {
        if (descriptors[i].kind == DescriptorKind::closed || descriptors[i].node != old_node)
            continue;
        descriptors[i].node = new_node;
        node_at(owner.p, new_node)->open_count++;
    }
    Handle* roots = at_handle<Handle>(owner.p, owner.me->roots);
    for (u32 i = 0; i < system_of(owner.p).preopen_count; i++)
        if (roots[i] == old_node) roots[i] = new_node;
}

void free_blocks(const Process& p, Node* node, u64 from) {
    Handle* table = at_handle<Handle>(p, node->content);
    for (u64 i = from; i < node->content_count; i++) {
        if (table[i] > zero_block && !is_base(p, table[i])) give_block(p, table[i], file_block);
        table[i] = 0;
    }
    if (from < node->content_count) node->content_count = u32(from);
}

// Room for `count` elements of `element` bytes.
bool reserve(const Process& p, Node* node, u64 count, u64 element) {
    if (count <= node->content_capacity) return true;
    u64 size = count * element;
    if (size > (least_block << (heap_classes - 1))) return false;
    u64 used = node->content_count * element;
    Handle grown = take_copy(p, size, at_handle<u8>(p, node->content), used);
    if (grown == 0) return false;
    if (node->content != 0) give_block(p, node->content, node->content_capacity * element);
    node->content = grown;
    node->content_capacity = u32(block_size(size) / element);
    return true;
}

// A table for the first `count` blocks of a file.
bool reserve_blocks(const Process& p, Node* node, u64 count) {
    if (!reserve(p, node, count, sizeof(Handle))) return false;
    Handle* table = at_handle<Handle>(p, node->content);
    for (u64 i = node->content_count; i < count; i++) table[i] = zero_block;
    if (count > node->content_count) node->content_count = u32(count);
    return true;
}

}  // namespace

u64 realtime_ns(const Process& p) {
    const SystemHeader& system = system_of(p);
    return system.realtime + (monotonic_ns(p) - system.monotonic);
}

u64 monotonic_ns(const Process& p) {
    SystemHeader& system = system_of(p);
    u64 now = clock_ns(), start = load_shared(&system.device_time);
    if (start == 0) {
        start = compare_exchange(&system.device_time, u64{0}, now);
        if (start == 0) start = now;
    }
    return system.monotonic + (now > start ? now - start : 0);
}

// ---- nodes -------------------------------------------------------------------------

Handle make_node(const Owner& owner, NodeKind kind) {
    Handle made = take_zeroed(owner.p, sizeof(Node));
    if (made == 0) return 0;
    Node* node = node_at(owner.p, made);
    node->kind = kind;
    node->flags = node_is_changed;
    node->next_serial = 1;
    node->inode = owner.me->next_inode++;
    node->accessed = node->modified = node->changed = realtime_ns(owner.p);
    return made;
}

void drop_node(const Owner& owner, Handle handle) {
    const Process& p = owner.p;
    if (handle == 0 || is_base(p, handle)) return;
    Node* node = node_at(p, handle);
    if (node->link_count != 0 || node->open_count != 0) return;
    if (node->origin != 0) {
        Handle* link = &owner.me->copies;
        while (*link != 0 && *link != handle) link = &node_at(p, *link)->next_copy;
        if (*link == handle) *link = node->next_copy;
    }
    u64 element = 1;
    if (node->kind == NodeKind::file || node->kind == NodeKind::stream) {
        free_blocks(p, node, 0);
        element = sizeof(Handle);
    } else if (node->kind == NodeKind::directory) {
        for (u32 i = 0; i < node->content_count; i++) remove_entry(p, node, i);
        element = sizeof(DirEntry);
    }
    if (node->content != 0) give_block(p, node->content, node->content_capacity * element);
    give_block(p, handle, sizeof(Node));
}

Handle current_node(const Owner& owner, Handle node) {
    if (!is_base(owner.p, node)) return node;
    Handle copy = copy_of(owner, node);
    return copy != 0 ? copy : node;
}

Handle own_node(const Owner& owner, Handle node) {
    const Process& p = owner.p;
    node = current_node(owner, node);
    // From the top down: each turn copies the highest directory on the way that is the base's.
    // Ends: every turn makes one of finitely many copies, or gives up.
    while (is_base(p, node)) {
        Handle top = node, parent = node_at(p, top)->parent;
        while (parent != 0 && is_base(p, current_node(owner, parent))) {
            top = parent;
            parent = node_at(p, top)->parent;
        }
        Node* directory = parent == 0 ? nullptr : node_at(p, current_node(owner, parent));
        DirEntry* entry = nullptr;
        if (directory != nullptr) {
            for (u32 i = 0; i < directory->content_count && entry == nullptr; i++)
                if (entries_of(p, directory)[i].node == top) entry = entries_of(p, directory) + i;
            if (entry == nullptr) return 0;
        }
        Handle copy = copy_node(owner, top);
        if (copy == 0) return 0;
        if (directory != nullptr) {
            entry->node = copy;
            node_at(p, copy)->parent = current_node(owner, parent);
        }
        replace_open(owner, top, copy);
        if (top == node) return copy;
    }
    return node;
}

// ---- contents ----------------------------------------------------------------------

const u8* block_to_read(const Process& p, const Node* node, u64 index, bool& is_cold) {
    is_cold = false;
    if (index >= node->content_count) return nullptr;
    Handle block = at_handle<Handle>(p, node->content)[index];
    if (block > zero_block) return at_handle<u8>(p, block);
    is_cold = block == 0 && (node->flags & node_is_cold) != 0;
    return nullptr;
}

u8* block_to_write(const Process& p, Node* node, u64 index, bool is_whole, bool& is_cold) {
    const u8* old = block_to_read(p, node, index, is_cold);
    if (is_cold && !is_whole) return nullptr;
    is_cold = false;
    if (!reserve_blocks(p, node, index + 1)) return nullptr;
    Handle& block = at_handle<Handle>(p, node->content)[index];
    if (block > zero_block && !is_base(p, block)) return at_handle<u8>(p, block);
    Handle made =
        old != nullptr ? take_copy(p, file_block, old, file_block) : take_zeroed(p, file_block);
    if (made == 0) return nullptr;
    block = made;
    return at_handle<u8>(p, made);
}

Errno set_size(const Process& p, Node* node, u64 size) {
    if (size > max_file) return Errno::fbig;
    if (size < node->size) {
        u64 rest = size % file_block;
        bool is_cold;
        // What is cut off reads as zeros if the file grows again.
        if (rest != 0 && (block_to_read(p, node, size / file_block, is_cold) || is_cold)) {
            u8* block = block_to_write(p, node, size / file_block, false, is_cold);
            if (is_cold) return Errno::again;
            if (block == nullptr) return Errno::nospc;
            for (u64 i = rest; i < file_block; i++) block[i] = 0;
        }
        free_blocks(p, node, blocks_of(size));
    }
    node->size = size;
    return Errno::success;
}

// ---- directories -------------------------------------------------------------------

u32 find_entry(const Process& p, const Node* dir, Name name) {
    u32 hash = hash_of(name);
    const DirEntry* entries = entries_of(p, dir);
    if (dir->index != 0) {
        const u32* index = at_handle<u32>(p, dir->index);
        for (u32 i = hash & dir->index_mask; index[i] != 0; i = (i + 1) & dir->index_mask)
            if (entries[index[i] - 1].hash == hash && same_name(p, entries[index[i] - 1], name))
                return index[i] - 1;
        return no_entry;
    }
    for (u32 i = 0; i < dir->content_count; i++)
        if (entries[i].hash == hash && entries[i].node != 0 && same_name(p, entries[i], name))
            return i;
    return no_entry;
}

Errno add_entry(const Process& p, Node* dir, Name name, Handle node) {
    // Removed entries make room first; the order of the others stays.
    if (dir->content_count == dir->content_capacity && dir->live_entries < dir->content_count / 2) {
        DirEntry* entries = entries_of(p, dir);
        u32 kept = 0;
        for (u32 i = 0; i < dir->content_count; i++)
            if (entries[i].node != 0) entries[kept++] = entries[i];
        dir->content_count = kept;
    }
    if (dir->next_serial == ~u32{0}) return Errno::nospc;
    if (!reserve(p, dir, dir->content_count + u64{1}, sizeof(DirEntry))) return Errno::nospc;
    Handle text = take_copy(p, name.length, name.bytes, name.length);
    if (text == 0) return Errno::nospc;
    entries_of(p, dir)[dir->content_count++] = {node, hash_of(name), dir->next_serial++,
                                                name.length, u64(text) << handle_shift};
    dir->live_entries++;
    dir->modified = dir->changed = realtime_ns(p);
    return Errno::success;
}

void remove_entry(const Process& p, Node* dir, u32 position) {
    DirEntry& entry = entries_of(p, dir)[position];
    if (entry.node == 0) return;
    if (!is_base_offset(p, entry.name))
        give_block(p, Handle(entry.name >> handle_shift), entry.name_length);
    entry.node = 0;
    dir->live_entries--;
    dir->modified = dir->changed = realtime_ns(p);
}

}  // namespace gpurun::rt
