// Reads and writes the contents of files and streams: blocks, found by a table or by a table of
// tables (abi/system.h).
#include "runtime/fs/files.h"

namespace gpurun::rt {
namespace {

u64 blocks_of(u64 size) { return (size + file_block - 1) / file_block; }

Handle* table_of(const Process& p, const Node* node) { return at_handle<Handle>(p, node->content); }

void give_if_own(const Process& p, Handle block) {
    if (block > zero_block && !is_base(p, block)) give_block(p, block, file_block);
}

// Gives a file that has outgrown its table a table of tables. Returns false if there is no memory.
bool deepen(const Process& p, Node* node) {
    Handle first = 0;
    if (node->content_count > 0) {
        if (!reserve_blocks(p, node, table_blocks)) return false;
        first = node->content;
    }
    Handle tables = take_zeroed(p, least_block);
    if (tables == 0) return false;
    if (first == 0) give_block(p, node->content, node->content_capacity * sizeof(Handle));
    node->content = tables;
    node->content_count = 1;
    node->content_capacity = least_block / sizeof(Handle);
    node->flags |= node_is_deep;
    table_of(p, node)[0] = first;
    return true;
}

// Returns table `number` of a deep node as the process's own, and makes it if there is none yet.
// Returns 0 if there is no memory.
Handle own_table(const Process& p, Node* node, u64 number) {
    if (!reserve(p, node, number + 1, sizeof(Handle))) return 0;
    while (node->content_count <= number) table_of(p, node)[node->content_count++] = 0;
    Handle& table = table_of(p, node)[number];
    if (table != 0 && !is_base(p, table)) return table;
    Handle made = take_block(p, file_block);
    if (made == 0) return 0;
    Handle* blocks = at_handle<Handle>(p, made);
    const Handle* old = at_handle<Handle>(p, table);
    for (u32 i = 0; i < table_blocks; i++)
        blocks[i] = table == 0 ? zero_block : block_at(node, old + i);
    table = made;
    return made;
}

// Returns where the handle of a block is to be written, or null if there is no memory.
Handle* slot_to_write(const Process& p, Node* node, u64 index) {
    if (!(node->flags & node_is_deep)) {
        if (index < table_blocks)
            return reserve_blocks(p, node, index + 1) ? table_of(p, node) + index : nullptr;
        if (!deepen(p, node)) return nullptr;
    }
    Handle table = own_table(p, node, index / table_blocks);
    return table == 0 ? nullptr : at_handle<Handle>(p, table) + index % table_blocks;
}

// Frees the tables of a deep node from block `from` on, and clears the rest of the table that the
// block is in, which is the process's own.
void free_tables(const Process& p, Node* node, u64 from) {
    for (u64 number = from / table_blocks; number < node->content_count; number++) {
        Handle& table = table_of(p, node)[number];
        u32 first = number * table_blocks < from ? u32(from % table_blocks) : 0;
        if (table != 0 && !is_base(p, table)) {
            Handle* blocks = at_handle<Handle>(p, table);
            for (u32 i = first; i < table_blocks; i++) {
                give_if_own(p, blocks[i]);
                blocks[i] = zero_block;
            }
            if (first == 0) give_block(p, table, file_block);
        }
        if (first == 0) table = 0;
    }
    u64 kept = (from + table_blocks - 1) / table_blocks;
    if (kept < node->content_count) node->content_count = u32(kept);
}

}  // namespace

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

bool reserve_blocks(const Process& p, Node* node, u64 count) {
    if (!reserve(p, node, count, sizeof(Handle))) return false;
    Handle* table = table_of(p, node);
    for (u64 i = node->content_count; i < count; i++) table[i] = zero_block;
    if (count > node->content_count) node->content_count = u32(count);
    return true;
}

Handle* slot_of(const Process& p, const Node* node, u64 index) {
    if (!(node->flags & node_is_deep))
        return index < node->content_count ? table_of(p, node) + index : nullptr;
    if (index / table_blocks >= node->content_count) return nullptr;
    Handle table = table_of(p, node)[index / table_blocks];
    return table == 0 ? nullptr : at_handle<Handle>(p, table) + index % table_blocks;
}

const u8* block_to_read(const Process& p, const Node* node, u64 index, bool& is_cold) {
    is_cold = false;
    const Handle* slot = slot_of(p, node, index);
    if (slot == nullptr) return nullptr;
    Handle block = block_at(node, slot);
    if (block == 0 && (node->flags & node_is_cold) != 0) {
        // A copy lacks blocks that the host sent after the copy was made: the base has them.
        const Node* base = node->origin == 0 ? node : node_at(p, node->origin);
        slot = base == node ? nullptr : slot_of(p, base, index);
        if (slot != nullptr) block = block_at(base, slot);
        is_cold = block == 0;
    }
    return block > zero_block ? at_handle<u8>(p, block) : nullptr;
}

u8* block_to_write(const Process& p, Node* node, u64 index, bool is_whole, bool& is_cold) {
    const u8* old = block_to_read(p, node, index, is_cold);
    if (is_cold && !is_whole) return nullptr;
    is_cold = false;
    Handle* slot = slot_to_write(p, node, index);
    if (slot == nullptr) return nullptr;
    if (*slot > zero_block && !is_base(p, *slot)) return at_handle<u8>(p, *slot);
    Handle made =
        old != nullptr ? take_copy(p, file_block, old, file_block) : take_zeroed(p, file_block);
    if (made == 0) return nullptr;
    *slot = made;
    return at_handle<u8>(p, made);
}

void free_blocks(const Process& p, Node* node, u64 from) {
    if (node->flags & node_is_deep) return free_tables(p, node, from);
    Handle* table = table_of(p, node);
    for (u64 i = from; i < node->content_count; i++) give_if_own(p, table[i]);
    if (from < node->content_count) node->content_count = u32(from);
}

Errno set_size(const Process& p, Node* node, u64 size) {
    if (size > max_file) return Errno::fbig;
    if (size < node->size) {
        u64 rest = size % file_block, kept = blocks_of(size);
        bool is_cold;
        // Bytes that are cut off must read as zeros if the file grows again.
        if (rest != 0 && (block_to_read(p, node, size / file_block, is_cold) || is_cold)) {
            u8* block = block_to_write(p, node, size / file_block, false, is_cold);
            if (is_cold) return Errno::again;
            if (block == nullptr) return Errno::nospc;
            for (u64 i = rest; i < file_block; i++) block[i] = 0;
        }
        bool cuts_table = kept % table_blocks != 0 && slot_of(p, node, kept) != nullptr;
        if (node->flags & node_is_deep && cuts_table && !slot_to_write(p, node, kept))
            return Errno::nospc;
        free_blocks(p, node, kept);
    }
    node->size = size;
    return Errno::success;
}

}  // namespace gpurun::rt
