// The resident machine: one launch that runs until it is told to park, and what it keeps in memory.
//
// Its tables lie in system memory (abi/system.h) between the base of the file system and the heap.
// Programs, and the words and linear memories of processes, lie in *page memory*: a second piece of
// device memory, in pages that the device hands out itself. Places in either are byte offsets, so
// that a machine that has parked goes on wherever it is launched again.
//
//   a process (ProcessEntry) has a block in system memory, one slot in page memory and tasks;
//   a task (TaskEntry) is a guest thread: words of its own, the memories of its process;
//   a program (ProgramEntry) is what processes are made of, and has queues of tasks that are ready.
//
// Warps of a launch, by number:
//
//   0       mailbox  the only one that touches the rings: carries out the host's messages, sends it
//                    output, ends of processes and requests for blocks of files
//   1       clock    unblocks tasks whose deadline has come, adds up statistics
//   2 on    workers  take ready tasks of one program, one a lane, and run them for a slice
//
// States of a task. It is in one place at a time, and whoever takes it from there owns it; its
// words are only touched by its owner:
//
//          start_process                 take_tickets                     end_task
//    free ───────────────▶    ready    ───────────────▶     running     ───────────▶ free
//          make_thread     in a queue   slice is over     on a lane, or
//                          of its      ◀───────────────   in the hands
//                          program       make_ready       of a warp
//                             ▲                               │
//                             │ wake: what it waits for       │ park
//                             │ unblock: a deadline, an end   ▼
//                             └────────────────────────    blocked
//                                                        in a wait bucket
//
// Who may change what. A lock is taken for as long as it takes to change a few words; their order
// is in runtime/memory/lock.h. Fields that are not named are written by who makes the entry, before
// others can find it.
//
//   TaskEntry      its owner, but
//                    state to and from blocked, wait_key, wake,
//                    next_waiting, previous_waiting         its bucket's lock; in waits_for_move
//                                                           its process's
//                    next_of_process, previous_of_process   the lock of its process
//                    poll_turn                              anybody, atomically
//   ProcessEntry   first_child, first_zombie, first_task, tasks, quiet,
//                  on_lanes, waits_for_move, next_tid       its lock
//                  parent, siblings, state alive to zombie  its parent's lock
//                  ending                                   the first to exchange it: claim_end
//                  bytes_at, bytes_size                     grow_task, while no task of it runs
//                  time_used, priority                      anybody, atomically
//   RunQueue       head, tail                               anybody, atomically
//                  a slot                                   who has its ticket
//   WaitBucket     all                                      its lock
//   PipeBlock      ends; poller, to be cleared              anybody, atomically
//                  all else                                 its lock
//   PageHeader     all                                      its lock
//   WarpEntry      all                                      its warp
//   HostStream     all                                      the mailbox warp
//   Mailbox        tail of a ring                           who writes it
//                  head of a ring                           who reads it
//   MachineHeader  stats                                    the clock warp
//                  scratch, share, next_cold_block,
//                  taken_host_zombies                       the mailbox warp
//                  stop                                     the mailbox warp; the last to park
//                  counters and lists                       anybody, atomically
#pragma once

#include "abi/burst.h"
#include "abi/layout.h"
#include "abi/system.h"
#include "base/ints.h"

namespace gpurun {

inline constexpr u32 max_programs = 256;  // then loading one fails
inline constexpr u32 max_program_name = 64;
inline constexpr u32 max_spawn_bytes = 64 << 10;  // arguments and environment: then E2BIG
inline constexpr u32 wait_buckets = 1 << 12;
inline constexpr u32 priorities = 3;  // high, normal, low
inline constexpr u32 normal_priority = 1;
// Queues of a program, the best first. Tasks that have used up their slice come after those of
// their priority that have just begun, or have waited for something: these wait for a few slices at
// the most, however many never yield.
inline constexpr u32 queue_levels = priorities + 1;
constexpr u32 queue_level(u32 priority, bool used_slice) {
    return priority + 1 >= priorities ? queue_levels - 1 : priority + u32(used_slice);
}
inline constexpr u32 pipe_bytes = 64 << 10;
inline constexpr u32 pipe_atomic = 4096;       // writes up to that are not torn
inline constexpr u32 max_host_streams = 4096;  // pipes between host and device
inline constexpr u32 page_shift = 12;
inline constexpr u32 page_orders = 28;  // blocks of 1 << order pages: up to 512 GiB
inline constexpr u64 no_deadline = ~u64{0};
// Stacks begin with so many slots, and on GPUs those are in the lanes' local memory; a process that
// needs more goes on with more, which is slower.
inline constexpr u32 resident_stack_slots = 2048;

inline constexpr u32 mailbox_warp = 0, clock_warp = 1, first_worker = 2;

// ---- tables ------------------------------------------------------------------------

// A queue of ready tasks (machine/queue.h), with one slot more than there are tasks at the least.
struct RunQueue {
    u64 slots_at;  // in page memory: u64[mask + 1], of zeros at first
    u32 mask;
    u32 padding;
    u32 head, padding_2[15];  // the next ticket to be taken
    u32 tail, padding_3[15];  // the next ticket to be given out
};
static_assert(sizeof(RunQueue) == 16 + 128);

enum class ProgramState : u32 { free, loading, ready };

// What a module is for the machine: how its processes begin. Written by the host, in the message
// that brings it.
struct ProgramInfo {
    u32 number;  // index in the table
    u32 name_length;
    u8 name[max_program_name];
    u64 code_bytes;      // of the blob: code first,
    u64 template_words;  // then the words of a fresh process (u32 each), stack and all,
    u64 template_bytes;  // then its memories up to the last byte that is not zero
    u64 memory_bytes;    // what a process has of them at first
    u32 thread;          // word indices, as in BurstPart
    u32 stack, stack_end;
    u32 most_stack_slots;
    u32 most_frame_slots;  // of its functions
    u32 thread_entry;      // position of wasi_thread_start, or 0: its processes have one thread
    u32 is_watched;
    u32 alternates;  // as in NativeParams
    SystemStubs system;
    u32 memory;            // the record of its only memory, or 0: it has more, or none
    NativeEntries native;  // nothing can be checked of what they say: the host made them
    WordRange ranges[burst_ranges];
};
static_assert(sizeof(ProgramInfo) == 8 + max_program_name + 6 * 8 + 12 * 4 + burst_ranges * 8);

inline constexpr u32 spare_shards = 16;

struct ProgramEntry {
    ProgramState state;
    u32 padding;
    ProgramInfo info;
    u64 code_at, words_at, bytes_at;  // page memory
    u64 blob_at, blob_bytes;
    u64 words_size, slot_size;  // bytes of a slot: words first, then memories
    // Slots that nobody uses: tag << 32 | page, or 0; linked in word 0. Lanes use different ones of
    // the lists, so that they seldom get in each other's way.
    u64 spares[spare_shards];
    u32 dirty_shift;
    u32 spare_count;  // in all lists
    u32 last_shard;   // the list that was last given one
    u32 padding_2;
    RunQueue queues[queue_levels];
};

enum class ProcessState : u32 { free, alive, zombie };

// How a process ended: what `wait` tells.
enum class Ending : u32 { exited, trapped, killed, out_of_fuel };

inline constexpr u32 host_parent = ~u32{0};  // ProcessEntry::parent: the host asked for it

struct ProcessEntry {
    // Its lock's: the lists of its children and of its tasks, and what says who is on them.
    u32 lock;
    ProcessState state;
    u32 pid;
    u32 first_child, first_zombie;  // indices + 1, linked by next_sibling
    u32 first_task;                 // index + 1
    u32 tasks;
    u32 quiet;           // index + 1 of the task whose memory moves; the others stay off the lanes
    u32 on_lanes;        // counted if its program has threads
    u32 waits_for_move;  // tasks that wait for that: index + 1, linked by next_waiting
    // Its parent's lock's.
    u32 parent;  // pid, 0: nobody, or host_parent
    u32 next_sibling, previous_sibling;
    // Written before it begins.
    u32 program;
    Handle block;
    u32 request;  // the host's number for it
    u32 priority;
    u32 next_tid;
    u32 is_raw;  // nothing was ever made ready in its slot
    u32 had_children;
    u64 slot_at;     // page memory
    u64 bytes_at;    // its memories: in the slot, or elsewhere if they outgrew it
    u64 bytes_size;  // of an extent of their own, or 0
    u64 fuel;        // ~0: as the program has it
    // Set once, by whoever is first to end it: (1 + Ending) << 32 | code, trap or signal. Before
    // that its pid: whoever means another process that had the entry changes nothing.
    u64 ending;
    u64 started, ended, time_used;  // ns
    u32 trap_pc;
    u32 next_free;  // in the list of free entries, or of zombies of the host: index + 1
};
static_assert(sizeof(ProcessEntry) == 20 * 4 + 8 * 8 + 8);

enum class TaskState : u32 { free, ready, running, blocked };

// Why a blocked task goes on.
enum class Wake : u32 { none, woken, timed_out, ended };

inline constexpr u32 slot_is_used = 1, slot_is_new = 2;

struct TaskEntry {
    TaskState state;  // a blocked task's has the number of its bucket, too (machine/machine.h)
    u32 process;
    u32 tid;
    u32 words_pages;  // of an extent of its own, or 0: they are in the process's slot
    u64 words_at;     // page memory
    // The bucket's lock's.
    u64 wait_key;
    u32 next_waiting, previous_waiting;  // index + 1
    Wake wake;
    // Whoever's the task is.
    u32 was_on_lane;  // 1: it was on a lane when the machine parked, and on none since
    // The process's lock's.
    u32 next_of_process, previous_of_process;  // index + 1
    u32 next_free;                             // index + 1
    u32 stack_slots;
    Handle call;    // its CallState, or 0: the process's
    u32 is_fresh;   // slot_is_*: its words and memories are yet to be made; or 0
    u32 poll_turn;  // grows when it is to look again at the pipes that it polls
    u32 frames;     // slots that they take of its stack, if that was on a lane: whole steps
};
static_assert(sizeof(TaskEntry) == 80);

struct WaitBucket {
    u32 lock;
    u32 count;
    u32 first, last;  // index + 1
};
static_assert(sizeof(WaitBucket) == 16);

// Where in its turn a warp is.
enum class WarpPhase : u32 { begin, take, prepare, run, leave, grow, rest };

// What a warp of a launch does: written by itself.
struct WarpEntry {
    u64 heartbeat;              // when it last got on with something, ns of the device's clock
    u64 busy_lane_ns, lane_ns;  // since boot
    u64 latest;                 // the longest time between two beats, ns
    u32 lanes_busy;
    u32 phase;         // WarpPhase
    u32 latest_phase;  // at the end of that time
    u32 padding[5];
};
static_assert(sizeof(WarpEntry) == 64);

// A pipe, with or without an end at the host.
struct PipeBlock {
    u32 lock;         // of what follows, but `ends`
    u32 host_stream;  // number + 1, or 0
    // Descriptors: readers, and writers << 32; the host's end counts as one. In one word, so that
    // of all who close theirs one is the last.
    u64 ends;
    u64 read, written;  // bytes since it was made; the buffer holds what is between
    Handle buffer;      // pipe_bytes
    u32 poller;         // a task that polls several, this one among them: index + 1; or any_poller
    u32 padding[6];
};
static_assert(sizeof(PipeBlock) == 64);
inline constexpr u32 any_poller = ~u32{0};  // there is more than one
inline constexpr u64 pipe_reader = 1, pipe_writer = u64{1} << 32;

// A pipe that the host has one end of.
struct HostStream {
    Handle node;   // 0: nobody has used it yet
    u32 is_input;  // the host writes it
    u64 reported;  // input: what the host knows was read of it; output: 1 once it knows that
                   // nobody writes it
};
static_assert(sizeof(HostStream) == 16);

struct PageHeader {
    u64 pages;       // of page memory; this header and the tags come first
    u64 first_page;  // that can be had
    u64 used_pages;
    u32 lock;
    u32 padding;
    u64 free_lists[page_orders];  // page + 1 of the first free block, linked in the blocks
    // Then a tag for each page, a byte: 0x80 | order at the start of a free block.
};

// What `--stats` shows; the device writes it now and then.
struct MachineStats {
    u64 sequence;  // odd while it is being written
    u64 now;       // ns of the device's clock
    u64 processes, tasks, ready, blocked;
    u64 spawned, ended;
    u64 lanes, lanes_busy;
    u64 busy_lane_ns, lane_ns;  // since boot
    u64 page_bytes, page_bytes_used, heap_bytes, heap_bytes_used;
    u64 heartbeat_age, heartbeat_latest;  // ns: of the slowest warp now, and ever
    u64 slowest_warp;                     // that ever was: its number, and its WarpPhase << 32
};

struct MachineHeader {
    // Written by the host before boot; byte offsets in system memory.
    u64 programs, processes, tasks, deadlines, buckets, warps, host_streams;  // of the tables below
    u32 process_count, task_count;  // entries of the tables; number 0 is not used
    u32 warp_count, lanes;          // of the launch
    u64 slice_ns;
    u32 share;         // percent of the time that warps may be busy
    u32 shows_faults;  // 1: the host wants to see processes that a fault ends. The host clears this
                       // while the machine is parked, once it has seen enough.
    u64 cold_blocks_end;  // blocks of cold files lie from SystemHeader::size to here
    // Written by the device.
    u64 next_cold_block;  // where the next block of a cold file goes; written by the host before
                          // boot
    u64 free_processes, free_tasks;  // tag << 32 | index + 1
    u32 processes_used, tasks_used;  // entries that were ever in use
    u32 stop;                        // what warps look at: stop_*
    u32 host_zombies;        // index + 1 of the newest process whose end the host is to know
    u32 taken_host_zombies;  // the mailbox warp's: the newest of those that it took from there
    u32 poll_turn;           // grows when all who poll several pipes are to look again
    u32 alive, sleeping;     // processes; tasks with a deadline
    u32 leaving;             // processes that have ended, and have things yet
    u32 padding_3;
    u64 spawned, ended, blocked_tasks, spare_pages;
    u64 output_waits;        // grows when there is something new for the host in its streams
    RunQueue host_requests;  // of tasks that want something of the host (process/host_requests.h)
    MachineStats stats;      // the clock warp's
    u32 programs_used;
    Handle scratch;  // max_message bytes, of the mailbox warp
    u32 parked_warps;
    u32 is_begun;       // the page allocator was made ready
    u32 idle_turns;     // how often the last process ended
    Handle kept_files;  // if the host wants them: the block that has the files of its first process
    u32 no_words[process_first_free];
};

// ---- the mailbox -------------------------------------------------------------------
//
// Memory that host and device share. Only the mailbox warp touches it on the device. Two rings of
// bytes, one for each direction; each has one writer, who alone writes its tail, and one reader,
// who alone writes its head. Both count bytes since boot. A message is a MessageHead and what
// follows it, in whole units of message_unit; one that would cross the ring's end is preceded by a
// message of kind `skip` that fills the rest. Neither side trusts what the other wrote: an index or
// a message that cannot be ends the connection.
//
// The device rings the bell (adds 1 to it) after it has written something that the host has to see;
// the host sleeps until the bell is no longer what it last saw.

inline constexpr u32 message_unit = 16;
inline constexpr u32 message_version = 1;
inline constexpr u32 in_ring_bytes = 1 << 20, out_ring_bytes = 1 << 20;
inline constexpr u32 max_message = 64 << 10;  // payload bytes

enum class MessageKind : u16 {
    skip,
    // To the device.
    program,       // ProgramInfo: then the blob in `program_data`s, then program_end
    program_data,  // ProgramData, then bytes
    program_end,   // ProgramNumber
    spawn,         // SpawnRequest, then arguments, then environment
    kill,          // KillRequest
    input,         // StreamBytes, then bytes; no more than there is room for at the device's end
    input_end,     // StreamBytes: no more will come
    output_end,    // StreamBytes: nobody reads it any more
    ping,          // Ping
    block,         // BlockAnswer, then file_block bytes of a cold file; or none (has_bytes)
    // To the host.
    program_ready,  // ProgramNumber
    spawned,        // SpawnAnswer
    ended,          // EndedProcess
    output,         // StreamBytes, then bytes; none: nobody writes to it any more
    taken,          // StreamBytes: total bytes of input that were read, or nobody_reads
    pong,           // Ping
    want_block,     // BlockRequest
    record,         // DebugRecord
    idle,           // no process is left
    broken,         // the device read something from the host that cannot be
};

struct MessageHead {
    u32 size;  // of the payload
    MessageKind kind;
    u16 version;
    u64 padding;
};
static_assert(sizeof(MessageHead) == message_unit);

struct ProgramData {
    u32 number, padding;
    u64 offset;  // in the blob
};
struct ProgramNumber {
    u32 number;
    u32 error;  // Errno
};
struct SpawnRequest {
    u32 request;  // the host's number for it, in what comes back
    u32 program;
    u32 argument_count, argument_bytes;
    u32 environment_count, environment_bytes;
    u32 streams[3];  // number + 1 of the host stream for 0, 1 and 2; 0: none
    u32 priority;
    u64 fuel;  // ~0: as the program has it
};
static_assert(sizeof(SpawnRequest) == 48);
struct SpawnAnswer {
    u32 request;
    u32 error;  // Errno
    u32 pid;
    u32 padding;
};
struct KillRequest {
    u32 pid;  // 0: all there are
    u32 signal;
};
struct StreamBytes {
    u32 stream;  // number + 1
    u32 padding;
    u64 total;
};
inline constexpr u64 nobody_reads = ~u64{0};  // StreamBytes::total of `taken`
struct Ping {
    u64 number;
};
struct BlockRequest {
    u32 task;
    Handle node;
    u64 block;  // of the base's node, or one of those below
};
inline constexpr u64 whole_file = ~u64{0};  // the process's own node is to be written through
inline constexpr u64 whole_process = whole_file - 1;  // a fault ended it, and the host looks at it
constexpr bool has_bytes(u64 block) { return block < whole_process; }
struct BlockAnswer {
    u32 task;
    u32 error;
    Handle node;
    u32 padding;
    u64 block;
};
struct EndedProcess {
    u32 request, pid;
    Ending ending;
    u32 code;     // exit code, trap or signal
    u32 trap_pc;  // position in the program's code
    u32 program;
    u64 started, ended, time_used;  // ns of the device's clock; time_used on lanes
};
static_assert(sizeof(EndedProcess) == 48);

struct Mailbox {
    // Written by the host.
    u32 stop;  // stop_*
    u32 share;
    u64 in_tail, out_head;
    u64 padding[13];
    // Written by the device.
    u32 bell;
    u32 is_parked;
    u64 in_head, out_tail;
    u64 padding_2[13];
    MachineStats stats;
    u64 padding_3[13];
    u8 in_ring[in_ring_bytes];
    u8 out_ring[out_ring_bytes];
};
static_assert(sizeof(Mailbox) % 128 == 0);

struct MachineParams {
    u64 system, pages, mailbox;
    u64 until;               // ns that it may run before it parks by itself; 0: no limit
    u32 native_stack_bytes;  // that a lane has of hardware stack, for machine code
    u32 padding;
};

// ---- what `Ending` is for shells ---------------------------------------------------

constexpr u32 shell_code(Ending ending, u32 code) {
    switch (ending) {
        case Ending::exited: return code;
        case Ending::killed: return 128 + code;
        default: return 134;
    }
}

}  // namespace gpurun
