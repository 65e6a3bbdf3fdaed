// The words of standard input, one a line, in small letters.
#include <ctype.h>
#include <stdio.h>

int main(void) {
    int is_in_word = 0;
    for (int c; (c = getchar()) != EOF;) {
        if (isalpha(c)) {
            putchar(tolower(c));
        } else if (is_in_word) {
            putchar('\n');
        }
        is_in_word = isalpha(c);
    }
    if (is_in_word) putchar('\n');
    return fflush(stdout) ? 1 : 0;
}
