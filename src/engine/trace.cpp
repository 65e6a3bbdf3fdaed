// Writes records as text.
#include "engine/trace.h"

#include <algorithm>
#include <cstring>

#include "abi/wasi.h"
#include "base/format.h"
#include "engine/names.h"
#include "engine/system_module.h"
#include "engine/value.h"

namespace gpurun::engine {
namespace {

// Returns a number as text: small ones, counts and descriptors, in decimal, large ones, addresses
// and flags, in hexadecimal.
std::string number_text(u64 number) {
    return format(number < 1024 ? "%llu" : "0x%llx", (unsigned long long)number);
}

std::string text_of(const u8* bytes, u64 length, u64 kept) {
    return {reinterpret_cast<const char*>(bytes), std::min(length, kept)};
}

std::string describe_call(const DebugRecord& record) {
    if (record.value >= system_rows().size()) return "an unknown call";
    const SystemRow& row = system_rows()[record.value];
    TracedCall call;
    std::memcpy(&call, record.text, sizeof call);
    std::string text = std::string(row.name) + "(", stored;
    bool has_text = call.text_length > 0;
    u32 word = 0;
    for (char letter : row.parameters) {
        if (word > 0) text += ", ";
        u64 value = call.arguments[word++];
        if (letter == 'I' || letter == 'F') value |= u64(call.arguments[word++]) << 32;
        if ((letter == 's' || letter == 'v') && has_text) {
            has_text = false;
            text += quoted(text_of(call.text, call.text_length, traced_text_bytes));
            if (call.text_length > traced_text_bytes) text += "...";
        } else {
            text += number_text(value);
        }
        if (letter == 'o') stored = ", " + number_text(call.stored);
    }
    text += ")";
    if (!call.has_result || row.results.empty()) return text;
    if (row.module == "gpu")
        return row.results == "i" ? text + " = " + number_text(call.result) : text;
    bool is_success = call.result == u32(wasi::Errno::success);
    return text + " = " + wasi::to_string(wasi::Errno(call.result)) + (is_success ? stored : "");
}

}  // namespace

std::string describe(const DebugRecord& record) {
    const u32 low = u32(record.value);
    switch (record.kind) {
        case DebugKind::i32: return std::to_string(s32(low));
        case DebugKind::i64: return std::to_string(s64(record.value));
        case DebugKind::f32: return Value{wasm::ValType::f32, {{low}}}.to_string();
        case DebugKind::f64:
            return Value{wasm::ValType::f64, {{low, u32(record.value >> 32)}}}.to_string();
        case DebugKind::boolean: return record.value ? "true" : "false";
        case DebugKind::text:
            return text_of(record.text, record.value, debug_text_bytes) +
                   (record.value > debug_text_bytes ? "…" : "");
        case DebugKind::call: return describe_call(record);
        case DebugKind::ended: return "a fault";  // described by the caller, who knows the program
    }
    return "";
}

std::string to_string(const DebugRecord& record) {
    return format("process %u: ", record.process) + describe(record);
}

Result<void> Notes::take_from(System& system) {
    TRY(system.take_records([&](const DebugRecord& record) { add(record); }));
    lost_on_device_ = TRY(system.lost_records());
    return {};
}

void Notes::add(const DebugRecord& record) {
    if (take_line_)
        take_line_(is_numbered_ ? to_string(record) : describe(record));
    else if (kept_.size() < most_)
        kept_.push_back(record);
    else
        lost_++;
}

}  // namespace gpurun::engine
