// A module that exports what another one imports: functions that return zeros, and memories,
// tables, globals and tags of the types asked for. What it stands in for has no say beyond that.
#pragma once

#include <optional>
#include <string>

#include "base/format.h"
#include "wasm/module.h"

namespace gpurun::fuzz {

// The text of such a type; empty if it speaks of the module's own types or has no zero.
inline std::string type_text(const wasm::Module& module, wasm::ValType type) {
    if (type.is_concrete() || !type.is_defaultable()) return "";
    return module.types.name(type);
}

inline std::string zero_text(const wasm::Module& module, wasm::ValType type) {
    if (type.is_ref()) return "(ref.null " + module.types.heap_name(type.heap()) + ")";
    if (type == wasm::ValType::v128) return "(v128.const i64x2 0 0)";
    return "(" + module.types.name(type) + ".const 0)";
}

inline std::string limits_text(const wasm::Limits& limits) {
    std::string text = limits.is_64 ? "i64 " : "";
    text += std::to_string(limits.min);
    if (limits.max) text += " " + std::to_string(*limits.max);
    if (limits.is_shared) text += " shared";
    return text;
}

// One field of the stand-in, or nothing if there is none for it.
inline std::optional<std::string> stand_in(const wasm::Module& module, const wasm::Import& import) {
    switch (import.kind) {
        case wasm::ExternKind::func:
        case wasm::ExternKind::tag: {
            bool is_func = import.kind == wasm::ExternKind::func;
            u32 id = is_func ? module.funcs[import.index].type : module.tags[import.index].type;
            const wasm::FuncType& type = module.types[id].func;
            std::string text, body;
            for (wasm::ValType param : type.params) {
                std::string name = type_text(module, param);
                if (name.empty()) return std::nullopt;
                text += " (param " + name + ")";
            }
            for (wasm::ValType result : type.results) {
                std::string name = type_text(module, result);
                if (name.empty()) return std::nullopt;
                text += " (result " + name + ")";
                body += zero_text(module, result);
            }
            return text + body;
        }
        case wasm::ExternKind::table: {
            const wasm::TableType& type = module.tables[import.index].type;
            std::string name = type_text(module, type.element);
            if (name.empty()) return std::nullopt;
            return limits_text(type.limits) + " " + name;
        }
        case wasm::ExternKind::memory: return limits_text(module.memories[import.index].limits);
        case wasm::ExternKind::global: {
            const wasm::GlobalType& type = module.globals[import.index].type;
            std::string name = type_text(module, type.type);
            if (name.empty()) return std::nullopt;
            return (type.is_mutable ? "(mut " + name + ")" : name) + zero_text(module, type.type);
        }
    }
    return std::nullopt;
}

// The n-th import is exported as "n".
inline std::optional<std::string> stand_in_module(const wasm::Module& module) {
    std::string text;
    for (usize i = 0; i < module.imports.size(); i++) {
        std::optional<std::string> field = stand_in(module, module.imports[i]);
        if (!field) return std::nullopt;
        text += format("(%s (export \"%zu\") %s)\n", to_string(module.imports[i].kind), i,
                       field->c_str());
    }
    return text;
}

}  // namespace gpurun::fuzz
