// The system calls that musl's thread functions make, as instructions of wasm: waiting and waking.
// Those that concern mutexes a kernel would look after answer that there are none, and musl refuses
// such mutexes.
#include "futex.h"

#define SYS_futex 0
#define SYS_set_robust_list 1
#define SYS_get_robust_list 2

static inline long __thread_call(long number, long address, long operation, long value) {
    if (number != SYS_futex) return -ENOSYS;
    switch (operation & ~FUTEX_PRIVATE) {
        case FUTEX_WAIT:
            return __builtin_wasm_memory_atomic_wait32((int*)address, value, -1) == 1 ? -EAGAIN : 0;
        case FUTEX_WAKE: return __builtin_wasm_memory_atomic_notify((int*)address, value);
        case FUTEX_REQUEUE:  // from a waiter's own lock to the mutex: it may as well wake, and wait
                             // for the mutex itself
            return __builtin_wasm_memory_atomic_notify((int*)address, 1);
        default: return -ENOSYS;
    }
}

static inline long __syscall2(long n, long a, long b) { return __thread_call(n, a, b, 0); }
static inline long __syscall3(long n, long a, long b, long c) { return __thread_call(n, a, b, c); }
static inline long __syscall4(long n, long a, long b, long c, long d) {
    return __thread_call(n, a, b, c);
}
static inline long __syscall5(long n, long a, long b, long c, long d, long e) {
    return __thread_call(n, a, b, c);
}
static inline long __syscall6(long n, long a, long b, long c, long d, long e, long f) {
    return __thread_call(n, a, b, c);
}
