// The control block of each thread, what of it the first thread needs, and how threads wait. Does
// not start any.
#include <time.h>
#include "pthread_impl.h"
#include "syscall.h"

// Numbers that a host gives to threads end below this one.
#define FIRST_THREAD 0x20000000

_Thread_local struct pthread __thread_control;

// Before the constructors of anything that takes a lock or asks for the locale.
__attribute__((constructor(50))) static void begin_first_thread(void) {
    pthread_t self = __pthread_self();
    self->self = self->prev = self->next = self;
    self->tid = FIRST_THREAD;
    self->detach_state = DT_JOINABLE;
    self->locale = &libc.global_locale;
    self->robust_list.head = &self->robust_list.head;
    libc.can_do_threads = 1;
}

void __wait(volatile int* address, volatile int* waiters, int value, int private) {
    if (waiters) a_inc(waiters);
    while (*address == value) __futexwait(address, value, private);
    if (waiters) a_dec(waiters);
}

// A condition variable keeps its clock in an int: here it is the address that clockid_t is, and 0
// the usual one.
int __timedwait_cp(volatile int* address, int value, clockid_t clock, const struct timespec* until,
                   int private) {
    long long nanoseconds = -1;
    if (until) {
        struct timespec now;
        if ((unsigned long)until->tv_nsec >= 1000000000) return EINVAL;
        if (__clock_gettime(clock ? clock : CLOCK_REALTIME, &now)) return EINVAL;
        long long seconds = until->tv_sec - now.tv_sec;
        if (seconds < -1) return ETIMEDOUT;
        if (seconds > 1000000000) seconds = 1000000000;
        nanoseconds = seconds * 1000000000 + until->tv_nsec - now.tv_nsec;
        if (nanoseconds <= 0) return ETIMEDOUT;
    }
    return __builtin_wasm_memory_atomic_wait32((int*)address, value, nanoseconds) == 2 ? ETIMEDOUT
                                                                                       : 0;
}

int __timedwait(volatile int* address, int value, clockid_t clock, const struct timespec* until,
                int private) {
    return __timedwait_cp(address, value, clock, until, private);
}

int pthread_condattr_setclock(pthread_condattr_t* attributes, clockid_t clock) {
    if (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC) return EINVAL;
    attributes->__attr = (attributes->__attr & 0x80000000) | (unsigned)clock;
    return 0;
}

// C11's names.
void thrd_yield(void) { sched_yield(); }
int thrd_sleep(const struct timespec* duration, struct timespec* left) {
    switch (clock_nanosleep(CLOCK_REALTIME, 0, duration, left)) {
        case 0: return 0;
        case EINTR: return -1;
        default: return -2;
    }
}

// There are no signals to hold back.
void __block_app_sigs(void* set) {}
void __restore_sigs(void* set) {}
