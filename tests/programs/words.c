// Counts the words of its input and prints them by frequency: the C library's streams, heap and
// sort, calls through pointers.
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct word {
    char text[32];
    int count;
};

static int by_count(const void* a, const void* b) {
    const struct word *left = a, *right = b;
    if (left->count != right->count) return right->count - left->count;
    return strcmp(left->text, right->text);
}

int main(void) {
    struct word* words = NULL;
    size_t count = 0, room = 0;
    char text[32];
    size_t length = 0;
    for (int c = getchar(); length > 0 || c != EOF; c = getchar()) {
        if (isalnum(c) && length + 1 < sizeof text) {
            text[length++] = (char)tolower(c);
            continue;
        }
        if (length == 0) continue;
        text[length] = '\0';
        length = 0;
        size_t i = 0;
        while (i < count && strcmp(words[i].text, text) != 0) i++;
        if (i == count) {
            if (count == room) {
                room = room ? 2 * room : 16;
                words = realloc(words, room * sizeof *words);
                if (!words) return 1;
            }
            memset(&words[i], 0, sizeof words[i]);
            strcpy(words[i].text, text);
            count++;
        }
        words[i].count++;
    }
    qsort(words, count, sizeof *words, by_count);
    for (size_t i = 0; i < count; i++) printf("%5d %s\n", words[i].count, words[i].text);
    free(words);
    return 0;
}
