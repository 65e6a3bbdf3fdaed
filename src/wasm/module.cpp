// Loads a module, and answers the few questions about one.
#include "wasm/module.h"

#include <algorithm>

#include "base/format.h"
#include "wasm/decode.h"

namespace gpurun::wasm {

const char* to_string(ExternKind kind) {
    switch (kind) {
        case ExternKind::func: return "func";
        case ExternKind::table: return "table";
        case ExternKind::memory: return "memory";
        case ExternKind::global: return "global";
        case ExternKind::tag: return "tag";
    }
    return "?";
}

const Export* Module::find_export(std::string_view name) const {
    auto found = std::find_if(exports.begin(), exports.end(),
                              [&](const Export& item) { return item.name == name; });
    return found == exports.end() ? nullptr : &*found;
}

std::string Module::func_name(u32 func) const {
    auto named = std::lower_bound(names.funcs.begin(), names.funcs.end(), func,
                                  [](const auto& entry, u32 index) { return entry.first < index; });
    if (named != names.funcs.end() && named->first == func) return named->second;
    for (const Export& item : exports)
        if (item.kind == ExternKind::func && item.index == func) return item.name;
    if (func < imported_funcs)
        for (const Import& import : imports)
            if (import.kind == ExternKind::func && import.index == func)
                return import.module + "." + import.name;
    return format("func[%u]", func);
}

std::variant<std::shared_ptr<const Module>, LoadError> load_or_explain(Bytes bytes) {
    auto explain = [](const Failure& failure) {
        return LoadError{{failure.message, failure.offset}, failure.is_malformed};
    };
    Decoder decoder(std::move(bytes));
    if (!decoder.decode()) return explain(decoder.failure());
    auto failure = validate_bodies(*decoder.module(), decoder.has_data_count());
    if (failure) return explain(*failure);
    return std::shared_ptr<const Module>(decoder.module());
}

Result<std::shared_ptr<const Module>> load(Bytes bytes) {
    auto loaded = load_or_explain(std::move(bytes));
    if (auto* failed = std::get_if<LoadError>(&loaded)) return std::move(failed->error);
    return std::get<0>(std::move(loaded));
}

}  // namespace gpurun::wasm
