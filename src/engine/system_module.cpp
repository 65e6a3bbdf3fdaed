// Made from system_calls.def, and imports that it satisfies.
#include "engine/system_module.h"

#include "base/check.h"
#include "base/format.h"
#include "engine/store.h"
#include "text/assemble.h"
#include "wasm/decode.h"

namespace gpurun::engine {
namespace {

struct SystemRow {
    std::string_view module, name, parameters, results;
};

constexpr SystemRow rows[] = {
#define WASI(name, parameters, results) {"wasi_snapshot_preview1", #name, parameters, results},
#define GPU(name, parameters, results) {"gpu", #name, parameters, results},
#include "abi/system_calls.def"
};

std::string types(std::string_view letters, const char* keyword) {
    std::string text;
    for (char letter : letters) {
        const char* type = letter == 'i'   ? "i32"
                           : letter == 'I' ? "i64"
                           : letter == 'f' ? "f32"
                                           : "f64";
        text += format(" (%s %s)", keyword, type);
    }
    return text;
}

std::shared_ptr<const wasm::Module> make_module() {
    std::string text = "(module";
    for (const SystemRow& row : rows)
        text +=
            format("\n(func $%.*s (export \"%.*s\")%s%s unreachable)", int(row.name.size()),
                   row.name.data(), int(row.name.size()), row.name.data(),
                   types(row.parameters, "param").c_str(), types(row.results, "result").c_str());
    Result<text::Assembled> assembled = text::assemble(text + ")", "system");
    CHECK(assembled);
    auto module = wasm::load(std::move(assembled->bytes));
    CHECK(module);
    return std::move(*module);
}

const SystemRow* find_row(const wasm::Import& import) {
    for (const SystemRow& row : rows)
        if (row.module == import.module && row.name == import.name) return &row;
    return nullptr;
}

}  // namespace

const std::shared_ptr<const wasm::Module>& system_module() {
    static const std::shared_ptr<const wasm::Module> module = make_module();
    return module;
}

Result<std::vector<Extern>> Store::system_imports(const wasm::Module& module) {
    std::vector<Extern> imports;
    for (const wasm::Import& import : module.imports) {
        const SystemRow* row = find_row(import);
        if (row == nullptr || import.kind != wasm::ExternKind::func)
            return Error{
                format("unknown import \"%s\" \"%s\"; the runtime offers "
                       "wasi_snapshot_preview1 and gpu",
                       std::string(import.module).c_str(), std::string(import.name).c_str())};
        if (system_instance_ == nullptr)
            system_instance_ = TRY(instantiate(system_module(), {}, {})).instance;
        imports.push_back(*find_export(*system_instance_, row->name));
    }
    return imports;
}

}  // namespace gpurun::engine
