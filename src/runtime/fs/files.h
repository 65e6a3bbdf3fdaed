// The file system of a process: nodes, their contents, and how paths lead to them. Nothing here
// knows of guests or descriptors. Callers lock what is shared, except the base, which nobody
// changes.
#pragma once

#include "abi/wasi.h"
#include "runtime/memory/arena.h"

namespace gpurun::rt {

using wasi::Errno;

// A process and its blocks in system memory.
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

// Makes a private node. Returns 0 if there is no memory.
Handle make_node(const Owner& owner, NodeKind kind);
// Frees a private node that nobody links to or has open.
void drop_node(const Owner& owner, Handle node);
// Returns the process's own version of a node, and makes it if there is none yet, with the
// directories on the way to it. Returns 0 if there is no memory, or the node is no longer in the
// tree.
Handle own_node(const Owner& owner, Handle node);
// Returns the version of a node that the process sees: its own copy, or the node itself.
Handle current_node(const Owner& owner, Handle node);

// ---- contents ----------------------------------------------------------------------

// Makes room for `count` elements of `element` bytes. Returns false if there is no memory.
bool reserve(const Process& p, Node* node, u64 count, u64 element);
// Makes a table of the first `count` blocks, at most table_blocks. Returns false if there is no
// memory.
bool reserve_blocks(const Process& p, Node* node, u64 count);
// Returns where the handle of block `index` is, or null if there is no such place: the block is
// all zeros.
Handle* slot_of(const Process& p, const Node* node, u64 index);
// Returns the handle in a slot. Blocks of cold files come while others read: pairs with the store
// of those who write them (mailbox.cpp, and the host).
inline Handle block_at(const Node* node, const Handle* slot) {
    return node->flags & node_is_cold ? load_shared(slot) : *slot;
}
// Returns where block `index` of a file is to be read, or null if it is all zeros or if the host
// still has it, which sets `is_cold`.
const u8* block_to_read(const Process& p, const Node* node, u64 index, bool& is_cold);
// Returns where block `index` of a private node is to be written, or null if there is no memory or
// the host still has it, which sets `is_cold`.
u8* block_to_write(const Process& p, Node* node, u64 index, bool is_whole, bool& is_cold);
// Frees the blocks from `from` on.
void free_blocks(const Process& p, Node* node, u64 from);
// Sets the size of a private node; blocks behind its end are freed.
Errno set_size(const Process& p, Node* node, u64 size);

// ---- directories -------------------------------------------------------------------

struct Name {
    const u8* bytes;
    u32 length;
};
inline constexpr u32 no_entry = ~u32{0};
// Returns the position of the entry of that name, or no_entry.
u32 find_entry(const Process& p, const Node* dir, Name name);
// Returns the first position with a greater serial number.
u32 first_entry_after(const Process& p, const Node* dir, u64 serial);
// Makes an index of a private directory as it is now. Without memory for it there is none.
void make_index(const Process& p, Node* dir);
void drop_index(const Process& p, Node* dir);
// Adds an entry to a private directory, which has none of that name yet.
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

// Memory for a path with its symbolic links resolved. Every resolution needs one.
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

// Checks the bytes of a path or of a symbolic link. Returns an error if they have a NUL, are not
// UTF-8, or are an absolute path.
Errno check_text(const u8* text, u32 length);
// Says if a symbolic link at the end of a path is followed.
enum class LastLink : u32 {
    stays,            // what makes, removes and renames is about the link itself
    follows_a_slash,  // if there is a slash behind it
    follows,
};
// Finds what a path leads to, from `start`, which it never leaves.
Place resolve(const Owner& owner, Handle start, const u8* path, u32 length, LastLink last_link,
              const Scratch& scratch);

}  // namespace gpurun::rt
