// Computes where the parts of an instance lie among its words, from the module alone.
#pragma once

#include <vector>

#include "abi/layout.h"
#include "wasm/module.h"

namespace gpurun::translate {

constexpr u32 words_of(wasm::ValType type) {
    if (type.is_ref()) return 1;
    switch (type.kind()) {
        case wasm::ValType::i64:
        case wasm::ValType::f64: return 2;
        case wasm::ValType::v128: return 4;
        default: return 1;
    }
}

struct InstanceLayout {
    u32 memories, tables, tags;           // each word: index of the record or tag
    u32 imported_funcs;                   // each word: function reference
    u32 imported_globals;                 // each word: index of the global's first word
    u32 data_state, elem_state;           // see abi/layout.h
    std::vector<u32> globals;             // own globals: first word; indexed by global index
    std::vector<bool> elem_is_evaluated;  // kept as references in the process's words
    u32 words;                            // size of the instance

    explicit InstanceLayout(const wasm::Module& module);
};

}  // namespace gpurun::translate
