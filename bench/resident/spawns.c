// How long processes take to come and to go, as a guest sees it; one line of JSON.
//   spawns latency [COUNT]          of one that ends at once, one after the other: until its first
//                                   instruction, from there until it was waited for, and both
//   spawns rate [COUNT [AT_ONCE]]   how many can be started and waited for in a second
//   spawns pipe [COUNT]             a byte to another process and back
// The processes started are those of instant.c, known as `instant`.
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu.h"

static void must(const char* what, int error) {
    if (error == 0) return;
    fprintf(stderr, "spawns: %s: %s\n", what, strerror(error));
    exit(1);
}

static int by_size(const void* a, const void* b) {
    const uint32_t left = *(const uint32_t*)a, right = *(const uint32_t*)b;
    return (left > right) - (left < right);
}

// Sorts times in ns and prints what they are in microseconds.
static void print_times(const char* what, uint32_t* times, uint32_t count, const char* end) {
    qsort(times, count, sizeof *times, by_size);
    printf("\"%s\": {\"median\": %.2f, \"p99\": %.2f, \"most\": %.2f}%s", what,
           times[count / 2] / 1e3, times[(uint64_t)count * 99 / 100] / 1e3, times[count - 1] / 1e3,
           end);
}

static uint32_t* array_of(uint32_t count) {
    uint32_t* const array = calloc(count, sizeof *array);
    if (!array) must("array", ENOMEM);
    return array;
}

static uint32_t start_instant(void) {
    static const char args[] = "instant";
    uint32_t pid;
    must("spawn", gpu_spawn(args, sizeof args - 1, args, sizeof args, NULL, 0, NULL, 0, &pid));
    return pid;
}

static void latency(uint32_t count) {
    uint32_t *const first = array_of(count), *const notice = array_of(count),
                    *const both = array_of(count);
    for (uint32_t i = 0; i < count; i++) {
        gpu_status status;
        const uint32_t before = (uint32_t)gpu_time();
        must("wait", gpu_waitpid(start_instant(), &status));
        const uint32_t after = (uint32_t)gpu_time();
        // The lower halves of times: their differences are right up to four seconds.
        first[i] = status.code - before;
        notice[i] = after - status.code;
        both[i] = after - before;
    }
    printf("{\"processes\": %u, ", count);
    print_times("spawn_to_first_instruction_us", first, count, ", ");
    print_times("end_to_notice_us", notice, count, ", ");
    print_times("spawn_and_wait_us", both, count, "}\n");
}

static void rate(uint32_t count, uint32_t at_once) {
    uint32_t running = 0, most = 0;
    uint64_t full = 0;
    static const char args[] = "instant";
    const uint64_t before = gpu_time();
    for (uint32_t started = 0; started < count || running > 0;) {
        uint32_t pid;
        gpu_status status;
        if (started < count && running < at_once) {
            const int error =
                gpu_spawn(args, sizeof args - 1, args, sizeof args, NULL, 0, NULL, 0, &pid);
            if (error == 0) {
                started++;
                if (++running > most) most = running;
                continue;
            }
            if ((error != EAGAIN && error != ENOMEM) || running == 0) must("spawn", error);
            full++;
        }
        must("wait", gpu_wait(GPU_ANY_CHILD, 0, &pid, &status));
        running--;
    }
    const double seconds = (double)(gpu_time() - before) / 1e9;
    printf(
        "{\"processes\": %u, \"at_once\": %u, \"full\": %llu, \"seconds\": %.3f, \"per_second\": "
        "%.0f}\n",
        count, most, (unsigned long long)full, seconds, count / seconds);
}

static int answer(void) {
    char c;
    while (read(0, &c, 1) == 1) {
        if (write(1, &c, 1) != 1) return 1;
    }
    return 0;
}

static void pipes(uint32_t count) {
    int there[2], back[2];
    must("pipe", gpu_pipe(&there[0], &there[1]));
    must("pipe", gpu_pipe(&back[0], &back[1]));
    static const char* const argv[] = {"spawns", "--answer", NULL};
    const gpu_fd fds[] = {{0, (uint32_t)there[0]}, {1, (uint32_t)back[1]}, {2, 2}};
    uint32_t pid;
    must("spawn", gpu_spawnve("spawns", argv, NULL, fds, 3, &pid));
    close(there[0]);
    close(back[1]);
    uint32_t* const times = array_of(count);
    for (uint32_t i = 0; i < count; i++) {
        char c = (char)i;
        const uint64_t before = gpu_time();
        if (write(there[1], &c, 1) != 1 || read(back[0], &c, 1) != 1) must("pipe", errno);
        times[i] = (uint32_t)(gpu_time() - before);
    }
    close(there[1]);
    gpu_status status;
    must("wait", gpu_waitpid(pid, &status));
    printf("{\"bytes\": %u, ", count);
    print_times("there_and_back_us", times, count, "}\n");
}

int main(int argc, char** argv) {
    const char* const what = argc > 1 ? argv[1] : "";
    const uint32_t count = argc > 2 ? (uint32_t)atol(argv[2]) : 1000;
    if (strcmp(what, "--answer") == 0) return answer();
    if (count > 0 && strcmp(what, "latency") == 0) {
        latency(count);
    } else if (count > 0 && strcmp(what, "rate") == 0) {
        rate(count, argc > 3 ? (uint32_t)atol(argv[3]) : 100);
    } else if (count > 0 && strcmp(what, "pipe") == 0) {
        pipes(count);
    } else {
        fprintf(stderr, "usage: spawns latency | rate | pipe [COUNT [AT_ONCE]]\n");
        return 2;
    }
    return 0;
}
