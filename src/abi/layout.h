// Where things lie: code memory (shared, read-only while guests run) and process words.
//
// A process has two spaces. Its *words* hold everything but linear memories: instances,
// tables, stacks, objects; an index into them is a u32, and how neighbouring processes'
// words interleave is the platform's affair. Its *bytes* hold the linear memories. No
// pointer is stored in either: a process can be copied, and goes on where the copy lies.
//
// References are one word. Functions: instance number << function_bits | function index.
// All others: 0 null; bit 0 set: i31; low bits 10: a value of the host's; low bits 00: an
// object at word index ref >> 1 (objects start at even indices).
#pragma once

#include "abi/trap.h"
#include "base/ints.h"

namespace gpurun {

// ---- code memory -------------------------------------------------------------------

inline constexpr u32 halt_position = 0, ret_position = 1;
inline constexpr u32 first_free_position = 2;

// At an instance's module position. All positions are absolute.
struct ModuleHeader {
    u32 funcs;  // FuncInfo[]
    u32 types;  // u32[]: local type id -> position of its TypeInfo
    u32 data;   // SegmentInfo[]: `at` counts bytes from the start of code memory, in words
    u32 elems;  // SegmentInfo[]: function indices as u32, or `at` = 0: kept in the instance
    u32 data_state, elem_state;  // instance word of the first segment's state
    u32 memories;                // instance word of memory 0's index, or 0 if there is none
    u32 code;                    // its first instruction
};
static_assert(sizeof(ModuleHeader) == 32);

struct FuncInfo {
    u32 entry;  // position of its `enter`; 0 for imports
    u32 type;   // position of its TypeInfo
};
static_assert(sizeof(FuncInfo) == 8);

// One per distinct type of a store; its position is the type's identity.
struct TypeInfo {
    u32 kind;   // 0 function, 1 struct, 2 array
    u32 depth;  // number of supertypes that follow as u32 positions, outermost first
};
static_assert(sizeof(TypeInfo) == 8);

struct SegmentInfo {
    u32 at;
    u32 size;
};
static_assert(sizeof(SegmentInfo) == 8);

// ---- process words -----------------------------------------------------------------

enum ProcessWord : u32 {
    process_heap_next = 2,  // index of the next free word of the object heap, even
    process_heap_end,
    process_instances,   // index of the instance table: number -> index; number 0 is unused
    process_threads,     // index of the first thread; each links to the next
    process_memories,    // index of the newest memory's record; each links to the one before
    process_canaries,    // the same for canaries; 0: the process is not watched
    process_block,       // handle of its ProcessBlock (abi/system.h), or 0
    process_clipped,     // of what it has less here than it may have: where it needs more it stops
                         // as `outgrown`
    process_task,        // resident machines: number of its TaskEntry, or 0
    process_call,        // handle of its CallState, or 0: that of its ProcessBlock
    process_first_free,  // size of this header
};

// process_clipped. clipped_shared: its memory grows while its other threads stand still.
inline constexpr u32 clipped_stack = 1, clipped_memory = 2, clipped_shared = 4;

enum InstanceWord : u32 {
    instance_number,
    instance_module,  // position of its ModuleHeader
    instance_first_free,
};

// Segment states are words of the instance: data: 1 once dropped. Elem: two words, the size
// left (0 once dropped) and the index of the evaluated references (0: read from code memory).

enum MemoryWord : u32 {
    memory_bytes = 0,      // u64: current size
    memory_base = 2,       // u64: offset in the process's bytes
    memory_capacity = 4,   // u64: bytes reserved there
    memory_max_pages = 6,  // u64: what the module and the user allow
    memory_flags = 8,      // bit 0: 64-bit addresses, bit 1: shared
    memory_next = 9,       // index of the record of the memory made before
    memory_words = 10,
};
inline constexpr u32 memory_is_64 = 1, memory_is_shared = 2;
inline constexpr u32 page_bits = 16;

enum TableWord : u32 {
    table_length = 0,
    table_capacity = 1,
    table_elements = 2,  // index of element 0
    table_max = 3,       // clipped to 32 bits
    table_words = 4,
};

enum class ThreadState : u32 {
    ready,        // can run
    finished,     // results stand in the slots from its first frame on
    trapped,      // thread_trap says why
    uncaught,     // thread_exception was not caught
    out_of_fuel,  // goes on if given more
    waiting,      // memory.atomic.wait, until thread_wait_until
    outgrown,     // as ready, but only in a place with more stack or memory
    sleeping,     // until thread_wait_until
    host,         // ProcessBlock::request is for the host to fulfil; input until thread_wait_until
    exited,       // the process has ended: ProcessBlock::exit_code
    blocked,      // resident machines: until what CallState::request says, or thread_wait_until
};

enum ThreadWord : u32 {
    thread_next,  // index of the process's next thread, or 0
    thread_state,
    thread_trap,
    thread_pc,                       // position
    thread_fp,                       // index of slot 0 of the current frame
    thread_rp,                       // index of the newest record
    thread_instance,                 // index of the current instance
    thread_exception,                // reference: the exception being handled or uncaught
    thread_fuel,                     // s64
    thread_stack = thread_fuel + 2,  // index of the first slot
    thread_stack_end,
    thread_wait_result,                             // slot index that gets the result of the wait
    thread_wait_address,                            // u64: offset in the process's bytes
    thread_wait_until = thread_wait_address + 2,    // u64: when a wait ends (machine/waiting.h)
    thread_dirty =
        thread_wait_until + 2,    // bit i: bytes from i << Process::dirty_shift on were written
    thread_window,                // 1: what is in use of its stack fits stack_window slots
    thread_is_looked_at,          // 1: of a burst, if it traps the host wants to see it; then 0
    thread_wait_width,            // bytes of the value that a memory.atomic.wait saw
    thread_wait_value,            // u64
    thread_words = thread_wait_value + 2,
};
// A bit of thread_dirty stands for so many bytes behind its piece too: a store may cross the end.
inline constexpr u32 dirty_reach = 256;

// Stacks begin at multiples of so many words, and those of machines have multiples of them.
inline constexpr u32 stack_step = 4;

// Records grow down from the end of the stack: one per call and per open handler.
enum RecordWord : u32 {
    record_pc,  // where to go on; with handler_bit: where the handler starts
    record_fp,
    record_instance,
    record_words,
};
inline constexpr u32 handler_bit = 1u << 31;

// A watched process (memory/watch.h) has a canary behind every block of its words, two words: the
// number below, mixed with its index, and the index of the canary before. Behind every memory are
// canary_bytes of the pattern. Stacks and words that were freed are filled with poison.
inline constexpr u32 canary_word = 0xc0a1ca9e, canary_words = 2;
inline constexpr u32 canary_bytes = 64;
inline constexpr u64 canary_pattern = 0xcacacacacacacaca;
inline constexpr u32 poison_word = 0xdeadbeef;

// ---- references --------------------------------------------------------------------

inline constexpr u32 function_bits = 20;
inline constexpr u32 max_instances = (1u << (32 - function_bits)) - 1;  // then linking fails
constexpr u32 function_ref(u32 instance_no, u32 func) {
    return instance_no << function_bits | func;
}
constexpr u32 ref_instance(u32 ref) { return ref >> function_bits; }
constexpr u32 ref_function(u32 ref) { return ref & ((1u << function_bits) - 1); }

// Functions that are system calls have code of the same length, `enter`, `system` and `ret`, one
// after another: where that of the references from `first_ref` on is.
struct SystemStubs {
    u32 first_ref, count;
    u32 first_entry;
};
inline constexpr u32 system_stub_words = 3;

constexpr bool is_i31(u32 ref) { return ref & 1; }
constexpr bool is_host_value(u32 ref) { return (ref & 3) == 2; }
constexpr bool is_object(u32 ref) { return ref != 0 && (ref & 3) == 0; }
constexpr u32 host_value(u32 number) { return number << 2 | 2; }
constexpr u32 object_ref(u32 index) { return index << 1; }
constexpr u32 object_index(u32 ref) { return ref >> 1; }
inline constexpr u32 max_words = 1u << 31;  // what references can reach

enum ObjectWord : u32 {
    object_type,         // position of the TypeInfo; for exceptions the tag's index
    struct_first_field,  // structs: fields follow
    array_length = 1,
    array_first_element = 2,
    exception_size = 1,  // words of values
    exception_first_value = 2,
};

}  // namespace gpurun
