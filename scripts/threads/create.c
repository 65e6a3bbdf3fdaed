// pthread_create over wasi.thread-spawn, and how a thread begins and ends. There is no
// pthread_exit: nothing in wasm can leave the functions that called it, so a thread ends by
// returning.
#include <stdlib.h>
#include <string.h>
#include "libc.h"
#include "pthread_impl.h"
#include "stdio_impl.h"

// The new thread's instance begins with the globals of a first thread. It sets them from here
// before it can call C.
struct Start {
    void* stack;  // what wasi_thread_start reads of it: the first two
    void* tls_base;
    void* (*entry)(void*);
    void* argument;
    int is_c11;
};

__attribute__((import_module("wasi"), import_name("thread-spawn"))) int __thread_spawn(
    struct Start* start);
void __wasm_init_tls(void*);
void __thread_set_tls_base(void*);

// The lock of the list of threads. A thread that ends holds it until it no longer uses its stack,
// which is memory that whoever takes the lock next may give back.
volatile int __thread_list_lock;
static volatile int list_waiters;

__asm__(
    ".globaltype __stack_pointer, i32\n"
    ".globaltype __tls_base, i32\n"
    ".section .text.__thread_set_tls_base,\"\",@\n"
    ".globl __thread_set_tls_base\n"
    ".type __thread_set_tls_base,@function\n"
    "__thread_set_tls_base:\n"
    "    .functype __thread_set_tls_base (i32) -> ()\n"
    "    local.get 0\n"
    "    global.set __tls_base\n"
    "    end_function\n"
    ".functype __thread_run (i32, i32) -> ()\n"
    ".section .text.wasi_thread_start,\"\",@\n"
    ".globl wasi_thread_start\n"
    ".type wasi_thread_start,@function\n"
    ".export_name wasi_thread_start, wasi_thread_start\n"
    "wasi_thread_start:\n"
    "    .functype wasi_thread_start (i32, i32) -> ()\n"
    "    local.get 1\n"
    "    i32.load 0\n"
    "    global.set __stack_pointer\n"
    "    local.get 1\n"
    "    i32.load 4\n"
    "    global.set __tls_base\n"
    "    local.get 0\n"
    "    local.get 1\n"
    "    call __thread_run\n"
    "    i32.const __thread_list_lock\n"
    "    i32.const 0\n"
    "    i32.atomic.store 0\n"
    "    i32.const __thread_list_lock\n"
    "    i32.const 1\n"
    "    memory.atomic.notify 0\n"
    "    drop\n"
    "    end_function\n");

void __tl_lock(void) {
    int self = __pthread_self()->tid, holder;
    while ((holder = a_cas(&__thread_list_lock, 0, self)))
        __wait(&__thread_list_lock, &list_waiters, holder, 0);
}

void __tl_unlock(void) {
    a_store(&__thread_list_lock, 0);
    if (list_waiters) __wake(&__thread_list_lock, 1, 0);
}

// Returns when a thread that was about to end has ended.
void __tl_sync(pthread_t thread) {
    a_barrier();
    int holder = __thread_list_lock;
    if (!holder) return;
    __wait(&__thread_list_lock, &list_waiters, holder, 0);
    if (list_waiters) __wake(&__thread_list_lock, 1, 0);
}

// What pthread_join gives back: the memory of a thread.
int __munmap(void* memory, size_t size) {
    free(memory);
    return 0;
}

// Memory of detached threads that ended, linked by map_base's first word; guarded by the list's
// lock.
static void* ended;

static void* take_ended(void) {
    void* memory = ended;
    ended = 0;
    return memory;
}

static void free_ended(void* memory) {
    while (memory) {
        void* next = *(void**)memory;
        free(memory);
        memory = next;
    }
}

// Other files of the library replace these.
static void nothing(void) {}
weak_alias(nothing, __pthread_tsd_run_dtors);
weak_alias(nothing, __do_orphaned_stdio_locks);
static volatile size_t no_size;
weak_alias(no_size, __pthread_tsd_size);
static void* no_values[1];
weak_alias(no_values, __pthread_tsd_main);
static FILE* volatile no_file;
weak_alias(no_file, __stdin_used);
weak_alias(no_file, __stdout_used);
weak_alias(no_file, __stderr_used);

// Leaves with the list locked; wasi_thread_start unlocks it.
static void end_thread(void* result) {
    pthread_t self = __pthread_self();
    self->canceldisable = 1;
    self->result = result;
    while (self->cancelbuf) {
        struct __ptcb* cleanup = self->cancelbuf;
        self->cancelbuf = cleanup->__next;
        cleanup->__f(cleanup->__x);
    }
    __pthread_tsd_run_dtors();
    __do_orphaned_stdio_locks();
    // Whichever comes first, this or pthread_detach, leaves the memory to the other.
    int state = a_cas(&self->detach_state, DT_JOINABLE, DT_EXITING);
    __tl_lock();
    if (!--libc.threads_minus_1) libc.need_locks = -1;
    self->next->prev = self->prev;
    self->prev->next = self->next;
    self->prev = self->next = self;
    self->tid = 0;
    if (state == DT_DETACHED) {
        *(void**)self->map_base = ended;
        ended = self->map_base;
        return;
    }
    a_store(&self->detach_state, DT_EXITED);
    __wake(&self->detach_state, 1, 1);
}

__attribute__((used)) void __thread_run(int number, struct Start* start) {
    __pthread_self()->tid = number;
    void* result = start->is_c11 ? (void*)((int (*)(void*))start->entry)(start->argument)
                                 : start->entry(start->argument);
    end_thread(result);
}

static void init_file_lock(FILE* file) {
    if (file && file->lock < 0) file->lock = 0;
}

// What a process with one thread does without.
static void begin_threads(pthread_t self) {
    for (FILE* file = *__ofl_lock(); file; file = file->next) init_file_lock(file);
    __ofl_unlock();
    init_file_lock(__stdin_used);
    init_file_lock(__stdout_used);
    init_file_lock(__stderr_used);
    if (!self->tsd) self->tsd = (void**)__pthread_tsd_main;
    libc.threaded = 1;
}

static size_t round_up(size_t value, size_t alignment) {
    return (value + alignment - 1) / alignment * alignment;
}

// A thread's memory, from below: its stack, what it begins with, its variables, its keys' values.
int __pthread_create(pthread_t* restrict result, const pthread_attr_t* restrict attributes,
                     void* (*entry)(void*), void* restrict argument) {
    int is_c11 = attributes == __ATTRP_C11_THREAD;
    pthread_attr_t defaults = {0};
    defaults._a_stacksize = __default_stacksize;
    if (!attributes || is_c11) attributes = &defaults;
    pthread_t self = __pthread_self();
    if (!libc.threaded) begin_threads(self);

    size_t alignment = __builtin_wasm_tls_align();
    if (alignment < 16) alignment = 16;
    int own_stack = !attributes->_a_stackaddr;
    size_t stack_size = round_up(attributes->_a_stacksize, 16);
    size_t start_at = own_stack ? stack_size : 16;
    size_t tls_at = round_up(start_at + sizeof(struct Start), 16);
    size_t tsd_at = round_up(tls_at + __builtin_wasm_tls_size() + alignment, 16);
    size_t size = tsd_at + __pthread_tsd_size;
    unsigned char* memory = malloc(size);
    if (!memory) return EAGAIN;
    memset(memory + tsd_at, 0, size - tsd_at);

    // Only the thread itself has its variables at hand, so this one becomes it for a moment.
    void* tls_base = (void*)round_up((size_t)memory + tls_at, alignment);
    char* own_base = __builtin_wasm_tls_base();
    pthread_t new = (pthread_t)((char*)tls_base + ((char*)self - own_base));
    __wasm_init_tls(tls_base);
    __thread_set_tls_base(own_base);

    new->self = new;
    new->map_base = memory;
    new->map_size = size;
    new->stack = own_stack ? memory + stack_size : (void*)(attributes->_a_stackaddr & -16);
    new->stack_size = stack_size;
    new->tsd = (void**)(memory + tsd_at);
    new->locale = &libc.global_locale;
    new->detach_state = attributes->_a_detach ? DT_DETACHED : DT_JOINABLE;
    new->robust_list.head = &new->robust_list.head;
    struct Start* start = (struct Start*)(memory + start_at);
    *start = (struct Start){new->stack, tls_base, entry, argument, is_c11};

    __tl_lock();
    void* to_free = take_ended();
    if (!libc.threads_minus_1++) libc.need_locks = 1;
    // In the list before it runs: it may end, and leave the list, as soon as the lock is free.
    new->next = self->next;
    new->prev = self;
    new->next->prev = new;
    self->next = new;
    *result = new;
    int number = __thread_spawn(start);
    if (number < 0) {
        new->next->prev = self;
        self->next = new->next;
        if (!--libc.threads_minus_1) libc.need_locks = 0;
    }
    __tl_unlock();
    free_ended(to_free);
    if (number >= 0) return 0;
    free(memory);
    return EAGAIN;
}

weak_alias(__pthread_create, pthread_create);
