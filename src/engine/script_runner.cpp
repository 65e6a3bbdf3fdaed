// Executes a script's commands in one process; its threads take turns.
#include "engine/script_runner.h"

#include <chrono>
#include <map>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "base/check.h"
#include "base/format.h"
#include "base/threads.h"
#include "engine/store.h"
#include "text/script.h"

namespace gpurun::engine {
namespace {

using text::Command;
using text::ScriptValue;
using wasm::Heap;
using wasm::ValType;
using ModulePtr = std::shared_ptr<const wasm::Module>;

// The module that scripts may import as "spectest". Its functions print nothing.
constexpr const char* spectest_source = R"((module
  (global (export "global_i32") i32 (i32.const 666))
  (global (export "global_i64") i64 (i64.const 666))
  (global (export "global_f32") f32 (f32.const 666.6))
  (global (export "global_f64") f64 (f64.const 666.6))
  (table (export "table") 10 20 funcref)
  (table (export "table64") i64 10 20 funcref)
  (memory (export "memory") 1 2)
  (func (export "print"))
  (func (export "print_i32") (param i32))
  (func (export "print_i64") (param i64))
  (func (export "print_f32") (param f32))
  (func (export "print_f64") (param f64))
  (func (export "print_i32_f32") (param i32 f32))
  (func (export "print_f64_f64") (param f64 f64))))";
constexpr const char* shared_spectest_source =
    R"((module (memory (export "shared_memory") 1 2 shared)))";

// ---- values ------------------------------------------------------------------------

V128 vector_bits(const ScriptValue& value) {
    return {{u32(value.bits[0]), u32(value.bits[0] >> 32), u32(value.bits[1]),
             u32(value.bits[1] >> 32)}};
}

Value argument_value(const ScriptValue& value, ValType type) {
    switch (value.kind) {
        case ScriptValue::Kind::ref_null: return Value::ref(type, 0);
        case ScriptValue::Kind::ref_extern:
        case ScriptValue::Kind::ref_host:
            return Value::ref(type, host_value(value.number.value_or(0)));
        default: return {type, vector_bits(value)};
    }
}

bool argument_fits(const ScriptValue& value, ValType type) {
    switch (value.kind) {
        case ScriptValue::Kind::i32: return type == ValType::i32;
        case ScriptValue::Kind::i64: return type == ValType::i64;
        case ScriptValue::Kind::f32: return type == ValType::f32;
        case ScriptValue::Kind::f64: return type == ValType::f64;
        case ScriptValue::Kind::v128: return type == ValType::v128;
        default: return type.is_ref();
    }
}

// Returns true if a NaN matches a pattern. It is canonical if its payload is the top bit alone, and
// arithmetic if that bit is set.
bool nan_matches(u64 bits, text::Nan pattern, u32 payload_bits) {
    u64 exponent = payload_bits == 23 ? 0xff : 0x7ff;
    u64 quiet = u64{1} << (payload_bits - 1), payload = bits & ((u64{1} << payload_bits) - 1);
    if ((bits >> payload_bits & exponent) != exponent) return false;
    return pattern == text::Nan::canonical ? payload == quiet : (payload & quiet) != 0;
}

bool lanes_match(const ScriptValue& expected, const V128& actual) {
    V128 wanted = vector_bits(expected);
    if (expected.shape == text::Shape::f64x2) {
        for (u32 lane = 0; lane < 2; lane++) {
            u64 bits = code_pair(actual.word[2 * lane], actual.word[2 * lane + 1]);
            u64 want = code_pair(wanted.word[2 * lane], wanted.word[2 * lane + 1]);
            if (expected.nan[lane] == text::Nan::none ? bits != want
                                                      : !nan_matches(bits, expected.nan[lane], 52))
                return false;
        }
        return true;
    }
    bool is_float = expected.shape == text::Shape::f32x4;
    for (u32 lane = 0; lane < 4; lane++) {
        text::Nan nan = is_float ? expected.nan[lane] : text::Nan::none;
        if (nan == text::Nan::none ? actual.word[lane] != wanted.word[lane]
                                   : !nan_matches(actual.word[lane], nan, 23))
            return false;
    }
    return true;
}

// ---- the runner --------------------------------------------------------------------

// What the threads of a script share. One of them runs at a time: the one that has the baton.
struct Shared {
    std::string name;
    const ScriptOptions& options;
    std::unique_ptr<Store> store;
    ScriptReport report;
    Instance* spectest = nullptr;
    std::mutex baton;
    u32 threads = 0;               // that have not ended
    std::optional<Error> problem;  // what ended one of them
};

class Runner {
public:
    explicit Runner(Shared& shared) : shared_(shared), options_(shared.options) {}
    Runner(const Runner&) = delete;
    // Called without the baton, or when all of its threads have been joined.
    ~Runner() {
        for (auto& [name, thread] : threads_)
            if (thread.joinable()) thread.join();
    }

    Result<void> run(const text::Script& script) {
        std::lock_guard baton(shared_.baton);
        StoreOptions store_options;
        if (options_.device) store_options = options_for(options_.device->info());
        store_options.is_watched = options_.is_watched;
        store_options.tier = options_.tier;
        store_options.memory_bytes = std::min(store_options.memory_bytes, u64{1} << 30);
        shared_.store = options_.device ? TRY(Store::create(store_options, *options_.device))
                                        : TRY(Store::create(store_options));
        store_ = shared_.store.get();
        shared_.spectest = TRY(builtin(spectest_source));
        registered_["spectest"] = shared_.spectest;
        for (const Command& command : script.commands) execute(command);
        for (auto& [name, thread] : threads_) join(thread);
        return {};
    }

private:
    using Kind = Command::Kind;

    void pass() { shared_.report.passed++; }
    void fail(const Command& command, const std::string& why) {
        shared_.report.failed++;
        options_.say(format("%s:%u: %s: %s", shared_.name.c_str(), command.line,
                            to_string(command.kind), why.c_str()));
    }

    Result<Instance*> builtin(const char* source) {
        text::Assembled assembled = TRY(text::assemble(source, "spectest"));
        ModulePtr module = TRY(wasm::load(std::move(assembled.bytes)));
        return TRY(store_->instantiate(module, {}, options_.control)).instance;
    }

    void execute(const Command& command) {
        switch (command.kind) {
            case Kind::module:
            case Kind::module_definition: return run_module(command);
            case Kind::module_instance: return run_instance(command);
            case Kind::register_: {
                Instance* instance = find_instance(command, command.target);
                if (instance) registered_[command.name] = instance;
                return;
            }
            case Kind::action: {
                std::optional<Completion> done = act(command);
                if (done && done->kind != Completion::Kind::returned)
                    fail(command, done->to_string());
                return;
            }
            case Kind::assert_return: return assert_return(command);
            case Kind::assert_trap:
            case Kind::assert_exhaustion: return assert_trap(command);
            case Kind::assert_exception: {
                std::optional<Completion> done = act(command);
                if (!done) return;
                if (done->kind != Completion::Kind::uncaught_exception)
                    return fail(command, "expected an exception, got: " + describe(*done));
                return pass();
            }
            case Kind::assert_malformed:
            case Kind::assert_malformed_custom:
            case Kind::assert_invalid:
            case Kind::assert_invalid_custom: return assert_refused(command);
            case Kind::assert_unlinkable: return assert_unlinkable(command);
            case Kind::thread: return run_thread(command);
            case Kind::wait: {
                auto found = threads_.find(command.name);
                if (found == threads_.end()) return fail(command, "no thread $" + command.name);
                return join(found->second);
            }
            case Kind::assert_suspension: return fail(command, "stack switching is not supported");
        }
    }

    // ---- modules

    // Decodes and validates a module. Reports a failure if asked to.
    ModulePtr load(const Command& command) {
        const text::ScriptModule& module = *command.module;
        if (module.error) {
            fail(command, format("%u:%u: %s", module.error_position.line,
                                 module.error_position.column, module.error->c_str()));
            return nullptr;
        }
        Result<ModulePtr> loaded = wasm::load(module.bytes);
        if (!loaded) {
            fail(command, loaded.error().to_string());
            return nullptr;
        }
        return *loaded;
    }

    void run_module(const Command& command) {
        ModulePtr module = load(command);
        if (!module) {
            latest_ = nullptr;
            return;
        }
        if (command.kind == Kind::module_definition) {
            definitions_[command.module->name] = module;
            definitions_[""] = module;
            return;
        }
        make_instance(command, module, command.module->name);
    }

    void run_instance(const Command& command) {
        auto found = definitions_.find(command.target);
        if (found == definitions_.end())
            return fail(command, "no module definition $" + command.target);
        make_instance(command, found->second, command.name);
    }

    void make_instance(const Command& command, const ModulePtr& module, const std::string& name) {
        latest_ = nullptr;
        Result<Store::Instantiated> made = link(module);
        if (!made) return fail(command, made.error().to_string());
        if (made->completion.kind != Completion::Kind::returned)
            return fail(command, made->completion.to_string());
        latest_ = made->instance;
        if (!name.empty()) instances_[name] = latest_;
    }

    Result<Store::Instantiated> link(const ModulePtr& module) {
        std::vector<Extern> imports;
        for (const wasm::Import& import : module->imports) {
            auto found = registered_.find(import.module);
            std::optional<Extern> given;
            if (found != registered_.end())
                given = store_->find_export(*found->second, import.name);
            if (!given && import.module == "spectest" && import.name == "shared_memory") {
                if (!shared_spectest_) shared_spectest_ = TRY(builtin(shared_spectest_source));
                given = store_->find_export(*shared_spectest_, import.name);
            }
            if (!given)
                return Error{format("unknown import \"%s\" \"%s\"", import.module.c_str(),
                                    import.name.c_str())};
            imports.push_back(*given);
        }
        return store_->instantiate(module, imports, options_.control);
    }

    void assert_refused(const Command& command) {
        bool malformed =
            command.kind == Kind::assert_malformed || command.kind == Kind::assert_malformed_custom;
        const text::ScriptModule& module = *command.module;
        if (module.error) {
            if (malformed || module.kind == text::ScriptModule::Kind::quote) return pass();
            return fail(command,
                        "expected an invalid module, but it is malformed: " + *module.error);
        }
        auto loaded = wasm::load_or_explain(module.bytes);
        if (auto* error = std::get_if<wasm::LoadError>(&loaded)) {
            if (error->is_malformed == malformed) return pass();
            return fail(command, format("expected \"%s\", got: %s", command.message.c_str(),
                                        error->error.to_string().c_str()));
        }
        fail(command, format("expected \"%s\", but the module is fine", command.message.c_str()));
    }

    void assert_unlinkable(const Command& command) {
        ModulePtr module = load(command);
        if (!module) return;
        Result<Store::Instantiated> made = link(module);
        if (!made) return pass();
        fail(command, format("expected \"%s\", but it links", command.message.c_str()));
    }

    // ---- actions

    Instance* find_instance(const Command& command, const std::string& name) {
        if (name.empty()) {
            if (!latest_) fail(command, "there is no instance");
            return latest_;
        }
        auto found = instances_.find(name);
        if (found == instances_.end()) {
            fail(command, "no instance $" + name);
            return nullptr;
        }
        return found->second;
    }

    // Performs the action. Returns nothing if it could not begin, which was counted as a failure.
    std::optional<Completion> act(const Command& command) {
        const text::Action& action = *command.action;
        Instance* instance = find_instance(command, action.module);
        if (!instance) return std::nullopt;
        std::optional<Extern> found = store_->find_export(*instance, action.field);
        bool is_get = action.kind == text::Action::Kind::get;
        wasm::ExternKind wanted = is_get ? wasm::ExternKind::global : wasm::ExternKind::func;
        if (!found || found->kind != wanted) {
            fail(command, format("no exported %s \"%s\"", to_string(wanted), action.field.c_str()));
            return std::nullopt;
        }
        Result<Completion> done = is_get ? get(*found) : invoke(*found, action);
        if (!done) {
            fail(command, done.error().to_string());
            return std::nullopt;
        }
        return std::move(*done);
    }

    Result<Completion> get(const Extern& global) {
        Completion completion;
        completion.results.push_back(TRY(store_->read_global(global)));
        return completion;
    }

    Result<Completion> invoke(const Extern& func, const text::Action& action) {
        const wasm::FuncType& type = store_->type_of(func);
        if (type.params.size() != action.arguments.size())
            return Error{format("%s takes %zu arguments, not %zu", action.field.c_str(),
                                type.params.size(), action.arguments.size())};
        std::vector<Value> arguments;
        for (usize i = 0; i < type.params.size(); i++) {
            if (!argument_fits(action.arguments[i], type.params[i]))
                return Error{format("argument %zu of %s is %s, expected %s", i + 1,
                                    action.field.c_str(), action.arguments[i].to_string().c_str(),
                                    store_->types().name(type.params[i]).c_str())};
            arguments.push_back(argument_value(action.arguments[i], type.params[i]));
        }
        return wait_out(func, TRY(store_->call(func, arguments, options_.control)));
    }

    static std::string describe(const Completion& done) {
        if (done.kind != Completion::Kind::returned) return done.to_string();
        std::string text;
        for (const Value& value : done.results)
            text += (text.empty() ? "" : " ") + value.to_string();
        return text.empty() ? "nothing" : text;
    }

    void assert_return(const Command& command) {
        std::optional<Completion> done = act(command);
        if (!done) return;
        bool matches = done->kind == Completion::Kind::returned &&
                       done->results.size() == command.results.size();
        for (usize i = 0; matches && i < command.results.size(); i++)
            matches = value_matches(command.results[i], done->results[i]);
        if (matches) return pass();
        std::string wanted;
        for (const ScriptValue& value : command.results)
            wanted += (wanted.empty() ? "" : " ") + value.to_string();
        fail(command, format("expected %s, got: %s", wanted.empty() ? "nothing" : wanted.c_str(),
                             describe(*done).c_str()));
    }

    bool value_matches(const ScriptValue& expected, const Value& actual) {
        using K = ScriptValue::Kind;
        u32 ref = actual.low();
        switch (expected.kind) {
            case K::either:
                for (const ScriptValue& alternative : expected.alternatives) {
                    if (value_matches(alternative, actual)) return true;
                }
                return false;
            case K::i32:
                return actual.type == ValType::i32 && actual.low() == u32(expected.bits[0]);
            case K::i64: return actual.type == ValType::i64 && actual.wide() == expected.bits[0];
            case K::f32:
                if (actual.type != ValType::f32) return false;
                return expected.nan[0] == text::Nan::none
                           ? actual.low() == u32(expected.bits[0])
                           : nan_matches(actual.low(), expected.nan[0], 23);
            case K::f64:
                if (actual.type != ValType::f64) return false;
                return expected.nan[0] == text::Nan::none
                           ? actual.wide() == expected.bits[0]
                           : nan_matches(actual.wide(), expected.nan[0], 52);
            case K::v128: return actual.type == ValType::v128 && lanes_match(expected, actual.bits);
            case K::ref_null: return actual.type.is_ref() && ref == 0;
            case K::ref_extern:
            case K::ref_host:
                if (!actual.type.is_ref() || ref == 0) return false;
                return !expected.number || ref == host_value(*expected.number);
            default:
                return actual.type.is_ref() && ref != 0 && reference_matches(expected.kind, actual);
        }
    }

    bool reference_matches(ScriptValue::Kind kind, const Value& actual) {
        using K = ScriptValue::Kind;
        Heap top = store_->types().top(actual.type.heap());
        if (kind == K::ref_func) return top == Heap::func;
        if (kind == K::ref_exn) return top == Heap::exn;
        if (top != Heap::any) return false;
        Result<Heap> is = store_->kind_of(actual.low());
        if (!is) return false;
        switch (kind) {
            case K::ref_i31: return *is == Heap::i31;
            case K::ref_struct: return *is == Heap::struct_;
            case K::ref_array: return *is == Heap::array;
            case K::ref_eq: return *is != Heap::any;
            default: return true;
        }
    }

    void assert_trap(const Command& command) {
        std::optional<Completion> done;
        if (command.module) {
            ModulePtr module = load(command);
            if (!module) return;
            Result<Store::Instantiated> made = link(module);
            if (!made) return fail(command, made.error().to_string());
            done = std::move(made->completion);
        } else {
            done = act(command);
        }
        if (!done) return;
        std::string got = done->to_string();
        const std::string& wanted = command.message;
        bool matches = done->kind == Completion::Kind::trapped &&
                       (got.starts_with(wanted) || wanted.starts_with(got));
        if (matches) return pass();
        fail(command, format("expected \"%s\", got: %s", wanted.c_str(), describe(*done).c_str()));
    }

    // ---- threads

    // Lets other threads run while a call waits for a notification, until that comes.
    Result<Completion> wait_out(const Extern& func, Completion done) {
        using namespace std::chrono;
        constexpr auto patience = seconds(10);
        const auto begin = steady_clock::now();
        while (done.kind == Completion::Kind::blocked && shared_.threads > 0 &&
               steady_clock::now() - begin < patience) {
            shared_.baton.unlock();
            std::this_thread::sleep_for(microseconds(200));
            shared_.baton.lock();
            store_->use_thread(thread_);
            done = TRY(store_->resume(func, options_.control));
        }
        return done;
    }

    // Runs the commands of a thread. It sees the instances that are shared with it; those that it
    // defines are its own.
    void run_thread(const Command& command) {
        Result<u32> number = store_->add_thread();
        if (!number) return fail(command, number.error().to_string());
        auto runner = std::make_shared<Runner>(shared_);
        runner->store_ = store_;
        runner->thread_ = *number;
        runner->registered_["spectest"] = shared_.spectest;
        for (const std::string& name : command.shared) {
            if (instances_.contains(name)) runner->instances_[name] = instances_[name];
        }
        std::thread& thread = threads_[command.name];
        join(thread);
        Result<std::thread> started = start_thread("of the script", [runner, &command] {
            std::lock_guard baton(runner->shared_.baton);
            Result<void> done = guarded([&]() -> Result<void> {
                for (const Command& inner : command.commands) {
                    runner->store_->use_thread(runner->thread_);
                    runner->execute(inner);
                }
                return {};
            });
            for (auto& [name, other] : runner->threads_) runner->join(other);
            if (!done && !runner->shared_.problem)
                runner->shared_.problem = std::move(done).error();
            runner->shared_.threads--;
        });
        if (!started) return fail(command, started.error().to_string());
        thread = std::move(*started);
        shared_.threads++;
    }

    void join(std::thread& thread) {
        if (!thread.joinable()) return;
        shared_.baton.unlock();
        thread.join();
        shared_.baton.lock();
        store_->use_thread(thread_);
    }

    Shared& shared_;
    const ScriptOptions& options_;
    Store* store_ = nullptr;
    u32 thread_ = 0;
    Instance* latest_ = nullptr;
    Instance* shared_spectest_ = nullptr;
    std::map<std::string, Instance*> instances_, registered_;
    std::unordered_map<std::string, ModulePtr> definitions_;
    std::map<std::string, std::thread> threads_;
};

}  // namespace

Result<ScriptReport> run_script(std::string_view source, std::string_view name,
                                const ScriptOptions& options) {
    text::Script script = TRY(text::parse_script(source, name));
    Shared shared{std::string(name), options, nullptr, {}, nullptr, {}, 0, {}};
    TRY(Runner(shared).run(script));
    if (shared.problem) return *shared.problem;
    return shared.report;
}

}  // namespace gpurun::engine
