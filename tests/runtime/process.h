// A process for a test: modules from text, linked by the names they are given, and calls.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/store.h"
#include "text/assemble.h"

namespace gpurun::test {

using engine::Completion;
using engine::Value;

// $GPURUN_TEST_TIER: the same tests for each.
inline device::Tier tier_under_test() {
    const char* name = std::getenv("GPURUN_TEST_TIER");
    if (name == nullptr) return device::Tier::interp;
    if (std::string_view(name) == "early") return device::Tier::early;
    if (std::string_view(name) == "partial") return device::Tier::partial;
    if (std::string_view(name) == "quick") return device::Tier::quick;
    return std::string_view(name) == "alternate" ? device::Tier::alternate : device::Tier::native;
}

// Small, so that copies of a process are cheap.
inline engine::StoreOptions small_options() {
    engine::StoreOptions options;
    options.stack_slots = 4096;
    options.heap_words = 1 << 18;
    options.table_elements = 100'000;
    options.memory_bytes = 16 << 20;
    options.all_memory_bytes = 64 << 20;
    options.code_words = 1 << 20;
    options.tier = tier_under_test();
    return options;
}

inline Result<std::shared_ptr<const wasm::Module>> module_from(std::string_view wat) {
    text::Assembled assembled = TRY(text::assemble(wat, "test.wat"));
    return wasm::load(std::move(assembled.bytes));
}

struct NamedModule {
    std::string name;  // by which later ones import it
    std::string wat;
};

class Process {
public:
    static Result<Process> make(const engine::StoreOptions& options) {
        Process process;
        process.store_ = TRY(engine::Store::create(options));
        return process;
    }
    static Result<Process> make(std::string_view wat,
                                const engine::StoreOptions& options = small_options()) {
        Process process = TRY(make(options));
        TRY(process.add("", wat));
        return process;
    }

    // Instantiates; a trap on the way is an error too.
    Result<void> add(const std::string& name, std::string_view wat) {
        auto module = TRY(module_from(wat));
        std::vector<engine::Extern> imports;
        for (const wasm::Import& import : module->imports) {
            auto found = instances_.find(import.module);
            if (found == instances_.end()) return Error{"no module " + import.module};
            auto given = store_->find_export(*found->second, import.name);
            if (!given) return Error{"no export " + import.name};
            imports.push_back(*given);
        }
        auto made = TRY(store_->instantiate(module, imports, {}));
        if (made.completion.kind != Completion::Kind::returned)
            return Error{made.completion.to_string()};
        instances_[name] = latest_ = made.instance;
        return {};
    }

    engine::Store& store() { return *store_; }
    // Of the newest instance.
    engine::Extern func(std::string_view name) const {
        return *store_->find_export(*latest_, name);
    }

    Completion call(std::string_view name, const std::vector<Value>& arguments = {},
                    const device::RunControl& control = {}) {
        auto completion = store_->call(func(name), arguments, control);
        EXPECT_TRUE(completion.ok()) << completion.error().to_string();
        return completion ? *completion : Completion{};
    }

private:
    std::unique_ptr<engine::Store> store_;
    std::map<std::string, engine::Instance*> instances_;
    engine::Instance* latest_ = nullptr;
};

// "42 1.5", or how else it ended: "unreachable".
inline std::string to_string(const Completion& completion) {
    if (completion.kind != Completion::Kind::returned) return completion.to_string();
    std::string text;
    for (const Value& value : completion.results)
        text += (text.empty() ? "" : " ") + value.to_string();
    return text;
}

}  // namespace gpurun::test
