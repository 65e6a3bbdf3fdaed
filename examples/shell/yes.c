// Prints its arguments, or y, over and over, until nobody reads them any more.
#include <stdio.h>

int main(int argc, char** argv) {
    for (;;) {
        if (argc == 1) fputs("y", stdout);
        for (int i = 1; i < argc; i++) printf("%s%s", i > 1 ? " " : "", argv[i]);
        if (putchar('\n') == EOF || ferror(stdout)) return 1;
    }
}
