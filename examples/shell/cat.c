// Prints files, one after the other: cat [FILE...]. None, or -, is standard input.
#include <errno.h>
#include <stdio.h>
#include <string.h>

static int copy(FILE* file) {
    char bytes[4096];
    size_t size;
    while ((size = fread(bytes, 1, sizeof bytes, file)) > 0) {
        // Nobody reads on: the rest need not be read either.
        if (fwrite(bytes, 1, size, stdout) != size) return 1;
    }
    return ferror(file) ? 1 : 0;
}

int main(int argc, char** argv) {
    int code = 0;
    if (argc == 1) code = copy(stdin);
    for (int i = 1; i < argc; i++) {
        const int is_input = strcmp(argv[i], "-") == 0;
        FILE* const file = is_input ? stdin : fopen(argv[i], "r");
        if (!file) {
            fprintf(stderr, "cat: %s: %s\n", argv[i], strerror(errno));
            code = 1;
            continue;
        }
        if (copy(file)) code = 1;
        if (!is_input) fclose(file);
    }
    return fflush(stdout) ? 1 : code;
}
