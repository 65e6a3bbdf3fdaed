// Standard input in capital letters.
#include <ctype.h>
#include <stdio.h>

int main(void) {
    for (int c; (c = getchar()) != EOF;) {
        if (putchar(toupper(c)) == EOF) return 1;
    }
    return fflush(stdout) ? 1 : 0;
}
