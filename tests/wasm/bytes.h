// Modules as bytes, put together by hand: what the tests of src/wasm feed to the decoder.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "wasm/module.h"

namespace gpurun::wasm::test {

enum SectionId : u8 {
    custom_id,
    type_id,
    import_id,
    func_id,
    table_id,
    memory_id,
    global_id,
    export_id,
    start_id,
    elem_id,
    code_id,
    data_id,
    data_count_id,
    tag_id,
};

inline Bytes operator+(Bytes a, const Bytes& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

inline Bytes leb(u64 value) {
    Bytes bytes;
    for (; value >= 0x80; value >>= 7) bytes.push_back(u8(value | 0x80));
    bytes.push_back(u8(value));
    return bytes;
}

inline Bytes sized(const Bytes& content) { return leb(content.size()) + content; }
inline Bytes text(std::string_view s) { return sized(Bytes(s.begin(), s.end())); }
inline Bytes section(u8 id, const Bytes& content) { return Bytes{id} + sized(content); }
inline Bytes custom(std::string_view name, const Bytes& content) {
    return section(custom_id, text(name) + content);
}

inline Bytes vec(const std::vector<Bytes>& items) {
    Bytes bytes = leb(items.size());
    for (const Bytes& item : items) bytes = std::move(bytes) + item;
    return bytes;
}

inline Bytes module_of(const std::vector<Bytes>& sections) {
    Bytes bytes = {0, 'a', 's', 'm', 1, 0, 0, 0};
    for (const Bytes& s : sections) bytes = std::move(bytes) + s;
    return bytes;
}

// A body without its size: locals, instructions, and the final end added.
inline Bytes body(const Bytes& instrs, const Bytes& locals = {0}) {
    return sized(locals + instrs + Bytes{0x0b});
}

// "ok", or "malformed 0x1f: …", or "invalid 0x1f: …".
inline std::string outcome(Bytes bytes) {
    auto loaded = load_or_explain(std::move(bytes));
    auto* failed = std::get_if<LoadError>(&loaded);
    if (!failed) return "ok";
    return (failed->is_malformed ? "malformed " : "invalid ") + failed->error.to_string();
}

inline std::shared_ptr<const Module> load_ok(Bytes bytes) {
    auto loaded = load_or_explain(std::move(bytes));
    auto* module = std::get_if<0>(&loaded);
    return module ? *module : nullptr;
}

}  // namespace gpurun::wasm::test
