// Whatever loads can be translated and run, under limits on fuel, stack, heap and memory. It runs
// three times: metered; unmetered in single steps, the process moved to another space on the way;
// and metered in steps. Where calls end (return, trap, uncaught exception) they end alike, down to
// the backtrace.
#include "base/check.h"
#include "engine/store.h"
#include "stand_ins.h"
#include "text/assemble.h"
#include "translate/print.h"
#include "translate/translate.h"
#include "wasm/module.h"

using namespace gpurun;
using engine::Completion;
using ModulePtr = std::shared_ptr<const wasm::Module>;

namespace {

constexpr u64 fuel = 10'000;
constexpr u32 max_steps = 20'000, max_calls = 64;

engine::StoreOptions limits(bool metered) {
    engine::StoreOptions options;
    options.stack_slots = 1 << 12;
    options.heap_words = 1 << 15;
    options.table_elements = 10'000;
    options.memory_bytes = 256 << 10;
    options.all_memory_bytes = 16 << 20;
    options.code_words = 1 << 20;
    options.instances = 4;
    options.instance_words = 1 << 18;
    if (metered) options.fuel = fuel;
    return options;
}

struct Mode {
    bool metered;
    u32 steps;  // at a time; 0: as the device likes
    bool moves;
};

bool has_ended(Completion::Kind kind) {
    return kind == Completion::Kind::returned || kind == Completion::Kind::trapped ||
           kind == Completion::Kind::uncaught_exception;
}

class Run {
public:
    // Nothing if the module cannot be linked.
    static std::optional<Run> make(const ModulePtr& module, const ModulePtr& stand_ins, Mode mode) {
        auto store = engine::Store::create(limits(mode.metered));
        CHECK(store.ok());
        Run run(std::move(*store), mode);
        std::vector<engine::Extern> imports;
        if (stand_ins) {
            auto made = run.store_->instantiate(stand_ins, {}, {});
            if (!made) return std::nullopt;
            for (usize i = 0; i < module->imports.size(); i++)
                imports.push_back(*run.store_->find_export(*made->instance, std::to_string(i)));
        }
        // Its start function may be endless.
        device::RunControl control;
        control.deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
        auto made = run.store_->instantiate(module, imports, control);
        if (!made) return std::nullopt;
        run.instance_ = made->instance;
        run.started_ = std::move(made->completion);
        return run;
    }

    const Completion& started() const { return started_; }

    // Nothing if it takes arguments that cannot be made up.
    std::optional<Completion> call(const std::string& name, bool zeros) {
        engine::Extern func = *store_->find_export(*instance_, name);
        std::vector<engine::Value> arguments;
        for (wasm::ValType type : store_->type_of(func).params) {
            if (!type.is_defaultable()) return std::nullopt;
            engine::Value value{type};
            if (!zeros && !type.is_ref()) value.bits = {{5, 0x40080000, 0xffffffff, 1}};
            arguments.push_back(value);
        }
        if (!store_->begin_call(func, arguments)) return std::nullopt;  // too many for the stack
        if (mode_.steps == 0) return *store_->resume(func, {});
        ThreadState state = ThreadState::ready;
        for (u32 steps = 0; state == ThreadState::ready && steps < max_steps;
             steps += mode_.steps) {
            state = *store_->space().step(store_->thread(), mode_.steps);
            if (mode_.moves && steps == 16 * mode_.steps) move();
        }
        return *store_->finish_call(func, state);
    }

    // What can be seen of its state from outside.
    std::vector<u32> state(const wasm::Module& module) {
        std::vector<u32> words;
        for (const wasm::Export& exported : module.exports) {
            engine::Extern found = *store_->find_export(*instance_, exported.name);
            if (found.kind == wasm::ExternKind::global) {
                engine::Value value = *store_->read_global(found);
                words.insert(words.end(), value.bits.word, value.bits.word + 4);
            } else if (found.kind == wasm::ExternKind::memory) {
                u32 record[memory_words];
                CHECK(store_->space().read_words(found.at, record).ok());
                words.insert(words.end(), record, record + memory_words);
                u64 base = code_pair(record[memory_base], record[memory_base + 1]);
                std::vector<u8> bytes(code_pair(record[memory_bytes], record[memory_bytes + 1]));
                CHECK(store_->space().read_bytes(base, bytes).ok());
                u32 hash = 0;
                for (u8 byte : bytes) hash = hash * 31 + byte;
                words.push_back(hash);
            }
        }
        return words;
    }

private:
    Run(std::unique_ptr<engine::Store> store, Mode mode) : store_(std::move(store)), mode_(mode) {}
    void move() {
        auto space = device::make_cpu_space(store_->sizes());
        CHECK(space.ok());
        CHECK(store_->move_to(std::move(*space)).ok());
    }

    std::unique_ptr<engine::Store> store_;
    engine::Instance* instance_ = nullptr;
    Completion started_;
    Mode mode_;
};

void check_alike(const Completion& a, const Completion& b) {
    CHECK(a.kind == b.kind);
    CHECK(a.trap == b.trap);
    CHECK(a.results.size() == b.results.size());
    for (usize i = 0; i < a.results.size(); i++) {
        for (u32 k = 0; k < 4; k++) CHECK(a.results[i].bits.word[k] == b.results[i].bits.word[k]);
    }
    CHECK(a.backtrace.size() == b.backtrace.size());
    for (usize i = 0; i < a.backtrace.size(); i++) {
        CHECK(a.backtrace[i].func == b.backtrace[i].func);
        CHECK(a.backtrace[i].wasm_offset == b.backtrace[i].wasm_offset);
    }
}

// A function becomes the same code alone as among others: backtraces rely on it.
void check_alone(const wasm::Module& module, bool metered) {
    translate::Options options;
    options.metered = metered;
    auto code = translate::translate(module, options);
    if (!code) return;
    for (u32 func = module.imported_funcs; func < module.funcs.size(); func++) {
        auto alone = translate::translate_function(module, code->layout, func, options);
        CHECK(alone.has_value());
        u32 entry = code->entries[func];
        u32 end = func + 1 < module.funcs.size() ? code->entries[func + 1] : code->instantiate;
        CHECK(alone->words.size() == end - entry);
        for (u32 at = 0; at < alone->words.size(); at += translate::code_size(alone->words[at])) {
            u64 word = alone->words[at];
            bool is_call = CodeOp(op_of(word)) == CodeOp::call;  // its distance is not alike
            CHECK((is_call ? u32(word) : word) ==
                  (is_call ? u32(code->words[entry + at]) : code->words[entry + at]));
        }
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const u8* data, usize size) {
    auto loaded = wasm::load(wasm::Bytes(data, data + size));
    if (!loaded) return 0;
    const ModulePtr& module = *loaded;
    for (bool metered : {false, true}) check_alone(*module, metered);
    ModulePtr stand_ins;
    if (!module->imports.empty()) {
        auto text = fuzz::stand_in_module(*module);
        if (!text) return 0;
        auto assembled = text::assemble(*text, "stand-ins");
        if (!assembled) return 0;  // a name that is not UTF-8, say
        auto made = wasm::load(std::move(assembled->bytes));
        if (!made) return 0;
        stand_ins = *made;
    }
    constexpr Mode modes[] = {{true, 0, false}, {false, 1, true}, {true, 7, false}};
    std::vector<Run> runs;
    for (Mode mode : modes) {
        auto run = Run::make(module, stand_ins, mode);
        if (!run) return 0;
        runs.push_back(std::move(*run));
    }
    bool alike = true;
    for (const Run& run : runs) alike &= has_ended(run.started().kind);
    for (usize i = 1; alike && i < runs.size(); i++)
        check_alike(runs[0].started(), runs[i].started());

    u32 calls = 0;
    for (const wasm::Export& exported : module->exports) {
        if (exported.kind != wasm::ExternKind::func || ++calls > max_calls) continue;
        for (bool zeros : {true, false}) {
            std::vector<Completion> completions;
            for (Run& run : runs) {
                auto completion = run.call(exported.name, zeros);
                if (!completion) break;
                alike &= has_ended(completion->kind);
                completions.push_back(std::move(*completion));
            }
            for (usize i = 1; alike && i < completions.size(); i++) {
                check_alike(completions[0], completions[i]);
                CHECK(runs[0].state(*module) == runs[i].state(*module));
            }
        }
    }
    return 0;
}
