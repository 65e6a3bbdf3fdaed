// Suggests names for those that do not exist.
#include "engine/names.h"

#include <vector>

#include "base/nearest.h"
#include "wasm/print.h"

namespace gpurun::engine {
namespace {

constexpr usize max_listed = 8;

}  // namespace

std::string quoted(std::string_view name) {
    std::string text;
    wasm::append_quoted(text, name);
    return text;
}

std::string suggest(std::string_view name, std::span<const std::string> known) {
    if (const std::string* best = nearest(name, known))
        return "; did you mean " + quoted(*best) + "?";
    if (known.empty() || known.size() > max_listed) return "";
    std::string text = known.size() == 1 ? "; there is " : "; there are ";
    for (usize i = 0; i < known.size(); i++) (text += i == 0 ? "" : ", ") += quoted(known[i]);
    return text;
}

Result<const wasm::Export*> find_function_export(const wasm::Module& module,
                                                 std::string_view name) {
    const wasm::Export* found = module.find_export(name);
    if (found && found->kind == wasm::ExternKind::func) return found;
    if (found)
        return Error{"export " + quoted(name) + " is a " + to_string(found->kind) +
                     ", not a function"};
    std::vector<std::string> known;
    for (const wasm::Export& item : module.exports)
        if (item.kind == wasm::ExternKind::func) known.push_back(item.name);
    if (known.empty())
        return Error{"no exported function " + quoted(name) + ": the module exports none"};
    return Error{"no exported function " + quoted(name) + suggest(name, known)};
}

Result<const wasm::Export*> find_initialize(const wasm::Module& module, std::string_view function) {
    const wasm::Export* found = module.find_export("_initialize");
    if (function == "_start" || !found || found->kind != wasm::ExternKind::func) return nullptr;
    const wasm::FuncType& type = module.func_type(found->index);
    if (type.params.empty() && type.results.empty()) return found;
    return Error{"_initialize has parameters or results, so it cannot be called before " +
                 quoted(function)};
}

}  // namespace gpurun::engine
