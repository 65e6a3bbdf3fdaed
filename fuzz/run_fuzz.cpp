// Whatever loads can be translated and run: calls each exported function with zeros, under limits
// on fuel, stack, heap and memory. The guest may trap, run out of fuel or block; nothing else.
#include "engine/store.h"
#include "wasm/module.h"

using namespace gpurun;

static const engine::StoreOptions limits = {
    .stack_slots = 1 << 14,
    .heap_words = 1 << 16,
    .table_elements = 10'000,
    .memory_bytes = 4 << 20,
    .all_memory_bytes = 64 << 20,
    .code_words = 1 << 20,
    .fuel = 100'000,
};

extern "C" int LLVMFuzzerTestOneInput(const u8* data, usize size) {
    auto module = wasm::load(wasm::Bytes(data, data + size));
    if (!module || !(*module)->imports.empty()) return 0;
    auto store = engine::Store::create(limits);
    if (!store) return 0;
    auto made = (*store)->instantiate(*module, {}, {});
    if (!made || made->completion.kind != engine::Completion::Kind::returned) return 0;
    for (const wasm::Export& exported : (*module)->exports) {
        if (exported.kind != wasm::ExternKind::func) continue;
        auto func = (*store)->find_export(*made->instance, exported.name);
        std::vector<engine::Value> zeros;
        for (wasm::ValType type : (*store)->type_of(*func).params) {
            if (!type.is_defaultable()) return 0;
            zeros.push_back({type});
        }
        (void)(*store)->call(*func, zeros, {});
    }
    return 0;
}
