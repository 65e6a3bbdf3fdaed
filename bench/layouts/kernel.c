// The kernel around a job that wasm2c has made C of. Its interface is that of
// bench/suite/by_hand/kernel.c, so that by-hand runs it; an arena is a linear memory.
#include "layout.h"
// The job, with Instance, begin_instance() and w2c_run(), as bench/layouts/build has written it.
#include job_file

GLOBAL u8* GLOBAL suite_arenas;
GLOBAL u64 suite_arena_size;

#ifdef __NVPTX__
__attribute__((nvptx_kernel))
#endif
void suite_kernel(u32 count, u32 step, GLOBAL u32* results) {
    u32 thread = __nvvm_read_ptx_sreg_ctaid_x() * __nvvm_read_ptx_sreg_ntid_x() +
                 __nvvm_read_ptx_sreg_tid_x();
    u32 threads = __nvvm_read_ptx_sreg_nctaid_x() * __nvvm_read_ptx_sreg_ntid_x();
    const u64 unused = COMPACT ? STACK_LOW : 0, size = ((u64)PAGES << 16) - unused;
    GLOBAL u8* all = suite_arenas + (u64)(thread / 32) * 32 * size;  // of the warp
    GLOBAL u8 *base = all + (thread % 32) * size - unused, *heap = base;
    if (GRANULE) {
        base = all + (thread % 32) * GRANULE - unused * 32;
        heap = all + (u64)32 * HEAP_BASE + (thread % 32) * (size - HEAP_BASE) - HEAP_BASE;
    }
    _Alignas(16) u8 stack_memory[STACK_LOCAL ? STACK_BYTES : 16];
    LOCAL u8* stack = (LOCAL u8*)stack_memory;
    for (u32 i = thread; i < count; i += threads) {
        Instance instance;
        for (u32 at = STACK_TOP; at < HEAP_BASE; at += 4) put_u32(THE_MEMORY, at, 0);
        begin_instance(THE_MEMORY, &instance);
        results[i] = w2c_run(THE_MEMORY, suite_arena_size, &instance, i * step);
    }
}
