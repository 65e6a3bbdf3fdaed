// How a lane sees its process and its thread: the registers of the interpreter, and the
// accessors by which all of the runtime reads and writes process words and guest memory.
#pragma once

#include "abi/code.h"
#include "abi/layout.h"
#include "abi/v128.h"
#include "runtime/platform/chore.h"
#include "runtime/platform/platform.h"

namespace gpurun::rt {

// Our own bugs: ends the run. `detail` is whatever number tells most.
#define RUNTIME_CHECK(condition, process, detail)                   \
    do {                                                            \
        if (!(condition)) [[unlikely]]                              \
            check_failed(__FILE_NAME__, __LINE__, process, detail); \
    } while (false)

struct Process {
    const u64* code;   // code memory
    u32* words;        // this lane's words: word i at words[i * lane_stride]
    u8* bytes;         // linear memories
    StackWord* stack;  // where the stack of the thread is that runs
    u32 stack_begin;   // and its index among the words
    u32 dirty_shift;   // writes to memory are noted in 32 pieces of 1 << dirty_shift bytes
    u8* system;        // system memory (abi/system.h), or null
    const struct Machine* machine = nullptr;  // the resident machine that runs it, if one does
    // For that: what is at hand is not looked for in memory.
    SystemStubs stubs = {};
    u32 entry = 0;            // of the process, or 0: it is not known
    u32 block = 0, call = 0;  // what its words say, if its entry is known
    u32 memory = 0;           // the record of its only memory, or 0: it is not known
};

// Slots from some place of a stack upwards: what frames and records are made of.
struct Slots {
    StackWord* first;
};

// What the interpreter keeps at hand while it runs a thread; the rest is in the words.
struct Registers {
    u32 pc;
    Slots fp;  // slot 0
    Slots rp;  // newest record
    u32* instance;
    u8* memory;  // memory 0 of the instance, and its size
    u64 memory_size;
    u32 dirty;  // pieces of the process's bytes that were written
    Trap trap;
    Chore chore;  // of an instruction out of line: done when it returns
};

// How much of a long operation is done before its thread can be interrupted.
inline constexpr u64 chunk_bytes = lanes_are_processes ? 4 << 10 : 64 << 10;
inline constexpr u64 chunk_elements = 1 << 10;
// Returns what a part of a long operation takes from a quantum that counts what is done: its bytes
// may be the first to be touched of their pages, and elements are copied one by one.
inline s64 chunk_cost(const Chore& chore) {
    constexpr s64 byte_cost = 4, elements_cost = 1 << 12;
    return chore.count != 0 || has_clock ? s64(chore.count) * byte_cost : elements_cost;
}

// What an out-of-line instruction wants next.
enum class Outcome : u32 {
    next,   // go on at pc
    again,  // a call: look at the quantum, then go on at pc
    chunk,  // a part of a long operation: the same
    trap,   // registers.trap says why; pc stands at the instruction
    leave,  // the thread's state was set
};

inline u32& word(u32* base, u32 index) { return base[usize(index) * lane_stride]; }
inline u32 word(const u32* base, u32 index) { return base[usize(index) * lane_stride]; }
inline u32* word_at(u32* base, u32 index) { return base + usize(index) * lane_stride; }
inline u32 index_of(const u32* words, const u32* p) { return u32(usize(p - words) / lane_stride); }

template <class T>
inline T get(const u32* base, u32 index) {
    return load_word<T>(base + usize(index) * lane_stride);
}
template <class T>
inline void set(u32* base, u32 index, T value) {
    store_word<T>(base + usize(index) * lane_stride, value);
}

inline StackWord& word(Slots slots, u32 index) { return slots.first[usize(index) * slot_stride]; }
inline Slots word_at(Slots slots, u32 index) { return {slots.first + usize(index) * slot_stride}; }
inline Slots below(Slots slots, u32 count) { return {slots.first - usize(count) * slot_stride}; }
inline s64 distance(Slots from, Slots to) { return (to.first - from.first) / s64(slot_stride); }
template <class T>
inline T get(Slots slots, u32 index) {
    return load_slot<T>(slots.first + usize(index) * slot_stride);
}
template <class T>
inline void set(Slots slots, u32 index, T value) {
    store_slot<T>(slots.first + usize(index) * slot_stride, value);
}
inline Slots slots_at(const Process& p, u32 index) {
    return word_at(Slots{p.stack}, index - p.stack_begin);
}
inline u32 index_of(const Process& p, Slots slots) {
    return p.stack_begin + u32(distance({p.stack}, slots));
}

inline const ModuleHeader& module_of(const Process& p, const u32* instance) {
    return *reinterpret_cast<const ModuleHeader*>(p.code + word(instance, instance_module));
}

// A linear memory, wherever it lies. Bounds are the caller's to check.
struct Memory {
    u8* base;
    u64 size;
};
inline Memory memory_at(const Process& p, u32 index) {
    const u32* record = word_at(p.words, index);
    return {p.bytes + get<u64>(record, memory_base), get<u64>(record, memory_bytes)};
}

// Pointers into guest memory, which only the accessors of the platform follow. `base` is a
// Memory's.
inline u8* guest_at(u8* base, u64 address) { return base + address; }
inline Chore fill_guest(u8* base, u64 address, u8 value, u64 count) {
    return {guest_at(base, address), nullptr, count, value};
}
inline Chore copy_guest(u8* to_base, u64 to, u8* from_base, u64 from, u64 count) {
    return {guest_at(to_base, to), guest_at(from_base, from), count, 0};
}
inline Chore write_guest(u8* base, u64 address, const u8* from, u64 count) {
    return {guest_at(base, address), from, count, 0};
}

inline u64 smaller(u64 a, u64 b) { return a < b ? a : b; }

inline bool in_bounds(u64 address, u64 count, u64 size) {
    return address <= size && count <= size - address;
}

// Where an access of `width` bytes at address + offset goes, or null if it is out of bounds.
inline u8* access_at(const Memory& m, u64 address, u64 offset, u64 width) {
    if (address + offset < offset || !in_bounds(address + offset, width, m.size)) return nullptr;
    return guest_at(m.base, address + offset);
}

// Whoever writes guest memory says so first. The first bytes of a piece count with the one before
// as well (dirty_reach), so that a store may cross its end.
inline u32 dirty_pieces(const Process& p, const u8* at, u64 count) {
    if (count == 0) return 0;
    u64 first = u64(at - p.bytes) >> p.dirty_shift,
        last = (u64(at - p.bytes) + count - 1) >> p.dirty_shift;
    return u32((u64{2} << last) - (u64{1} << first));
}
inline void mark_dirty(const Process& p, Registers& r, const u8* at, u64 count) {
    r.dirty |= dirty_pieces(p, at, count);
}

// After a change of instance, or of the size of memory 0.
inline void load_memory_0(const Process& p, Registers& r) {
    if (may_be_resident && p.memory != 0) {
        const Memory only = memory_at(p, p.memory);
        r.memory = only.base;
        r.memory_size = only.size;
        return;
    }
    u32 at = module_of(p, r.instance).memories;
    if (at == 0) {
        r.memory = p.bytes;
        r.memory_size = 0;
        return;
    }
    Memory m = memory_at(p, word(r.instance, at));
    r.memory = m.base;
    r.memory_size = m.size;
}

inline Outcome trap(Registers& r, Trap why) {
    r.trap = why;
    return Outcome::trap;
}

inline const FuncInfo& function_of(const Process& p, u32 ref) {
    u32 instances = word(p.words, process_instances);
    const u32* instance = word_at(p.words, word(p.words, instances + ref_instance(ref)));
    return reinterpret_cast<const FuncInfo*>(p.code +
                                             module_of(p, instance).funcs)[ref_function(ref)];
}

// The entry of a function that is a system call, if the process knows where they are; else 0.
inline u32 system_stub(const Process& p, u32 ref) {
    const u32 number = ref - p.stubs.first_ref;
    return number < p.stubs.count ? p.stubs.first_entry + number * system_stub_words : 0;
}

// The same of a position in its code, but that of its `ret`.
inline u32 system_stub_around(const Process& p, u32 position) {
    const u32 at = position - p.stubs.first_entry, number = at / system_stub_words;
    const bool is_ret = at % system_stub_words == system_stub_words - 1;
    if (!may_be_resident || number >= p.stubs.count || is_ret) return 0;
    return p.stubs.first_entry + number * system_stub_words;
}

// Types are positions of TypeInfos; the supertypes follow each.
inline bool is_subtype(const Process& p, u32 sub, u32 super) {
    if (sub == super) return true;
    const TypeInfo& s = *reinterpret_cast<const TypeInfo*>(p.code + sub);
    const TypeInfo& t = *reinterpret_cast<const TypeInfo*>(p.code + super);
    return t.depth < s.depth && reinterpret_cast<const u32*>(&s + 1)[t.depth] == super;
}

// The references of an element segment, wherever they are kept.
struct ElemSegment {
    u32 size;       // 0 once dropped
    u32 evaluated;  // index of the references, or 0
    u32 code_at;    // position of the function indices
    u32 instance_no;

    ElemSegment(const Process& p, const u32* instance, u32 segment) {
        const ModuleHeader& module = module_of(p, instance);
        size = word(instance, module.elem_state + 2 * segment);
        evaluated = word(instance, module.elem_state + 2 * segment + 1);
        code_at = reinterpret_cast<const SegmentInfo*>(p.code + module.elems)[segment].at;
        instance_no = word(instance, instance_number);
    }
    u32 get(const Process& p, u32 item) const {
        if (evaluated != 0) return word(p.words, evaluated + item);
        return function_ref(instance_no, reinterpret_cast<const u32*>(p.code + code_at)[item]);
    }
};

// One instruction out of line, by the families of code_ops.def. Never inlined: they would take
// the loop's registers.
[[gnu::noinline]] Outcome run_control(const Process& p, u32* thread, Registers& r, u64 w);
[[gnu::noinline]] Outcome run_call_import(const Process& p, u32* thread, Registers& r, u64 w);
[[gnu::noinline]] Outcome run_bulk(const Process& p, u32* thread, Registers& r, u64 w);
[[gnu::noinline]] Outcome run_object(const Process& p, Registers& r, u64 w);
[[gnu::noinline]] Outcome run_vector(const Process& p, Registers& r, u64 w);
[[gnu::noinline]] Outcome run_access(const Process& p, u32* thread, Registers& r, u64 w);
[[gnu::noinline]] Outcome run_system(const Process& p, u32* thread, Registers& r, u64 w);

}  // namespace gpurun::rt
