// Writes frames, locals and memories of a dump for people to read.
#include "engine/inspect.h"

#include <algorithm>
#include <cinttypes>

#include "base/format.h"
#include "codegen/demangle.h"
#include "engine/value.h"
#include "translate/translate.h"
#include "wasm/source_line.h"

namespace gpurun::engine {
namespace {

using translate::SlotKind;
using wasm::ValType;

ValType type_of(SlotKind kind) {
    switch (kind) {
        case SlotKind::i32: return ValType::i32;
        case SlotKind::i64: return ValType::i64;
        case SlotKind::f32: return ValType::f32;
        case SlotKind::f64: return ValType::f64;
        case SlotKind::v128: return ValType::v128;
        case SlotKind::ref: break;
    }
    return ValType::ref(u32(wasm::Heap::any), true);
}

// Returns a value as text: "i32 = 42 (0x2a)", or with "?" if its words are missing.
std::string value_text(ValType type, std::span<const u32> words) {
    u32 count = translate::words_of(type);
    if (words.size() < count) return "?";
    Value value{type};
    std::copy_n(words.begin(), count, value.bits.word);
    if (type.is_ref()) return value.low() == 0 ? "ref = null" : format("ref = 0x%x", value.low());
    std::string text = wasm::TypeTable().name(type) + " = " + value.to_string();
    if (type == ValType::i32) text += format(" (0x%x)", value.low());
    if (type == ValType::i64) text += format(" (0x%" PRIx64 ")", value.wide());
    return text;
}

std::string local_name(const wasm::Module& module, u32 func, u32 local) {
    for (const auto& [index, names] : module.names.locals)
        if (index == func)
            for (const auto& [number, name] : names)
                if (number == local) return name;
    return format("local %u", local);
}

std::string global_name(const wasm::Module& module, u32 global) {
    for (const wasm::Export& item : module.exports)
        if (item.kind == wasm::ExternKind::global && item.index == global) return item.name;
    return format("global %u", global);
}

std::string frame_text(const wasm::Module& module, const ProcessSnapshot::Frame& frame) {
    if (!frame.func) return frame.runtime + ", of the runtime\n";
    std::string text =
        codegen::demangled(module.func_name(*frame.func)) + format(" (0x%x)", frame.wasm_offset);
    std::string source = wasm::source_line(module, frame.wasm_offset);
    text += (source.empty() ? "" : " at " + source) + "\n";
    translate::FunctionMap map = translate::map_function(module, *frame.func, {});
    for (usize i = 0; i < map.local_slots.size(); i++) {
        u32 slot = map.local_slots[i];
        std::span<const u32> words(frame.slots);
        words = words.subspan(std::min<usize>(slot, words.size()));
        text += "        " + local_name(module, *frame.func, u32(i)) + ": " +
                value_text(type_of(map.local_kinds[i]), words) + "\n";
    }
    return text;
}

// Reads a memory in pieces, so that one of gigabytes takes little of ours, and calls `take` with
// each.
template <class Take>
Result<void> for_pieces(const Dump& dump, u32 memory, u64 address, u64 size, Take take) {
    constexpr u64 piece = u64{1} << 20;
    if (memory >= dump.state.memories.size())
        return Error{format("there is no memory %u; the module has %zu", memory,
                            dump.state.memories.size())};
    const u64 all = dump.state.memories[memory].size;
    if (address >= all)
        return Error{format("0x%" PRIx64 " is past the end of memory %u, which has 0x%" PRIx64
                            " bytes",
                            address, memory, all)};
    const u64 end = address + std::min(size, all - address);
    for (u64 at = address; at < end; at += piece) {
        std::vector<u8> bytes =
            TRY(read_dumped_memory(dump, memory, at, std::min(piece, end - at)));
        if (!take(at, bytes)) break;
    }
    return {};
}

bool is_printable(u8 byte) { return byte >= 0x20 && byte < 0x7f; }

std::string hex_line(u64 address, std::span<const u8> bytes) {
    constexpr usize width = 16;
    std::string text = format("%08" PRIx64 " ", address), shown;
    for (usize i = 0; i < width; i++) {
        text += i % 8 == 0 ? " " : "";
        text += i < bytes.size() ? format("%02x ", bytes[i]) : "   ";
        if (i < bytes.size()) shown += is_printable(bytes[i]) ? char(bytes[i]) : '.';
    }
    return text + " |" + shown + "|\n";
}

}  // namespace

std::string describe_dump(const Dump& dump) {
    const wasm::Module& module = *dump.module;
    std::string text =
        dump.file + format(", process %u: ", dump.process) + dump.state.ending + "\n";
    for (usize i = 0; i < dump.state.frames.size(); i++)
        text += format("%4zu: ", i) + frame_text(module, dump.state.frames[i]);
    if (dump.state.more_frames)
        text += format("      and %" PRIu64 " more frames\n", dump.state.more_frames);
    if (!module.globals.empty()) text += "globals:\n";
    for (u32 i = 0; i < module.globals.size(); i++)
        text += "        " + global_name(module, i) + ": " +
                value_text(module.globals[i].type.type, dump.state.globals[i]) + "\n";
    for (usize i = 0; i < dump.state.memories.size(); i++)
        text += format("memory %zu: %" PRIu64 " bytes\n", i, dump.state.memories[i].size);
    return text;
}

Result<void> print_memory(const Dump& dump, u32 memory, u64 address, u64 size,
                          const TextSink& sink) {
    return for_pieces(dump, memory, address, size, [&](u64 at, std::span<const u8> bytes) {
        for (usize i = 0; i < bytes.size(); i += 16)
            if (!sink(hex_line(at + i, bytes.subspan(i, std::min<usize>(16, bytes.size() - i)))))
                return false;
        return true;
    });
}

Result<void> print_strings(const Dump& dump, u32 memory, u32 least, const TextSink& sink) {
    constexpr usize most = 4096;  // of one; longer ones are told in parts
    std::string run;
    u64 begin = 0;
    auto finish = [&] {
        bool goes_on = run.size() < least || sink(format("%08" PRIx64 "  ", begin) + run + "\n");
        run.clear();
        return goes_on;
    };
    const u64 everything = ~u64{0};
    TRY(for_pieces(dump, memory, 0, everything, [&](u64 at, std::span<const u8> bytes) {
        for (usize i = 0; i < bytes.size(); i++) {
            bool is_part = is_printable(bytes[i]) || bytes[i] == '\t';
            if (run.empty()) begin = at + i;
            if (is_part) run += char(bytes[i]);
            if ((!is_part || run.size() == most) && !finish()) return false;
        }
        return true;
    }));
    finish();
    return {};
}

}  // namespace gpurun::engine
