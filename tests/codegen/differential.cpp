// differential [--wasmtime LIBRARY] [--device ID] [--bursts] FILE...: runs every function that a
// module exports in the interpreter on the CPU, by machine code on the device, by both in turns,
// and by machine code that arrives after the start, and says of each module whether they agree:
// results, ends, what is exported, all to the bit; where a trap was, the fuel that is left.
// wasmtime is compared where it can be. What a module imports are functions of another instance,
// which note their arguments. With --bursts, each function in many processes at once. The exit code
// is 1 if anything differs.
//
// differential --assemble FILE...: writes the bytes of each FILE.wat to FILE.wasm and exits.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <utility>

#include "base/format.h"
#include "engine/load.h"
#include "engine/store.h"
#include "oracle.h"
#include "outcome.h"
#include "text/assemble.h"

namespace gpurun {

std::string describe(const Outcome& outcome) {
    using Kind = engine::Completion::Kind;
    std::string text;
    switch (outcome.kind) {
        case Kind::returned: text = "returned"; break;
        case Kind::trapped: text = std::string("trap: ") + to_string(outcome.trap); break;
        case Kind::uncaught_exception: text = "uncaught exception"; break;
        case Kind::out_of_fuel: text = "out of fuel"; break;
        case Kind::blocked: text = "blocked"; break;
        default: text = "stopped"; break;
    }
    for (const Bits& bits : outcome.results)
        text += format(" %08x%08x%08x%08x", bits[3], bits[2], bits[1], bits[0]);
    return text + format(" seen %llx state %llx", (unsigned long long)outcome.seen,
                         (unsigned long long)outcome.state);
}

namespace {

using device::Tier;
using engine::Completion;
using engine::Value;
using wasm::ExternKind;
using wasm::ValType;

constexpr u64 fuel = 200'000;
constexpr u32 burst_processes = 48;      // one warp and a half
constexpr u32 burst_functions = 6;       // of a module
constexpr u32 calls_between_looks = 16;  // at memories
constexpr u32 seconds_for_module = 120;  // then the signal ends us
constexpr u64 samples[] = {0,
                           1,
                           0xffff'ffff'ffff'ffff,
                           0x7fff'ffff,
                           0x8000'0000'0000'0000,
                           77,
                           0x4028'0000'4128'0000,  // 12, and as an f32 10.5
                           0x7ff8'0000'0000'0001,
                           65530,
                           0xc3e0'0000'cf00'0000};  // -2^63, and as an f32 -2^31

const char* name_of(ValType type) {
    switch (type.kind()) {
        case ValType::i64: return "i64";
        case ValType::f32: return "f32";
        case ValType::f64: return "f64";
        case ValType::v128: return "v128";
        default: return "i32";
    }
}

// A module with what the other imports, each under its number there: functions, which mix their
// arguments into a global and return zero, and tags.
Result<std::string> imports_for(const wasm::Module& module) {
    std::string text = "(module (global $seen (export \"seen\") (mut i64) (i64.const 0))";
    for (usize number = 0; number < module.imports.size(); number++) {
        const wasm::Import& import = module.imports[number];
        const bool is_tag = import.kind == ExternKind::tag;
        if (!is_tag && import.kind != ExternKind::func)
            return Error{"imports more than functions and tags"};
        const wasm::FuncType& type = is_tag ? module.types[module.tags[import.index].type].func
                                            : module.func_type(import.index);
        for (const std::vector<ValType>& types : {type.params, type.results})
            for (ValType t : types)
                if (t.is_ref()) return Error{"imports functions of references"};
        text += format("(%s (export \"%zu\")", is_tag ? "tag" : "func", number);
        for (ValType t : type.params) text += format(" (param %s)", name_of(t));
        for (ValType t : type.results) text += format(" (result %s)", name_of(t));
        for (u32 i = 0; i < type.params.size() && !is_tag; i++) {
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

Value sample(ValType type, u32 number) {
    Value value{type};
    const u64 bits = samples[number % std::size(samples)];
    if (type.is_ref()) return value;
    value.bits.word[0] = u32(bits);
    if (translate::words_of(type) > 1) value.bits.word[1] = u32(bits >> 32);
    return value;
}

std::vector<Call> calls_of(const wasm::Module& module) {
    std::vector<Call> calls;
    u32 number = 0;
    for (const wasm::Export& exported : module.exports) {
        if (exported.kind != ExternKind::func) continue;
        const wasm::FuncType& type = module.func_type(exported.index);
        for (u32 round = 0; round < (type.params.empty() ? 1 : 3); round++) {
            Call call{&exported, {}};
            for (ValType param : type.params) call.arguments.push_back(sample(param, number++));
            calls.push_back(std::move(call));
            calls.back().looks_at_memories = calls.size() % calls_between_looks == 0;
        }
    }
    if (!calls.empty()) calls.back().looks_at_memories = true;
    return calls;
}

// ---- ours

struct Subject {
    std::shared_ptr<const wasm::Module> module, imports;
    std::vector<Call> calls;
};

struct Line {
    Outcome outcome;
    std::string where;  // and the fuel that is left, and references as they are

    friend bool operator==(const Line&, const Line&) = default;
};

class Run {
public:
    // `bursts_on`: what it makes will run there.
    static Result<std::unique_ptr<Run>> make(const Subject& subject, Tier tier,
                                             device::Device& device, device::Device* bursts_on) {
        engine::StoreOptions options;
        // Some have so little that calls end for it.
        options.stack_slots = subject.module->bytes.size() % 8 == 0 ? 1 << 12 : 1 << 18;
        options.heap_words = 1 << 16;
        options.memory_bytes = most_memory_bytes;
        options.all_memory_bytes =
            std::max<u64>(most_memory_bytes * subject.module->memories.size(), 1 << 16);
        options.code_words = 1 << 20;
        options.instance_words = 1 << 20;
        options.instances = 2;
        options.table_elements = options.table_growth = most_table_elements;
        options.fuel = fuel;
        options.tier = tier;
        options.bursts_on = bursts_on;
        auto run = std::make_unique<Run>(subject);
        run->store_ = TRY(engine::Store::create(options, device));
        std::vector<engine::Extern> imports;
        // A kernel has one module's machine code: who imports nothing is alone.
        if (!subject.module->imports.empty()) {
            engine::Instance* given =
                TRY(run->store_->instantiate(subject.imports, {}, {})).instance;
            run->seen_ = *run->store_->find_export(*given, "seen");
            for (usize i = 0; i < subject.module->imports.size(); i++)
                imports.push_back(*run->store_->find_export(*given, std::to_string(i)));
        }
        auto [instance, completion] = TRY(run->store_->instantiate(subject.module, imports, {}));
        run->instance_ = instance;
        run->begun_ = TRY(run->line(completion));
        if (run->has_begun()) TRY(run->look(run->begun_.outcome, true));
        return run;
    }
    explicit Run(const Subject& subject) : subject_(subject) {}

    Result<std::vector<Line>> calls() {
        std::vector<Line> lines = {begun_};
        if (!has_begun()) return lines;
        for (const Call& call : subject_.calls) {
            const Completion done = TRY(store_->call(
                *store_->find_export(*instance_, call.function->name), call.arguments, {}));
            lines.push_back(TRY(line(done)));
            TRY(look(lines.back().outcome, call.looks_at_memories));
        }
        return lines;
    }

    // Results of each function, of all processes.
    Result<std::vector<std::vector<u32>>> bursts(device::Device& device, Tier tier) {
        std::vector<std::vector<u32>> results;
        const wasm::Export* last = nullptr;
        for (const Call& call : subject_.calls) {
            if (!has_begun() || results.size() == burst_functions) break;
            if (call.function == std::exchange(last, call.function)) continue;
            const engine::Extern func = *store_->find_export(*instance_, call.function->name);
            std::vector<u32> words;
            u32 number = u32(results.size());
            for (u32 process = 0; process < burst_processes; process++)
                for (const ValType param : store_->type_of(func).params) {
                    const Value value = sample(param, number++);
                    for (u32 word = 0; word < translate::words_of(param); word++)
                        words.push_back(value.bits.word[word]);
                }
            device::Burst burst = TRY(store_->make_burst(func, std::move(words), burst_processes));
            burst.tier = tier;
            device::BurstResults made = TRY(device.run_burst({&burst, 1}, {})).parts[0];
            // Who did not finish has no results.
            for (usize at = 0; at < made.words.size(); at += made.stride)
                if (ThreadState(made.words[at + result_state]) != ThreadState::finished)
                    std::fill_n(made.words.begin() + at + result_first, made.stride - result_first,
                                0);
            results.push_back(std::move(made.words));
        }
        return results;
    }

private:
    bool has_begun() const { return begun_.outcome.kind == Completion::Kind::returned; }

    Result<Line> line(const Completion& completion) {
        Line line;
        line.outcome.kind = completion.kind;
        line.outcome.trap = completion.trap;
        for (const Value& value : completion.results) {
            line.outcome.results.push_back(comparable(value.type, value.bits));
            if (value.type.is_ref()) line.where += format(" ref %x", value.low());
        }
        for (const engine::Frame& frame : completion.backtrace)
            line.where += format(" %u@%x", frame.func, frame.wasm_offset);
        line.where += format(" fuel %llu", (unsigned long long)TRY(store_->fuel()));
        return line;
    }

    Result<void> look(Outcome& outcome, bool at_memories) {
        const Value seen = seen_ ? TRY(store_->read_global(*seen_)) : Value::i64(0);
        outcome.seen = mix(0, comparable(seen.type, seen.bits));
        for (const wasm::Export& exported : subject_.module->exports) {
            const engine::Extern at = *store_->find_export(*instance_, exported.name);
            if (exported.kind == ExternKind::global && !at.value.is_ref()) {
                const Value value = TRY(store_->read_global(at));
                outcome.state = mix(outcome.state, comparable(value.type, value.bits));
            } else if (exported.kind == ExternKind::memory && at_memories) {
                u32 record[memory_words];
                TRY(store_->space().read_words(at.at, record));
                bytes_.resize(record[memory_bytes]);
                TRY(store_->space().read_bytes(
                    u64(record[memory_base + 1]) << 32 | record[memory_base], bytes_));
                outcome.state = mix(outcome.state, std::span<const u8>(bytes_));
            }
        }
        return {};
    }

    const Subject& subject_;
    std::unique_ptr<engine::Store> store_;
    engine::Instance* instance_ = nullptr;
    std::optional<engine::Extern> seen_;
    Line begun_;
    std::vector<u8> bytes_;
};

// ---- what is said

struct Verdict {
    bool differs = false;
    std::string text;  // the first difference; else why wasmtime says nothing
    usize calls = 0, calls_of_wasmtime = 0;
};

std::string what_was_called(const Subject& subject, usize line) {
    if (line == 0) return "instantiation";
    const Call& call = subject.calls[line - 1];
    std::string text = call.function->name;
    for (const Value& value : call.arguments) text += " " + value.to_string();
    return text;
}

// Where an engine's own limits end a call, others need not end it.
bool is_common(const Outcome& outcome) {
    return (outcome.kind == Completion::Kind::returned ||
            outcome.kind == Completion::Kind::trapped ||
            outcome.kind == Completion::Kind::uncaught_exception) &&
           outcome.trap != Trap::call_stack_exhausted && outcome.trap != Trap::heap_exhausted;
}

// wasmtime's traps are fewer. Of an atomic access that is both unaligned and out of bounds it says
// the one for some instructions, and the other for some.
Outcome as_wasmtime(Outcome outcome, Trap got) {
    switch (outcome.trap) {
        case Trap::unaligned_atomic:
            if (got == Trap::memory_out_of_bounds) outcome.trap = got;
            break;
        case Trap::undefined_element: outcome.trap = Trap::table_out_of_bounds; break;
        case Trap::null_function_reference:
        case Trap::null_i31_reference:
        case Trap::null_structure_reference:
        case Trap::null_array_reference:
        case Trap::null_exception_reference: outcome.trap = Trap::null_reference; break;
        default: break;
    }
    return outcome;
}

struct Comparison {
    device::Device& cpu;
    device::Device& device;
    Oracle* oracle;
    bool is_cpu, is_bursts, prints;

    Result<Verdict> of(const Subject& subject) {
        return is_bursts ? bursts_of(subject) : calls_of(subject);
    }

private:
    Result<Verdict> calls_of(const Subject& subject) {
        auto interpreted = TRY(Run::make(subject, Tier::interp, cpu, nullptr));
        const std::vector<Line> expected = TRY(interpreted->calls());
        for (usize i = 0; i < expected.size() && prints; i++)
            std::printf("%s: %s%s\n", what_was_called(subject, i).c_str(),
                        describe(expected[i].outcome).c_str(), expected[i].where.c_str());
        for (Tier tier : {Tier::native, Tier::alternate, Tier::early, Tier::partial, Tier::quick}) {
            // On a GPU the assembler would run once more for every module.
            if (tier != Tier::native && tier != Tier::alternate && !is_cpu) continue;
            const char* name = tier == Tier::native      ? "native"
                               : tier == Tier::alternate ? "alternate"
                               : tier == Tier::early     ? "early"
                               : tier == Tier::partial   ? "partial"
                                                         : "quick";
            auto run = Run::make(subject, tier, device, nullptr);
            if (!run) return Verdict{true, name + (": " + run.error().to_string())};
            const std::vector<Line> got = TRY((*run)->calls());
            for (usize i = 0; i < expected.size(); i++) {
                if (i < got.size() && got[i] == expected[i]) continue;
                const Line line = i < got.size() ? got[i] : Line{};
                return Verdict{
                    true,
                    format("%s\n  interp: %s%s\n  %s: %s%s", what_was_called(subject, i).c_str(),
                           describe(expected[i].outcome).c_str(), expected[i].where.c_str(), name,
                           describe(line.outcome).c_str(), line.where.c_str())};
            }
        }
        return ask_oracle(subject, expected);
    }

    Result<Verdict> ask_oracle(const Subject& subject, const std::vector<Line>& expected) {
        Verdict verdict{false, "", expected.size()};
        if (!oracle) return verdict;
        usize common = 0;
        while (common < expected.size() && is_common(expected[common].outcome)) common++;
        if (common < expected.size()) verdict.text = describe_end(expected[common].outcome);
        if (common == 0) return verdict;
        auto got =
            oracle->run(*subject.module, *subject.imports,
                        std::span(subject.calls).first(std::min(common - 1, subject.calls.size())));
        if (!got) {
            verdict.text = got.error().message;
            return verdict;
        }
        for (usize i = 0; i < got->size(); i++) {
            const Outcome wanted = as_wasmtime(expected[i].outcome, (*got)[i].trap);
            if (wanted == (*got)[i]) continue;
            verdict.differs = true;
            verdict.text = format("%s\n  ours: %s%s\n  wasmtime: %s",
                                  what_was_called(subject, i).c_str(), describe(wanted).c_str(),
                                  expected[i].where.c_str(), describe((*got)[i]).c_str());
            return verdict;
        }
        if (got->size() < common) verdict.text = "wasmtime's stack ends";
        verdict.calls_of_wasmtime = got->size();
        return verdict;
    }

    static std::string describe_end(const Outcome& outcome) {
        Outcome end;
        end.kind = outcome.kind;
        end.trap = outcome.trap;
        const std::string text = describe(end);
        return text.substr(0, text.find(" seen"));
    }

    Result<Verdict> bursts_of(const Subject& subject) {
        auto interpreted = TRY(Run::make(subject, Tier::interp, cpu, &cpu));
        const auto expected = TRY(interpreted->bursts(cpu, Tier::interp));
        auto run = Run::make(subject, Tier::native, cpu, &device);
        if (!run) return Verdict{true, "native: " + run.error().to_string()};
        for (Tier tier : {Tier::native, Tier::alternate}) {
            const auto got = TRY((*run)->bursts(device, tier));
            if (got == expected) continue;
            Verdict verdict{true, tier == Tier::native ? "native" : "alternate"};
            for (usize i = 0; i < expected.size(); i++)
                for (usize word = 0; word < expected[i].size(); word++) {
                    if (i < got.size() && got[i][word] == expected[i][word]) continue;
                    const usize stride = expected[i].size() / burst_processes;
                    verdict.text +=
                        format(": function %zu, process %zu, word %zu of its result: %x, got %x", i,
                               word / stride, word % stride, expected[i][word], got[i][word]);
                    return verdict;
                }
            return verdict;
        }
        return Verdict{false, "", expected.size()};
    }
};

Result<Subject> load(const std::string& path) {
    Subject subject;
    subject.module = TRY(engine::load_file(path));
    const std::string text = TRY(imports_for(*subject.module));
    text::Assembled imports = TRY(text::assemble(text, "imports"));
    subject.imports = TRY(wasm::load(std::move(imports.bytes)));
    subject.calls = calls_of(*subject.module);
    return subject;
}

struct Options {
    std::string wasmtime, device = "cpu";
    bool is_bursts = false, prints = false, assembles = false;
    std::vector<std::string> files;
};

Result<bool> assemble_all(const Options& options) {
    for (const std::string& file : options.files) {
        const auto module = TRY(engine::load_file(file));
        std::ofstream out(std::filesystem::path(file).replace_extension(".wasm"), std::ios::binary);
        out.write(reinterpret_cast<const char*>(module->bytes.data()),
                  std::streamsize(module->bytes.size()));
        if (!out.flush()) return Error{"cannot write what is made of " + file};
    }
    return true;
}

Result<bool> compare_all(const Options& options) {
    std::unique_ptr<device::Device> cpu = TRY(device::open_device("cpu"));
    std::unique_ptr<device::Device> device = TRY(device::open_device(options.device));
    std::unique_ptr<Oracle> oracle;
    if (!options.wasmtime.empty()) oracle = TRY(Oracle::open(options.wasmtime));
    Comparison comparison{
        *cpu, *device, oracle.get(), options.device == "cpu", options.is_bursts, options.prints};
    usize differ = 0, skipped = 0, with_wasmtime = 0, calls = 0, calls_of_wasmtime = 0;
    for (const std::string& file : options.files) {
        alarm(seconds_for_module);
        auto subject = load(file);
        Result<Verdict> verdict =
            subject ? comparison.of(*subject) : Result<Verdict>(subject.error());
        if (!verdict) {
            skipped++;
            std::printf("%s: skipped: %s\n", file.c_str(), verdict.error().to_string().c_str());
        } else if (verdict->differs) {
            differ++;
            std::printf("%s: differs: %s\n", file.c_str(), verdict->text.c_str());
        } else {
            std::printf("%s: same%s%s\n", file.c_str(),
                        verdict->text.empty() ? "" : "; without wasmtime: ", verdict->text.c_str());
            calls += verdict->calls;
            calls_of_wasmtime += verdict->calls_of_wasmtime;
            with_wasmtime += verdict->calls_of_wasmtime > 0;
        }
        std::fflush(stdout);
    }
    std::printf(
        "%zu modules, %zu differ, %zu skipped, %zu with wasmtime; %zu calls, %zu with "
        "wasmtime\n",
        options.files.size(), differ, skipped, with_wasmtime, calls, calls_of_wasmtime);
    return differ == 0;
}

}  // namespace
}  // namespace gpurun

int main(int count, char** arguments) {
    gpurun::Options options;
    CLI::App app("Compares the tiers, and wasmtime, on modules.");
    app.add_option("--wasmtime", options.wasmtime, "wasmtime's shared library");
    app.add_option("--device", options.device, "where machine code runs (cpu)");
    app.add_flag("--bursts", options.is_bursts, "many processes at once");
    app.add_flag("--print", options.prints, "every call");
    app.add_flag("--assemble", options.assembles, "write modules for texts, compare nothing");
    app.add_option("files", options.files, "modules or text")->required();
    CLI11_PARSE(app, count, arguments);
    gpurun::Result<bool> same =
        options.assembles ? gpurun::assemble_all(options) : gpurun::compare_all(options);
    if (same) return *same ? 0 : 1;
    std::fprintf(stderr, "differential: %s\n", same.error().to_string().c_str());
    return 2;
}
