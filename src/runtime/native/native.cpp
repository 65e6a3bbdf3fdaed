// Runs threads by machine code and by the interpreter in turns; what generated code calls.
#include "runtime/native/native.h"

#include "runtime/vm/interp.h"
#include "runtime/vm/out_of_line.h"

namespace gpurun::rt {
namespace {

// What is taken from a quantum for a turn that may be as long as the code of a function.
constexpr s64 turn_cost = 1 << 12;

void set_memory(NativeContext& n, const Registers& r) {
    n.memory = r.memory;
    n.memory_base = guest_base(r.memory);
    n.memory_size = r.memory_size;
}

void load_memory(NativeContext& n) {
    Registers r;
    r.instance = n.instance;
    load_memory_0(*n.process, r);
    set_memory(n, r);
}

// Quick code's part of the context, on platforms that have any: what is there for a run, what
// changes with the instance, where it is entered, and the record from which it returns to
// run_callee().
[[maybe_unused]] void begin_quick(QuickContext<true>& quick, const QuickTable<true>& table,
                                  const Process& p) {
    quick.at = table.at;
    quick.slot_0 = p.stack - p.stack_begin;
    quick.floor = nullptr;
}
[[maybe_unused]] void begin_quick(QuickContext<false>&, const QuickTable<false>&, const Process&) {}
[[maybe_unused]] void use_instance(QuickContext<true>& quick, const NativeContext& n) {
    quick.own = quick.at != nullptr ? quick.at + n.code : nullptr;
    quick.instance = index_of(n.process->words, n.instance);
}
[[maybe_unused]] void use_instance(QuickContext<false>&, const NativeContext&) {}
[[maybe_unused]] void set_entry(QuickContext<true>& quick, u32 position) { quick.entry = position; }
[[maybe_unused]] void set_entry(QuickContext<false>&, u32) {}
[[maybe_unused]] StackWord* set_floor(QuickContext<true>& quick, StackWord* floor) {
    StackWord* const before = quick.floor;
    quick.floor = floor;
    return before;
}
[[maybe_unused]] StackWord* set_floor(QuickContext<false>&, StackWord*) { return nullptr; }

void use_instance(NativeContext& n, u32* instance) {
    n.instance = instance;
    n.code = module_of(*n.process, instance).code;
    load_memory(n);
    use_instance(n.quick, n);
}

// The thread's words, as the interpreter leaves them.
void write_place(const NativeContext& n, u32 pc, Slots fp, Slots rp, const u32* instance) {
    word(n.thread, thread_pc) = pc;
    word(n.thread, thread_fp) = index_of(*n.process, fp);
    word(n.thread, thread_rp) = index_of(*n.process, rp);
    word(n.thread, thread_instance) = index_of(n.process->words, instance);
}

void write_record(const NativeContext& n, u32 return_pc, Slots fp, Slots rp) {
    const u32 values[] = {return_pc, index_of(*n.process, fp),
                          index_of(n.process->words, n.instance)};
    static_assert(record_pc == 0 && record_fp == 1 && record_instance == 2);
    for (u32 i = 0; i < record_words; i++) word(rp, i) = values[i];
}

Registers registers_at(const NativeContext& n, u32 pc, Slots fp, Slots rp, u32* instance) {
    Registers r = {};
    r.pc = pc;
    r.fp = fp;
    r.rp = rp;
    r.instance = instance;
    r.memory = n.memory;
    r.memory_size = n.memory_size;
    r.trap = Trap::none;
    return r;
}

// The parts of what abi/native.h has in a word.
u32 left_position(u32 where) { return where & (native_most_words - 1); }
u32 left_handlers(u32 where) { return where >> native_handlers_shift; }
NativeStatus left_status(u32 where) {
    constexpr u32 mask = (1u << native_status_bits) - 1;
    return NativeStatus(where >> native_status_shift & mask);
}

// A trap, as the thread's words have it.
void note_trap(u32* thread, Trap why) {
    word(thread, thread_trap) = u32(why);
    word(thread, thread_state) = u32(ThreadState::trapped);
}

// An instruction out of line, by `run_it()`, until it is done, or cannot go on for now.
template <class RunIt>
Outcome operate(NativeContext& n, Registers& r, RunIt run_it) {
    for (const u32 pc = r.pc;;) {
        r.chore.count = 0;
        const Outcome outcome = run_it();
        do_chore(r.chore);
        n.dirty |= r.dirty;
        if (outcome == Outcome::trap) note_trap(n.thread, r.trap);
        if (outcome != Outcome::chunk) return outcome;
        n.time.take(call_cost + chunk_cost(r.chore));
        if (n.time.is_over()) return Outcome::chunk;
        if (r.pc != pc) return Outcome::next;  // the last chunk
    }
}

NativeStatus status_of(Outcome outcome) {
    switch (outcome) {
        case Outcome::next: return NativeStatus::done;
        case Outcome::again:
        case Outcome::chunk: return NativeStatus::yield;
        default: return NativeStatus::stopped;
    }
}

void note_miss(const NativeTable& table, u32 callee) {
    NativeMisses* misses = table.misses;
    if (misses == nullptr) return;
    const u32 number = load_relaxed(&misses->count);
    store_relaxed(&misses->callees[number % NativeMisses::size], callee);
    store_relaxed(&misses->count, number + 1);
}

// A function whose code is nothing but a system call.
bool is_system(const Process& p, u32 entry) {
    return CodeOp(op_of(p.code[entry + 1])) == CodeOp::system;
}

// Its code but the `ret`.
struct StubCode {
    u64 enter, system;

    StubCode(const Process& p, u32 entry) : enter(p.code[entry]), system(p.code[entry + 1]) {}
    bool has_room(Slots fp, Slots rp) const { return distance(fp, rp) >= s64(c_of(enter)); }
};

// `instance_of_it()` is asked only if the call does not end there and then.
template <class InstanceOfIt>
NativeStatus call_system(NativeContext& n, InstanceOfIt instance_of_it, u32 entry, Slots fp,
                         Slots rp) {
    const StubCode stub(*n.process, entry);
    if (!stub.has_room(fp, rp)) {
        write_place(n, entry, fp, rp, instance_of_it());
        return NativeStatus::interpret;
    }
    Registers r = registers_at(n, entry + 1, fp, rp, n.instance);
    const Outcome outcome =
        operate(n, r, [&] { return run_system(*n.process, n.thread, r, stub.system); });
    if (outcome != Outcome::next) write_place(n, r.pc, r.fp, r.rp, instance_of_it());
    return status_of(outcome);
}

// Runs the function at `pc` and those that it tail-calls. The record of the caller stands.
[[gnu::noinline]] NativeStatus run_callee(NativeContext& n, u32* instance, u32 pc, Slots fp,
                                          Slots rp) {
    u32* const caller = n.instance;
    NativeStatus status;
    for (;;) {
        if (const u32 entry = n.table->entry_of(pc); entry != 0) {
            if (instance != n.instance) use_instance(n, instance);
            set_entry(n.quick, pc - n.code);
            StackWord* const floor = set_floor(n.quick, rp.first);
            status = enter_native(*n.table, entry, &n, fp.first, rp.first);
            set_floor(n.quick, floor);
        } else if (is_system(*n.process, pc)) {
            status = call_system(n, [&] { return instance; }, pc, fp, rp);
            if (n.instance == caller) return status;  // with the memory that it had
        } else {
            note_miss(*n.table, pc);
            write_place(n, pc, fp, rp, instance);
            status = NativeStatus::yield;
        }
        if (status != NativeStatus::tail) break;
        pc = n.tail_pc;
        instance = n.tail_instance;
        n.time.take(call_cost);
        if (n.time.is_over()) {
            write_place(n, pc, fp, rp, instance);
            status = NativeStatus::yield;
            break;
        }
    }
    use_instance(n, caller);
    return status;
}

u32* instance_of(const Process& p, u32 ref) {
    return word_at(p.words, word(p.words, word(p.words, process_instances) + ref_instance(ref)));
}

// The function that a table has at `index`, of the module's type `type`; 0 if a call traps.
u32 indirect_callee(const NativeContext& n, u32 table_word, u32 type, u64 index) {
    const Process& p = *n.process;
    const u32* table = word_at(p.words, word(n.instance, table_word));
    if (index >= word(table, table_length)) return 0;
    const u32 ref = word(p.words, word(table, table_elements) + u32(index));
    if (ref == 0) return 0;
    const u32 types = module_of(p, n.instance).types;
    const u32 expected = reinterpret_cast<const u32*>(p.code + types)[type];
    return is_subtype(p, function_of(p, ref).type, expected) ? ref : 0;
}

// What `ret` does, to a thread that stands nowhere.
void return_to_caller(const Process& p, u32* thread) {
    Slots rp = slots_at(p, word(thread, thread_rp));
    word(thread, thread_pc) = word(rp, record_pc);
    word(thread, thread_fp) = word(rp, record_fp);
    word(thread, thread_instance) = word(rp, record_instance);
    word(thread, thread_rp) += record_words;
}

}  // namespace

extern "C" {

NativeStatus native_left(NativeContext* n, StackWord* fp, StackWord* rp, u32 begin, u32 where,
                         u32 dirty) {
    n->dirty |= dirty;
    const u32 pc = n->code + begin + left_position(where), handlers = left_handlers(where);
    if (where & native_caller_bit)
        write_record(*n, pc, {fp}, below({rp}, (handlers + 1) * record_words));
    else
        write_place(*n, pc, {fp}, below({rp}, handlers * record_words), n->instance);
    return left_status(where);
}

NativeStatus native_operate(NativeContext* n, StackWord* fp, StackWord* rp, u32 position) {
    const Process& p = *n->process;
    Registers r = registers_at(*n, n->code + position, {fp}, {rp}, n->instance);
    const Outcome outcome =
        operate(*n, r, [&] { return run_out_of_line(p, n->thread, r, p.code[r.pc]); });
    set_memory(*n, r);
    n->pc = r.pc - n->code;
    return status_of(outcome);
}

NativeStatus native_call(NativeContext* n, StackWord* fp, StackWord* rp, u32 ref, u32 base,
                         u32 return_position) {
    n = in_stack(n);
    const Process& p = *in_stack(n->process);
    const Slots record = below({rp}, record_words);
    const Slots callee_fp = word_at(Slots{fp}, base);
    write_record(*n, n->code + return_position, {fp}, record);
    if (const u32 stub = system_stub(p, ref); stub != 0)
        return call_system(*n, [&] { return instance_of(p, ref); }, stub, callee_fp, record);
    return run_callee(*n, instance_of(p, ref), function_of(p, ref).entry, callee_fp, record);
}

NativeStatus native_call_indirect(NativeContext* n, StackWord* fp, StackWord* rp, u32 position) {
    const u64* at = n->process->code + n->code + position;
    const u64 index =
        c_of(at[0]) ? get<u64>(Slots{fp}, b_of(at[0])) : get<u32>(Slots{fp}, b_of(at[0]));
    const u32 ref = indirect_callee(*n, low_of(at[1]), high_of(at[1]), index);
    if (ref == 0) return NativeStatus::here;
    return native_call(n, fp, rp, ref, a_of(at[0]), position + 2);
}

NativeStatus native_call_tail(NativeContext* n, StackWord* fp, StackWord* rp) {
    return run_callee(*n, n->tail_instance, n->tail_pc, {fp}, {rp});
}

void native_tail(NativeContext* n, u32 ref) {
    n->tail_pc = function_of(*n->process, ref).entry;
    n->tail_instance = instance_of(*n->process, ref);
}

bool native_tail_indirect(NativeContext* n, u32 table, u32 type, u64 index) {
    const u32 ref = indirect_callee(*n, table, type, index);
    if (ref != 0) native_tail(n, ref);
    return ref != 0;
}
}

namespace {

// Modules of a GPU that were loaded apart know each other by addresses.
const void* const native_calls[] = {
#define NATIVE_CALL(name) reinterpret_cast<const void*>(&name),
#include "abi/native_calls.def"
};

// By machine code, from `entry` on. `must_interpret`: what is next is not for it. `known`: the
// thread's instance and its memory, or null.
ThreadState run_entry(const Process& p, const NativeTable& table, u32* thread, u32 entry,
                      const Registers* known, TimeLeft& time, u8* stack_limit, bool alternates,
                      bool& must_interpret) {
    NativeContext n = {};
    n.time = alternates ? TimeLeft(0, true) : time;
    n.process = &p;
    n.thread = thread;
    n.table = &table;
    n.calls = native_calls;
    n.stack_limit = stack_limit;
    n.dirty_shift = p.dirty_shift;
    begin_quick(n.quick, table.quick, p);
    Slots fp, rp;
    if (known != nullptr) {
        n.instance = known->instance;
        n.code = module_of(p, n.instance).code;
        set_memory(n, *known);
        use_instance(n.quick, n);
        fp = known->fp;
        rp = known->rp;
    } else {
        use_instance(n, word_at(p.words, word(thread, thread_instance)));
        fp = slots_at(p, word(thread, thread_fp));
        rp = slots_at(p, word(thread, thread_rp));
    }
    set_entry(n.quick, (known != nullptr ? known->pc : word(thread, thread_pc)) - n.code);
    const NativeStatus status = enter_native(table, entry, &n, fp.first, rp.first);
    word(thread, thread_dirty) |= pieces_are_kept ? n.dirty : ~u32{0};
    if (alternates)
        time.take(turn_cost);
    else
        time = n.time;
    must_interpret = alternates || status == NativeStatus::interpret;
    if (interpreter_sees_entries && status == NativeStatus::interpret) {
        const u32 pc = word(thread, thread_pc);
        const u64 w = p.code[pc];
        if (CodeOp(op_of(w)) == CodeOp::call) note_miss(table, pc + imm_of(w));
    }
    switch (status) {
        case NativeStatus::done: return_to_caller(p, thread); break;
        case NativeStatus::tail:
            word(thread, thread_pc) = n.tail_pc;
            word(thread, thread_instance) = index_of(p.words, n.tail_instance);
            break;
        case NativeStatus::stopped: return ThreadState(word(thread, thread_state));
        default: break;
    }
    return ThreadState::ready;
}

// A part of the system call whose function begins at `entry`, where the thread stands before the
// call or has been kept in it: what `enter` does may be done again. Its chore is the caller's.
// `is_over`: the call is, and `r` is as its caller goes on with it.
ThreadState run_stub(const Process& p, u32* thread, u32 entry, TimeLeft& time, bool alternates,
                     bool& must_interpret, Registers& r, bool& is_over) {
    const StubCode stub(p, entry);
    r = {};
    r.pc = entry + 1;
    r.fp = slots_at(p, word(thread, thread_fp));
    r.rp = slots_at(p, word(thread, thread_rp));
    time.take(turn_cost);
    must_interpret = alternates || !stub.has_room(r.fp, r.rp);
    if (!stub.has_room(r.fp, r.rp)) return ThreadState::ready;
    r.instance = word_at(p.words, word(r.rp, record_instance));  // its memory is the call's
    load_memory_0(p, r);
    const Outcome outcome = run_system(p, thread, r, stub.system);
    word(thread, thread_dirty) |= r.dirty;
    is_over = outcome == Outcome::next;
    switch (outcome) {
        case Outcome::next:
            return_to_caller(p, thread);
            r.pc = word(r.rp, record_pc);
            r.fp = slots_at(p, word(r.rp, record_fp));
            r.rp = word_at(r.rp, record_words);
            return ThreadState::ready;
        case Outcome::trap: note_trap(thread, r.trap); break;
        case Outcome::leave: break;
        default: time.take(call_cost + chunk_cost(r.chore));
    }
    word(thread, thread_pc) = r.pc;
    return outcome >= Outcome::trap ? ThreadState(word(thread, thread_state)) : ThreadState::ready;
}

// Lanes for which it is so. (Where a warp has one process its first lane is alone here.)
u32 lanes_of(bool is_so) {
    if constexpr (lanes_are_processes) return ballot(is_so);
    return is_so;
}

}  // namespace

ThreadState run_native(const Process& p, const NativeTable& table, u32 thread_index, s64 quantum,
                       u32 enough, u8* stack_limit, bool alternates, bool* others_waited) {
    TimeLeft time(quantum, false);
    u32* const thread = word_at(p.words, thread_index);
    ThreadState state = ThreadState::ready;
    bool is_live = thread_index != 0, must_interpret = false;
    Registers r;
    bool is_known = false;  // where the thread stands: `r` says so too
    // Ends: every turn takes from the quantum, or the thread stops.
    while (u32(__builtin_popcount(lanes_of(is_live))) > enough) {
        u32 entry = 0, stub = 0;
        if (is_live && !must_interpret) {
            const u32 pc = is_known ? r.pc : word(thread, thread_pc);
            stub = system_stub_around(p, pc);
            if (stub == 0) entry = table.entry_of(pc);
        }
        const bool interprets = is_live && entry == 0 && stub == 0;
        if (entry != 0)
            state = run_entry(p, table, thread, entry, is_known ? &r : nullptr, time, stack_limit,
                              alternates, must_interpret);
        is_known = false;
        if (may_be_resident && lanes_of(stub != 0) != 0) {
            Chore chore = {};
            if (stub != 0) {
                state = run_stub(p, thread, stub, time, alternates, must_interpret, r, is_known);
                chore = r.chore;
            }
            do_chores(chore);
        }
        if (lanes_of(interprets) != 0) {
            // To a call or a loop where there is an entry, or may be one.
            s64 used = turn_cost;
            const ThreadState now = run_to_entry(p, interprets ? thread_index : 0, table.entry_at,
                                                 alternates ? quantum_to_next : turn_cost,
                                                 interpreter_sees_entries ? &used : nullptr);
            if (interprets) {
                state = now;
                must_interpret = false;
                time.take(used);
            }
        }
        is_live = is_live && state == ThreadState::ready && !time.is_over();
        if (others_waited != nullptr) {
            // What stands at halt_position has returned from its first function, and only ends.
            const bool has_left = is_live && entry != 0 && word(thread, thread_pc) != halt_position;
            *others_waited |= lanes_of(has_left) != 0;
        }
    }
    if (thread_index != 0) word(thread, thread_state) = u32(state);
    return state;
}

}  // namespace gpurun::rt
