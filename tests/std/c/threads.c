// POSIX threads, an area for each name: threads NAME. What threads do in any order is added up
// before it is printed.
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 8 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static long count;

static pthread_t start(void* (*run)(void*), intptr_t argument) {
    pthread_t thread;
    int error = pthread_create(&thread, NULL, run, (void*)argument);
    if (error) {
        fprintf(stderr, "pthread_create: %s\n", strerror(error));
        _Exit(99);
    }
    return thread;
}

static intptr_t join(pthread_t thread) {
    void* result;
    int error = pthread_join(thread, &result);
    if (error) printf("pthread_join: %s\n", strerror(error));
    return (intptr_t)result;
}

static void all(void* (*run)(void*)) {
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) threads[i] = start(run, i);
    for (int i = 0; i < THREADS; i++) join(threads[i]);
}

static double now(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static struct timespec after(clockid_t clock, long milliseconds) {
    struct timespec time;
    clock_gettime(clock, &time);
    time.tv_nsec += milliseconds * 1000000;
    time.tv_sec += time.tv_nsec / 1000000000;
    time.tv_nsec %= 1000000000;
    return time;
}

// Creation and joining

static void* square(void* argument) {
    intptr_t number = (intptr_t)argument;
    return (void*)(number * number);
}

static void* halves(void* argument) {
    intptr_t n = (intptr_t)argument;
    if (n < 2) return (void*)n;
    pthread_t left = start(halves, n / 2), right = start(halves, n - n / 2);
    return (void*)(join(left) + join(right));
}

static void* is_self(void* argument) {
    return (void*)(intptr_t)!pthread_equal(*(pthread_t*)argument, pthread_self());
}

static void create(void) {
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) threads[i] = start(square, i);
    for (int i = 0; i < THREADS; i++) printf("%d squared is %ld\n", i, (long)join(threads[i]));
    printf("a tree of threads adds up to %ld\n", (long)join(start(halves, 12)));
    pthread_t self = pthread_self();
    printf("another is not me %ld\n", (long)join(start(is_self, (intptr_t)&self)));
    long sum = 0;
    for (int i = 0; i < 300; i++) sum += join(start(square, i % 10));
    printf("300 one after another %ld\n", sum);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    printf("stack size %d", pthread_attr_setstacksize(&attributes, 1 << 20));
    pthread_t large;
    printf(" %d", pthread_create(&large, &attributes, square, (void*)12));
    printf(" %ld\n", (long)join(large));
}

// Mutexes

static void* add(void* argument) {
    (void)argument;
    for (int i = 0; i < 500; i++) {
        pthread_mutex_lock(&mutex);
        long seen = count;
        if (i % 50 == 0) sched_yield();
        count = seen + 1;
        pthread_mutex_unlock(&mutex);
    }
    return NULL;
}

static void* try_lock(void* argument) { return (void*)(intptr_t)pthread_mutex_trylock(argument); }

static void* lock_in_time(void* argument) {
    struct timespec until = after(CLOCK_REALTIME, 20);
    return (void*)(intptr_t)pthread_mutex_timedlock(argument, &until);
}

static void mutexes(void) {
    all(add);
    printf("counted to %ld\n", count);
    pthread_mutex_lock(&mutex);
    printf("held: %s\n", join(start(try_lock, (intptr_t)&mutex)) == EBUSY ? "EBUSY" : "?");
    printf("held for long: %s\n",
           join(start(lock_in_time, (intptr_t)&mutex)) == ETIMEDOUT ? "ETIMEDOUT" : "?");
    pthread_mutex_unlock(&mutex);
    printf("free: %ld\n", (long)join(start(try_lock, (intptr_t)&mutex)));

    pthread_mutexattr_t attributes;
    pthread_mutex_t other;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&other, &attributes);
    printf("recursive %d %d", pthread_mutex_lock(&other), pthread_mutex_lock(&other));
    printf(" %s", join(start(try_lock, (intptr_t)&other)) == EBUSY ? "EBUSY" : "?");
    printf(" %d %d\n", pthread_mutex_unlock(&other), pthread_mutex_unlock(&other));
    pthread_mutex_destroy(&other);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&other, &attributes);
    pthread_mutex_lock(&other);
    printf("checked %s", pthread_mutex_lock(&other) == EDEADLK ? "EDEADLK" : "?");
    pthread_mutex_unlock(&other);
    printf(" %s\n", pthread_mutex_unlock(&other) == EPERM ? "EPERM" : "?");
}

// Condition variables

static int turn;

static void* ping_pong(void* argument) {
    int side = (int)(intptr_t)argument;
    for (int i = 0; i < 200; i++) {
        pthread_mutex_lock(&mutex);
        while (turn != side) pthread_cond_wait(&condition, &mutex);
        count = count * 3 % 1000003 + side;
        turn = !side;
        pthread_cond_signal(&condition);
        pthread_mutex_unlock(&mutex);
    }
    return NULL;
}

static int arrived, opened;

static void* wait_for_gate(void* argument) {
    (void)argument;
    pthread_mutex_lock(&mutex);
    arrived++;
    pthread_cond_signal(&condition);
    static pthread_cond_t gate_opens = PTHREAD_COND_INITIALIZER;
    if (argument == NULL) {  // the first opens it when all are there
        while (arrived < THREADS) pthread_cond_wait(&condition, &mutex);
        opened = 1;
        pthread_cond_broadcast(&gate_opens);
    }
    while (!opened) pthread_cond_wait(&gate_opens, &mutex);
    count++;
    pthread_mutex_unlock(&mutex);
    return NULL;
}

enum { ITEMS = 400, ROOM = 4 };
static int queue[ROOM], queued, taken;
static pthread_cond_t not_full = PTHREAD_COND_INITIALIZER, not_empty = PTHREAD_COND_INITIALIZER;

static void* produce(void* argument) {
    for (int i = 0; i < ITEMS; i++) {
        pthread_mutex_lock(&mutex);
        while (queued - taken == ROOM) pthread_cond_wait(&not_full, &mutex);
        queue[queued++ % ROOM] = i + (int)(intptr_t)argument;
        pthread_cond_signal(&not_empty);
        pthread_mutex_unlock(&mutex);
    }
    return NULL;
}

static void* consume(void* argument) {
    (void)argument;
    long sum = 0;
    for (int i = 0; i < ITEMS; i++) {
        pthread_mutex_lock(&mutex);
        while (queued == taken) pthread_cond_wait(&not_empty, &mutex);
        sum += queue[taken++ % ROOM];
        pthread_cond_signal(&not_full);
        pthread_mutex_unlock(&mutex);
    }
    return (void*)sum;
}

static void conditions(void) {
    pthread_t ping = start(ping_pong, 0), pong = start(ping_pong, 1);
    join(ping);
    join(pong);
    printf("ping and pong came to %ld\n", count);
    count = 0;
    all(wait_for_gate);
    printf("%ld went through the gate\n", count);
    pthread_t makers[2] = {start(produce, 0), start(produce, 1000)};
    pthread_t takers[2] = {start(consume, 0), start(consume, 0)};
    long sum = join(takers[0]) + join(takers[1]);
    for (int i = 0; i < 2; i++) join(makers[i]);
    printf("through the queue %d items, sum %ld\n", taken, sum);
}

// Waiting with a limit

static void timeouts(void) {
    pthread_mutex_lock(&mutex);
    double begin = now(CLOCK_MONOTONIC);
    struct timespec until = after(CLOCK_REALTIME, 30);
    int result;
    do result = pthread_cond_timedwait(&condition, &mutex, &until);
    while (result == 0);
    printf("nobody signalled: %s, in time %d\n", result == ETIMEDOUT ? "ETIMEDOUT" : "?",
           now(CLOCK_MONOTONIC) - begin >= 0.03);
    struct timespec past = after(CLOCK_REALTIME, 0);
    past.tv_sec -= 100;
    printf("long ago: %s\n",
           pthread_cond_timedwait(&condition, &mutex, &past) == ETIMEDOUT ? "ETIMEDOUT" : "?");
    pthread_condattr_t attributes;
    pthread_cond_t steady;
    pthread_condattr_init(&attributes);
    printf("clock %d\n", pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC));
    pthread_cond_init(&steady, &attributes);
    begin = now(CLOCK_MONOTONIC);
    until = after(CLOCK_MONOTONIC, 20);
    do result = pthread_cond_timedwait(&steady, &mutex, &until);
    while (result == 0);
    printf("by the other clock: %s, in time %d\n", result == ETIMEDOUT ? "ETIMEDOUT" : "?",
           now(CLOCK_MONOTONIC) - begin >= 0.02);
    pthread_mutex_unlock(&mutex);
    sem_t semaphore;
    sem_init(&semaphore, 0, 0);
    until = after(CLOCK_REALTIME, 10);
    printf("semaphore %d %s\n", sem_timedwait(&semaphore, &until),
           errno == ETIMEDOUT ? "ETIMEDOUT" : "?");
}

// Barriers

static pthread_barrier_t barrier;
static int rounds[5];
static atomic_int serial, behind;

static void* round_by_round(void* argument) {
    (void)argument;
    for (int i = 0; i < 5; i++) {
        pthread_mutex_lock(&mutex);
        rounds[i]++;
        pthread_mutex_unlock(&mutex);
        int result = pthread_barrier_wait(&barrier);
        if (result == PTHREAD_BARRIER_SERIAL_THREAD) serial++;
        if (rounds[i] != THREADS) behind++;
    }
    return NULL;
}

static void barriers(void) {
    pthread_barrier_init(&barrier, NULL, THREADS);
    all(round_by_round);
    pthread_barrier_destroy(&barrier);
    printf("5 rounds, %d of them serial, %d behind\n", serial, behind);
}

// Storage of each thread's own

static _Thread_local int own = 10;
static _Thread_local char text[64] = "begins";
static pthread_key_t key;
static atomic_int destroyed, wrong, errnos;

static void destroy(void* value) { destroyed += (int)(intptr_t)value; }

static void* use_own(void* argument) {
    int number = (int)(intptr_t)argument;
    if (own != 10 || strcmp(text, "begins") != 0 || pthread_getspecific(key)) wrong++;
    pthread_setspecific(key, (void*)(intptr_t)(number + 1));
    errno = number;
    for (int i = 0; i < 100; i++) {
        own += number;
        snprintf(text, sizeof text, "thread %d", number);
        if (i % 10 == 0) sched_yield();
    }
    char expected[64];
    snprintf(expected, sizeof expected, "thread %d", number);
    if (own != 10 + 100 * number || strcmp(text, expected) != 0) wrong++;
    if (pthread_getspecific(key) != (void*)(intptr_t)(number + 1)) wrong++;
    errnos += errno == number;
    return NULL;
}

static void storage(void) {
    pthread_key_create(&key, destroy);
    own = 99;
    pthread_setspecific(key, (void*)1000);
    all(use_own);
    printf("%d wrong, mine %d, text %s, destroyed %d, errno kept %d\n", wrong, own, text, destroyed,
           errnos);
    pthread_key_delete(key);
}

// Others

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static long pair[2];
static sem_t items;

static void begin_once(void) { count += 1000; }

static void* reads_and_writes(void* argument) {
    pthread_once(&once, begin_once);
    for (int i = 0; i < 100; i++) {
        if ((i + (int)(intptr_t)argument) % 4 == 0) {
            pthread_rwlock_wrlock(&rwlock);
            pair[0]++;
            if (i % 8 == 0) sched_yield();
            pair[1]++;
        } else {
            pthread_rwlock_rdlock(&rwlock);
            if (pair[0] != pair[1]) wrong++;
        }
        pthread_rwlock_unlock(&rwlock);
    }
    return NULL;
}

static void* takes_three(void* argument) {
    (void)argument;
    for (int i = 0; i < 3; i++) sem_wait(&items);
    pthread_mutex_lock(&mutex);
    count++;
    pthread_mutex_unlock(&mutex);
    return NULL;
}

static void* says_done(void* argument) {
    sem_post(argument);
    return NULL;
}

static int c11(void* argument) {
    mtx_lock(argument);
    count++;
    mtx_unlock(argument);
    return 42;
}

static void others(void) {
    all(reads_and_writes);
    printf("once %ld, written %ld %ld, torn %d\n", count, pair[0], pair[1], wrong);
    count = 0;
    sem_init(&items, 0, 0);
    pthread_t takers[THREADS];
    for (int i = 0; i < THREADS; i++) takers[i] = start(takes_three, 0);
    for (int i = 0; i < THREADS * 3; i++) sem_post(&items);
    for (int i = 0; i < THREADS; i++) join(takers[i]);
    int left;
    sem_getvalue(&items, &left);
    printf("semaphore let %ld through, %d left\n", count, left);
    pthread_attr_t detached;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    int failed = 0;
    for (int i = 0; i < 100; i++) {
        pthread_t thread;
        if (i % 2) {
            failed += pthread_create(&thread, &detached, says_done, &items) != 0;
        } else {
            failed += pthread_create(&thread, NULL, says_done, &items) != 0 ||
                      pthread_detach(thread) != 0;
        }
        sem_wait(&items);
    }
    printf("100 detached, %d failed\n", failed);
    thrd_t thread;
    mtx_t c11_mutex;
    int result = 0;
    count = 0;
    mtx_init(&c11_mutex, mtx_plain);
    printf("c11 %d", thrd_create(&thread, c11, &c11_mutex) == thrd_success);
    printf(" %d", thrd_join(thread, &result) == thrd_success);
    printf(" %d %ld\n", result, count);
}

// Heap and streams, which all threads use at once

static atomic_long bad;

static void* use_heap(void* argument) {
    unsigned seed = (unsigned)(intptr_t)argument * 7919 + 1;
    unsigned char* blocks[16] = {0};
    size_t sizes[16] = {0};
    for (int i = 0; i < 400; i++) {
        seed = seed * 1103515245 + 12345;
        unsigned at = seed >> 16 & 15;
        for (size_t j = 0; j < sizes[at]; j += 13)
            bad += blocks[at][j] != (unsigned char)(sizes[at] + at);
        free(blocks[at]);
        sizes[at] = seed >> 20 & 1023;
        blocks[at] = malloc(sizes[at] + 1);
        memset(blocks[at], (int)(sizes[at] + at), sizes[at] + 1);
    }
    for (int i = 0; i < 16; i++) free(blocks[i]);
    return NULL;
}

static FILE* stream;

static void* write_lines(void* argument) {
    char name = (char)('a' + (intptr_t)argument);
    for (int i = 0; i < 50; i++) fprintf(stream, "%c%02d: a line of thread %c\n", name, i, name);
    return NULL;
}

static void count_lines(const char* what) {
    int next[THREADS] = {0}, lines = 0, torn = 0, number;
    char line[100], writer, again;
    while (fgets(line, sizeof line, stream)) {
        lines++;
        int read = sscanf(line, "%c%d: a line of thread %c", &writer, &number, &again);
        torn += read != 3 || writer != again || next[writer - 'a']++ != number;
    }
    fclose(stream);
    printf("%s: %d lines, %d torn\n", what, lines, torn);
}

static void heap(void) {
    all(use_heap);
    printf("heap: %ld bad\n", bad);
    char* text_written;
    size_t size;
    stream = open_memstream(&text_written, &size);
    all(write_lines);
    fclose(stream);
    stream = fmemopen(text_written, size, "r");
    count_lines("memory");
    free(text_written);
}

static void* open_file(void* argument) { return fopen(argument, "w"); }

// Descriptors are those of all threads, whoever opened them.
static void files(void) {
    stream = (FILE*)join(start(open_file, (intptr_t)"lines.txt"));
    all(write_lines);
    fclose(stream);
    stream = fopen("lines.txt", "r");
    count_lines("file");
    remove("lines.txt");
}

// A memory that grows while another thread, which never waits, uses it

static atomic_int begun, over;

static void* spin(void* argument) {
    volatile unsigned char* at = argument;
    begun = 1;
    while (!over) at[0]++, at[1] = at[0];
    return (void*)(intptr_t)(at[0] == at[1]);
}

static void growth(void) {
    pthread_t spinning = start(spin, (intptr_t)calloc(2, 1));
    while (!begun) sched_yield();
    unsigned char* blocks[16];
    int whole = 0;
    for (int i = 0; i < 16; i++) blocks[i] = memset(malloc(1 << 20), i + 1, 1 << 20);
    over = 1;
    printf("the other saw its own writes %d\n", (int)join(spinning));
    for (int i = 0; i < 16; i++)
        whole += blocks[i][0] == i + 1 && blocks[i][(1 << 20) - 1] == i + 1;
    printf("%d blocks of 1 MiB\n", whole);
}

// As many threads as there can be, and again when they have ended

enum { FULL = 20000 };

static void* pass_gate(void* argument) {
    (void)argument;
    pthread_mutex_lock(&mutex);
    while (!opened) pthread_cond_wait(&condition, &mutex);
    count++;
    pthread_mutex_unlock(&mutex);
    return NULL;
}

static void full(void) {
    static pthread_t threads[FULL];
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 16384);
    for (int round = 0; round < 2; round++) {
        int started = 0, error = 0;
        while (started < FULL && !error) {
            error = pthread_create(&threads[started], &attributes, pass_gate, NULL);
            started += error == 0;
        }
        pthread_mutex_lock(&mutex);
        opened = 1;
        pthread_cond_broadcast(&condition);
        pthread_mutex_unlock(&mutex);
        for (int i = 0; i < started; i++) join(threads[i]);
        printf("full: %s, tens of threads %d, all ended %d\n", error == EAGAIN ? "EAGAIN" : "?",
               started >= 20, count == started);
        count = opened = 0;
    }
}

// Ends of the process

static void* wait_for_ever(void* argument) {
    (void)argument;
    pthread_mutex_lock(&mutex);
    for (;;) pthread_cond_wait(&condition, &mutex);
}

static void* run_for_ever(void* argument) {
    (void)argument;
    for (volatile unsigned i = 0;; i++) continue;
}

static void* end_all(void* argument) {
    usleep(10000);
    if (strcmp(argument, "exit") == 0) exit(7);
    if (strcmp(argument, "_exit") == 0) _Exit(9);
    if (strcmp(argument, "fault") == 0) *(volatile char*)0xfffffff0u = 1;
    abort();
}

static void ends(char* how) {
    printf("before\n");
    fflush(stdout);
    pthread_t waiting = start(wait_for_ever, 0);
    start(run_for_ever, 0);
    if (strcmp(how, "return") == 0) {
        usleep(10000);
        printf("main returns\n");
        exit(5);
    }
    start(end_all, (intptr_t)how);
    join(waiting);
    printf("never\n");
}

int main(int argc, char** argv) {
    static const struct {
        const char* name;
        void (*run)(void);
    } areas[] = {{"create", create},     {"mutexes", mutexes},   {"conditions", conditions},
                 {"timeouts", timeouts}, {"barriers", barriers}, {"storage", storage},
                 {"others", others},     {"heap", heap},         {"files", files},
                 {"growth", growth},     {"full", full}};
    if (argc == 3 && strcmp(argv[1], "end") == 0) ends(argv[2]);
    for (unsigned i = 0; argc == 2 && i < sizeof areas / sizeof areas[0]; i++) {
        if (strcmp(areas[i].name, argv[1]) != 0) continue;
        areas[i].run();
        return 0;
    }
    fprintf(stderr, "usage: threads AREA, or threads end exit|_exit|abort|fault|return\n");
    return 2;
}
