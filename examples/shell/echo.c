// Prints its arguments: echo [-n] [WORD...]. -n: no new line behind them.
#include <stdio.h>
#include <string.h>

int main(int argc, char** argv) {
    const int ends_line = argc < 2 || strcmp(argv[1], "-n");
    const int first = ends_line ? 1 : 2;
    for (int i = first; i < argc; i++) printf("%s%s", i > first ? " " : "", argv[i]);
    if (ends_line) putchar('\n');
    return fflush(stdout) ? 1 : 0;
}
