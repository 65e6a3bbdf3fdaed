// Run as many processes with a number each: isolation NUMBER. Each leaves its number in its
// memory, its heap, a file of its own, a file that all have by the same name, and a file that was
// there before; waits for the others to do the same; and finds nothing but its own.
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { words = 4096 };
static unsigned global[words];
static unsigned untouched[words];

static int failures;

static void check(int fine, const char* what, unsigned number) {
    if (fine) return;
    printf("process %u: %s is not what it left there\n", number, what);
    failures++;
}

static void put(const char* name, int flags, const char* text) {
    int fd = open(name, O_WRONLY | O_CREAT | flags, 0644);
    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text) || close(fd) != 0) {
        perror(name);
        exit(1);
    }
}

static int holds(const char* name, const char* text) {
    char found[256] = {0};
    int fd = open(name, O_RDONLY);
    if (fd < 0) return 0;
    ssize_t length = read(fd, found, sizeof found - 1);
    close(fd);
    return length == (ssize_t)strlen(text) && strcmp(found, text) == 0;
}

int main(int argc, char** argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: isolation NUMBER\n");
        return 2;
    }
    unsigned number = (unsigned)strtoul(argv[1], NULL, 10);
    char own[64], text[64], longer[128];
    snprintf(own, sizeof own, "private-%u.txt", number);
    snprintf(text, sizeof text, "%u wrote this\n", number);
    snprintf(longer, sizeof longer, "here before\n%u wrote this\n", number);

    // Before anything is written: nobody else's traces, from now or from an earlier run.
    for (int i = 0; i < words; i++) check(global[i] == 0, "fresh memory", number);
    check(access(own, F_OK) != 0, "the folder", number);
    check(access("common.txt", F_OK) != 0, "the common name", number);
    check(holds("base.txt", "here before\n"), "the base", number);

    unsigned* heap = malloc(words * sizeof *heap);
    if (!heap) return 1;
    for (int i = 0; i < words; i++) global[i] = heap[i] = number * 2654435761u + (unsigned)i;
    put(own, O_EXCL, text);
    put("common.txt", O_EXCL, text);
    put("base.txt", O_APPEND, text);
    if (mkdir("sub", 0755) != 0) check(0, "a new folder", number);
    put("sub/deep.txt", O_EXCL, text);

    for (int turn = 0; turn < 20; turn++) {
        sched_yield();
        for (int i = 0; i < words; i++) {
            check(global[i] == number * 2654435761u + (unsigned)i, "memory", number);
            check(heap[i] == global[i], "the heap", number);
            check(untouched[i] == 0, "untouched memory", number);
        }
        check(holds(own, text), own, number);
        check(holds("common.txt", text), "common.txt", number);
        check(holds("base.txt", longer), "base.txt", number);
        check(holds("sub/deep.txt", text), "sub/deep.txt", number);
    }
    char neighbour[64];
    snprintf(neighbour, sizeof neighbour, "private-%u.txt", number ^ 1);
    check(access(neighbour, F_OK) != 0, "its neighbour's name", number);
    printf("process %u of its own: %s\n", number, failures ? "BROKEN" : "ok");
    fprintf(stderr, "%u on standard error\n", number);
    free(heap);
    return failures > 0;
}
