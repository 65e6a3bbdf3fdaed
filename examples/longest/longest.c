// The longest word of standard input.
#include <stdio.h>
#include <string.h>
int main(void) {
    char word[256], longest[256] = "";
    while (scanf("%255s", word) == 1)
        if (strlen(word) > strlen(longest)) strcpy(longest, word);
    puts(longest);
}
