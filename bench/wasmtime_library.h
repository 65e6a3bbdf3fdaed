// wasmtime's C API, as much of it as is called here, under its own names. It is a shared library
// that is opened at run time: scripts/find-wasmtime prints its path. The layouts are those of the
// version that it installs; they change between versions.
#pragma once

#include <dlfcn.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "abi/v128.h"
#include "base/format.h"
#include "base/result.h"

namespace gpurun::wasmtime {

inline constexpr const char* version = "50.0.1";

struct wasm_config_t;
struct wasm_engine_t;
struct wasm_trap_t;
struct wasmtime_pooling_allocation_config_t;
struct wasmtime_error_t;
struct wasmtime_module_t;
struct wasmtime_linker_t;
struct wasmtime_instance_pre_t;
struct wasmtime_store_t;
struct wasmtime_context_t;
struct wasmtime_sharedmemory_t;

struct wasm_byte_vec_t {
    size_t size;
    char* data;
};

struct wasmtime_instance_t {
    u64 store_id;
    size_t index;
};

struct wasmtime_func_t {
    u64 store_id;
    void* func;
};

struct wasmtime_memory_t {
    u64 store_id;
    u32 private_1, private_2, private_3, padding;
};

struct wasmtime_global_t {
    u64 store_id;
    u32 private_1, private_2, private_3, padding;
};

struct wasmtime_extern_t {
    u8 kind;
    u8 padding[7];
    union {
        wasmtime_func_t func;
        wasmtime_memory_t memory;
        wasmtime_global_t global;
        wasmtime_sharedmemory_t* sharedmemory;
    } of;
};
inline constexpr u8 extern_func = 0, extern_global = 1, extern_memory = 3, extern_sharedmemory = 4;

// A number is in the first bytes, with zeros above an i32. References: zero is null.
struct alignas(16) wasmtime_val_raw_t {
    V128 bits;
};

struct wasmtime_val_t {
    u8 kind;
    u8 padding[7];
    u32 of[6];  // of numbers the first words
};

static_assert(sizeof(wasmtime_instance_t) == 16);
static_assert(sizeof(wasmtime_func_t) == 16);
static_assert(sizeof(wasmtime_memory_t) == 24 && sizeof(wasmtime_global_t) == 24);
static_assert(offsetof(wasmtime_extern_t, of) == 8 && sizeof(wasmtime_extern_t) == 32);
static_assert(sizeof(wasmtime_val_raw_t) == 16);
static_assert(offsetof(wasmtime_val_t, of) == 8 && sizeof(wasmtime_val_t) == 32);

inline constexpr u8 strategy_cranelift = 1, opt_level_none = 0, opt_level_speed = 1;

// wasmtime_trap_code
enum class TrapCode : u8 {
    stack_overflow = 0,
    memory_out_of_bounds = 1,
    heap_misaligned = 2,
    table_out_of_bounds = 3,
    indirect_call_to_null = 4,
    bad_signature = 5,
    integer_overflow = 6,
    integer_division_by_zero = 7,
    bad_conversion_to_integer = 8,
    unreachable_code_reached = 9,
    atomic_wait_non_shared_memory = 12,
    null_reference = 13,
    array_out_of_bounds = 14,
    cast_failure = 16,
};

#define WASMTIME_FUNCTIONS(F)                                                                      \
    F(wasm_config_t*, wasm_config_new, ())                                                         \
    F(void, wasmtime_config_strategy_set, (wasm_config_t*, u8))                                    \
    F(void, wasmtime_config_cranelift_opt_level_set, (wasm_config_t*, u8))                         \
    F(void, wasmtime_config_cranelift_nan_canonicalization_set, (wasm_config_t*, bool))            \
    F(void, wasmtime_config_async_stack_size_set, (wasm_config_t*, u64))                           \
    F(void, wasmtime_config_max_wasm_stack_set, (wasm_config_t*, size_t))                          \
    F(void, wasmtime_config_parallel_compilation_set, (wasm_config_t*, bool))                      \
    F(void, wasmtime_config_memory_init_cow_set, (wasm_config_t*, bool))                           \
    F(void, wasmtime_config_concurrency_support_set, (wasm_config_t*, bool))                       \
    F(void, wasmtime_config_shared_memory_set, (wasm_config_t*, bool))                             \
    F(void, wasmtime_config_wasm_threads_set, (wasm_config_t*, bool))                              \
    F(void, wasmtime_config_wasm_tail_call_set, (wasm_config_t*, bool))                            \
    F(void, wasmtime_config_wasm_exceptions_set, (wasm_config_t*, bool))                           \
    F(void, wasmtime_config_wasm_function_references_set, (wasm_config_t*, bool))                  \
    F(void, wasmtime_config_wasm_gc_set, (wasm_config_t*, bool))                                   \
    F(void, wasmtime_config_wasm_memory64_set, (wasm_config_t*, bool))                             \
    F(void, wasmtime_config_wasm_multi_memory_set, (wasm_config_t*, bool))                         \
    F(void, wasmtime_config_wasm_relaxed_simd_set, (wasm_config_t*, bool))                         \
    F(void, wasmtime_config_wasm_relaxed_simd_deterministic_set, (wasm_config_t*, bool))           \
    F(wasmtime_pooling_allocation_config_t*, wasmtime_pooling_allocation_config_new, ())           \
    F(void, wasmtime_pooling_allocation_config_delete, (wasmtime_pooling_allocation_config_t*))    \
    F(void, wasmtime_pooling_allocation_config_total_core_instances_set,                           \
      (wasmtime_pooling_allocation_config_t*, u32))                                                \
    F(void, wasmtime_pooling_allocation_config_total_memories_set,                                 \
      (wasmtime_pooling_allocation_config_t*, u32))                                                \
    F(void, wasmtime_pooling_allocation_config_total_tables_set,                                   \
      (wasmtime_pooling_allocation_config_t*, u32))                                                \
    F(void, wasmtime_pooling_allocation_config_max_unused_warm_slots_set,                          \
      (wasmtime_pooling_allocation_config_t*, u32))                                                \
    F(void, wasmtime_pooling_allocation_config_linear_memory_keep_resident_set,                    \
      (wasmtime_pooling_allocation_config_t*, size_t))                                             \
    F(void, wasmtime_pooling_allocation_config_table_keep_resident_set,                            \
      (wasmtime_pooling_allocation_config_t*, size_t))                                             \
    F(void, wasmtime_pooling_allocation_strategy_set,                                              \
      (wasm_config_t*, const wasmtime_pooling_allocation_config_t*))                               \
    F(wasm_engine_t*, wasm_engine_new_with_config, (wasm_config_t*))                               \
    F(wasmtime_error_t*, wasmtime_module_new,                                                      \
      (wasm_engine_t*, const u8*, size_t, wasmtime_module_t**))                                    \
    F(void, wasmtime_module_delete, (wasmtime_module_t*))                                          \
    F(wasmtime_linker_t*, wasmtime_linker_new, (wasm_engine_t*))                                   \
    F(wasmtime_error_t*, wasmtime_linker_instantiate_pre,                                          \
      (const wasmtime_linker_t*, const wasmtime_module_t*, wasmtime_instance_pre_t**))             \
    F(wasmtime_store_t*, wasmtime_store_new, (wasm_engine_t*, void*, void (*)(void*)))             \
    F(wasmtime_context_t*, wasmtime_store_context, (wasmtime_store_t*))                            \
    F(void, wasmtime_store_limiter, (wasmtime_store_t*, s64, s64, s64, s64, s64))                  \
    F(void, wasmtime_store_delete, (wasmtime_store_t*))                                            \
    F(wasmtime_error_t*, wasmtime_instance_new,                                                    \
      (wasmtime_context_t*, const wasmtime_module_t*, const wasmtime_extern_t*, size_t,            \
       wasmtime_instance_t*, wasm_trap_t**))                                                       \
    F(wasmtime_error_t*, wasmtime_instance_pre_instantiate,                                        \
      (const wasmtime_instance_pre_t*, wasmtime_context_t*, wasmtime_instance_t*, wasm_trap_t**))  \
    F(bool, wasmtime_instance_export_get,                                                          \
      (wasmtime_context_t*, const wasmtime_instance_t*, const char*, size_t, wasmtime_extern_t*))  \
    F(void, wasmtime_extern_delete, (wasmtime_extern_t*))                                          \
    F(wasmtime_error_t*, wasmtime_func_call_unchecked,                                             \
      (wasmtime_context_t*, const wasmtime_func_t*, wasmtime_val_raw_t*, size_t, wasm_trap_t**))   \
    F(u8*, wasmtime_memory_data, (const wasmtime_context_t*, const wasmtime_memory_t*))            \
    F(size_t, wasmtime_memory_data_size, (const wasmtime_context_t*, const wasmtime_memory_t*))    \
    F(u8*, wasmtime_sharedmemory_data, (const wasmtime_sharedmemory_t*))                           \
    F(size_t, wasmtime_sharedmemory_data_size, (const wasmtime_sharedmemory_t*))                   \
    F(void, wasmtime_global_get, (wasmtime_context_t*, const wasmtime_global_t*, wasmtime_val_t*)) \
    F(void, wasmtime_val_unroot, (wasmtime_val_t*))                                                \
    F(void, wasmtime_error_message, (const wasmtime_error_t*, wasm_byte_vec_t*))                   \
    F(void, wasmtime_error_delete, (wasmtime_error_t*))                                            \
    F(bool, wasmtime_trap_code, (const wasm_trap_t*, TrapCode*))                                   \
    F(void, wasm_trap_message, (const wasm_trap_t*, wasm_byte_vec_t*))                             \
    F(void, wasm_trap_delete, (wasm_trap_t*))                                                      \
    F(void, wasm_byte_vec_delete, (wasm_byte_vec_t*))

#define DECLARE(result, name, parameters) inline result(*name) parameters;
WASMTIME_FUNCTIONS(DECLARE)
#undef DECLARE

inline Result<void> open_library(const std::string& path) {
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) return Error{format("cannot open wasmtime's library: %s", dlerror())};
#define FIND(result, name, parameters)                                                \
    name = reinterpret_cast<decltype(name)>(dlsym(library, #name));                   \
    if (!name)                                                                        \
        return Error{format("%s is not the library of wasmtime %s: it has no " #name, \
                            path.c_str(), version)};
    WASMTIME_FUNCTIONS(FIND)
#undef FIND
    return {};
}
#undef WASMTIME_FUNCTIONS

// What an error or a trap says, on one line and without the frames that led there; deletes it.
template <class T>
std::string take_message(T* from, void (*message)(const T*, wasm_byte_vec_t*), void (*free)(T*)) {
    wasm_byte_vec_t bytes;
    message(from, &bytes);
    std::string line;
    for (char c : std::string_view(bytes.data, bytes.size)) {
        bool is_space = c == '\n' || c == ' ' || c == '\0';
        if (!is_space) {
            line += c;
        } else if (!line.empty() && line.back() != ' ') {
            line += ' ';
        }
    }
    wasm_byte_vec_delete(&bytes);
    free(from);
    line.erase(line.find_last_not_of(' ') + 1);
    usize trap = line.rfind("wasm trap: ");
    return trap == std::string::npos ? line : line.substr(trap + 5);
}

// Nothing if there is neither.
inline std::optional<Error> failure(wasmtime_error_t* error, wasm_trap_t* trap = nullptr) {
    if (error) return Error{take_message(error, wasmtime_error_message, wasmtime_error_delete)};
    if (trap) return Error{take_message(trap, wasm_trap_message, wasm_trap_delete)};
    return std::nullopt;
}

}  // namespace gpurun::wasmtime
