// The file system of a process: nodes, what is in them, and how paths lead to them. Nothing here
// knows of guests or descriptors; what is shared but the base, which nobody changes, is locked by
// whoever calls.
#pragma once

#include "abi/wasi.h"
#include "runtime/memory/arena.h"

namespace gpurun::rt {

using wasi::Errno;

// A process's side of system memory.
struct Owner {
    const Process& p;
    ProcessBlock* me;
    ProcessBlock* files;  // whose roots, copies and inode numbers it has: its own, or an ancestor's
};
inline Owner owner_of(const Process& p, ProcessBlock* me) {
    return {p, me, me->files != 0 ? at_handle<ProcessBlock>(p, me->files) : me};
}

inline Node* node_at(const Process& p, Handle node) { return at_handle<Node>(p, node); }
inline DirEntry* entries_of(const Process& p, const Node* dir) {
    return at_handle<DirEntry>(p, dir->content);
}

u64 realtime_ns(const Process& p);
u64 monotonic_ns(const Process& p);

// ---- nodes -------------------------------------------------------------------------

Handle make_node(const Owner& owner, NodeKind kind);  // 0: no memory
// Gives back a private node that nobody links to or has open.
void drop_node(const Owner& owner, Handle node);
// The process's own version of a node, made if need be, with the directories on the way to it. 0:
// no memory, or the node is not in the tree any more.
Handle own_node(const Owner& owner, Handle node);
// The version that the process sees.
Handle current_node(const Owner& owner, Handle node);

// ---- contents ----------------------------------------------------------------------

// Room for `count` elements of `element` bytes; false: no memory.
bool reserve(const Process& p, Node* node, u64 count, u64 element);
// A table of the first `count` blocks, at most table_blocks; false: no memory.
bool reserve_blocks(const Process& p, Node* node, u64 count);
// Where the handle of block `index` is, or null: the block is zeros.
Handle* slot_of(const Process& p, const Node* node, u64 index);
// What is in a slot. Blocks of cold files come while others read: pairs with who brings them.
inline Handle block_at(const Node* node, const Handle* slot) {
    return node->flags & node_is_cold ? load_shared(slot) : *slot;
}
// Where block `index` of a file is to be read, or null: zeros. `is_cold`: the host has it.
const u8* block_to_read(const Process& p, const Node* node, u64 index, bool& is_cold);
// The same to be written, of a private node; null: no memory, or cold.
u8* block_to_write(const Process& p, Node* node, u64 index, bool is_whole, bool& is_cold);
// Gives back the blocks from `from` on.
void free_blocks(const Process& p, Node* node, u64 from);
// Of a private node.
Errno set_size(const Process& p, Node* node, u64 size);

// ---- directories -------------------------------------------------------------------

struct Name {
    const u8* bytes;
    u32 length;
};
inline constexpr u32 no_entry = ~u32{0};
u32 find_entry(const Process& p, const Node* dir, Name name);  // position, or no_entry
// The first position with a greater serial number.
u32 first_entry_after(const Process& p, const Node* dir, u64 serial);
// An index of a private directory as it is now; if there is no memory for it, none.
void make_index(const Process& p, Node* dir);
void drop_index(const Process& p, Node* dir);
// Of a private directory; the name is new there.
Errno add_entry(const Process& p, Node* dir, Name name, Handle node);
void remove_entry(const Process& p, Node* dir, u32 position);

// ---- paths -------------------------------------------------------------------------

// What a path leads to. The name is in the scratch memory of the resolution.
struct Place {
    Errno error;
    Handle directory;        // where the last name stands
    Handle node;             // what has that name, or 0
    Name name;               // empty: the path ends in "." or "..", or is the directory itself
    bool must_be_directory;  // the path ends in a slash; with LastLink::stays it may yet be none
};

// Room for a path with the symbolic links in it resolved; every resolution needs one.
class Scratch {
public:
    explicit Scratch(const Process& p) : p_(p), block_(take_block(p, 2 * max_path)) {}
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    ~Scratch() { give_block(p_, block_, 2 * max_path); }
    u8* bytes() const { return block_ == 0 ? nullptr : at_handle<u8>(p_, block_); }

private:
    const Process& p_;
    Handle block_;
};

// What is wrong with the bytes of a path or of a symbolic link: NUL, not UTF-8, or absolute.
Errno check_text(const u8* text, u32 length);
// Whether a symbolic link at the end of a path is followed.
enum class LastLink : u32 {
    stays,            // what makes, removes and renames is about the link itself
    follows_a_slash,  // if there is a slash behind it
    follows,
};
// Never leaves `start`.
Place resolve(const Owner& owner, Handle start, const u8* path, u32 length, LastLink last_link,
              const Scratch& scratch);

}  // namespace gpurun::rt
