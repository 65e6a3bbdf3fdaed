// Leaves one of equal lines that follow each other: uniq [-c]. -c: how many they were, before each.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void show(const char* line, unsigned long count, int counts) {
    if (counts) printf("%lu ", count);
    fputs(line, stdout);
}

int main(int argc, char** argv) {
    const int counts = argc == 2 && strcmp(argv[1], "-c") == 0;
    if (argc != 1 + counts) {
        fprintf(stderr, "usage: uniq [-c]\n");
        return 2;
    }
    char *line = NULL, *before = NULL;
    size_t line_room = 0, before_room = 0;
    unsigned long count = 0;
    while (getline(&line, &line_room, stdin) > 0) {
        if (count && strcmp(line, before)) {
            show(before, count, counts);
            count = 0;
        }
        count++;
        char* const other = before;
        const size_t other_room = before_room;
        before = line, before_room = line_room;
        line = other, line_room = other_room;
    }
    if (count) show(before, count, counts);
    return fflush(stdout) ? 1 : 0;
}
