// What bench/resident_load.cpp runs on a machine: processes whose endings are known beforehand, and
// one that starts others all the time and looks at how each of them ended.
//   load exit CODE               ends at once
//   load sleep MS CODE           ends with the code after so long
//   load trap WHICH              unreachable, integer divide by zero, out of bounds memory access
//   load compute SEED ROUNDS     ends with what it computed, 7 bits of it
//   load write SEED BYTES        writes them, and ends with what they sum up to, 7 bits of it
//   load wait                    until it is killed
//   load spin MS                 is busy for so long
//   load spawner SEED RATE MS COUNT
//                                starts RATE processes a second for so long, or COUNT of them;
//                                0: as fast as it can; no end. Then one line of JSON.
// It is known as `load` on the machine.
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "gpu.h"
#include "work.h"

static void sleep_ns(uint64_t ns) {
    const struct timespec time = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
}

static uint32_t write_bytes(uint32_t seed, uint32_t count) {
    char piece[1024];
    uint32_t sum = 0;
    while (count > 0) {
        const uint32_t size = count < sizeof piece ? count : sizeof piece;
        for (uint32_t i = 0; i < size; i++) {
            piece[i] = (char)work_byte(&seed);
            sum += (uint8_t)piece[i];
        }
        for (uint32_t at = 0; at < size;) {
            const ssize_t written = write(1, piece + at, size - at);
            if (written <= 0) return 200;
            at += (uint32_t)written;
        }
        count -= size;
    }
    return sum & 127;
}

static int trap(uint32_t which) {
    volatile uint32_t dividend = which, zero = 0;
    if (which == 1) return (int)(dividend / zero);
    // Behind all of the memory that this program can have.
    if (which == 2) return *(volatile char*)(uintptr_t)(UINT32_MAX - 7);
    __builtin_trap();
}

static int spin(uint64_t ms) {
    const uint64_t end = gpu_time() + ms * 1000000;
    uint32_t seed = 1;
    volatile uint32_t sum = 0;
    while (gpu_time() < end) sum = work_compute(seed++, 1000);
    (void)sum;
    return 0;
}

// ---- the spawner -------------------------------------------------------------------

enum { most_running = 128 };

typedef struct Child {
    uint32_t pid;  // 0: none
    gpu_status wanted;
    uint32_t must_be_killed;
} Child;

static Child children[most_running];
static uint32_t running, started, wrong, full, endings[4];

// The arguments of the n-th child, and how it ends. All but one in four end at once.
static void choose(uint32_t n, Child* child, char* args, size_t* size) {
    const uint32_t code = n % 251;
    int length = 0;
    child->must_be_killed = 0;
    child->wanted = (gpu_status){GPU_EXITED, code};
    switch (n % 16) {
        case 3:
        case 11:
            length = sprintf(args, "load%csleep%c%u%c%u", 0, 0, n / 16 % 5 + 1, 0, code);
            break;
        case 7:
            child->wanted = (gpu_status){GPU_TRAPPED, 0};
            length = sprintf(args, "load%ctrap%c%u", 0, 0, n / 16 % 3);
            break;
        case 15:
            child->wanted = (gpu_status){GPU_KILLED, GPU_SIGTERM};
            child->must_be_killed = 1;
            length = sprintf(args, "load%cwait", 0);
            break;
        default: length = sprintf(args, "load%cexit%c%u", 0, 0, code);
    }
    *size = (size_t)length + 1;
}

// Starts the next one. False: there is no room now.
static int start(uint32_t seed) {
    Child* child = children;
    while (child->pid != 0) child++;
    char args[64];
    size_t size;
    choose(seed + started, child, args, &size);
    uint32_t pid;
    const int error = gpu_spawn("load", 4, args, size, NULL, 0, NULL, GPU_ALL_FDS, &pid);
    if (error == EAGAIN || error == ENOMEM) {
        full++;
        return 0;
    }
    if (error != 0) {
        fprintf(stderr, "load: spawn: %s\n", strerror(error));
        exit(1);
    }
    child->pid = pid;
    started++;
    running++;
    if (child->must_be_killed && gpu_kill(pid, GPU_SIGTERM) != 0) wrong++;
    return 1;
}

// Waits for any. False: none has ended.
static int take(uint32_t flags) {
    uint32_t pid;
    gpu_status status;
    const int error = gpu_wait(GPU_ANY_CHILD, flags, &pid, &status);
    if (error == EAGAIN) return 0;
    if (error != 0) {
        fprintf(stderr, "load: wait: %s with %u running\n", strerror(error), running);
        exit(1);
    }
    Child* child = children;
    while (child < children + most_running && child->pid != pid) child++;
    if (child == children + most_running) {
        wrong++;
        return 1;
    }
    // Which number a trap has is the host's to know.
    const int is_right = status.ending == child->wanted.ending &&
                         (status.ending == GPU_TRAPPED || status.code == child->wanted.code);
    if (!is_right && wrong++ < 5)
        fprintf(stderr, "load: pid %u ended %u with %u, wanted %u with %u\n", pid, status.ending,
                status.code, child->wanted.ending, child->wanted.code);
    if (status.ending < 4) endings[status.ending]++;
    child->pid = 0;
    running--;
    return 1;
}

static int spawner(uint32_t seed, uint32_t rate, uint64_t ms, uint32_t count) {
    const uint64_t begin = gpu_time(), tick = 2000000;
    for (;;) {
        const uint64_t passed = gpu_time() - begin;
        if ((ms > 0 && passed >= ms * 1000000) || (count > 0 && started == count)) break;
        uint64_t due = rate ? passed * rate / 1000000000 + 1 : UINT32_MAX;
        if (count > 0 && due > count) due = count;
        while (started < due && running < most_running && start(seed)) {
        }
        // Where it is behind it waits for room, else for the time of the next ones.
        const int is_behind = started < due;
        if (is_behind && running > 0) take(0);
        while (running > 0 && take(GPU_NO_HANG)) {
        }
        if (!is_behind || running == 0) sleep_ns(tick);
    }
    const double seconds = (double)(gpu_time() - begin) / 1e9;
    while (running > 0) take(0);
    uint32_t pid;
    gpu_status status;
    if (gpu_wait(GPU_ANY_CHILD, 0, &pid, &status) != ECHILD) wrong++;
    printf(
        "{\"spawned\": %u, \"exited\": %u, \"trapped\": %u, \"killed\": %u, \"wrong\": %u, "
        "\"full\": %u, \"seconds\": %.3f}\n",
        started, endings[GPU_EXITED], endings[GPU_TRAPPED], endings[GPU_KILLED], wrong, full,
        seconds);
    return wrong == 0 ? 0 : 1;
}

int main(int argc, char** argv) {
    const char* const what = argc > 1 ? argv[1] : "";
    uint32_t numbers[4] = {0};
    for (int i = 2; i < argc && i < 6; i++) numbers[i - 2] = (uint32_t)strtoul(argv[i], NULL, 10);
    if (strcmp(what, "exit") == 0) return (int)numbers[0];
    if (strcmp(what, "sleep") == 0) {
        sleep_ns((uint64_t)numbers[0] * 1000000);
        return (int)numbers[1];
    }
    if (strcmp(what, "trap") == 0) return trap(numbers[0]);
    if (strcmp(what, "compute") == 0) return (int)work_compute(numbers[0], numbers[1]);
    if (strcmp(what, "write") == 0) return (int)write_bytes(numbers[0], numbers[1]);
    if (strcmp(what, "wait") == 0) {
        for (;;) sleep_ns(3600000000000);
    }
    if (strcmp(what, "spin") == 0) return spin(numbers[0]);
    if (strcmp(what, "spawner") == 0)
        return spawner(numbers[0], numbers[1], numbers[2], numbers[3]);
    fprintf(stderr, "load: there is no \"%s\"\n", what);
    return 2;
}
