// Translates a module's functions, in parallel if there are many, and joins their code.
#include "translate/translate.h"

#include <algorithm>
#include <atomic>
#include <thread>

#include "base/check.h"
#include "base/format.h"
#include "base/threads.h"
#include "translate/function_translator.h"

namespace gpurun::translate {
namespace {

// A run of functions that one thread translates.
struct Piece {
    u32 first, end;
    FunctionTranslator translator;
    std::vector<u32> entries;  // in the piece's own code
    u32 failed = ~u32{0};      // function whose frame is too large

    void translate() {
        for (u32 func = first; func < end; func++) {
            entries.push_back(u32(translator.code.size()));
            if (!translator.translate_function(func)) {
                failed = func;
                return;
            }
        }
    }
};

Error frame_error(const wasm::Module& module, u32 func) {
    return {format("%s needs more than %u slots for its parameters and operands",
                   module.func_name(func).c_str(), max_frame_slots),
            module.funcs[func].code};
}

std::vector<Piece> split(const wasm::Module& module, const InstanceLayout& layout,
                         const Options& options) {
    u32 threads =
        options.threads ? options.threads : std::max(1u, std::thread::hardware_concurrency());
    constexpr u32 bytes_worth_a_thread = 256 << 10;
    u64 bytes = 0;
    for (const wasm::Func& func : module.funcs) bytes += func.end - func.code;
    u64 share = std::max<u64>(bytes / threads + 1, bytes_worth_a_thread);

    std::vector<Piece> pieces;
    u32 first = module.imported_funcs;
    u64 taken = 0;
    for (u32 i = first; i < module.funcs.size(); i++) {
        taken += module.funcs[i].end - module.funcs[i].code;
        if (taken < share && i + 1 < module.funcs.size()) continue;
        pieces.push_back({first, i + 1, FunctionTranslator(module, layout, options.metered), {}});
        pieces.back().translator.code.reserve(taken);
        first = i + 1;
        taken = 0;
    }
    return pieces;
}

FunctionCode finish_alone(FunctionTranslator& translator, FunctionCode result) {
    result.words = std::move(translator.code);
    for (const CallFixup& call : translator.calls)
        result.callees.push_back({call.position, call.func});
    return result;
}

// Sets the distances of calls in code that stands at position `base`, whose first word is words[0].
void connect(std::span<u64> words, std::span<const CallFixup> calls, u32 base,
             std::span<const u32> entries) {
    for (const CallFixup& call : calls) {
        const u32 distance = entries[call.func] - (base + call.position);
        if (call.is_tail) {
            words[call.position + 1] |= distance;
        } else {
            words[call.position] |= u64(distance) << 32;
        }
    }
}

}  // namespace

Result<Code> translate(const wasm::Module& module, const Options& options) {
    Code result{{}, {}, 0, InstanceLayout(module)};
    std::vector<Piece> pieces = split(module, result.layout, options);
    std::atomic<usize> next = 0;
    share_work(u32(pieces.size()), [&](u32) {
        for (usize i; (i = next.fetch_add(1)) < pieces.size();) pieces[i].translate();
    });

    FunctionTranslator instantiate(module, result.layout, false);
    if (!instantiate.translate_instantiate())
        return Error{format("the initialisers need more than %u slots", max_frame_slots)};

    usize size = instantiate.code.size();
    for (const Piece& piece : pieces) {
        if (piece.failed != ~u32{0}) return frame_error(module, piece.failed);
        size += piece.translator.code.size();
    }
    result.words.reserve(size);
    result.entries.assign(module.imported_funcs, 0);
    std::vector<u32> bases;
    for (Piece& piece : pieces) {
        u32 base = u32(result.words.size());
        bases.push_back(base);
        for (u32 entry : piece.entries) result.entries.push_back(base + entry);
        result.words.insert(result.words.end(), piece.translator.code.begin(),
                            piece.translator.code.end());
        piece.translator.code = {};
    }
    result.instantiate = u32(result.words.size());
    result.words.insert(result.words.end(), instantiate.code.begin(), instantiate.code.end());

    auto connect_at = [&](const FunctionTranslator& translator, u32 base) {
        connect(std::span(result.words).subspan(base), translator.calls, base, result.entries);
    };
    for (usize i = 0; i < pieces.size(); i++) connect_at(pieces[i].translator, bases[i]);
    connect_at(instantiate, result.instantiate);
    return result;
}

Result<Code> translate_system(const wasm::Module& module, u32 first) {
    Code result{{}, {}, 0, InstanceLayout(module)};
    for (u32 func = 0; func < module.funcs.size(); func++) {
        const wasm::FuncType& type = module.func_type(func);
        u32 slots = std::max(words_of(type.params), words_of(type.results));
        result.entries.push_back(u32(result.words.size()));
        result.words.push_back(code_word(CodeOp::enter, 0, 0, slots + record_words));
        result.words.push_back(code_word_imm(CodeOp::system, slots, first + func));
        result.words.push_back(code_word(CodeOp::ret));
        CHECK(result.words.size() == (func + 1) * system_stub_words);
    }
    FunctionTranslator instantiate(module, result.layout, false);
    if (!instantiate.translate_instantiate()) return Error{"the system module has initialisers"};
    result.instantiate = u32(result.words.size());
    result.words.insert(result.words.end(), instantiate.code.begin(), instantiate.code.end());
    return result;
}

Result<std::vector<u64>> translate_beginning(const wasm::Module& module,
                                             const InstanceLayout& layout,
                                             std::span<const u32> entries, u32 instantiate, u32 at,
                                             std::optional<u32> initialize, u32 func) {
    FunctionTranslator translator(module, layout, false);
    u32 first = 0;
    if (!translator.translate_beginning(initialize, func, first)) return frame_error(module, func);
    connect(translator.code, translator.calls, at, entries);
    translator.code[first] |= u64(instantiate - (at + first)) << 32;
    return std::move(translator.code);
}

FunctionMap map_function(const wasm::Module& module, u32 func, const Options& options) {
    InstanceLayout layout(module);
    FunctionTranslator translator(module, layout, options.metered);
    FunctionMap map;
    translator.map = &map;
    translator.translate_function(func);
    return map;
}

std::optional<FunctionCode> translate_function(const wasm::Module& module,
                                               const InstanceLayout& layout, u32 func,
                                               const Options& options) {
    FunctionTranslator translator(module, layout, options.metered);
    FunctionCode result;
    translator.map = &result.map;
    if (!translator.translate_function(func)) return std::nullopt;
    return finish_alone(translator, std::move(result));
}

std::optional<FunctionCode> translate_instantiate(const wasm::Module& module,
                                                  const InstanceLayout& layout) {
    FunctionTranslator translator(module, layout, false);
    if (!translator.translate_instantiate()) return std::nullopt;
    return finish_alone(translator, {});
}

u32 FunctionMap::wasm_offset_at(u32 position) const {
    auto after = std::upper_bound(lines.begin(), lines.end(), position,
                                  [](u32 p, const Line& line) { return p < line.position; });
    return after == lines.begin() ? 0 : std::prev(after)->wasm_offset;
}

}  // namespace gpurun::translate
