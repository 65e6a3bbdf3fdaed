// Finds, adds and removes entries of directories, and keeps the index by which they are found.
#include "runtime/fs/files.h"

namespace gpurun::rt {
namespace {

constexpr u32 min_indexed = 10;  // entries that there is room for; fewer are searched one by one

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

// Writes the position of an entry into its directory's index. The search for a free place ends
// because an index has more places than there can be entries.
void put_into_index(const Process& p, const Node* dir, u32 position) {
    u32* index = at_handle<u32>(p, dir->index);
    u32 at = entries_of(p, dir)[position].hash & dir->index_mask;
    while (index[at] != 0) at = (at + 1) & dir->index_mask;
    index[at] = position + 1;
}

// Makes room for one more entry, if need be by dropping those that were removed; the others keep
// their order. Returns false if there is no memory.
bool make_room(const Process& p, Node* dir) {
    if (dir->content_count < dir->content_capacity) return true;
    if (dir->live_entries < dir->content_count / 2) {
        DirEntry* entries = entries_of(p, dir);
        u32 kept = 0;
        for (u32 i = 0; i < dir->content_count; i++)
            if (entries[i].node != 0) entries[kept++] = entries[i];
        dir->content_count = kept;
    } else if (!reserve(p, dir, dir->content_count + u64{1}, sizeof(DirEntry))) {
        return false;
    }
    make_index(p, dir);
    return true;
}

}  // namespace

void make_index(const Process& p, Node* dir) {
    drop_index(p, dir);
    if (dir->content_capacity < min_indexed) return;
    // Half as large as the entries, the index has three times as many places as there can be
    // entries.
    u64 bytes = block_size(dir->content_capacity * sizeof(DirEntry)) / 2;
    dir->index = take_zeroed(p, bytes);
    if (dir->index == 0) return;
    dir->index_mask = u32(bytes / sizeof(u32)) - 1;
    for (u32 i = 0; i < dir->content_count; i++)
        if (entries_of(p, dir)[i].node != 0) put_into_index(p, dir, i);
}

void drop_index(const Process& p, Node* dir) {
    if (dir->index != 0) give_block(p, dir->index, (dir->index_mask + u64{1}) * sizeof(u32));
    dir->index = dir->index_mask = 0;
}

u32 find_entry(const Process& p, const Node* dir, Name name) {
    const u32 hash = hash_of(name);
    const DirEntry* entries = entries_of(p, dir);
    auto is_it = [&](u32 i) {
        return entries[i].hash == hash && entries[i].node != 0 && same_name(p, entries[i], name);
    };
    if (dir->index != 0) {
        const u32* index = at_handle<u32>(p, dir->index);
        for (u32 i = hash & dir->index_mask; index[i] != 0; i = (i + 1) & dir->index_mask)
            if (is_it(index[i] - 1)) return index[i] - 1;
        return no_entry;
    }
    for (u32 i = 0; i < dir->content_count; i++)
        if (is_it(i)) return i;
    return no_entry;
}

u32 first_entry_after(const Process& p, const Node* dir, u64 serial) {
    const DirEntry* entries = entries_of(p, dir);
    u32 low = 0, high = dir->content_count;
    while (low < high) {
        u32 middle = low + (high - low) / 2;
        if (entries[middle].serial > serial)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

Errno add_entry(const Process& p, Node* dir, Name name, Handle node) {
    if (dir->next_serial == ~u32{0} || !make_room(p, dir)) return Errno::nospc;
    Handle text = take_copy(p, name.length, name.bytes, name.length);
    if (text == 0) return Errno::nospc;
    entries_of(p, dir)[dir->content_count++] = {node, hash_of(name), dir->next_serial++,
                                                name.length, u64(text) << handle_shift};
    if (dir->index != 0) put_into_index(p, dir, dir->content_count - 1);
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
