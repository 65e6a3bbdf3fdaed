// Sorts the lines of standard input: sort [-n] [-r]. -n: by the number that they begin with; -r:
// the other way round. Options may stand together.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_number, is_reversed;

static int compare(const void* a, const void* b) {
    const char *left = *(char* const*)a, *right = *(char* const*)b;
    int result = 0;
    if (by_number) {
        const long x = strtol(left, NULL, 10), y = strtol(right, NULL, 10);
        result = (x > y) - (x < y);
    }
    if (result == 0) result = strcmp(left, right);
    return is_reversed ? -result : result;
}

int main(int argc, char** argv) {
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] != '-' || strspn(argv[i] + 1, "nr") != strlen(argv[i]) - 1) {
            fprintf(stderr, "usage: sort [-n] [-r]\n");
            return 2;
        }
        if (strchr(argv[i], 'n')) by_number = 1;
        if (strchr(argv[i], 'r')) is_reversed = 1;
    }
    char** lines = NULL;
    size_t count = 0, room = 0;
    for (;;) {
        char* line = NULL;
        size_t size = 0;
        const ssize_t length = getline(&line, &size, stdin);
        if (length < 0) break;
        if (length > 0 && line[length - 1] == '\n') line[length - 1] = 0;
        if (count == room) {
            room = room ? 2 * room : 256;
            lines = realloc(lines, room * sizeof *lines);
            if (!lines) {
                fprintf(stderr, "sort: no memory\n");
                return 2;
            }
        }
        lines[count++] = line;
    }
    if (count) qsort(lines, count, sizeof *lines, compare);
    for (size_t i = 0; i < count; i++) puts(lines[i]);
    return fflush(stdout) ? 1 : 0;
}
