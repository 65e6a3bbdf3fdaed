// differential FILE...: runs every function that a module exports in the interpreter, by machine
// code, and by both in turns, and prints what differs: results and ends to the bit, where a trap
// was, the fuel that is left. What a module imports are functions of another instance, which note
// their arguments. The exit code is 1 if anything differs.
#include <cstdio>
#include <cstring>

#include "base/format.h"
#include "engine/load.h"
#include "engine/store.h"
#include "text/assemble.h"

namespace gpurun {
namespace {

using device::Tier;
using engine::Completion;
using engine::Value;
using wasm::ValType;

constexpr u64 fuel = 200'000;
constexpr u64 samples[] = {0,
                           1,
                           0xffff'ffff'ffff'ffff,
                           0x7fff'ffff,
                           0x8000'0000'0000'0000,
                           77,
                           0x4028'0000'0000'0000,
                           0x7ff8'0000'0000'0001};

const char* name_of(ValType type) {
    switch (type.kind()) {
        case ValType::i64: return "i64";
        case ValType::f32: return "f32";
        case ValType::f64: return "f64";
        case ValType::v128: return "v128";
        default: return "i32";
    }
}

// A module with functions of those types: each mixes its arguments into a global, and returns zero.
Result<std::string> functions_for(const wasm::Module& module) {
    std::string text = "(module (global $seen (export \"seen\") (mut i64) (i64.const 0))";
    for (const wasm::Import& import : module.imports) {
        if (import.kind == wasm::ExternKind::tag) {
            text += format("(tag (export \"%u\")", import.index);
            for (ValType t : module.types[module.tags[import.index].type].func.params)
                text += format(" (param %s)", name_of(t));
            text += ")";
            continue;
        }
        if (import.kind != wasm::ExternKind::func) return Error{"imports more than functions"};
        const wasm::FuncType& type = module.func_type(import.index);
        text += format("(func (export \"%u\")", import.index);
        for (ValType t : type.params) text += format(" (param %s)", name_of(t));
        for (ValType t : type.results) text += format(" (result %s)", name_of(t));
        for (u32 i = 0; i < type.params.size(); i++) {
            std::string value = format("(local.get %u)", i);
            switch (type.params[i].kind()) {
                case ValType::i64: break;
                case ValType::f32:
                    value = "(i64.extend_i32_u (i32.reinterpret_f32 " + value + "))";
                    break;
                case ValType::f64: value = "(i64.reinterpret_f64 " + value + ")"; break;
                case ValType::v128: value = "(i64x2.extract_lane 1 " + value + ")"; break;
                default: value = "(i64.extend_i32_u " + value + ")"; break;
            }
            text += "(global.set $seen (i64.add (i64.mul (global.get $seen) (i64.const 31)) " +
                    value + "))";
        }
        for (ValType t : type.results)
            text += t == ValType(ValType::v128) ? std::string("(v128.const i64x2 0 0)")
                                                : format("(%s.const 0)", name_of(t));
        text += ")";
    }
    return text + ")";
}

std::string describe(const Completion& completion, engine::Store& store) {
    std::string text = completion.to_string();
    for (const Value& value : completion.results)
        text += format(" %08x%08x%08x%08x", value.bits.word[3], value.bits.word[2],
                       value.bits.word[1], value.bits.word[0]);
    for (const engine::Frame& frame : completion.backtrace)
        text += format(" %u@%x", frame.func, frame.wasm_offset);
    Result<u64> left = store.fuel();
    return text + format(" fuel %llu", (unsigned long long)(left ? *left : 0));
}

// A line for each call.
Result<std::vector<std::string>> run(const std::shared_ptr<const wasm::Module>& module, Tier tier) {
    engine::StoreOptions options;
    options.stack_slots = 1 << 14;
    options.heap_words = 1 << 16;
    options.memory_bytes = 64 << 20;
    options.all_memory_bytes = 256 << 20;
    options.code_words = 1 << 22;
    options.fuel = fuel;
    options.tier = tier;
    std::unique_ptr<engine::Store> store = TRY(engine::Store::create(options));
    const std::string functions = TRY(functions_for(*module));
    text::Assembled stub = TRY(text::assemble(functions, "imports"));
    auto stub_module = TRY(wasm::load(std::move(stub.bytes)));
    engine::Instance* given = TRY(store->instantiate(stub_module, {}, {})).instance;
    std::vector<engine::Extern> imports;
    for (const wasm::Import& import : module->imports)
        imports.push_back(*store->find_export(*given, std::to_string(import.index)));
    auto [instance, begun] = TRY(store->instantiate(module, imports, {}));
    std::vector<std::string> lines = {"instantiate: " + describe(begun, *store)};
    if (begun.kind != Completion::Kind::returned) return lines;
    const engine::Extern seen = *store->find_export(*given, "seen");
    u32 sample = 0;
    for (const wasm::Export& exported : module->exports) {
        if (exported.kind != wasm::ExternKind::func) continue;
        const engine::Extern func = *store->find_export(*instance, exported.name);
        for (u32 round = 0; round < 2; round++) {
            std::vector<Value> arguments;
            for (ValType type : store->type_of(func).params) {
                const u64 bits = samples[sample++ % std::size(samples)];
                Value value{type};
                if (!type.is_ref()) value.bits.word[0] = u32(bits);
                if (translate::words_of(type) > 1) value.bits.word[1] = u32(bits >> 32);
                arguments.push_back(value);
            }
            Completion done = TRY(store->call(func, arguments, {}));
            const Value noted = TRY(store->read_global(seen));
            lines.push_back(exported.name + ": " + describe(done, *store) +
                            format(" seen %llx", (unsigned long long)noted.wide()));
        }
    }
    return lines;
}

// False: something differs.
bool compare(const char* path) {
    auto module = engine::load_file(path);
    if (!module) {
        std::printf("skipped: %s\n", module.error().to_string().c_str());
        return true;
    }
    auto expected = run(*module, Tier::interp);
    if (!expected) {
        std::printf("skipped: %s: %s\n", path, expected.error().to_string().c_str());
        return true;
    }
    for (Tier tier : {Tier::native, Tier::alternate}) {
        const char* name = tier == Tier::native ? "native" : "alternate";
        auto got = run(*module, tier);
        if (!got) {
            std::printf("%s: %s: %s\n", path, name, got.error().to_string().c_str());
            return false;
        }
        for (usize i = 0; i < expected->size(); i++) {
            if (i < got->size() && (*got)[i] == (*expected)[i]) continue;
            std::printf("%s: %s\n  interp: %s\n  %s: %s\n", path, name, (*expected)[i].c_str(),
                        name, i < got->size() ? (*got)[i].c_str() : "nothing");
            return false;
        }
    }
    return true;
}

}  // namespace
}  // namespace gpurun

int main(int count, char** arguments) {
    int failed = 0;
    for (int i = 1; i < count; i++) failed += !gpurun::compare(arguments[i]);
    std::printf("%d modules, %d differ\n", count - 1, failed);
    return failed == 0 ? 0 : 1;
}
