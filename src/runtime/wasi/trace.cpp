// Records for the host to print: of the debug_* functions, and of system calls if they are traced.
#include "runtime/machine/machine.h"
#include "runtime/wasi/system.h"

namespace gpurun::rt {
namespace {

constexpr char all_parameters[][traced_words + 1] = {
#define SYSTEM_CALL(name, parameters, results) parameters,
#include "abi/system_calls.def"
#undef SYSTEM_CALL
};

// The bytes that an argument leads to, as many as a record keeps.
void keep_text(const Call& call, u32 address, u32 length, TracedCall& traced) {
    const u8* text = call.in(address, length);
    if (text == nullptr) return;
    traced.text_length = length;
    for (u32 i = 0; i < length && i < traced_text_bytes; i++)
        traced.text[i] = load_bytes<u8>(text + i);
}

// Counts a record that found no place, of what cannot be done again.
void lose_record(const Process& p) { fetch_add(&system_of(p).debug_dropped, u64{1}); }

}  // namespace

// Records are a ring: a place is free once the host has what was there. Returns null if none is.
[[gnu::noinline]] DebugRecord* take_place(const Process& p, u64& turn) {
    SystemHeader& system = system_of(p);
    // Ends: a failed exchange means that another's succeeded.
    u64 number = load_relaxed(&system.debug_count);
    for (;;) {
        // Less than nothing is taken where `number` is old: then the exchange fails.
        if (s64(number - load_shared(&system.debug_taken)) >= s64(system.debug_capacity))
            return nullptr;
        const u64 found = compare_exchange(&system.debug_count, number, number + 1);
        if (found == number) break;
        number = found;
    }
    turn = number + 1;
    return at_handle<DebugRecord>(p, system.debug) + number % system.debug_capacity;
}

NewRecord new_debug_record(const Call& call) {
    NewRecord made;
    made.at = take_place(call.p, made.turn);
    if (made.at == nullptr) return made;
    made.at->process =
        has_machine(call.p) ? machine_of(call.p).process(call.p.entry).pid : call.me->id;
    return made;
}

void finish_record(const NewRecord& record) {
    // Pairs with send_records and, where there is no machine, with System::take_records.
    store_shared(&record.at->turn, record.turn);
}

bool has_room_for_records(const Call& call) {
    const SystemHeader& system = system_of(call.p);
    const u64 count = load_relaxed(&system.debug_count) - load_relaxed(&system.debug_taken);
    return count <= system.debug_capacity / 2;
}

Outcome wait_for_records(const Call& call) {
    return has_machine(call.p) ? call.again() : call.ask_host(Request::output, 0, 0);
}

void note_ending(const Process& p, u32 pid, const FaultEnding& ending) {
    NewRecord record;
    record.at = take_place(p, record.turn);
    if (record.at == nullptr) return lose_record(p);
    record.at->process = pid;
    const u8* bytes = reinterpret_cast<const u8*>(&ending);
    for (u32 i = 0; i < sizeof ending; i++) record.at->text[i] = bytes[i];
    record.at->kind = DebugKind::ended;
    finish_record(record);
}

void trace(const Call& call, SystemCall which, u32 first_word, Outcome outcome) {
    bool has_ended = outcome == Outcome::next;
    bool has_exited =
        outcome == Outcome::leave && word(call.thread, thread_state) == u32(ThreadState::exited);
    if (!has_ended && !has_exited) return;  // it is made again
    const NewRecord made = new_debug_record(call);
    DebugRecord* record = made.at;
    if (record == nullptr) return lose_record(call.p);
    TracedCall traced = {};
    const char* parameters = all_parameters[u32(which)];
    u32 slot = 0;
    auto argument = [&](u32 number) { return number == 0 ? first_word : word(call.r.fp, number); };
    traced.result = has_ended ? word(call.r.fp, 0) : 0;
    traced.has_result = has_ended;
    bool has_failed = traced.result != u32(Errno::success);
    for (u32 i = 0; parameters[i] != 0; i++) {
        u32 value = argument(slot);
        traced.arguments[slot++] = value;
        if (parameters[i] == 'I') {
            traced.arguments[slot] = argument(slot);
            slot++;
        } else if (parameters[i] == 's' && traced.text_length == 0) {
            keep_text(call, value, argument(slot), traced);
        } else if (parameters[i] == 'v') {
            const u8* vector = call.in(value, 8);
            if (vector != nullptr && argument(slot) > 0)
                keep_text(call, load_bytes<u32>(vector), load_bytes<u32>(vector + 4), traced);
        } else if (parameters[i] == 'o' && !has_failed) {
            if (const u8* stored = call.in(value, 4)) traced.stored = load_bytes<u32>(stored);
        }
    }
    record->value = u32(which);
    const u8* bytes = reinterpret_cast<const u8*>(&traced);
    for (u32 i = 0; i < sizeof traced; i++) record->text[i] = bytes[i];
    record->kind = DebugKind::call;
    finish_record(made);
}

}  // namespace gpurun::rt
