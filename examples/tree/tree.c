// A tree of processes: each starts its children, adds up what they tell, and tells its parent.
//   tree [PROCESSES [CHILDREN]]                1,000 processes with up to 3 children each
//   tree --node NUMBER PROCESSES CHILDREN      what each but the first is started as
//
// The children of process N have the numbers CHILDREN * N + 1 and on, as in a heap. Each tells by
// one write to its standard output, which is its parent's pipe and that of its siblings.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu.h"

struct report {
    uint32_t processes, levels;
    uint64_t sum;  // of their numbers
};

static void fail(const char* what, int error) {
    fprintf(stderr, "tree: %s: %s\n", what, strerror(error));
    exit(1);
}

static uint32_t number_of(const char* text) {
    char* end;
    const unsigned long number = strtoul(text, &end, 10);
    if (*end || end == text || number > 1000000) {
        fprintf(stderr, "usage: tree [PROCESSES [CHILDREN]]\n");
        exit(2);
    }
    return (uint32_t)number;
}

static void start_child(uint32_t number, char* processes, char* children, int output) {
    char text[12];
    snprintf(text, sizeof text, "%u", number);
    const char* const argv[] = {"tree", "--node", text, processes, children, NULL};
    const gpu_fd fds[] = {{1, (uint32_t)output}, {2, 2}};
    uint32_t pid;
    const int error = gpu_spawnve("tree", argv, NULL, fds, 2, &pid);
    if (error) fail("spawn", error);
}

// Starts the children of a process, and theirs, and waits for all of them.
static struct report grow(uint32_t number, char* processes, char* children) {
    const uint64_t end = number_of(processes), most = number_of(children);
    struct report sum = {.processes = 1, .levels = 1, .sum = number};
    const uint64_t first = most * number + 1;
    uint32_t count = 0;
    if (most == 0 || first >= end) return sum;
    int input, output;
    int error = gpu_pipe(&input, &output);
    if (error) fail("pipe", error);
    for (uint64_t child = first; child < end && child < first + most; child++, count++) {
        start_child((uint32_t)child, processes, children, output);
    }
    close(output);  // so that the pipe ends with the last child
    struct report report;
    for (uint32_t i = 0; i < count; i++) {
        if (read(input, &report, sizeof report) != sizeof report) {
            fprintf(stderr, "tree: a child of %u told nothing\n", number);
            exit(1);
        }
        sum.processes += report.processes;
        sum.sum += report.sum;
        if (sum.levels < report.levels + 1) sum.levels = report.levels + 1;
    }
    close(input);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t pid;
        gpu_status status;
        error = gpu_wait(GPU_ANY_CHILD, 0, &pid, &status);
        if (error) fail("wait", error);
        if (!gpu_succeeded(status)) {
            fprintf(stderr, "tree: a child of %u ended with %d\n", number, gpu_shell_code(status));
            exit(1);
        }
    }
    return sum;
}

int main(int argc, char** argv) {
    if (argc == 5 && strcmp(argv[1], "--node") == 0) {
        const struct report report = grow(number_of(argv[2]), argv[3], argv[4]);
        return write(1, &report, sizeof report) == sizeof report ? 0 : 1;
    }
    char* const processes = argc > 1 ? argv[1] : "1000";
    char* const children = argc > 2 ? argv[2] : "3";
    const uint64_t count = number_of(processes);
    if (argc > 3 || count == 0 || number_of(children) == 0) number_of("");
    const struct report report = grow(0, processes, children);
    printf("%u processes on %u levels, sum of their numbers %llu\n", report.processes,
           report.levels, (unsigned long long)report.sum);
    return report.processes == count && report.sum == count * (count - 1) / 2 ? 0 : 1;
}
