// Why a thread stopped for good. One row a trap: its name here and its wording for people
// (the official suite's).
#pragma once

#include "base/ints.h"

namespace gpurun {

#define GPURUN_TRAPS(TRAP)                                               \
    TRAP(unreachable, "unreachable")                                     \
    TRAP(memory_out_of_bounds, "out of bounds memory access")            \
    TRAP(table_out_of_bounds, "out of bounds table access")              \
    TRAP(array_out_of_bounds, "out of bounds array access")              \
    TRAP(undefined_element, "undefined element")                         \
    TRAP(uninitialized_element, "uninitialized element")                 \
    TRAP(indirect_call_type_mismatch, "indirect call type mismatch")     \
    TRAP(integer_divide_by_zero, "integer divide by zero")               \
    TRAP(integer_overflow, "integer overflow")                           \
    TRAP(invalid_conversion_to_integer, "invalid conversion to integer") \
    TRAP(null_reference, "null reference")                               \
    TRAP(null_function_reference, "null function reference")             \
    TRAP(null_i31_reference, "null i31 reference")                       \
    TRAP(null_structure_reference, "null structure reference")           \
    TRAP(null_array_reference, "null array reference")                   \
    TRAP(null_exception_reference, "null exception reference")           \
    TRAP(cast_failure, "cast failure")                                   \
    TRAP(call_stack_exhausted, "call stack exhausted")                   \
    TRAP(unaligned_atomic, "unaligned atomic")                           \
    TRAP(expected_shared_memory, "expected shared memory")               \
    TRAP(heap_exhausted, "object heap exhausted")                        \
    TRAP(system_memory_exhausted, "no system memory for the process")    \
    TRAP(host_function_failed, "a host function failed")

enum class Trap : u32 {
    none,
#define TRAP(name, text) name,
    GPURUN_TRAPS(TRAP)
#undef TRAP
};

constexpr const char* to_string(Trap trap) {
    switch (trap) {
        case Trap::none: return "none";
#define TRAP(name, text) \
    case Trap::name: return text;
            GPURUN_TRAPS(TRAP)
#undef TRAP
    }
    return "unknown trap";
}

}  // namespace gpurun
