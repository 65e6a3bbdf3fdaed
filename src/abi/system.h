// The system memory of a device: files, descriptors, streams and what else processes have beside
// their words and memories. One arena for all processes of a launch, in bytes; places in it are
// handles (byte offset >> handle_shift) or byte offsets, never pointers, so that it can be copied
// between devices and the host.
//
//   [0, base_end)    the header, and what the host put there before the launch: the base of the
//                    file system, arguments, environment. No process changes it.
//   [base_end, bump) the device heap: blocks of 64 << class bytes, free ones in lists.
//   [size, …)        blocks of cold files, brought by the host while processes run; the base's.
//
// A file system is a tree of nodes. The base's nodes are shared by all processes. A process that
// changes something gets copies of its own, of the file and of the directories on the way to it;
// what lies outside the heap is the base's. A directory's entries are in the order of
// their serial numbers, which never come back: what fd_readdir gives out as cookies. A file's
// contents are blocks of file_block bytes (the only block of a small file of the base may be as
// short as the file) by way of a table of handles; 0 stands for zeros or, in a node with
// node_is_cold, for what the host has yet to bring. zero_block stands for zeros in both; so does
// what lies past the table's end. A table has at most table_blocks handles: a file with more has
// node_is_deep, and a table of such tables, where 0 stands for zeros.
#pragma once

#include "base/ints.h"

namespace gpurun {

using Handle = u32;  // 0: none
inline constexpr u32 handle_shift = 6;
inline constexpr u64 least_block = u64{1} << handle_shift;
inline constexpr u32 heap_classes = 26;  // 64 bytes to 2 GiB
inline constexpr u32 heap_shards = 512;
inline constexpr u64 file_block = 4096;
inline constexpr Handle zero_block = 1;  // in the header, so no block is there
inline constexpr u32 table_blocks = 1024;
static_assert(table_blocks * sizeof(Handle) == file_block);

inline constexpr u32 max_descriptors = 1024;   // of a process: then EMFILE
inline constexpr u32 max_path = 4096;          // bytes: then ENAMETOOLONG
inline constexpr u32 max_name = 255;           // bytes of one name: then ENAMETOOLONG
inline constexpr u32 max_symlinks = 32;        // followed in one resolution: then ELOOP
inline constexpr u64 max_file = u64{1} << 40;  // bytes: then EFBIG
inline constexpr u32 max_preopens = 64;        // the host refuses more

// As output_limit: nobody takes output away before the end.
inline constexpr u64 output_stays = ~u64{0};

struct SystemHeader {
    // Written by the host before the launch.
    u64 size;      // where the heap ends at the latest
    u64 base_end;  // first byte of the heap
    u32 preopen_count;
    Handle preopens;  // Preopen[]
    u32 argument_count;
    u32 argument_bytes;  // with a NUL after each
    Handle arguments;    // the strings, one after another
    u32 environment_count;
    u32 environment_bytes;
    Handle environment;
    u32 has_numbered_arguments;  // "{}" in an argument is the process's number
    u32 process_count;
    Handle stdin_node;  // what every process reads, or 0: nothing; live: a stream of the base
    u32 is_live;        // streams go to and from the host while the process runs
    u32 keeps_files;    // the host wants the changed files of processes that ended
    u32 random_key[8];
    Handle inputs;            // InputEntry[process_count], or 0: all have the same
    u64 output_limit;         // bytes in a standard stream before the host takes them away
    u64 realtime, monotonic;  // the host's clocks at the launch, ns
    // Written by the device.
    u64 device_time;  // its clock at the launch, ns; 0: nobody has looked yet
    u64 bump;         // first byte that was never allocated
    u64 in_use;       // bytes of the heap that are allocated
    // tag << 32 | handle of the first free block. Lanes use different shards, so that they seldom
    // wait for each other.
    u64 free_lists[heap_shards][heap_classes];
    // A ring of records of debug_* calls and traced ones (DebugRecord[debug_capacity]), which the
    // host empties, or the mailbox warp of a machine. Calls wait for room.
    u64 debug_count;
    u64 debug_taken;    // records that went to the host; theirs
    u64 debug_dropped;  // those that found no room all the same
    Handle debug;
    u32 debug_capacity;  // written by the host, as is what follows
    u32 terminals;       // bit n: standard stream n is a terminal
    u32 is_traced;       // every call leaves a DebugRecord
    u64 machine;         // byte offset of the MachineHeader (abi/machine.h), or 0: there is none
};
static_assert(sizeof(SystemHeader) ==
              8 * 2 + 4 * 13 + 4 * 8 + 4 + 8 * 6 + 8 * heap_shards * heap_classes + 48);

// What a process has of its own, where they are not all alike.
struct InputEntry {
    u32 number;  // what it is told that it is
    u32 argument_count;
    u32 argument_bytes;
    Handle stdin_node;  // 0: the header's
    u64 arguments;      // byte offset
};
static_assert(sizeof(InputEntry) == 24);

// A directory that a process has open from the start, from descriptor 3 on.
struct Preopen {
    Handle node;
    u32 is_writable;
    u32 name_length;
    u32 padding;
    u64 name;  // byte offset
};
static_assert(sizeof(Preopen) == 24);

enum class NodeKind : u32 { file = 1, directory, symlink, stream };

inline constexpr u32 node_is_cold = 1;      // absent blocks are with the host
inline constexpr u32 node_is_ended = 2;     // streams: no more input will come
inline constexpr u32 node_is_changed = 4;   // contents or times, since it was copied or made
inline constexpr u32 node_is_terminal = 8;  // streams
inline constexpr u32 node_is_deep = 16;     // content: a table of tables
inline constexpr u32 node_is_pipe = 32;     // streams: content is a PipeBlock (abi/machine.h)
inline constexpr u32 node_is_null = 64;     // streams: nothing comes, and what goes is dropped

struct Node {
    NodeKind kind;
    u32 flags;
    Handle parent;  // directories, and all nodes of the base; 0: the root of a preopen
    Handle origin;  // private copies: the node of the base
    u32 link_count;
    u32 open_count;  // descriptors; a private node goes when both are 0
    u32 position;    // base: of its name in the entries of the parent
    // Files: table of blocks, or of tables. Directories: DirEntry[]. Symlinks: the text.
    Handle content;
    u32 content_count, content_capacity;  // of elements: handles, entries, bytes
    u32 next_serial;                      // directories; from 1 on
    u32 live_entries;                     // directories: those that are not removed
    Handle index;                         // directories: u32[index_mask + 1], or 0
    u32 index_mask;
    u32 host_id;  // base: the host's number for it
    u32 padding;
    u64 size;  // bytes; directories: 0
    u64 inode;
    u64 accessed, modified, changed;  // ns
    u64 padding_2[3];
};
static_assert(sizeof(Node) == 128);

// Removed entries have node 0 until the directory is compacted.
struct DirEntry {
    Handle node;
    u32 hash;  // name_hash
    u32 serial;
    u32 name_length;
    u64 name;  // byte offset; below base_end: the base's
};
static_assert(sizeof(DirEntry) == 24);

// FNV-1a. Directories of some size have an index: open addressing from hash & mask on, of positions
// in the entries plus 1. Removed entries keep their place in it.
constexpr u32 name_hash_start = 2166136261u;
constexpr u32 name_hash(u32 hash, u8 byte) { return (hash ^ byte) * 16777619u; }

enum class DescriptorKind : u32 { closed, file, directory, stream };

struct Descriptor {
    DescriptorKind kind;
    Handle node;
    u64 offset;
    u64 rights, inheriting;
    u32 flags;        // fdflags
    u32 preopen;      // its number + 1, or 0
    Handle cell = 0;  // an OffsetCell in place of `offset`, shared with who inherited it; or 0
    u32 padding = 0;
};
static_assert(sizeof(Descriptor) == 48);

struct OffsetCell {
    u64 offset;
    u32 users;
    u32 padding;
};
static_assert(sizeof(OffsetCell) == 16);

// What a process wants of the host when its thread is in ThreadState::host.
enum class Request : u32 {
    none,
    input,   // more of standard input
    output,  // standard output or error is to be taken away
    block,   // request_node's block request_at
    call,    // host function request_at, as HostCallBlock request_node says
    sync,    // file request_node is to be written through to the host
    // Of the resident machine, with ThreadState::blocked: the call is made again afterwards.
    time,       // thread_wait_until
    pipe_data,  // of pipe request_node
    pipe_room,  // of pipe request_node, for request_at bytes
    child,      // request_at is its pid, or 0: any
    pipes,      // several; request_at is poll_turn_of() before it looked at them
    show,       // the host is to look at the process, which a fault has ended; nothing follows
};

// A call of a host function, while the process waits for it.
struct HostCallBlock {
    u32 status;                  // host_call_*
    u32 result_words;            // written by the host
    u64 memory_at, memory_size;  // the caller's memory 0, in the process's bytes
    // Argument words follow; the host puts result words in their place.
};
static_assert(sizeof(HostCallBlock) == 24);
inline constexpr u32 host_call_asked = 0, host_call_done = 1, host_call_failed = 2;

// What a thread's system call is about, while it is not done. The first thread of a process has the
// one in its block.
struct CallState {
    Request request;
    Handle request_node;
    u64 request_at;
    u64 progress;        // of a call that is done in pieces
    u32 request_failed;  // the host could not fulfil it
    u32 seen_closes;     // `closes` of its process when it began to wait
};
static_assert(sizeof(CallState) == 32);

struct ProcessBlock : CallState {
    u32 id;
    u32 exit_code;
    Handle descriptors;  // Descriptor[]
    u32 descriptor_count;
    u32 descriptor_capacity;
    Handle roots;   // Handle[preopen_count]: the process's version of each preopen's root
    Handle copies;  // Handle[copy_capacity]: private copies, by what they are copies of
    Handle input, output, error;  // nodes of the standard streams
    u64 random_counter;
    u64 next_inode;
    Handle guest_blocks;  // of the import module gpu
    u32 guest_block_count;
    u32 argument_count;
    u32 argument_bytes;
    u64 arguments;  // byte offset: strings with a NUL after each
    u32 copy_count;
    u32 copy_capacity;  // a power of two, or 0
    // Resident machines (abi/machine.h).
    u64 environment;  // byte offset
    u32 environment_count, environment_bytes;
    Handle strings;  // where arguments and environment are, or 0: with the base
    u32 string_bytes;
    Handle files;    // the block whose roots and copies it shares, or 0: its own
    u32 file_users;  // processes that share this block's, itself among them while it lives
    u32 file_lock;   // of those
    u32 entry;       // index of its ProcessEntry
    u32 was_shared;  // others had its files or descriptors when it last looked
    u32 closes;      // of pipes, while it had several threads
};
static_assert(sizeof(ProcessBlock) == 168);

enum class DebugKind : u32 { i32 = 1, i64, f32, f64, boolean, text, call, ended };

inline constexpr u32 debug_text_bytes = 104;
struct DebugRecord {
    u32 process;
    DebugKind kind;
    u64 value;  // text: its length, of which debug_text_bytes are kept at the most; call: its
                // number
    u8 text[debug_text_bytes];  // call: a TracedCall; ended: a FaultEnding
    u64 turn;                   // its number + 1, once all of it is there
};
static_assert(sizeof(DebugRecord) == 128);

// How a fault ended a process of a machine: a trap, or the end of its fuel.
inline constexpr u32 max_fault_frames = 21;  // those further out are left out
struct FaultEnding {
    u32 ending;  // Ending (abi/machine.h)
    u32 code;    // trap
    u32 program;
    u32 is_child;  // 1: another process started it
    u32 frame_count;
    u32 positions[max_fault_frames];  // of its frames in the program's code, innermost first
};
static_assert(sizeof(FaultEnding) <= debug_text_bytes);

// A system call that has ended. system_calls.def says which of its arguments lead to what.
inline constexpr u32 traced_words = 14, traced_text_bytes = 32;
struct TracedCall {
    u32 arguments[traced_words];
    u32 result;
    u32 has_result;   // 0: it did not return
    u32 stored;       // number that it left in the guest's memory
    u32 text_length;  // of which traced_text_bytes are kept at the most
    u8 text[traced_text_bytes];
};
static_assert(sizeof(TracedCall) == debug_text_bytes);

}  // namespace gpurun
