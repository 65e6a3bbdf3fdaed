// Lays an instance out.
#include "translate/instance_layout.h"

namespace gpurun::translate {

InstanceLayout::InstanceLayout(const wasm::Module& module) {
    u32 next = instance_first_free;
    auto take = [&](usize count) {
        u32 at = next;
        next += u32(count);
        return at;
    };
    memories = take(module.memories.size());
    tables = take(module.tables.size());
    tags = take(module.tags.size());
    imported_funcs = take(module.imported_funcs);
    imported_globals = take(module.imported_globals);
    data_state = take(module.data.size());
    elem_state = take(2 * module.elems.size());
    globals.resize(module.globals.size());
    for (u32 i = module.imported_globals; i < module.globals.size(); i++)
        globals[i] = take(words_of(module.globals[i].type.type));
    words = next;

    for (const wasm::Elem& elem : module.elems) {
        // Own functions can be named by index; an imported one is another instance's.
        bool evaluated = !elem.init.empty();
        for (u32 func : elem.funcs) evaluated |= func < module.imported_funcs;
        elem_is_evaluated.push_back(evaluated);
    }
}

}  // namespace gpurun::translate
