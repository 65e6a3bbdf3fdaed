// By wasmtime's C API. An engine lives as long as the program; modules and stores as long as a run.
#include "oracle.h"

#include "wasmtime_library.h"

namespace gpurun {
namespace {

using namespace wasmtime;
using engine::Completion;

Trap trap_of(TrapCode code) {
    switch (code) {
        case TrapCode::stack_overflow: return Trap::call_stack_exhausted;
        case TrapCode::memory_out_of_bounds: return Trap::memory_out_of_bounds;
        case TrapCode::heap_misaligned: return Trap::unaligned_atomic;
        case TrapCode::table_out_of_bounds: return Trap::table_out_of_bounds;
        case TrapCode::indirect_call_to_null: return Trap::uninitialized_element;
        case TrapCode::bad_signature: return Trap::indirect_call_type_mismatch;
        case TrapCode::integer_overflow: return Trap::integer_overflow;
        case TrapCode::integer_division_by_zero: return Trap::integer_divide_by_zero;
        case TrapCode::bad_conversion_to_integer: return Trap::invalid_conversion_to_integer;
        case TrapCode::unreachable_code_reached: return Trap::unreachable;
        case TrapCode::atomic_wait_non_shared_memory: return Trap::expected_shared_memory;
        case TrapCode::null_reference: return Trap::null_reference;
        case TrapCode::array_out_of_bounds: return Trap::array_out_of_bounds;
        case TrapCode::cast_failure: return Trap::cast_failure;
    }
    return Trap::none;
}

struct Module {
    wasmtime_module_t* of = nullptr;
    Module() = default;
    Module(const Module&) = delete;
    Module& operator=(const Module&) = delete;
    ~Module() {
        if (of) wasmtime_module_delete(of);
    }
};

class Run {
public:
    explicit Run(wasm_engine_t* engine) : store_(wasmtime_store_new(engine, nullptr, nullptr)) {
        constexpr s64 no_limit = -1;
        wasmtime_store_limiter(store_, s64(most_memory_bytes), most_table_elements, no_limit,
                               no_limit, no_limit);
        context_ = wasmtime_store_context(store_);
    }
    ~Run() {
        for (Exported& exported : exports_) wasmtime_extern_delete(&exported.item);
        for (wasmtime_extern_t& item : imports_) wasmtime_extern_delete(&item);
        wasmtime_store_delete(store_);
    }
    Run(const Run&) = delete;
    Run& operator=(const Run&) = delete;

    Result<Outcome> instantiate(const wasm::Module& module, const Module& compiled,
                                const Module& imports) {
        wasmtime_instance_t given, instance;
        wasm_trap_t* trap = nullptr;
        wasmtime_error_t* error =
            wasmtime_instance_new(context_, imports.of, nullptr, 0, &given, &trap);
        if (auto problem = failure(error, trap)) return *problem;
        seen_ = TRY(find(given, "seen"));
        for (const wasm::Import& import : module.imports)
            imports_.push_back(TRY(find(given, std::to_string(import.index))));
        error = wasmtime_instance_new(context_, compiled.of, imports_.data(), imports_.size(),
                                      &instance, &trap);
        Outcome outcome = TRY(ended(error, trap));
        if (outcome.kind != Completion::Kind::returned) return outcome;
        for (const wasm::Export& exported : module.exports)
            exports_.push_back({&exported, TRY(find(instance, exported.name))});
        look(module, outcome, true);
        return outcome;
    }

    Result<Outcome> call(const wasm::Module& module, const Call& call) {
        const wasm::FuncType& type = module.func_type(call.function->index);
        std::vector<wasmtime_val_raw_t> values(std::max(type.params.size(), type.results.size()));
        for (usize i = 0; i < call.arguments.size(); i++) values[i].bits = call.arguments[i].bits;
        for (const Exported& exported : exports_) {
            if (exported.of != call.function) continue;
            wasm_trap_t* trap = nullptr;
            wasmtime_error_t* error = wasmtime_func_call_unchecked(
                context_, &exported.item.of.func, values.data(), values.size(), &trap);
            Outcome outcome = TRY(ended(error, trap));
            if (outcome.kind == Completion::Kind::returned)
                for (usize i = 0; i < type.results.size(); i++)
                    outcome.results.push_back(comparable(type.results[i], values[i].bits));
            look(module, outcome, call.looks_at_memories);
            return outcome;
        }
        return Error{"wasmtime finds no function " + call.function->name};
    }

private:
    struct Exported {
        const wasm::Export* of;
        wasmtime_extern_t item;
    };

    Result<wasmtime_extern_t> find(const wasmtime_instance_t& instance, const std::string& name) {
        wasmtime_extern_t item;
        if (!wasmtime_instance_export_get(context_, &instance, name.data(), name.size(), &item))
            return Error{"wasmtime finds no export " + name};
        return item;
    }

    static Result<Outcome> ended(wasmtime_error_t* error, wasm_trap_t* trap) {
        Outcome outcome;
        if (!error && !trap) return outcome;
        TrapCode code;
        if (!error && wasmtime_trap_code(trap, &code)) {
            wasm_trap_delete(trap);
            outcome.kind = Completion::Kind::trapped;
            outcome.trap = trap_of(code);
            if (outcome.trap == Trap::none) return Error{format("wasmtime's trap %u", u32(code))};
            return outcome;
        }
        const Error problem = *failure(error, trap);
        if (!problem.message.ends_with("thrown Wasm exception")) return problem;
        outcome.kind = Completion::Kind::uncaught_exception;
        return outcome;
    }

    Bits read(const wasmtime_global_t& global, wasm::ValType type) {
        wasmtime_val_t value;
        wasmtime_global_get(context_, &global, &value);
        const Bits bits = comparable(type, {{value.of[0], value.of[1], value.of[2], value.of[3]}});
        wasmtime_val_unroot(&value);
        return bits;
    }

    void look(const wasm::Module& module, Outcome& outcome, bool at_memories) {
        outcome.seen = mix(0, read(seen_.of.global, wasm::ValType::i64));
        for (const Exported& exported : exports_) {
            const wasmtime_extern_t& item = exported.item;
            if (item.kind == extern_global) {
                const wasm::ValType type = module.globals[exported.of->index].type.type;
                if (!type.is_ref()) outcome.state = mix(outcome.state, read(item.of.global, type));
            } else if (at_memories && item.kind == extern_memory) {
                outcome.state =
                    mix(outcome.state,
                        std::span<const u8>(wasmtime_memory_data(context_, &item.of.memory),
                                            wasmtime_memory_data_size(context_, &item.of.memory)));
            } else if (at_memories && item.kind == extern_sharedmemory) {
                outcome.state =
                    mix(outcome.state,
                        std::span<const u8>(wasmtime_sharedmemory_data(item.of.sharedmemory),
                                            wasmtime_sharedmemory_data_size(item.of.sharedmemory)));
            }
        }
    }

    wasmtime_store_t* store_;
    wasmtime_context_t* context_;
    wasmtime_extern_t seen_{};
    std::vector<wasmtime_extern_t> imports_;
    std::vector<Exported> exports_;
};

class Wasmtime final : public Oracle {
public:
    Wasmtime() {
        wasm_config_t* config = wasm_config_new();
        wasmtime_config_strategy_set(config, strategy_cranelift);
        wasmtime_config_cranelift_opt_level_set(config, opt_level_none);
        wasmtime_config_cranelift_nan_canonicalization_set(config, true);
        wasmtime_config_async_stack_size_set(config, 5 << 20);
        wasmtime_config_max_wasm_stack_set(config, 4 << 20);
        wasmtime_config_parallel_compilation_set(config, false);
        wasmtime_config_memory_init_cow_set(config, false);
        wasmtime_config_concurrency_support_set(config, false);
        wasmtime_config_wasm_relaxed_simd_deterministic_set(config, true);
        for (auto enable :
             {wasmtime_config_shared_memory_set, wasmtime_config_wasm_threads_set,
              wasmtime_config_wasm_tail_call_set, wasmtime_config_wasm_exceptions_set,
              wasmtime_config_wasm_function_references_set, wasmtime_config_wasm_gc_set,
              wasmtime_config_wasm_memory64_set, wasmtime_config_wasm_multi_memory_set,
              wasmtime_config_wasm_relaxed_simd_set})
            enable(config, true);
        engine_ = wasm_engine_new_with_config(config);
    }

    Result<std::vector<Outcome>> run(const wasm::Module& module, const wasm::Module& imports,
                                     std::span<const Call> calls) override {
        Module compiled, given;
        TRY(compile(module, compiled));
        TRY(compile(imports, given));
        Run run(engine_);
        std::vector<Outcome> outcomes;
        auto goes_on = [&] {
            if (outcomes.back().trap != Trap::call_stack_exhausted) return true;
            outcomes.pop_back();
            return false;
        };
        outcomes.push_back(TRY(run.instantiate(module, compiled, given)));
        if (!goes_on() || outcomes[0].kind != Completion::Kind::returned) return outcomes;
        for (const Call& call : calls) {
            outcomes.push_back(TRY(run.call(module, call)));
            if (!goes_on()) break;
        }
        return outcomes;
    }

private:
    Result<void> compile(const wasm::Module& module, Module& made) {
        if (auto problem = failure(
                wasmtime_module_new(engine_, module.bytes.data(), module.bytes.size(), &made.of)))
            return *problem;
        return {};
    }

    wasm_engine_t* engine_;
};

}  // namespace

Result<std::unique_ptr<Oracle>> Oracle::open(const std::string& library) {
    TRY(open_library(library));
    return std::unique_ptr<Oracle>(std::make_unique<Wasmtime>());
}

}  // namespace gpurun
