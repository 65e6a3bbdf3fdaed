// Makes the module from system_calls.def, and explains imports that it does not have.
#include "engine/system_module.h"

#include <algorithm>

#include "base/check.h"
#include "base/format.h"
#include "engine/store.h"
#include "text/assemble.h"
#include "wasm/decode.h"

namespace gpurun::engine {
namespace {

constexpr SystemRow rows[] = {
#define WASI(name, parameters, results) \
    {"wasi_snapshot_preview1", #name, parameters, results, "wasi_unstable"},
#define PREVIEW1(name, parameters, results) {"wasi_snapshot_preview1", #name, parameters, results},
#define UNSTABLE(name, parameters, results) {"wasi_unstable", #name, parameters, results},
#define GPU(name, parameters, results) {"gpu", #name, parameters, results},
#define WASIX(name, parameters, results) {"wasix_32v1", #name, parameters, results},
#define THREADS(name, import_name, parameters, results) {"wasi", import_name, parameters, results},
#include "abi/system_calls.def"
};

std::string type_list(std::string_view letters, const char* keyword) {
    std::string text;
    for (char letter : letters) {
        const char* type = letter == 'I'   ? "i64"
                           : letter == 'f' ? "f32"
                           : letter == 'F' ? "f64"
                                           : "i32";
        text += format(" (%s %s)", keyword, type);
    }
    return text;
}

std::string type_list(const std::vector<wasm::ValType>& list, const char* keyword) {
    std::string text;
    for (wasm::ValType type : list)
        text += format(" (%s %s)", keyword, wasm::TypeTable().name(type).c_str());
    return text;
}

std::string function_text(const std::string& name, const std::string& params,
                          const std::string& results, const std::string& id = "") {
    return format("\n(func %s (export \"%s\")%s%s unreachable)", id.c_str(), name.c_str(),
                  params.c_str(), results.c_str());
}

std::shared_ptr<const wasm::Module> make_module(const std::string& functions) {
    Result<text::Assembled> assembled = text::assemble("(module" + functions + ")", "system");
    CHECK(assembled);
    auto module = wasm::load(std::move(assembled->bytes));
    CHECK(module);
    return std::move(*module);
}

// Returns the name of a row's export. It has the module's name too, since functions of different
// modules may have the same.
std::string export_name(const SystemRow& row) {
    return std::string(row.module) + "." + std::string(row.name);
}

// Returns the name that traces of calls and of stacks show: the function's alone for the
// first row of that name.
std::string shown_name(const SystemRow& row) {
    bool is_first =
        &row == std::ranges::find(rows, row.name, [](const SystemRow& r) { return r.name; });
    return is_first ? std::string(row.name) : export_name(row);
}

std::shared_ptr<const wasm::Module> make_system_module() {
    std::string text;
    for (const SystemRow& row : rows)
        text += function_text(export_name(row), type_list(row.parameters, "param"),
                              type_list(row.results, "result"), "$" + shown_name(row));
    return make_module(text);
}

const SystemRow* find_row(const wasm::Import& import) {
    for (const SystemRow& row : rows)
        if ((row.module == import.module || row.alias == import.module) && row.name == import.name)
            return &row;
    return nullptr;
}

// Returns the modules that have rows, in their order: "a, b and c".
std::string offered() {
    std::vector<std::string_view> modules;
    for (const SystemRow& row : rows)
        if (std::ranges::find(modules, row.module) == modules.end()) modules.push_back(row.module);
    std::string text;
    for (usize i = 0; i < modules.size(); i++)
        text += std::string(i == 0                    ? ""
                            : i + 1 == modules.size() ? " and "
                                                      : ", ") +
                std::string(modules[i]);
    return text;
}

// ---- what a module with unknown imports was built for ------------------------------

bool is_emscripten(const wasm::Import& import) {
    if (import.module != "env" && import.module != "wasi_snapshot_preview1") return false;
    const std::string_view name = import.name;
    return name.starts_with("emscripten_") || name.starts_with("_emscripten_") ||
           name.starts_with("invoke_") || name.starts_with("__syscall_") ||
           name.starts_with("_embind_") || name == "__cxa_throw";
}

// Returns true if Emscripten shortened the module's names: then all imports are from "a".
bool is_minified(const wasm::Module& module) {
    constexpr usize longest = 3;
    auto is_short = [](const auto& item) { return item.name.size() <= longest; };
    return !module.exports.empty() && std::ranges::all_of(module.exports, is_short) &&
           std::ranges::all_of(module.imports, [&](const wasm::Import& import) {
               return import.module == "a" && is_short(import);
           });
}

bool is_wasm_bindgen(const wasm::Import& import) {
    return import.module == "wbg" || import.module.starts_with("__wbindgen_") ||
           import.name.starts_with("__wbindgen_");
}

// Returns what the module was built for, and what to do about it.
std::string advice(const wasm::Module& module, const std::vector<const wasm::Import*>& unknown) {
    auto any = [&](auto is_so) {
        return std::ranges::any_of(unknown, [&](const wasm::Import* one) { return is_so(*one); });
    };
    if (any(is_wasm_bindgen))
        return "it was made by wasm-bindgen and needs JavaScript; build it as a program, for "
               "wasm32-wasip1";
    if (any(is_emscripten) || is_minified(module))
        return "it was made by Emscripten and needs its JavaScript; build it with "
               "-sSTANDALONE_WASM, or by wasi-sdk for wasm32-wasip1";
    if (any([](const wasm::Import& one) { return one.module == "go" || one.module == "gojs"; }))
        return "it was made by Go for JavaScript; build it with GOOS=wasip1 GOARCH=wasm";
    if (any([](const wasm::Import& one) { return one.module.starts_with("wasi:"); }))
        return "it was made for WASI 0.2 or later; build it for wasm32-wasip1";
    auto is_known = [](const wasm::Import& one) {
        return std::ranges::any_of(rows, [&](const SystemRow& row) {
            return row.module == one.module || row.alias == one.module;
        });
    };
    if (std::ranges::all_of(unknown, [&](const wasm::Import* one) { return is_known(*one); }))
        return unknown.size() == 1 ? "that module has no such function"
                                   : "those modules have no such functions";
    return "the runtime offers " + offered();
}

// Returns the Error for unknown imports. Names come from the module, so the message has a bounded
// part of them.
Error unknown_imports(const wasm::Module& module, const std::vector<const wasm::Import*>& unknown) {
    constexpr usize most_named = 20, most_letters = 80;
    auto shortened = [](const std::string& name) {
        return name.size() <= most_letters ? name : name.substr(0, most_letters) + "...";
    };
    std::string text = unknown.size() == 1 ? "unknown import " : "unknown imports ";
    for (usize i = 0; i < unknown.size() && i < most_named; i++)
        text += format("%s%s.%s (%s)", i == 0 ? "" : ", ", shortened(unknown[i]->module).c_str(),
                       shortened(unknown[i]->name).c_str(), to_string(unknown[i]->kind));
    if (unknown.size() > most_named) text += format(" and %zu more", unknown.size() - most_named);
    return {text + "; " + advice(module, unknown)};
}

}  // namespace

std::span<const SystemRow> system_rows() { return rows; }

const std::shared_ptr<const wasm::Module>& system_module() {
    static const std::shared_ptr<const wasm::Module> module = make_system_module();
    return module;
}

u32 first_host_function() { return u32(std::size(rows)); }

Result<void> Store::offer(std::span<const HostFunction> functions) {
    CHECK(host_instance_ == nullptr);
    std::string text;
    for (usize i = 0; i < functions.size(); i++) {
        const wasm::FuncType& type = functions[i].type;
        for (const auto* list : {&type.params, &type.results})
            for (wasm::ValType value : *list)
                if (value.is_ref())
                    return Error{format("host function \"%s\" \"%s\" has references in its type",
                                        functions[i].module.c_str(), functions[i].name.c_str())};
        text += function_text(std::to_string(i), type_list(type.params, "param"),
                              type_list(type.results, "result"));
        host_names_.emplace_back(functions[i].module, functions[i].name);
    }
    if (functions.empty()) return {};
    host_module_ = make_module(text);
    host_instance_ = TRY(instantiate(host_module_, {}, {})).instance;
    return {};
}

Result<std::vector<Extern>> Store::system_imports(const wasm::Module& module) {
    std::vector<Extern> imports;
    std::vector<const wasm::Import*> unknown;
    for (const wasm::Import& import : module.imports) {
        auto host = std::ranges::find(host_names_, std::pair(import.module, import.name));
        if (import.kind == wasm::ExternKind::func && host != host_names_.end()) {
            std::string number = std::to_string(host - host_names_.begin());
            imports.push_back(*find_export(*host_instance_, number));
            continue;
        }
        if (import.kind == wasm::ExternKind::memory) {
            provided_memories_.push_back(TRY(make_memory(module.memories[import.index])));
            imports.push_back(provided_memories_.back());
            continue;
        }
        const SystemRow* row = find_row(import);
        if (row == nullptr || import.kind != wasm::ExternKind::func) {
            unknown.push_back(&import);
            continue;
        }
        if (system_instance_ == nullptr) {
            system_module_ = system_module();
            system_instance_ = TRY(instantiate(system_module_, {}, {})).instance;
        }
        imports.push_back(*find_export(*system_instance_, export_name(*row)));
    }
    if (!unknown.empty()) return unknown_imports(module, unknown);
    return imports;
}

}  // namespace gpurun::engine
