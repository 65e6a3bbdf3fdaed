// Reads clocks, makes and frees nodes, and keeps the copies that a process has of the base's nodes.
#include "runtime/fs/files.h"

namespace gpurun::rt {
namespace {

// ---- copies: a table by origin, open addressing, never more than half full -----------

u32 copy_place(const ProcessBlock* me, Handle origin) {
    u32 hash = origin * 0x9e3779b1u;
    return (hash ^ hash >> 15) & (me->copy_capacity - 1);
}

// Returns the place in the table where the copy of a node of the base is, or could be put.
u32 find_copy(const Owner& owner, Handle origin) {
    const Handle* copies = at_handle<Handle>(owner.p, owner.files->copies);
    u32 at = copy_place(owner.files, origin);
    while (copies[at] != 0 && node_at(owner.p, copies[at])->origin != origin)
        at = (at + 1) & (owner.files->copy_capacity - 1);
    return at;
}

// Returns the private copy that was made of a node of the base, or 0 if there is none.
Handle copy_of(const Owner& owner, Handle origin) {
    if (owner.files->copy_count == 0) return 0;
    return at_handle<Handle>(owner.p, owner.files->copies)[find_copy(owner, origin)];
}

bool make_room_for_copy(const Owner& owner) {
    ProcessBlock* me = owner.files;
    if (2 * me->copy_count < me->copy_capacity) return true;
    const Handle old_copies = me->copies;
    const u32 old_capacity = me->copy_capacity;
    const u32 capacity = old_capacity == 0 ? u32(least_block / sizeof(Handle)) : 2 * old_capacity;
    Handle made = take_zeroed(owner.p, capacity * sizeof(Handle));
    if (made == 0) return false;
    me->copies = made;
    me->copy_capacity = capacity;
    for (u32 i = 0; i < old_capacity; i++) {
        Handle copy = at_handle<Handle>(owner.p, old_copies)[i];
        if (copy == 0) continue;
        u32 at = find_copy(owner, node_at(owner.p, copy)->origin);
        at_handle<Handle>(owner.p, made)[at] = copy;
    }
    give_block(owner.p, old_copies, old_capacity * sizeof(Handle));
    return true;
}

void add_copy(const Owner& owner, Handle copy) {
    u32 at = find_copy(owner, node_at(owner.p, copy)->origin);
    at_handle<Handle>(owner.p, owner.files->copies)[at] = copy;
    owner.files->copy_count++;
}

// Removes a copy from the table. Copies behind it move up unless they are where they belong.
void remove_copy(const Owner& owner, Handle copy) {
    Handle* copies = at_handle<Handle>(owner.p, owner.files->copies);
    const u32 mask = owner.files->copy_capacity - 1;
    u32 gap = find_copy(owner, node_at(owner.p, copy)->origin);
    for (u32 at = (gap + 1) & mask; copies[at] != 0; at = (at + 1) & mask) {
        u32 wanted = copy_place(owner.files, node_at(owner.p, copies[at])->origin);
        if (((at - wanted) & mask) < ((at - gap) & mask)) continue;
        copies[gap] = copies[at];
        gap = at;
    }
    copies[gap] = 0;
    owner.files->copy_count--;
}

// Gives the copy of a small file a whole block: the only block of such a file of the base is as
// short as the file, and a copy may grow. Returns false if there is no memory.
bool own_short_block(const Process& p, Node* node) {
    if (node->kind != NodeKind::file || node->content_count != 1 || node->size >= file_block ||
        node->flags & (node_is_cold | node_is_deep))
        return true;
    Handle& block = *at_handle<Handle>(p, node->content);
    if (block <= zero_block) return true;
    block = take_copy(p, file_block, at_handle<u8>(p, block), node->size);
    return block != 0;
}

Handle copy_node(const Owner& owner, Handle from) {
    const Process& p = owner.p;
    const Node* source = node_at(p, from);
    if (!make_room_for_copy(owner)) return 0;
    Handle made = take_copy(p, sizeof(Node), reinterpret_cast<const u8*>(source), sizeof(Node));
    if (made == 0) return 0;
    Node* node = node_at(p, made);
    u64 element = source->kind == NodeKind::file        ? sizeof(Handle)
                  : source->kind == NodeKind::directory ? sizeof(DirEntry)
                                                        : 1;
    u64 used = source->content_count * element, size = used > least_block ? used : least_block;
    const bool is_cold = (source->flags & (node_is_cold | node_is_deep)) == node_is_cold;
    node->content = take_copy(p, size, at_handle<u8>(p, source->content), is_cold ? 0 : used);
    if (node->content == 0 || !own_short_block(p, node)) {
        give_block(p, node->content, size);
        give_block(p, made, sizeof(Node));
        return 0;
    }
    for (u32 i = 0; is_cold && i < source->content_count; i++)
        at_handle<Handle>(p, node->content)[i] =
            block_at(source, at_handle<Handle>(p, source->content) + i);
    node->content_capacity = u32(block_size(size) / element);
    node->origin = from;
    node->index = node->index_mask = 0;
    node->open_count = 0;
    node->flags &= ~node_is_changed;
    if (node->kind == NodeKind::directory) make_index(p, node);
    add_copy(owner, made);
    return made;
}

// Lets descriptors that have the old node open use the new one.
void replace_open(const Owner& owner, Handle old_node, Handle new_node) {
    Descriptor* descriptors = at_handle<Descriptor>(owner.p, owner.me->descriptors);
    for (u32 i = 0; i < owner.me->descriptor_count; i++) {
        if (descriptors[i].kind == DescriptorKind::closed || descriptors[i].node != old_node)
            continue;
        descriptors[i].node = new_node;
        node_at(owner.p, new_node)->open_count++;
    }
    Handle* roots = at_handle<Handle>(owner.p, owner.files->roots);
    for (u32 i = 0; i < system_of(owner.p).preopen_count; i++)
        if (roots[i] == old_node) roots[i] = new_node;
}

// Returns the entry of a node of the base in the process's version of its directory, or null if it
// was removed there.
DirEntry* entry_of(const Process& p, const Node* directory, Handle node) {
    const DirEntry& original =
        entries_of(p, node_at(p, node_at(p, node)->parent))[node_at(p, node)->position];
    u32 at = find_entry(p, directory, {at_offset<u8>(p, original.name), original.name_length});
    if (at == no_entry || entries_of(p, directory)[at].node != node) return nullptr;
    return entries_of(p, directory) + at;
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
    node->inode = owner.files->next_inode++;
    node->accessed = node->modified = node->changed = realtime_ns(owner.p);
    return made;
}

void drop_node(const Owner& owner, Handle handle) {
    const Process& p = owner.p;
    if (handle == 0 || is_base(p, handle)) return;
    Node* node = node_at(p, handle);
    if (node->link_count != 0 || node->open_count != 0) return;
    if (node->origin != 0) remove_copy(owner, handle);
    u64 element = 1;
    if (node->kind == NodeKind::file || node->kind == NodeKind::stream) {
        free_blocks(p, node, 0);
        element = sizeof(Handle);
    } else if (node->kind == NodeKind::directory) {
        for (u32 i = 0; i < node->content_count; i++) remove_entry(p, node, i);
        drop_index(p, node);
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
            entry = entry_of(p, directory, top);
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

}  // namespace gpurun::rt
