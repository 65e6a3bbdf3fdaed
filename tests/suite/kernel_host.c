// Runs the kernel of a hand compile (bench/suite/by_hand/kernel.c) on the host, one thread after
// another, with arenas of the size that jobs.py says: kernel_host ARENA INSTANCES.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

extern char* suite_arenas;
extern uint64_t suite_arena_size;
uint32_t suite_thread;  // what tid.x is

void suite_kernel(uint32_t count, uint32_t step, uint32_t* results);

enum { THREADS = 2 };

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    uint32_t count = (uint32_t)atoi(argv[2]);
    suite_arena_size = (uint64_t)atoll(argv[1]);
    suite_arenas = malloc(THREADS * suite_arena_size);
    uint32_t* results = malloc(count * sizeof *results);
    if (!suite_arenas || !results) return 1;
    for (suite_thread = 0; suite_thread < THREADS; suite_thread++) suite_kernel(count, 1, results);
    for (uint32_t i = 0; i < count; i++) printf("%u\t%d\n", i, (int)results[i]);
    free(suite_arenas);
    free(results);
    return 0;
}
