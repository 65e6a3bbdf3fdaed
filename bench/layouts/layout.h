// Linear memory of a job that wasm2c has made C of, laid out in one of several ways, on a GPU. It
// is for measuring layouts only: nothing is checked but what the host's run has shown to be needed.
//
// By macros, all of them numbers:
//   GRANULE      0: each process's memory lies in one piece. N: memories of the 32 lanes of a warp
//   are
//                interleaved by N bytes
//   SPLIT        1: what lies below HEAP_BASE is interleaved by GRANULE, the heap lies in one piece
//   STACK_LOCAL  1: the STACK_BYTES below STACK_TOP, the shadow stack, are in local memory
//   COMPACT      1: nothing is kept of what lies below the STACK_BYTES; not with SPLIT
//   UNALIGNED    the sum of the sizes (2, 4, 8) of accesses that may be unaligned, and are looked
//   at CHECKED      1: every access is compared with the size of the memory PAGES        that a
//   memory may have; HEAP_BASE, STACK_TOP, STACK_BYTES PROBE        1: on the host: notes what the
//   numbers have to be
#pragma once

#ifndef COMPACT
#define COMPACT 0
#endif

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint8_t u8;
typedef int8_t s8;
typedef uint16_t u16;
typedef int16_t s16;
typedef uint32_t u32;
typedef int32_t s32;
typedef uint64_t u64;
typedef int64_t s64;
typedef float f32;
typedef double f64;

#ifdef __NVPTX__
#define GLOBAL __attribute__((address_space(1)))
#define LOCAL __attribute__((address_space(5)))
#else
#define GLOBAL
#define LOCAL
#endif

// `base` has been moved by what the lane's place is; `heap` is for SPLIT, `stack` for STACK_LOCAL.
#define MEMORY_TYPES GLOBAL u8*, GLOBAL u8*, LOCAL u8*
#define MEMORY GLOBAL u8 *base, GLOBAL u8 *heap, LOCAL u8 *stack
#define THE_MEMORY base, heap, stack
#define STACK_LOW (STACK_TOP - STACK_BYTES)

#if PROBE
extern u64 probe_lowest, probe_unaligned;
#define NOTE(at, size)                                                    \
    do {                                                                  \
        if ((at) < STACK_TOP && (at) < probe_lowest) probe_lowest = (at); \
        if ((at) & ((size) - 1)) probe_unaligned |= (size);               \
    } while (0)
#else
#define NOTE(at, size)
#endif

// Where an access of `size` bytes begins, none of which is in another granule.
static inline GLOBAL u8* place(GLOBAL u8* base, GLOBAL u8* heap, u64 at, u32 size) {
    (void)heap, (void)size;
#if GRANULE
    if (SPLIT && at >= HEAP_BASE) return heap + at;
    if (size >= GRANULE) return base + at * 32;  // aligned
    return base + (at & ~(u64)(GRANULE - 1)) * 32 + (at & (GRANULE - 1));
#else
    return base + at;
#endif
}

#define DEFINE_ACCESS(type)                                                                 \
    static inline type get_##type(MEMORY, u64 at) {                                         \
        (void)stack;                                                                        \
        if (STACK_LOCAL && at < STACK_TOP) return *(LOCAL type*)(stack + (at - STACK_LOW)); \
        return *(GLOBAL type*)place(base, heap, at, sizeof(type));                          \
    }                                                                                       \
    static inline void put_##type(MEMORY, u64 at, type value) {                             \
        (void)stack;                                                                        \
        if (STACK_LOCAL && at < STACK_TOP)                                                  \
            *(LOCAL type*)(stack + (at - STACK_LOW)) = value;                               \
        else                                                                                \
            *(GLOBAL type*)place(base, heap, at, sizeof(type)) = value;                     \
    }
DEFINE_ACCESS(u8)
DEFINE_ACCESS(u16)
DEFINE_ACCESS(u32)
DEFINE_ACCESS(u64)

// The same for addresses that may be unaligned, and for what is larger than a granule.
#define DEFINE_ANY_ACCESS(type)                                                              \
    static inline type any_get_##type(MEMORY, u64 at) {                                      \
        NOTE(at, sizeof(type));                                                              \
        if ((UNALIGNED & sizeof(type)) && at & (sizeof(type) - 1)) {                         \
            type value = 0;                                                                  \
            for (u32 i = 0; i < sizeof(type); i++)                                           \
                value |= (type)((type)get_u8(THE_MEMORY, at + i) << 8 * i);                  \
            return value;                                                                    \
        }                                                                                    \
        if (sizeof(type) == 8 && GRANULE == 4)                                               \
            return (type)(get_u32(THE_MEMORY, at) | (u64)get_u32(THE_MEMORY, at + 4) << 32); \
        return get_##type(THE_MEMORY, at);                                                   \
    }                                                                                        \
    static inline void any_put_##type(MEMORY, u64 at, type value) {                          \
        NOTE(at, sizeof(type));                                                              \
        if ((UNALIGNED & sizeof(type)) && at & (sizeof(type) - 1)) {                         \
            for (u32 i = 0; i < sizeof(type); i++)                                           \
                put_u8(THE_MEMORY, at + i, (u8)(value >> 8 * i));                            \
        } else if (sizeof(type) == 8 && GRANULE == 4) {                                      \
            put_u32(THE_MEMORY, at, (u32)value);                                             \
            put_u32(THE_MEMORY, at + 4, (u32)((u64)value >> 32));                            \
        } else {                                                                             \
            put_##type(THE_MEMORY, at, value);                                               \
        }                                                                                    \
    }
DEFINE_ANY_ACCESS(u8)
DEFINE_ANY_ACCESS(u16)
DEFINE_ANY_ACCESS(u32)
DEFINE_ANY_ACCESS(u64)

// ---- what wasm2c's C calls

#define FUNC_PROLOGUE
#define FUNC_EPILOGUE
#define UNREACHABLE __builtin_trap()
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define TRAP_VALUE (__builtin_trap(), 0)

#if CHECKED
#define CHECK_ACCESS(at, size) \
    if (UNLIKELY((at) + (size) > memory_bytes)) __builtin_trap()
#else
#define CHECK_ACCESS(at, size) (void)memory_bytes
#endif

#define DEFINE_LOAD(name, bits, as, wide, result)                 \
    static inline result name(MEMORY, u64 memory_bytes, u64 at) { \
        CHECK_ACCESS(at, sizeof(bits));                           \
        bits value = any_get_##bits(THE_MEMORY, at);              \
        as seen;                                                  \
        __builtin_memcpy(&seen, &value, sizeof seen);             \
        return (result)(wide)seen;                                \
    }
#define DEFINE_STORE(name, bits, as, given)                                  \
    static inline void name(MEMORY, u64 memory_bytes, u64 at, given value) { \
        CHECK_ACCESS(at, sizeof(bits));                                      \
        as seen = (as)value;                                                 \
        bits raw;                                                            \
        __builtin_memcpy(&raw, &seen, sizeof raw);                           \
        any_put_##bits(THE_MEMORY, at, raw);                                 \
    }
DEFINE_LOAD(i32_load, u32, u32, u32, u32)
DEFINE_LOAD(i64_load, u64, u64, u64, u64)
DEFINE_LOAD(f32_load, u32, f32, f32, f32)
DEFINE_LOAD(f64_load, u64, f64, f64, f64)
DEFINE_LOAD(i32_load8_s, u8, s8, s32, u32)
DEFINE_LOAD(i64_load8_s, u8, s8, s64, u64)
DEFINE_LOAD(i32_load8_u, u8, u8, u32, u32)
DEFINE_LOAD(i64_load8_u, u8, u8, u64, u64)
DEFINE_LOAD(i32_load16_s, u16, s16, s32, u32)
DEFINE_LOAD(i64_load16_s, u16, s16, s64, u64)
DEFINE_LOAD(i32_load16_u, u16, u16, u32, u32)
DEFINE_LOAD(i64_load16_u, u16, u16, u64, u64)
DEFINE_LOAD(i64_load32_s, u32, s32, s64, u64)
DEFINE_LOAD(i64_load32_u, u32, u32, u64, u64)
DEFINE_STORE(i32_store, u32, u32, u32)
DEFINE_STORE(i64_store, u64, u64, u64)
DEFINE_STORE(f32_store, u32, f32, f32)
DEFINE_STORE(f64_store, u64, f64, f64)
DEFINE_STORE(i32_store8, u8, u8, u32)
DEFINE_STORE(i32_store16, u16, u16, u32)
DEFINE_STORE(i64_store8, u8, u8, u64)
DEFINE_STORE(i64_store16, u16, u16, u64)
DEFINE_STORE(i64_store32, u32, u32, u64)

#define I32_CLZ(x) ((x) ? __builtin_clz(x) : 32)
#define I64_CLZ(x) ((x) ? __builtin_clzll(x) : 64)
#define I32_CTZ(x) ((x) ? __builtin_ctz(x) : 32)
#define I64_CTZ(x) ((x) ? __builtin_ctzll(x) : 64)
#define DIV_U(x, y) (UNLIKELY((y) == 0) ? TRAP_VALUE : (x) / (y))
#define REM_U(x, y) (UNLIKELY((y) == 0) ? TRAP_VALUE : (x) % (y))
#define DIV_S(unsigned_type, type, x, y) \
    (UNLIKELY((y) == 0) ? TRAP_VALUE : (unsigned_type)((type)(x) / (type)(y)))
#define I32_DIV_S(x, y) DIV_S(u32, s32, x, y)
#define I64_DIV_S(x, y) DIV_S(u64, s64, x, y)
#define REM_S(unsigned_type, type, x, y) \
    (UNLIKELY((y) == 0) ? TRAP_VALUE : (unsigned_type)((type)(x) % (type)(y)))
#define I32_REM_S(x, y) REM_S(u32, s32, x, y)
#define I64_REM_S(x, y) REM_S(u64, s64, x, y)
#define I32_ROTL(x, y) __builtin_rotateleft32(x, y)
#define I64_ROTL(x, y) __builtin_rotateleft64(x, y)
#define I32_ROTR(x, y) __builtin_rotateright32(x, y)
#define I64_ROTR(x, y) __builtin_rotateright64(x, y)
#define DEFINE_REINTERPRET(name, from, to)                \
    static inline to name(from value) {                   \
        to result;                                        \
        __builtin_memcpy(&result, &value, sizeof result); \
        return result;                                    \
    }
DEFINE_REINTERPRET(i32_reinterpret_f32, f32, u32)
DEFINE_REINTERPRET(i64_reinterpret_f64, f64, u64)
DEFINE_REINTERPRET(f32_reinterpret_i32, u32, f32)
DEFINE_REINTERPRET(f64_reinterpret_i64, u64, f64)
#define wasm_sqrt(x) __builtin_sqrt(x)
#define wasm_fabs(x) __builtin_fabs(x)
#define I32_TRUNC_SAT_S_F64(x) ((u32)(s32)(x))
#define I64_TRUNC_SAT_U_F64(x) ((u64)(x))

static inline void memory_fill(MEMORY, u64 memory_bytes, u32 to, u32 value, u32 count) {
    CHECK_ACCESS((u64)to, count);
    if (((to | count) & 3) == 0) {
        u32 word = (value & 255) * 0x01010101u;
        for (u32 i = 0; i < count; i += 4) any_put_u32(THE_MEMORY, (u64)to + i, word);
    } else {
        for (u32 i = 0; i < count; i++) any_put_u8(THE_MEMORY, (u64)to + i, (u8)value);
    }
}

static inline void memory_copy(MEMORY, u64 memory_bytes, GLOBAL u8* base2, GLOBAL u8* heap2,
                               LOCAL u8* stack2, u64 bytes2, u32 to, u32 from, u32 count) {
    (void)base2, (void)heap2, (void)stack2, (void)bytes2;
    CHECK_ACCESS((u64)to, count);
    CHECK_ACCESS((u64)from, count);
    int is_backwards = to > from && to < from + count;
    if (((to | from | count) & 3) == 0 && !is_backwards) {
        for (u32 i = 0; i < count; i += 4)
            any_put_u32(THE_MEMORY, (u64)to + i, any_get_u32(THE_MEMORY, (u64)from + i));
    } else if (!is_backwards) {
        for (u32 i = 0; i < count; i++)
            any_put_u8(THE_MEMORY, (u64)to + i, any_get_u8(THE_MEMORY, (u64)from + i));
    } else {
        for (u32 i = count; i-- > 0;)
            any_put_u8(THE_MEMORY, (u64)to + i, any_get_u8(THE_MEMORY, (u64)from + i));
    }
}

static inline void load_data(MEMORY, u32 to, const u8* from, u32 count) {
    for (u32 i = 0; i < count; i++) put_u8(THE_MEMORY, to + i, from[i]);
}
