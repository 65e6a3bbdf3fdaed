// A function for each accessor of shared memory, and for each width that it has: orders_test.py
// reads what the compiler makes of it for a GPU.
#include "runtime/platform/platform.h"

using namespace gpurun;
using namespace gpurun::rt;

#define FUNCTION extern "C" __attribute__((used, noinline))
#define LOAD(name)                                                  \
    FUNCTION u32 test_##name##_32(const u32* p) { return name(p); } \
    FUNCTION u64 test_##name##_64(const u64* p) { return name(p); }
#define STORE(name)                                                       \
    FUNCTION void test_##name##_32(u32* p, u32 value) { name(p, value); } \
    FUNCTION void test_##name##_64(u64* p, u64 value) { name(p, value); }
#define UPDATE(name)                                                            \
    FUNCTION u32 test_##name##_32(u32* p, u32 value) { return name(p, value); } \
    FUNCTION u64 test_##name##_64(u64* p, u64 value) { return name(p, value); }
#define COMPARE(name)                                                             \
    FUNCTION u32 test_##name##_32(u32* p, u32 a, u32 b) { return name(p, a, b); } \
    FUNCTION u64 test_##name##_64(u64* p, u64 a, u64 b) { return name(p, a, b); }

LOAD(load_relaxed)
LOAD(load_shared)
LOAD(load_mapped)
FUNCTION u32 test_load_stale_32(const u32* p) { return load_stale(p); }
STORE(store_relaxed)
STORE(store_shared)
STORE(store_released)
STORE(store_mapped)
COMPARE(compare_exchange)
COMPARE(compare_exchange_acquire)
COMPARE(compare_exchange_release)
COMPARE(compare_exchange_relaxed)
UPDATE(fetch_add)
FUNCTION u32 test_exchange_32(u32* p, u32 value) { return exchange(p, value); }
FUNCTION u32 test_atom_add_32(u32* p, u32 value) { return atom_add(p, value); }
FUNCTION void test_atom_add_64(u64* p, u64 value) { atom_add(p, value); }
FUNCTION void test_atom_max_64(u64* p, u64 value) { atom_max(p, value); }
FUNCTION void test_atomic_fence() { atomic_fence(); }
FUNCTION void test_release_fence() { release_fence(); }
FUNCTION void test_acquire_fence() { acquire_fence(); }
FUNCTION void test_ring_bell(u32* bell) { ring_bell(bell); }

// Guests' atomics.
FUNCTION u32 test_atomic_load_32(const u8* p) { return atomic_load<u32>(p); }
FUNCTION u64 test_atomic_load_64(const u8* p) { return atomic_load<u64>(p); }
FUNCTION u8 test_atomic_load_8(const u8* p) { return atomic_load<u8>(p); }
FUNCTION void test_atomic_store_32(u8* p, u32 value) { atomic_store<u32>(p, value); }
FUNCTION void test_atomic_store_64(u8* p, u64 value) { atomic_store<u64>(p, value); }
FUNCTION u32 test_atomic_rmw_32(u8* p, u32 value) { return atomic_rmw_add<u32>(p, value); }
FUNCTION u64 test_atomic_rmw_64(u8* p, u64 value) { return atomic_rmw_add<u64>(p, value); }
FUNCTION u32 test_atomic_cmpxchg_32(u8* p, u32 a, u32 b) { return atomic_cmpxchg<u32>(p, a, b); }

// Tells the host; what follows does not return.
FUNCTION void test_check_failed(u32 line) { check_failed("", line, 0, 0); }
