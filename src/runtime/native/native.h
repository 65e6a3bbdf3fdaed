// The native tier's side of the runtime: what generated code is given, what it may call, and the
// loop that runs a thread by machine code where there is some and by the interpreter elsewhere.
#pragma once

#include "abi/native.h"
#include "runtime/memory/state.h"

namespace gpurun::rt {

inline constexpr s64 call_cost = 128;  // as the interpreter counts

// How long machine code may go on. By what it does: calls and loops take from a quantum, of which a
// unit is about a nanosecond. By a clock where lanes of a warp share one: lanes that do different
// things would use up their quanta at different times, and whoever has left waits for the others.
struct TimeLeft {
    s64 quantum = 0;
    u32 deadline = 0;  // of short_clock()

    TimeLeft() = default;
    TimeLeft(s64 time, bool alternates)
        : quantum(time), deadline(short_clock() + (alternates ? turn_cycles : u32(time) * 2)) {}
    void take(s64 cost) { quantum -= cost; }
    bool is_over() const { return has_clock ? s32(short_clock() - deadline) >= 0 : quantum < 0; }

private:
    static constexpr u32 turn_cycles = 500;  // of a tier that takes turns with the other
};

// Quick code (codegen/quick.h), which only platforms have whose interpreter sees entries: where it
// is, and what it has at hand beside the rest of its context.
template <bool has_quick_code>
struct QuickTable {};
template <>
struct QuickTable<true> {
    const u64* at = nullptr;  // addresses by position of the code, or 0; null: there is none at all
};
struct NativeEntry;
inline void find_quick(QuickTable<false>&, const NativeEntry*) {}
inline void find_quick(QuickTable<true>& quick, const NativeEntry* entries);
template <bool has_quick_code>
struct QuickContext {};
template <>
struct QuickContext<true> {
    StackWord* slot_0;    // of index 0 among the words
    StackWord* floor;     // a callee whose caller's record is there returns to the runtime
    const u64* at;        // as in QuickTable
    const u64* own;       // the same from the first position of the module on
    u32 instance;         // index of the current one
    NativeStatus status;  // of leaving
    u32 entry;            // where it is entered; relative to the module's first position
};

struct NativeContext;
using NativeEnter = NativeStatus(NativeContext* n, StackWord* fp, StackWord* rp, u32 number);

// Where positions of the code can be entered natively.
struct NativeEntry {
    NativeEnter* enter;
    u32 number;
};
// The first of all entries is none: where there may be quick code it says where that is.
inline void find_quick(QuickTable<true>& quick, const NativeEntry* entries) {
    if (entries != nullptr) quick.at = reinterpret_cast<const u64*>(entries->enter);
}
// Functions for which machine code had to leave, since they have none: where they begin, the latest
// of them. Threads that write at once may lose some.
struct NativeMisses {
    static constexpr u32 size = 256;
    u32 count = 0;
    u32 callees[size] = {};
};
struct NativeTable {
    const u32* entry_at;         // position -> number in `entries`, or 0
    const NativeEntry* entries;  // the first is none
    NativeMisses* misses;        // null: nobody wants to know
    [[no_unique_address]] QuickTable<interpreter_sees_entries> quick;

    NativeTable(const u32* at, const NativeEntry* all, NativeMisses* missed)
        : entry_at(at), entries(all), misses(missed) {
        find_quick(quick, entries);
    }
    explicit NativeTable(const NativeEntries& given)
        : entry_at(reinterpret_cast<const u32*>(given.entry_at)),
          entries(reinterpret_cast<const NativeEntry*>(given.entries)),
          misses(nullptr) {
        find_quick(quick, entries);
    }
    u32 entry_of(u32 position) const { return load_entry(&entry_at[position]); }
};
inline NativeStatus enter_native(const NativeTable& table, u32 entry, NativeContext* n,
                                 StackWord* fp, StackWord* rp) {
    const NativeEntry& e = table.entries[entry];
    return e.enter(n, fp, rp, e.number);
}

// What generated code has at hand beside its frame. Those of the current instance change with it.
struct NativeContext {
    const Process* process;
    u32* thread;
    const NativeTable* table;
    const void* const* calls;  // the functions of abi/native_calls.def
    u8* stack_limit;           // the hardware's stack may not grow below
    TimeLeft time;             // then calls and loops leave
    u32 dirty;                 // as in Registers
    u32 dirty_shift;           // the process's

    u32 code;  // the module's first instruction
    u32* instance;
    u8* memory;  // memory 0, its base (guest_base), and its size
    u8* memory_base;
    u64 memory_size;

    u32 entry;  // where the function that is called next begins; 0, and all that are called: with
                // `enter`

    u32 pc;  // where an operation out of line stands that is not done; relative to `code`

    u32 tail_pc;  // the function that `tail` asks for
    u32* tail_instance;

    [[no_unique_address]] QuickContext<interpreter_sees_entries> quick;
};

// Runs a thread like run() of interp.h, natively where `table` has entries. `stack_limit`: how far
// down the hardware's stack may be used. `alternates`: the tiers take turns at every suspension
// point, to test that. `others_waited`, if given, becomes true if a lane of the warp left machine
// code with time left, and so waited for those that did not.
ThreadState run_native(const Process& process, const NativeTable& table, u32 thread, s64 quantum,
                       u32 enough, u8* stack_limit, bool alternates, bool* others_waited = nullptr);

extern "C" {
// The last of leaving: writes the thread's place, or the record of the call by which a callee left.
// `begin` is the function's first position, `where` has the parts of abi/native.h. The status.
NativeStatus native_left(NativeContext* n, StackWord* fp, StackWord* rp, u32 begin, u32 where,
                         u32 dirty);
// One instruction out of line, whose operands stand in their slots. yield, stopped: n->pc.
NativeStatus native_operate(NativeContext* n, StackWord* fp, StackWord* rp, u32 position);
// Calls the reference `ref`, not null; arguments and results in slots from `base` on.
NativeStatus native_call(NativeContext* n, StackWord* fp, StackWord* rp, u32 ref, u32 base,
                         u32 return_position);
// The call_indirect at `position`, whatever its table has. `here`: it traps.
NativeStatus native_call_indirect(NativeContext* n, StackWord* fp, StackWord* rp, u32 position);
// Goes on with the tail calls that a callee asked for, its frame at fp.
NativeStatus native_call_tail(NativeContext* n, StackWord* fp, StackWord* rp);
// Has n ask for `ref`, not null; or for what a return_call_indirect finds. False: it traps.
void native_tail(NativeContext* n, u32 ref);
bool native_tail_indirect(NativeContext* n, u32 table, u32 type, u64 index);
}

}  // namespace gpurun::rt
