// Runs the kernel of a layout on the host: host INSTANCES. Its threads are lanes of one warp and
// run at once, so that memories that overlap are noticed. With PROBE it says what the job needs.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { LANES = PROBE ? 1 : 4 };

extern char* suite_arenas;
extern uint64_t suite_arena_size;
_Thread_local uint32_t suite_thread;
#if PROBE
uint64_t probe_lowest = 65536, probe_unaligned, probe_pages;
#endif

void suite_kernel(uint32_t count, uint32_t step, uint32_t* results);

static uint32_t count, *results;

static void* lane(void* number) {
    suite_thread = (uint32_t)(uintptr_t)number;
    suite_kernel(count, 1, results);
    return NULL;
}

int main(int argc, char** argv) {
    if (argc != 2) return 2;
    count = (uint32_t)atoi(argv[1]);
    suite_arena_size = (uint64_t)PAGES << 16;
    suite_arenas = malloc(32 * suite_arena_size);
    results = malloc(count * sizeof *results);
    if (!suite_arenas || !results) return 1;
    pthread_t threads[LANES];
    for (uintptr_t i = 0; i < LANES; i++) pthread_create(&threads[i], NULL, lane, (void*)i);
    for (int i = 0; i < LANES; i++) pthread_join(threads[i], NULL);
    for (uint32_t i = 0; i < count; i++) printf("%u\t%d\n", i, (int)results[i]);
#if PROBE
    fprintf(stderr, "%llu %llu %llu\n", (unsigned long long)probe_lowest,
            (unsigned long long)probe_unaligned, (unsigned long long)probe_pages);
#endif
    return 0;
}
