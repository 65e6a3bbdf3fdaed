// Records for the host to print: of the debug_* functions, and of system calls if they are traced.
#include "runtime/system.h"

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
    for (u32 i = 0; i < length && i < traced_text_bytes; i++) traced.text[i] = text[i];
}

}  // namespace

DebugRecord* next_debug_record(const Call& call) {
    SystemHeader& system = system_of(call.p);
    // Those beyond the capacity are counted all the same.
    u64 number = fetch_add(&system.debug_count, u64{1});
    if (number >= system.debug_capacity) return nullptr;
    DebugRecord* record = at_handle<DebugRecord>(call.p, system.debug) + number;
    record->process = call.me->id;
    return record;
}

bool has_room_for_records(const Call& call) {
    const SystemHeader& system = system_of(call.p);
    constexpr u32 most = 2;  // its own, and that it was made
    return system.debug_count == 0 || system.debug_count + most <= system.debug_capacity;
}

void trace(const Call& call, SystemCall which, u32 first_word, Outcome outcome) {
    bool has_ended = outcome == Outcome::next;
    bool has_exited =
        outcome == Outcome::leave && word(call.thread, thread_state) == u32(ThreadState::exited);
    if (!has_ended && !has_exited) return;  // it is made again
    DebugRecord* record = next_debug_record(call);
    if (record == nullptr) return;
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
}

}  // namespace gpurun::rt
