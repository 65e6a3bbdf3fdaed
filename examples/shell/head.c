// The first lines of standard input: head [LINES], 10 unless told.
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
    char* end = "";
    long left = argc > 1 ? strtol(argv[1], &end, 10) : 10;
    if (argc > 2 || *end || left < 0) {
        fprintf(stderr, "usage: head [LINES]\n");
        return 2;
    }
    for (int c; left > 0 && (c = getchar()) != EOF;) {
        putchar(c);
        if (c == '\n') left--;
    }
    return fflush(stdout) ? 1 : 0;
}
