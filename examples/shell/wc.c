// Counts lines, words and bytes of standard input: wc [-l | -w | -c].
#include <ctype.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char** argv) {
    unsigned long lines = 0, words = 0, bytes = 0;
    int is_in_word = 0;
    for (int c; (c = getchar()) != EOF; bytes++) {
        if (c == '\n') lines++;
        if (!isspace(c) && !is_in_word) words++;
        is_in_word = !isspace(c);
    }
    const char* const what = argc > 1 ? argv[1] : "";
    if (argc > 2 || (argc > 1 && strcmp(what, "-l") && strcmp(what, "-w") && strcmp(what, "-c"))) {
        fprintf(stderr, "usage: wc [-l | -w | -c]\n");
        return 2;
    }
    if (argc == 1) {
        printf("%lu %lu %lu\n", lines, words, bytes);
    } else {
        printf("%lu\n", what[1] == 'l' ? lines : what[1] == 'w' ? words : bytes);
    }
    return 0;
}
