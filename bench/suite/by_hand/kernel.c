// A job of the suite as somebody would port it to a GPU: one thread an instance, which runs the
// same C. Arrays and stacks are where the compiler puts them, in the thread's local memory; what
// the job allocates is in an arena of the thread, which begins anew with every instance.
//
//     clang --target=nvptx64-nvidia-cuda -Dsuite_job='"JOB.c"' ... kernel.c
#include <stdint.h>

static uint32_t run(uint32_t instance);  // the kernel's own: no second copy for others to call

#include suite_job

#define GLOBAL __attribute__((address_space(1)))

// Set by the host before a launch (by_hand.cpp). Each arena begins with the bytes that are used.
GLOBAL char* GLOBAL suite_arenas;
GLOBAL uint64_t suite_arena_size;

static uint32_t thread_number(void) {
    return __nvvm_read_ptx_sreg_ctaid_x() * __nvvm_read_ptx_sreg_ntid_x() +
           __nvvm_read_ptx_sreg_tid_x();
}

static GLOBAL char* own_arena(void) { return suite_arenas + thread_number() * suite_arena_size; }

static void* malloc(size_t size) {
    GLOBAL char* arena = own_arena();
    GLOBAL uint64_t* used = (GLOBAL uint64_t*)arena;
    uint64_t at = *used;
    *used = at + ((size + 15) & ~(size_t)15);
    return *used <= suite_arena_size ? (void*)(arena + at) : NULL;
}

static void* calloc(size_t count, size_t size) {
    char* memory = (char*)malloc(count * size);
    return memory ? memset(memory, 0, count * size) : NULL;
}

static void free(void* memory) { (void)memory; }

// Instance i is given the number i * step: 1 for inputs that differ, 0 for the same for all.
__attribute__((nvptx_kernel)) void suite_kernel(uint32_t count, uint32_t step,
                                                GLOBAL uint32_t* results) {
    uint32_t threads = __nvvm_read_ptx_sreg_nctaid_x() * __nvvm_read_ptx_sreg_ntid_x();
    for (uint32_t i = thread_number(); i < count; i += threads) {
        if (suite_arena_size) *(GLOBAL uint64_t*)own_arena() = 16;
        results[i] = run(i * step);
    }
}
